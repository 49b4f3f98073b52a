//! What a run may spend: asked before each turn, counted over all attempts, told wherever runs are told.

use serde_json::{Value, json};

use super::server::script::{Reply, Say};
use super::workspace::daemon::Daemon;
use super::{Rig, failure, outcome, reading, text};

/// An answer that lets the conversation go on; its turn costs 1,100 tokens.
fn working() -> Reply {
    let call = Say::text("Still at it.").call("list_directory", "{}");
    call.usage(1_000, 100, 0, 0).into()
}

/// Small answers, and a price of one for a thousand tokens.
const MODEL: &str = "    max_output_tokens: 100\n    prices: {input: 1000, output: 1000}\n";

fn skill(budget: &str) -> String {
    reading(&format!("    max_iterations: 20\n    budget: {budget}\n"))
}

#[test]
fn a_turn_that_could_exceed_the_budget_is_not_begun() {
    // The third turn would have the 1,100 tokens of the second and 100 more, and 2,200 are spent.
    let rows = [
        ("{turns: 2}", 2, "budget.turns"),
        ("{tokens: 3300}", 2, "budget.tokens"),
        ("{money: 3.30}", 2, "budget.money"),
        ("{tokens: 3300, money: 100, turns: 100}", 2, "budget.tokens"),
        ("{tokens: 100}", 0, "budget.tokens"),
        ("{money: 0.1}", 0, "budget.money"),
    ];
    for (budget, requests, key) in rows {
        let rig = Rig::configured(&skill(budget), MODEL, vec![working()]);
        let shown = rig.fails(&["mrr"]);
        let ended = failure(&shown);
        assert_eq!(ended["code"], "budget_exhausted", "{budget}: {shown:#}");
        assert_eq!(ended["step"], "execute", "{budget}");
        let message = ended["message"].as_str().unwrap();
        assert!(message.contains(key), "{budget}: {message}");
        assert_eq!(rig.asked(), requests, "{budget}: {message}");
        let logs = rig.logs();
        assert_eq!(
            logs.contains("Still at it."),
            requests > 0,
            "{budget}: {logs}"
        );
    }
}

#[test]
fn turns_that_the_server_does_not_count_are_counted_by_their_size() {
    for (budget, key) in [
        ("{tokens: 20000}", "budget.tokens"),
        ("{money: 20}", "budget.money"),
    ] {
        let more = "    max_iterations: 100\n".to_owned() + &format!("    budget: {budget}\n");
        let silent = Say::text("Still at it.").call("list_directory", "{}");
        let rig = Rig::configured(&reading(&more), MODEL, vec![silent.into()]);
        let shown = rig.fails(&["mrr"]);
        let ended = failure(&shown);
        assert_eq!(ended["code"], "budget_exhausted", "{budget}: {shown:#}");
        assert!(
            ended["message"].as_str().unwrap().contains(key),
            "{shown:#}"
        );
        let spent = &shown["summary"]["spent"];
        assert_eq!(spent["unmeasured"], spent["turns"], "{spent}");
        // More than one turn fits, and not all that are allowed.
        assert!((2..30).contains(&rig.asked()), "{budget}: {}", rig.asked());
    }
}

#[test]
fn a_budget_of_the_configuration_counts_where_the_skill_says_nothing() {
    let more = format!("{MODEL}budget: {{turns: 1}}\n");
    let rig = Rig::configured(&reading(""), &more, vec![working()]);
    let shown = rig.fails(&["mrr"]);
    assert_eq!(failure(&shown)["code"], "budget_exhausted", "{shown:#}");
    assert_eq!(rig.asked(), 1);
}

#[test]
fn what_a_cache_gave_is_not_counted_as_tokens() {
    let cached: Reply = Say::nothing()
        .call("list_directory", "{}")
        .usage(100, 10, 1_000_000, 0)
        .into();
    let script = vec![cached.clone(), cached, text("Done.")];
    // Before the next turn all that was read counts as new, for it may be.
    let rig = Rig::configured(&skill("{tokens: 1100000}"), MODEL, script);
    let shown = rig.ran(&["mrr"]);
    assert_eq!(outcome(&shown)["kind"], "succeeded", "{shown:#}");
    assert_eq!(shown["summary"]["spent"]["tokens"]["cache_read"], 2_000_000);
}

#[test]
fn four_fifths_of_a_budget_are_told_once() {
    for (budget, told) in [("{turns: 5}", 1), ("{turns: 200}", 0)] {
        let mut script = vec![working(); 4];
        script.push(text("Done."));
        let rig = Rig::configured(&skill(budget), MODEL, script);
        rig.run(&["mrr"]).expect_code(0);
        let logs = rig.logs();
        let count = logs.matches("80% of the run's budget is spent").count();
        assert_eq!(count, told, "{budget}: {logs}");
    }
}

#[test]
fn what_was_spent_is_told_wherever_runs_are() {
    let rig = Rig::configured(&skill("{money: 50}"), MODEL, vec![working(), text("Done.")]);
    let shown = rig.ran(&["mrr"]);
    // 1,100 of the first turn, and 120 of the second.
    let spent = json!({
        "turns": 2,
        "tokens": {"input": 1_100, "output": 120, "cache_read": 0, "cache_write": 0},
        "money": "1.22",
        "unmeasured": 0,
    });
    assert_eq!(shown["summary"]["spent"], spent, "{shown:#}");
    let run = shown["summary"]["run"].as_str().unwrap();
    assert_eq!(rig.workspace.runs()[run]["spent"], spent);
    let line = metrics(&rig);
    assert_eq!(line["iterations"], 2, "{line}");
    assert_eq!(line["tokens"], spent["tokens"], "{line}");
    assert_eq!(line["money"], "1.22", "{line}");
}

#[test]
fn what_a_run_has_spent_so_far_is_told_while_it_runs() {
    let more = format!("{MODEL}drain_grace: 1ms\n");
    let script = vec![working(), Reply::Nothing];
    let rig = Rig::configured(&skill("{money: 50}"), &more, script);
    let daemon = Daemon::start(&rig.workspace);
    let run = rig.workspace.submit(&["mrr"]);
    rig.server.wait_for_requests(2);
    let status = rig.workspace.json(&["status"]).to_string();
    assert!(status.contains("\"money\":\"1.10\""), "{status}");
    assert_eq!(rig.workspace.show(&run)["summary"]["spent"]["turns"], 1);
    daemon.stop();
}

#[test]
fn turns_of_an_attempt_that_failed_count_too() {
    let more = "    retry: {max_attempts: 4, backoff: 1ms}\n";
    let skill = reading(&format!("    budget: {{turns: 3}}\n{more}"));
    let empty: Reply = Say::nothing().usage(10, 1, 0, 0).into();
    let script = vec![
        working(),
        empty.clone(),
        working(),
        empty.clone(),
        working(),
        empty,
    ];
    let rig = Rig::configured(&skill, MODEL, script);
    let shown = rig.fails(&["mrr"]);
    assert_eq!(failure(&shown)["code"], "budget_exhausted", "{shown:#}");
    assert_eq!(shown["summary"]["spent"]["turns"], 3, "{shown:#}");
    // What came of no turn was paid all the same.
    assert_eq!(
        shown["summary"]["spent"]["tokens"]["input"], 3_020,
        "{shown:#}"
    );
}

/// The only line of metrics.
fn metrics(rig: &Rig) -> Value {
    let text = rig.workspace.read("workspace/metrics/metrics.jsonl");
    let text = text.unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    serde_json::from_str(&text).unwrap()
}
