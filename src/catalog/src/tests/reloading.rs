//! Reloads, fingerprints and the configuration.

use std::sync::Arc;

use super::super::{Lookup, Options, reload};
use super::{ERROR, NOTE, WARNING, Workspace, codes, expect, show};

const GOOD: &str = "worker: {id: w}\nskills:\n  - {id: a, description: one, run: date}\n  - {id: b, description: d, run: date}\n";

#[test]
fn what_broke_keeps_its_last_good_definition_until_it_is_repaired() {
    let workspace = Workspace::of_worker(GOOD);
    let first = workspace.load();
    workspace.write("workers/w/worker.yaml", b"worker: {id: w\n");
    let broken = reload(&first, Options::default());
    let path = "workers/w/worker.yaml";
    expect(
        &broken,
        path,
        &("kept-last-good", WARNING, 0, 0, "`workerctl daemon reload`"),
    );
    assert!(broken.has_errors());
    assert!(matches!(broken.find("w/a"), Lookup::Found(..)));
    let still = reload(&broken, Options::default());
    expect(
        &still,
        path,
        &("kept-last-good", WARNING, 0, 0, "`workerctl daemon reload`"),
    );
    workspace.write(
        "workers/w/worker.yaml",
        GOOD.replace("one", "two").as_bytes(),
    );
    let repaired = reload(&still, Options::default());
    assert!(!repaired.has_errors(), "{}", show(&repaired.problems));
    assert_eq!(repaired.workers[0].skills[0].description, "two");
    std::fs::remove_file(workspace.path().join(path)).expect("removed");
    assert!(reload(&repaired, Options::default()).workers.is_empty());
}

#[test]
fn a_schedule_that_says_the_same_is_the_same() {
    let schedules = "schedule: [{every: 1m, skill: a}, {every: 2m, skill: b}]\n";
    let text = format!("{GOOD}{schedules}");
    let workspace = Workspace::of_worker(&text);
    let first = workspace.load();
    workspace.write("workers/w/worker.yaml", text.replace("2m", "3m").as_bytes());
    let second = reload(&first, Options::default());
    let is_same = |at: usize| Arc::ptr_eq(&first.schedules[at], &second.schedules[at]);
    assert_eq!((first.schedules.len(), second.schedules.len()), (2, 2));
    assert_eq!((is_same(0), is_same(1)), (true, false));
}

#[test]
fn a_broken_skill_keeps_its_last_good_definition_too() {
    let workspace = Workspace::of_worker(GOOD);
    let first = workspace.load();
    let text = GOOD.replace("one, run: date", "one, run: date, timeout: soon");
    workspace.write("workers/w/worker.yaml", text.as_bytes());
    let second = reload(&first, Options::default());
    expect(
        &second,
        "workers/w/worker.yaml",
        &("kept-last-good", WARNING, 3, 5, "`workerctl daemon reload`"),
    );
    assert_eq!(second.skills().count(), 2);
    workspace.write(
        "workers/w/worker.yaml",
        b"worker: {id: w}\nskills: [{id: b, run: date}]\n",
    );
    assert_eq!(reload(&second, Options::default()).skills().count(), 1);
}

#[test]
fn a_broken_skill_file_is_known_by_its_path() {
    let good = "---\nname: other\ndescription: d\nrun: date\n---\n";
    let workspace = Workspace::of_skill("a.md", good);
    let first = workspace.load();
    assert!(matches!(first.find("other"), Lookup::Found(..)));
    workspace.write("workers/w/skills/a.md", b"---\nname: [\n---\n");
    let second = reload(&first, Options::default());
    assert!(
        matches!(second.find("other"), Lookup::Found(..)),
        "{}",
        show(&second.problems)
    );
    assert!(codes(&second).contains(&"kept-last-good"));
    std::fs::remove_file(workspace.path().join("workers/w/skills/a.md")).expect("removed");
    assert_eq!(reload(&second, Options::default()).skills().count(), 0);
}

#[test]
fn what_is_left_out_says_why() {
    let workspace = Workspace::of_skill("a.md", "---\nname: a\ndescription: d\n---\n");
    let found = workspace.load().find("w/a");
    let Lookup::Rejected(rejected, problems) = found else {
        panic!("{found:?}");
    };
    assert_eq!(rejected.skill.as_deref(), Some("a"));
    assert_eq!(problems[0].code, "empty-instructions");
}

#[test]
fn a_second_worker_of_the_same_id_does_not_take_the_first_away() {
    let workspace = Workspace::of_worker(GOOD);
    let first = workspace.load();
    workspace.write("workers/copy/worker.yaml", GOOD.as_bytes());
    let second = reload(&first, Options::default());
    assert_eq!(second.workers.len(), 1);
    assert_eq!(*second.workers[0].place.path, *"workers/w/worker.yaml");
    assert!(codes(&second).contains(&"worker-duplicate"));
}

#[test]
fn unchanged_workers_are_taken_over_and_changed_ones_read_again() {
    let workspace = Workspace::new(&[
        ("workers/a/worker.yaml", "worker: {id: a}\n"),
        (
            "workers/b/worker.yaml",
            "worker: {id: b}\nskills: [{id: x, description: d, run: {script: x.sh, interpreter: sh}}]\n",
        ),
    ]);
    let first = workspace.load();
    assert!(!first.is_stale());
    workspace.write("workers/a/skills/new.md", b"# new\n\ntext\n");
    assert!(first.is_stale());
    let second = reload(&first, Options::default());
    assert!(std::sync::Arc::ptr_eq(
        &first.workers[1],
        &second.workers[1]
    ));
    assert_eq!(second.workers[0].skills.len(), 1);
    workspace.write("workers/b/x.sh", b"true\n");
    assert!(
        second.is_stale(),
        "a script that a skill names has appeared"
    );
    let third = reload(&second, Options::default());
    assert!(third.workers[1].skills[0].is_available());
    workspace.write("workerctl.yaml", b"hooks: {post_tools: [x]}\n");
    assert!(third.is_stale());
    assert_eq!(
        reload(&third, Options::default()).workers[1].skills[0]
            .hooks
            .len(),
        1
    );
}

