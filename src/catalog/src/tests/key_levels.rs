//! A known key at a place where it has no effect, and words that are close to a known key.

use super::{ERROR, NOTE, Workspace, expect, show};
use crate::keys::{CHECK, COMMON, CONFIG, EXECUTION, SCHEDULE, SKILL, Table, WORKER_FILE};

/// Each place with a file that has `KEY` there, and the line and column of the key.
const PLACES: [(&Table, &str, &str, (u32, u32)); 6] = [
    (&CONFIG, "workerctl.yaml", "KEY: 1\n", (1, 1)),
    (
        &WORKER_FILE,
        "workers/w/worker.yaml",
        "worker: {id: w}\nKEY: 1\nskills: [{id: a, description: d, run: date}]\n",
        (2, 1),
    ),
    (
        &EXECUTION,
        "workers/w/worker.yaml",
        "worker: {id: w}\nexecution:\n  KEY: 1\nskills: [{id: a, description: d, run: date}]\n",
        (3, 3),
    ),
    (
        &SKILL,
        "workers/w/worker.yaml",
        "worker: {id: w}\nskills:\n  - id: a\n    description: d\n    run: date\n    KEY: 1\n",
        (6, 5),
    ),
    (
        &SCHEDULE,
        "workers/w/worker.yaml",
        "worker: {id: w}\nskills: [{id: a, description: d, run: date}]\nschedule:\n  cron: '@daily'\n  KEY: 1\n",
        (5, 3),
    ),
    (
        &CHECK,
        "workers/w/worker.yaml",
        "worker: {id: w}\nskills:\n  - id: a\n    description: d\n    run: date\n    verification:\n      - command: date\n        KEY: 1\n",
        (8, 9),
    ),
];

#[test]
fn every_known_key_at_every_other_place_is_an_error_that_names_its_place() {
    let mut count = 0;
    for (table, path, text, (line, column)) in PLACES {
        for (other, ..) in PLACES {
            let keys = other.evaluated().filter(|key| !COMMON.contains(key));
            let keys = keys.filter(|key| !table.has(key) && !table.removed.contains(key));
            for key in keys {
                let workspace = Workspace::new(&[(path, &text.replace("KEY", key))]);
                let catalog = workspace.load();
                let found = catalog.problems.iter().find(|problem| {
                    problem.severity == ERROR
                        && matches!(problem.code.as_str(), "key-misplaced" | "key-misspelled")
                        && (problem.place.line, problem.place.column) == (line, column)
                });
                let shown = show(&catalog.problems);
                let hint = found.and_then(|problem| problem.hint.as_deref());
                let hint = hint.unwrap_or_default();
                assert!(
                    hint.contains("belongs ") || hint.contains("did you mean"),
                    "`{key}` in {}: {shown}",
                    table.name
                );
                count += 1;
            }
        }
    }
    assert!(count > 250, "only {count} pairs");
}

#[test]
fn a_key_names_the_place_that_it_belongs_in() {
    for (place, key, hint) in [
        (
            3,
            "notify",
            "`notify` belongs at the top level of worker.yaml",
        ),
        (3, "enabled", "`enabled` belongs in a schedule"),
        (3, "overlap", "`overlap` belongs in a schedule"),
        (
            3,
            "timezone",
            "`timezone` belongs in `execution` of worker.yaml",
        ),
        (3, "must_pass", "`must_pass` belongs in a check"),
        (1, "mutating", "`mutating` belongs in a skill"),
        (1, "models", "`models` belongs in workerctl.yaml"),
        (1, "catchUp", "`catch_up` belongs in a schedule"),
        (
            0,
            "approval_required",
            "`approval_required` belongs in a skill",
        ),
    ] {
        let (_, path, text, (line, column)) = PLACES[place];
        let catalog = Workspace::new(&[(path, &text.replace("KEY", key))]).load();
        expect(
            &catalog,
            path,
            &("key-misplaced", ERROR, line, column, hint),
        );
    }
}

#[test]
fn a_near_miss_of_any_key_is_an_error_with_the_correction() {
    for (place, key, meant) in [
        (3, "verificaton", "verification"),
        (3, "sandbx", "sandbox"),
        (3, "aproval", "approval"),
        (3, "budgt", "budget"),
        (3, "timout", "timeout"),
        (3, "comand", "run"),
        (3, "idempotant", "idempotent"),
        (3, "mutatng", "mutating"),
        (3, "allowed_tools", "allowed-tools"),
        (1, "skils", "skills"),
        (0, "max-parallel", "max_parallel"),
        (5, "mustpass", "must_pass"),
    ] {
        let (_, path, text, (line, column)) = PLACES[place];
        let catalog = Workspace::new(&[(path, &text.replace("KEY", key))]).load();
        let hint = format!("did you mean `{meant}`?");
        expect(
            &catalog,
            path,
            &("key-misspelled", ERROR, line, column, &hint),
        );
    }
}

#[test]
fn words_of_other_systems_for_a_schedule_that_is_off_are_errors() {
    let (_, path, text, (line, column)) = PLACES[4];
    for key in ["disabled", "paused", "suspend", "active", "enable"] {
        let catalog = Workspace::new(&[(path, &text.replace("KEY", key))]).load();
        let hint = "did you mean `enabled: false`?";
        expect(
            &catalog,
            path,
            &("key-misspelled", ERROR, line, column, hint),
        );
    }
    for key in ["until", "end_date"] {
        let catalog = Workspace::new(&[(path, &text.replace("KEY", key))]).load();
        expect(
            &catalog,
            path,
            &("key-misspelled", ERROR, line, column, "`end`"),
        );
    }
}

#[test]
fn keys_that_resemble_nothing_are_notes_and_those_with_x_are_silent() {
    for (_, path, text, (line, column)) in PLACES {
        let catalog = Workspace::new(&[(path, &text.replace("KEY", "colour"))]).load();
        expect(&catalog, path, &("unknown-key", NOTE, line, column, ""));
        let catalog = Workspace::new(&[(path, &text.replace("KEY", "x-mutating"))]).load();
        let at = catalog
            .problems
            .iter()
            .find(|problem| problem.place.line == line);
        assert!(at.is_none(), "{at:?}");
    }
}
