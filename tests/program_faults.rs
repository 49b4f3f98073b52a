//! The whole program while one of its system calls fails: it ends with a named error, has promised nothing
//! that is lost, and the next engine brings everything to one end.
//!
//! `WORKERCTL_TEST_ROUNDS=<n>` sets at how many places each call fails (2 by default; a number in the
//! thousands means: at every one). Without `strace` it is skipped.

use crate::workspace;

use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use workspace::daemon::Daemon;
use workspace::{Done, PATIENCE, Workspace, eventually, rounds, skip};

/// A run with everything that writes: an output, a changed file, checks, hooks, a commit.
const SKILLS: &str = r##"
  - id: change
    description: d
    mutating: true
    interface:
      inputs: [{name: token, type: string, sensitive: true, default: "a token of the test"}]
      outputs: [{name: n, type: markdown, destination: "notes/n.md"}]
    run: 'echo x >> tracked.txt; echo "# whole" > {n}; echo told; echo {token} > /dev/null'
    verification: [{command: "grep -q whole {n}"}]
    hooks: {post_tools: ["cat > /dev/null"], post_commit: ["cat > /dev/null"]}
"##;

/// How a call fails. A write that writes nothing is what a short one comes to in the end.
const FAILURES: [&str; 3] = ["error=EIO", "error=ENOSPC", "retval=0"];

/// Every exit code that is documented.
const CODES: [i32; 12] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 124, 130];

fn traces() -> bool {
    let probe = Command::new("strace")
        .args(["-f", "--seccomp-bpf", "-o", "/dev/null", "true"])
        .stderr(Stdio::null())
        .status();
    let traces = probe.is_ok_and(|status| status.success());
    if !traces {
        skip("`strace` is missing, too old, or may not trace");
    }
    traces
}

/// The real program under `strace`, which notes one kind of call and makes what is asked of it.
fn traced(workspace: &Workspace, log: &Path, call: &str, inject: Option<&str>) -> Command {
    let mut command = workspace.program("strace");
    command
        .args(["-f", "-y", "-qq", "--seccomp-bpf", "-o"])
        .arg(log);
    command.args(["-e", &format!("trace={call}"), "-e", "signal=none"]);
    if let Some(inject) = inject {
        command.args(["-e", &format!("inject={call}:{inject}")]);
    }
    command.arg(env!("CARGO_BIN_EXE_workerctl"));
    command.arg("-C").arg(&workspace.root);
    command.arg("--state-dir").arg(workspace.state());
    command
}

/// A call of one kind, from the one whose number in its thread is given.
#[derive(Debug)]
struct Place<'a> {
    call: &'a str,
    failure: &'a str,
    number: usize,
}

/// Returns a trace of these calls of a run in which nothing fails.
fn trace(calls: &[&str]) -> String {
    let workspace = Workspace::with_skills(SKILLS);
    let log = workspace.home.join("trace");
    let mut command = traced(&workspace, &log, &calls.join(","), None);
    let done = workspace.start(command.args(["run", "change"])).end();
    assert_eq!(done.code, 0, "a tracer changes nothing: {done:?}");
    fs::read_to_string(log).unwrap()
}

/// Returns how often at most one thread makes a call.
fn count(call: &str, trace: &str) -> usize {
    let mut of_thread: BTreeMap<&str, usize> = BTreeMap::new();
    let begun = format!("{call}(");
    for line in trace.lines() {
        if let Some((thread, rest)) = line.split_once(' ')
            && rest.trim_start().starts_with(&begun)
        {
            *of_thread.entry(thread).or_default() += 1;
        }
    }
    of_thread.into_values().max().unwrap_or(0)
}

/// What came of a run while a call failed.
struct Came {
    done: Done,
    /// The lines of the calls that failed.
    failed: Vec<String>,
}

impl Came {
    /// Whether the failing call was to tell something.
    fn lost_its_voice(&self) -> bool {
        let told = |line: &String| line.contains("write(1<") || line.contains("write(2<");
        self.failed.iter().any(told)
    }

