//! Branches, `HEAD`, and work trees.

use crate::repository_states::row::Ends::{Fails, Lands, Refused};
use crate::repository_states::row::{Row, check, row, sh};

const OUT: &[&str] = &["out.md"];

const BRANCHES: &[Row] = &[
    row("nothing special", "write", |_| true, Lands("main", OUT)),
    row(
        "an unborn branch",
        "write",
        |w| sh(w, "rm -rf .git; git init -q ."),
        Lands("main", OUT),
    ),
    row(
        "an unborn branch beside one that has commits",
        "write",
        |w| {
            sh(
                w,
                "git switch -q --orphan side; git checkout -q main -- .; git reset -q",
            )
        },
        Lands("side", OUT),
    ),
    row(
        "a detached HEAD",
        "write",
        |w| sh(w, "git switch -q --detach"),
        Refused("detached_head"),
    ),
    row(
        "a detached HEAD, and the branch named",
        "on-main",
        |w| sh(w, "git switch -q --detach"),
        Lands("main", OUT),
    ),
    row(
        "a branch that is missing",
        "on-missing",
        |_| true,
        Fails("prepare", "branch_missing"),
    ),
    row(
        "a branch that is missing and to be made",
        "makes",
        |_| true,
        Lands("made", OUT),
    ),
    row(
        "a branch that is to be made and exists",
        "makes",
        |w| sh(w, "git branch made"),
        Lands("made", OUT),
    ),
    row(
        "a branch that is checked out nowhere",
        "on-side",
        |w| sh(w, "git branch side; echo mine > out.md"),
        Lands("side", OUT),
    ),
    row(
        "a branch named as a directory of another",
        "makes-below",
        |_| true,
        Fails("land", "branch_name"),
    ),
    row(
        "a branch with another below its name",
        "makes-above",
        |w| sh(w, "git branch team/a"),
        Fails("land", "branch_name"),
    ),
    row(
        "packed references",
        "write",
        |w| sh(w, "git branch side; git tag t; git pack-refs --all --prune"),
        Lands("main", OUT),
    ),
    row(
        "a branch with another below its name, packed",
        "makes-above",
        |w| sh(w, "git branch team/a; git pack-refs --all --prune"),
        Fails("land", "branch_name"),
    ),
    row(
        "a branch that is a symbolic reference",
        "on-side",
        |w| sh(w, "git symbolic-ref refs/heads/side refs/heads/main"),
        Fails("prepare", "unsupported_format"),
    ),
    row(
        "a tag of the name of the branch",
        "write",
        |w| sh(w, "git commit -q --allow-empty -m x; git tag main HEAD~1"),
        Lands("main", OUT),
    ),
];

const WORK_TREES: &[Row] = &[
    row(
        "a branch that a linked work tree has checked out",
        "on-side",
        |w| sh(w, "git worktree add -q -b side ../linked"),
        Lands("side", OUT),
    ),
    row(
        "a linked work tree as the workspace",
        "write",
        |w| sh(w, "git worktree add -q -b side ../linked"),
        Lands("side", OUT),
    )
    .at("../linked"),
    row(
        "a linked work tree with changes of its own",
        "on-side",
        |w| {
            sh(
                w,
                "git worktree add -q -b side ../linked; echo mine > ../linked/out.md",
            )
        },
        Fails("land", "checkout_dirty"),
    ),
    row(
        "a linked work tree whose files are gone",
        "on-side",
        |w| sh(w, "git worktree add -q -b side ../linked; rm -rf ../linked"),
        Lands("side", OUT),
    ),
    row(
        "a linked work tree whose files are gone, locked",
        "on-side",
        |w| {
            sh(
                w,
                "git worktree add -q -b side ../linked; git worktree lock ../linked; rm -rf ../linked",
            )
        },
        Fails("land", "checkout_missing"),
    ),
    row(
        "a bare repository",
        "write",
        |w| sh(w, "git config core.bare true"),
        Refused("bare_repository"),
    ),
    row(
        "no repository",
        "write",
        |w| sh(w, "mv .git ../away"),
        Refused("not_a_repository"),
    ),
    row(
        "a workspace below the top of the repository",
        "write",
        |w| {
            sh(
                w,
                "mkdir -p inside; git mv workers workerctl.yaml inside/; git commit -q -m moved",
            )
        },
        Lands("main", &["inside/out.md"]),
    )
    .at("inside"),
    // Git itself takes the directory around such a git directory for the work tree, seen from elsewhere.
    row(
        "a git directory elsewhere",
        "write",
        |w| sh(w, "git init -q --separate-git-dir ../elsewhere.git ."),
        Fails("record", "work_tree_unnamed"),
    ),
    row(
        "a git directory in another repository",
        "edit",
        |w| {
            sh(
                w,
                "git clone -q . ../around; git init -q --separate-git-dir ../around/x.git .",
            )
        },
        Fails("record", "work_tree_unnamed"),
    ),
    row(
        "a git directory elsewhere that names its work tree",
        "edit",
        |w| {
            sh(
                w,
                "git init -q --separate-git-dir ../elsewhere.git .; git config core.worktree \"$PWD\"",
            )
        },
        Lands("main", &["tracked.txt"]),
    ),
];

#[test]
fn on_whatever_branch_a_run_is_to_land() {
    check(BRANCHES);
}

#[test]
fn wherever_the_work_tree_lies() {
    check(WORK_TREES);
}
