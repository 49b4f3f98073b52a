//! Each limit of time: what stands at a gate is never let pass, so that only its limit can end it.

use serde_json::Value;

use crate::phases::{count, expect_committed, expect_restored, failure, rest};
use crate::workspace::Workspace;
use crate::workspace::daemon::Daemon;
use crate::workspace::gate::Gate;

const SKILLS: &str = r#"
  - id: run
    description: d
    mutating: true
    max_runtime: 1s
    run: 'echo x >> tracked.txt; GATE'
  - id: wait
    description: d
    max_runtime: 1s
    retry: {max_attempts: 2, backoff: 1h}
    run: 'echo x >> "$HOME/tried"; false'
  - id: verify
    description: d
    mutating: true
    max_runtime: 6s
    run: 'echo x >> tracked.txt'
    verification: [{command: 'GATE', timeout: 1h}]
  - id: attempt
    description: d
    mutating: true
    idempotent: true
    timeout: 1s
    retry: {max_attempts: 2, backoff: 10ms}
    run: 'echo x >> "$HOME/tried"; echo x >> tracked.txt; GATE'
  - id: look
    description: d
    retry: {max_attempts: 3, backoff: 10ms}
    run: 'echo x >> "$HOME/ran"'
    verification: {pre_execute: [{command: 'echo x >> "$HOME/tried"; GATE', timeout: 1s}]}
  - id: check
    description: d
    mutating: true
    run: 'echo x >> tracked.txt'
    verification: [{command: 'GATE', timeout: 1s}]
  - id: mild
    description: d
    mutating: true
    run: 'echo x >> tracked.txt'
    verification: [{command: 'GATE', timeout: 1s, must_pass: false}]
  - id: hooks
    description: d
    mutating: true
    run: 'echo x >> tracked.txt'
    hooks:
      post_commit: [{command: 'GATE', timeout: 1s}]
  - id: slow-to-allow
    description: d
    mutating: true
    run: 'echo x >> tracked.txt'
    hooks:
      post_tools: [{command: 'GATE', timeout: 1s}]
  - {id: plain, description: d, mutating: true, run: 'echo x >> "$HOME/ran"; echo x >> tracked.txt'}
"#;

fn bed() -> (Workspace, Gate) {
    let workspace = Workspace::with_skills(&SKILLS.replace("GATE", &Gate::text("gate")));
    workspace.write("workerctl.yaml", "grace: 1s\n");
    workspace.commit_all("configured");
    let gate = Gate::new(&workspace, "gate");
    (workspace, gate)
}

/// Runs a skill to its end with a real daemon; answers the exit code and the run.
fn ended(workspace: &Workspace, skill: &str) -> (i32, Value) {
    let daemon = Daemon::start(workspace);
    let run = workspace.submit(&[skill]);
    let ended = workspace.wait(&run);
    rest(workspace, daemon);
    ended
}

#[test]
fn max_runtime_ends_a_run_wherever_it_is() {
    for skill in ["run", "wait", "verify"] {
        let (workspace, _gate) = bed();
        let (code, detail) = ended(&workspace, skill);
        assert_eq!(code, 124, "{skill}: {detail}");
        let outcome = &detail["summary"]["outcome"];
        assert_eq!(outcome["kind"], "timed_out", "{skill}: {detail}");
        let message = outcome["message"].as_str().unwrap();
        assert!(message.contains("`max_runtime`"), "{skill}: {message}");
        expect_restored(&workspace);
        assert!(count(&workspace, "tried") <= 1, "{skill}: {detail}");
    }
}

#[test]
fn the_limit_of_an_attempt_is_a_failed_attempt() {
    let (workspace, _gate) = bed();
    let (code, detail) = ended(&workspace, "attempt");
    assert_eq!(code, 124, "{detail}");
    assert_eq!(detail["summary"]["attempts"], 2, "{detail}");
    assert_eq!(count(&workspace, "tried"), 2);
    expect_restored(&workspace);
}

#[test]
fn the_limit_of_a_check_before_the_run_is_final() {
    let (workspace, _gate) = bed();
    let (code, detail) = ended(&workspace, "look");
    let known = &detail["summary"]["outcome"]["failure"];
    assert_eq!(
        (code, failure(&detail)),
        (1, "pre_check_failed"),
        "{detail}"
    );
    assert_eq!(known["step"], "validate");
    let said = known["message"].as_str().unwrap();
    assert!(said.contains("time limit reached"), "{said}");
    assert_eq!(
        (count(&workspace, "tried"), count(&workspace, "ran")),
        (1, 0)
    );
}

#[test]
fn the_limit_of_a_check_fails_the_check() {
    let (workspace, _gate) = bed();
    let (code, detail) = ended(&workspace, "check");
    assert_eq!((code, failure(&detail)), (5, "check_failed"), "{detail}");
    let said = detail["summary"]["outcome"]["failure"]["message"].as_str();
    assert!(said.unwrap().contains("time limit reached"), "{detail}");
    expect_restored(&workspace);

    let (workspace, _gate) = bed();
    let (code, detail) = ended(&workspace, "mild");
    assert_eq!(code, 0, "{detail}");
    assert_eq!(detail["summary"]["unverified"], true);
    assert_eq!(detail["warnings"].as_array().unwrap().len(), 1, "{detail}");
}

#[test]
fn the_limit_of_a_hook_blocks_before_the_commit_and_is_a_warning_afterwards() {
    let (workspace, _gate) = bed();
    let daemon = Daemon::start(&workspace);
    let run = workspace.submit(&["hooks"]);
    let detail = expect_committed(&workspace, &run);
    let warnings = detail["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 1, "{detail}");
    let warning = warnings[0].as_str().unwrap();
    assert!(warning.contains("time limit reached"), "{warning}");
    rest(&workspace, daemon);

    let (workspace, _gate) = bed();
    let (code, detail) = ended(&workspace, "slow-to-allow");
    assert_eq!(code, 1, "{detail}");
    let failure = &detail["summary"]["outcome"]["failure"];
    assert_eq!(failure["code"], "hook_blocked", "{detail}");
    let message = failure["message"].as_str().unwrap();
    assert!(message.contains("time limit reached"), "{message}");
    expect_restored(&workspace);
}
