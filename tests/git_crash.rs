//! A commit that is killed at any of its system calls, and what of it is synced.
//!
//! Both need `strace`; where it does not work, the tests say that they were skipped. The tests
//! beside the code show the same recovery step by step without it.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test stops at the first surprise and says what it skips"
)]

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};
use workerctl::git::{
    Author, Baseline, CommitRequest, Deadline, Exclusions, Found, Limits, Moved, Prepared,
    PreparedCommit, RepoPath, RepositoryLease, ResultTree, RunId, attribute, baseline, drop_refs,
    find_commit, locate, message_with_trailers, move_ref, prepare_commit, restore, result_tree,
};

const RUN: &str = "01JC0000000000000000000000";
const PLACE: &str = "WORKERCTL_TEST_CRASH_PLACE";

/// More files than have their objects synced one by one.
const BULK: usize = 100;

/// The system calls that change something durable, at each of which the commit is killed.
const CALLS: [&str; 7] = [
    "rename", "link", "unlink", "fsync", "mkdir", "rmdir", "renameat",
];

fn git(root: &Path, args: &[&str]) -> (bool, String) {
    let output = Command::new("git")
        .args(args)
        .current_dir(root)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.success(),
        String::from_utf8_lossy(&text).trim_end().to_owned(),
    )
}

fn done(root: &Path, args: &[&str]) -> String {
    let (ok, text) = git(root, args);
    assert!(ok, "git {args:?}: {text}");
    text
}

/// What a run has on record when its commit begins.
#[derive(Serialize, Deserialize)]
struct Journal {
    baseline: Baseline,
    result: Option<ResultTree>,
    prepared: Option<PreparedCommit>,
}

impl Journal {
    fn read(place: &Path) -> Self {
        serde_json::from_slice(&fs::read(place.join("journal")).unwrap()).unwrap()
    }

    fn write(&self, place: &Path) {
        let text = serde_json::to_vec(self).unwrap();
        fs::write(place.join("journal.new"), text).unwrap();
        fs::rename(place.join("journal.new"), place.join("journal")).unwrap();
    }
}

fn run() -> RunId {
    RUN.parse().unwrap()
}

fn ada() -> Author {
    Author {
        name: "Ada".to_owned(),
        email: "ada@example.com".to_owned(),
    }
}

/// A repository in which a run has ended and its commit has not begun.
fn template(place: &Path) {
    let before = begun(place);
    let root = place.join("repo");
    fs::write(root.join("a.txt"), "run\n").unwrap();
    fs::create_dir_all(root.join("out/deep")).unwrap();
    fs::write(root.join("out/deep/x.md"), "x\n").unwrap();
    fs::remove_file(root.join("dir/c.txt")).unwrap();
    ended(place, before);
}

/// A repository in which a run has changed so much that its objects are not synced one by one, and
/// nothing of that is recorded.
fn bulky_template(place: &Path) {
    let before = begun(place);
    let bulk = place.join("repo/bulk");
    for n in 0..BULK {
        let directory = bulk.join(format!("{}", n % 10));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(format!("{n}.txt")), format!("{n}\n")).unwrap();
    }
    let journal = Journal {
        baseline: before,
        result: None,
        prepared: None,
    };
    journal.write(place);
}

fn begun(place: &Path) -> Baseline {
    let root = place.join("repo");
    fs::create_dir_all(root.join("dir")).unwrap();
    done(&root, &["init", "-q", "-b", "main", "."]);
    fs::write(root.join("a.txt"), "a\n").unwrap();
    fs::write(root.join("dir/c.txt"), "c\n").unwrap();
    done(&root, &["add", "-A"]);
    let who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"];
    done(
        &root,
        &[&who[..], &["commit", "-q", "-m", "first"]].concat(),
    );
    baseline(
        &root,
        &Exclusions::default(),
        &Limits::default(),
        &run(),
        Deadline::NONE,
    )
    .unwrap()
}

fn ended(place: &Path, before: Baseline) {
    let result = recorded(place, &before);
    let journal = Journal {
        baseline: before,
        result: Some(result),
        prepared: None,
    };
    journal.write(place);
}

fn recorded(place: &Path, before: &Baseline) -> ResultTree {
    let (exclusions, limits) = (Exclusions::default(), Limits::default());
    result_tree(&place.join("repo"), before, &exclusions, &limits, &[]).unwrap()
}

fn prepare(place: &Path, journal: &mut Journal) -> PreparedCommit {
    let result = journal.result.as_ref().unwrap();
    let paths = attribute(&journal.baseline, result, None)
        .unwrap()
        .commit_paths;
    let message = message_with_trailers("out", &[("Run-Id", RUN)]);
    let request = CommitRequest {
        refname: journal.baseline.head.refname(),
        baseline: &journal.baseline,
        result,
        paths: &paths,
        message: &message,
        author: &ada(),
        time_s: 1_800_000_000,
        offset_min: 0,
    };
    let Prepared::Commit(commit) =
        prepare_commit(&place.join("repo"), &request, Deadline::NONE).unwrap()
    else {
        panic!("there is something to commit");
    };
    journal.prepared = Some(commit.clone());
    journal.write(place);
    commit
}

