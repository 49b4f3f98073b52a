//! `kill -9` of the daemon in each phase, then another one.

use crate::phases::{bed, count, expect_committed, expect_restored, failure, rest, standing};
use crate::workspace::Workspace;
use crate::workspace::daemon::Daemon;
use crate::workspace::gate::Gate;

/// Kills the daemon and starts another, which ends what the first has left.
fn again(workspace: &Workspace, daemon: Daemon) -> Daemon {
    daemon.kill();
    Daemon::start(workspace)
}

#[test]
fn queued_stays_queued() {
    let (workspace, mut gate) = bed();
    let daemon = Daemon::start(&workspace);
    let first = standing(&workspace, &mut gate, "changing");
    let second = workspace.submit(&["repeatable"]);
    assert_eq!(workspace.show(&second)["summary"]["phase"], "queued");
    let daemon = again(&workspace, daemon);
    assert_eq!(workspace.wait(&first).0, 9);
    assert_eq!(gate.reached(), (second.clone(), 1));
    gate.pass();
    expect_committed(&workspace, &second);
    rest(&workspace, daemon);
}

#[test]
fn validating_begins_again() {
    let (workspace, mut gate) = bed();
    let daemon = Daemon::start(&workspace);
    let run = standing(&workspace, &mut gate, "validating");
    let daemon = again(&workspace, daemon);
    assert_eq!(gate.reached().0, run);
    gate.pass();
    let (code, detail) = workspace.wait(&run);
    assert_eq!((code, count(&workspace, "validating")), (0, 1), "{detail}");
    rest(&workspace, daemon);
}

#[test]
fn a_run_that_no_engine_survives_is_given_up() {
    let (workspace, mut gate) = bed();
    let mut daemon = Daemon::start(&workspace);
    let run = standing(&workspace, &mut gate, "validating");
    for _ in 0..4 {
        daemon = again(&workspace, daemon);
        assert_eq!(gate.reached().0, run);
    }
    daemon = again(&workspace, daemon);
    let (code, detail) = workspace.wait(&run);
    assert_eq!(code, 9, "{detail}");
    assert_eq!(detail["summary"]["outcome"]["why"], "recovery_failed");
    assert_eq!(count(&workspace, "validating"), 0);
    let resolve = ["resolve", &run, "--as", "failed", "--note", "seen"];
    workspace.run(&resolve).expect_code(0);
    rest(&workspace, daemon);
}

#[test]
fn executing_what_changes_nothing_is_a_new_attempt_and_not_for_ever() {
    let (workspace, mut gate) = bed();
    let mut daemon = Daemon::start(&workspace);
    let run = standing(&workspace, &mut gate, "printing");
    for attempt in 2..=3 {
        daemon = again(&workspace, daemon);
        assert_eq!(gate.reached(), (run.clone(), attempt));
    }
    daemon = again(&workspace, daemon);
    let (code, detail) = workspace.wait(&run);
    assert_eq!((code, failure(&detail)), (1, "crash_loop"));
    expect_restored(&workspace);
    rest(&workspace, daemon);
}

#[test]
fn executing_what_changes_things_is_unknown_and_put_back() {
    let (workspace, mut gate) = bed();
    let daemon = Daemon::start(&workspace);
    let run = standing(&workspace, &mut gate, "changing");
    let daemon = again(&workspace, daemon);
    assert_eq!(workspace.wait(&run).0, 9);
    assert_eq!(count(&workspace, "changing"), 1);
    expect_restored(&workspace);
    let kept = workspace.run(&["diff", &run]).expect_code(0).stdout;
    assert!(kept.contains("tracked.txt"), "{kept}");
    let resolve = ["resolve", &run, "--as", "failed", "--note", "seen"];
    workspace.run(&resolve).expect_code(0);
    assert_eq!(workspace.wait(&run).0, 1);
    rest(&workspace, daemon);
}

#[test]
fn executing_what_left_verified_outputs_is_reconciled() {
    let (workspace, mut gate) = bed();
    let daemon = Daemon::start(&workspace);
    let run = standing(&workspace, &mut gate, "writing");
    let daemon = again(&workspace, daemon);
    let (code, detail) = workspace.wait(&run);
    assert_eq!(code, 0, "{detail}");
    assert_eq!(detail["summary"]["reconciled"], true);
    assert_eq!(detail["results"]["execution"]["is"], "unknown");
    assert_eq!(workspace.committed_runs(), [run]);
    let named = workspace.git(&["show", "--format=", "--name-only", "HEAD"]);
    assert_eq!(named.trim(), "notes/n.md");
    assert_eq!(count(&workspace, "writing"), 1);
    rest(&workspace, daemon);
}

