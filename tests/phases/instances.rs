//! One engine for a state directory, and one for a workspace.

use std::process::Command;

use crate::phases::{bed, rest};
use crate::workspace::daemon::Daemon;
use crate::workspace::{Started, Workspace, eventually};

/// A daemon on any directories, with a socket of its own.
fn foreign(workspace: &Workspace, root: &std::path::Path, state: &std::path::Path) -> Command {
    let mut command = workspace.program(env!("CARGO_BIN_EXE_workerctl"));
    let socket = workspace.home.join("other.sock");
    command.arg("-C").arg(root).arg("--state-dir").arg(state);
    command.arg("--socket").arg(socket).arg("daemon");
    command
}

#[test]
fn a_second_engine_is_refused_and_told_of_the_first() {
    let (workspace, _gate) = bed();
    let daemon = Daemon::start(&workspace);
    let other = workspace.home.join("other");
    std::fs::create_dir_all(other.join("workers")).unwrap();
    let commands = [
        workspace.workerctl(&["daemon"]),
        foreign(&workspace, &workspace.root, &workspace.home.join("state")),
        foreign(&workspace, &other, workspace.state()),
    ];
    let pid = daemon.pid().as_raw_nonzero().to_string();
    for mut command in commands {
        let done = workspace.start(&mut command).end().expect_code(8);
        assert!(done.stderr.contains(&pid), "{command:?}: {done:?}");
        assert!(!done.stderr.contains("waiting"), "{command:?}: {done:?}");
    }
    rest(&workspace, daemon);
}

#[test]
fn of_twenty_that_start_at_once_exactly_one_wins() {
    let (workspace, _gate) = bed();
    let mut starting: Vec<Started> = (0..20)
        .map(|_| workspace.start(&mut workspace.workerctl(&["daemon"])))
        .collect();
    let mut refused = 0;
    eventually("all but one have ended", || {
        starting.retain_mut(|started| {
            let Some(status) = started.ended() else {
                return true;
            };
            assert_eq!(status.code(), Some(8), "{}", started.stderr());
            refused += 1;
            false
        });
        (starting.len() <= 1).then_some(())
    });
    assert_eq!((starting.len(), refused), (1, 19));
    let winner = starting.pop().unwrap();
    let pid = winner.pid().as_raw_nonzero().get();
    eventually("the winner answers", || {
        let done = workspace.run(&["status", "--json"]);
        (done.code == 0 && done.value()["pid"] == pid).then_some(())
    });
    winner.signal(rustix::process::Signal::TERM);
    winner.end().expect_code(0);
    workspace.expect_no_process();
}

/// A command that finds the engine of another one has the definitions of now.
#[test]
fn a_command_sees_what_has_changed_since_the_hosting_one_began() {
    let (workspace, mut gate) = bed();
    let hosting = workspace.start(&mut workspace.workerctl(&["run", "executing"]));
    gate.reached();
    let skill = |text: &str| {
        let run = format!("  - {{id: now, description: d, run: 'echo {text}'}}\n");
        workspace.worker("late", &run);
    };
    for text in ["first", "second"] {
        skill(text);
        let rendered = workspace.run(&["render", "late/now"]).expect_code(0);
        assert!(rendered.stdout.contains(text), "{rendered:?}");
        let done = workspace.run(&["run", "late/now"]).expect_code(0);
        let said = format!("{}{}", done.stdout, done.stderr);
        assert!(said.contains(text), "{done:?}");
    }
    gate.pass();
    hosting.end().expect_code(0);
}

#[test]
fn a_daemon_takes_over_from_a_command() {
    let (workspace, mut gate) = bed();
    let hosting = workspace.start(&mut workspace.workerctl(&["run", "executing"]));
    let (run, _) = gate.reached();
    // One that would use the same socket, and one that has a socket of its own.
    let mut waiting = [
        workspace.workerctl(&["daemon"]),
        foreign(&workspace, &workspace.root, workspace.state()),
    ]
    .map(|mut command| workspace.start(&mut command));
    for started in &waiting {
        eventually("the daemon waits for the command", || {
            started
                .stderr()
                .contains("waiting for its end")
                .then_some(())
        });
    }
    // Another command finds the engine of the first.
    assert_eq!(workspace.json(&["status"])["host"], "in_process");
    gate.pass();
    hosting.end().expect_code(0);
    let status = eventually("one of the daemons answers", || {
        let done = workspace.run(&["status", "--json"]);
        (done.code == 0 && done.value()["host"] == "daemon").then(|| done.value())
    });
    assert_eq!(workspace.wait(&run).0, 0);
    let pid = |started: &Started| started.pid().as_raw_nonzero().get();
    waiting.sort_by_key(|started| status["pid"] != pid(started));
    let [winner, other] = waiting;
    let done = other.end().expect_code(8);
    assert!(done.stderr.contains(&status["pid"].to_string()), "{done:?}");
    winner.signal(rustix::process::Signal::TERM);
    winner.end().expect_code(0);
    workspace.expect_no_process();
}

#[test]
fn a_daemon_does_not_wait_for_a_command_without_end() {
    let (workspace, mut gate) = bed();
    let hosting = workspace.start(&mut workspace.workerctl(&["run", "executing"]));
    gate.reached();
    let done = workspace.run(&["daemon"]).expect_code(8);
    let pid = hosting.pid().as_raw_nonzero().to_string();
    assert!(done.stderr.contains(&pid), "{done:?}");
    gate.pass();
    hosting.end().expect_code(0);
}

#[test]
fn doctor_tells_of_a_daemon_that_keeps_runs_elsewhere() {
    let (workspace, _gate) = bed();
    let daemon = Daemon::start(&workspace);
    let told = |state: &std::path::Path| {
        let mut command = workspace.program(env!("CARGO_BIN_EXE_workerctl"));
        command.arg("-C").arg(&workspace.root).arg("--state-dir");
        command.arg(state).args(["doctor", "--json"]);
        let done = workspace.start(&mut command).end();
        let findings = done.value()["findings"].as_array().unwrap().clone();
        let of_state = |found: &serde_json::Value| found["name"] == "state";
        findings.into_iter().filter(of_state).collect::<Vec<_>>()
    };
    let same = told(workspace.state());
    assert_eq!(
        (same.len(), &same[0]["state"]),
        (1, &"ok".into()),
        "{same:?}"
    );
    let other = told(&workspace.home.join("state"));
    let care: Vec<_> = other
        .iter()
        .filter(|one| one["state"] == "warning")
        .collect();
    let shown = workspace.state().display().to_string();
    assert_eq!(care.len(), 1, "{other:?}");
    let hint = care[0]["hints"][0].as_str().unwrap();
    assert!(
        hint.contains(&format!("WORKERCTL_STATE_DIR={shown}")),
        "{hint}"
    );
    rest(&workspace, daemon);
}
