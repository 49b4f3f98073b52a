//! How long it takes until the daemon is ready, and until an old store answers.

use workerctl::store::{OpenOptions, SledStore};

use crate::Scale;
use crate::history;
use crate::limits::{median, median_of};
use crate::report::{Report, Target};
use crate::workspace::Workspace;

/// Starts of which the middle one counts.
const STARTS: usize = 11;

pub(crate) fn measure(scale: Scale, report: &mut Report) {
    let small = Workspace::of_trivial_skills(2);
    small.daemon().end();
    let ready = ready_ms(&small);
    report.add(
        "start to ready, existing empty store",
        ready,
        " ms",
        Target::AtMost(10.0),
        "",
    );
    let large = Workspace::new(2);
    write_definitions(&large, scale.definition_files);
    large.daemon().end();
    report.add(
        "start to ready, many definition files",
        ready_ms(&large),
        " ms",
        Target::AtMost(200.0),
        &format!("{} files", scale.definition_files),
    );
    let reload = median_of(5, || {
        let _ = workerctl::engine::definitions::Definitions::load(
            &large.root(),
            &large.root(),
            &std::collections::BTreeMap::new(),
        );
    });
    report.add(
        "reading these definitions",
        reload * 1e3,
        " ms",
        Target::None,
        "",
    );
    of_history(scale, report);
}

fn of_history(scale: Scale, report: &mut Report) {
    let filled = history::filled(scale.history_runs);
    let runs = format!("{} finished runs", scale.history_runs);
    let opening = median_of(5, || {
        SledStore::open(&filled.state().join("store"), OpenOptions::default()).unwrap();
    });
    report.add(
        "opening a full store",
        opening * 1e3,
        " ms",
        Target::AtMost(500.0),
        &runs,
    );
    report.add(
        "start to ready, full store",
        ready_ms(&filled),
        " ms",
        Target::None,
        &runs,
    );
    let list = ["runs", "--limit", "20"];
    let hosted = median_of(5, || drop(filled.cli(&list)));
    report.add(
        "`runs --limit 20`, full store, no daemon",
        hosted * 1e3,
        " ms",
        Target::None,
        &runs,
    );
    let daemon = filled.daemon();
    let served = median_of(20, || drop(filled.cli(&list)));
    daemon.end();
    report.add(
        "`runs --limit 20`, full store",
        served * 1e3,
        " ms",
        Target::AtMost(50.0),
        &runs,
    );
}

/// How long the daemon of a workspace takes until it is ready; the middle of some starts.
pub(crate) fn ready_ms(workspace: &Workspace) -> f64 {
    let starts = (0..STARTS).map(|_| {
        let daemon = workspace.daemon();
        let ready_after = daemon.ready_after.as_secs_f64() * 1e3;
        daemon.end();
        ready_after
    });
    median(starts.collect())
}

/// Writes workers with nine standalone skills each.
fn write_definitions(workspace: &Workspace, files: usize) {
    for worker in 0..files.div_ceil(10) {
        workspace.write(
            &format!("workers/w{worker}/worker.yaml"),
            &format!("worker: {{id: w{worker}, name: W{worker}, type: OpsWorker, version: \"1.0\"}}\nexecution: {{mode: on_demand, max_runtime: 15m}}\n"),
        );
        for skill in 0..9 {
            workspace.write(
                &format!("workers/w{worker}/skills/s{skill}.md"),
                &format!(
                    "---\nskill:\n  id: s{skill}\n  name: \"Skill {skill}\"\n  description: \"What changed this week\"\n  run: \"git log --since={{weeks}}.weeks --oneline\"\n  interface:\n    inputs:\n      - {{name: weeks, type: number, default: 1, min: 1, max: 52}}\n    outputs:\n      - {{name: report, type: markdown, destination: \"workspace/reports/{{date}}-{skill}-{worker}.md\"}}\n  verification:\n    - {{command: \"test -s {{report}}\", description: \"not empty\", timeout: 30s}}\n  timeout: 10m\n---\n\n# Skill {skill}\n\nWrites down what changed.\n"
                ),
            );
        }
    }
}
