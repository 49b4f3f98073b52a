//! `why` and `runs --failed`: what somebody asks first in the morning, of a real daemon.

use crate::workspace;

use serde_json::Value;
use workspace::daemon::{Daemon, get};
use workspace::gate::Gate;
use workspace::{Workspace, eventually};

const SKILLS: &str = r#"
  - {id: good, description: d, run: "true"}
  - {id: bad, description: d, run: "echo told; exit 3", schedule: {cron: "0 2 * * *", timezone: Europe/Berlin}}
  - {id: slow, description: d, run: "sleep 600", timeout: 1s}
  - {id: asks, description: d, run: "true", approval_required: true}
  - {id: paid, description: d, run: "true", budget: {per_day: {runs: 1}}}
  - {id: secret, description: d, run: "true", env: [{name: KEY, credential: stripe-key}]}
  - {id: change, description: d, mutating: true, run: "echo changed >> tracked.txt"}
  - {id: given, description: d, run: "echo {who}", interface: {inputs: [{name: who, type: string}]}}
"#;

/// The codes of what is in the way.
fn obstacles(told: &Value) -> Vec<&str> {
    let all = told["obstacles"].as_array().unwrap().iter();
    all.map(|one| one["code"].as_str().unwrap()).collect()
}

#[test]
fn runs_that_did_not_succeed_are_listed_alone() {
    let workspace = Workspace::with_skills(SKILLS);
    let daemon = Daemon::start(&workspace);
    for (skill, code) in [("good", 0), ("bad", 1), ("slow", 124), ("good", 0)] {
        workspace.run(&["run", skill]).expect_code(code);
    }
    let listed = |options: &[&str]| {
        let runs = workspace.json(&[&["runs"], options].concat())["runs"].clone();
        let runs = runs.as_array().unwrap().iter();
        let skills = runs.map(|run| format!("w/{}", run["skill"]["skill"].as_str().unwrap()));
        skills.collect::<Vec<_>>()
    };
    assert_eq!(listed(&["--failed"]), ["w/slow", "w/bad"]);
    assert_eq!(
        listed(&["--failed", "--since", "7d", "--skill", "bad"]),
        ["w/bad"]
    );
    assert!(listed(&["--failed", "--until", "7d"]).is_empty());
    assert_eq!(
        listed(&["--outcome", "timed_out,succeeded"]),
        ["w/good", "w/slow", "w/good"]
    );
    for wrong in [
        &["--failed", "--outcome", "failed"][..],
        &["--outcome", "failed,none"],
    ] {
        workspace.run(&[&["runs"], wrong].concat()).expect_code(2);
    }
    let refused = get(&workspace, "/v1/runs?outcome=failed,none");
    assert!(
        refused.contains("`none` is no outcome and no phase"),
        "{refused}"
    );
    daemon.stop();
}

#[test]
fn a_failure_its_schedule_and_its_pause_are_told_in_a_few_lines() {
    let workspace = Workspace::with_skills(SKILLS);
    let daemon = Daemon::start(&workspace);
    let fresh = workspace.json(&["why", "good"]);
    assert_eq!(fresh["skill"], "w/good");
    assert_eq!(
        (&fresh["last"], obstacles(&fresh).len()),
        (&Value::Null, 0),
        "{fresh}"
    );
    workspace.run(&["run", "bad"]).expect_code(1);
    let pause = ["schedule", "pause", "w/bad", "--reason", "the server moves"];
    let before = workspace.run(&["why", "w/bad"]).expect_code(0).stdout;
    for wanted in [
        "✗ failed (execute) ",
        "exit code 3",
        "`workerctl logs ",
        "w/bad: 20",
        "blocked by  nothing",
    ] {
        assert!(before.contains(wanted), "{wanted}: {before}");
    }
    workspace.run(&pause).expect_code(0);
    let told = workspace.run(&["why", "w/bad"]).expect_code(0).stdout;
    assert!(told.contains("none while it is paused"), "{told}");
    assert!(
        told.contains(": the server moves; `workerctl schedule resume 'w/bad'`"),
        "{told}"
    );
    assert!(told.lines().count() <= 15, "{told}");
    let value = workspace.json(&["why", "w/bad"]);
    assert_eq!(obstacles(&value), ["paused"], "{value}");
    assert_eq!(value["schedules"][0]["paused"], true, "{value}");
    daemon.stop();
    // Without a daemon no schedule starts.
    let alone = workspace.json(&["why", "bad"]);
    assert_eq!(obstacles(&alone), ["no_daemon", "paused"], "{alone}");
}

