//! States in which a run gets its commit, or is taken back.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use crate::bed::{Bed, submodule};
use crate::runs::{Expect, State, check_all, diverge, out};

/// A program that shows itself in the work tree and never ends, unless these tests' own `git`
/// runs it.
const HOSTILE: &str = "#!/bin/sh\n[ -n \"$GIT_OPTIONAL_LOCKS\" ] && exit 1\n\
    touch hook-ran\nsleep 1000\nexit 1\n";

const OUT: Expect = Expect::Committed(&["out.md"]);

#[expect(clippy::too_many_lines, reason = "it is a table")]
fn ordinary_states() -> Vec<State> {
    fn done(name: &'static str, build: fn(&Bed), expect: Expect) -> State {
        State {
            name,
            build,
            change: out,
            expect,
        }
    }
    vec![
        done(
            "stale index lock of ours",
            |b| {
                b.write(
                    ".git/index.lock",
                    "workerctl pid=1 start=0 boot=gone owner=\n",
                );
                b.write(
                    ".git/refs/heads/main.lock",
                    "workerctl pid=1 start=0 boot=gone owner=\n",
                );
            },
            OUT,
        ),
        done(
            "unborn branch",
            |b| {
                fs::remove_dir_all(&b.root).unwrap();
                fs::create_dir(&b.root).unwrap();
                b.git(&["init", "-q", "."]);
                b.git(&["config", "user.name", "Ada"]);
                b.git(&["config", "user.email", "ada@example.com"]);
            },
            OUT,
        ),
        done(
            "hooks that fail and hang",
            |b| {
                for hook in [
                    "pre-commit",
                    "commit-msg",
                    "post-commit",
                    "reference-transaction",
                ] {
                    let at = b.at(".git/hooks").join(hook);
                    fs::create_dir_all(at.parent().unwrap()).unwrap();
                    fs::write(&at, HOSTILE).unwrap();
                    fs::set_permissions(at, fs::Permissions::from_mode(0o755)).unwrap();
                }
                let monitor = b.dir.path().join("monitor");
                fs::write(&monitor, HOSTILE).unwrap();
                fs::set_permissions(&monitor, fs::Permissions::from_mode(0o755)).unwrap();
                b.git(&["config", "core.fsmonitor", monitor.to_str().unwrap()]);
            },
            OUT,
        ),
        done(
            "commit.gpgsign",
            |b| {
                b.git(&["config", "commit.gpgsign", "true"]);
                b.git(&["config", "gpg.program", "/bin/false"]);
            },
            OUT,
        ),
        done(
            "sparse checkout",
            |b| {
                b.git(&["sparse-checkout", "set", "--no-cone", "/a.txt", "/out.md"]);
                assert!(!b.at("dir/c.txt").exists());
            },
            OUT,
        ),
        done(
            "staged, dirty and untracked work of the user",
            |b| {
                b.write("a.txt", "staged\n");
                b.git(&["add", "a.txt"]);
                b.write("a.txt", "dirty\n");
                b.write("mine.txt", "untracked\n");
                b.git(&["rm", "-q", "--cached", "dir/c.txt"]);
            },
            OUT,
        ),
        done(
            "packed references and objects",
            |b| {
                b.git(&["gc", "-q"]);
            },
            OUT,
        ),
        done(
            "dirty submodule",
            |b| {
                submodule(b);
                b.write("sub/inner.txt", "dirty\n");
            },
            OUT,
        ),
        done(
            "repository inside",
            |b| {
                b.git(&["init", "-q", "inside"]);
                b.write("inside/x", "x");
            },
            OUT,
        ),
        done(
            "LFS attributes on other paths",
            |b| {
                b.write(
                    ".gitattributes",
                    "*.bin filter=lfs diff=lfs merge=lfs -text\n",
                );
                b.commit_all("attributes");
                b.write("large.bin", "content that is dirty already");
            },
            OUT,
        ),
        State {
            name: "empty change",
            build: |_| {},
            change: |b| b.write("a.txt", "a2\n"),
            expect: Expect::Nothing,
        },
        State {
            name: "only an ignored output",
            build: |b| {
                b.write(".gitignore", "out.md\n");
                b.commit_all("ignore");
            },
            change: out,
            expect: Expect::Nothing,
        },
        State {
            name: "modes and links",
            build: |_| {},
            change: |b| {
                b.write("tool.sh", "#!/bin/sh\n");
                fs::set_permissions(b.at("tool.sh"), fs::Permissions::from_mode(0o755)).unwrap();
                symlink("../outside", b.at("link")).unwrap();
            },
            expect: Expect::Committed(&["link", "tool.sh"]),
        },
        State {
            name: "names that differ in case",
            build: |_| {},
            change: |b| {
                b.write("A.txt", "A\n");
            },
            expect: Expect::Committed(&["A.txt"]),
        },
        State {
            name: "line ends",
            build: |b| {
                b.git(&["config", "core.autocrlf", "true"]);
            },
            change: |b| b.write("out.md", "one\r\ntwo\r\n"),
            expect: OUT,
        },
    ]
}

fn changes_that_are_taken_back() -> Vec<State> {
    vec![
        State {
            name: "the run dirties a submodule",
            build: submodule,
            change: |b| {
                b.write("sub/inner.txt", "run\n");
            },
            expect: Expect::TakenBack("submodule_changed", &["sub"]),
        },
        State {
            name: "the run commits in a submodule",
            build: submodule,
            change: |b| {
                let sub = ["-C", "sub", "-c", "user.name=A", "-c", "user.email=a@b"];
                let commit = ["commit", "-q", "--allow-empty", "-m", "run"];
                b.git(&[&sub[..], &commit[..]].concat());
            },
            expect: Expect::TakenBack("submodule_changed", &["sub"]),
        },
        State {
            name: "the run makes a repository inside",
            build: |_| {},
            change: |b| {
                b.git(&["init", "-q", "out/nested"]);
                b.write("out/nested/x", "x");
            },
            expect: Expect::TakenBack("nested_repository", &["out/nested"]),
        },
        State {
            name: "the run writes an LFS path",
            build: |b| {
                b.write(".gitattributes", "*.bin filter=lfs\n");
                b.commit_all("attributes");
            },
            change: |b| b.write("large.bin", "content"),
            expect: Expect::TakenBack("filtered", &["large.bin"]),
        },
        State {
            name: "the run leaves a merge unresolved",
            build: diverge,
            change: |b| {
                assert!(!b.try_git(&["merge", "side"]).0);
            },
            expect: Expect::TakenBack("unmerged", &[]),
        },
        State {
            name: "the run edits a dirty file",
            build: |b| b.write("a.txt", "mine\n"),
            change: |b| b.write("a.txt", "mine and the run's\n"),
            expect: Expect::TakenBack("path_was_dirty", &[]),
        },
        State {
            name: "names differ in case where case does not matter",
            build: |b| {
                b.git(&["config", "core.ignorecase", "true"]);
            },
            change: |b| b.write("DIR/C.txt", "C\n"),
            expect: Expect::TakenBack("case_collision", &[]),
        },
    ]
}

#[test]
fn ordinary_states_get_one_commit() {
    check_all(ordinary_states());
}

#[test]
fn what_cannot_be_committed_is_taken_back() {
    check_all(changes_that_are_taken_back());
}
