//! Phases of a run, and who did what about it.

use serde_json::{Value, json};

use crate::api_runs::Api;
use crate::workspace::Workspace;
use crate::workspace::daemon::Daemon;
use crate::workspace::gate::Gate;

const SKILLS: &str = r#"
  - id: ask
    description: asks before it runs
    approval_required: true
    approval: {before: execution}
    run: 'echo said'
  - id: gated
    description: may be repeated
    run: 'GATE'
  - id: risky
    description: changes something that cannot be repeated
    mutating: true
    idempotent: false
    run: 'echo x > changed.txt; GATE'
  - id: flaky
    description: succeeds at the second time
    idempotent: true
    retry: {max_attempts: 2, backoff: {initial: 20ms}}
    run: 'test -e "$HOME/tried" || { touch "$HOME/tried"; exit 1; }'
"#;

fn own_name() -> String {
    let done = std::process::Command::new("id")
        .arg("-un")
        .output()
        .unwrap();
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

/// Names of phases with their attempts; each begins where the one before it has ended.
fn phases(detail: &Value) -> Vec<String> {
    let phases = detail["phases"].as_array().unwrap();
    for pair in phases.windows(2) {
        assert_eq!(pair[0]["end"], pair[1]["begin"], "{detail:#}");
    }
    let named = phases.iter().map(|one| {
        let waits = if one["waiting"] == true { " waits" } else { "" };
        let lost = if one["owner_lost"] == true {
            " lost"
        } else {
            ""
        };
        format!(
            "{} {}{waits}{lost}",
            one["attempt"],
            one["phase"].as_str().unwrap()
        )
    });
    named.collect()
}

fn acts(detail: &Value) -> Vec<(String, Option<String>)> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let acts = detail["audit"].as_array().unwrap().iter();
    acts.map(|act| (text(&act["action"]).unwrap(), text(&act["by"])))
        .collect()
}

fn act(name: &str, by: &str) -> (String, Option<String>) {
    (name.to_owned(), Some(by.to_owned()))
}

fn bed() -> (Workspace, Gate, Daemon, Api) {
    let workspace = Workspace::with_skills(&SKILLS.replace("GATE", &Gate::text("gate")));
    let gate = Gate::new(&workspace, "gate");
    let daemon = Daemon::start(&workspace);
    let api = Api::of(&workspace);
    (workspace, gate, daemon, api)
}

#[test]
fn each_phase_and_each_act_of_a_run_is_told_with_who_did_it() {
    let (workspace, _gate, daemon, api) = bed();
    let me = own_name();
    let run = workspace.submit(&["w/ask"]);
    let asked = workspace.until_phase(&run, "awaiting_approval");
    let waiting = asked["phases"].as_array().unwrap().last().unwrap();
    assert!(
        waiting["waiting"] == true && waiting["end"].is_null(),
        "{waiting}"
    );
    let digest = &asked["approval"]["digest"];
    let body = json!({"digest": digest, "note": "well", "by": "somebody else"}).to_string();
    assert_eq!(
        api.post(&format!("/v1/runs/{run}/approve"), &body).status,
        200
    );
    assert_eq!(workspace.wait(&run).0, 0);
    let detail = api.detail(&run);
    assert_eq!(
        phases(&detail),
        [
            "0 queued waits",
            "0 validating",
            "0 awaiting_approval waits",
            "0 queued waits",
            "0 validating",
            "1 executing",
            "1 saving"
        ]
    );
    assert_eq!(acts(&detail), [act("submitted", &me), act("approved", &me)]);
    assert_eq!(detail["audit"][1]["note"], "well");
    assert_eq!(detail["audit"][1]["at"], detail["approval"]["approved_at"]);

    // Who retries it is in both runs; nobody can say that they are somebody else.
    let retried = api.post(
        &format!("/v1/runs/{run}/retry"),
        r#"{"by": "somebody else"}"#,
    );
    assert_eq!(retried.status, 201, "{}", retried.text());
    let retried: Value = serde_json::from_slice(&retried.body).unwrap();
    let detail = api.detail(&run);
    assert_eq!(acts(&detail)[2..], [act("retried", &me)]);
    assert_eq!(detail["audit"][2]["run"], retried["run"]);
    let other = retried["run"].as_str().unwrap();
    assert_eq!(api.detail(other)["summary"]["retry_of"], run.as_str());
    workspace.until_phase(other, "awaiting_approval");
    let body = r#"{"note": "once is enough"}"#;
    assert_eq!(
        api.post(&format!("/v1/runs/{other}/deny"), body).status,
        200
    );
    workspace.wait(other);
    assert_eq!(
        acts(&api.detail(other)),
        [act("submitted", &me), act("denied", &me)]
    );
    daemon.stop();
}

