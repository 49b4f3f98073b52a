//! How many runs a second go the whole durable way, against what spawning and syncing allow.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use workerctl::protocol::Control;

use crate::Scale;
use crate::history;
use crate::limits::{self, Bound, median};
use crate::report::{Report, Target};
use crate::workspace::{Workspace, settle, submit};

/// The share of the bound that is to be reached, and the one that is aimed at.
const SHARE: Target = Target::AtLeast(0.5, 0.65);

pub(crate) fn measure(scale: Scale, report: &mut Report) {
    let filled = history::filled(scale.history_runs);
    for parallelism in [2, 8] {
        let fresh = Workspace::of_trivial_skills(parallelism);
        in_process(scale, report, &fresh, parallelism);
        let without = by_socket(scale, report, &fresh, parallelism, "an empty store");
        history::set_parallelism(&filled, parallelism);
        let with = by_socket(scale, report, &filled, parallelism, "a full store");
        report.add(
            &format!("throughput, full against empty store, parallelism {parallelism}"),
            with / without,
            "",
            Target::AtLeast(0.9, 1.0),
            &format!("{} finished runs", scale.history_runs),
        );
    }
}

fn in_process(scale: Scale, report: &mut Report, workspace: &Workspace, parallelism: u64) {
    let engine = workspace.engine();
    let name = format!("throughput, in process, parallelism {parallelism}");
    rounds(
        scale,
        report,
        workspace,
        parallelism,
        &name,
        engine.control.as_ref(),
    );
    engine.end();
}

fn by_socket(
    scale: Scale,
    report: &mut Report,
    workspace: &Workspace,
    parallelism: u64,
    store: &str,
) -> f64 {
    let daemon = workspace.daemon();
    let control = workspace.dial();
    let name = format!("throughput, socket, parallelism {parallelism}, {store}");
    let share = rounds(scale, report, workspace, parallelism, &name, &control);
    daemon.end();
    share
}

/// Rounds of the engine in this process with nothing measured beside it but its own processor time.
pub(crate) fn profile(scale: Scale, _report: &mut Report) {
    let workspace = Workspace::of_trivial_skills(8);
    let engine = workspace.engine();
    round(engine.control.as_ref(), 8, scale.runs.min(100));
    for _ in 0..scale.rounds {
        let before = limits::processor_seconds();
        let rate = round(engine.control.as_ref(), 8, scale.runs);
        let [own, children] = limits::processor_seconds();
        println!(
            "{rate:.0} runs/s; processor time of a run: {:.0} us of ours, {:.0} us of its process",
            (own - before[0]) * 1e6 / scale.runs as f64,
            (children - before[1]) * 1e6 / scale.runs as f64
        );
    }
    engine.end();
}

/// Rounds between measurements of the bound; answers the share of it that was reached.
fn rounds(
    scale: Scale,
    report: &mut Report,
    workspace: &Workspace,
    parallelism: u64,
    name: &str,
    control: &dyn Control,
) -> f64 {
    round(control, parallelism, scale.runs.min(100));
    let (mut shares, mut rates, mut bounds) = (Vec::new(), Vec::new(), Vec::new());
    let mut before = Bound::measure(workspace.directory(), parallelism, scale.runs);
    for _ in 0..scale.rounds {
        let rate = round(control, parallelism, scale.runs);
        let after = Bound::measure(workspace.directory(), parallelism, scale.runs);
        let bound = Bound::between(before, after).runs_per_second();
        (shares, rates, bounds) = pushed(shares, rates, bounds, [rate / bound, rate, bound]);
        before = after;
    }
    let how = format!(
        "{:.0}/s of {:.0}/s; spawn {:.0} us, sync {:.0} us",
        median(rates),
        median(bounds),
        before.spawn_s * 1e6,
        before.sync_s * 1e6
    );
    let share = median(shares);
    report.add(name, share, "", SHARE, &how);
    share
}

fn pushed(
    mut first: Vec<f64>,
    mut second: Vec<f64>,
    mut third: Vec<f64>,
    values: [f64; 3],
) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    first.push(values[0]);
    second.push(values[1]);
    third.push(values[2]);
    (first, second, third)
}

/// Runs a second of `runs` runs, submitted by as many clients as may be active, none waiting for its run.
pub(crate) fn round(control: &dyn Control, clients: u64, runs: u64) -> f64 {
    round_of(control, clients, runs, "go")
}

/// The same of a skill with this id.
pub(crate) fn round_of(control: &dyn Control, clients: u64, runs: u64, skill: &str) -> f64 {
    let next = AtomicU64::new(0);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..clients {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= runs {
                        break;
                    }
                    submit(control, number, skill);
                }
            });
        }
    });
    settle(control);
    runs as f64 / begun.elapsed().as_secs_f64()
}
