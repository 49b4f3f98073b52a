//! The examples of the worker-skill interface, word for word.

use super::{Workspace, codes, show};
use crate::model::definition::{InputKind, RunText};
use crate::model::spec::OutputKind;

pub(crate) const INLINE: &str = include_str!("../../../../tests/samples/definitions/inline.yaml");

pub(crate) const STANDALONE: &str =
    include_str!("../../../../tests/samples/definitions/standalone.md");

pub(crate) const READ_ONLY: &str =
    include_str!("../../../../tests/samples/definitions/read-only.yaml");

pub(crate) const MUTATING: &str =
    include_str!("../../../../tests/samples/definitions/mutating.yaml");

#[test]
fn the_inline_definition_is_a_template_with_its_skill() {
    let catalog = Workspace::of_worker(INLINE).load();
    assert_eq!(
        codes(&catalog),
        ["worker-template", "no-executor"],
        "{}",
        show(&catalog.problems)
    );
    let worker = &catalog.workers[0];
    assert!(worker.template);
    let skill = &worker.skills[0];
    assert_eq!(skill.address.to_string(), "cfo-{company}/mrr");
    assert_eq!(skill.name, "MRR Report");
    assert_eq!(skill.description, "Current MRR from Stripe subscriptions");
    assert_eq!(skill.inputs[0].kind, InputKind::Number);
    assert_eq!(skill.inputs[0].default, Some(1.into()));
    assert_eq!(
        skill.inputs[0].description.as_deref(),
        Some("Months to include")
    );
    assert_eq!(
        skill.outputs[0].destination.as_deref(),
        Some("workspace/reports/finance/")
    );
    assert_eq!(skill.checks[0].command.as_deref(), Some("test -f {output}"));
    assert_eq!(skill.checks[0].description, "Output file exists");
    assert!(skill.checks[0].must_pass && !skill.mutating);
    assert_eq!(
        (skill.checks[0].place.line, skill.checks[0].place.column),
        (22, 9)
    );
}

#[test]
fn the_standalone_file_loads() {
    let catalog = Workspace::of_skill("mrr.md", STANDALONE).load();
    assert_eq!(
        codes(&catalog),
        ["no-executor"],
        "{}",
        show(&catalog.problems)
    );
    let skill = &catalog.workers[0].skills[0];
    assert_eq!(skill.address.to_string(), "w/mrr");
    assert_eq!(skill.run, RunText::Instructions);
    assert_eq!(
        skill.instructions.as_deref(),
        Some("# MRR Report Skill\n\nInstructions for executing this skill...")
    );
    assert_eq!(skill.checks[0].description, "test -f {output}");
    assert_eq!((skill.place.line, skill.place.column), (3, 3));
}

#[test]
fn the_other_examples_load_under_a_worker() {
    for (yaml, mutating, kind) in [
        (READ_ONLY, false, OutputKind::Console),
        (MUTATING, true, OutputKind::Markdown),
    ] {
        let catalog = Workspace::of_worker(&format!("worker: {{id: w}}\n{yaml}")).load();
        assert_eq!(
            codes(&catalog),
            ["no-executor"],
            "{}",
            show(&catalog.problems)
        );
        let skill = &catalog.workers[0].skills[0];
        assert_eq!((skill.mutating, skill.outputs[0].kind), (mutating, kind));
    }
}

/// A definition with every key that goes beyond the contract.
pub(crate) const EVERY_KEY: &str = r#"worker: {id: garden, name: "Gardener", type: OpsWorker, version: "2.3"}
execution: {mode: scheduled, schedule: "30 6 * * 1", max_runtime: 20m, retry_attempts: 2, model: fast}
schedule: {cron: "30 6 * * 1", timezone: Europe/Lisbon, skill: changelog, inputs: {days: 7}}
state_machine: {enabled: true, max_retries: 2, hooks: {post_execute: [auto_checkpoint], on_error: [log_error]}}
context: {base: [docs/], dynamic: [{pattern: "*.toml", when: exists}], exclude: [target/]}
verification: {pre_execute: [{command: test -d docs}], post_execute: [{check: spelling, command: "make spell"}], approval_required: false}
env: [TRACKER_TOKEN] # read from the engine's environment
skills:
  - id: changelog
    name: "Changelog"
    description: "Collects what was merged"
    run: |
      git log --since={days}.days \
        --format=%s
    interface:
      inputs:
        - {name: days, type: number, default: 7, min: 1, max: 90, integer: true}
        - {name: tone, enum: [plain, 'it''s fun'], default: plain}
      outputs: [{name: page, type: markdown, destination: "docs/changes/{date}.md"}]
    verification: [{command: "test -s {page}", description: "has lines", timeout: 20s, must_pass: true}]
    mutating: true
    idempotent: false
    on_crash: restore
    timeout: 2m
    cwd: docs
    shell: bash
    hooks: {post_tools: ["./notify"], post_commit: [{command: "git push", timeout: 30s}]}
    commit: {message: "changelog of {{date}}"}
"#;

#[test]
fn every_key_beyond_the_contract_loads() {
    let catalog = Workspace::of_worker(EVERY_KEY).load();
    assert_eq!(
        codes(&catalog),
        [
            "worker-directory",
            "schedule-unnamed",
            "retry-not-applied",
            "retry-two-sources",
        ],
        "{}",
        show(&catalog.problems)
    );
    let worker = &catalog.workers[0];
    assert_eq!(worker.model.as_deref(), Some("fast"));
    assert_eq!(worker.kept["schedule"]["timezone"], "Europe/Lisbon");
    let skill = &worker.skills[0];
    assert!(skill.is_available());
    assert_eq!(skill.timeout_ms, Some(120_000));
    assert_eq!(skill.max_runtime_ms, Some(1_200_000));
    assert_eq!(skill.env, ["TRACKER_TOKEN"]);
    assert_eq!((skill.pre_checks.len(), skill.checks.len()), (1, 2));
    assert_eq!(skill.retry.max_attempts, 1);
    assert_eq!((skill.run_place.line, skill.run_place.column), (12, 10));
}
