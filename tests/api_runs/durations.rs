//! The duration of a run excludes its waits, and a run that waits for its next attempt is not running.

use serde_json::Value;

use crate::api_runs::Api;
use crate::workspace::Workspace;
use crate::workspace::daemon::{Daemon, get};

const SKILLS: &str = r#"
  - id: held
    description: its result waits for approval
    mutating: true
    approval_required: true
    approval: {before: landing}
    run: 'echo x > made.txt'
  - id: flaky
    description: succeeds at the second time
    idempotent: true
    retry: {max_attempts: 2, backoff: {initial: 300ms}}
    run: 'test -e "$HOME/tried" || { touch "$HOME/tried"; exit 1; }'
  - id: later
    description: waits an hour for its second attempt
    idempotent: true
    schedule: {cron: "0 0 1 1 *"}
    retry: {max_attempts: 2, backoff: {initial: 1h, max: 1h}}
    run: 'exit 1'
"#;

fn millis(value: &Value) -> i64 {
    workerctl::model::Timestamp::parse(value.as_str().unwrap())
        .unwrap()
        .millis()
}

/// Milliseconds of the phases from the first attempt on, those that wait apart.
fn spans(detail: &Value) -> (i64, i64) {
    let phases = detail["phases"].as_array().unwrap().iter();
    let started = phases.skip_while(|phase| phase["attempt"] == 0);
    started.fold((0, 0), |(worked, waited), phase| {
        let span = millis(&phase["end"]) - millis(&phase["begin"]);
        if phase["waiting"] == true {
            (worked, waited + span)
        } else {
            (worked + span, waited)
        }
    })
}

#[test]
fn durations_exclude_the_time_of_approval_and_backoff() {
    let workspace = Workspace::with_skills(SKILLS);
    let daemon = Daemon::start(&workspace);
    let held = workspace.submit(&["w/held"]);
    workspace.until_phase(&held, "awaiting_approval");
    let shown = workspace.show(&held);
    assert!(shown["summary"]["working_since"].is_null(), "{shown:#}");
    workspace.run(&["approve", &held]).expect_code(0);
    let flaky = workspace.submit(&["w/flaky"]);
    for run in [&held, &flaky] {
        assert_eq!(workspace.wait(run).0, 0);
        let detail = Api::of(&workspace).detail(run);
        let (worked, waited) = spans(&detail);
        let summary = &detail["summary"];
        let whole = millis(&summary["finished_at"]) - millis(&summary["started_at"]);
        assert_eq!(summary["duration_ms"], worked, "{detail:#}");
        assert!(waited > 0, "{detail:#}");
        assert_eq!(worked + waited, whole, "{detail:#}");
        assert_eq!(summary["working_since"], Value::Null);
        let thread = std::fs::read_to_string(detail["thread_path"].as_str().unwrap()).unwrap();
        let thread: Value = serde_json::from_str(&thread).unwrap();
        assert_eq!(thread["run"]["timings"]["duration_ms"], worked);
    }
    let worked = spans(&workspace.show(&flaky)).0;
    let stats = workspace.json(&["stats", "--skill", "flaky"]);
    let told = stats["stats"][0]["p50_ms"].as_i64().unwrap();
    assert!((told - worked).abs() * 8 <= worked + 8, "{told} {worked}");
    daemon.stop();
}

#[test]
fn a_run_that_waits_for_its_next_attempt_is_not_running() {
    let workspace = Workspace::with_skills(SKILLS);
    let daemon = Daemon::start(&workspace);
    let slot = workspace.json(&["schedule", "trigger", "w/later"]);
    let run = slot["run"].as_str().unwrap().to_owned();
    workspace.wait_for_phase(&run, "backing_off");
    let status = workspace.json(&["status"]);
    assert_eq!(
        (&status["running"], &status["backing_off_count"]),
        (&0.into(), &1.into())
    );
    let metrics = get(&workspace, "/v1/metrics");
    assert!(metrics.contains("workerctl_runs{state=\"running\"} 0\n"));
    assert!(metrics.contains("workerctl_runs{state=\"backing_off\"} 1\n"));
    let text = |arguments: &[&str]| workspace.run(arguments).expect_code(0).stdout;
    let shown = workspace.show(&run);
    let (summary, failed) = (&shown["summary"], shown["phases"].as_array().unwrap());
    let begin = millis(&failed.last().unwrap()["begin"]);
    assert_eq!(millis(&summary["retry_at"]), begin + 3_600_000, "{shown:#}");
    assert!(summary["working_since"].is_null(), "{shown:#}");
    for (arguments, expected) in [
        (&["status"][..], "0 running, 0 queued, 1 backing off"),
        (&["runs"], "backing off, retries at 20"),
        (&["show", &run], "retries at 20"),
        (&["schedule", "slots", "w/later"], "backing off"),
        (&["schedule", "list"], "backing off"),
    ] {
        let told = text(arguments);
        assert!(told.contains(expected), "{arguments:?}: {told}");
        assert!(!told.contains(" running ") || told.contains("0 running"));
    }
    workspace.run(&["cancel", &run]).expect_code(0);
    assert_eq!(workspace.wait(&run).0, 130);
    let ended = workspace.show(&run);
    assert!(ended["summary"]["retry_at"].is_null(), "{ended:#}");
    daemon.stop();
}
