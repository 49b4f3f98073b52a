//! Runs that work in the checkout itself, with an engine that is killed or ends meanwhile.

use std::fs;

use rustix::fs::{FlockOperation, flock};

use super::in_place::{status, summary, workspace};
use crate::workspace::daemon::Daemon;
use crate::workspace::gate::Gate;
use crate::workspace::{Dice, rounds};

#[test]
fn an_engine_killed_while_it_ran_leaves_unknown_and_what_it_did_is_put_back() {
    let workspace = workspace();
    let mut gate = Gate::new(&workspace, "gate");
    let daemon = Daemon::start(&workspace);
    let run = workspace.submit(&["waits"]);
    gate.reached();
    workspace.write("other.txt", "a person works on\n");
    daemon.kill();
    let daemon = Daemon::start(&workspace);
    assert_eq!(workspace.wait(&run).0, 9);
    assert_eq!(status(&workspace), " M other.txt\n");
    let patch = workspace.run(&["diff", &run]).expect_code(0).stdout;
    assert!(
        patch.contains("docs/a.md") && patch.contains("+# report"),
        "{patch}"
    );
    daemon.stop();
}

#[test]
fn an_engine_killed_while_it_checked_goes_on_with_the_same_result() {
    let workspace = workspace();
    let mut gate = Gate::new(&workspace, "gate");
    let daemon = Daemon::start(&workspace);
    let run = workspace.submit(&["checked"]);
    gate.reached();
    daemon.kill();
    let daemon = Daemon::start(&workspace);
    gate.reached();
    gate.pass();
    assert_eq!(workspace.wait(&run).0, 0);
    assert_eq!(workspace.committed_runs(), [run]);
    assert_eq!(status(&workspace), "");
    daemon.stop();
}

#[test]
fn what_changed_while_no_engine_ran_is_named_and_stays() {
    let workspace = workspace();
    let mut gate = Gate::new(&workspace, "gate");
    let daemon = Daemon::start(&workspace);
    let run = workspace.submit(&["checked"]);
    gate.reached();
    daemon.kill();
    workspace.write("reports/r.md", "a person's words\n");
    let daemon = Daemon::start(&workspace);
    let (code, detail) = workspace.wait(&run);
    assert_ne!(code, 0);
    let message = &summary(&detail)["outcome"]["failure"]["message"];
    assert!(
        message
            .as_str()
            .unwrap()
            .contains("`reports/r.md` changed while no engine ran"),
        "{detail}"
    );
    assert_eq!(
        workspace.read("reports/r.md").unwrap(),
        "a person's words\n"
    );
    assert!(workspace.committed_runs().is_empty());
    daemon.stop();
}

#[test]
fn what_a_person_writes_before_the_next_attempt_is_not_taken_for_the_runs() {
    let workspace = workspace();
    let daemon = Daemon::start(&workspace);
    let run = workspace.submit(&["backs-off"]);
    workspace.wait_for_phase(&run, "backing_off");
    daemon.kill();
    assert_eq!(status(&workspace), "");
    workspace.write("reports/r.md", "a person's words\n");
    let daemon = Daemon::start(&workspace);
    let (code, detail) = workspace.wait(&run);
    assert_eq!(code, 1, "{detail}");
    let failure = &summary(&detail)["outcome"]["failure"];
    assert!(
        failure["message"]
            .as_str()
            .unwrap()
            .contains("`reports/r.md` is there already"),
        "{failure}"
    );
    assert_eq!(
        workspace.read("reports/r.md").unwrap(),
        "a person's words\n"
    );
    let starts = fs::read_to_string(workspace.home.join("starts")).unwrap();
    assert_eq!(starts.lines().count(), 1);
    daemon.stop();
}

/// Another moment in each round: `WORKERCTL_TEST_ROUNDS` tries more of them.
#[test]
fn an_engine_killed_at_any_moment_leaves_a_commit_or_a_clean_checkout() {
    let workspace = workspace();
    let mut dice = Dice(22);
    for round in 0..rounds(9) {
        let skill = ["once", "again", "broken"][round % 3];
        let daemon = Daemon::start(&workspace);
        let run = workspace.submit(&[skill]);
        std::thread::sleep(std::time::Duration::from_micros(dice.below(350_000)));
        daemon.kill();
        let daemon = Daemon::start(&workspace);
        let (code, detail) = workspace.wait(&run);
        assert_eq!(status(&workspace), "", "{skill}: {detail}");
        let commits = workspace
            .committed_runs()
            .into_iter()
            .filter(|one| *one == run)
            .count();
        assert_eq!(commits, usize::from(code == 0), "{skill}: {detail}");
        let told = workspace.read("docs/a.md").unwrap().matches(&run).count();
        assert_eq!(told, commits, "{skill}: {detail}");
        let expected: &[i32] = match skill {
            "once" => &[0, 9],
            "again" => &[0],
            _ => &[5, 9],
        };
        assert!(expected.contains(&code), "{skill}: {code} {detail}");
        assert!(!workspace.root.join(".git/workerctl-in-place").exists());
        daemon.stop();
    }
    workspace.git(&["fsck", "--strict"]);
}

#[test]
fn an_engine_that_ends_leaves_a_run_that_waits_for_the_checkout_to_the_next() {
    let workspace = workspace();
    workspace.write("workerctl.yaml", "drain_grace: 1s\n");
    workspace.commit_all("a short grace");
    let lock = workspace.root.join(".git/workerctl-in-place.lock");
    let held = fs::File::create(&lock).unwrap();
    flock(&held, FlockOperation::LockExclusive).unwrap();
    let daemon = Daemon::start(&workspace);
    let run = workspace.submit(&["report"]);
    workspace.wait_for_phase(&run, "preparing");
    daemon.stop();
    drop(held);
    let daemon = Daemon::start(&workspace);
    assert_eq!(workspace.wait(&run).0, 0);
    assert_eq!(workspace.committed_runs(), [run]);
    daemon.stop();
}
