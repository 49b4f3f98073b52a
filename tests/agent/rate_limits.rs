//! A run whose model takes no more requests waits in the queue, where it is told to.

use super::server::script::Reply;
use super::workspace::daemon::Daemon;
use super::workspace::{Workspace, eventually};
use super::{Rig, call, changing, failure, outcome, reading, text};
use serde_json::{Value, json};

/// A skill that needs no model.
const OTHER: &str =
    "  - {id: other, description: d, mutating: true, run: echo other >> tracked.txt}\n";

fn limited(seconds: u64) -> Reply {
    Reply::status_with(429, "retry-after", &seconds.to_string())
}

/// The newest run of a skill.
fn newest(workspace: &Workspace, skill: &str) -> Value {
    workspace.json(&["runs", "--skill", skill])["runs"][0].clone()
}

fn wait_until_it_waits(workspace: &Workspace) -> Value {
    eventually("it waits for the limit", || {
        let run = newest(workspace, "change");
        let why = run["waiting_for"].as_str().unwrap_or_default();
        why.starts_with("the rate limit of its model to end: ")
            .then_some(run)
    })
}

#[test]
fn without_a_word_a_rate_limit_fails_the_run() {
    for more in [
        "",
        "    on_rate_limit: {wait: 59m}\n",
        "    on_rate_limit: false\n",
    ] {
        let skill = reading(more);
        let rig = Rig::new(&skill, vec![limited(3600)]);
        if more.contains("false") {
            let path = "workerctl.yaml";
            let config = rig.workspace.read(path).unwrap();
            rig.workspace
                .write(path, &format!("{config}on_rate_limit: {{wait: 6h}}\n"));
        }
        let shown = rig.fails(&["mrr"]);
        assert_eq!(failure(&shown)["code"], "rate_limited", "{shown:#}");
        assert_eq!(rig.asked(), 1);
    }
}

#[test]
fn a_run_waits_in_the_queue_and_holds_nothing() {
    let skills = format!("{}{OTHER}", changing("    on_rate_limit: {wait: 2h}\n"));
    let rig = Rig::configured(&skills, "max_parallel: 1\n", vec![limited(3600)]);
    let workspace = &rig.workspace;
    let daemon = Daemon::start(workspace);
    workspace
        .run(&["run", "change", "--no-wait"])
        .expect_code(0);
    let waits = wait_until_it_waits(workspace);
    assert_eq!(waits["phase"], "queued");
    let run = waits["run"].as_str().unwrap();
    for line in [&["runs"][..], &["show", run], &["status"]] {
        let told = workspace.run(line).expect_code(0).stdout;
        assert!(
            told.contains("the rate limit of its model to end: 2"),
            "{line:?}: {told}"
        );
    }
    // Another run of its worker and its repository uses the only place, and the tree.
    workspace.run(&["run", "other"]).expect_code(0);
    assert_eq!(workspace.committed_runs().len(), 1);
    daemon.stop();
    // The next daemon lets it wait on.
    let daemon = Daemon::start(workspace);
    let still = wait_until_it_waits(workspace);
    assert_eq!(still["waiting_for"], waits["waiting_for"]);
    workspace.run(&["run", "other"]).expect_code(0);
    let shown = workspace.json(&["show", run]);
    let attempt = &shown["attempts"][0];
    assert_eq!(attempt["failure"]["code"], "rate_limited", "{shown:#}");
    assert!(
        attempt["execution"]["ended"]["until"].is_string(),
        "{shown:#}"
    );
    workspace.run(&["cancel", run]).expect_code(0);
    let ended = eventually("it is cancelled", || {
        let run = newest(workspace, "change");
        (run["phase"] == "finished").then_some(run)
    });
    assert_eq!(ended["outcome"]["kind"], "cancelled");
    daemon.stop();
    assert_eq!(rig.asked(), 1);
    assert_eq!(workspace.committed_runs().len(), 2);
}

/// The server names a moment that has come by the time the run waits for it.
#[test]
fn a_run_goes_on_when_the_limit_ends_and_the_attempt_does_not_count() {
    let submit = call(
        "submit_output",
        &json!({"name": "report", "content": "done\n"}),
    );
    let script = vec![limited(0), limited(0), limited(0), submit, text("Done.")];
    let rig = Rig::new(&changing("    on_rate_limit: {wait: 1h}\n"), script);
    let shown = rig.ran(&["change"]);
    assert_eq!(outcome(&shown)["kind"], "succeeded", "{shown:#}");
    assert_eq!(shown["summary"]["attempts"], 2, "{shown:#}");
    assert_eq!(rig.asked(), 5);
    assert_eq!(rig.workspace.committed_runs().len(), 1);
    // It may not be repeated: a turn that was taken may have done something.
    let look = call("list_directory", &json!({}));
    let script = vec![look, limited(3600)];
    let rig = Rig::new(&changing("    on_rate_limit: {wait: 2h}\n"), script);
    let shown = rig.fails(&["change"]);
    assert_eq!(failure(&shown)["code"], "rate_limited", "{shown:#}");
}

#[test]
fn what_only_reads_goes_on_after_the_turns_that_it_had() {
    let look = call("list_directory", &json!({}));
    let script = vec![look, limited(0), limited(0), limited(0), text("It is 42.")];
    let rig = Rig::new(&reading("    on_rate_limit: {wait: 1h}\n"), script);
    let shown = rig.ran(&["mrr"]);
    assert_eq!(outcome(&shown)["kind"], "succeeded", "{shown:#}");
    assert_eq!(
        (
            &shown["summary"]["attempts"],
            &shown["summary"]["spent"]["turns"]
        ),
        (&2.into(), &2.into())
    );
    // The last request has the turn before the limit, with what came of its call.
    assert_eq!(rig.results(4).len(), 1);
}