fn commit(place: &Path) {
    let root = place.join("repo");
    let facts = locate(&root).unwrap();
    let _lease = RepositoryLease::acquire(&facts, "test").unwrap();
    let mut journal = Journal::read(place);
    if journal.result.is_none() {
        journal.result = Some(recorded(place, &journal.baseline));
        journal.write(place);
    }
    let commit = match journal.prepared.clone() {
        Some(commit) => commit,
        None => prepare(place, &mut journal),
    };
    let parent = commit.parent.as_ref();
    let found = find_commit(&root, &commit.refname, Some(&commit.oid), &run(), parent).unwrap();
    assert!(
        matches!(found, Found::AtParent | Found::Done { .. }),
        "{found:?}"
    );
    let moved = move_ref(&root, &commit, &ada(), 1_800_000_000, 0, "run").unwrap();
    assert!(
        matches!(moved, Moved::Done { .. } | Moved::AlreadyThere { .. }),
        "{moved:?}"
    );
}

fn put_back(place: &Path) {
    let journal = Journal::read(place);
    let (exclusions, limits) = (Exclusions::default(), Limits::default());
    let root = place.join("repo");
    let facts = locate(&root).unwrap();
    let _lease = RepositoryLease::acquire(&facts, "test").unwrap();
    let result = journal.result.as_ref();
    let back = restore(&root, &journal.baseline, result, &exclusions, &limits).unwrap();
    assert!(back.is_complete(), "{back:?}");
}

#[test]
#[ignore = "run under strace by the tests below"]
fn inner_commit() {
    commit(&PathBuf::from(std::env::var_os(PLACE).unwrap()));
}

#[test]
#[ignore = "run under strace by the tests below"]
fn inner_restore() {
    put_back(&PathBuf::from(std::env::var_os(PLACE).unwrap()));
}

/// Runs an inner test under strace; says whether it ended by itself.
fn traced(place: &Path, options: &[&str], inner: &str) -> bool {
    let status = Command::new("strace")
        .args(["-f", "-qq"])
        .args(options)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", inner, "--ignored", "--test-threads=1"])
        .env(PLACE, place)
        .env("HOME", place)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.unwrap().success()
}

fn strace_works() -> bool {
    let probe = Command::new("strace")
        .args(["-o", "/dev/null", "true"])
        .status();
    let works = probe.is_ok_and(|s| s.success());
    if !works {
        eprintln!("skipped: `strace` does not work here");
    }
    works
}

fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp")
        .arg("-a")
        .arg(from)
        .arg(to)
        .status()
        .unwrap();
    assert!(status.success());
}

/// Kills `inner` at every call that changes something, then lets `recover` finish and `check`.
fn kill_everywhere(inner: &str, recover: fn(&Path), check: fn(&Path)) {
    kill_at(&CALLS, 1, template, inner, recover, check);
}

/// Kills `inner` at every so many of these calls.
fn kill_at(
    calls: &[&str],
    step: usize,
    template: fn(&Path),
    inner: &str,
    recover: fn(&Path),
    check: fn(&Path),
) {
    if !strace_works() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let origin = dir.path().join("origin");
    template(&origin);
    let mut points = 0;
    for call in calls {
        for nth in (1..2_000).step_by(step) {
            let place = dir.path().join(format!("{call}-{nth}"));
            copy(&origin, &place);
            let trace = format!("trace={call}");
            let inject = format!("inject={call}:signal=KILL:when={nth}");
            let ended = traced(
                &place,
                &["-o", "/dev/null", "-e", &trace, "-e", &inject],
                inner,
            );
            recover(&place);
            check(&place);
            fs::remove_dir_all(&place).unwrap();
            if ended {
                break;
            }
            points += 1;
        }
    }
    assert!(points >= 10, "only {points} points");
    eprintln!("{inner}: killed at {points} points");
}

fn leftovers(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let lock = path.extension().is_some_and(|e| e == "lock") && name != "workerctl.lock";
        if name.contains("workerctl-") || lock {
            found.push(path);
        } else if path.is_dir() && !path.is_symlink() {
            found.extend(leftovers(&path));
        }
    }
    found
}

#[test]
fn a_commit_killed_anywhere_is_finished_once() {
    kill_everywhere("inner_commit", commit, |place| {
        let root = place.join("repo");
        drop_refs(&root, &run()).unwrap();
        assert_eq!(done(&root, &["log", "--format=%s"]), "out\nfirst");
        assert_eq!(done(&root, &["status", "--porcelain"]), "");
        done(&root, &["fsck", "--no-dangling"]);
        assert_eq!(leftovers(&root), Vec::<PathBuf>::new());
        let reflog = done(&root, &["reflog", "show", "main"]);
        assert!(reflog.lines().count() <= 2, "{reflog}");
    });
}

