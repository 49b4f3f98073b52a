//! What agent programs cost, whether they tell it or are ended before.

use serde_json::Value;

use super::workspace::daemon::Daemon;
use super::workspace::gate::Gate;
use super::{LOOK, Rig, ended, played};

/// Prices of the model `m`: one for a thousand tokens of an answer.
const PRICES: &str =
    "models: {m: {provider: ollama, model: m, prices: {input: 0, output: 1000}}}\n";

fn spent(shown: &Value) -> &Value {
    &shown["summary"]["spent"]
}

/// Shell text that prints the first lines of what a program printed in this case.
fn begun(program: &str, case: &str, lines: usize) -> String {
    let whole = played(program, case, 0).replace("; exit 0", "");
    format!("{whole} | head -n {lines}")
}

#[test]
fn tokens_and_money_are_those_that_the_program_tells_in_the_end() {
    // Of claude's answers 2 tokens are told at their start, and 100 at their end.
    for (program, case, tokens, output, money) in [
        ("claude", "cut_once", 355, 205, Some("0.0047")),
        ("claude", "success", 4, 2, Some("0.000048")),
        ("claude", "turns", 4, 2, Some("0.000048")),
        ("codex", "success", 4, 2, None),
        ("opencode", "success", 36, 14, Some("0.00")),
        ("gemini", "success", 4, 2, None),
        ("qwen", "success", 4, 2, Some("0.000048")),
    ] {
        let rig = Rig::new(
            &format!("cli: {program}"),
            &format!("{LOOK}}}\n"),
            &played(program, case, 0),
        );
        let shown = rig.ran("look");
        let spent = spent(&shown);
        let all = spent["tokens"].as_object().unwrap().values();
        let sum: u64 = all.filter_map(Value::as_u64).sum();
        assert_eq!(sum, tokens, "{program} {case}: {spent}");
        assert_eq!(
            spent["tokens"]["output"], output,
            "{program} {case}: {spent}"
        );
        assert_eq!(spent["money"].as_str(), money, "{program} {case}: {spent}");
        assert_eq!(spent["unmeasured"], 0, "{program} {case}: {spent}");
    }
}

/// The first 14 lines of this stream are a turn of 50 and 100 tokens; then a request of 50 tokens has begun to be answered.
#[test]
fn a_program_that_we_end_costs_what_came_of_its_turns() {
    for (prices, lines, limit, money) in [
        // By the prices of a large model: 100 of requests and 105 of answers.
        ("", 20, "timeout: 1s", "0.003125"),
        (PRICES, 20, "timeout: 1s", "0.105"),
        (PRICES, 15, "budget: {tokens: 1}", "0.10"),
        (PRICES, 15, "budget: {money: 0.05}", "0.10"),
        (PRICES, 15, "budget: {per_day: {money: 0.05}}", "0.10"),
        (PRICES, 15, "max_iterations: 1", "0.10"),
    ] {
        let script = format!("{}; exec sleep 1000", begun("claude", "cut_once", lines));
        let skills = format!("{LOOK}, {limit}}}\n");
        let rig = Rig::new("cli: claude, model: m", &skills, &script);
        rig.workspace.write("workerctl.yaml", prices);
        let shown = rig.ran("look");
        let spent = spent(&shown);
        assert!(
            [
                "timed_out",
                "timeout",
                "budget_exhausted",
                "iteration_limit"
            ]
            .contains(&ended(&shown)),
            "{limit}: {shown:#}"
        );
        assert_eq!(spent["money"], money, "{limit}: {spent}");
        assert_eq!(spent["estimated_money"], money, "{limit}: {spent}");
        assert!(
            spent["unmeasured"].as_u64().unwrap() >= 1,
            "{limit}: {spent}"
        );
        // It counts for the day.
        let stats = rig.workspace.json(&["stats"]);
        let line = &stats["stats"].as_array().or(stats.as_array()).unwrap()[0];
        assert_eq!(line["money"], money, "{limit}: {line}");
    }
}

#[test]
fn a_program_that_is_cancelled_or_lost_with_its_engine_is_counted() {
    for (program, case, lines) in [
        ("claude", "cut_once", 20),
        ("codex", "success", 5),
        ("opencode", "success", 3),
        ("gemini", "success", 4),
        ("qwen", "success", 3),
    ] {
        for kills in [false, true] {
            let name = format!("{program}, {kills}");
            let gate = Gate::text("did/stands").replace("$HOME/did", "$did");
            let script = format!("{}; {gate}; sleep 1000", begun(program, case, lines));
            let skills =
                "  - {id: fix, description: Fixes, instructions: Fix it., mutating: true}\n";
            let rig = Rig::new(&format!("cli: {program}, model: m"), skills, &script);
            rig.workspace
                .write("workerctl.yaml", &format!("{PRICES}grace: 100ms\n"));
            rig.workspace.commit_all("prices");
            let mut gate = Gate::new(&rig.workspace, "did/stands");
            let mut daemon = Daemon::start(&rig.workspace);
            let run = rig.workspace.submit(&["fix"]);
            gate.reached();
            // What this one prints belongs to a turn that goes on.
            if program != "codex" {
                rig.workspace.wait_for_event(&run, "turn_taken");
            }
            if kills {
                daemon.kill();
                daemon = Daemon::start(&rig.workspace);
            } else {
                rig.workspace.run(&["cancel", &run]).expect_code(0);
            }
            let (_, shown) = rig.workspace.wait(&run);
            let expected = if kills { "unknown" } else { "cancelled" };
            assert_eq!(ended(&shown), expected, "{name}: {shown:#}");
            let spent = spent(&shown);
            let all = spent["tokens"].as_object().unwrap().values();
            let sum: u64 = all.filter_map(Value::as_u64).sum();
            assert!(sum > 0, "{name}: {spent}");
            assert!(spent["money"].is_string(), "{name}: {spent}");
            assert!(spent["unmeasured"].as_u64().unwrap() > 0, "{name}: {spent}");
            daemon.stop();
            rig.workspace.expect_no_process();
        }
    }
}
