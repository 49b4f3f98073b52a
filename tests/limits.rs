//! What the commands of real runs may use: processes and bytes, counted and ended at the limit.

use crate::workspace;

use serde_json::Value;
use workspace::daemon::Daemon;
use workspace::{Workspace, skip};

/// Grows as fast as it can and stops by itself at 2,000, far above every limit here: each process takes a byte of a
/// file for each other that it starts.
const BOMB: &str = r#"#!/usr/bin/perl
use POSIX;
$SIG{TERM} = 'IGNORE';
open my $file, '<', "$ENV{HOME}/tickets" or die;
while (sysread $file, $_, 1) {
    next if fork;
    if ($ARGV[0] eq 'detached') { POSIX::setsid(); fork and POSIX::_exit(0); }
}
sleep 1000;
"#;

/// A workspace with a bomb in its home.
fn bed(skills: &str) -> Workspace {
    let workspace = Workspace::with_skills(skills);
    std::fs::write(workspace.home.join("bomb"), BOMB).unwrap();
    std::fs::write(workspace.home.join("tickets"), [b'.'; 2_000]).unwrap();
    workspace
}

/// Runs a skill and answers the run in full.
fn run(workspace: &Workspace, skill: &str) -> Value {
    workspace.run(&["run", skill, "--json"]).value()
}

fn failure(detail: &Value) -> (&str, &str) {
    let failure = &detail["summary"]["outcome"]["failure"];
    let text = |key: &str| failure[key].as_str().unwrap_or_default();
    (text("step"), text("code"))
}

/// Processes that live in the home of this workspace: the bomb's hold its path.
fn left(workspace: &Workspace) -> Vec<String> {
    let home = workspace.home.to_string_lossy().into_owned();
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|entry| std::fs::read_to_string(entry.path().join("cmdline")).ok())
        .filter(|line| line.contains(&home) && line.contains("bomb"))
        .collect()
}

#[test]
fn bombs_end_at_their_limit_in_every_command_and_nothing_is_left() {
    let workspace = bed(r"
  - {id: read, description: d, limits: {processes: 50}, run: 'perl $HOME/bomb group'}
  - {id: detached, description: d, limits: {processes: 50}, run: 'perl $HOME/bomb detached'}
  - {id: write, description: d, mutating: true, limits: {processes: 50}, run: 'echo x > own.txt; perl $HOME/bomb detached'}
  - {id: gone, description: d, limits: {processes: 50}, run: 'perl $HOME/bomb detached & exit 0'}
  - id: checked
    description: d
    limits: {processes: 50}
    run: 'true'
    verification: [{check: grows, command: 'perl $HOME/bomb detached'}]
  - id: before
    description: d
    limits: {processes: 50}
    run: 'true'
    verification: {pre_execute: [{check: grows, command: 'perl $HOME/bomb group'}]}
  - id: hooked
    description: d
    mutating: true
    limits: {processes: 50}
    run: 'date > own.txt'
    hooks: {post_tools: ['perl $HOME/bomb detached']}
");
    let daemon = Daemon::start(&workspace);
    for (skill, step, code) in [
        ("read", "execute", "process_limit"),
        ("detached", "execute", "process_limit"),
        ("write", "execute", "process_limit"),
        ("gone", "execute", "process_limit"),
        ("checked", "verify", "process_limit"),
        ("before", "validate", "process_limit"),
    ] {
        let detail = run(&workspace, skill);
        let is_ended_before =
            skill == "gone" && detail["summary"]["outcome"]["kind"] == "succeeded";
        if is_ended_before {
            // On a busy machine, what a command leaves behind is ended before it has grown.
            assert_eq!(left(&workspace), [""; 0], "{skill}");
            continue;
        }
        assert_eq!(failure(&detail), (step, code), "{skill}: {detail}");
        let message = detail["summary"]["outcome"]["failure"]["message"].to_string();
        assert!(message.contains("50 are allowed"), "{message}");
        assert!(message.contains("`limits.processes`"), "{message}");
        assert!(
            step == "execute" || message.contains("`grows`"),
            "{message}"
        );
        assert_eq!(left(&workspace), [""; 0], "{skill}");
    }
    assert_eq!(workspace.read("own.txt"), None);
    // A hook that could have blocked the run and gave no answer blocks it.
    let detail = run(&workspace, "hooked");
    assert_eq!(failure(&detail), ("hook", "hook_blocked"), "{detail}");
    let message = detail["summary"]["outcome"]["failure"]["message"].to_string();
    assert!(message.contains("process_limit"), "{message}");
    assert_eq!(left(&workspace), [""; 0]);
    daemon.stop();
}

#[test]
fn a_limit_is_told_everywhere_and_retried_as_other_failures_are() {
    let workspace = bed(r"
  - {id: wide, description: d, limits: {processes: 20}, retry: {max_attempts: 2, backoff: {initial: 10ms}}, run: 'for i in $(seq 30); do sleep 1000 & done; wait'}
  - {id: just, description: d, limits: {processes: 32}, run: 'for i in $(seq 30); do sleep 1 & done; wait'}
");
    let daemon = Daemon::start(&workspace);
    let detail = run(&workspace, "wide");
    assert_eq!(failure(&detail), ("execute", "process_limit"));
    assert_eq!(detail["attempts"].as_array().map(Vec::len), Some(2));
    let ended = &detail["attempts"][1]["execution"]["ended"];
    assert_eq!(ended["is"], "limit_reached");
    assert_eq!(ended["resource"], "processes");
    assert_eq!(ended["limit"], 20);
    assert!(ended["counted"].as_u64() > Some(20));
    for args in [
        &["show", "latest"][..],
        &["logs", "latest", "--stream", "event"],
    ] {
        let shown = workspace.run(args).stdout;
        assert!(shown.contains("20 are allowed"), "{shown}");
        assert!(shown.contains("`limits.processes`"), "{shown}");
    }
    assert_eq!(
        run(&workspace, "just")["summary"]["outcome"]["kind"],
        "succeeded"
    );
    daemon.stop();
}

/// Whether the kernel counts what is written where the state of this workspace lies; not so in memory.
fn counts_writes(workspace: &Workspace) -> bool {
    let written = || {
        let text = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with("write_bytes"));
        line.map(str::to_owned)
    };
    let before = written();
    std::fs::write(workspace.home.join("probe"), vec![1; 1 << 20]).unwrap();
    let counts = written() != before;
    if !counts {
        skip("what is written to the directory of tests is not counted");
    }
    counts
}

#[test]
fn a_command_that_writes_too_much_is_ended() {
    let workspace = bed(r"
  - {id: much, description: d, mutating: true, limits: {written: 8MiB}, run: 'head -c 16M /dev/zero > big; sleep 1000'}
  - {id: some, description: d, mutating: true, limits: {written: 20MiB}, run: 'head -c 16M /dev/urandom > big; sleep 0.3; rm big'}
");
    if !counts_writes(&workspace) {
        return;
    }
    let detail = run(&workspace, "much");
    assert_eq!(failure(&detail), ("execute", "write_limit"), "{detail}");
    let message = detail["summary"]["outcome"]["failure"]["message"].to_string();
    assert!(message.contains("8.0 MiB are allowed"), "{message}");
    assert!(message.contains("`limits.written`"), "{message}");
    let kind = &run(&workspace, "some")["summary"]["outcome"]["kind"];
    assert_eq!(kind, "succeeded");
}
