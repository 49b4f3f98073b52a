//! `notify`: who is told what of runs and schedules, by real commands of a real daemon.

use crate::workspace;

use serde_json::Value;
use workspace::daemon::Daemon;
use workspace::{Workspace, eventually};

/// Tells everything to one file, with the key by which it was told.
const NOTIFY: &str = r"notify:
  on_failure: 'echo for-all; tell on_failure'
  on_recovery: {command: 'tell on_recovery', timeout: 10s}
  on_missed: 'tell on_missed'
";

const SKILLS: &str = r"
  - {id: fickle, description: d, run: 'test -e ../good'}
  - id: tick
    description: d
    run: 'test -e ../good'
    schedule: {id: nightly, after: w/other, pause_on_failure: 2}
  - {id: other, description: d, run: 'true'}
";

/// A workspace whose `tell KEY` writes what it is told beside it, and fails while `deaf` is there.
fn workspace(config: &str) -> Workspace {
    let workspace = Workspace::with_skills(SKILLS);
    let tell = r#"'{ printf "%s %s " "$KEY" "${WORKERCTL_SCHEDULE:-none}"; cat; } >> ../told; test ! -e ../deaf'"#;
    let mut text = config.to_owned();
    for key in ["on_failure", "on_recovery", "on_missed"] {
        let command = tell.replace("$KEY", key);
        text = text.replace(&format!("'tell {key}'"), &command);
        text = text.replace(
            &format!("'echo for-all; tell {key}'"),
            &command.replacen('\'', "'echo for-all; ", 1),
        );
    }
    workspace.write("workerctl.yaml", &text);
    workspace
}

/// Each notice: the key, the schedule by the environment, the event.
fn told(workspace: &Workspace) -> Vec<(String, String, Value)> {
    let text = workspace.read("../told").unwrap_or_default();
    // The last line may be being written.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let lines = whole.lines().map(|line| {
        let mut parts = line.splitn(3, ' ');
        let mut next = || parts.next().unwrap().to_owned();
        (next(), next(), serde_json::from_str(&next()).unwrap())
    });
    lines.collect()
}

fn told_of(workspace: &Workspace, count: usize) -> Vec<(String, String, Value)> {
    eventually("notices", || {
        let told = told(workspace);
        assert!(told.len() <= count, "{told:?}");
        (told.len() == count).then_some(told)
    })
}

fn run(workspace: &Workspace, skill: &str) -> String {
    let run = workspace.submit(&[skill]);
    workspace.wait(&run);
    run
}

#[test]
fn a_streak_of_runs_without_a_schedule_is_told_once_and_its_end_once() {
    let workspace = workspace(NOTIFY);
    let daemon = Daemon::start(&workspace);
    let first = run(&workspace, "fickle");
    let (key, schedule, event) = told_of(&workspace, 1).remove(0);
    assert_eq!((key.as_str(), schedule.as_str()), ("on_failure", "none"));
    assert_eq!(event["hook_event_name"], "RunFailed");
    assert_eq!(
        (&event["worker"], &event["skill"]),
        (&"w".into(), &"fickle".into())
    );
    assert_eq!(
        (&event["run"], &event["outcome"]),
        (&first.as_str().into(), &"failed".into())
    );
    assert!(
        event["message"].as_str().unwrap().contains("exit"),
        "{event}"
    );
    assert_eq!(
        (&event["schedule"], &event["last_slot"]),
        (&Value::Null, &Value::Null)
    );
    run(&workspace, "fickle");
    workspace.write("../good", "");
    let good = run(&workspace, "fickle");
    let (key, _, event) = told_of(&workspace, 2).remove(1);
    assert_eq!(key, "on_recovery");
    assert_eq!(
        (&event["run"], &event["failure_count"]),
        (&good.as_str().into(), &2.into())
    );
    run(&workspace, "fickle");
    daemon.stop();
    assert_eq!(told(&workspace).len(), 2);
}

#[test]
fn a_schedule_that_pauses_itself_is_told_too_and_a_person_who_starts_its_skill_is_none_of_its_streak()
 {
    let workspace = workspace(NOTIFY);
    let daemon = Daemon::start(&workspace);
    for _ in 0..2 {
        let made = workspace.json(&["schedule", "trigger", "w/tick#nightly"]);
        workspace.wait(made["run"].as_str().unwrap());
    }
    let told = told_of(&workspace, 2);
    let events: Vec<&Value> = told
        .iter()
        .map(|(.., event)| &event["hook_event_name"])
        .collect();
    assert_eq!(events, ["RunFailed", "SchedulePaused"]);
    assert_eq!(told[1].1, "w/tick#nightly");
    assert_eq!(told[1].2["paused"]["reason"], "2 failures in a row");
    // Another streak, which the schedule's does not know of.
    run(&workspace, "tick");
    assert_eq!(told_of(&workspace, 3)[2].1, "none");
    daemon.stop();
}

