//! An engine that is killed in the middle of a conversation.
//!
//! `WORKERCTL_TEST_ROUNDS=<n>` sets how often an answer is cut off at random (6 by default).

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::server::script::{Reply, Say};
use super::workspace::daemon::Daemon;
use super::workspace::gate::Gate;
use super::workspace::{Dice, rounds};
use super::{Rig, call, changing, outcome, reading, text};

/// A turn that reads something.
fn look() -> Reply {
    call("read_file", &json!({"path": "tracked.txt"}))
}

/// So many turns that call something, and the last that answers.
fn script(turns: usize) -> Vec<Reply> {
    let mut script = vec![look(); turns];
    script.push(text("The MRR is 42."));
    script
}

const LONG: &str = "    max_iterations: 100\n";

/// How often a request with so many turns before it came.
fn asked_after(rig: &Rig) -> BTreeMap<usize, usize> {
    let mut found = BTreeMap::new();
    for seen in rig.server.requests() {
        let messages = seen.body["messages"].as_array().unwrap().len();
        *found.entry(messages / 2).or_default() += 1;
    }
    found
}

fn turns_taken(shown: &Value) -> usize {
    let timeline = shown["timeline"].as_array().unwrap().iter();
    timeline.filter(|event| event[1] == "turn_taken").count()
}

#[test]
fn a_conversation_goes_on_with_the_turns_that_it_had() {
    const TURNS: usize = 4;
    for lost in 0..=TURNS {
        let whole = script(TURNS);
        let mut until = whole[..lost].to_vec();
        until.push(Reply::Nothing);
        let rig = Rig::new(&reading(LONG), until);
        let daemon = Daemon::start(&rig.workspace);
        let run = rig.workspace.submit(&["mrr"]);
        rig.server.wait_for_requests(lost + 1);
        daemon.kill();
        rig.server.follow(whole[lost..].to_vec());
        let daemon = Daemon::start(&rig.workspace);
        let (code, shown) = rig.workspace.wait(&run);
        assert_eq!(code, 0, "{lost}: {shown:#}");
        assert_eq!(outcome(&shown)["kind"], "succeeded", "{lost}: {shown:#}");
        // Only the request whose answer was lost came again, and it was the same.
        let expected: BTreeMap<usize, usize> = (0..=TURNS)
            .map(|turn| (turn, 1 + usize::from(turn == lost)))
            .collect();
        assert_eq!(asked_after(&rig), expected, "{lost}");
        let seen = rig.server.requests();
        assert_eq!(seen[lost].body, seen[lost + 1].body, "{lost}");
        assert_eq!(turns_taken(&shown), TURNS + 1, "{lost}: {shown:#}");
        assert_eq!(shown["summary"]["spent"]["turns"], TURNS + 1, "{lost}");
        assert!(rig.logs().contains("The MRR is 42."), "{lost}");
        daemon.stop();
        rig.workspace.expect_no_process();
    }
}