    fn check(&self, what: &str) {
        let Done {
            code,
            stdout,
            stderr,
        } = &self.done;
        assert!(CODES.contains(code), "{what}");
        assert!(!stderr.contains("panicked"), "{what}");
        let named = stderr.contains("error: ") || stdout.contains("✗ ");
        assert!(*code == 0 || named || self.lost_its_voice(), "{what}");
    }

    /// Whether the run was promised to be kept.
    fn acknowledges(&self) -> bool {
        self.done
            .stderr
            .lines()
            .any(|line| line.starts_with("run "))
    }
}

/// Fails one call of a run in a workspace of its own; answers whether there was such a call.
fn fail(place: &Place<'_>) -> bool {
    let workspace = Workspace::with_skills(SKILLS);
    let log: PathBuf = workspace.home.join("trace");
    // A failure takes its time, so that whoever waits for the call does so already.
    let (failure, number) = (place.failure, place.number);
    let inject = format!("{failure}:delay_enter=20000:when={number}");
    let mut command = traced(&workspace, &log, place.call, Some(&inject));
    let mut running = workspace.start(command.args(["run", "change"]));
    let ends = running.ends_within(PATIENCE);
    let text = fs::read_to_string(&log).unwrap();
    let failed = text.lines().filter(|line| line.contains("(INJECTED)"));
    let failed: Vec<String> = failed.map(str::to_owned).collect();
    // A thread that wakes another one has no disk behind it: such a call cannot fail.
    let is_impossible = failed.iter().any(|line| line.contains("[eventfd]"));
    if is_impossible || !ends {
        workspace.end_processes();
        assert!(
            is_impossible,
            "{place:?} hangs: {}: {failed:#?}",
            running.stderr()
        );
        return false;
    }
    let came = Came {
        done: running.end(),
        failed,
    };
    let what = format!("{place:?}: {:?}: {:#?}", came.done, came.failed);
    came.check(&what);
    if !came.failed.is_empty() {
        recovers(&workspace, &came, &what);
    }
    !came.failed.is_empty()
}

/// The next engine brings what was begun to one end, and goes on with new work.
fn recovers(workspace: &Workspace, came: &Came, what: &str) {
    let daemon = Daemon::start(workspace);
    workspace.wait_until_idle();
    let runs = workspace.runs();
    assert!(runs.len() <= 1, "{what}: {runs:?}");
    assert!(runs.len() == 1 || !came.acknowledges(), "lost: {what}");
    let commits = workspace.committed_runs();
    let (mut is_clean, mut what) = (true, what.to_owned());
    if let Some(run) = runs.keys().next() {
        let detail = workspace.show(run);
        what = format!("{what}: {detail}");
        let kind = detail["summary"]["outcome"]["kind"].as_str().unwrap();
        match kind {
            "succeeded" => assert_eq!(commits, std::slice::from_ref(run), "{what}"),
            "unknown" => assert!(commits.len() <= 1, "{what}"),
            _ => assert!(commits.is_empty(), "{what}"),
        }
        assert!(came.done.code != 0 || kind == "succeeded", "{what}");
        // Where nobody saw the command's end, only declared outputs are committed; the rest stays.
        let is_sure = kind != "unknown" && detail["summary"]["reconciled"] == false;
        is_clean = is_sure && detail["not_restored"] == serde_json::json!([]);
        if detail["warnings"].to_string().contains("`git reset`") {
            workspace.git(&["reset", "-q"]);
        }
    } else {
        assert!(commits.is_empty(), "{what}");
    }
    if is_clean {
        assert_eq!(workspace.git(&["status", "--porcelain"]), "", "{what}");
        let done = workspace.run(&["run", "change"]);
        assert_eq!(done.code, 0, "{done:?} after {what}");
    }
    workspace.git(&["fsck", "--strict"]);
    daemon.stop();
    let verified = workspace.run(&["store", "verify"]);
    assert_eq!(verified.code, 0, "{verified:?} after {what}");
    workspace.expect_no_process();
}

