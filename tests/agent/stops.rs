//! Conversations that somebody ends.

use serde_json::json;

use super::server::script::{Reply, Say};
use super::workspace::daemon::Daemon;
use super::workspace::gate::Gate;
use super::{Rig, call, outcome, reading};

/// Cancels a run and expects that it ends so at once, and that nothing of it is left.
fn cancelled(rig: &Rig, daemon: Daemon, run: &str, name: &str) {
    rig.workspace.run(&["cancel", run]).expect_code(0);
    let (code, shown) = rig.workspace.wait(run);
    assert_ne!(code, 0, "{name}");
    assert_eq!(outcome(&shown)["kind"], "cancelled", "{name}: {shown:#}");
    assert_eq!(rig.asked(), 1, "{name}");
    daemon.stop();
    rig.workspace.expect_no_process();
    rig.holds_no_key(&shown.to_string());
}

#[test]
fn cancelling_ends_a_turn_at_once() {
    // Nothing of these ends by itself while the test lasts.
    let rows: [(&str, Reply); 3] = [
        ("no answer", Reply::Nothing),
        (
            "half an answer",
            Say::text("Half").and("more").gated().into(),
        ),
        (
            "before another try",
            Reply::status_with(503, "retry-after", "59"),
        ),
    ];
    for (name, reply) in rows {
        let rig = Rig::new(&reading(""), vec![reply]);
        let daemon = Daemon::start(&rig.workspace);
        let run = rig.workspace.submit(&["mrr"]);
        rig.server.wait_for_requests(1);
        cancelled(&rig, daemon, &run, name);
    }
}

#[test]
fn cancelling_ends_a_command_of_the_model() {
    let command = format!("{}; sleep 1000", Gate::text("did/stands"));
    let script = vec![call("bash", &json!({"command": command}))];
    let rig = Rig::new(&reading(""), script);
    let mut gate = Gate::new(&rig.workspace, "did/stands");
    let daemon = Daemon::start(&rig.workspace);
    let run = rig.workspace.submit(&["mrr"]);
    gate.reached();
    cancelled(&rig, daemon, &run, "bash");
}

#[test]
fn a_cancelled_change_leaves_nothing() {
    let write = json!({"path": "draft.txt", "content": "half"});
    let script = vec![call("write_file", &write), Reply::Nothing];
    let rig = Rig::new(&super::changing(""), script);
    let daemon = Daemon::start(&rig.workspace);
    let run = rig.workspace.submit(&["change"]);
    rig.server.wait_for_requests(2);
    rig.workspace.run(&["cancel", &run]).expect_code(0);
    let (_, shown) = rig.workspace.wait(&run);
    assert_eq!(outcome(&shown)["kind"], "cancelled", "{shown:#}");
    assert_eq!(rig.workspace.read("draft.txt"), None);
    assert!(rig.workspace.committed_runs().is_empty());
    assert_eq!(rig.workspace.git(&["status", "--porcelain"]), "");
    daemon.stop();
}

/// What it would have come to is not known, though the engine knows that it was ended.
#[test]
fn a_call_that_a_stop_ended_is_carried_out_again_by_the_next_engine() {
    let command = "test -e ~/did/before || { touch ~/did/before; sleep 1000; }; echo whole";
    let script = vec![
        call("bash", &json!({"command": command})),
        super::text("Done."),
    ];
    let rig = Rig::configured(&reading(""), "drain_grace: 1s\n", script);
    let daemon = Daemon::start(&rig.workspace);
    let run = rig.workspace.submit(&["mrr"]);
    let before = rig.workspace.home.join("did/before");
    super::workspace::eventually("the command to run", || before.exists().then_some(()));
    daemon.stop();
    let daemon = Daemon::start(&rig.workspace);
    let (_, shown) = rig.workspace.wait(&run);
    assert_eq!(outcome(&shown)["kind"], "succeeded", "{shown:#}");
    assert_eq!(rig.results(1), ["whole\n"]);
    assert_eq!(rig.asked(), 2);
    daemon.stop();
}

#[test]
fn a_child_that_may_not_start_any_more_is_started_by_the_next_engine() {
    let skills = format!(
        "{}  - {{id: count, description: counts, run: 'echo counted'}}\n",
        reading("")
    );
    let slow = Say::nothing()
        .call("use_skill", r#"{"skill": "count"}"#)
        .gated()
        .into();
    let rig = Rig::configured(
        &skills,
        "drain_grace: 1s\n",
        vec![slow, super::text("Done.")],
    );
    let mut daemon = Daemon::start(&rig.workspace);
    let run = rig.workspace.submit(&["mrr"]);
    rig.server.wait_for_requests(1);
    daemon.signal(rustix::process::Signal::TERM);
    daemon.wait_for_notice("STOPPING=1");
    rig.server.let_through(100);
    daemon.ended();
    let daemon = Daemon::start(&rig.workspace);
    let (_, shown) = rig.workspace.wait(&run);
    assert_eq!(outcome(&shown)["kind"], "succeeded", "{shown:#}");
    assert!(rig.results(1)[0].starts_with("counted"), "{shown:#}");
    assert_eq!(rig.asked(), 2);
    daemon.stop();
}
