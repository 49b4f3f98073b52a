//! A daemon that fires a schedule and is killed around its slots: each has one row, and each row that
//! says so one run.
//!
//! `WORKERCTL_TEST_ROUNDS=<n>` sets the number of kills at random moments, and of those a second before a slot,
//! at it and a second after it (10 each by default; before a release 300 of the first and 100 of the others).

use crate::workspace;

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use workspace::daemon::Daemon;
use workspace::gate::Gate;
use workspace::ledger::{millis, row, rows, view, without_gap};
use workspace::{Dice, Workspace, eventually, rounds};

/// Due every second; the run tells its slot.
const SKILLS: &str = r#"
  - id: tick
    description: says what is due
    run: 'echo "{scheduled_at}" "$WORKERCTL_SCHEDULED_AT"'
    schedule: {every: 1s, overlap: allow_all, catch_up: {mode: all, window: 1h}}
"#;

/// Due every four seconds, on whole seconds of the clock, so that everybody knows when.
const KNOWN: &str = r#"
  - id: tick
    description: says what is due
    run: 'echo "{scheduled_at}"'
    schedule: {cron: "*/4 * * * * *", seconds: true, overlap: allow_all, catch_up: {mode: all, window: 1h}}
"#;

/// The schedule of both.
const ID: &str = "w/tick";

/// Milliseconds between the slots of [`KNOWN`].
const KNOWN_PERIOD: i64 = 4_000;

/// How long before it is killed a daemon has to have started at least, in milliseconds.
const LEAD: i64 = 500;

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

/// Waits for a moment of the clock; answers it.
fn wait_until(moment: i64) -> i64 {
    while let Ok(left @ 1..) = u64::try_from(moment - now()) {
        std::thread::sleep(Duration::from_millis(left));
    }
    moment
}

/// The runs that there are.
fn made(workspace: &Workspace) -> BTreeSet<String> {
    let all = workspace.json(&["runs", "--limit", "10000"]);
    let made = all["runs"].as_array().unwrap().iter();
    made.map(|run| run["run"].as_str().unwrap().to_owned())
        .collect()
}

/// Kills a daemon so many milliseconds after slots, and starts the next at once: each slot that was
/// aimed at has led to one run, and so has every other.
fn killed_beside_due_times(after: i64) {
    let workspace = Workspace::with_skills(KNOWN);
    // The first is left in peace, so that the schedule is known before any slot that is aimed at.
    let daemon = Daemon::start(&workspace);
    eventually("a first slot", || {
        (!rows(&workspace, ID).is_empty()).then_some(())
    });
    daemon.kill();
    let mut aimed = BTreeSet::new();
    for _ in 0..rounds(4) {
        let daemon = Daemon::start(&workspace);
        let earliest = now() + LEAD - after;
        let due = (earliest.div_euclid(KNOWN_PERIOD) + 1) * KNOWN_PERIOD;
        wait_until(due + after);
        daemon.kill();
        aimed.insert(due);
    }
    let daemon = Daemon::start(&workspace);
    let last = *aimed.last().unwrap();
    eventually("what follows the last of them", || {
        let newest = rows(&workspace, ID).pop().unwrap();
        (millis(&newest, "to") > last).then_some(())
    });
    let pause = ["schedule", "pause", "w/tick", "--reason", "the test ends"];
    assert_eq!(workspace.run(&pause).code, 0);
    workspace.wait_until_idle();
    let mut rows = rows(&workspace, ID);
    rows.retain(|row| row["status"] != "paused");
    let told = without_gap(&rows, KNOWN_PERIOD);
    assert_eq!(told, made(&workspace));
    for row in &rows {
        // No daemon ran at some of them: what ran within a minute is on time all the same.
        let is_in_time = millis(row, "at") - millis(row, "from") <= 60_000;
        let status = if is_in_time { "ran" } else { "caught_up" };
        assert_eq!(row["status"], status, "{row}");
    }
    for due in aimed {
        let mut of = rows.iter().filter(|row| millis(row, "from") == due);
        let row = of.next().unwrap();
        assert!(row["run"].is_string() && row["count"] == 1, "{row}");
        assert!(of.next().is_none(), "{row}");
    }
    daemon.stop();
}