#[test]
fn what_was_not_delivered_is_shown_and_delivered_once_its_command_is_repaired_and_a_daemon_runs() {
    let workspace = workspace(NOTIFY);
    workspace.write("../deaf", "");
    let mut daemon = Daemon::start(&workspace);
    let failed = run(&workspace, "fickle");
    let undelivered = eventually("it is shown", || {
        let shown = workspace.json(&["status"])["undelivered"][0].clone();
        shown.is_object().then_some(shown)
    });
    assert_eq!(undelivered["event"], "RunFailed");
    assert_eq!(undelivered["run"], failed.as_str());
    assert_eq!(undelivered["skill"], "w/fickle");
    let message = undelivered["message"].as_str().unwrap();
    assert!(message.contains("for-all"), "what it said: {message}");
    let said = "RunFailed of w/fickle was not delivered, tried 1 time";
    for command in ["status", "doctor"] {
        let shown = workspace.run(&[command]);
        assert_eq!(shown.code, i32::from(command == "doctor"), "{shown:?}");
        let text = shown
            .stdout
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert!(text.contains(said), "{shown:?}");
    }
    assert!(daemon.lives());
    daemon.kill();
    // Nobody but a daemon tells: a command that has no other engine notes what happens.
    std::fs::remove_file(workspace.home.join("../deaf")).unwrap();
    workspace.write("../good", "");
    workspace.run(&["run", "fickle"]).expect_code(0);
    assert_eq!(told(&workspace).len(), 1);
    daemon = Daemon::start(&workspace);
    let told = told_of(&workspace, 3);
    let keys: Vec<&str> = told.iter().map(|(key, ..)| key.as_str()).collect();
    assert_eq!(keys, ["on_failure", "on_failure", "on_recovery"]);
    assert_eq!(told[1].2["run"], failed.as_str());
    assert_eq!(
        (&told[0].2["attempt_count"], &told[1].2["attempt_count"]),
        (&0.into(), &1.into())
    );
    eventually("nothing is left", || {
        let status = workspace.json(&["status"]);
        (status["undelivered"] == Value::Array(Vec::new())).then_some(())
    });
    daemon.stop();
}

#[test]
fn a_schedule_and_a_worker_may_name_their_own_and_nobody_is_told_where_nobody_is_named() {
    let workspace = workspace("notify: {on_recovery: 'tell on_recovery'}\n");
    let daemon = Daemon::start(&workspace);
    run(&workspace, "fickle");
    workspace.write("../good", "");
    run(&workspace, "fickle");
    let (key, ..) = told_of(&workspace, 1).remove(0);
    assert_eq!(key, "on_recovery");
    std::fs::remove_file(workspace.home.join("../good")).unwrap();
    let worker = workspace.read("workers/w/worker.yaml").unwrap();
    let own = "'cat >/dev/null; echo worker $WORKERCTL_EVENT {} >> ../told'";
    let of_schedule = "'cat >/dev/null; echo schedule $WORKERCTL_EVENT {} >> ../told'";
    let worker = worker.replace(
        "pause_on_failure: 2",
        &format!("notify: {{on_failure: {of_schedule}}}"),
    );
    workspace.write(
        "workers/w/worker.yaml",
        &format!("{worker}\nnotify: {{on_failure: {own}}}\n"),
    );
    workspace.run(&["reload"]).expect_code(0);
    workspace.run(&["check"]).expect_code(0);
    run(&workspace, "fickle");
    let made = workspace.json(&["schedule", "trigger", "w/tick#nightly"]);
    workspace.wait(made["run"].as_str().unwrap());
    let lines = eventually("both are told", || {
        let text = workspace.read("../told").unwrap();
        let mut lines: Vec<String> = text.lines().skip(1).map(str::to_owned).collect();
        lines.sort();
        (lines.len() == 2).then_some(lines)
    });
    assert_eq!(lines, ["schedule RunFailed {}", "worker RunFailed {}"]);
    daemon.stop();
}
