//! worker.yaml, one table row after the other.

use super::super::Lookup;
use super::{ERROR, NOTE, WARNING, Workspace, check_worker, codes, expect, show};
use crate::model::definition::Mode;

#[test]
fn identity_is_read_from_the_wrapper_or_flat() {
    let catalog = check_worker(
        "name: w\ntype: content\nversion: 1.10\n",
        ("worker-flat", WARNING, 1, 1, "below `worker:`"),
    );
    assert_eq!(catalog.workers[0].version.as_deref(), Some("1.10"));
    assert_eq!(catalog.workers[0].kind.as_deref(), Some("content"));
    check_worker(
        "worker:\n  id: w\nname: other\n",
        ("worker-id-conflict", ERROR, 3, 7, "keep one"),
    );
    check_worker(
        "worker:\n  name: W\n",
        ("worker-id-missing", ERROR, 2, 3, "add `worker: {id"),
    );
    check_worker(
        "worker:\n  id: null\n",
        ("worker-id-missing", ERROR, 2, 3, "quote ids"),
    );
    check_worker(
        "worker: w\n",
        ("wrong-type", ERROR, 1, 9, "a map with `id`"),
    );
    check_worker("- a\n", ("definition-shape", ERROR, 1, 1, "begin it with"));
    check_worker(
        "# nothing\n",
        ("definition-shape", ERROR, 1, 1, "begin it with"),
    );
}

#[test]
fn ids_never_become_another_type() {
    for id in [
        "1e3",
        "yes",
        "2026-01-01",
        "0o17",
        "1.10",
        "true",
        "constructor",
    ] {
        let catalog = Workspace::of_worker(&format!("worker: {{id: {id}}}\n")).load();
        assert_eq!(
            catalog.workers.len(),
            1,
            "{id}: {}",
            show(&catalog.problems)
        );
        assert_eq!(catalog.workers[0].id, id);
    }
}

#[test]
fn hostile_ids_are_refused_or_told() {
    for id in [
        "a/b",
        "a..b",
        "../x",
        "-x",
        "a\\nb",
        "a\\u001bb",
        ".",
        "a\\\\b",
    ] {
        let yaml = format!("worker:\n  id: \"{id}\"\n");
        check_worker(&yaml, ("id-invalid", ERROR, 2, 7, "lower-case letters"));
    }
    let long = "x".repeat(65);
    for id in [
        "CON",
        "a.lock",
        "@{-1}x",
        "a:b",
        "HEAD",
        " x",
        "\u{430}dmin",
        "a^",
        &long,
    ] {
        let catalog = Workspace::of_worker(&format!("worker:\n  id: \"{id}\"\n")).load();
        if !id.contains('{') {
            let expected = ("id-unusual", WARNING, 2, 7, "lower-case letters");
            expect(&catalog, "workers/w/worker.yaml", &expected);
        }
    }
}

#[test]
fn whole_id_templates_are_listed_and_never_run() {
    let catalog = check_worker(
        "worker:\n  id: social-{platform}\nskills:\n  - {id: post, description: d, run: date}\n",
        ("worker-template", NOTE, 2, 7, "id without placeholders"),
    );
    assert!(catalog.workers[0].template);
    assert_eq!(catalog.workers[0].skills[0].unavailable[0].code, "template");
}

#[test]
fn modes_are_normalised_and_unknown_ones_rejected() {
    let catalog = check_worker(
        "worker: {id: w}\nexecution:\n  mode: on-demand\n",
        ("mode-spelling", NOTE, 3, 9, "on_demand"),
    );
    assert_eq!(catalog.workers[0].mode, Mode::OnDemand);
    check_worker(
        "worker: {id: w}\nexecution:\n  mode: scheduled\n",
        ("schedule-missing", ERROR, 3, 9, "schedule:"),
    );
    let catalog = check_worker(
        "worker: {id: w}\nexecution:\n  mode: weekly\n",
        ("mode-unknown", ERROR, 3, 9, "`event_triggered`"),
    );
    assert!(catalog.workers.is_empty());
    let catalog = check_worker(
        "worker: {id: w}\nexecution:\n  mode: scheduled\n  schedule: \"0 9 * * 1-5\"\n",
        ("schedule-skill", ERROR, 4, 3, "add a skill"),
    );
    assert!(catalog.workers[0].scheduled);
    check_worker(
        "worker: {id: w}\nexecution: {mode: event-triggered}\n",
        ("event-not-fired", WARNING, 2, 19, "workerctl run"),
    );
}

