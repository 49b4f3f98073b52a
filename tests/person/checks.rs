//! What holds after the person and the runs have come to rest.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::person::script::Person;
use crate::workspace::Workspace;
use crate::workspace::observed::files_below;

/// All marks in a text.
pub(crate) fn marks_in(text: &str) -> BTreeSet<String> {
    let found = text.split("mark-").skip(1).map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric());
        format!("mark-{}", &rest[..end.unwrap_or(rest.len())])
    });
    found.collect()
}

/// The repository is whole, without locks, and every branch and `HEAD` where they were put.
pub(crate) fn repository(workspace: &Workspace, person: &Person<'_>) {
    assert_eq!(workspace.read(".git/HEAD").unwrap(), person.head);
    assert_eq!(workspace.locks(), Vec::<std::path::PathBuf>::new());
    workspace.git(&["fsck", "--strict"]);
    let left = |place: &str, is_it: fn(&str) -> bool| {
        let listed = fs::read_dir(workspace.root.join(place))
            .into_iter()
            .flatten()
            .flatten();
        let names = listed.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| is_it(name)).count()
    };
    println!(
        "left by imports that were killed: {} folders, {} packs that `git gc` keeps",
        left(".git/workerctl", |name| name.starts_with("import-")),
        left(".git/objects/pack", |name| name.split('.').next_back()
            == Some("keep"))
    );
    let subjects = workspace.git(&["log", "--branches", "--format=%s"]);
    let subjects: BTreeSet<&str> = subjects.lines().collect();
    let kept = person.commits.difference(&person.dropped);
    let lost: Vec<_> = kept
        .filter(|one| !subjects.contains(one.as_str()))
        .collect();
    assert!(
        lost.is_empty(),
        "commits of the person are on no branch: {lost:?}"
    );
    let (back, on): (Vec<_>, Vec<_>) = moves_of_main(workspace).into_iter().partition(is_back);
    println!(
        "{} moves of main, {} of them back by `git stash`",
        on.len(),
        back.len()
    );
    for (old, new, message) in on {
        let arguments = ["merge-base", "--is-ancestor", &old, &new];
        let done = workspace.program("git").args(arguments).status();
        assert!(
            done.unwrap().success(),
            "main went from {old} back to {new}: {message}"
        );
    }
}

/// Every move of `main` but the first: from where, to where, by what.
fn moves_of_main(workspace: &Workspace) -> Vec<(String, String, String)> {
    let log = workspace.read(".git/logs/refs/heads/main").unwrap();
    let moves = log.lines().skip(1).map(|line| {
        let (ids, message) = line.split_once('\t').unwrap_or((line, ""));
        let mut ids = ids.split(' ').map(str::to_owned);
        (ids.next().unwrap(), ids.next().unwrap(), message.to_owned())
    });
    moves.collect()
}

/// `git stash` ends with a `git reset` to what it took for `HEAD` a moment before, and guards against no other mover
/// of the branch.
fn is_back((_, _, message): &(String, String, String)) -> bool {
    message.starts_with("reset: moving to HEAD")
}

/// By commit what it adds and what it removes, in the branches.
fn history(workspace: &Workspace) -> BTreeMap<String, [BTreeSet<String>; 2]> {
    let text = workspace.git(&[
        "log",
        "-p",
        "--no-merges",
        "--branches",
        "--no-renames",
        "--format=commit %H",
    ]);
    let mut found: BTreeMap<String, [BTreeSet<String>; 2]> = BTreeMap::new();
    let mut commit = String::new();
    for line in text.lines() {
        if let Some(id) = line.strip_prefix("commit ") {
            id.clone_into(&mut commit);
        }
        let side = match line.as_bytes().first() {
            Some(b'+') => 0,
            Some(b'-') => 1,
            _ => continue,
        };
        found.entry(commit.clone()).or_default()[side].extend(marks_in(line));
    }
    found
}