#[test]
fn each_thing_in_the_way_is_told_with_its_remedy() {
    let workspace = Workspace::with_skills(SKILLS);
    workspace.write("workerctl.yaml", "land_wait: 1s\n");
    let daemon = Daemon::start(&workspace);
    let told = |skill: &str| workspace.json(&["why", skill]);

    workspace.run(&["run", "asks", "--no-wait"]).expect_code(0);
    let asks = eventually("it asks", || {
        let asks = told("asks");
        (obstacles(&asks) == ["awaiting_approval"]).then_some(asks)
    });
    let hint = asks["obstacles"][0]["hint"].as_str().unwrap();
    workspace
        .run(&["approve", hint.split(['`', ' ']).nth(3).unwrap()])
        .expect_code(0);
    assert!(obstacles(&told("asks")).is_empty());

    workspace.run(&["run", "paid"]).expect_code(0);
    let paid = told("paid");
    assert_eq!(obstacles(&paid), ["budget_spent"], "{paid}");
    let rendered = workspace.json(&["render", "paid"]);
    assert!(
        rendered["budget_spent"]
            .as_str()
            .unwrap()
            .contains("1 of 1 runs today")
    );

    let secret = told("secret");
    assert_eq!(obstacles(&secret), ["secret_missing"], "{secret}");
    assert!(
        secret["obstacles"][0]["hint"]
            .as_str()
            .unwrap()
            .contains("LoadCredential=")
    );
    assert!(
        obstacles(&told("given")).is_empty(),
        "its inputs are for whoever runs it"
    );

    // A person's work keeps the commit of a run off its branch.
    workspace.write("tracked.txt", "a person's\n");
    workspace.run(&["run", "change"]).expect_code(1);
    let change = told("change");
    assert_eq!(obstacles(&change), ["kept_commit"], "{change}");
    let hint = change["obstacles"][0]["hint"].as_str().unwrap();
    assert!(hint.starts_with("`workerctl land "), "{change}");

    let unknown = workspace.run(&["why", "goood", "--json"]).expect_code(3);
    assert_eq!(unknown.refusal(), "skill_not_found");
    assert!(unknown.stderr.contains("did you mean"), "{unknown:?}");
    daemon.stop();
}

#[test]
fn a_slot_that_was_passed_over_says_why() {
    let skills = "  - {id: paid, description: d, run: \"true\", budget: {per_day: {runs: 1}}, schedule: {every: 1s}}\n";
    let workspace = Workspace::with_skills(skills);
    let daemon = Daemon::start(&workspace);
    eventually("a slot beyond the budget", || {
        let told = workspace.run(&["why", "w/paid"]).expect_code(0).stdout;
        let wanted = [
            "passed      w/paid did not run at ",
            "blocked config: ",
            "1 of 1 runs today",
        ];
        wanted
            .iter()
            .all(|wanted| told.contains(wanted))
            .then_some(())
    });
    daemon.stop();
}

#[test]
fn a_broken_definition_is_told_with_its_line() {
    let workspace = Workspace::with_skills(SKILLS);
    workspace.run(&["run", "good"]).expect_code(0);
    workspace.worker(
        "w",
        "  - {id: good, description: d, run: \"true\", timeout: soon}\n",
    );
    let told = workspace.json(&["why", "w/good"]);
    assert_eq!(obstacles(&told), ["definition"], "{told}");
    let message = told["obstacles"][0]["message"].as_str().unwrap();
    assert!(message.contains("workers/w/worker.yaml:"), "{told}");
    assert_eq!(told["last"]["outcome"]["kind"], "succeeded", "{told}");
}

#[test]
fn a_run_that_waits_says_for_what_and_behind_how_many() {
    let skills = format!(
        "  - {{id: first, description: d, run: '{}'}}\n  - {{id: next, description: d, run: \"true\"}}\n",
        Gate::text("gate")
    );
    let workspace = Workspace::with_skills(&skills);
    workspace.write("workerctl.yaml", "max_parallel: 1\n");
    let mut gate = Gate::new(&workspace, "gate");
    let daemon = Daemon::start(&workspace);
    let submit = |skill: &str| workspace.run(&["run", skill, "--no-wait"]).expect_code(0);
    submit("first");
    gate.reached();
    submit("next");
    submit("next");
    let first = workspace.json(&["why", "first"]);
    assert_eq!(obstacles(&first), ["active"], "{first}");
    let next = workspace.json(&["why", "next"]);
    assert_eq!(obstacles(&next), ["queued", "queued"], "{next}");
    let message = next["obstacles"][1]["message"].as_str().unwrap();
    assert!(message.ends_with(", one before it"), "{next}");
    gate.pass();
    daemon.stop();
}
