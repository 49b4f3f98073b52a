//! Approval: a real daemon and real commands, with a person who says yes, no, too late, twice, or not at all.

use crate::workspace;

mod answers;
mod corpus;
mod killed;
mod parked;
mod shown;
mod within_run;

use serde_json::Value;
use workspace::Workspace;

const SKILLS: &str = r##"
  - id: change
    description: changes a file, and writes one that git ignores
    mutating: true
    approval_required: true
    human_checkpoints: [nobody is named]
    interface: {outputs: [{name: report, type: markdown, destination: ignored/report.md}]}
    run: 'echo run >> "$HOME/ran"; echo "$WORKERCTL_RUN" > own.txt; echo "# whole" > {report}'
    verification:
      - {command: 'echo checked >> "$HOME/checked"; grep -q whole {report} && test -s own.txt'}
      - {description: the tone is right}
  - id: often
    description: may be repeated
    mutating: true
    idempotent: true
    approval_required: true
    run: 'echo run >> "$HOME/ran"; echo "$WORKERCTL_RUN" >> tracked.txt'
  - id: ignored-only
    description: changes nothing that git tracks
    mutating: true
    approval_required: true
    interface: {outputs: [{name: report, type: markdown, destination: ignored/only.md}]}
    run: 'echo "# only" > {report}'
  - id: say
    description: changes nothing
    approval_required: true
    interface: {inputs: [{name: who, type: string, default: you}]}
    run: 'echo run >> "$HOME/ran"; echo "hello {who}"'
  - id: script
    description: runs a script of its own
    approval_required: true
    run: {script: ./act.sh}
  - id: first
    description: changes a file, and is asked about before
    mutating: true
    approval_required: true
    approval: {before: execution}
    run: 'echo run >> "$HOME/ran"; echo x > first.txt'
  - id: short
    description: nobody answers in time
    approval_required: true
    approval: {expires: 1ms}
    run: 'echo run >> "$HOME/ran"'
  - id: plain
    description: asks nobody
    mutating: true
    human_checkpoints: [somebody could look]
    run: 'echo "$WORKERCTL_RUN" > plain.txt'
"##;

/// A workspace of these skills.
fn bed() -> Workspace {
    let workspace = Workspace::with_skills(SKILLS);
    workspace.write(
        ".gitignore",
        &(workspace.read(".gitignore").unwrap() + "/ignored/\n"),
    );
    workspace.write("workers/w/act.sh", "#!/bin/sh\necho run >> \"$HOME/ran\"\n");
    workspace.git(&["add", "-A"]);
    workspace.git(&["update-index", "--chmod=+x", "workers/w/act.sh"]);
    workspace.git(&["checkout-index", "-f", "workers/w/act.sh"]);
    workspace.git(&["commit", "-q", "-m", "more"]);
    workspace
}

/// How often a skill's command has started.
fn ran(workspace: &Workspace) -> usize {
    let text = std::fs::read_to_string(workspace.home.join("ran"));
    text.map_or(0, |text| text.lines().count())
}

/// Submits, and waits until a person is asked.
fn asked(workspace: &Workspace, skill: &[&str]) -> String {
    let run = workspace.submit(skill);
    until_asked(workspace, &run);
    run
}

fn until_asked(workspace: &Workspace, run: &str) -> Value {
    workspace.until_phase(run, "awaiting_approval")
}

/// The run in full once it has ended.
fn ended(workspace: &Workspace, run: &str) -> Value {
    workspace.wait(run).1
}

fn outcome(detail: &Value) -> &str {
    detail["summary"]["outcome"]["kind"].as_str().unwrap()
}

fn code(detail: &Value) -> &str {
    detail["summary"]["outcome"]["failure"]["code"]
        .as_str()
        .unwrap_or_default()
}

/// What the user of this test is called.
fn own_name() -> String {
    let done = std::process::Command::new("id")
        .arg("-un")
        .output()
        .unwrap();
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}