/// No mark is lost, and none that was committed has been reverted.
pub(crate) fn marks(workspace: &Workspace, person: &Person<'_>) {
    let history = history(workspace);
    let removed = |mark: &&String| person.removed.contains(*mark);
    for (commit, [added, taken]) in &history {
        let reverted: Vec<_> = taken
            .difference(added)
            .filter(|mark| !removed(mark))
            .collect();
        assert!(reverted.is_empty(), "{commit} reverts {reverted:?}");
    }
    let mut kept: BTreeSet<String> = history
        .values()
        .flat_map(|[added, _]| added.clone())
        .collect();
    let committed = kept.clone();
    let main = workspace.git(&["grep", "-h", "mark-", "main"]);
    let on_main = workspace.git(&[
        "log",
        "-p",
        "--no-merges",
        "--no-renames",
        "--format=",
        "main",
    ]);
    let on_main: String = on_main
        .lines()
        .filter(|line| line.starts_with('+'))
        .collect::<Vec<_>>()
        .join("\n");
    let (main, on_main) = (marks_in(&main), marks_in(&on_main));
    let lost: Vec<_> = on_main
        .difference(&main)
        .filter(|mark| !removed(mark))
        .collect();
    assert!(
        lost.is_empty(),
        "committed to main, and no longer there: {lost:?}"
    );
    for stash in workspace
        .git(&["stash", "list", "--format=%H %P"])
        .split_whitespace()
    {
        // Where nothing in it is marked, nothing is found.
        let found = workspace
            .program("git")
            .args(["grep", "-h", "mark-", stash])
            .output();
        kept.extend(marks_in(&String::from_utf8_lossy(&found.unwrap().stdout)));
    }
    let linked = person.linked.iter();
    for root in linked.chain([&workspace.root]) {
        for path in files_below(root, &|path| !path.ends_with(".git")) {
            kept.extend(marks_in(&fs::read_to_string(path).unwrap_or_default()));
        }
    }
    let lost: BTreeSet<_> = person
        .written
        .difference(&kept)
        .filter(|mark| !removed(mark))
        .collect();
    assert!(
        lost.is_empty(),
        "edits are lost: {lost:?}; in .git: {:?}; what was done: {}",
        left_behind(workspace),
        person.trail.join("\n")
    );
    println!(
        "{} marks, {} in commits, {} removed on purpose, 0 lost",
        person.written.len(),
        committed.len(),
        person.removed.len()
    );
}

/// Marks in files that a landing has replaced, by file.
fn left_behind(workspace: &Workspace) -> BTreeMap<String, BTreeSet<String>> {
    let files = files_below(&workspace.root.join(".git"), &|path| {
        !path.ends_with("objects")
    });
    let read = files.into_iter().map(|path| {
        let text = fs::read_to_string(&path).unwrap_or_default();
        (path.display().to_string(), marks_in(&text))
    });
    read.filter(|(_, marks)| !marks.is_empty()).collect()
}

/// How runs of the skills here fail for what they do, and for what the person does.
const EXPECTED: [&str; 5] = [
    "exit_code",
    "check_failed",
    "checkout_dirty",
    "conflict",
    "busy",
];

/// No run is stuck, lost or committed twice, and what landed is on the branch.
pub(crate) fn runs(workspace: &Workspace, acknowledged: &BTreeSet<String>) {
    let runs = workspace.runs();
    let known: BTreeSet<String> = runs.keys().cloned().collect();
    assert_eq!(
        &known, acknowledged,
        "acknowledged and lost, or not asked for"
    );
    let taken_off = moves_of_main(workspace).into_iter().filter(is_back);
    let taken_off: BTreeSet<String> = taken_off.map(|(old, ..)| old).collect();
    let commits = workspace.committed_runs();
    let distinct: BTreeSet<_> = commits.iter().collect();
    assert_eq!(distinct.len(), commits.len(), "a run was committed twice");
    let mut outcomes: BTreeMap<String, usize> = BTreeMap::new();
    for (run, summary) in &runs {
        let outcome = summary["outcome"]["kind"].as_str();
        let outcome = outcome.unwrap_or_else(|| panic!("{run} is stuck: {summary}"));
        let failure = &summary["outcome"]["failure"];
        let code = failure["code"].as_str().unwrap_or_default();
        *outcomes.entry(format!("{outcome} {code}")).or_default() += 1;
        let commit = summary["commit"].as_str();
        let is_there = distinct.contains(run) || commit.is_some_and(|one| taken_off.contains(one));
        assert_eq!(commit.is_some(), is_there, "{summary}");
        if outcome == "succeeded" {
            assert!(summary["commit"].is_string(), "{summary}");
        }
        if outcome == "failed" {
            assert!(!code.is_empty() && failure["step"].is_string(), "{summary}");
            if !EXPECTED.contains(&code) {
                println!("{run}: {failure}");
            }
        }
    }
    println!(
        "{} runs, {} commits, none twice; {outcomes:?}",
        runs.len(),
        commits.len()
    );
}
