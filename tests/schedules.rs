//! A daemon that fires a schedule and is killed around its due times: each has one row, and each row that
//! says so one run.
//!
//! `WORKERCTL_TEST_ROUNDS=<n>` sets the number of kills (10 by default, 300 before a release).
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::panic,
    reason = "what prepares a test fails by panicking, and says when it skips"
)]

#[expect(dead_code, reason = "shared with other tests, which use more of it")]
mod workspace;

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;
use workspace::daemon::Daemon;
use workspace::{Dice, Workspace, eventually, rounds};

/// Due every second; the run tells its due time.
const SKILLS: &str = r#"
  - id: tick
    description: says what is due
    run: 'echo "{scheduled_at}" "$WORKERCTL_SCHEDULED_AT"'
    schedule: {every: 1s, overlap: allow_all, catch_up: {mode: all, window: 1h}}
"#;

fn slots(workspace: &Workspace) -> Vec<Value> {
    let line = ["schedule", "slots", "w/tick", "-n", "10000"];
    let mut rows = workspace.json(&line)["slots"].as_array().unwrap().clone();
    rows.reverse();
    rows
}

fn millis(row: &Value, key: &str) -> i64 {
    let text = row[key].as_str().unwrap();
    workerctl::model::Timestamp::parse(text).unwrap().millis()
}

/// Every due time from the first to the last has one row, and each run one due time.
fn verify(rows: &[Value]) -> BTreeSet<String> {
    let mut runs = BTreeSet::new();
    let mut next = millis(&rows[0], "from");
    for row in rows {
        assert_eq!(
            millis(row, "from"),
            next,
            "a due time has no row, or two: {row}"
        );
        let count = (millis(row, "to") - next) / 1_000 + 1;
        assert_eq!(row["count"], count, "{row}");
        next = millis(row, "to") + 1_000;
        if let Some(run) = row["run"].as_str() {
            assert!(runs.insert(run.to_owned()), "{run} has two due times");
        }
    }
    runs
}

#[test]
fn a_daemon_that_is_killed_around_due_times_runs_each_once() {
    let workspace = Workspace::with_skills(SKILLS);
    let mut dice = Dice(23);
    for _ in 0..rounds(10) {
        let daemon = Daemon::start(&workspace);
        // The moment is what varies: before, at and after a due time.
        std::thread::sleep(Duration::from_millis(dice.below(1_500)));
        daemon.kill();
    }
    let daemon = Daemon::start(&workspace);
    let rows = eventually("three more due times", || {
        let rows = slots(&workspace);
        (rows.len() > 3).then_some(rows)
    });
    let runs = verify(&rows);
    assert!(runs.len() > 3);
    workspace.run(&["schedule", "pause", "w/tick", "--reason", "the test ends"]);
    workspace.wait_until_idle();
    let all = workspace.json(&["runs", "--limit", "10000"]);
    let made = all["runs"].as_array().unwrap();
    let made: BTreeSet<&str> = made
        .iter()
        .map(|run| run["run"].as_str().unwrap())
        .collect();
    let rows = slots(&workspace);
    let told = verify(&rows);
    assert_eq!(made, told.iter().map(String::as_str).collect());
    daemon.stop();
}

#[test]
fn a_run_knows_its_due_time_and_a_pause_outlives_the_daemon() {
    let workspace = Workspace::with_skills(SKILLS);
    let daemon = Daemon::start(&workspace);
    let row = eventually("a due time", || {
        slots(&workspace)
            .into_iter()
            .find(|row| row["run"].is_string())
    });
    let run = row["run"].as_str().unwrap().to_owned();
    workspace.wait_for_event(&run, "closed");
    let log = workspace.run(&["logs", &run]).stdout;
    let due = row["from"].as_str().unwrap().get(..19).unwrap().to_owned();
    assert_eq!(log.matches(due.as_str()).count(), 2, "{due}: {log}");
    let paused = workspace.run(&["schedule", "pause", "w/tick", "--reason", "a holiday"]);
    assert_eq!(paused.code, 0, "{paused:?}");
    daemon.stop();
    let daemon = Daemon::start(&workspace);
    let paused = eventually("a row that says so", || {
        slots(&workspace)
            .into_iter()
            .find(|row| row["fate"] == "paused")
    });
    assert_eq!(paused["reason"], "a holiday");
    let resumed = workspace.run(&["schedule", "resume", "w/tick"]);
    assert_eq!(resumed.code, 0, "{resumed:?}");
    let before = slots(&workspace).len();
    eventually("it goes on", || {
        (slots(&workspace).len() > before).then_some(())
    });
    verify(&slots(&workspace));
    daemon.stop();
}