#[test]
fn a_daemon_killed_a_second_before_due_times_runs_each_once() {
    killed_beside_due_times(-1_000);
}

#[test]
fn a_daemon_killed_at_due_times_runs_each_once() {
    killed_beside_due_times(0);
}

#[test]
fn a_daemon_killed_a_second_after_due_times_runs_each_once() {
    killed_beside_due_times(1_000);
}

#[test]
fn a_run_sees_the_date_and_the_time_of_its_zone() {
    let workspace = Workspace::with_skills(
        r#"
  - id: tick
    description: says what it sees
    run: 'echo "{date}T{time} $TZ {scheduled_at}"'
    schedule: {every: 1s, timezone: Asia/Tokyo, overlap: allow_all}
"#,
    );
    let daemon = Daemon::start(&workspace);
    let row = eventually("a slot", || {
        let mut rows = rows(&workspace, ID).into_iter();
        rows.find(|row| row["run"].is_string())
    });
    let run = row["run"].as_str().unwrap();
    workspace.wait_for_event(run, "closed");
    let due = workerctl::model::Timestamp::from_millis(millis(&row, "from"));
    let tokyo = workerctl::model::Zone::compiled_in("Asia/Tokyo").unwrap();
    let seen = format!(
        "{}T{} Asia/Tokyo {}",
        due.date_in(tokyo),
        due.time_in(tokyo),
        due.rfc3339_in(tokyo)
    );
    let log = workspace.run(&["logs", run]).stdout;
    assert!(log.contains(&seen), "{seen}: {log}");
    assert!(seen.contains("+09:00"), "{seen}");
    daemon.stop();
}

#[test]
fn a_daemon_that_is_killed_around_due_times_runs_each_once() {
    let workspace = Workspace::with_skills(SKILLS);
    let mut dice = Dice(23);
    for _ in 0..rounds(4) {
        let daemon = Daemon::start(&workspace);
        // The moment is what varies: before, at and after a slot.
        std::thread::sleep(Duration::from_millis(dice.below(1_500)));
        daemon.kill();
    }
    let daemon = Daemon::start(&workspace);
    let seen = eventually("three more slots", || {
        let rows = rows(&workspace, ID);
        (rows.len() > 3).then_some(rows)
    });
    let runs = without_gap(&seen, 1_000);
    assert!(runs.len() > 3);
    workspace.run(&["schedule", "pause", "w/tick", "--reason", "the test ends"]);
    workspace.wait_until_idle();
    let told = without_gap(&rows(&workspace, ID), 1_000);
    assert_eq!(told, made(&workspace));
    daemon.stop();
}

#[test]
fn a_run_knows_its_due_time_and_a_pause_outlives_the_daemon() {
    let workspace = Workspace::with_skills(SKILLS);
    let daemon = Daemon::start(&workspace);
    let row = eventually("a slot", || {
        rows(&workspace, ID)
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
        rows(&workspace, ID)
            .into_iter()
            .find(|row| row["status"] == "paused")
    });
    assert_eq!(paused["reason"], "a holiday");
    let resumed = workspace.run(&["schedule", "resume", "w/tick"]);
    assert_eq!(resumed.code, 0, "{resumed:?}");
    let before = rows(&workspace, ID).len();
    eventually("it goes on", || {
        (rows(&workspace, ID).len() > before).then_some(())
    });
    without_gap(&rows(&workspace, ID), 1_000);
    daemon.stop();
}

#[test]
fn a_due_time_that_finds_the_queue_full_is_shown_until_it_runs() {
    let gated = "  - {id: gated, description: d, run: 'GATE'}\n";
    let workspace = Workspace::with_skills(&gated.replace("GATE", &Gate::text("gate")));
    workspace.write("workerctl.yaml", "max_parallel: 1\nqueue: {max: 1}\n");
    let mut gate = Gate::new(&workspace, "gate");
    let daemon = Daemon::start(&workspace);
    for _ in 0..2 {
        workspace.submit(&["gated"]);
    }
    gate.reached();
    let tick =
        "  - {id: tick, description: d, run: 'true', schedule: {every: 1s, catch_up: all}}\n";
    workspace.worker("t", tick);
    workspace.run(&["reload"]).expect_code(0);
    let waiting = eventually("a slot that waits", || {
        let shown = view(&workspace, "t/tick");
        shown["waiting"].as_array()?.first().cloned()
    });
    let slots = workspace
        .run(&["schedule", "slots", "t/tick"])
        .expect_code(0);
    assert!(slots.stderr.contains("is still pending"), "{slots:?}");
    for _ in 0..2 {
        gate.pass();
    }
    assert_eq!(row(&workspace, "t/tick", 1)["from"], waiting["due"]);
    daemon.stop();
}