#[test]
fn configuration_has_origins_and_problems() {
    let workspace = Workspace::new(&[(
        "workerctl.yaml",
        "timezone: Europe/Berlin\nmax_parallel: 4\nqueue: {max: 50}\ncommit:\n  author: \"Repo Steward <steward@example.org>\"\n  message: \"{{skill}}\"\nhooks:\n  post_tools: [./hook]\n  post_commit: {command: push, timeout: 5s}\ntimeout: 1h\ngrace: 2s\nthreads: {directory: t}\nx-team: {lead: {name: x}}\n",
    )]);
    let catalog = workspace.load();
    assert!(catalog.problems.is_empty(), "{}", show(&catalog.problems));
    let config = &catalog.config;
    assert_eq!(config.timezone, "Europe/Berlin");
    assert_eq!((config.max_parallel, config.queue_max), (4, 50));
    assert_eq!(
        config.commit_author.as_deref(),
        Some("Repo Steward <steward@example.org>")
    );
    assert_eq!((config.timeout_ms, config.grace_ms), (3_600_000, 2_000));
    assert_eq!(config.threads_dir, "t");
    assert_eq!(config.post_commit_hooks[0].timeout_ms, 5_000);
    assert_eq!(config.kept["x-team"]["lead"]["name"], "x");
    assert_eq!(config.origins["commit.message"], "workerctl.yaml:6");
    assert_eq!(config.origins["hooks.post_tools"], "workerctl.yaml:8");
    assert_eq!(config.origins["drain_grace"], "default");
}

#[test]
fn wrong_configuration_is_told_and_its_defaults_stand() {
    for (line, code, severity, column, hint) in [
        (
            "timezone: Europe/Berln",
            "timezone-unknown",
            ERROR,
            11,
            "`Europe/Berlin`",
        ),
        ("timezone: Mars", "timezone-unknown", ERROR, 11, ""),
        (
            "max_parallel: many",
            "wrong-type",
            ERROR,
            15,
            "a whole number",
        ),
        ("queue: {max: 0}", "out-of-range", ERROR, 14, "from 1"),
        ("queue: 5", "wrong-type", ERROR, 8, "a map"),
        (
            "commit: {author: nobody}",
            "author-invalid",
            ERROR,
            18,
            "steward@example.org",
        ),
        ("grace: 5", "duration-unit", WARNING, 8, "`5s`"),
        ("grace: -1s", "duration-invalid", ERROR, 8, ""),
        (
            "threads: {directory: ../x}",
            "path-outside",
            ERROR,
            22,
            "relative",
        ),
        (
            "hooks: {post_tool: [x]}",
            "key-misspelled",
            ERROR,
            9,
            "`post_tools`",
        ),
        ("timezon: UTC", "key-misspelled", ERROR, 1, "`timezone`"),
        ("colour: red", "unknown-key", NOTE, 1, ""),
        ("[]", "definition-shape", ERROR, 1, "keys such as"),
        ("grace: [", "yaml-syntax", ERROR, 0, ""),
    ] {
        let workspace = Workspace::new(&[("workerctl.yaml", line)]);
        let catalog = workspace.load();
        if column > 0 {
            expect(
                &catalog,
                "workerctl.yaml",
                &(code, severity, 1, column, hint),
            );
        } else {
            assert_eq!(codes(&catalog), [code], "{line}");
        }
        if severity == ERROR {
            assert_eq!(catalog.config.origins["timezone"], "default");
            assert_eq!(catalog.config.grace_ms, 5_000, "{line}");
        }
    }
}

#[test]
fn lines_can_be_read_again() {
    let workspace = Workspace::of_worker("worker: {id: w}\nexecution:\n  mode: weekly # no\n");
    let catalog = workspace.load();
    let problem = catalog
        .problems
        .iter()
        .find(|problem| problem.code == "mode-unknown")
        .expect("a problem");
    assert_eq!(
        catalog.source_line(problem).as_deref(),
        Some("  mode: weekly # no")
    );
}

#[test]
fn a_broken_configuration_stays_as_it_was() {
    let workspace = Workspace::new(&[
        ("workerctl.yaml", "timezone: Europe/Berlin\n"),
        (
            "workers/w/worker.yaml",
            "worker: {id: w}\nskills: [{id: a, description: d, run: date, schedule: '@daily'}]\n",
        ),
    ]);
    let first = workspace.load();
    assert_eq!(*first.schedules[0].timezone, *"Europe/Berlin");
    workspace.write("workerctl.yaml", b"timezone: Europe/Berln\n");
    let second = reload(&first, Options::default());
    assert_eq!(second.schedules, first.schedules);
    expect(
        &second,
        "workerctl.yaml",
        &("kept-last-good", WARNING, 0, 0, "`workerctl daemon reload`"),
    );
    workspace.write("workerctl.yaml", b"timezone: Europe/Paris\n");
    let third = reload(&second, Options::default());
    assert_eq!(*third.schedules[0].timezone, *"Europe/Paris");
}
