//! What attempts leave to each other: nothing, unless they continue one conversation.

use serde_json::json;

use super::server::script::Reply;
use super::workspace::daemon::Daemon;
use super::{Rig, call, changing, outcome, reading, text};

const OUTPUT: &str =
    "    interface: {outputs: [{name: report, type: file, destination: out.txt}]}\n";

fn submit(content: &str) -> Reply {
    call(
        "submit_output",
        &json!({"name": "report", "content": content}),
    )
}

fn bash(command: &str) -> Reply {
    call("bash", &json!({"command": command}))
}

#[test]
fn a_retry_of_a_conversation_publishes_nothing_of_an_earlier_attempt() {
    let checked = "    verification: [{command: 'test \"$WORKERCTL_ATTEMPT\" -ge 2'}]\n";
    let limited = "    max_iterations: 2\n";
    let refused = || Reply::status(500);
    let rows: [(&str, &str, Vec<Reply>); 6] = [
        ("answered", checked, vec![text("draft"), text("final")]),
        (
            "submitted",
            checked,
            vec![submit("draft"), text("x"), text("final")],
        ),
        (
            "answered, submitted",
            checked,
            vec![text("draft"), submit("final\n"), text("x")],
        ),
        (
            "no turns left",
            limited,
            vec![submit("draft"), bash("true"), text("final")],
        ),
        (
            "server failed",
            "",
            vec![
                submit("draft"),
                refused(),
                refused(),
                refused(),
                text("final"),
            ],
        ),
        (
            "temporary file",
            checked,
            vec![
                bash("echo draft > \"$TMPDIR/left\""),
                text("draft"),
                bash("test ! -e \"$TMPDIR/left\" && echo clean"),
                text("final"),
            ],
        ),
    ];
    for (name, more, script) in rows {
        let retry = "    retry: {max_attempts: 2, backoff: 1ms}\n";
        let rig = Rig::new(&reading(&format!("{retry}{OUTPUT}{more}")), script);
        let shown = rig.ran(&["mrr"]);
        assert_eq!(outcome(&shown)["kind"], "succeeded", "{name}: {shown:#}");
        assert_eq!(shown["summary"]["attempts"], 2, "{name}");
        assert_eq!(rig.workspace.read("out.txt").unwrap(), "final\n", "{name}");
        if name == "temporary file" {
            assert!(rig.results(3)[0].contains("clean"), "{:?}", rig.results(3));
        }
    }
}

/// After a kill, and after an orderly end that puts the run back into the queue.
#[test]
fn a_conversation_that_continues_keeps_what_it_has_written() {
    for is_killed in [true, false] {
        let first = vec![
            bash("echo kept > \"$TMPDIR/kept\""),
            submit("whole\n"),
            Reply::Nothing,
        ];
        let skill = reading(&format!("    max_iterations: 9\n{OUTPUT}"));
        let rig = Rig::configured(&skill, "drain_grace: 1s\n", first);
        let daemon = Daemon::start(&rig.workspace);
        let run = rig.workspace.submit(&["mrr"]);
        rig.server.wait_for_requests(3);
        if is_killed {
            daemon.kill();
        } else {
            daemon.stop();
        }
        rig.server
            .follow(vec![bash("cat \"$TMPDIR/kept\""), text("Done.")]);
        let daemon = Daemon::start(&rig.workspace);
        let (code, shown) = rig.workspace.wait(&run);
        assert_eq!(code, 0, "{is_killed}: {shown:#}");
        assert_eq!(
            rig.workspace.read("out.txt").unwrap(),
            "whole\n",
            "{is_killed}"
        );
        let last = rig.asked() - 1;
        let results = rig.results(last);
        assert!(
            results.last().unwrap().contains("kept"),
            "{is_killed}: {results:?}"
        );
        daemon.stop();
    }
}

/// A check that its work passes proves nothing: the model had not said that it was done.
#[test]
fn a_conversation_that_was_lost_is_unknown_whatever_it_wrote() {
    let more = "    max_iterations: 9\n    verification: [{command: grep -q whole report.md}]\n";
    let rig = Rig::new(&changing(more), vec![submit("whole\n"), Reply::Nothing]);
    let daemon = Daemon::start(&rig.workspace);
    let run = rig.workspace.submit(&["change"]);
    rig.server.wait_for_requests(2);
    daemon.kill();
    let daemon = Daemon::start(&rig.workspace);
    let (code, shown) = rig.workspace.wait(&run);
    assert_eq!(code, 9, "{shown:#}");
    assert!(rig.workspace.committed_runs().is_empty());
    assert_eq!(rig.workspace.read("report.md"), None);
    let kept = rig.workspace.run(&["diff", &run]).expect_code(0).stdout;
    assert!(kept.contains("+whole"), "{kept}");
    daemon.stop();
}