/// Fails each of these calls at some places, spread over all of them.
fn fail_each(calls: &[&str]) {
    if !traces() {
        return;
    }
    let (mut points, mut not_survived) = (0, Vec::new());
    let trace = trace(calls);
    for call in calls {
        let most = count(call, &trace);
        assert!(most > 0, "{call} is not made at all");
        let writes = call.contains("write");
        let failures = &FAILURES[..if writes { 3 } else { 2 }];
        let all: Vec<Place<'_>> = (1..=most)
            .flat_map(|number| {
                failures.iter().map(move |failure| Place {
                    call,
                    failure,
                    number,
                })
            })
            .collect();
        let wanted = rounds(2).min(all.len());
        // Evenly spread, and of two neighbours not always the same failure.
        let chosen = (0..wanted).map(|index| &all[(2 * index + 1) * all.len() / (2 * wanted)]);
        let before = points;
        for place in chosen {
            // One place that is not survived does not hide the others.
            match catch_unwind(AssertUnwindSafe(|| fail(place))) {
                Ok(failed) => points += usize::from(failed),
                Err(_) => not_survived.push(format!("{place:?}")),
            }
        }
        println!("{call}: {} of {} places", points - before, all.len());
    }
    println!("{points} failing calls");
    assert!(not_survived.is_empty(), "{not_survived:#?}");
}

#[test]
fn a_failing_write_is_a_named_error_and_loses_nothing() {
    fail_each(&["write", "pwrite64", "ftruncate", "fallocate"]);
}

#[test]
fn a_failing_sync_is_a_named_error_and_loses_nothing() {
    fail_each(&["fsync", "fdatasync", "sync_file_range", "syncfs"]);
}

#[test]
fn a_failing_change_of_a_directory_is_a_named_error_and_loses_nothing() {
    fail_each(&["rename", "renameat", "link", "linkat", "mkdir", "mkdirat"]);
}

#[test]
fn a_failing_removal_is_a_named_error_and_loses_nothing() {
    fail_each(&["unlink", "rmdir"]);
}

#[test]
fn a_file_that_cannot_be_opened_is_a_named_error_and_loses_nothing() {
    fail_each(&["openat", "open", "fchmod"]);
}

#[test]
fn a_write_that_fails_while_its_batch_is_waited_for_stops_nobody() {
    if !traces() {
        return;
    }
    // Among the threads that write for the store, one writes the head of a batch by itself.
    for (failure, number) in [("error=EIO", 5), ("error=ENOSPC", 6)] {
        let call = "pwrite64";
        assert!(fail(&Place {
            call,
            failure,
            number
        }));
    }
}

#[test]
fn a_daemon_whose_store_breaks_says_why_and_ends() {
    if !traces() {
        return;
    }
    let workspace = Workspace::with_skills(SKILLS);
    let log = workspace.home.join("trace");
    let mut command = traced(&workspace, &log, "fdatasync", Some("error=EIO:when=12+"));
    let daemon = workspace.start(command.arg("daemon"));
    eventually("the daemon answers", || {
        (workspace.run(&["status"]).code == 0).then_some(())
    });
    let mut acknowledged = Vec::new();
    let failed = eventually("the store breaks", || {
        let done = workspace.run(&["run", "change"]);
        let accepted = done
            .stderr
            .lines()
            .find_map(|line| line.strip_prefix("run "));
        acknowledged.extend(accepted.map(|rest| rest.split(' ').next().unwrap().to_owned()));
        (done.code != 0).then_some(done)
    });
    // The reason where it was told; else the engine was gone before the command could ask it.
    assert!([1, 7, 9].contains(&failed.code), "{failed:?}");
    assert!(failed.stderr.contains("error: "), "{failed:?}");
    let ended = daemon.end().expect_code(1);
    assert!(
        ended.stderr.contains("could not read or write"),
        "{ended:?}"
    );
    assert!(!ended.stderr.contains("panicked"), "{ended:?}");

    let daemon = Daemon::start(&workspace);
    workspace.wait_until_idle();
    let runs = workspace.runs();
    for short in &acknowledged {
        assert!(
            runs.keys().any(|run| run.to_lowercase().ends_with(short)),
            "{short} is lost"
        );
    }
    let commits = workspace.committed_runs();
    let once = commits.iter().collect::<std::collections::BTreeSet<_>>();
    assert_eq!(once.len(), commits.len(), "{commits:?}");
    workspace.git(&["fsck", "--strict"]);
    daemon.stop();
    workspace.run(&["store", "verify"]).expect_code(0);
    workspace.expect_no_process();
}
