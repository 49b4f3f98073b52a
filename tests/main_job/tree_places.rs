//! Where trees of runs lie: places that cannot be used are named with what helps, and nothing has changed.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::workspace::disk::Small;
use crate::workspace::{Done, Workspace};

const SKILLS: &str =
    "  - {id: change, description: d, mutating: true, run: 'echo changed >> tracked.txt'}\n";

/// The command for a workspace that has its state in itself, so that its trees lie elsewhere.
fn inside(workspace: &Workspace, arguments: &[&str]) -> Command {
    let mut command = workspace.program(env!("CARGO_BIN_EXE_workerctl"));
    command.arg("-C").arg(&workspace.root).arg("--state-dir");
    command.arg(workspace.root.join("state")).args(arguments);
    command
}

fn run(workspace: &Workspace, variables: &[(&str, &Path)]) -> Done {
    let mut command = inside(workspace, &["run", "change", "--json"]);
    command.envs(variables.iter().copied());
    workspace.start(&mut command).end()
}

/// A run in such a place fails with this code and says all of this; nothing has changed.
#[track_caller]
fn fails(workspace: &Workspace, variables: &[(&str, &Path)], code: &str, told: &[&str]) {
    let before = (
        workspace.tree(),
        workspace.git(&["for-each-ref", "refs/heads"]),
    );
    let detail = run(workspace, variables).expect_code(6).value();
    let failure = &detail["summary"]["outcome"]["failure"];
    assert_eq!(failure["step"], "prepare", "{failure}");
    assert_eq!(failure["code"], code, "{failure}");
    let message = failure["message"].as_str().unwrap();
    for told in told {
        assert!(message.contains(told), "{message}");
    }
    let after = (
        workspace.tree(),
        workspace.git(&["for-each-ref", "refs/heads"]),
    );
    assert_eq!(after, before);
    assert_eq!(workspace.git(&["status", "--porcelain"]), "");
}

fn succeeds(workspace: &Workspace, variables: &[(&str, &Path)]) {
    let detail: Value = run(workspace, variables).expect_code(0).value();
    let tip = workspace.git(&["rev-parse", "main"]);
    assert_eq!(detail["summary"]["commit"], *tip.trim());
    assert_eq!(workspace.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_place_inside_a_work_tree_is_refused_by_name() {
    let workspace = Workspace::without_sandbox(SKILLS);
    let around = workspace.home.to_str().unwrap();
    workspace.git(&["init", "-q", around]);
    let named = ["is inside the git worktree", around, "`XDG_STATE_HOME`"];
    fails(&workspace, &[], "trees_inside_work_tree", &named);
    let elsewhere = workspace.root.with_file_name("elsewhere");
    succeeds(&workspace, &[("XDG_STATE_HOME", &elsewhere)]);
    assert!(elsewhere.join("workerctl").is_dir());

    // Without a home there is no place at all.
    let mut command = inside(&workspace, &["run", "change", "--json"]);
    command.env_remove("HOME");
    let done = workspace.start(&mut command).end().expect_code(6);
    let told = done.value()["summary"]["outcome"]["failure"].clone();
    assert_eq!(told["code"], "no_place_for_trees", "{told}");
    let message = told["message"].as_str().unwrap();
    assert!(message.contains("`XDG_STATE_HOME` nor `HOME`"), "{message}");
}

#[test]
fn another_file_system_will_do_unless_it_is_full_or_read_only() {
    let Some(small) = Small::create(16) else {
        return;
    };
    let workspace = Workspace::with_skills(SKILLS);
    let there = [("XDG_STATE_HOME", small.path())];
    let place = small.path().to_str().unwrap();
    succeeds(&workspace, &there);
    small.fill();
    fails(&workspace, &there, "disk_full", &[place]);
    small.free();
    succeeds(&workspace, &there);
    small.read_only();
    fails(
        &workspace,
        &there,
        "read_only",
        &[place, "make its place writable"],
    );
}

#[test]
fn a_file_that_a_run_made_immutable_is_named_with_what_frees_it() {
    let immutable = "echo x > tracked.txt; chattr +i tracked.txt || exit 9; exit 3";
    let workspace = Workspace::with_skills(&format!(
        "  - {{id: locks, description: d, mutating: true, run: '{immutable}'}}\n  - {{id: works, description: d, mutating: true, run: 'echo y > tracked.txt'}}\n"
    ));
    let locked = workspace.run(&["run", "locks", "-q"]).expect_code(1);
    if !locked.stderr.contains("exit code 3") {
        return xtest::skip(&format!("no file can be made immutable: {}", locked.stderr));
    }
    let refused = workspace.run(&["run", "works", "-q"]).expect_code(6).stderr;
    let (_, command) = refused.split_once("`chattr -R -i '").expect(&refused);
    let (path, _) = command.split_once('\'').unwrap();
    assert!(path.ends_with("/tracked.txt"), "{refused}");
    let freed = Command::new("chattr").args(["-R", "-i", path]).status();
    assert!(freed.unwrap().success());
    workspace.run(&["run", "works"]).expect_code(0);
}
