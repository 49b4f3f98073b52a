//! Building a store again from what threads tell, after a damaged one was moved aside.

use std::path::Path;
use std::sync::Arc;

use super::sled_open::{DATABASE, OpenOptions, lock_directory};
use super::sled_store::{SledStore, create};
use super::{Batch, Store, StoreError, Write};
use crate::machine::{Entry, Event, Run, State};
use crate::model::outcome::{Outcome, Phase};
use crate::model::{RunId, RunSpec, Timestamp};
use crate::protocol::RunSummary;

/// Threads are synced at most so often; what happened in the last such span before a power cut may
/// be missing in them.
pub const THREAD_SYNC_MS: u64 = 5_000;

/// The stable code of a run that was not over when the store was lost.
pub const REBUILT: &str = "store_rebuilt";

/// Added to the greatest fencing token that any thread tells of: engines that started no run left no
/// trace of theirs.
const FENCE_GAP: u64 = 1_000_000;

/// Most problems that a report lists; all are counted.
const LISTED_MAX: usize = 100;

/// One run as its thread tells it.
#[derive(Debug, Clone)]
pub struct RestoredRun {
    /// What it was to do, where the thread holds it.
    pub spec: Option<RunSpec>,
    /// Its events.
    pub entries: Vec<Entry>,
    /// Its line for lists.
    pub summary: RunSummary,
}

/// Where runs come from.
pub trait ThreadSource {
    /// The next run, in any order; `Err` says which thread cannot be used, and why.
    fn next_run(&mut self) -> Option<Result<RestoredRun, String>>;
}

/// What was built.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct RebuildReport {
    /// Runs that are in the store again.
    pub runs: u64,
    /// Those that were not over. They are not started again, since nobody can tell how far they
    /// got: their outcome is unknown until a person settles it.
    pub unfinished: Vec<RunId>,
    /// Everything up to here is told by the threads; what came later may be missing.
    pub vouches_until: Option<Timestamp>,
    /// The next fencing token.
    pub fence: u64,
    /// Threads that could not be used and journals that do not fold, at most 100.
    pub problems: Vec<String>,
    /// How many there are.
    pub problem_count: u64,
}

/// Builds the store in `directory` from `source`. Refused while a store is there. It appears whole
/// or not at all.
pub fn rebuild(
    directory: &Path,
    options: OpenOptions,
    source: &mut dyn ThreadSource,
) -> Result<RebuildReport, StoreError> {
    let shown = directory.display().to_string();
    let _locked = lock_directory(directory, &shown, true)?;
    if directory.join(DATABASE).exists() {
        return Err(StoreError::Refused {
            path: shown,
            reason: "a store is there; it has to be moved aside first".to_owned(),
        });
    }
    let mut report = RebuildReport::default();
    create(directory, &shown, options, &mut |store| {
        report = fill(store, source)?;
        Ok(())
    })?;
    Ok(report)
}

fn fill(store: &SledStore, source: &mut dyn ThreadSource) -> Result<RebuildReport, StoreError> {
    let mut report = RebuildReport::default();
    let (mut newest, mut fence) = (None, 0);
    while let Some(next) = source.next_run() {
        let restored = match next {
            Ok(restored) => restored,
            Err(problem) => {
                report.problem(problem);
                continue;
            }
        };
        for entry in &restored.entries {
            newest = newest.max(Some(entry.at));
            if let Event::Admitted { admission } = &entry.event {
                fence = fence.max(admission.fence);
            }
        }
        let run = restored.summary.run;
        match store.commit_lazily(&batch_of(restored, &mut report)) {
            Ok(()) => report.runs += 1,
            Err(StoreError::Refused { reason, .. }) => {
                report.problem(format!("run {run}: {reason}"));
            }
            Err(other) => return Err(other),
        }
    }
    report.fence = store.0.raise_fence(fence.saturating_add(FENCE_GAP))?;
    report.vouches_until = newest.map(|at: Timestamp| {
        let sync_ms = i64::try_from(THREAD_SYNC_MS).unwrap_or(i64::MAX);
        let second = at.millis().saturating_sub(sync_ms).div_euclid(1_000);
        Timestamp::from_millis(second.saturating_mul(1_000))
    });
    Ok(report)
}

/// A run that was not over is over now, with its outcome unknown.
fn batch_of(restored: RestoredRun, report: &mut RebuildReport) -> Batch {
    let RestoredRun {
        spec,
        entries,
        mut summary,
    } = restored;
    let run = summary.run;
    let over = match Run::fold(&entries) {
        Ok(folded) => matches!(folded.state, State::Finished { .. }),
        Err(error) => {
            report.problem(format!("run {run}: {error}"));
            summary.outcome.is_some()
        }
    };
    if !over {
        summary.phase = Phase::Finished;
        summary.outcome = Some(Outcome::Unknown {
            why: REBUILT.to_owned(),
        });
        let last = entries.last().map(|entry| entry.at);
        summary.finished_at = summary.finished_at.or(last).or(Some(summary.submitted_at));
        summary.waiting_for = None;
        (summary.working_since, summary.retry_at) = (None, None);
        report.unfinished.push(run);
    }
    let mut writes = Vec::new();
    writes.extend(spec.map(|spec| Write::Spec(Arc::new(spec))));
    writes.push(Write::Entries { run, entries });
    writes.push(Write::Finished(Box::new(summary)));
    writes.push(Write::Closed(run));
    Batch { writes }
}

impl RebuildReport {
    fn problem(&mut self, problem: String) {
        self.problem_count += 1;
        if self.problems.len() < LISTED_MAX {
            self.problems.push(problem);
        }
    }
}