/// Its check passes, but what else it did may be half done.
#[test]
fn a_change_beyond_declared_outputs_is_unknown_after_a_crash_and_kept() {
    let rows = [
        (
            "beyond",
            "`undeclared.txt`, which it changed, is not a declared output",
            "+x",
        ),
        (
            "committing",
            "its own commits cannot be shown to be complete",
            "+# whole",
        ),
        ("two", "its output `o` was not written", "+# whole"),
        ("once-two", "its output `o` was not written", ""),
    ];
    for (skill, why, kept) in rows {
        let (workspace, mut gate) = bed();
        let daemon = Daemon::start(&workspace);
        let run = standing(&workspace, &mut gate, skill);
        let daemon = again(&workspace, daemon);
        let (code, detail) = workspace.wait(&run);
        assert_eq!(code, 9, "{skill}: {detail}");
        assert_eq!(
            detail["results"]["verification"]["why"], "change_incomplete",
            "{skill}"
        );
        let warnings = detail["warnings"].to_string();
        assert!(warnings.contains(why), "{skill}: {warnings}");
        let shown = workspace.run(&["show", &run]).expect_code(0).stdout;
        assert!(shown.contains(why), "{shown}");
        expect_restored(&workspace);
        if !kept.is_empty() {
            assert!(shown.contains("not landed: `workerctl diff"), "{shown}");
            let resolve = ["resolve", &run, "--as", "succeeded", "--note", "n"];
            let resolved = workspace.run(&resolve).expect_code(0).stderr;
            assert!(
                resolved.contains("git merge --squash refs/workerctl/runs/"),
                "{resolved}"
            );
            let diff = workspace.run(&["diff", &run]).expect_code(0).stdout;
            assert!(diff.contains(kept), "{skill}: {diff}");
            let kept = format!(
                "refs/workerctl/runs/{}/commit",
                detail["summary"]["run"].as_str().unwrap()
            );
            workspace.git(&["cat-file", "-e", &kept]);
        }
        rest(&workspace, daemon);
    }
}

#[test]
fn executing_what_left_outputs_that_no_check_proves_is_unknown_and_put_back() {
    let (workspace, mut gate) = bed();
    let daemon = Daemon::start(&workspace);
    let run = standing(&workspace, &mut gate, "unproven");
    let daemon = again(&workspace, daemon);
    let (code, detail) = workspace.wait(&run);
    assert_eq!(code, 9, "{detail}");
    assert_eq!(
        detail["results"]["verification"]["why"],
        "nothing_to_prove_it"
    );
    assert_eq!(count(&workspace, "unproven"), 1);
    expect_restored(&workspace);
    let kept = workspace.run(&["diff", &run]).expect_code(0).stdout;
    assert!(kept.contains("+# begun"), "{kept}");
    rest(&workspace, daemon);
}

#[test]
fn a_check_of_the_worker_proves_what_was_left() {
    let (workspace, mut gate) = bed();
    let command = Gate::text("gate");
    let worker = format!(
        "worker: {{id: proved, name: P, type: OpsWorker}}\nsandbox: off\nverification: {{post_execute: [{{command: 'true'}}]}}\n\
         skills:\n  - id: proven\n    description: d\n    mutating: true\n    \
         interface: {{outputs: [{{name: n, type: markdown, destination: notes/p.md}}]}}\n    \
         run: 'echo \"# whole\" > {{n}}; {command}'\n"
    );
    workspace.write("workers/proved/worker.yaml", &worker);
    workspace.commit_all("another worker");
    let daemon = Daemon::start(&workspace);
    let run = standing(&workspace, &mut gate, "proven");
    let daemon = again(&workspace, daemon);
    let detail = expect_committed(&workspace, &run);
    assert_eq!(detail["summary"]["reconciled"], true);
    rest(&workspace, daemon);
}

#[test]
fn executing_what_may_not_be_repeated_is_unknown_although_it_changes_nothing() {
    let (workspace, mut gate) = bed();
    let daemon = Daemon::start(&workspace);
    let run = standing(&workspace, &mut gate, "once");
    let daemon = again(&workspace, daemon);
    let (code, detail) = workspace.wait(&run);
    assert_eq!(code, 9, "{detail}");
    assert_eq!(detail["summary"]["outcome"]["why"], "owner_lost");
    assert_eq!(count(&workspace, "once"), 1);
    let run = standing(&workspace, &mut gate, "once-proven");
    let daemon = again(&workspace, daemon);
    let (code, detail) = workspace.wait(&run);
    assert_eq!(code, 0, "{detail}");
    assert_eq!(detail["summary"]["reconciled"], true);
    assert_eq!(count(&workspace, "once-proven"), 1);
    rest(&workspace, daemon);
}

#[test]
fn executing_what_may_be_repeated_is_a_new_attempt_on_the_restored_tree() {
    let (workspace, mut gate) = bed();
    let daemon = Daemon::start(&workspace);
    let run = standing(&workspace, &mut gate, "repeatable");
    let daemon = again(&workspace, daemon);
    assert_eq!(gate.reached(), (run.clone(), 2));
    gate.pass();
    expect_committed(&workspace, &run);
    assert_eq!(workspace.read("tracked.txt").unwrap(), "as committed\nx\n");
    rest(&workspace, daemon);
}

