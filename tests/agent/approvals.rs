//! A person approves what a model has made.

use serde_json::json;

use super::workspace::daemon::Daemon;
use super::workspace::eventually;
use super::{Rig, call, changing, outcome, reading, text};

/// Waits until a person is asked about the run.
fn until_asked(rig: &Rig, run: &str) {
    eventually("a person is asked", || {
        let phase = &rig.workspace.show(run)["summary"]["phase"];
        (phase == "awaiting_approval").then_some(())
    });
}

#[test]
fn what_a_model_made_lands_when_a_person_has_approved_it() {
    let skill = changing("    approval_required: true\n");
    let write = json!({"path": "new.txt", "content": "made by a model\n"});
    let rig = Rig::new(
        &skill,
        vec![call("write_file", &write), text("# The report")],
    );
    let daemon = Daemon::start(&rig.workspace);
    let head = rig.workspace.git(&["rev-parse", "HEAD"]);
    let run = rig.workspace.submit(&["change"]);
    until_asked(&rig, &run);
    assert_eq!(rig.workspace.git(&["rev-parse", "HEAD"]), head);
    assert_eq!(rig.workspace.read("new.txt"), None);
    let diff = rig.workspace.run(&["diff", &run]).expect_code(0);
    assert!(diff.stdout.contains("+made by a model"), "{diff:?}");
    assert!(diff.stdout.contains("+# The report"), "{diff:?}");
    rig.workspace.run(&["approve", &run]).expect_code(0);
    let (_, shown) = rig.workspace.wait(&run);
    assert_eq!(outcome(&shown)["kind"], "succeeded", "{shown:#}");
    assert_eq!(
        rig.workspace.git(&["show", "HEAD:new.txt"]),
        "made by a model\n"
    );
    assert_eq!(rig.workspace.committed_runs(), [run.as_str()]);
    assert_eq!(rig.asked(), 2, "nothing was paid for twice");
    daemon.stop();
}

#[test]
fn nothing_is_asked_of_a_model_before_a_person_has_said_yes() {
    let skill = reading("    approval_required: true\n");
    let rig = Rig::new(&skill, vec![text("100")]);
    let daemon = Daemon::start(&rig.workspace);
    let denied = rig.workspace.submit(&["mrr"]);
    until_asked(&rig, &denied);
    rig.workspace
        .run(&["deny", &denied, "--note", "not today"])
        .expect_code(0);
    let (_, shown) = rig.workspace.wait(&denied);
    assert_eq!(outcome(&shown)["kind"], "denied", "{shown:#}");
    assert_eq!(rig.asked(), 0);
    // The same again is another run, about which a person is asked again.
    let again = rig.workspace.run(&["retry", &denied, "--no-wait"]);
    let run = again.expect_code(0).stdout.trim().to_owned();
    until_asked(&rig, &run);
    assert_eq!(rig.asked(), 0);
    rig.workspace.run(&["approve", &run]).expect_code(0);
    let (_, shown) = rig.workspace.wait(&run);
    assert_eq!(outcome(&shown)["kind"], "succeeded", "{shown:#}");
    assert_eq!(rig.asked(), 1);
    daemon.stop();
}
