//! Clocks that jump: nothing that a person cares about goes by them.

use std::sync::Arc;

use serde_json::{Value, json};
use workerctl::clock::{Clock, FakeClock};
use workerctl::model::Timestamp;
use workerctl::protocol::ForgetRequest;

use crate::retention::past::{DAY_MS, PastRun, Sample, put};
use crate::retention::{engine_by, gone, now, with_settings};
use crate::workspace::daemon::Daemon;
use crate::workspace::{Workspace, eventually};

/// A workspace with nine runs that `retention` keeps, and one that it does not.
fn of_ten_runs() -> (Workspace, Vec<PastRun>) {
    let workspace = with_settings("{runs_min: 0}");
    let sample = Sample::of(&workspace, "one");
    let (now, days) = (now(), [200, 80, 70, 60, 50, 40, 30, 20, 10, 5]);
    let runs = days.map(|days| sample.before(now, days * DAY_MS, |_| {}));
    let runs = put(&workspace, runs.into(), 10);
    (workspace, runs)
}

/// Whether the clock was doubted at the last sweep, if there was one.
fn recorded_doubt(workspace: &Workspace) -> Option<bool> {
    let text = std::fs::read_to_string(workspace.state().join("forgotten")).ok()?;
    let record: Value = serde_json::from_str(&text).unwrap();
    record["is_doubted"].as_bool()
}

/// Writes what a sweep of so many days ago would have recorded, before the machine was started.
fn record(workspace: &Workspace, days: u64) {
    let at = now().minus_millis(days * DAY_MS);
    let text = json!({"swept_at": at, "steady_since": at, "expiry": at}).to_string();
    std::fs::write(workspace.state().join("forgotten"), text).unwrap();
}

#[test]
fn a_clock_that_is_a_year_ahead_for_a_moment_deletes_no_run() {
    let (workspace, runs) = of_ten_runs();
    let clock = Arc::new(FakeClock::at(now()));
    let forget = |dry_run| {
        let engine = engine_by(&workspace, Arc::clone(&clock) as Arc<dyn Clock>);
        let control = engine.control();
        let request = ForgetRequest {
            dry_run,
            ..ForgetRequest::default()
        };
        let forgot = control.forget(&request).unwrap();
        control.drain().unwrap();
        engine.join().unwrap();
        forgot
    };
    assert_eq!(forget(false).run_count, 1);
    assert_eq!(gone(&workspace, &runs), [0]);
    let ahead = i64::try_from(365 * DAY_MS).unwrap();
    clock.advance(60_000);
    clock.step(ahead);
    for dry_run in [true, false] {
        let answer = forget(dry_run);
        assert_eq!(answer.run_count, 0);
        let doubt = answer.clock_doubt.unwrap();
        assert_eq!(doubt.steady_since, clock.now());
        assert_eq!(doubt.believed_at, clock.now().plus_millis(DAY_MS));
        clock.advance(15_000);
        if dry_run {
            clock.step(-15_000);
        }
    }
    clock.step(-ahead);
    assert!(forget(false).clock_doubt.is_some());
    assert_eq!(gone(&workspace, &runs), [0]);
    // After a day it is believed, and what is over by then goes.
    clock.advance(11 * DAY_MS);
    assert_eq!(forget(false).run_count, 1);
    assert_eq!(gone(&workspace, &runs), [0, 1]);
}

#[test]
fn a_machine_that_was_off_for_long_forgets_nothing_until_its_clock_is_believed() {
    let (workspace, runs) = of_ten_runs();
    record(&workspace, 400);
    let shown = workspace.run(&["store", "gc", "--dry-run"]).expect_code(1);
    let done = workspace.run(&["store", "gc"]).expect_code(1);
    for done in [&shown, &done] {
        assert!(done.stdout.contains("the clock has jumped"), "{done:?}");
        assert!(done.stderr.contains("--trust-clock"), "{done:?}");
    }
    assert_eq!(gone(&workspace, &runs), [0_usize; 0]);
    // Even the next engine does not, which sees a clock that is steady by now.
    let daemon = Daemon::start(&workspace);
    workspace.run(&["run", "one"]).expect_code(0);
    let told = workspace
        .run(&["store", "gc", "--json"])
        .expect_code(1)
        .value();
    assert_eq!(told["run_count"], 0);
    assert!(told["clock_doubt"]["believed_at"].is_string(), "{told}");
    daemon.stop();
    let shown = workspace.json(&["store", "gc", "--dry-run", "--trust-clock"]);
    assert_eq!(
        (&shown["run_count"], &shown["clock_doubt"]),
        (&json!(1), &Value::Null)
    );
    assert_eq!(gone(&workspace, &runs), [0_usize; 0]);
    workspace.json(&["store", "gc", "--trust-clock"]);
    assert_eq!(gone(&workspace, &runs), [0]);
    assert_eq!(workspace.json(&["store", "gc"])["clock_doubt"], Value::Null);
}

#[test]
fn references_and_trees_are_dropped_only_by_a_clock_that_is_believed_and_that_is_logged() {
    let (workspace, runs) = of_ten_runs();
    let reference = format!("refs/workerctl/runs/{}/commit", runs[1].run);
    workspace.git(&["update-ref", &reference, "HEAD"]);
    let is_kept = || !workspace.git(&["for-each-ref", &reference]).is_empty();
    record(&workspace, 400);
    let daemon = Daemon::start(&workspace);
    workspace.run(&["run", "one"]).expect_code(0);
    // Both are looked for at once, references first.
    eventually("a sweep is made", || {
        (recorded_doubt(&workspace) == Some(true)).then_some(())
    });
    assert!(is_kept());
    is_logged(&daemon, "nothing is forgotten: the clock has jumped");
    daemon.stop();
    std::fs::remove_file(workspace.state().join("forgotten")).unwrap();
    let daemon = Daemon::start(&workspace);
    eventually("the reference is dropped and a run forgotten", || {
        workspace.run(&["run", "one"]).expect_code(0);
        (!is_kept() && recorded_doubt(&workspace) == Some(false)).then_some(())
    });
    is_logged(&daemon, "references of runs beyond `keep_refs` are dropped");
    is_logged(&daemon, "runs beyond the limits of `retention` are deleted");
    daemon.stop();
}

fn is_logged(daemon: &Daemon, text: &str) {
    assert!(daemon.log().contains(text), "{text}: {}", daemon.log());
}

/// A store of an earlier version has the time alone in its file.
#[test]
fn the_sweep_of_an_earlier_version_is_known() {
    let (workspace, runs) = of_ten_runs();
    let write = |at: Timestamp| {
        let text = format!("{}\n", at.rfc3339());
        std::fs::write(workspace.state().join("forgotten"), text).unwrap();
    };
    write(now().minus_millis(400 * DAY_MS));
    workspace.run(&["store", "gc"]).expect_code(1);
    write(now().minus_millis(2 * DAY_MS));
    workspace.run(&["store", "gc"]).expect_code(0);
    assert_eq!(gone(&workspace, &runs), [0]);
}