#[test]
fn a_row_says_when_its_run_started_and_how_it_ended_and_which_run_was_in_the_way() {
    let gated = Gate::text("g");
    let workspace = Workspace::with_skills(&format!(
        r"
  - id: tick
    description: waits, then fails
    run: 'test -e ../open || {{ {gated}; }}; exit 3'
    schedule: {{every: 1s, overlap: skip, catch_up: {{mode: none}}}}
"
    ));
    let mut gate = Gate::new(&workspace, "g");
    let daemon = Daemon::start(&workspace);
    gate.reached();
    let of = |status: &str| {
        eventually(status, || {
            let mut rows = rows(&workspace, ID).into_iter();
            rows.find(|row| row["status"] == status)
        })
    };
    let skipped = of("skipped_overlap");
    let ran = of("ran");
    let run = ran["run"].as_str().unwrap();
    let short = run[run.len() - 8..].to_lowercase();
    assert_eq!(skipped["reason"], format!("run {short} had not ended"));
    assert!(millis(&ran, "started_at") >= millis(&ran, "from"), "{ran}");
    assert!(
        ran["outcome"].is_null() && ran["finished_at"].is_null(),
        "{ran}"
    );
    let shown = workspace.run(&["schedule", "slots", ID]).stdout;
    assert!(shown.contains("running"), "{shown}");
    let pause = ["schedule", "pause", ID, "--reason", "the test ends"];
    assert_eq!(workspace.run(&pause).code, 0);
    workspace.write("../open", "");
    gate.pass();
    workspace.wait_until_idle();
    let ran = of("ran");
    assert_eq!(ran["outcome"], "failed", "{ran}");
    assert!(
        millis(&ran, "finished_at") >= millis(&ran, "started_at"),
        "{ran}"
    );
    assert_eq!(workspace.run(&["schedule", "resume", ID]).code, 0);
    daemon.kill();
    wait_until(now() + 3_000);
    let daemon = Daemon::start(&workspace);
    assert_eq!(of("missed")["reason"], "no daemon ran");
    daemon.stop();
}

#[test]
fn a_simulation_from_now_starts_with_the_runs_under_way() {
    let long = r"
  - id: long
    description: takes its time
    run: sleep 1000
    schedule: {every: 10m}
";
    let workspace = Workspace::with_skills(long);
    let daemon = Daemon::start(&workspace);
    let slot = workspace.json(&["schedule", "trigger", "w/long"]);
    let run = slot["run"].as_str().unwrap();
    workspace.wait_for_phase(run, "executing");
    let lasts = ["--duration", "long=35m", "--to", "+2h"];
    let from_now = workspace.json(&[&["schedule", "simulate"], &lasts[..]].concat());
    let first = &from_now["runs"][0];
    assert_eq!(first["under_way"], true, "{from_now:#}");
    let started = workspace.show(run)["summary"]["started_at"].clone();
    assert_eq!(first["started_at"], started);
    for overlap in &from_now["overlaps"].as_array().unwrap()[..3] {
        assert_eq!(
            overlap["overlapped"],
            serde_json::json!([first["due"]]),
            "{overlap}"
        );
        assert_eq!(overlap["then"], "skipped");
    }
    let later = [&["schedule", "simulate", "--from", "+1s"], &lasts[..]].concat();
    let later = workspace.json(&later);
    assert_eq!(
        later["runs"][0]["under_way"],
        serde_json::Value::Null,
        "{later:#}"
    );
    let told = workspace.run(&["schedule", "simulate"]).expect_code(0);
    assert!(told.stdout.contains("under way at the start"), "{told:?}");
    workspace.run(&["cancel", run, "--now"]).expect_code(0);
    daemon.stop();
}