#[test]
fn worker_checks_come_first_and_prose_is_for_people() {
    let yaml = "worker: {id: w}\nverification:\n  pre_execute:\n    - {check: clean, command: git diff --quiet}\n  post_execute:\n    - check: lint\n      command: make lint\n      when: task.has_repo\n    - PRD includes problem statement\n    - check: coverage\n      max: 3\n    - Done means: all of it\n  human_checkpoints:\n    - on_breaking_changes\nskills:\n  - id: a\n    description: d\n    run: date\n    verification:\n      - {command: test -s x, description: not empty, timeout: 30s, must_pass: false}\n";
    let catalog = check_worker(
        yaml,
        ("when-not-evaluated", WARNING, 8, 13, "in the command"),
    );
    let path = "workers/w/worker.yaml";
    expect(
        &catalog,
        path,
        &("check-manual", NOTE, 9, 7, "write `command: COMMAND`"),
    );
    expect(
        &catalog,
        path,
        &("check-manual", NOTE, 10, 7, "write `command: COMMAND`"),
    );
    expect(
        &catalog,
        path,
        &("prose-quoted", WARNING, 12, 7, "\"Done means: all of it\""),
    );
    let skill = &catalog.workers[0].skills[0];
    let shown: Vec<_> = skill
        .checks
        .iter()
        .map(|c| (c.description.as_str(), c.command.as_deref(), c.must_pass))
        .collect();
    assert_eq!(
        shown,
        [
            ("lint", Some("make lint"), true),
            ("PRD includes problem statement", None, false),
            ("coverage", None, false),
            ("Done means: all of it", None, false),
            ("on_breaking_changes", None, false),
            ("not empty", Some("test -s x"), false),
        ]
    );
    assert_eq!(skill.checks[5].timeout_ms, 30_000);
    assert_eq!(skill.checks[0].place.line, 6);
    assert_eq!(
        skill.pre_checks[0].command.as_deref(),
        Some("git diff --quiet")
    );
}

#[test]
fn what_asks_for_more_protection_is_unavailable() {
    let yaml = "worker: {id: w}\nverification: {approval_required: true}\nexecution: {sandbox: their-own}\nskills:\n  - {id: a, description: d, run: date}\n  - {id: b, description: d}\n";
    let workspace = Workspace::of_worker(yaml);
    let reasons = || {
        let catalog = workspace.load();
        let of = |index: usize| -> Vec<String> {
            let skill = &catalog.workers[0].skills[index];
            skill
                .unavailable
                .iter()
                .map(|why| why.code.clone())
                .collect()
        };
        (of(0), of(1))
    };
    let (first, second) = reasons();
    assert_eq!(first, ["sandbox"]);
    assert_eq!(second, ["sandbox", "no-executor", "approval-required"]);
    // Somebody can be asked before a model begins, as before a command.
    workspace.write(
        "workerctl.yaml",
        b"models: {default: {provider: ollama, model: m}}\n",
    );
    let sandbox = vec!["sandbox".to_owned()];
    assert_eq!(reasons(), (sandbox.clone(), sandbox));
}

#[test]
fn malformed_restrictions_reject_what_they_stand_in() {
    let catalog = check_worker(
        "worker: {id: w}\nverification:\n  approval_required: yes please\nskills: [{id: a, run: date}]\n",
        (
            "restriction-malformed",
            ERROR,
            3,
            22,
            "approval_required: true",
        ),
    );
    assert!(catalog.workers.is_empty());
    for (line, column, hint) in [
        ("mutating: \"yes\"", 15, "mutating: true"),
        ("mutating:", 5, "mutating: true"),
        ("approval_required: 1", 24, "approval_required: true"),
        (
            "disable-model-invocation: on",
            31,
            "disable-model-invocation: true",
        ),
        ("allowed-tools: {a: b}", 20, "[Read, Grep]"),
        ("required_tools: 7", 21, "[Read, Grep]"),
    ] {
        let yaml = format!(
            "worker: {{id: w}}\nskills:\n  - id: good\n    run: date\n  - id: bad\n    run: date\n    {line}\n"
        );
        let catalog = check_worker(&yaml, ("restriction-malformed", ERROR, 7, column, hint));
        let ids: Vec<_> = catalog
            .skills()
            .map(|(_, s)| s.address.skill.clone())
            .collect();
        assert_eq!(ids, ["good"], "{line}");
        assert!(
            matches!(catalog.find("bad"), Lookup::Rejected(_, problems) if problems.len() == 1)
        );
    }
}

