//! `kill -9` of the daemon while no command runs and it is at work itself, then another one.
//!
//! It stands still where it reads the configuration of git, or the log of the branch: a command of the run
//! has put a FIFO there. Only for saving, which reads nothing, a tracer kills it.

use std::process::Command;

use workerctl::git::{RepositoryLease, locate};

use crate::phases::{count, expect_committed, rest};
use crate::workspace::daemon::Daemon;
use crate::workspace::gate::Obstacle;
use crate::workspace::{Workspace, eventually, skip};

const SKILLS: &str = r#"
  - id: preparing
    description: d
    mutating: true
    run: 'echo x >> "$HOME/ran"; echo x >> tracked.txt'
    verification: {pre_execute: [{command: 'STOP'}]}
  - id: recording
    description: d
    mutating: true
    run: 'echo x >> "$HOME/ran"; echo x >> tracked.txt; STOP'
  - id: committing
    description: d
    mutating: true
    run: 'echo x >> "$HOME/ran"; echo x >> tracked.txt'
    hooks: {post_tools: ['STOP']}
  - id: plain
    description: d
    mutating: true
    run: 'echo x >> "$HOME/ran"; echo x >> tracked.txt'
"#;

/// A workspace in whose skills the engine is made to stand still after a command of theirs.
fn bed(obstacle: impl Fn(&Workspace) -> Obstacle) -> (Workspace, Obstacle) {
    let workspace = Workspace::with_skills(&SKILLS.replace("STOP", "true"));
    let obstacle = obstacle(&workspace);
    workspace.worker("w", &SKILLS.replace("STOP", &obstacle.text()));
    workspace.commit_all("with an obstacle");
    (workspace, obstacle)
}

/// Lets what stands at the obstacle go on until the run has ended.
fn until_ended(workspace: &Workspace, obstacle: &Obstacle, run: &str) {
    obstacle.remove();
    eventually("the run ends", || {
        obstacle.let_read();
        let detail = workspace.show(run);
        detail["summary"]["outcome"].is_object().then_some(())
    });
}

/// Kills the daemon while it stands at the configuration in a phase, starts another one, which comes to the
/// same place, and lets that one go on. Answers where the run ended.
fn killed_in(phase: &str, skill: &str) -> (Workspace, String) {
    let (workspace, obstacle) = bed(Obstacle::configuration);
    let daemon = Daemon::start(&workspace);
    let run = workspace.submit(&[skill]);
    // After checks and hooks it reads as well. What it may read of the phase itself meanwhile is the first of
    // several times.
    eventually(&format!("{run} is {phase}"), || {
        let is_there = workspace.show(&run)["summary"]["phase"] == phase;
        if !is_there {
            obstacle.let_read();
        }
        is_there.then_some(())
    });
    daemon.kill();
    let daemon = Daemon::start(&workspace);
    workspace.wait_for_phase(&run, phase);
    until_ended(&workspace, &obstacle, &run);
    rest(&workspace, daemon);
    assert_eq!(count(&workspace, "ran"), 1, "{skill}");
    (workspace, run)
}

#[test]
fn preparing_begins_again() {
    let (workspace, run) = killed_in("preparing", "preparing");
    expect_committed(&workspace, &run);
}

#[test]
fn recording_begins_again_without_the_command() {
    let (workspace, run) = killed_in("verifying", "recording");
    expect_committed(&workspace, &run);
}

#[test]
fn committing_begins_again_before_the_commit_is_built() {
    let (workspace, run) = killed_in("committing", "committing");
    expect_committed(&workspace, &run);
}

/// The log of the branch is read before the branch is moved, and written after.
fn log_of_the_branch(workspace: &Workspace) -> Obstacle {
    Obstacle::at(workspace, workspace.root.join(".git/logs/refs/heads/main"))
}

#[test]
fn a_commit_that_no_branch_holds_yet_is_published() {
    let (workspace, obstacle) = bed(log_of_the_branch);
    // A command puts the obstacle into `.git`.
    workspace.lift_sandbox("w");
    workspace.commit_all("without a sandbox");
    let daemon = Daemon::start(&workspace);
    let before = workspace.read(".git/refs/heads/main").unwrap();
    let run = workspace.submit(&["committing"]);
    workspace.wait_for_event(&run, "commit_prepared");
    daemon.kill();
    assert_eq!(workspace.read(".git/refs/heads/main").unwrap(), before);
    obstacle.remove();
    let daemon = Daemon::start(&workspace);
    expect_committed(&workspace, &run);
    assert_eq!(count(&workspace, "ran"), 1);
    rest(&workspace, daemon);
}

#[test]
fn saving_begins_again() {
    let workspace = Workspace::with_skills(&SKILLS.replace("STOP", "true"));
    let threads = workspace.root.join("workspace/threads");
    std::fs::create_dir_all(&threads).unwrap();
    // Else the first name that is given there is its own.
    std::fs::write(threads.join(".gitignore"), "*\n").unwrap();
    let traced = |command: &mut Command| {
        command.args(["-f", "-o", "/dev/null", "-e", "trace=renameat"]);
        command.arg("-P").arg(&threads);
        command.args(["-e", "inject=renameat:signal=KILL:when=1"]);
    };
    let mut probe = workspace.program("strace");
    traced(&mut probe);
    let works = probe
        .arg("true")
        .status()
        .is_ok_and(|status| status.success());
    if !works {
        skip("`strace` does not work here");
        return;
    }
    let mut command = workspace.program("strace");
    traced(&mut command);
    let plain = workspace.workerctl(&["-v", "daemon"]);
    command.arg(plain.get_program()).args(plain.get_args());
    let daemon = Daemon::start_by(&workspace, command);
    // The first name that is given to a summary is given in saving.
    let run = workspace.submit(&["plain"]);
    daemon.killed();
    let daemon = Daemon::start(&workspace);
    let detail = expect_committed(&workspace, &run);
    let timeline: Vec<_> = detail["timeline"].as_array().unwrap().iter().collect();
    let lost = timeline.iter().position(|one| one[1] == "owner_lost");
    let saved = timeline.iter().position(|one| one[1] == "saved");
    assert!(lost.is_some() && lost < saved, "{detail}");
    assert_eq!(count(&workspace, "ran"), 1);
    rest(&workspace, daemon);
}

#[test]
fn a_landing_that_waits_for_another_engine_says_so_and_can_be_cancelled() {
    let workspace = Workspace::with_skills(&SKILLS.replace("STOP", "true"));
    let facts = locate(&workspace.root).unwrap();
    let lease = RepositoryLease::acquire(&facts, "another engine").unwrap();
    let daemon = Daemon::start(&workspace);
    let run = workspace.submit(&["plain"]);
    workspace.wait_for_event(&run, "landing_waiting");
    workspace.run(&["cancel", &run]).expect_code(0);
    assert_eq!(workspace.wait(&run).0, 130);
    let later = workspace.submit(&["plain"]);
    workspace.wait_for_event(&later, "landing_waiting");
    drop(lease);
    expect_committed(&workspace, &later);
    assert_eq!(count(&workspace, "ran"), 2);
    rest(&workspace, daemon);
}
