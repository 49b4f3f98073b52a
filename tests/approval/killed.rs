//! `kill -9` of the daemon at random moments from the submission to the landing: one outcome, the right one.
//!
//! `WORKERCTL_TEST_ROUNDS=<n>` sets the number of runs (8 by default).

use std::time::Duration;

use crate::approval::{bed, ended, outcome, until_asked};
use crate::workspace::daemon::Daemon;
use crate::workspace::{Dice, Workspace, eventually, rounds};

#[test]
fn what_is_approved_lands_once_and_what_is_denied_never() {
    let workspace = bed();
    let mut dice = Dice(7);
    let mut landed = Vec::new();
    let mut daemon = Daemon::start(&workspace);
    for round in 0..rounds(8) {
        let run = workspace.submit(&["change"]);
        daemon = killed(daemon, &workspace, dice.below(80_000));
        if !is_asked(&workspace, &run) {
            continue;
        }
        let answer = if round % 3 == 2 { "deny" } else { "approve" };
        let given = [answer, run.as_str(), "--note", "x"];
        let answered = workspace.start(&mut workspace.workerctl(&given));
        daemon = killed(daemon, &workspace, dice.below(80_000));
        answered.end();
        // Whoever was not told that it was heard asks again.
        let phase = || workspace.show(&run)["summary"]["phase"].clone();
        if phase() == "awaiting_approval" {
            workspace.run(&given);
        }
        let detail = eventually("the run ends", || {
            (phase() == "finished").then(|| ended(&workspace, &run))
        });
        let wanted = if answer == "deny" {
            "denied"
        } else {
            "succeeded"
        };
        assert_eq!(outcome(&detail), wanted, "{detail}");
        if answer == "approve" {
            landed.insert(0, run);
        }
    }
    assert_eq!(workspace.committed_runs(), landed);
    assert_eq!(workspace.git(&["status", "--porcelain"]), "");
    daemon.stop();
}

#[test]
fn it_waits_over_a_restart_and_nothing_is_written_for_it() {
    let workspace = bed();
    let daemon = Daemon::start(&workspace);
    let run = crate::approval::asked(&workspace, &["change"]);
    let before = workspace.show(&run)["timeline"].as_array().unwrap().len();
    daemon.kill();
    let daemon = Daemon::start(&workspace);
    // Nothing is written for a run that only waits.
    let detail = until_asked(&workspace, &run);
    assert_eq!(
        detail["timeline"].as_array().unwrap().len(),
        before,
        "{detail}"
    );
    workspace.run(&["approve", &run]).expect_code(0);
    daemon.stop();
}

/// Whether a person is asked. A command that was cut off left nobody knows what: that is nothing to approve.
fn is_asked(workspace: &Workspace, run: &str) -> bool {
    let detail = eventually("a person is asked, or the run ends", || {
        let detail = workspace.show(run);
        let phase = detail["summary"]["phase"].as_str().unwrap().to_owned();
        ["awaiting_approval", "finished"]
            .contains(&phase.as_str())
            .then_some(detail)
    });
    let outcome = &detail["summary"]["outcome"];
    assert!(
        outcome.is_null() || outcome["kind"] == "unknown",
        "{detail}"
    );
    outcome.is_null()
}

fn killed(daemon: Daemon, workspace: &Workspace, after_us: u64) -> Daemon {
    std::thread::sleep(Duration::from_micros(after_us));
    daemon.kill();
    Daemon::start(workspace)
}