#[test]
fn unknown_keys_are_kept_with_one_note_for_each_directory() {
    let yaml = "worker: {id: w, mood: calm}\npersona: x\nskills:\n  - {id: b, persona: y, description: d, run: date}\n";
    let catalog = check_worker(yaml, ("unknown-key", NOTE, 1, 17, ""));
    let path = "workers/w/worker.yaml";
    expect(&catalog, path, &("unknown-key", NOTE, 2, 1, ""));
    let persona = catalog
        .problems
        .iter()
        .filter(|problem| problem.message.contains("`persona`"))
        .count();
    assert_eq!(persona, 1);
    assert_eq!(catalog.workers[0].kept["persona"], "x");
    assert_eq!(catalog.workers[0].kept["worker"]["mood"], "calm");
}

#[test]
fn unquoted_placeholders_are_told_with_their_line() {
    let catalog = check_worker(
        "worker: {id: w}\nskills:\n  - id: a\n    description: {topic}\n    run: date\n",
        ("quote-placeholder", ERROR, 4, 18, "`\"{topic}\"`"),
    );
    assert_eq!(catalog.workers.len(), 1);
    check_worker(
        "worker: {id: w}\nskills:\n  - id: a\n    interface:\n      outputs:\n        - destination: {month}-report.md\n",
        ("quote-placeholder", ERROR, 6, 24, "double quotes"),
    );
    let catalog = Workspace::of_worker("worker: {id: w}\nidentity:\n  persona: {persona}\n").load();
    assert_eq!(catalog.workers.len(), 1, "kept data is not text");
}

#[test]
fn instructions_may_be_a_list_and_data_stays_data() {
    let yaml = "worker: {id: w}\ninstructions:\n  - first\n  - second\noutput: {destination: r/, format: both, naming: \"{date}.md\"}\ncontext: {dynamic: [{pattern: x, when: task.x}, \"*.md\"]}\nmcp: {server: s}\n";
    let catalog = check_worker(yaml, ("when-not-evaluated", NOTE, 6, 40, "`exists`"));
    let worker = &catalog.workers[0];
    assert_eq!(worker.instructions.as_deref(), Some("first\nsecond"));
    assert_eq!(worker.kept["output"]["naming"], "{date}.md");
    assert_eq!(worker.kept["mcp"]["server"], "s");
}

#[test]
fn a_body_after_the_definition_is_instructions_and_a_second_definition_an_error() {
    let catalog = check_worker(
        "---\nworker: {id: w}\n---\n\n# Title\n\n---\n\nmore\n",
        ("body-after-definition", WARNING, 4, 1, "instructions: |"),
    );
    let instructions = catalog.workers[0].instructions.as_deref();
    assert_eq!(instructions, Some("# Title\n\n---\n\nmore"));
    for yaml in [
        "worker: {id: w}\n---\nworker: {id: v}\n",
        "---\nworker: {id: w}\n---\nworker: {id: v}\n",
    ] {
        let line = u32::try_from(yaml.rfind("---").map_or(0, |at| yaml[..at].lines().count()) + 1)
            .expect("few lines");
        check_worker(yaml, ("multiple-documents", ERROR, line, 1, "one worker"));
    }
    let catalog = Workspace::of_worker("---\nworker: {id: w}\n---\n").load();
    assert_eq!(codes(&catalog), ["worker-without-skills"]);
}

#[test]
fn duplicate_workers_are_both_rejected_and_both_named() {
    let workspace = Workspace::new(&[
        ("workers/a/worker.yaml", "worker: {id: same}\n"),
        ("workers/b/worker.yaml", "worker:\n  id: Same\n"),
        ("workers/c/worker.yaml", "worker: {id: c}\n"),
    ]);
    let catalog = workspace.load();
    let hint = "its own id";
    expect(
        &catalog,
        "workers/a/worker.yaml",
        &("worker-duplicate", ERROR, 1, 14, hint),
    );
    expect(
        &catalog,
        "workers/b/worker.yaml",
        &("worker-duplicate", ERROR, 2, 7, hint),
    );
    assert_eq!(catalog.workers.len(), 1);
    let named = catalog
        .problems
        .iter()
        .any(|p| p.message.contains("`workers/b/worker.yaml:2:7`"));
    assert!(named, "{}", show(&catalog.problems));
    assert!(matches!(catalog.find("same"), Lookup::Rejected(..)));
}
