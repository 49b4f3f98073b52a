//! What runs cost that wait for a person's approval.

use std::time::Duration;

use crate::Scale;
use crate::idle::{resident_kb, watch};
use crate::limits::wait_until;
use crate::report::{Report, Target};
use crate::workspace::{PATIENCE, Workspace, submit};

/// Runs that wait.
const RUNS: u64 = 1_000;

pub(crate) fn measure(scale: Scale, report: &mut Report) {
    let workspace = Workspace::new(2);
    for worker in 0..8 {
        workspace.worker(
            &format!("w{worker}"),
            "  - {id: go, name: Go, description: d, approval_required: true, run: [\"true\"]}\n",
        );
    }
    let daemon = workspace.daemon();
    let before = resident_kb(daemon.pid());
    let control = workspace.dial();
    for number in 0..RUNS {
        submit(&control, number, "go");
    }
    wait_until("the runs to wait for approval", PATIENCE, || {
        use workerctl::protocol::Control;
        std::thread::sleep(Duration::from_millis(20));
        u64::from(control.status().unwrap().awaiting) == RUNS
    });
    daemon.end();
    let daemon = workspace.daemon();
    std::thread::sleep(Duration::from_secs(2));
    let activity = watch(daemon.pid(), scale.idle_seconds);
    let resident = resident_kb(daemon.pid());
    daemon.end();
    let ticks = 1 + scale.idle_seconds / 30;
    report.add(
        &format!(
            "{RUNS} runs that wait for approval, seconds of {} in which we woke",
            scale.idle_seconds
        ),
        activity.seconds as f64,
        "",
        Target::AtMost(ticks as f64 * 2.0),
        "",
    );
    report.add(
        &format!("{RUNS} runs that wait for approval, memory of one"),
        (resident - before) / RUNS as f64,
        " KiB",
        Target::AtMost(16.0),
        &format!("{:.1} MiB in all", resident / 1024.0),
    );
}
