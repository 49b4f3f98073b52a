//! Each call that writes fails once, at every place where it is made.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;

use crate::child::{Committer, check, options};
use crate::rig::{rounds, run_tool, skip};
use crate::store::SledStore;

const CALLS: [&str; 9] = [
    "pwrite64",
    "sync_file_range",
    "fdatasync",
    "fsync",
    "write",
    "rename",
    "mkdir",
    "fallocate",
    "unlink",
];

/// Runs of one child.
const RUNS: u64 = 6;

fn strace(arguments: &[String]) -> Vec<String> {
    let fixed = ["strace", "-f", "-qq", "--seccomp-bpf"].map(str::to_owned);
    fixed.into_iter().chain(arguments.iter().cloned()).collect()
}

/// How often a child makes a call when nothing fails.
fn count(call: &str, directory: &Path) -> usize {
    let log = directory.join("log");
    let arguments = ["-e".to_owned(), format!("trace={call}"), "-o".to_owned()];
    let mut wrapper = strace(&arguments);
    wrapper.push(log.to_str().unwrap().to_owned());
    let state = directory.join("counted");
    let mut child = Committer::start(&state, 1, Some(RUNS), "commit", &wrapper);
    let mut acknowledged = BTreeSet::new();
    child.read_acknowledged(u64::MAX, &mut acknowledged);
    child.process.wait().unwrap();
    assert_eq!(acknowledged.len() as u64, RUNS);
    let lines = std::fs::read_to_string(&log).unwrap();
    std::fs::remove_dir_all(state).unwrap();
    lines.lines().filter(|line| line.contains(call)).count()
}

/// One child, one failing call. Nothing that it acknowledged is lost, and it does not panic.
fn fail(call: &str, error: &str, nth: usize, state: &Path) {
    let arguments = [
        "-o".to_owned(),
        "/dev/null".to_owned(),
        "-e".to_owned(),
        format!("trace={call}"),
        "-e".to_owned(),
        format!("inject={call}:error={error}:when={nth}"),
    ];
    let mut child = Committer::start(state, 1, Some(RUNS), "commit", &strace(&arguments));
    let mut acknowledged = BTreeSet::new();
    let mut end = None;
    while let Some((word, n)) = child.next_word() {
        if word == "ack" {
            acknowledged.insert(n);
        } else {
            end = Some(word);
        }
    }
    let mut said = String::new();
    let mut stderr = child.process.stderr.take().unwrap();
    stderr.read_to_string(&mut said).unwrap();
    child.process.wait().unwrap();
    let what = format!("{call} number {nth}: {error}, ended with {end:?}: {said}");
    assert!(!said.contains("panicked"), "{what}");
    if error == "ENOSPC" && end.as_deref() == Some("open") {
        assert_eq!(acknowledged.len() as u64, RUNS, "{what}");
    }
    match SledStore::open(state, options()) {
        Ok(store) => drop(check(&store, &acknowledged, RUNS + 1)),
        Err(error) => panic!("{what}: {error:?}"),
    }
}

#[test]
fn a_failing_call_is_a_named_error_and_loses_nothing() {
    if !run_tool(
        "strace",
        &["-f", "--seccomp-bpf", "-o", "/dev/null", "true"],
    ) {
        skip("strace is missing or may not trace");
        return;
    }
    let dir = xtest::tempdir();
    let mut points = 0;
    for call in CALLS {
        let count = count(call, dir.path());
        // The short form takes a few places of each call, the long one all.
        let step = (count / rounds(5)).max(1);
        for error in ["EIO", "ENOSPC"] {
            for nth in (1..=count).step_by(step) {
                let state = dir.path().join("state");
                fail(call, error, nth, &state);
                std::fs::remove_dir_all(&state).unwrap();
                points += 1;
            }
        }
        println!("{call}: {count} places");
    }
    println!("{points} failing calls");
}
