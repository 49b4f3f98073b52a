//! `git gc` and its parts beside runs, as a person or a cron job starts them.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use crate::workspace::{Workspace, rounds};

/// None commits by itself: a prune may delete what `git commit` has just written, as git says of `--expire=now`.
const SKILLS: &str = r#"
  - id: few
    description: d
    mutating: true
    run: "echo \"$WORKERCTL_RUN\" >> tracked.txt; echo x > \"few.$WORKERCTL_RUN\""
    verification: [{command: "test -s tracked.txt"}]
  - id: many
    description: d
    mutating: true
    run: "mkdir -p many; for n in $(seq 80); do echo \"$n $WORKERCTL_RUN\" > many/$n; done"
    verification: [{command: "test -s many/80"}]
  - id: fails
    description: d
    mutating: true
    run: "rm -f tracked.txt; echo x > new.txt; mkdir -p many; for n in $(seq 80); do echo $n > many/$n; done"
    verification: [{command: "false", description: "never"}]
"#;

/// What is done to the repository, over and over.
const HOUSEKEEPING: [&[&str]; 5] = [
    &["gc", "-q", "--prune=now"],
    &["repack", "-adq"],
    &["pack-refs", "--all"],
    &["prune", "--expire=now"],
    &["reflog", "expire", "--expire=now", "--all"],
];

fn keep_house(workspace: &Workspace, over: &AtomicBool, done: &AtomicUsize) {
    for arguments in HOUSEKEEPING.iter().cycle() {
        if over.load(Ordering::Relaxed) {
            return;
        }
        // Two of them may be in each other's way; that is no matter of ours.
        let mut command = workspace.program("git");
        let _ = command.args(*arguments).output();
        done.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn runs_succeed_and_are_put_back_beside_housekeeping() {
    let workspace = Workspace::with_skills(SKILLS);
    workspace.write("edited.txt", "as committed\n");
    workspace.commit_all("more");
    // What is not committed has to be recorded before each run.
    workspace.write("edited.txt", "a person is at it\n");
    workspace.write("untracked.txt", "and here\n");
    let (over, done) = (AtomicBool::new(false), AtomicUsize::new(0));
    let mut committed = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| keep_house(&workspace, &over, &done));
        let ends = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for round in 0..rounds(5) {
                for (skill, code) in [("few", 0), ("many", 0), ("fails", 5)] {
                    let ended = workspace.run(&["run", skill, "--json"]);
                    assert_eq!(ended.code, code, "round {round} of {skill}: {ended:?}");
                    let detail = ended.value();
                    assert_eq!(detail["not_restored"], serde_json::json!([]), "{detail}");
                    let commit = detail["summary"]["commit"].as_str().map(str::to_owned);
                    assert_eq!(commit.is_some(), code == 0, "{detail}");
                    committed.extend(commit);
                    let status = workspace.git(&["status", "--porcelain"]);
                    assert_eq!(status, " M edited.txt\n?? untracked.txt\n", "{skill}");
                }
            }
        }));
        over.store(true, Ordering::Relaxed);
        ends.unwrap_or_else(|why| std::panic::resume_unwind(why));
    });
    let done = done.load(Ordering::Relaxed);
    assert!(done > 0);
    println!("{} runs beside {done} times of housekeeping", rounds(5) * 3);
    for commit in &committed {
        workspace.git(&["merge-base", "--is-ancestor", commit, "HEAD"]);
    }
    // A prune that was under way when the last run ended may have taken something since; the next run gives it back.
    workspace.run(&["run", "few"]).expect_code(0);
    workspace.git(&["fsck", "--strict"]);
}

#[test]
fn what_a_landing_took_out_of_a_checkout_goes_after_a_day_or_after_32_others() {
    let workspace = Workspace::with_skills(SKILLS);
    let places = [
        workspace.root.join(".git/workerctl/landing"),
        workspace.state().join("landings"),
    ];
    let count = |place: &Path| fs::read_dir(place).map_or(0, |found| found.flatten().count());
    let counts = || places.each_ref().map(|place| count(place));
    workspace.run(&["run", "few"]).expect_code(0);
    workspace.run(&["run", "few"]).expect_code(0);
    assert_eq!(counts(), [2, 2]);
    // Each of these engines lives for a moment only.
    let yesterday = SystemTime::now() - Duration::from_hours(25);
    for record in fs::read_dir(&places[1]).unwrap().flatten() {
        let record = fs::File::options().append(true).open(record.path());
        record.unwrap().set_modified(yesterday).unwrap();
    }
    workspace.run(&["run", "few"]).expect_code(0);
    assert_eq!(counts(), [1, 1]);
    for _ in 0..33 {
        workspace.run(&["run", "few"]).expect_code(0);
    }
    assert_eq!(counts(), [32, 32]);
}
