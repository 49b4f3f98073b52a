//! Submodules of a run: what git takes for a change is one.

use std::fs;
use std::path::{Path, PathBuf};

use workerctl_trees::{RunResult, Tree};

use crate::results::import;
use crate::rig::{Rig, git, names};

/// A repository with a submodule `sub`, and the repository of that with two more commits.
fn scene() -> (Rig, PathBuf, [String; 2]) {
    let rig = Rig::new();
    let lib = rig.root().join("lib");
    fs::create_dir(&lib).unwrap();
    git(&lib, &["init", "-q", "-b", "main"]);
    let commit = |text: &str| {
        fs::write(lib.join("lib.txt"), text).unwrap();
        git(&lib, &["add", "-A"]);
        git(&lib, &["commit", "-q", "-m", text]);
        git(&lib, &["rev-parse", "HEAD"]).trim().to_owned()
    };
    let first = commit("one");
    rig.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        "../lib",
        "sub",
    ]);
    rig.git(&[
        "config",
        "-f",
        ".gitmodules",
        "submodule.sub.url",
        lib.to_str().unwrap(),
    ]);
    rig.commit("with a submodule");
    let second = commit("two");
    (rig, lib, [first, second])
}

fn check_out(tree: &Path) {
    git(
        tree,
        &[
            "-c",
            "protocol.file.allow=always",
            "submodule",
            "--quiet",
            "update",
            "--init",
        ],
    );
}

/// The result, which has to be the tree that `git add -A` makes of the index, and what git calls a change.
fn result(rig: &Rig, change: impl FnOnce(&Path)) -> (RunResult, Tree) {
    let mut tree = rig.take("w");
    let start = rig.equal(&mut tree);
    change(tree.path());
    let result = tree.result(&start).unwrap();
    assert_eq!(tree.drift(&start, &result).unwrap(), []);
    (result, tree)
}

fn as_git_has_it(result: &RunResult, tree: &Tree) {
    assert_eq!(result.problems, []);
    git(tree.path(), &["add", "-A"]);
    let judged = git(tree.path(), &["write-tree"]);
    assert_eq!(result.tree.as_str(), judged.trim());
}

fn code(result: &RunResult) -> &str {
    assert_eq!(result.problems.len(), 1, "{:?}", result.problems);
    &result.problems[0].code
}

#[test]
fn what_git_calls_clean_is_no_change() {
    let (rig, ..) = scene();
    let (untouched, tree) = result(&rig, |_| {});
    as_git_has_it(&untouched, &tree);
    let (checked_out, tree) = result(&rig, check_out);
    as_git_has_it(&checked_out, &tree);
    let (written, tree) = result(&rig, |at| fs::write(at.join("sub/file"), "x").unwrap());
    as_git_has_it(&written, &tree);
    assert_eq!(written.ignored.names, ["sub/"]);
    for result in [untouched, checked_out, written] {
        assert_eq!(result.changes, []);
    }
}

#[test]
fn a_submodule_that_moves_comes_or_goes_is_a_change() {
    let (rig, lib, [_, second]) = scene();
    let moved = |at: &Path| {
        check_out(at);
        git(&at.join("sub"), &["checkout", "-q", &second]);
    };
    let (at_second, tree) = result(&rig, moved);
    as_git_has_it(&at_second, &tree);
    assert_eq!(names(&at_second.changes), ["sub"]);
    assert_eq!(
        at_second.changes[0].new.as_ref().unwrap().oid.as_str(),
        second
    );
    // Staged or committed without a work tree, it is the same.
    let info = format!("160000,{second},sub");
    let (staged, tree) = result(&rig, |at| {
        git(at, &["update-index", "--cacheinfo", &info]);
    });
    as_git_has_it(&staged, &tree);
    assert_eq!(staged.tree, at_second.tree);
    let (committed, _) = result(&rig, |at| {
        git(at, &["update-index", "--cacheinfo", &info]);
        git(at, &["commit", "-q", "-m", "moved"]);
    });
    assert_eq!(
        (committed.tree, committed.commits_count),
        (at_second.tree.clone(), 1)
    );
    let (gone, tree) = result(&rig, |at| {
        git(at, &["rm", "-q", "sub"]);
    });
    as_git_has_it(&gone, &tree);
    import(&rig, tree.path());
    assert_eq!(names(&gone.changes), [".gitmodules", "sub"]);
    let (added, tree) = result(&rig, |at| {
        let url = lib.to_str().unwrap();
        git(
            at,
            &[
                "-c",
                "protocol.file.allow=always",
                "submodule",
                "--quiet",
                "add",
                url,
                "more/other",
            ],
        );
    });
    as_git_has_it(&added, &tree);
    import(&rig, tree.path());
    assert_eq!(names(&added.changes), [".gitmodules", "more/other"]);

    // The same on another base, in another tree, without the work trees.
    fs::write(rig.repo().join("unrelated"), "u").unwrap();
    rig.commit("unrelated");
    for former in [at_second, gone, added] {
        let mut tree = rig.take("w");
        let head = rig.head();
        let start = rig
            .with_base(Some(&head), |base| tree.make_result(base, &former.changes))
            .unwrap();
        let again = tree.result(&start).unwrap();
        assert_eq!(again.problems, []);
        assert_eq!(again.changes, former.changes);
    }
}

#[test]
fn what_would_be_lost_with_the_tree_is_refused_by_name() {
    let (rig, ..) = scene();
    let (dirty, _) = result(&rig, |at| {
        check_out(at);
        fs::write(at.join("sub/lib.txt"), "edited").unwrap();
    });
    assert_eq!(code(&dirty), "submodule_dirty");
    let (own, _) = result(&rig, |at| {
        check_out(at);
        git(
            &at.join("sub"),
            &["commit", "-q", "--allow-empty", "-m", "own"],
        );
    });
    assert_eq!(code(&own), "submodule_unpublished");
    let (pushed, tree) = result(&rig, |at| {
        check_out(at);
        git(
            &at.join("sub"),
            &["commit", "-q", "--allow-empty", "-m", "own"],
        );
        git(
            &at.join("sub"),
            &["push", "-q", "origin", "HEAD:refs/heads/by-run"],
        );
    });
    as_git_has_it(&pushed, &tree);
    assert_eq!(names(&pushed.changes), ["sub"]);
    // What nobody has added is a repository inside the result, as before.
    let (inner, _) = result(&rig, |at| {
        fs::create_dir(at.join("inner")).unwrap();
        git(&at.join("inner"), &["init", "-q"]);
    });
    assert_eq!(code(&inner), "nested_repository");
}

#[test]
fn a_repository_that_leads_out_of_the_tree_is_refused() {
    let (rig, lib, _) = scene();
    let (led_out, _) = result(&rig, |at| {
        let line = format!("gitdir: {}\n", lib.join(".git").display());
        fs::write(at.join("sub/.git"), line).unwrap();
    });
    assert_eq!(code(&led_out), "submodule");
    let (link, _) = result(&rig, |at| {
        std::os::unix::fs::symlink(lib.join(".git"), at.join("sub/.git")).unwrap();
    });
    assert_eq!(code(&link), "submodule");
    let (elsewhere, _) = result(&rig, |at| {
        check_out(at);
        git(
            &at.join("sub"),
            &["config", "core.worktree", lib.to_str().unwrap()],
        );
    });
    assert_eq!(code(&elsewhere), "submodule");
}
