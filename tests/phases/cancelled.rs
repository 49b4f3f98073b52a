//! `cancel` in each phase.

use crate::phases::{bed, expect_restored, rest, standing};
use crate::workspace::daemon::Daemon;

#[test]
fn what_stands_at_a_command_is_stopped_and_put_back() {
    for skill in [
        "validating",
        "executing",
        "printing",
        "changing",
        "writing",
        "repeatable",
        "verifying",
        "hooked",
    ] {
        let (workspace, mut gate) = bed();
        let daemon = Daemon::start(&workspace);
        let run = standing(&workspace, &mut gate, skill);
        workspace.run(&["cancel", &run]).expect_code(0);
        let (code, detail) = workspace.wait(&run);
        assert_eq!(code, 130, "{skill}: {detail}");
        assert_eq!(detail["summary"]["outcome"]["kind"], "cancelled");
        expect_restored(&workspace);
        let late = workspace.run(&["cancel", &run, "--json"]).expect_code(8);
        assert_eq!(late.refusal(), "ended");
        rest(&workspace, daemon);
    }
}

#[test]
fn what_waits_is_cancelled_without_having_run() {
    let (workspace, mut gate) = bed();
    let daemon = Daemon::start(&workspace);
    let first = standing(&workspace, &mut gate, "changing");
    let second = workspace.submit(&["repeatable"]);
    workspace.run(&["cancel", &second]).expect_code(0);
    let (code, detail) = workspace.wait(&second);
    assert_eq!((code, &detail["summary"]["attempts"]), (130, &0.into()));
    gate.pass();
    assert_eq!(workspace.wait(&first).0, 0);
    rest(&workspace, daemon);
}

#[test]
fn what_is_committed_is_too_late_to_cancel() {
    let (workspace, mut gate) = bed();
    let daemon = Daemon::start(&workspace);
    let run = standing(&workspace, &mut gate, "announcing");
    let late = workspace.run(&["cancel", &run, "--json"]).expect_code(8);
    assert_eq!(late.refusal(), "committing");
    gate.pass();
    crate::phases::expect_committed(&workspace, &run);
    rest(&workspace, daemon);
}