#[test]
fn in_each_protocol_the_same_request_comes_again() {
    for (provider, _) in super::PROVIDERS {
        let both: Reply = Say::text("Looking.")
            .call("read_file", r#"{"path": "tracked.txt"}"#)
            .call("list_directory", "{}")
            .usage(100, 20, 0, 0)
            .into();
        let rig = Rig::spoken(
            provider,
            &reading(LONG),
            "",
            vec![look(), both, Reply::Nothing],
        );
        let daemon = Daemon::start(&rig.workspace);
        let run = rig.workspace.submit(&["mrr"]);
        rig.server.wait_for_requests(3);
        daemon.kill();
        rig.server.follow(vec![text("The MRR is 42.")]);
        let daemon = Daemon::start(&rig.workspace);
        let (code, shown) = rig.workspace.wait(&run);
        assert_eq!(code, 0, "{provider}: {shown:#}");
        let seen = rig.server.requests();
        assert_eq!(seen.len(), 4, "{provider}");
        assert_eq!(seen[2].body, seen[3].body, "{provider}");
        assert!(
            seen[3].body.to_string().contains("as committed"),
            "{provider}: {}",
            seen[3].body
        );
        daemon.stop();
    }
}

#[test]
fn a_call_that_was_cut_off_is_carried_out_again_and_its_turn_is_not() {
    let command = format!("{}; echo passed", Gate::text("did/stands"));
    let script = vec![
        look(),
        call("bash", &json!({"command": command})),
        text("Done."),
    ];
    let rig = Rig::new(&reading(LONG), script);
    let mut gate = Gate::new(&rig.workspace, "did/stands");
    let daemon = Daemon::start(&rig.workspace);
    let run = rig.workspace.submit(&["mrr"]);
    assert_eq!(gate.reached().1, 1);
    daemon.kill();
    let daemon = Daemon::start(&rig.workspace);
    assert_eq!(gate.reached().1, 2);
    gate.pass();
    let (code, shown) = rig.workspace.wait(&run);
    assert_eq!(code, 0, "{shown:#}");
    assert_eq!(asked_after(&rig), BTreeMap::from([(0, 1), (1, 1), (2, 1)]));
    assert_eq!(rig.results(2)[1], "passed\n");
    daemon.stop();
    rig.workspace.expect_no_process();
}

#[test]
fn a_change_that_was_cut_off_is_unknown_and_lands_nowhere() {
    let write = json!({"path": "draft.txt", "content": "half"});
    let rig = Rig::new(
        &changing(LONG),
        vec![call("write_file", &write), Reply::Nothing],
    );
    let daemon = Daemon::start(&rig.workspace);
    let run = rig.workspace.submit(&["change"]);
    rig.server.wait_for_requests(2);
    daemon.kill();
    let daemon = Daemon::start(&rig.workspace);
    let (code, shown) = rig.workspace.wait(&run);
    assert_ne!(code, 0);
    let unknown = json!({"kind": "unknown", "why": "owner_lost"});
    assert_eq!(outcome(&shown), &unknown, "{shown:#}");
    assert_eq!(rig.asked(), 2);
    assert!(rig.workspace.committed_runs().is_empty());
    assert_eq!(rig.workspace.read("draft.txt"), None);
    daemon.stop();
}

#[test]
fn a_change_that_may_be_repeated_begins_anew_in_a_tree_like_its_base() {
    let write = json!({"path": "draft.txt", "content": "half"});
    let skill = changing(&format!("{LONG}    idempotent: true\n"));
    let rig = Rig::new(&skill, vec![call("write_file", &write), Reply::Nothing]);
    let daemon = Daemon::start(&rig.workspace);
    let run = rig.workspace.submit(&["change"]);
    rig.server.wait_for_requests(2);
    daemon.kill();
    let report = json!({"name": "report", "content": "whole\n"});
    rig.server.follow(vec![
        call("bash", &json!({"command": "git status --porcelain; ls"})),
        call("submit_output", &report),
        text("Done."),
    ]);
    let daemon = Daemon::start(&rig.workspace);
    let (code, shown) = rig.workspace.wait(&run);
    assert_eq!(code, 0, "{shown:#}");
    assert_eq!(asked_after(&rig), BTreeMap::from([(0, 2), (1, 2), (2, 1)]));
    let there = &rig.results(3)[0];
    assert_eq!(there, "tracked.txt\nworkerctl.yaml\nworkers\n");
    assert_eq!(rig.workspace.git(&["show", "HEAD:report.md"]), "whole\n");
    assert_eq!(rig.workspace.committed_runs(), [run]);
    daemon.stop();
}

/// Each engine takes one turn, and is killed once the next one is asked for.
#[test]
fn fifty_turns_go_on_over_fifty_killed_engines() {
    const TURNS: usize = 50;
    let rig = Rig::new(&reading(LONG), vec![Reply::Nothing]);
    let mut run = String::new();
    for turn in 1..=TURNS {
        rig.server.follow(vec![look(), Reply::Nothing]);
        let daemon = Daemon::start(&rig.workspace);
        if run.is_empty() {
            run = rig.workspace.submit(&["mrr"]);
        }
        // Each round before has asked in vain once.
        rig.server.wait_for_requests(2 * turn);
        daemon.kill();
    }
    rig.server.follow(vec![text("The MRR is 42.")]);
    let daemon = Daemon::start(&rig.workspace);
    let (code, shown) = rig.workspace.wait(&run);
    assert_eq!(code, 0, "{shown:#}");
    // None that was kept is asked for again.
    let expected: BTreeMap<usize, usize> = (0..=TURNS)
        .map(|turn| (turn, 1 + usize::from(turn > 0)))
        .collect();
    assert_eq!(asked_after(&rig), expected);
    assert_eq!(turns_taken(&shown), TURNS + 1);
    assert_eq!(shown["summary"]["spent"]["turns"], TURNS + 1);
    daemon.stop();
    rig.workspace.expect_no_process();
}

/// The answer is the output, also where the engine was lost between the turn and the end of the attempt.
#[test]
fn the_last_answer_is_kept_whenever_the_engine_is_lost() {
    let skill = reading(
        "    interface: {outputs: [{name: report, type: markdown, destination: report.md}]}\n",
    );
    let mut dice = Dice(11);
    for round in 0..rounds(6) {
        let answer: Reply = Say::text("The MRR ")
            .and("is 42.")
            .usage(100, 20, 0, 0)
            .gated()
            .into();
        let rig = Rig::new(&skill, vec![answer]);
        let daemon = Daemon::start(&rig.workspace);
        let run = rig.workspace.submit(&["mrr"]);
        rig.server.wait_for_requests(1);
        rig.server.let_through(1_000);
        std::thread::sleep(Duration::from_micros(dice.below(30_000)));
        daemon.kill();
        let daemon = Daemon::start(&rig.workspace);
        let (code, shown) = rig.workspace.wait(&run);
        assert_eq!(code, 0, "{round}: {shown:#}");
        let report = rig.workspace.read("report.md");
        assert_eq!(
            report.as_deref(),
            Some("The MRR is 42.\n"),
            "{round}: {shown:#}"
        );
        daemon.stop();
    }
}
