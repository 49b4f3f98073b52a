//! SIGTERM in each phase: what can end in time does, the rest is left so that the next daemon goes on.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::phases::{bed, count, expect_committed, expect_restored, failure, rest, standing};
use crate::workspace::daemon::Daemon;

/// Grace of draining and of commands together, with a wide margin for a slow machine.
const ENDS_WITHIN: Duration = Duration::from_secs(20);

fn told_to_end(daemon: Daemon) {
    daemon.signal(Signal::TERM);
    let began = Instant::now();
    daemon.ended();
    assert!(began.elapsed() < ENDS_WITHIN, "{:?}", began.elapsed());
}

#[test]
fn what_ends_within_the_grace_ends_well() {
    let (workspace, mut gate) = bed();
    workspace.write("workerctl.yaml", "drain_grace: 60s\n");
    workspace.commit_all("patient");
    let mut daemon = Daemon::start(&workspace);
    let run = standing(&workspace, &mut gate, "repeatable");
    daemon.signal(Signal::TERM);
    daemon.wait_for_notice("STOPPING=1");
    let refused = workspace.run(&["run", "--no-wait", "executing", "--json"]);
    assert!([7, 8].contains(&refused.code), "{refused:?}");
    // Longer than an engine may take to end once nothing runs any more.
    daemon.stays_for(Duration::from_secs(11));
    gate.pass();
    daemon.ended();
    expect_committed(&workspace, &run);
    workspace.expect_no_process();
}

#[test]
fn executing_what_changes_things_is_interrupted_and_put_back() {
    for skill in ["changing", "writing"] {
        let (workspace, mut gate) = bed();
        let daemon = Daemon::start(&workspace);
        let run = standing(&workspace, &mut gate, skill);
        told_to_end(daemon);
        workspace.expect_no_process();
        let (code, detail) = workspace.wait(&run);
        assert_eq!((code, failure(&detail)), (1, "interrupted"), "{skill}");
        expect_restored(&workspace);
    }
}

#[test]
fn executing_what_may_not_be_repeated_is_interrupted_although_it_changes_nothing() {
    let (workspace, mut gate) = bed();
    let daemon = Daemon::start(&workspace);
    let run = standing(&workspace, &mut gate, "once");
    told_to_end(daemon);
    workspace.expect_no_process();
    let daemon = Daemon::start(&workspace);
    let (code, detail) = workspace.wait(&run);
    assert_eq!((code, failure(&detail)), (1, "interrupted"));
    assert_eq!(count(&workspace, "once"), 1);
    rest(&workspace, daemon);
}

#[test]
fn what_may_be_repeated_goes_on_with_the_next_daemon() {
    for skill in ["executing", "repeatable"] {
        let (workspace, mut gate) = bed();
        let daemon = Daemon::start(&workspace);
        let run = standing(&workspace, &mut gate, skill);
        told_to_end(daemon);
        workspace.expect_no_process();
        expect_restored(&workspace);
        assert_eq!(
            workspace.show(&run)["summary"]["phase"],
            "queued",
            "{skill}"
        );
        let daemon = Daemon::start(&workspace);
        assert_eq!(gate.reached().0, run);
        gate.pass();
        assert_eq!(workspace.wait(&run).0, 0, "{skill}");
        rest(&workspace, daemon);
    }
}

#[test]
fn checks_and_hooks_go_on_with_the_next_daemon() {
    for skill in ["validating", "verifying", "hooked", "announcing"] {
        let (workspace, mut gate) = bed();
        let daemon = Daemon::start(&workspace);
        let run = standing(&workspace, &mut gate, skill);
        told_to_end(daemon);
        workspace.expect_no_process();
        let daemon = Daemon::start(&workspace);
        assert_eq!(gate.reached().0, run, "{skill}");
        gate.pass();
        assert_eq!(workspace.wait(&run).0, 0, "{skill}");
        let commits = workspace.committed_runs();
        assert_eq!(commits.len(), usize::from(skill != "validating"), "{skill}");
        for once in ["validating", "verifying", "first-hook", "first-notice"] {
            assert!(count(&workspace, once) <= 1, "{skill}: {once}");
        }
        rest(&workspace, daemon);
    }
}

#[test]
fn what_waits_keeps_waiting_for_the_next_daemon() {
    let (workspace, mut gate) = bed();
    let daemon = Daemon::start(&workspace);
    let waiting = workspace.submit(&["backing-off"]);
    workspace.wait_for_phase(&waiting, "backing_off");
    let first = standing(&workspace, &mut gate, "changing");
    let queued = workspace.submit(&["repeatable"]);
    told_to_end(daemon);
    workspace.expect_no_process();
    for (run, phase) in [(&waiting, "backing_off"), (&queued, "queued")] {
        assert_eq!(workspace.show(run)["summary"]["phase"], phase);
    }
    assert_eq!(failure(&workspace.show(&first)), "interrupted");
    let daemon = Daemon::start(&workspace);
    assert_eq!(gate.reached(), (queued.clone(), 1));
    gate.pass();
    expect_committed(&workspace, &queued);
    assert_eq!(count(&workspace, "tried"), 1);
    workspace.run(&["cancel", &waiting]).expect_code(0);
    rest(&workspace, daemon);
}

#[test]
fn told_twice_ends_at_once() {
    let (workspace, mut gate) = bed();
    workspace.write("workerctl.yaml", "drain_grace: 10m\ngrace: 1s\n");
    workspace.commit_all("very patient");
    let mut daemon = Daemon::start(&workspace);
    standing(&workspace, &mut gate, "changing");
    daemon.signal(Signal::TERM);
    daemon.wait_for_notice("STOPPING=1");
    told_to_end(daemon);
    workspace.expect_no_process();
    expect_restored(&workspace);
}

#[test]
fn a_hangup_reads_the_definitions_again() {
    let (workspace, _gate) = bed();
    let mut daemon = Daemon::start(&workspace);
    daemon.signal(Signal::HUP);
    daemon.wait_for_notice("RELOADING=1");
    daemon.wait_for_notice("READY=1");
    workspace.worker("later", "  - {id: added, description: d, run: \"true\"}\n");
    daemon.signal(Signal::HUP);
    crate::workspace::eventually("the new skill is known", || {
        let done = workspace.run(&["run", "--dry-run", "later/added"]);
        (done.code == 0).then_some(())
    });
    rest(&workspace, daemon);
}