#[test]
fn what_was_cancelled_in_the_queue_was_only_queued_and_each_attempt_has_its_phases() {
    let (workspace, _gate, daemon, api) = bed();
    let me = own_name();
    let body = r#"{"skill": "w/gated", "not_before": "2099-01-01T00:00:00Z", "by": "page"}"#;
    let queued: Value = serde_json::from_slice(&api.post("/v1/runs", body).body).unwrap();
    let queued = queued["run"].as_str().unwrap().to_owned();
    assert_eq!(
        api.post(&format!("/v1/runs/{queued}/cancel"), "").status,
        200
    );
    workspace.wait(&queued);
    let detail = api.detail(&queued);
    assert_eq!(phases(&detail), ["0 queued waits", "0 saving"]);
    let expected = [act("submitted", "page"), act("cancelled", &me)];
    assert_eq!(acts(&detail), expected);

    let flaky = workspace.submit(&["w/flaky"]);
    assert_eq!(workspace.wait(&flaky).0, 0);
    assert_eq!(
        phases(&api.detail(&flaky)),
        [
            "0 queued waits",
            "1 executing",
            "1 backing_off waits",
            "2 executing",
            "2 saving"
        ]
    );
    daemon.stop();
}

#[test]
fn what_a_killed_engine_did_is_told_and_who_settled_it() {
    let (workspace, mut gate, daemon, _) = bed();
    let run = workspace.submit(&["w/gated"]);
    assert_eq!(gate.reached().0, run);
    daemon.kill();
    let daemon = Daemon::start(&workspace);
    assert_eq!(gate.reached(), (run.clone(), 2));
    gate.pass();
    assert_eq!(workspace.wait(&run).0, 0);
    let detail = Api::of(&workspace).detail(&run);
    assert_eq!(
        phases(&detail),
        [
            "0 queued waits",
            "1 executing lost",
            "2 executing",
            "2 saving"
        ]
    );

    let risky = workspace.submit(&["w/risky"]);
    assert_eq!(gate.reached().0, risky);
    daemon.kill();
    let daemon = Daemon::start(&workspace);
    assert_eq!(workspace.wait(&risky).0, 9);
    let api = Api::of(&workspace);
    let body = r#"{"as": "failed", "note": "looked", "by": "somebody else"}"#;
    let resolved = api.post(&format!("/v1/runs/{risky}/resolve"), body);
    assert_eq!(resolved.status, 200, "{}", resolved.text());
    let detail = api.detail(&risky);
    let me = own_name();
    assert_eq!(acts(&detail), [act("submitted", &me), act("resolved", &me)]);
    assert_eq!(detail["audit"][1]["note"], "looked");
    let shown = workspace.run(&["show", &risky]).stdout;
    assert!(shown.contains(&format!("by {me}: looked")), "{shown}");
    let log = workspace.run(&["logs", &risky]).stdout;
    assert!(
        log.contains(&format!("resolved: as failed by {me}: looked")),
        "{log}"
    );
    daemon.stop();
}
