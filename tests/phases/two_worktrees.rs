//! Two work trees of one repository, each a workspace with an engine of its own: hidden refs are common.

use std::path::{Path, PathBuf};

use workerctl::git::{RepositoryLease, locate};

use crate::workspace::{Done, Workspace, eventually};

const SKILLS: &str = r"
  - {id: bad, description: d, mutating: true, run: 'echo x >> tracked.txt; exit 1'}
  - {id: noop, description: d, run: 'true'}
";

/// A run in the second work tree.
fn run_in(workspace: &Workspace, other: &Path, skill: &str) -> Done {
    let mut command = workspace.program(env!("CARGO_BIN_EXE_workerctl"));
    command.arg("-C").arg(other).arg("--state-dir");
    command.arg(workspace.home.join("other-state"));
    command.args(["run", skill]);
    workspace.start(&mut command).end()
}

/// A workspace that keeps refs a second, and a second work tree that keeps them as long as usual.
fn bed() -> (Workspace, PathBuf) {
    let workspace = Workspace::without_sandbox(SKILLS);
    let other = workspace.home.join("other");
    let place = other.to_str().unwrap();
    workspace.git(&["worktree", "add", "-q", "-b", "other", place]);
    workspace.write("workerctl.yaml", "keep_refs: 1s\n");
    workspace.commit_all("configured");
    (workspace, other)
}

fn refs(workspace: &Workspace) -> Vec<String> {
    let text = workspace.git(&["for-each-ref", "--format=%(refname)", "refs/workerctl"]);
    text.lines().map(str::to_owned).collect()
}

#[test]
fn refs_of_another_work_tree_stay_when_ours_go() {
    let (workspace, other) = bed();
    run_in(&workspace, &other, "bad").expect_code(1);
    let theirs = refs(&workspace);
    assert!(!theirs.is_empty());
    let facts = locate(&workspace.root).unwrap();
    workspace.run(&["run", "bad"]).expect_code(1);
    let mut ours = refs(&workspace);
    ours.retain(|name| !theirs.contains(name));
    // A run of which nobody knows anything any more.
    let lost = "refs/workerctl/runs/00000000010000000000000000/baseline";
    workspace.git(&["update-ref", lost, "HEAD"]);
    let lease = RepositoryLease::acquire(&facts, "another engine").unwrap();
    // Each of these engines sweeps once; a second must have passed since the run.
    eventually("our refs are gone", || {
        workspace.run(&["run", "noop"]).expect_code(0);
        let left = refs(&workspace);
        (!left.iter().any(|name| ours.contains(name))).then_some(())
    });
    let left = refs(&workspace);
    assert!(theirs.iter().all(|name| left.contains(name)), "{left:?}");
    assert!(
        left.iter().any(|name| name == lost),
        "its run may hold the lease"
    );

    drop(lease);
    eventually("refs of nobody's go after a year", || {
        workspace.run(&["run", "noop"]).expect_code(0);
        (!refs(&workspace).contains(&lost.to_owned())).then_some(())
    });
    assert_eq!(refs(&workspace), theirs);
    run_in(&workspace, &other, "noop").expect_code(0);
    assert_eq!(refs(&workspace), theirs);
}
