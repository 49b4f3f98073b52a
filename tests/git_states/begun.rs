//! States in which no run is begun.

use std::fs;

use crate::bed::Bed;
use crate::runs::{Expect, State, check_all, diverge, out};

#[expect(clippy::too_many_lines, reason = "it is a table")]
fn begun_operations() -> Vec<State> {
    fn refused(name: &'static str, build: fn(&Bed), code: &'static str) -> State {
        let (change, expect) = (out as fn(&Bed), Expect::Refused(code));
        State {
            name,
            build,
            change,
            expect,
        }
    }
    vec![
        refused(
            "merge in progress",
            |b| {
                diverge(b);
                assert!(!b.try_git(&["merge", "side"]).0);
            },
            "merge_in_progress",
        ),
        refused(
            "conflict left in the index",
            |b| {
                diverge(b);
                assert!(!b.try_git(&["merge", "side"]).0);
                fs::remove_file(b.at(".git/MERGE_HEAD")).unwrap();
            },
            "index_conflicts",
        ),
        refused(
            "rebase in progress",
            |b| {
                diverge(b);
                assert!(!b.try_git(&["rebase", "side"]).0);
            },
            "rebase_in_progress",
        ),
        refused(
            "cherry-pick in progress",
            |b| {
                diverge(b);
                assert!(!b.try_git(&["cherry-pick", "side"]).0);
            },
            "cherry_pick_in_progress",
        ),
        refused(
            "revert in progress",
            |b| {
                b.write("a.txt", "a3\n");
                b.commit_all("third");
                assert!(!b.try_git(&["revert", "--no-edit", "HEAD~1"]).0);
            },
            "revert_in_progress",
        ),
        refused(
            "bisect in progress",
            |b| {
                b.git(&["bisect", "start"]);
                b.git(&["bisect", "bad"]);
            },
            "bisect_in_progress",
        ),
        refused(
            "detached HEAD",
            |b| {
                b.git(&["checkout", "-q", "--detach"]);
            },
            "detached_head",
        ),
        refused(
            "index locked by another program",
            |b| b.write(".git/index.lock", ""),
            "locked",
        ),
        refused(
            "branch locked by another program",
            |b| {
                b.write(".git/refs/heads/main.lock", "");
            },
            "locked",
        ),
        refused(
            "SHA-256 repository",
            |b| {
                fs::remove_dir_all(b.at(".git")).unwrap();
                b.git(&["init", "-q", "--object-format=sha256", "."]);
            },
            "unsupported_format",
        ),
        refused(
            "split index",
            |b| {
                b.git(&["update-index", "--split-index"]);
            },
            "unsupported_format",
        ),
        refused(
            "sparse index",
            |b| {
                b.git(&[
                    "sparse-checkout",
                    "set",
                    "--cone",
                    "--sparse-index",
                    "nothing",
                ]);
            },
            "unsupported_format",
        ),
        refused(
            "bare repository",
            |b| {
                b.git(&["config", "core.bare", "true"]);
            },
            "bare_repository",
        ),
        refused(
            "no repository",
            |b| {
                fs::rename(b.at(".git"), b.dir.path().join("away")).unwrap();
            },
            "not_a_repository",
        ),
        refused(
            "truncated index",
            |b| {
                let index = fs::read(b.at(".git/index")).unwrap();
                fs::write(b.at(".git/index"), &index[..index.len() / 2]).unwrap();
            },
            "git",
        ),
        refused(
            "no author",
            |b| {
                b.git(&["config", "--unset", "user.name"]);
            },
            "author_unset",
        ),
        refused(
            "author with a line end",
            |b| {
                b.git(&["config", "user.name", "Ada\nparent 0"]);
            },
            "author_invalid",
        ),
    ]
}

#[test]
fn begun_operations_are_refused() {
    check_all(begun_operations());
}
