//! Every exit code, from the real program.

use rustix::process::Signal;

use crate::workspace::Workspace;
use crate::workspace::gate::Gate;

const SKILLS: &str = r#"
  - {id: good, description: d, run: "true"}
  - {id: bad, description: d, run: "exit 3"}
  - {id: strict, description: d, mutating: true, run: "echo x > new.txt", verification: [{command: "false"}]}
  - {id: number, description: d, run: "true", interface: {inputs: [{name: n, type: number, min: 1}]}}
  - {id: told, description: d, instructions: "write a poem"}
  - {id: slow, description: d, timeout: 1s, run: "sleep 60"}
  - {id: gated, description: d, mutating: true, run: 'GATE'}
"#;

fn workspace() -> Workspace {
    Workspace::with_skills(&SKILLS.replace("GATE", &Gate::text("gated")))
}

#[test]
fn what_ends_by_itself_has_its_code() {
    let workspace = workspace();
    let table: [(&[&str], i32); 11] = [
        (&["run", "good"], 0),
        (&["run", "bad"], 1),
        (&["run"], 2),
        (&["run", "good", "--no-such-option"], 2),
        (&["run", "number", "-i", "n=0"], 2),
        (&["run", "nothing-of-this-name"], 3),
        (&["show", "zzzz"], 3),
        (&["run", "strict"], 5),
        (&["run", "told"], 6),
        (&["run", "good", "--no-wait"], 7),
        (&["run", "slow"], 124),
    ];
    for (arguments, code) in table {
        let done = workspace.run(arguments);
        assert_eq!(done.code, code, "{arguments:?}: {done:?}");
        let panicked = done.stderr.contains("panicked");
        assert!(!panicked, "{arguments:?}: {done:?}");
    }
    workspace.expect_no_process();
}

#[test]
fn a_broken_definition_is_4() {
    let workspace = workspace();
    workspace.worker("broken", "  - {id: b, description: d, run: [1, {a: b}]}\n");
    workspace.run(&["run", "broken/b"]).expect_code(4);
    workspace.run(&["check"]).expect_code(4);
    workspace.run(&["run", "good"]).expect_code(0);
}

#[test]
fn what_is_too_late_or_taken_is_8() {
    let workspace = workspace();
    let done = workspace.run(&["run", "good", "--json"]).expect_code(0);
    let run = done.value()["summary"]["run"].as_str().unwrap().to_owned();
    let late = workspace.run(&["cancel", &run, "--json"]).expect_code(8);
    assert_eq!(late.refusal(), "ended");
    let resolve = ["resolve", &run, "--as", "failed", "--note", "n", "--json"];
    assert_eq!(
        workspace.run(&resolve).expect_code(8).refusal(),
        "not_unknown"
    );

    let keyed = |skill| workspace.run(&["run", skill, "--key", "k1", "--json"]);
    let first = keyed("good").expect_code(0).value();
    let second = keyed("good").expect_code(0).value();
    assert_eq!(first["summary"]["run"], second["summary"]["run"]);
    assert_eq!(keyed("bad").expect_code(8).refusal(), "key_reused");
}

#[test]
fn a_mutating_run_whose_engine_died_is_9_until_it_is_resolved() {
    let workspace = workspace();
    let mut gate = Gate::new(&workspace, "gated");
    let started = workspace.start(&mut workspace.workerctl(&["run", "gated"]));
    let (run, _) = gate.reached();
    started.signal(Signal::KILL);
    started.end().expect_code(-1);

    // The next command takes the run up, and ends what is left of it.
    workspace.run(&["status"]).expect_code(0);
    workspace.run(&["wait", &run]).expect_code(9);
    workspace.expect_no_process();
    let note = ["resolve", &run, "--as", "succeeded", "--note", "seen"];
    workspace.run(&note).expect_code(0);
    workspace.run(&["wait", &run]).expect_code(0);
}

#[test]
fn ctrl_c_is_130_and_what_was_changed_is_put_back() {
    let workspace = workspace();
    let mut gate = Gate::new(&workspace, "gated");
    let started = workspace.start(&mut workspace.workerctl(&["run", "gated"]));
    gate.reached();
    started.signal(Signal::INT);
    started.end().expect_code(130);
    workspace.expect_no_process();
    assert_eq!(workspace.git(&["status", "--porcelain"]), "");
}