#[test]
fn verifying_runs_all_checks_again_and_nothing_else() {
    let (workspace, mut gate) = bed();
    let daemon = Daemon::start(&workspace);
    let run = standing(&workspace, &mut gate, "verifying");
    let daemon = again(&workspace, daemon);
    assert_eq!(gate.reached().0, run);
    gate.pass();
    expect_committed(&workspace, &run);
    assert_eq!(count(&workspace, "checked"), 2);
    assert_eq!(count(&workspace, "verifying"), 1);
    rest(&workspace, daemon);
}

#[test]
fn hooks_that_have_finished_are_not_run_again() {
    for (skill, first) in [("hooked", "first-hook"), ("announcing", "first-notice")] {
        let (workspace, mut gate) = bed();
        let daemon = Daemon::start(&workspace);
        let run = standing(&workspace, &mut gate, skill);
        let daemon = again(&workspace, daemon);
        assert_eq!(gate.reached().0, run);
        gate.pass();
        expect_committed(&workspace, &run);
        assert_eq!(count(&workspace, first), 1, "{skill}");
        rest(&workspace, daemon);
    }
}

#[test]
fn backing_off_stays_and_can_be_cancelled() {
    let (workspace, _gate) = bed();
    let daemon = Daemon::start(&workspace);
    let run = workspace.submit(&["backing-off"]);
    workspace.wait_for_phase(&run, "backing_off");
    let daemon = again(&workspace, daemon);
    workspace.wait_for_phase(&run, "backing_off");
    workspace.run(&["cancel", &run]).expect_code(0);
    assert_eq!(workspace.wait(&run).0, 130);
    assert_eq!(count(&workspace, "tried"), 1);
    rest(&workspace, daemon);
}

#[test]
fn finished_stays_finished() {
    let (workspace, mut gate) = bed();
    let daemon = Daemon::start(&workspace);
    let run = standing(&workspace, &mut gate, "repeatable");
    gate.pass();
    let before = expect_committed(&workspace, &run);
    let daemon = again(&workspace, daemon);
    let after = expect_committed(&workspace, &run);
    assert_eq!(before["summary"], after["summary"]);
    let thread = before["thread_path"].as_str().unwrap();
    let thread = std::fs::read_to_string(thread).unwrap();
    let thread: serde_json::Value = serde_json::from_str(&thread).unwrap();
    assert_eq!(thread["worker"]["state"], "completed");
    rest(&workspace, daemon);
}

#[test]
fn what_was_under_way_when_the_store_was_lost_is_settled_by_a_person() {
    let (workspace, mut gate) = bed();
    let daemon = Daemon::start(&workspace);
    let run = standing(&workspace, &mut gate, "changing");
    let told = || {
        let log = workspace.show(&run)["log_path"]
            .as_str()
            .unwrap()
            .to_owned();
        std::fs::read_to_string(log).unwrap().contains("prepared")
    };
    assert!(told(), "the thread tells of the run");
    daemon.kill();
    workspace.run(&["store", "rebuild"]).expect_code(0);
    let daemon = Daemon::start(&workspace);
    // It is not gone on with, what it left is ended, and every view says so.
    let (code, detail) = workspace.wait(&run);
    assert_eq!(code, 9, "{detail}");
    assert_eq!(detail["summary"]["outcome"]["why"], "store_rebuilt");
    assert_eq!(
        workspace.runs()[&run]["outcome"],
        detail["summary"]["outcome"]
    );
    assert_eq!(count(&workspace, "changing"), 1);
    let resolve = ["resolve", &run, "--as", "failed", "--note", "the disk died"];
    workspace.run(&resolve).expect_code(0);
    let (code, detail) = workspace.wait(&run);
    assert_eq!((code, failure(&detail)), (1, "resolved_failed"));
    let again = workspace.run(&[&resolve[..], &["--json"]].concat());
    assert_eq!(again.expect_code(8).refusal(), "not_unknown");
    // Neither the settling nor what was refused brings it back to life.
    let daemon = self::again(&workspace, daemon);
    assert_eq!(workspace.show(&run)["summary"], detail["summary"]);
    assert_eq!(count(&workspace, "changing"), 1);
    rest(&workspace, daemon);
}

#[test]
fn what_is_known_is_not_settled_and_not_revived() {
    let (workspace, mut gate) = bed();
    let daemon = Daemon::start(&workspace);
    let run = standing(&workspace, &mut gate, "repeatable");
    gate.pass();
    let before = expect_committed(&workspace, &run);
    let daemon = again(&workspace, daemon);
    let resolve = ["resolve", &run, "--as", "failed", "--note", "no", "--json"];
    let refused = workspace.run(&resolve).expect_code(8);
    assert_eq!(refused.refusal(), "not_unknown");
    let daemon = again(&workspace, daemon);
    let after = expect_committed(&workspace, &run);
    assert_eq!(before["summary"], after["summary"]);
    rest(&workspace, daemon);
}
