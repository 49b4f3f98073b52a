//! Many mutating runs over one repository: one after another all of them land, and beside each other each
//! lands what was checked, or keeps its commit because another one changed the same path.
//!
//! `WORKERCTL_TEST_ROUNDS=<n>` sets the number of runs of each test (40 by default, 200 before a release).
//! What was found is printed: `-- --nocapture`.

use crate::workspace;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Instant;

use serde_json::Value;
use workspace::daemon::Daemon;
use workspace::{Workspace, rounds};

/// Runs at the same time, each of a worker of its own.
const AT_ONCE: usize = 8;

/// Records the tree that the check sees, from an index of its own.
const RECORD: &str = r#"index="$HOME/index.$WORKERCTL_RUN" && cp "$(git rev-parse --git-path index)" "$index" && GIT_INDEX_FILE="$index" git add -A && GIT_INDEX_FILE="$index" git write-tree >> "$HOME/checked/$WORKERCTL_RUN""#;

/// Skills of one worker; `more` are further keys of each.
fn skills(more: &str) -> String {
    let met = format!(
        "touch \"$HOME/met/$WORKERCTL_RUN\"; until [ \"$(ls \"$HOME/met\" | wc -l)\" -ge {AT_ONCE} ]; do sleep 0.02; done; "
    );
    let append = "echo \"$WORKERCTL_RUN\" >> shared.txt";
    let table = [
        ("append", "", append.to_owned()),
        ("repeat", "idempotent: true, ", append.to_owned()),
        (
            "own",
            "",
            "mkdir -p own; echo x > \"own/$WORKERCTL_RUN\"".to_owned(),
        ),
        ("meet", "", met + append),
    ];
    let written = table.map(|(id, own, run)| {
        format!(
            "  - {{id: {id}, description: d, mutating: true, {own}{more}run: '{run}', verification: [{{command: '{RECORD}'}}]}}\n"
        )
    });
    written.concat()
}

fn workspace(workers: usize, more: &str) -> Workspace {
    let workspace = Workspace::new();
    workspace.furnish(&skills(more));
    for worker in 1..workers {
        workspace.worker(&format!("w{worker}"), &skills(more));
    }
    workspace.write("workerctl.yaml", &format!("max_parallel: {AT_ONCE}\n"));
    workspace.write("shared.txt", "begin\n");
    workspace.commit_all("more");
    for directory in ["met", "checked"] {
        fs::create_dir(workspace.home.join(directory)).unwrap();
    }
    workspace
}

/// The commits since `begin` as (commit, tree, run), oldest first; each has one parent.
fn landed(workspace: &Workspace, begin: &str) -> Vec<[String; 3]> {
    let form = "--format=%H %T %(trailers:key=Run-Id,valueonly,separator=) %P";
    let range = format!("{begin}..main");
    let text = workspace.git(&["log", "--reverse", form, &range]);
    let rows = text.lines().map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!(words.len(), 4, "{line}");
        [words[0], words[1], words[2]].map(str::to_owned)
    });
    rows.collect()
}

/// The last tree that the checks of a run have passed on.
fn checked(workspace: &Workspace, run: &str) -> String {
    let text = fs::read_to_string(workspace.home.join("checked").join(run)).unwrap();
    text.lines().last().unwrap().to_owned()
}

