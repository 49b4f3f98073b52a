//! How often the disk is waited for: as the engine counts it, and as the kernel is asked.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use workerctl::protocol::Control;

use crate::Scale;
use crate::limits::wait_until;
use crate::report::{Report, Target};
use crate::throughput::round;
use crate::workspace::{PATIENCE, Workspace, settle, submit};

/// What strace listens for.
const CALLS: [&str; 4] = ["fsync", "fdatasync", "syncfs", "sync_file_range"];

pub(crate) fn measure(scale: Scale, report: &mut Report) {
    for (parallelism, runs, most) in [(1, scale.samples as u64, 3.0), (8, scale.runs, 1.0)] {
        let name = if parallelism == 1 {
            "alone"
        } else {
            "at parallelism 8"
        };
        let by_counter = counted(parallelism, runs);
        report.add(
            &format!("syncs a run {name}, counted by the store"),
            by_counter,
            "",
            Target::AtMost(most),
            "",
        );
        match traced(parallelism, runs) {
            Ok(calls) => traced_rows(report, name, most, runs, calls),
            Err(why) => eprintln!("  strace is skipped: {why}"),
        }
    }
}

fn traced_rows(report: &mut Report, name: &str, most: f64, runs: u64, calls: [u64; 4]) {
    let a_run = calls.map(|count| count as f64 / runs as f64);
    let [fsync, fdatasync, syncfs, ranges] = a_run;
    report.add(
        &format!("syncs a run {name}, counted by strace"),
        fsync + fdatasync + syncfs,
        "",
        Target::AtMost(most),
        &format!("fsync {fsync:.2}, fdatasync {fdatasync:.2}, syncfs {syncfs:.2}"),
    );
    report.add(
        &format!("sync_file_range a run {name} (starts writing, does not flush the disk)"),
        ranges,
        "",
        Target::None,
        "",
    );
}

fn perform(control: &dyn Control, parallelism: u64, runs: u64) {
    if parallelism == 1 {
        for number in 0..runs {
            submit(control, number, "go");
            settle(control);
        }
    } else {
        round(control, parallelism, runs);
    }
}

fn counted(parallelism: u64, runs: u64) -> f64 {
    let workspace = Workspace::of_trivial_skills(parallelism);
    let daemon = workspace.daemon();
    let control = workspace.dial();
    perform(&control, parallelism, 20);
    let before = control.status().unwrap().syncs;
    perform(&control, parallelism, runs);
    let syncs = control.status().unwrap().syncs - before;
    daemon.end();
    syncs as f64 / runs as f64
}

/// How often each of [`CALLS`] was made for `runs` runs.
fn traced(parallelism: u64, runs: u64) -> Result<[u64; 4], String> {
    let found = Command::new("strace").arg("-V").output();
    if !found.is_ok_and(|output| output.status.success()) {
        return Err("there is no strace".to_owned());
    }
    let workspace = Workspace::of_trivial_skills(parallelism);
    let trace = workspace.directory().join("trace");
    let mut command = Command::new("strace");
    workspace.place(&mut command);
    command
        .args([
            "-f",
            "-qq",
            "--seccomp-bpf",
            "-e",
            &format!("trace={}", CALLS.join(",")),
            "-o",
        ])
        .arg(&trace)
        .args([crate::workspace::PROGRAM, "daemon"]);
    let daemon = workspace.started(&mut command);
    let control = workspace.dial();
    let traced = control.status().unwrap().pid;
    perform(&control, parallelism, 20);
    let before = calls(&trace);
    perform(&control, parallelism, runs);
    // Files of ended runs are synced within five seconds; that belongs to these runs.
    std::thread::sleep(Duration::from_secs(6));
    let after = calls(&trace);
    daemon.end_by(traced);
    Ok(std::array::from_fn(|place| after[place] - before[place]))
}

/// Counts what strace has written by now.
fn calls(trace: &Path) -> [u64; 4] {
    wait_until("strace", PATIENCE, || trace.exists());
    let text = std::fs::read_to_string(trace).unwrap();
    CALLS.map(|call| {
        let begins = format!(" {call}(");
        text.lines().filter(|line| line.contains(&begins)).count() as u64
    })
}
