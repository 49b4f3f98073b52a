//! A known key at a place where it has no effect, and words that are close to a known key.

use super::{ERROR, NOTE, Workspace, expect, show};
use crate::keys::{
    CHECK, COMMON, CONFIG, EXECUTION, SCHEDULE, SKILL, Table, WORKER_FILE, foreign_rows,
    misplaced_in,
};

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
                        && matches!(
                            problem.code.as_str(),
                            "key-misplaced" | "key-misspelled" | "key-foreign"
                        )
                        && (problem.place.line, problem.place.column) == (line, column)
                });
                let shown = show(&catalog.problems);
                let hint = found.and_then(|problem| problem.hint.as_deref());
                let hint = hint.unwrap_or_default();
                assert!(
                    ["belongs ", "did you mean", "write ", "remove it"]
                        .iter()
                        .any(|words| hint.contains(words)),
                    "`{key}` in {}: {shown}",
                    table.name
                );
                // A setting without effect, such as a check or an approval, must not let the skill run without it.
                let in_schedule = std::ptr::eq(table, &raw const SCHEDULE);
                let is_loaded = catalog
                    .workers
                    .iter()
                    .any(|worker| !worker.skills.is_empty());
                assert!(
                    in_schedule || !is_loaded,
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
        (3, "timezone", "`timezone` belongs in a schedule"),
        (
            1,
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
        (3, "runs", "run"),
        (3, "envs", "env"),
        (1, "approvals", "approval"),
        (3, "approvals", "approval"),
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

/// Maps below the keys of a worker, its skill and its schedule, as the keys that lead there.
const BELOW_SKILL: [(&str, &str, &str); 20] = [
    ("Retry", "retry:", "max_attempts: 2"),
    ("Backoff", "retry: {max_attempts: 2, backoff: {KEYS}}", ""),
    ("Commit", "commit:", "message: m"),
    ("VerificationMap", "verification:", "post_execute: []"),
    ("Interface", "interface:", "outputs: []"),
    ("Input", "interface: {inputs: [{KEYS}]}", "name: n"),
    ("Output", "interface: {outputs: [{KEYS}]}", "destination: o"),
    ("Hooks", "hooks:", "post_commit: date"),
    ("Hook", "hooks: {post_commit: {KEYS}}", "command: date"),
    ("Wake", "wake:", "command: date"),
    ("Env", "env: [{KEYS}]", "name: A"),
    ("Secret", "env: [{name: A, secret: {KEYS}}]", "file: /a"),
    ("Approval", "approval:", "expires: 1d"),
    ("SandboxMap", "sandbox:", "level: auto"),
    ("ResourceLimitsMap", "limits:", "processes: 9"),
    ("BudgetMap", "budget:", "turns: 9"),
    ("Branch", "branch:", "name: b"),
    ("Local", "local: [{KEYS}]", "path: p"),
    ("RateLimit", "on_rate_limit:", "wait: 1h"),
    ("AgentMap", "agent:", "cli: claude"),
];

const BELOW_SCHEDULE: [(&str, &str, &str); 8] = [
    ("Notify", "notify:", "after: 2"),
    (
        "NotifyChannel",
        "notify: {on_failure: {KEYS}}",
        "command: date",
    ),
    ("Follows", "after:", "skill: b"),
    ("Watch", "watch:", "paths: [a]"),
    ("OnCommit", "on_commit:", "branch: main"),
    ("ShiftOfClock", "dst:", "gap: skip"),
    ("CatchUpMap", "catch_up:", "mode: all"),
    ("Blackout", "blackout:", "hours: [1]"),
];

const BELOW_CONFIG: [(&str, &str, &str); 15] = [
    ("Queue", "queue:", "max: 2"),
    ("ConfigCommit", "commit:", "message: m"),
    ("Directory", "threads:", "directory: a"),
    ("MetricsDirectory", "metrics:", "directory: a"),
    ("Trees", "trees:", "max: 2"),
    ("Retention", "retention:", "runs: 9d"),
    ("Workers", "workers:", "paths: [workers]"),
    ("Skills", "skills:", "personal: false"),
    ("SkillRoot", "skills: {roots: [{KEYS}]}", "path: p"),
    ("Mcp", "mcp:", "mutating: ask"),
    ("McpHttp", "mcp: {http: {KEYS}}", "idle: 1m"),
    ("Web", "web:", "read_only: true"),
    ("ConfigAccess", "access:", "read: {}"),
    ("RoleMembers", "access: {read: {KEYS}}", "users: [0]"),
    ("ModelMap", "models: {m: {KEYS}}", "model: m"),
];

/// Asserts that each key that is known elsewhere is an error with a remedy in the map `name`.
fn assert_refused_in(path: &str, head: &str, (name, form, own): (&str, &str, &str)) -> usize {
    let tables = super::pages::tables();
    let table = tables[name];
    let keys: Vec<_> = misplaced_in(table);
    let indent = " ".repeat(head.len() - head.rfind('\n').map_or(0, |at| at + 1));
    let form = if form.contains("KEYS") {
        form.to_owned()
    } else {
        format!("{form} {{KEYS}}")
    };
    let lines = keys.iter().map(|key| format!("{indent}  {key}: 1,\n"));
    let all = format!("\n{}{indent}  {own}", lines.collect::<String>());
    let text = format!("{head}{}\n", form.replace("KEYS", &all));
    let catalog = Workspace::new(&[(path, &text)]).load();
    let first = head.matches('\n').count() + 2;
    for (at, key) in keys.iter().enumerate() {
        let line = u32::try_from(first + at).expect("a line");
        let found = catalog.problems.iter().find(|problem| {
            problem.severity == ERROR
                && &*problem.place.path == path
                && problem.place.line == line
                && problem.hint.as_deref().is_some_and(|hint| {
                    ["belongs ", "did you mean", "write ", "remove it"]
                        .iter()
                        .any(|words| hint.contains(words))
                })
        });
        let shown = || show(&catalog.problems);
        assert!(found.is_some(), "`{key}` in {name}:\n{text}\n{}", shown());
    }
    keys.len()
}

#[test]
fn every_known_key_in_every_other_inner_map_is_an_error_with_a_remedy() {
    let worker = "workers/w/worker.yaml";
    let skill = "worker: {id: w}\nskills:\n  - id: a\n    description: d\n    ";
    let schedule = "worker: {id: w}\nskills: [{id: a, description: d, run: date}]\nschedule:\n  ";
    let mut count = 0;
    for map in BELOW_SKILL {
        count += assert_refused_in(worker, skill, map);
    }
    for map in BELOW_SCHEDULE {
        count += assert_refused_in(worker, schedule, map);
    }
    for map in BELOW_CONFIG {
        count += assert_refused_in("workerctl.yaml", "", map);
    }
    assert!(count > 4_000, "only {count} pairs");
}

#[test]
fn keys_of_inner_maps_are_errors_at_every_level() {
    let mut count = 0;
    for (table, path, text, (line, column)) in PLACES {
        let keys = misplaced_in(table);
        let indent = " ".repeat(column as usize - 1);
        let lines: Vec<_> = keys.iter().map(|key| format!("{key}: 1")).collect();
        let text = text.replace("KEY: 1", &lines.join(&format!("\n{indent}")));
        let catalog = Workspace::new(&[(path, &text)]).load();
        for (line, key) in (line..).zip(keys) {
            let found = catalog.problems.iter().any(|problem| {
                problem.severity == ERROR
                    && problem.hint.is_some()
                    && (problem.place.line, problem.place.column) == (line, column)
            });
            let shown = || show(&catalog.problems);
            assert!(found, "`{key}` in {}: {}", table.name, shown());
            count += 1;
        }
    }
    assert!(count > 600, "only {count} pairs");
}

#[test]
fn a_key_of_an_inner_map_is_shown_where_it_belongs() {
    for (place, key, hint) in [
        (
            1,
            "on_failure",
            "`on_failure` belongs in `notify`: `notify: {on_failure: 1}`",
        ),
        (
            3,
            "max_attempts",
            "`max_attempts` belongs in `retry`: `retry: {max_attempts: 1}`",
        ),
        (
            0,
            "author",
            "`author` belongs in `commit`: `commit: {author: 1}`",
        ),
        (0, "read_only", "`web: {read_only: 1}`"),
        (3, "pre_execute", "`verification: {pre_execute: 1}`"),
        (3, "webhook", "`notify: {on_failure: {webhook: 1}}`"),
        (3, "tcp", "`sandbox: {network: {tcp: 1}}`"),
        (
            3,
            "destination",
            "`interface: {outputs: [{destination: 1}]}`",
        ),
        (
            3,
            "timezone",
            "in a schedule: write `schedule: {cron: \"0 9 * * *\", timezone: 1}`",
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
    let worker = "worker: {id: w}\nskills:\n  - id: a\n    run: date\n    hooks:\n      pre_execute: [date]\n";
    let hint = "`pre_execute` belongs in `verification`";
    super::check_worker(worker, ("key-misplaced", ERROR, 6, 7, hint));
}

#[test]
fn every_word_of_another_system_is_an_error_with_the_form_to_write() {
    let mut count = 0;
    for (word, table, form) in foreign_rows() {
        let Some((_, path, text, (line, column))) = PLACES
            .into_iter()
            .find(|(place, ..)| place.name == table.name)
        else {
            continue;
        };
        let remedy = if form.starts_with("remove") {
            "remove "
        } else {
            "write "
        };
        let catalog = Workspace::new(&[(path, &text.replace("KEY", word))]).load();
        expect(
            &catalog,
            path,
            &("key-foreign", ERROR, line, column, remedy),
        );
        count += 1;
    }
    assert!(count > 150, "only {count} words");
}

#[test]
fn words_of_other_systems_are_answered_with_the_value_that_is_written() {
    for (place, line, hint) in [
        (3, "retries: 3", "write `retry: {max_attempts: 4}`"),
        (3, "timeout-minutes: 10", "write `timeout: 10m`"),
        (3, "working-directory: docs", "write `cwd: docs`"),
        (3, "workingDirectory: docs", "write `cwd: docs`"),
        (
            3,
            "suspend: true",
            "`schedule: {cron: \"0 9 * * *\", enabled: false}`",
        ),
        (3, "needs: [build]", "write `schedule: {after: SKILL}`"),
        (3, "steps: [{run: date}]", "below `run: |`"),
        (3, "runs-on: ubuntu", "commands run on this machine"),
        (
            3,
            "inputs: [{name: a}]",
            "`interface: {inputs: […], outputs: […]}`",
        ),
        (
            1,
            "on: {schedule: [{cron: 7 6 * * *}]}",
            "write `schedule: \"7 6 * * *\"`",
        ),
        (1, "on: [push]", "write `schedule: {on_commit: main}`"),
        (
            3,
            "cron_schedule: 7 6 * * *",
            "write `schedule: \"7 6 * * *\"`",
        ),
        (3, "OnCalendar: weekly", "write `schedule: \"@weekly\"`"),
        (1, "apiVersion: batch/v1", "write a worker instead of"),
        (1, "spec: {}", "`worker: {id: NAME}`"),
        (3, "become: true", "commands run as the user of workerctl"),
        (3, "params: [a]", "`interface: {inputs: […], outputs: […]}`"),
        (4, "disabled: true", "write `enabled: false`"),
        (4, "until: 2026-12-31", "write `end: "),
        (4, "concurrencyPolicy: Forbid", "`overlap: skip`"),
        (4, "startingDeadlineSeconds: 9", "`catch_up: "),
        (4, "Persistent: true", "`catch_up: "),
        (4, "RandomizedDelaySec: 9", "`jitter: "),
        (4, "OnCalendar: daily", "write `cron: \"@daily\"`"),
        (5, "continue-on-error: true", "`must_pass: false`"),
        (0, "remote: upstream", "write `push: upstream`"),
        (0, "log_level: debug", "`WORKERCTL_LOG`"),
    ] {
        let (_, path, text, (row, column)) = PLACES[place];
        let catalog = Workspace::new(&[(path, &text.replace("KEY: 1", line))]).load();
        expect(&catalog, path, &("key-foreign", ERROR, row, column, hint));
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

#[test]
fn what_follows_from_a_refused_key_is_not_reported() {
    let worker = |lines: &str| {
        format!("worker: {{id: w}}\nskills:\n  - id: a\n    description: d\n    {lines}\n")
    };
    for lines in [
        "inputs: [{name: suffix}]\n    run: printf %s {suffix}",
        "interface: {inputs: [{name: suffix, type: choice, options: [a]}]}\n    run: printf %s {suffix}",
        "steps: [{run: date}]",
    ] {
        let catalog = Workspace::of_worker(&worker(lines)).load();
        let codes = super::codes(&catalog);
        assert!(!codes.contains(&"undeclared-name"), "{codes:?}");
        assert!(!codes.contains(&"no-executor"), "{codes:?}");
    }
    let input = worker("interface: {inputs: [{name: a, type: choice, options: [a]}]}");
    let hint = "write `type: string` and `enum: [a, b]`";
    super::check_worker(&input, ("unknown-value", ERROR, 5, 42, hint));
    let hint = "write `enum: [a, b]` and `type: string`";
    super::check_worker(&input, ("key-foreign", ERROR, 5, 50, hint));
}
