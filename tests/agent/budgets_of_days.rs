//! Budgets of a day: runs and money, kept across restarts.

use serde_json::{Value, json};

use super::server::script::Say;
use super::{Rig, text};

const PRICES: &str = "    prices: {input: 10000, output: 0}\n";

#[test]
fn runs_of_a_day_are_counted_across_engines_for_commands_too() {
    let skills =
        "  - {id: two, description: twice a day, run: 'true', budget: {per_day: {runs: 2}}}\n";
    let rig = Rig::new(skills, vec![text("never asked")]);
    for _ in 0..2 {
        rig.run(&["two"]).expect_code(0);
    }
    // Each command is an engine of its own.
    let refused = rig.run(&["two"]).expect_code(6);
    assert!(
        refused.stderr.contains("has had 2 of 2 runs today"),
        "{refused:?}"
    );
    assert_eq!(rig.workspace.runs().len(), 2);
    rig.run(&["no-such-skill"]).expect_code(3);
    // What was refused has its line of metrics like what ran.
    let metrics = rig
        .workspace
        .read("workspace/metrics/metrics.jsonl")
        .unwrap();
    let lines: Vec<Value> = metrics
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let told: Vec<(&Value, &Value, bool)> = lines
        .iter()
        .map(|line| (&line["skill"], &line["code"], line["run"].is_string()))
        .collect();
    let (two, other) = (json!("two"), json!("no-such-skill"));
    let (spent, unknown) = (json!("budget_spent"), json!("skill_not_found"));
    assert_eq!(
        told[2..],
        [(&two, &spent, false), (&other, &unknown, false)]
    );
    assert!(told[..2].iter().all(|line| line.2), "{told:?}");
}

#[test]
fn money_of_a_day_ends_a_run_before_the_turn_that_could_exceed_it() {
    let skills = "  - {id: dear, description: costs, instructions: Go on., max_iterations: 9, budget: {per_day: {money: 30}}}\n";
    // Each turn costs 10; the request of the next one is longer.
    let look = Say::nothing()
        .call("list_directory", "{}")
        .usage(1_000, 0, 0, 0);
    let rig = Rig::configured(skills, PRICES, vec![look.into()]);
    for (run, requests) in [(1, 2), (2, 2)] {
        let shown = rig.ran(&["dear"]);
        let failure = &shown["summary"]["outcome"]["failure"];
        assert_eq!(failure["code"], "budget_exhausted", "{run}: {shown:#}");
        let message = failure["message"].as_str().unwrap();
        assert!(
            message.contains("`w/dear` has spent 20.00 of 30.00 today"),
            "{message}"
        );
        // The second run is one of the same day, and asks nobody.
        assert_eq!(rig.server.requests().len(), requests);
    }
}

#[test]
fn stats_tell_what_runs_came_to_and_what_they_cost() {
    let skills = "  - {id: fine, description: works, run: 'true', verification: [{command: 'true'}]}\n  - {id: bad, description: fails, run: 'false'}\n  - {id: says, description: says, instructions: Say it.}\n";
    let rig = Rig::configured(skills, PRICES, vec![text("said")]);
    rig.run(&["fine"]).expect_code(0);
    rig.run(&["bad"]).expect_code(1);
    rig.run(&["says"]).expect_code(0);
    let stats = rig.workspace.json(&["stats"]);
    let of = |name: &str| {
        let all = stats["stats"].as_array().or(stats.as_array()).unwrap();
        all.iter().find(|one| one["name"] == name).unwrap().clone()
    };
    for (name, succeeded, verified) in [("w/fine", 1, 1), ("w/bad", 0, 0), ("w/says", 1, 0)] {
        let one = of(name);
        assert_eq!(
            (
                &one["run_count"],
                &one["succeeded_count"],
                &one["verified_count"]
            ),
            (&1.into(), &succeeded.into(), &verified.into()),
            "{one}"
        );
    }
    assert_eq!(of("w/says")["money"], "1.00");
    assert_eq!(of("w/says")["tokens"]["output"], 20);
    let shown = rig
        .workspace
        .run(&["stats", "--by", "worker"])
        .expect_code(0);
    assert!(shown.stdout.contains("2 (66%)"), "{shown:?}");
}
