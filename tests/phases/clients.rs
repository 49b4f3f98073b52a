//! Clients that leave, and those that say what is to become of the run.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use rustix::process::Signal;

use crate::phases::{bed, expect_committed, rest, standing};
use crate::workspace::daemon::Daemon;
use crate::workspace::{PATIENCE, eventually, wait_for};

#[test]
fn a_client_that_vanishes_cancels_nothing() {
    let (workspace, mut gate) = bed();
    let daemon = Daemon::start(&workspace);
    for signal in [Signal::KILL, Signal::TERM, Signal::HUP] {
        let client = workspace.start(&mut workspace.workerctl(&["run", "executing"]));
        let (run, _) = gate.reached();
        client.signal(signal);
        client.end();
        gate.pass();
        assert_eq!(workspace.wait(&run).0, 0, "{signal:?}");
    }
    let client = workspace.start(&mut workspace.workerctl(&["run", "repeatable"]));
    let (run, _) = gate.reached();
    client.signal(Signal::KILL);
    client.end();
    gate.pass();
    expect_committed(&workspace, &run);
    rest(&workspace, daemon);
}

#[test]
fn the_first_ctrl_c_cancels_and_the_second_ends_at_once() {
    for with_daemon in [true, false] {
        let (workspace, mut gate) = bed();
        workspace.write("workerctl.yaml", "grace: 10m\n");
        workspace.commit_all("patient with commands");
        let daemon = with_daemon.then(|| Daemon::start(&workspace));
        let client = workspace.start(&mut workspace.workerctl(&["run", "stubborn"]));
        let (run, _) = gate.reached();
        client.signal(Signal::INT);
        eventually("the first Ctrl-C is understood", || {
            client.stderr().contains("cancelling").then_some(())
        });
        assert_ne!(workspace.show(&run)["summary"]["phase"], "finished");
        client.signal(Signal::INT);
        let done = client.end().expect_code(130);
        assert!(done.stderr.contains("interrupt again"), "{done:?}");
        let (code, detail) = workspace.wait(&run);
        assert_eq!(code, 130, "{detail}");
        if let Some(daemon) = daemon {
            rest(&workspace, daemon);
        }
        workspace.expect_no_process();
    }
}

#[test]
fn a_follower_whose_reader_has_left_does_not_stay() {
    let (workspace, mut gate) = bed();
    let daemon = Daemon::start(&workspace);
    let run = standing(&workspace, &mut gate, "executing");
    let mut command = workspace.workerctl(&["logs", "--follow", &run]);
    let mut following = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap());
    let mut first = String::new();
    lines.read_line(&mut first).unwrap();
    assert!(first.contains("event"), "{first}");
    drop(lines);
    // The run stays silent all the time.
    let status = wait_for(&mut following, PATIENCE).expect("it ends by itself");
    assert!(status.success(), "{status}");
    gate.pass();
    assert_eq!(workspace.wait(&run).0, 0);
    rest(&workspace, daemon);
}

#[test]
fn a_command_whose_engine_is_drained_by_another_ends() {
    let (workspace, mut gate) = bed();
    let hosting = workspace.start(&mut workspace.workerctl(&["run", "executing"]));
    gate.reached();
    let draining = workspace.start(&mut workspace.workerctl(&["drain"]));
    // The grace ends the command at the gate, and the run goes back to the queue.
    draining.end().expect_code(0);
    let done = hosting.end().expect_code(7);
    assert!(done.stderr.contains("is not lost"), "{done:?}");
    workspace.expect_no_process();
}

/// Each is the host of others for a moment, and none of them is told so.
#[test]
fn commands_beside_each_other_need_no_daemon() {
    const COMMANDS: usize = 6;
    const ROUNDS: usize = 5;
    let workspace =
        crate::phases::Workspace::with_skills("  - {id: quick, description: d, run: 'true'}\n");
    std::thread::scope(|scope| {
        for number in 0..COMMANDS {
            let workspace = &workspace;
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    workspace.run(&["run", "quick", "-q"]).expect_code(0);
                    let other = [["status"], ["runs"], ["skills"]][number % 3];
                    workspace.run(&other).expect_code(0);
                }
            });
        }
    });
    let runs = workspace.json(&["runs", "--limit", "100"])["runs"].clone();
    assert_eq!(runs.as_array().unwrap().len(), COMMANDS * ROUNDS);
}
