//! A real daemon that is killed, told to end, or asked to cancel while a run stands in each phase, or that
//! meets each limit of time; a second instance; clients that leave.
//!
//! Commands stand at gates, so that each phase is met for certain and not by luck.

use crate::workspace;

mod at_work;
mod cancelled;
mod clients;
mod instances;
mod killed;
mod limits;
mod told_to_end;
mod two_workspaces;
mod two_worktrees;

use serde_json::Value;
use workspace::Workspace;
use workspace::daemon::Daemon;
use workspace::gate::Gate;

/// One skill for each phase in which a command can stand; `GATE` is where.
const SKILLS: &str = r##"
  - id: validating
    description: d
    run: "echo x >> \"$HOME/validating\""
    verification: {pre_execute: [{command: 'GATE'}]}
  - {id: executing, description: d, run: 'GATE'}
  - id: printing
    description: d
    interface: {outputs: [{name: r, type: markdown, destination: "workspace/r.md"}]}
    run: 'echo "# printed"; GATE'
  - id: changing
    description: d
    mutating: true
    run: 'echo x >> "$HOME/changing"; echo x >> tracked.txt; GATE'
  - id: writing
    description: d
    mutating: true
    interface: {outputs: [{name: n, type: markdown, destination: "notes/n.md"}]}
    run: 'echo x >> "$HOME/writing"; echo "# whole" > {n}; GATE'
    verification: [{command: "grep -q whole {n}"}]
  - id: beyond
    description: d
    mutating: true
    interface: {outputs: [{name: n, type: markdown, destination: "notes/b.md"}]}
    run: 'echo "# whole" > {n}; echo x > undeclared.txt; GATE'
    verification: [{command: "grep -q whole {n}"}]
  - id: committing
    description: d
    mutating: true
    interface: {outputs: [{name: n, type: markdown, destination: "notes/c.md"}]}
    run: 'echo "# whole" > {n}; git add -A; git commit -q -m own; GATE'
    verification: [{command: "grep -q whole {n}"}]
  - id: two
    description: d
    mutating: true
    interface: {outputs: [{name: n, type: markdown, destination: "notes/d.md"}, {name: o, type: markdown, destination: "notes/e.md"}]}
    run: 'echo "# whole" > {n}; GATE; echo "# whole" > {o}'
    verification: [{command: "grep -q whole {n}"}]
  - id: once-two
    description: d
    idempotent: false
    interface: {outputs: [{name: n, type: markdown, destination: "notes/f.md"}, {name: o, type: markdown, destination: "notes/g.md"}]}
    run: 'echo "# whole" > {n}; GATE; echo "# whole" > {o}'
    verification: [{command: "grep -q whole {n}"}]
  - id: repeatable
    description: d
    mutating: true
    idempotent: true
    run: 'echo x >> tracked.txt; GATE'
  - id: verifying
    description: d
    mutating: true
    run: "echo x >> \"$HOME/verifying\"; echo x >> tracked.txt"
    verification: [{command: "echo x >> \"$HOME/checked\""}, {command: 'GATE'}]
  - id: hooked
    description: d
    mutating: true
    run: "echo x >> tracked.txt"
    hooks: {post_tools: ["echo x >> \"$HOME/first-hook\"", 'GATE']}
  - id: announcing
    description: d
    mutating: true
    run: "echo x >> tracked.txt"
    hooks: {post_commit: ["echo x >> \"$HOME/first-notice\"", 'GATE']}
  - id: backing-off
    description: d
    retry: {max_attempts: 2, backoff: 1h}
    run: "echo x >> \"$HOME/tried\"; false"
  - {id: once, description: d, idempotent: false, run: 'echo x >> "$HOME/once"; GATE'}
  - id: once-proven
    description: d
    idempotent: false
    interface: {outputs: [{name: r, type: markdown, destination: "workspace/once.md"}]}
    run: 'echo x >> "$HOME/once-proven"; echo "# whole" > {r}; GATE'
    verification: [{command: "grep -q whole {r}"}]
  - id: unproven
    description: d
    mutating: true
    interface: {outputs: [{name: n, type: markdown, destination: "notes/n.md"}]}
    run: 'echo x >> "$HOME/unproven"; echo "# begun" > {n}; GATE'
    verification:
      pre_execute: [{command: "true"}]
      post_execute: ["a person looks at it", {command: "true", must_pass: false}]
  - {id: stubborn, description: d, run: 'trap "" TERM INT; GATE'}
"##;

/// A workspace with a skill for each phase, and the gate of them all.
fn bed() -> (Workspace, Gate) {
    let workspace = Workspace::with_skills(&SKILLS.replace("GATE", &Gate::text("gate")));
    workspace.write("workerctl.yaml", "drain_grace: 1s\ngrace: 1s\n");
    workspace.commit_all("configured");
    let gate = Gate::new(&workspace, "gate");
    (workspace, gate)
}

/// Submits a skill and waits until its command stands at the gate.
fn standing(workspace: &Workspace, gate: &mut Gate, skill: &str) -> String {
    let run = workspace.submit(&[skill]);
    assert_eq!(gate.reached().0, run);
    run
}

/// How many lines a file in the home of the commands has.
fn count(workspace: &Workspace, name: &str) -> usize {
    let text = std::fs::read_to_string(workspace.home.join(name));
    text.map_or(0, |text| text.lines().count())
}

/// Asserts that the work tree is as it was committed, with nothing of ours.
fn expect_restored(workspace: &Workspace) {
    assert_eq!(workspace.git(&["status", "--porcelain", "-uall"]), "");
    assert_eq!(workspace.read("tracked.txt").unwrap(), "as committed\n");
    assert!(workspace.committed_runs().is_empty());
}

/// Asserts that the run succeeded with exactly one commit of its own.
fn expect_committed(workspace: &Workspace, run: &str) -> Value {
    let (code, detail) = workspace.wait(run);
    assert_eq!(code, 0, "{detail}");
    assert_eq!(workspace.committed_runs(), [run]);
    let commit = detail["summary"]["commit"].as_str().unwrap();
    workspace.git(&["cat-file", "-e", commit]);
    assert_eq!(workspace.git(&["status", "--porcelain", "-uall"]), "");
    workspace.git(&["fsck", "--strict"]);
    detail
}

/// The code of a run's failure.
fn failure(detail: &Value) -> &str {
    let failure = &detail["summary"]["outcome"]["failure"]["code"];
    failure.as_str().unwrap_or_else(|| panic!("{detail}"))
}

/// Ends the daemon in order, after which nothing may be left.
fn rest(workspace: &Workspace, daemon: Daemon) {
    daemon.stop();
    workspace.expect_no_process();
}
