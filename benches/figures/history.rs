//! A store that has been in use for long: copies of one real run, written through the store's own interface.

use std::sync::Arc;
use std::time::Instant;

use workerctl::machine::Entry;
use workerctl::model::schedule::{SlotRow, SlotStatus};
use workerctl::model::{RunId, RunSpec, ThreadId, Timestamp};
use workerctl::protocol::RunSummary;
use workerctl::store::{Batch, OpenOptions, SledStore, Store, Write};

use crate::workspace::{Workspace, settle, submit};

/// Runs of one commit while a store is filled.
pub(crate) const RUNS_PER_COMMIT: u64 = 200;

/// Time between two runs of the past in milliseconds.
pub(crate) const APART_MS: u64 = 60_000;

/// One real run as it is stored.
pub(crate) struct Sample {
    spec: RunSpec,
    journal: Vec<Entry>,
    summary: RunSummary,
}

/// A workspace of trivial skills whose store holds so many finished runs.
pub(crate) fn filled(runs: u64) -> Workspace {
    let workspace = Workspace::of_trivial_skills(2);
    let sample = Sample::of(&workspace);
    let begun = Instant::now();
    let store = SledStore::open(&workspace.state().join("store"), OpenOptions::default()).unwrap();
    let mut newest = None;
    let mut number = 0;
    while number < runs {
        let until = (number + RUNS_PER_COMMIT).min(runs);
        let mut writes = Vec::new();
        for number in number..until {
            let ago = (runs - number).saturating_mul(APART_MS);
            let at = sample.submitted_at().minus_millis(ago);
            newest = Some(sample.copy(newest, at, number, &mut writes).0);
        }
        store.commit(&Batch { writes }).unwrap();
        number = until;
    }
    eprintln!(
        "  filled a store with {runs} runs in {:.1} s",
        begun.elapsed().as_secs_f64()
    );
    workspace
}

/// Writes what a daily schedule left in a year: a row of its ledger and a finished run for each day.
pub(crate) fn fill_year(workspace: &Workspace, schedule: &str) {
    let sample = Sample::of(workspace);
    let store = SledStore::open(&workspace.state().join("store"), OpenOptions::default()).unwrap();
    let mut writes = Vec::new();
    for ago in 1..=365 {
        let at = sample.submitted_at().minus_millis(ago * 86_400_000);
        let mut of_run = Vec::new();
        let (run, _) = sample.copy(None, at, ago, &mut of_run);
        for write in &mut of_run {
            if let Write::Finished(summary) = write {
                (summary.schedule, summary.slot) = (Some(schedule.to_owned()), Some(at));
            }
        }
        let mut row = SlotRow::one(at, SlotStatus::Ran, at);
        row.run = Some(run);
        writes.push(Write::Slot {
            schedule: schedule.to_owned(),
            row,
        });
        writes.extend(of_run);
    }
    store.commit(&Batch { writes }).unwrap();
}

impl Sample {
    /// What a run of a skill leaves that does nothing.
    pub(crate) fn of(workspace: &Workspace) -> Sample {
        let engine = workspace.engine();
        let run = submit(engine.control.as_ref(), 0, "go");
        settle(engine.control.as_ref());
        engine.end();
        let options = OpenOptions::default();
        let store = SledStore::open(&workspace.state().join("store"), options).unwrap();
        Sample {
            spec: store.spec(run).unwrap().unwrap(),
            journal: store.journal(run).unwrap(),
            summary: store.summary(run).unwrap().unwrap(),
        }
    }

    /// When it was accepted.
    pub(crate) fn submitted_at(&self) -> Timestamp {
        self.spec.submitted_at
    }

    /// The same run at another instant; answers its thread.
    pub(crate) fn at(&self, at: Timestamp, number: u64, writes: &mut Vec<Write>) -> ThreadId {
        self.copy(None, at, number, writes).1
    }

    /// The same run at another instant, with an id after the newest one.
    fn copy(
        &self,
        newest: Option<RunId>,
        at: Timestamp,
        number: u64,
        writes: &mut Vec<Write>,
    ) -> (RunId, ThreadId) {
        let moved = |one: Timestamp| at.plus_millis(one.millis_since(self.spec.submitted_at));
        let random = u128::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
        let run = RunId::following(newest, at, random);
        let mut spec = self.spec.clone();
        (spec.run, spec.submitted_at) = (run, at);
        spec.thread = ThreadId::of(run, &spec.skill, at);
        let thread = spec.thread.clone();
        let mut summary = self.summary.clone();
        summary.day = None;
        (summary.run, summary.submitted_at) = (run, at);
        summary.thread = spec.thread.clone();
        summary.started_at = summary.started_at.map(moved);
        summary.finished_at = summary.finished_at.map(moved);
        let entries = self.journal.iter().cloned().map(|entry| Entry {
            at: moved(entry.at),
            ..entry
        });
        writes.push(Write::Spec(Arc::new(spec)));
        writes.push(Write::Entries {
            run,
            entries: entries.collect(),
        });
        writes.push(Write::Finished(Box::new(summary)));
        writes.push(Write::Closed(run));
        (run, thread)
    }
}

/// Changes how many runs may be active, for the next engine.
pub(crate) fn set_parallelism(workspace: &Workspace, parallelism: u64) {
    workspace.write(
        "workerctl.yaml",
        &format!("max_parallel: {parallelism}\nqueue: {{max: 100000}}\n"),
    );
}
