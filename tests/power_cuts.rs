//! Power cuts: repository and state lie on an ext4 file system on a loop device that is shut down without
//! writing its journal while runs are under way.
//!
//! Only what was read before the cut counts as acknowledged: afterwards some calls succeed without doing
//! anything. After each cut the store opens, no acknowledged run is lost, and each commit that a run
//! claims is there.
//!
//! `WORKERCTL_TEST_ROUNDS=<n>` sets the number of cuts (3 by default, 300 before a release). Without root,
//! loop devices or ext4 it is skipped.

use crate::workspace;

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use workspace::daemon::Daemon;
use workspace::disk::Disk;
use workspace::{Dice, Workspace, rounds};

/// Runs of one round at most.
const RUNS_MAX: usize = 12;

const SKILLS: &str = r##"
  - id: write
    description: d
    mutating: true
    interface: {outputs: [{name: r, type: markdown, destination: "notes/{run}.md"}]}
    run: 'echo "# {run}" > {r}'
    verification: [{command: "test -s {r}"}]
  - id: rewrite
    description: d
    mutating: true
    run: 'echo "$WORKERCTL_RUN" >> tracked.txt'
  - id: many
    description: d
    mutating: true
    run: 'mkdir -p bulk && for n in $(seq 300); do echo "$WORKERCTL_RUN $n" > bulk/$n; done'
  - {id: read, description: d, run: "echo read"}
"##;

/// Submits until the power is cut; what was answered before is acknowledged.
fn one_cut(
    workspace: &Workspace,
    disk: &Disk,
    dice: &mut Dice,
    acknowledged: &Mutex<BTreeSet<String>>,
) {
    let daemon = Daemon::start(workspace);
    let cut = AtomicBool::new(false);
    let begun = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for client in 0..2 {
            let (cut, begun) = (&cut, &begun);
            scope.spawn(move || {
                while begun.fetch_add(1, Ordering::Relaxed) < RUNS_MAX {
                    let skill = ["write", "rewrite", "many", "read"]
                        [(begun.load(Ordering::Relaxed) + client) % 4];
                    let done = workspace.run(&["run", "--no-wait", skill]);
                    // Under the lock, so that none counts that was read after the cut.
                    let mut acknowledged = acknowledged.lock().unwrap();
                    if cut.load(Ordering::SeqCst) {
                        break;
                    }
                    if done.code == 0 {
                        acknowledged.insert(done.stdout.trim().to_owned());
                    }
                }
            });
        }
        // The moment is what varies.
        std::thread::sleep(Duration::from_micros(dice.below(500_000)));
        let counting = acknowledged.lock().unwrap();
        disk.cut();
        cut.store(true, Ordering::SeqCst);
        drop(counting);
        daemon.kill();
    });
    workspace.end_processes();
    assert!(disk.unmount() && disk.mount(), "the disk cannot be mounted");
}

fn check(workspace: &Workspace, acknowledged: &BTreeSet<String>) {
    let runs = workspace.runs();
    let lost: Vec<_> = acknowledged
        .iter()
        .filter(|run| !runs.contains_key(*run))
        .collect();
    assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
    let commits = workspace.committed_runs();
    let distinct: BTreeSet<_> = commits.iter().collect();
    assert_eq!(distinct.len(), commits.len(), "a run was committed twice");
    for (run, summary) in &runs {
        assert!(summary["outcome"].is_object(), "stuck: {summary}");
        if let Some(commit) = summary["commit"].as_str() {
            workspace.git(&["cat-file", "-e", commit]);
            assert!(commits.contains(run), "not reachable: {summary}");
            check_content(workspace, run, summary, commit);
        } else {
            assert!(!commits.contains(run), "committed unknown to it: {summary}");
        }
    }
    workspace.git(&["fsck", "--strict"]);
}

/// Asserts that a commit holds what its run wrote, not what the power cut left of it.
fn check_content(workspace: &Workspace, run: &str, summary: &serde_json::Value, commit: &str) {
    if summary["skill"]["skill"] == "write" {
        let note = workspace.git(&["show", &format!("{commit}:notes/{run}.md")]);
        assert_eq!(note, format!("# {run}\n"), "{summary}");
    } else if summary["skill"]["skill"] == "many" {
        let last = workspace.git(&["show", &format!("{commit}:bulk/300")]);
        assert_eq!(last.trim_end(), format!("{run} 300"), "{summary}");
    } else {
        let lines = workspace.git(&["show", &format!("{commit}:tracked.txt")]);
        assert_eq!(lines.lines().last(), Some(run), "{summary}");
    }
}

#[test]
fn power_cuts_take_nothing_that_was_acknowledged() {
    // What each cut leaves adds up.
    let Some(disk) = Disk::create(512 + 2 * rounds(3) as u64) else {
        return;
    };
    let workspace = Workspace::on(disk.path());
    workspace.furnish(SKILLS);
    workspace.write("notes/README.md", "# Notes\n");
    workspace.commit_all("notes");
    // Only this file system: others of the machine may be slow, or hang.
    rustix::fs::syncfs(std::fs::File::open(disk.path()).unwrap()).unwrap();
    let acknowledged = Mutex::default();
    let seed = std::env::var("WORKERCTL_TEST_SEED").ok();
    let mut dice = Dice(seed.and_then(|seed| seed.parse().ok()).unwrap_or(29));
    let cuts = rounds(3);
    let mut ready = Vec::new();
    for _ in 0..cuts {
        one_cut(&workspace, &disk, &mut dice, &acknowledged);
        let daemon = Daemon::start(&workspace);
        ready.push(daemon.ready_after);
        workspace.wait_until_idle();
        check(&workspace, &acknowledged.lock().unwrap());
        daemon.stop();
        workspace.expect_no_process();
    }
    let acknowledged = acknowledged.into_inner().unwrap();
    let runs = workspace.runs();
    let unknown = runs
        .values()
        .filter(|run| run["outcome"]["kind"] == "unknown");
    println!(
        "{cuts} power cuts, {} runs, {} acknowledged, 0 lost, {} unknown; ready after {:?} at most",
        runs.len(),
        acknowledged.len(),
        unknown.count(),
        ready.iter().max()
    );
}
