//! A schedule that does not succeed in time: everybody who looks is told, and its command once.

use crate::workspace;

use serde_json::Value;
use workspace::daemon::{Daemon, get};
use workspace::ledger::view;
use workspace::{Workspace, eventually};

/// Fails while `good` is not there; its command fails too, after it has noted what it was told.
const SKILLS: &str = r"
  - id: tick
    description: succeeds where a file says so
    run: 'test -e ../good'
    schedule:
      every: 1s
      expected_within: 1s
      pause_on_failure: 2
      on_missed: 'cat >> ../told.json; env >> ../told.env; echo out of paper; test -e ../paper || exit 3'
";

fn told(workspace: &Workspace) -> Vec<Value> {
    let text = workspace.read("../told.json").unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// A command that has written has yet to end: what happens before that is told besides.
fn until_delivered(workspace: &Workspace) {
    eventually("it is delivered", || {
        let undelivered = &workspace.run(&["status", "--json"]).value()["undelivered"];
        (*undelivered == Value::Array(Vec::new())).then_some(())
    });
}

fn everybody_is_told(workspace: &Workspace) {
    let status = workspace.run(&["status", "--json"]).value();
    assert_eq!(status["overdue"][0]["schedule"], "w/tick");
    let shown = workspace.run(&["status"]).stdout;
    assert!(shown.contains("overdue"), "{shown}");
    let listed = workspace.run(&["schedule", "list"]).stdout;
    assert!(listed.contains("overdue"), "{listed}");
    let doctor = workspace.run(&["doctor"]).expect_code(1);
    assert!(
        doctor.stdout.contains("w/tick was expected to succeed by"),
        "{doctor:?}"
    );
    let metrics = get(workspace, "/v1/metrics");
    assert!(metrics.contains("text/plain"), "{metrics}");
    assert!(metrics.contains("workerctl_schedule_overdue{schedule=\"w/tick\"} 1"));
    assert!(metrics.contains("workerctl_schedule_consecutive_failures{schedule=\"w/tick\"} 2"));
}

#[test]
fn it_is_told_once_and_shown_until_it_succeeds() {
    let workspace = Workspace::with_skills(SKILLS);
    let mut daemon = Daemon::start(&workspace);
    daemon.wait_for_notice("STATUS=0 running, 0 queued, w/tick is overdue");
    let view_of_failure = eventually("the end of the command", || {
        let view = view(&workspace, "w/tick");
        let undelivered = &workspace.run(&["status", "--json"]).value()["undelivered"][0];
        (undelivered.is_object() && view["paused"].is_object()).then_some(view)
    });
    assert_eq!(view_of_failure["overdue"], true);
    let undelivered = workspace.run(&["status", "--json"]).value()["undelivered"][0].clone();
    assert_eq!(undelivered["event"], "ScheduleMissed");
    assert_eq!(undelivered["schedule"], "w/tick");
    let message = undelivered["message"].as_str().unwrap();
    assert!(
        message.contains('3') && message.contains("out of paper"),
        "{message}"
    );
    assert!(daemon.log().contains("out of paper"), "{}", daemon.log());
    let envelope = told(&workspace).remove(0);
    assert_eq!(envelope["hook_event_name"], "ScheduleMissed");
    assert_eq!(envelope["schedule"], "w/tick");
    assert_eq!(envelope["last_success"], Value::Null);
    assert_eq!(envelope["expected_by"], view_of_failure["expected_by"]);
    assert!(envelope["last_slot"]["status"].is_string(), "{envelope}");
    let environment = workspace.read("../told.env").unwrap();
    assert!(environment.contains("WORKERCTL_SCHEDULE=w/tick"));
    everybody_is_told(&workspace);
    // Another engine knows that it was told; one inside a command sees it, too.
    daemon.stop();
    assert_eq!(
        workspace.run(&["status", "--json"]).value()["overdue"][0]["schedule"],
        "w/tick"
    );
    let doctor = workspace.run(&["doctor"]).expect_code(1);
    assert!(
        doctor.stdout.contains("w/tick was expected to succeed by"),
        "{doctor:?}"
    );
    // It was tried again where the pause came while the first try was under way.
    let tries = told(&workspace).len();
    workspace.write("../paper", "");
    let daemon = Daemon::start(&workspace);
    eventually("it is told after all", || {
        (told(&workspace).len() == tries + 1).then_some(())
    });
    let delivered = told(&workspace).pop().unwrap();
    assert_eq!(delivered["expected_by"], envelope["expected_by"]);
    until_delivered(&workspace);
    workspace.write("../good", "");
    workspace
        .run(&["schedule", "resume", "w/tick"])
        .expect_code(0);
    eventually("a success", || {
        let view = view(&workspace, "w/tick");
        (view["overdue"] == false && view["succeeded_at"].is_string()).then_some(())
    });
    // Where a machine is so slow that the success comes late, that is another episode.
    let after = told(&workspace).split_off(tries + 1);
    let is_anew = |one: &Value| one["expected_by"] != envelope["expected_by"];
    assert!(after.iter().all(is_anew), "{after:?}");
    let before = told(&workspace).len();
    let runs = workspace.json(&["runs", "--limit", "10000"]);
    assert!(!runs.to_string().contains("on_missed"));
    std::fs::remove_file(workspace.home.join("../good")).unwrap();
    eventually("it is told again", || {
        (told(&workspace).len() > before).then_some(())
    });
    a_pause_is_no_alarm(&workspace);
    daemon.stop();
}

fn a_pause_is_no_alarm(workspace: &Workspace) {
    let pause = ["schedule", "pause", "w/tick", "--reason", "a holiday"];
    workspace.run(&pause).expect_code(0);
    assert_eq!(view(workspace, "w/tick")["overdue"], false);
    assert_eq!(
        workspace.run(&["status", "--json"]).value()["overdue"],
        Value::Array(Vec::new())
    );
}

/// Never succeeds; its command outlives a killed daemon, and ends with whatever it was started from.
const HANGING: &str = r"
  - id: tick
    description: fails
    run: 'false'
    schedule:
      every: 1s
      expected_within: 1s
      on_missed: {command: 'echo $$ >> ../pids; sleep 600', timeout: 2s}
";

fn pids(workspace: &Workspace) -> Vec<String> {
    let text = workspace.read("../pids").unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Whether a process is there and not only a zombie.
fn lives(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after_name = stat.rsplit(") ").next().unwrap_or_default();
    !after_name.is_empty() && !after_name.starts_with('Z')
}

#[test]
fn a_command_of_a_killed_daemon_is_ended_and_told_again_within_its_limit() {
    let workspace = Workspace::with_skills(HANGING);
    let daemon = Daemon::start(&workspace);
    let first = eventually("the command", || pids(&workspace).pop());
    daemon.kill();
    let daemon = Daemon::start(&workspace);
    eventually("the command again", || {
        (pids(&workspace).len() == 2).then_some(())
    });
    assert!(!lives(&first), "{first} still runs");
    let undelivered = eventually("its end", || {
        let undelivered = workspace.run(&["status", "--json"]).value()["undelivered"][0].clone();
        undelivered.is_object().then_some(undelivered)
    });
    assert_eq!(undelivered["attempt_count"], 1, "{undelivered}");
    let second = pids(&workspace).pop().unwrap();
    eventually("its processes are gone", || (!lives(&second)).then_some(()));
    daemon.stop();
    // A daemon that starts tries what was not delivered.
    let daemon = Daemon::start(&workspace);
    eventually("the command once more", || {
        (pids(&workspace).len() == 3).then_some(())
    });
    daemon.stop();
}

#[test]
fn a_failed_run_is_told_at_once_and_not_only_when_its_schedule_is_overdue() {
    let workspace = Workspace::with_skills(
        r#"
  - id: tick
    description: succeeds where a file says so
    run: 'test -e ../good'
    schedule: {after: w/other}
  - {id: other, description: d, run: "true"}
"#,
    );
    let mut daemon = Daemon::start(&workspace);
    let trigger = || {
        let run = workspace.json(&["schedule", "trigger", "w/tick"]);
        let run = run["run"].as_str().unwrap().to_owned();
        workspace.wait(&run);
        run
    };
    trigger();
    let run = trigger();
    daemon.wait_for_notice("STATUS=0 running, 0 queued, w/tick fails");
    let failing = &workspace.run(&["status", "--json"]).value()["failing"];
    let expected = serde_json::json!([{"schedule": "w/tick", "failure_count": 2, "run": run, "paused": false}]);
    assert_eq!(*failing, expected);
    let told = "w/tick, 2 runs in a row did not succeed: `workerctl show ";
    for command in ["status", "doctor"] {
        let said = workspace.run(&[command]);
        assert_eq!(said.code, i32::from(command == "doctor"), "{said:?}");
        assert!(said.stdout.contains(told), "{said:?}");
    }
    let log = daemon.log();
    assert!(log.contains("a run of a schedule did not succeed"), "{log}");
    workspace.write("../good", "");
    trigger();
    assert_eq!(
        workspace.run(&["status", "--json"]).value()["failing"],
        serde_json::json!([])
    );
    assert!(daemon.log().contains("a schedule succeeds again"));
    daemon.stop();
    // Without a daemon the schedule is not fired, which is an error, but it does not fail.
    std::fs::remove_file(workspace.root.join("../good")).unwrap();
    let doctor = workspace.run(&["doctor"]).expect_code(1).stdout;
    assert!(doctor.contains("none overdue or failing"), "{doctor}");
}
