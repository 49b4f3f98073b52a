//! Two workspaces in directories of one repository: what one writes is no change of the other's runs.

use std::process::Command;

use serde_json::Value;

use crate::workspace::Workspace;
use crate::workspace::gate::Gate;

const MUTATING: &str = r#"
  - {id: bad, description: d, mutating: true, run: 'echo x >> ours.txt; GATE; exit 1'}
  - id: good
    description: d
    mutating: true
    run: 'echo x >> ours.txt; GATE'
  - id: into
    description: d
    mutating: true
    interface: {outputs: [{name: n, type: markdown, destination: "b/notes/n.md"}]}
    run: 'echo x > {n}; GATE'
  - id: checked
    description: d
    mutating: true
    run: 'echo x >> ours.txt'
    verification: [{command: 'GATE'}]
  - id: unrecorded
    description: d
    mutating: true
    interface: {outputs: [{name: p, type: markdown, destination: "out/p.md"}]}
    run: 'echo printed; echo x >> ours.txt; cd out; mkdir p.md; GATE'
"#;

const REPORTING: &str = r#"
  - id: report
    description: d
    interface: {outputs: [{name: r, type: markdown, destination: "reports/r.md"}]}
    run: 'echo written > {r}; echo note > undeclared.txt'
"#;

const REPORT: &str = "b/reports/r.md";

/// A repository with the workspace `b`, and another one in the directory `ours`.
fn bed(ours: &str) -> (Workspace, Gate) {
    let workspace = Workspace::new();
    let ignored = "threads/\nmetrics/\nstate/\n.workerctl/\n";
    workspace.write(".gitignore", ignored);
    let mutating = MUTATING.replace("GATE", &Gate::text("gate"));
    for (place, skills) in [(ours, mutating.as_str()), ("b", REPORTING)] {
        let text = format!("worker: {{id: w, name: w, type: OpsWorker}}\nskills:\n{skills}");
        workspace.write(&format!("{place}/workers/w/worker.yaml"), &text);
        workspace.write(
            &format!("{place}/workerctl.yaml"),
            "timeout: 1h\nsandbox: off\n",
        );
        workspace.write(&format!("{place}/ours.txt"), "as committed\n");
    }
    workspace.commit_all("begin");
    let gate = Gate::new(&workspace, "gate");
    (workspace, gate)
}

/// The program in one of the workspaces.
fn program(workspace: &Workspace, place: &str, arguments: &[&str]) -> Command {
    let mut command = workspace.program(env!("CARGO_BIN_EXE_workerctl"));
    let name = format!("state-of-{}", place.replace(['.', '/'], "-"));
    command.arg("-C").arg(workspace.root.join(place));
    command.arg("--state-dir").arg(workspace.home.join(name));
    command.args(arguments);
    command
}

/// Runs a skill of ours; while its command stands at the gate, the other workspace writes its report.
fn run_beside(workspace: &Workspace, gate: &mut Gate, ours: &str, skill: &str) -> (i32, Value) {
    let running = workspace.start(&mut program(workspace, ours, &["run", skill, "--json"]));
    let (run, _) = gate.reached();
    let other = workspace.start(&mut program(workspace, "b", &["run", "report"]));
    other.end().expect_code(0);
    gate.pass();
    let done = running.end();
    let shown = program(workspace, ours, &["show", &run, "--json"]);
    let shown = workspace.start(&mut { shown }).end().expect_code(0);
    (done.code, shown.value())
}

#[test]
fn a_run_that_fails_touches_nothing_of_another_workspace() {
    for ours in ["a", "."] {
        let (workspace, mut gate) = bed(ours);
        workspace.write(&format!("{ours}/new.txt"), "a person's\n");
        let (code, detail) = run_beside(&workspace, &mut gate, ours, "bad");
        assert_eq!(code, 1, "{detail}");
        let report = workspace.read(REPORT);
        assert_eq!(report.as_deref(), Some("written\n"), "{detail}");
    }
}

#[test]
fn a_run_that_succeeds_commits_nothing_of_another_workspace() {
    for ours in ["a", "."] {
        let (workspace, mut gate) = bed(ours);
        let (code, detail) = run_beside(&workspace, &mut gate, ours, "good");
        assert_eq!(code, 0, "{detail}");
        let committed = workspace.git(&["show", "--name-only", "--format=", "HEAD"]);
        let expected = if ours == "a" {
            "a/ours.txt\n"
        } else {
            "ours.txt\n"
        };
        assert_eq!(committed, expected, "{detail}");
        assert!(workspace.read(REPORT).is_some());
    }
}

#[test]
fn what_another_workspace_writes_during_a_check_is_no_change_of_it() {
    let (workspace, mut gate) = bed("a");
    let (code, detail) = run_beside(&workspace, &mut gate, "a", "checked");
    assert_eq!(code, 0, "{detail}");
    let committed = workspace.git(&["show", "--name-only", "--format=", "HEAD"]);
    assert_eq!(committed, "a/ours.txt\n", "{detail}");
    assert!(workspace.read(REPORT).is_some());
}

#[test]
fn a_run_whose_result_cannot_be_recorded_touches_nothing_of_another_workspace() {
    let (workspace, mut gate) = bed("a");
    let (code, detail) = run_beside(&workspace, &mut gate, "a", "unrecorded");
    assert_ne!(code, 0, "{detail}");
    let failure = &detail["summary"]["outcome"]["failure"];
    assert_eq!(failure["code"], "output_path", "{detail}");
    assert_eq!(workspace.read("a/ours.txt").unwrap(), "as committed\n");
    assert!(workspace.read(REPORT).is_some(), "{detail}");
}

#[test]
fn a_destination_in_another_workspace_is_ours() {
    let (workspace, mut gate) = bed(".");
    let (code, detail) = run_beside(&workspace, &mut gate, ".", "into");
    assert_eq!(code, 0, "{detail}");
    let committed = workspace.git(&["show", "--name-only", "--format=", "HEAD"]);
    assert_eq!(committed, "b/notes/n.md\n", "{detail}");
}