#[test]
fn a_commit_of_many_files_killed_anywhere_is_finished_once() {
    let calls = ["syncfs", "rename", "link", "unlink", "fsync", "mkdir"];
    kill_at(
        &calls,
        29,
        bulky_template,
        "inner_commit",
        commit,
        |place| {
            let root = place.join("repo");
            drop_refs(&root, &run()).unwrap();
            assert_eq!(done(&root, &["log", "--format=%s"]), "out\nfirst");
            assert_eq!(done(&root, &["status", "--porcelain"]), "");
            done(&root, &["fsck", "--no-dangling"]);
            assert_eq!(leftovers(&root), Vec::<PathBuf>::new());
        },
    );
}

#[test]
fn a_restore_killed_anywhere_is_finished() {
    kill_everywhere("inner_restore", put_back, |place| {
        let root = place.join("repo");
        assert_eq!(done(&root, &["log", "--format=%s"]), "first");
        assert_eq!(done(&root, &["status", "--porcelain"]), "");
        done(&root, &["fsck", "--no-dangling"]);
        // Second names stay until the references go.
        drop_refs(&root, &run()).unwrap();
        assert_eq!(leftovers(&root), Vec::<PathBuf>::new());
        assert!(!root.join("out").exists());
    });
}

#[test]
fn everything_that_a_commit_needs_is_synced_before_the_branch_moves() {
    if !strace_works() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("place");
    template(&place);
    let log = dir.path().join("trace");
    let log_name = log.to_str().unwrap();
    let calls = "trace=fsync,fdatasync,syncfs,rename,link,mkdir";
    assert!(traced(
        &place,
        &["-y", "-s", "4096", "-o", log_name, "-e", calls],
        "inner_commit"
    ));
    let text = fs::read_to_string(&log).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let root = place.join("repo");
    let branch = root.join(".git/refs/heads/main");
    let quoted = format!("\"{}\")", branch.display());
    let moved = lines
        .iter()
        .position(|l| l.contains("rename(") && l.contains(&quoted))
        .expect("the branch is renamed into place");
    let synced = |from: usize, to: usize, path: &Path| {
        let path = format!("<{}>)", path.display());
        lines[from..to]
            .iter()
            .any(|l| l.contains("fsync(") && l.contains(&path))
    };
    let objects = done(
        &root,
        &["rev-list", "--objects", "--no-object-names", "main~1..main"],
    );
    assert_eq!(
        objects.lines().count(),
        6,
        "a commit, three trees, two blobs"
    );
    for oid in objects.lines() {
        let (fan, rest) = oid.split_at(2);
        let store = root.join(".git/objects");
        for needed in [store.join(fan).join(rest), store.join(fan), store] {
            assert!(
                synced(0, moved, &needed),
                "{} is not synced",
                needed.display()
            );
        }
    }
    let heads = branch.parent().unwrap();
    assert!(
        synced(moved, lines.len(), heads),
        "the branch's directory is not synced"
    );
    let temporary = lines[moved].split('"').nth(1).unwrap();
    assert!(
        synced(0, moved, Path::new(temporary)),
        "the branch's value is not synced"
    );
    let config = fs::read_to_string(root.join(".git/config")).unwrap();
    assert!(!config.to_lowercase().contains("fsync"), "{config}");
}

#[test]
fn a_path_with_a_percent_sign_survives_the_journal() {
    let path = RepoPath::literal("50%.md").unwrap();
    assert_eq!(serde_json::to_string(&path).unwrap(), "\"50%25.md\"");
}

/// What strace shows between two quotes, in order.
fn quoted(line: &str) -> Vec<&str> {
    line.split('"').skip(1).step_by(2).collect()
}

#[test]
fn no_object_has_its_name_before_its_content_is_synced() {
    if !strace_works() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("place");
    bulky_template(&place);
    let root = place.join("repo");
    let log = dir.path().join("trace");
    let log_name = log.to_str().unwrap();
    let calls = "trace=fsync,fdatasync,syncfs,rename,renameat,renameat2,link,linkat";
    assert!(traced(
        &place,
        &["-y", "-s", "4096", "-o", log_name, "-e", calls],
        "inner_commit"
    ));
    let text = fs::read_to_string(&log).unwrap();
    let store = format!("{}/", root.join(".git/objects").display());
    // Since when a file is under its name, and whether its content is synced.
    let mut named: HashMap<String, bool> = HashMap::new();
    let mut stored = 0;
    for line in text.lines().filter(|line| line.ends_with("= 0")) {
        if line.contains("syncfs(") {
            for synced in named.values_mut() {
                *synced = true;
            }
        } else if line.contains("sync(") {
            let path = line.split(['<', '>']).nth(1).unwrap();
            named.insert(path.to_owned(), true);
        } else if let [from, to] = quoted(line)[..] {
            let synced = named.get(from).copied().unwrap_or(false);
            let object = to.strip_prefix(&store).is_some_and(|rest| rest.len() == 41);
            assert!(synced || !object, "not synced: {line}");
            stored += usize::from(object);
            named.insert(to.to_owned(), synced);
        }
    }
    assert!(stored >= BULK, "only {stored} objects were stored");
    done(&root, &["fsck", "--no-dangling"]);
}
