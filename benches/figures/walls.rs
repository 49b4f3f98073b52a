//! What walls by the kernel cost: runs of `true` at level 1 against the same at level 0, by turns in one engine.

use std::ops::ControlFlow;
use std::time::Instant;

use workerctl::protocol::{Control, RunsQuery};

use crate::Scale;
use crate::limits::median;
use crate::report::{Report, Target};
use crate::throughput::round_of;
use crate::workspace::{Workspace, submit};

/// Nothing around a command, and the walls that a definition can insist on.
const LEVELS: [&str; 2] = ["off", "required"];

pub(crate) fn measure(scale: Scale, report: &mut Report) {
    let workspace = Workspace::new(8);
    for worker in 0..8 {
        let skills = LEVELS.map(|level| {
            format!("  - {{id: {level}, name: N, description: d, sandbox: \"{level}\", run: [\"true\"]}}\n")
        });
        let skills = skills.concat();
        workspace.worker(&format!("w{worker}"), &skills);
    }
    let engine = workspace.engine();
    let control = engine.control.as_ref();
    let [mut off, mut walls] = [Vec::new(), Vec::new()];
    for number in 0..scale.samples as u64 {
        off.push(one(control, number, LEVELS[0]));
        walls.push(one(control, number, LEVELS[1]));
    }
    let (off, walls) = (median(off), median(walls));
    report.add(
        "walls, p50 of a run of `true`, level 1 against level 0",
        walls / off,
        "x",
        Target::AtMost(1.3),
        &format!("{:.2} ms and {:.2} ms", walls * 1e3, off * 1e3),
    );
    let [mut off, mut walls] = [Vec::new(), Vec::new()];
    for _ in 0..scale.rounds {
        off.push(round_of(control, 8, scale.runs, LEVELS[0]));
        walls.push(round_of(control, 8, scale.runs, LEVELS[1]));
    }
    let (off, walls) = (median(off), median(walls));
    report.add(
        "walls, throughput at parallelism 8, level 1 against level 0",
        walls / off,
        "x",
        Target::AtLeast(0.8, 0.8),
        &format!("{walls:.0} and {off:.0} runs/s"),
    );
    let all = RunsQuery {
        outcome: Some("failed".to_owned()),
        ..RunsQuery::default()
    };
    assert_eq!(control.runs(&all).unwrap().len(), 0, "every run succeeds");
    engine.end();
}

/// Seconds from the request to the run's end.
fn one(control: &dyn Control, number: u64, level: &str) -> f64 {
    let asked = Instant::now();
    let run = submit(control, number, level);
    control
        .watch_changes(run, &mut |_| ControlFlow::Continue(()))
        .unwrap();
    asked.elapsed().as_secs_f64()
}
