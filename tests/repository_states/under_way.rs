//! What a person, or git, is in the middle of.

use crate::repository_states::row::Ends::{Fails, Lands, Refused};
use crate::repository_states::row::{Row, check, row, sh};

const OUT: &[&str] = &["out.md"];
const TRACKED: &[&str] = &["tracked.txt"];

/// Two branches that have changed the same line.
const DIVERGE: &str = "git switch -q -c side; echo side > tracked.txt; git commit -qam side; \
    git switch -q main; echo main > tracked.txt; git commit -qam main; ";

macro_rules! after_diverging {
    ($text:literal) => {
        |w| sh(w, &format!("{DIVERGE}{}", $text))
    };
}

const OPERATIONS: &[Row] = &[
    row(
        "a merge in progress",
        "write",
        after_diverging!("! git merge -q side"),
        Fails("land", "busy"),
    ),
    row(
        "a merge in progress on another branch",
        "on-side",
        after_diverging!("! git merge -q side"),
        Lands("side", OUT),
    ),
    row(
        "a rebase in progress",
        "on-main",
        after_diverging!("! git rebase -q side"),
        Fails("land", "busy"),
    ),
    row(
        "a rebase in progress, no branch named",
        "write",
        after_diverging!("! git rebase -q side"),
        Refused("detached_head"),
    ),
    row(
        "a rebase in progress on another branch",
        "on-side",
        after_diverging!("! git rebase -q side"),
        Lands("side", OUT),
    ),
    row(
        "a cherry-pick in progress",
        "write",
        after_diverging!("! git cherry-pick side"),
        Fails("land", "busy"),
    ),
    row(
        "a revert in progress",
        "write",
        after_diverging!(
            "echo third > tracked.txt; git commit -qam third; ! git revert --no-edit HEAD~1"
        ),
        Fails("land", "busy"),
    ),
    row(
        "patches being applied",
        "write",
        after_diverging!("git format-patch -q -1 side --stdout > ../patch; ! git am -q ../patch"),
        Fails("land", "busy"),
    ),
    row(
        "a bisection in progress",
        "on-main",
        after_diverging!("git bisect start main main~1"),
        Fails("land", "busy"),
    ),
    row(
        "a bisection in progress on another branch",
        "on-side",
        after_diverging!("git bisect start main main~1"),
        Lands("side", OUT),
    ),
    row(
        "a conflict left in the index",
        "write",
        after_diverging!("! git merge -q side; rm .git/MERGE_HEAD"),
        Lands("main", OUT),
    ),
    row(
        "a conflict of the path left in the index",
        "edit",
        after_diverging!("! git merge -q side; rm .git/MERGE_HEAD"),
        Fails("land", "checkout_dirty"),
    ),
    row(
        "a run that leaves a merge unresolved",
        "unmerged",
        after_diverging!(""),
        Fails("record", "operation"),
    ),
];

const CHANGES: &[Row] = &[
    row(
        "staged, changed and untracked files beside",
        "write",
        |w| {
            sh(
                w,
                "echo staged > tracked.txt; git add tracked.txt; echo changed > tracked.txt; \
                 echo mine > mine.txt; git rm -q --cached dir/c.txt",
            )
        },
        Lands("main", OUT),
    ),
    row(
        "the path changed",
        "edit",
        |w| sh(w, "echo mine >> tracked.txt"),
        Fails("land", "checkout_dirty"),
    ),
    row(
        "the path staged",
        "edit",
        |w| sh(w, "echo mine >> tracked.txt; git add tracked.txt"),
        Fails("land", "checkout_dirty"),
    ),
    row(
        "the path staged, and as committed in the work tree",
        "edit",
        |w| {
            sh(
                w,
                "cp tracked.txt ../was; echo mine >> tracked.txt; git add tracked.txt; cp ../was tracked.txt",
            )
        },
        Fails("land", "checkout_dirty"),
    ),
    row(
        "the path deleted",
        "edit",
        |w| sh(w, "rm tracked.txt"),
        Fails("land", "checkout_dirty"),
    ),
    row(
        "the path taken out of the index",
        "edit",
        |w| sh(w, "git rm -q --cached tracked.txt"),
        Fails("land", "checkout_dirty"),
    ),
    row(
        "the path deleted, as the run does",
        "remove",
        |w| sh(w, "rm tracked.txt"),
        Lands("main", TRACKED),
    ),
    row(
        "the path with another mode",
        "edit",
        |w| sh(w, "chmod +x tracked.txt"),
        Fails("land", "checkout_dirty"),
    ),
    row(
        "an untracked file in the way",
        "write",
        |w| sh(w, "echo mine > out.md"),
        Fails("land", "checkout_dirty"),
    ),
    row(
        "an untracked file in the way that holds the same",
        "write",
        |w| sh(w, "echo out > out.md"),
        Lands("main", OUT),
    ),
    row(
        "an ignored file in the way",
        "write",
        |w| sh(w, "echo mine > out.md; echo out.md >> .gitignore"),
        Fails("land", "checkout_dirty"),
    ),
    row(
        "a directory in the way",
        "write",
        |w| sh(w, "mkdir out.md; echo mine > out.md/mine"),
        Fails("land", "checkout_dirty"),
    ),
    row(
        "an empty directory in the way",
        "write",
        |w| sh(w, "mkdir out.md"),
        Lands("main", OUT),
    ),
    row(
        "a link to a directory in the way",
        "below",
        |w| sh(w, "mv dir ../away; ln -s ../away dir"),
        Fails("land", "checkout_dirty"),
    ),
    row(
        "a file where the run needs a directory",
        "below",
        |w| sh(w, "git rm -rqf dir; git commit -q -m x; echo mine > dir"),
        Fails("land", "checkout_dirty"),
    ),
    row(
        "a dangling link in the way",
        "write",
        |w| sh(w, "ln -s nowhere out.md"),
        Fails("land", "checkout_dirty"),
    ),
    row(
        "a stash",
        "meddles",
        |w| {
            sh(
                w,
                "git branch side; echo mine > tracked.txt; git stash -q; echo mine > dir/c.txt",
            )
        },
        Lands("main", OUT),
    ),
    row(
        "a run that goes to another branch",
        "switches",
        |_| true,
        Fails("record", "head_moved"),
    ),
];

const LOCKS: &[Row] = &[
    row(
        "a foreign lock of the index",
        "write",
        |w| sh(w, ": > .git/index.lock"),
        Fails("land", "busy"),
    ),
    row(
        "a foreign lock of HEAD",
        "write",
        |w| sh(w, ": > .git/HEAD.lock"),
        Fails("land", "busy"),
    ),
    row(
        "a foreign lock of the branch",
        "write",
        |w| sh(w, ": > .git/refs/heads/main.lock"),
        Fails("land", "busy"),
    ),
    row(
        "a foreign lock of the packed references",
        "write",
        |w| sh(w, "git pack-refs --all --prune; : > .git/packed-refs.lock"),
        Lands("main", OUT),
    ),
    row(
        "a foreign lock of the settings",
        "write",
        |w| sh(w, ": > .git/config.lock"),
        Lands("main", OUT),
    ),
];

#[test]
fn whatever_git_has_in_progress() {
    check(OPERATIONS);
}

#[test]
fn whatever_a_person_has_changed() {
    check(CHANGES);
}

#[test]
fn whoever_holds_a_lock() {
    check(LOCKS);
}