/// Asserts what holds for all runs, and answers those that did not land.
fn check(workspace: &Workspace, begin: &str, runs: &BTreeMap<String, Value>) -> Vec<String> {
    let landed = landed(workspace, begin);
    let distinct: BTreeSet<_> = landed.iter().map(|[_, _, run]| run).collect();
    assert_eq!(distinct.len(), landed.len(), "a run was committed twice");
    for [commit, tree, run] in &landed {
        let summary = &runs[run];
        assert_eq!(summary["commit"], **commit, "{summary}");
        assert_eq!(summary["outcome"]["kind"], "succeeded", "{summary}");
        assert_eq!(
            checked(workspace, run),
            *tree,
            "not what was checked: {summary}"
        );
    }
    let kept: Vec<String> = runs
        .keys()
        .filter(|run| !distinct.contains(run))
        .cloned()
        .collect();
    for run in &kept {
        let summary = &runs[run];
        let failure = &summary["outcome"]["failure"];
        assert_eq!(failure["step"], "land", "{summary}");
        assert_eq!(failure["code"], "conflict", "{summary}");
        let reference = format!("refs/workerctl/runs/{run}/commit");
        let commit = workspace.git(&["rev-parse", &reference]);
        assert_eq!(summary["kept_commit"], *commit.trim(), "{summary}");
        let message = failure["message"].as_str().unwrap();
        assert!(message.contains("`shared.txt`"), "{message}");
    }
    let text = workspace.read("shared.txt").unwrap();
    let lines: Vec<&str> = text.lines().skip(1).collect();
    let appended = landed.iter().map(|[_, _, run]| run.as_str());
    let appended: Vec<&str> = appended
        .filter(|run| runs[*run]["skill"]["skill"] != "own")
        .collect();
    assert_eq!(lines, appended, "the file does not hold what has landed");
    assert_eq!(workspace.git(&["status", "--porcelain", "-uall"]), "");
    assert_eq!(workspace.locks(), Vec::<std::path::PathBuf>::new());
    workspace.git(&["fsck", "--strict"]);
    kept
}

/// Submits the runs, each as (worker, skill), and answers how all of them ended.
fn all(workspace: &Workspace, asked: &[(String, &str)]) -> BTreeMap<String, Value> {
    let daemon = Daemon::start(workspace);
    let began = Instant::now();
    let submit =
        |(worker, skill): &(String, &str)| workspace.submit(&[&format!("{worker}/{skill}")]);
    let submitted: BTreeSet<String> = asked.iter().map(submit).collect();
    workspace.wait_until_idle();
    println!("{} runs in {:?}", asked.len(), began.elapsed());
    daemon.stop();
    workspace.expect_no_process();
    let runs = workspace.runs();
    assert_eq!(runs.keys().cloned().collect::<BTreeSet<_>>(), submitted);
    runs
}

#[test]
fn runs_one_after_another_all_land_with_one_commit_each() {
    let workspace = workspace(1, "");
    let begin = workspace.git(&["rev-parse", "HEAD"]).trim().to_owned();
    let names = ["append", "own", "repeat", "own"];
    let asked: Vec<_> = (0..rounds(40))
        .map(|nth| ("w".to_owned(), names[nth % 4]))
        .collect();
    let runs = all(&workspace, &asked);
    let kept = check(&workspace, &begin, &runs);
    assert!(kept.is_empty(), "did not land: {kept:?}");
}

#[test]
fn runs_beside_each_other_land_what_was_checked_or_keep_their_commit() {
    let workspace = workspace(AT_ONCE, "parallel: true, ");
    let begin = workspace.git(&["rev-parse", "HEAD"]).trim().to_owned();
    let names = ["append", "own", "repeat", "own", "own"];
    let asked: Vec<_> = (0..rounds(40).max(AT_ONCE))
        .map(|nth| {
            let worker = match nth % AT_ONCE {
                0 => "w".to_owned(),
                worker => format!("w{worker}"),
            };
            // The first ones wait for each other, so that they are at work at the same time.
            let skill = if nth < AT_ONCE {
                "meet"
            } else {
                names[nth % 5]
            };
            (worker, skill)
        })
        .collect();
    let runs = all(&workspace, &asked);
    let kept = check(&workspace, &begin, &runs);
    let repeated = runs.keys().filter(|run| {
        let text = fs::read_to_string(workspace.home.join("checked").join(run));
        text.unwrap().lines().count() > 1
    });
    println!(
        "{} landed, {} kept by name; {} were checked more than once",
        runs.len() - kept.len(),
        kept.len(),
        repeated.count()
    );
    // Of those that met, the first has changed what the others change.
    assert!(kept.len() >= AT_ONCE - 1, "{kept:?}");
    for run in &kept {
        workspace.run(&["discard", run]).expect_code(0);
    }
    assert_eq!(workspace.git(&["for-each-ref", "refs/workerctl"]), "");
}
