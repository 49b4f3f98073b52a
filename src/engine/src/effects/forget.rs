//! Forgetting: runs whose time is over go with journal and thread, in small pieces beside the work.
//!
//! What goes is decided by `retention` of the core. Thread files go first and the records last, so that a crash in
//! between leaves a run that the next look forgets again.

use std::collections::HashSet;
use std::ops::ControlFlow;

use super::super::expiry::SWEEP_MS;
use super::compact::COMPACTED_BYTES_MIN;
use super::{Performer, lock};
use crate::git;
use crate::model::retention::{HOURS_MS, STATISTICS_MS};
use crate::model::{Config, Diagnostic, Notices, Outcome, RunId, Timestamp, Zone};
use crate::process::give_back_memory;
use crate::protocol::{ClockDoubt, ForgetRequest, Forgot, RunSummary};
use crate::retention::{ClockRecord, EndedRun, KeptFor, Reason, STEADY_MS, Selection};
use crate::store::thread_files::{FileError, remove_thread, thread_bytes};
use crate::store::{Batch, Store, StoreError, Unreadable, Write};

/// Runs that go in one commit beside the work.
const PIECE_RUNS: usize = 64;

/// Rows of slots that go in one commit.
const PIECE_ROWS: usize = 1_000;

/// Runs that one request forgets.
const REQUEST_RUNS: usize = 4_096;

/// Commits in which counts go, each of some thousand records, at one look. In one hour there are as many as skills and
/// schedules with runs.
const COUNTS_PIECES_MAX: usize = 100;

/// What is to be forgotten, the oldest last.
#[derive(Debug, Default)]
pub(super) struct Overdue {
    runs: Vec<RunId>,
    /// Whether the database is to be compacted once they are gone and nothing is under way: it needs little of its file.
    compacts: bool,
}

/// What a look found.
struct Found {
    /// The oldest last.
    runs: Vec<RunId>,
    forgot: Forgot,
    /// Runs that stay.
    left: u64,
    clock: ClockRecord,
}

impl Performer {
    /// Once a day looks for what is over, and then forgets a piece of it each time.
    pub(super) fn forget_piece(&self) {
        let Ok(mut overdue) = self.overdue.try_lock() else {
            return;
        };
        if overdue.runs.is_empty() && self.parts.expiry.is_sweep_due() {
            match self.look(false) {
                Ok(found) => {
                    let now = found.clock.expiry;
                    log_forgotten(&found.forgot);
                    let most = found.runs.len() as u64 > found.left.saturating_mul(3);
                    overdue.compacts |= most || self.wastes_space(now);
                    overdue.runs = found.runs;
                    if !found.clock.is_doubted {
                        self.forget_what_runs_left(now, &found.forgot.schedules);
                    }
                    self.parts.expiry.swept(found.clock);
                    self.complete_threads();
                }
                Err(error) => tracing::warn!(%error, "expired data could not be deleted"),
            }
            self.let_go_of_memory();
            if !overdue.runs.is_empty() {
                return;
            }
        }
        let from = overdue.runs.len().saturating_sub(PIECE_RUNS);
        let piece = overdue.runs.split_off(from);
        if !piece.is_empty()
            && let Err(error) = self.forget_runs(&piece)
        {
            tracing::warn!(%error, "expired data could not be deleted");
            overdue.runs.clear();
        }
        if overdue.runs.is_empty() && overdue.compacts && !self.is_at_work() {
            overdue.compacts = false;
            self.compact();
        }
    }

    /// Every run was looked at, which an engine need not hold from then on.
    fn let_go_of_memory(&self) {
        if let Err(error) = self.parts.store.let_go() {
            tracing::warn!(%error, "the store keeps more memory than it needs");
        }
        give_back_memory();
    }

    /// Forgets at once what is over, as much as one request may take; or only tells it.
    pub(super) fn forget_now(&self, request: &ForgetRequest) -> Result<Forgot, Diagnostic> {
        let forgot = self.forgotten_now(request);
        self.let_go_of_memory();
        forgot
    }

    fn forgotten_now(&self, request: &ForgetRequest) -> Result<Forgot, Diagnostic> {
        let mut overdue = lock(&self.overdue);
        let Found {
            mut runs,
            mut forgot,
            clock,
            ..
        } = self.look(request.trust_clock)?;
        forgot.database_bytes_before = self.parts.store.file_bytes()?;
        if request.dry_run {
            return Ok(forgot);
        }
        log_forgotten(&forgot);
        if clock.is_doubted {
            self.parts.expiry.swept(clock);
            return Ok(forgot);
        }
        overdue.runs.clear();
        let left = runs.len().saturating_sub(REQUEST_RUNS);
        for piece in runs.split_off(left).rchunks(PIECE_RUNS) {
            self.forget_runs(piece)?;
        }
        forgot.more = left > 0;
        if forgot.more {
            return Ok(forgot);
        }
        self.forget_what_runs_left(clock.expiry, &forgot.schedules);
        self.parts.expiry.swept(clock);
        let store = self.parts.store.as_ref();
        let is_small = store.file_bytes()? < COMPACTED_BYTES_MIN;
        if is_small || self.is_at_work() || store.held_bytes()? * 2 > store.file_bytes()? {
            return Ok(forgot);
        }
        match store.compact() {
            Ok(()) => forgot.database_bytes_after = Some(store.file_bytes()?),
            Err(error) => forgot
                .notes
                .push(format!("the database is not compacted: {error}")),
        }
        Ok(forgot)
    }

    /// What is over by now; nothing while the wall clock is doubted.
    fn look(&self, trusts_clock: bool) -> Result<Found, StoreError> {
        let store = self.parts.store.as_ref();
        let newest = store.newest()?.map(RunId::timestamp);
        let clock = self.parts.expiry.sweep(newest, trusts_clock);
        if clock.is_doubted {
            let wall = clock.swept_at;
            let forgot = Forgot {
                clock_behind: newest.filter(|newest| *newest > wall),
                clock_doubt: Some(ClockDoubt {
                    steady_since: clock.steady_since,
                    believed_at: clock.steady_since.plus_millis(STEADY_MS),
                }),
                ..Forgot::default()
            };
            return Ok(Found {
                runs: Vec::new(),
                forgot,
                left: u64::MAX,
                clock,
            });
        }
        let now = clock.expiry;
        let config = self.parts.definitions.current().config.clone();
        let kept = Kept::of(store, now, &config)?;
        let mut selection = Selection::new(config.retention, now);
        let directory = self.logs.directory(&config.threads_dir).ok();
        let (mut forgot, mut all) = (Forgot::default(), 0_u64);
        store.summaries(None, &mut |run| {
            all += 1;
            let ended_at = run.finished_at.unwrap_or(run.submitted_at);
            let thread_bytes = directory
                .as_ref()
                .map_or(0, |directory| thread_bytes(directory, &run.thread));
            selection.take(&EndedRun {
                run: run.run,
                skill: &run.skill,
                ended_at,
                approved: run.decided,
                kept_for: kept.why(&run),
                thread_bytes,
            });
            ControlFlow::Continue(())
        })?;
        let decided = selection.decide();
        forgot.run_count = decided.len() as u64;
        for going in &decided {
            forgot.early_run_count += u64::from(going.reason == Reason::Bytes);
            forgot.newest = forgot.newest.max(Some(going.ended_at));
            forgot.oldest = forgot
                .oldest
                .or(Some(going.ended_at))
                .min(Some(going.ended_at));
            forgot.thread_bytes = forgot.thread_bytes.saturating_add(going.thread_bytes);
        }
        forgot.schedules = self.schedules_gone(now)?;
        Ok(Found {
            runs: decided.iter().map(|going| going.run).collect(),
            left: all.saturating_sub(forgot.run_count),
            forgot,
            clock,
        })
    }

    /// Forgets these runs: their threads, what is kept of them in the repository, their records.
    fn forget_runs(&self, runs: &[RunId]) -> Result<(), StoreError> {
        let store = self.parts.store.as_ref();
        let mut writes = Vec::new();
        for run in runs {
            match self.forget_files(*run) {
                Ok(()) => writes.push(Write::Forget(*run)),
                Err(ForgetError::Files(error)) => {
                    tracing::warn!(%run, %error, "the run stays: its thread cannot be removed");
                }
                Err(ForgetError::Store(error)) => return Err(error),
            }
        }
        store.commit(&Batch { writes })
    }

    fn forget_files(&self, run: RunId) -> Result<(), ForgetError> {
        let store = self.parts.store.as_ref();
        let Some(summary) = store.summary(run)? else {
            return Ok(());
        };
        // It may have been written where an earlier configuration said.
        let spec = store.spec(run).ok().flatten();
        let place = match &spec {
            Some(spec) => spec.threads_dir.clone(),
            None => self.parts.definitions.current().config.threads_dir.clone(),
        };
        remove_thread(self.logs.directory(&place)?.as_ref(), &summary.thread)?;
        if spec.is_some_and(|spec| spec.tree.is_some())
            && let Ok(named) = run.to_string().parse()
            && let Err(error) = git::drop_refs(&self.parts.workspace, &named)
        {
            tracing::warn!(%run, %error, "what is kept of a run could not be dropped");
        }
        Ok(())
    }

    /// Schedules that are defined no more, and of which nothing was recorded for long enough.
    fn schedules_gone(&self, now: Timestamp) -> Result<Vec<String>, StoreError> {
        let (store, catalog) = (self.parts.store.as_ref(), self.parts.definitions.current());
        let mut gone = Vec::new();
        // What a broken definition was is not known.
        if catalog.has_errors() {
            return Ok(gone);
        }
        store.schedules(&mut |id, _| {
            let at = catalog.schedules.binary_search_by(|one| (*one.id).cmp(id));
            if at.is_err() {
                gone.push(id.to_owned());
            }
        })?;
        let over = now.minus_millis(catalog.config.retention.slots_ms);
        let mut failed = None;
        gone.retain(|id| {
            let mut newest = None;
            let read = store.slots(id, None, &mut |row| {
                newest = Some(row.map_or(now, |row| row.at.max(row.to)));
                ControlFlow::Break(())
            });
            failed = read.err().or(failed.take());
            newest.is_none_or(|newest| newest < over)
        });
        failed.map_or(Ok(gone), Err)
    }

    /// Rows go first: a schedule whose state is gone is not found again.
    fn forget_schedules(&self, gone: &[String]) -> Result<(), StoreError> {
        let store = self.parts.store.as_ref();
        for id in gone {
            loop {
                let mut writes = Vec::new();
                store.slots(id, None, &mut |row| {
                    let from = row.map_or_else(|damaged| damaged.from, |row| Some(row.from));
                    writes.extend(from.map(|from| Write::DropSlot {
                        schedule: id.clone(),
                        from,
                    }));
                    if writes.len() < PIECE_ROWS {
                        ControlFlow::Continue(())
                    } else {
                        ControlFlow::Break(())
                    }
                })?;
                if writes.is_empty() {
                    break;
                }
                store.commit(&Batch { writes })?;
            }
            tracing::info!(
                schedule = id,
                "the stored state of a removed schedule is deleted"
            );
            let writes = vec![Write::ForgetSchedule(id.clone())];
            store.commit(&Batch { writes })?;
        }
        Ok(())
    }

    /// Rows of schedules that are gone, counts of days long past, payloads that a crash left.
    fn forget_what_runs_left(&self, now: Timestamp, gone: &[String]) {
        let store = self.parts.store.as_ref();
        let config = self.parts.definitions.current().config.clone();
        let zone = config.timezone.parse().unwrap_or(Zone::UTC);
        let day = now.minus_millis(STATISTICS_MS).date_in(zone);
        let hour = now.minus_millis(HOURS_MS).hour();
        let over = now.minus_millis(config.retention.slots_ms);
        let counts = Batch {
            writes: vec![
                Write::ForgetCounts(day.clone()),
                Write::ForgetCounts(hour.clone()),
                Write::ForgetHours(over),
            ],
        };
        let swept = forget_counts(store, &counts)
            .inspect(|some| {
                if *some {
                    let (slots, hours, days) = (over.rfc3339(), &hour, &day);
                    tracing::info!(slots, hours, days, "counts of before then were removed");
                }
            })
            .and_then(|_| store.sweep_payloads(now.minus_millis(SWEEP_MS)))
            .inspect(|count| {
                if *count > 0 {
                    tracing::info!(count, "payloads that no run names were removed");
                }
            })
            .and_then(|_| self.forget_schedules(gone));
        if let Err(error) = swept {
            tracing::warn!(%error, "expired data could not be deleted");
        }
    }
}

/// Logs which runs are forgotten and why, or why none is.
fn log_forgotten(forgot: &Forgot) {
    let time = |at: Option<Timestamp>| at.map(Timestamp::rfc3339).unwrap_or_default();
    if let Some(doubt) = forgot.clock_doubt {
        let (since, until) = (doubt.steady_since.rfc3339(), doubt.believed_at.rfc3339());
        let newest = time(forgot.clock_behind);
        tracing::warn!(
            since,
            until,
            newest,
            "nothing is forgotten: the clock has jumped, or precedes the newest record"
        );
    } else if forgot.run_count > 0 {
        let by_bytes = forgot.early_run_count;
        tracing::info!(
            by_age = forgot.run_count - by_bytes,
            by_bytes,
            oldest = time(forgot.oldest),
            newest = time(forgot.newest),
            thread_bytes = forgot.thread_bytes,
            "runs beyond the limits of `retention` are deleted, with their journals and threads"
        );
    }
}

/// Why a run is not forgotten.
#[derive(Debug, thiserror::Error)]
enum ForgetError {
    #[error(transparent)]
    Files(#[from] FileError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Runs that stay whatever their age.
struct Kept {
    now: Timestamp,
    keep_refs_ms: u64,
    active: HashSet<RunId>,
    to_be_told: HashSet<RunId>,
}

impl Kept {
    fn of(
        store: &dyn crate::store::Store,
        now: Timestamp,
        config: &Config,
    ) -> Result<Kept, StoreError> {
        let mut to_be_told = HashSet::new();
        store.notices(&mut |notices: Result<Notices, Unreadable>| {
            let waiting = notices.map(|notices| notices.waiting).unwrap_or_default();
            to_be_told.extend(waiting.iter().filter_map(|notice| notice.run));
        })?;
        Ok(Kept {
            now,
            keep_refs_ms: config.keep_refs_ms,
            active: store.active()?.into_iter().collect(),
            to_be_told,
        })
    }

    fn why(&self, run: &RunSummary) -> Option<KeptFor> {
        let is_young = self.now.millis_since(run.submitted_at) <= self.keep_refs_ms;
        if self.active.contains(&run.run) {
            Some(KeptFor::Work)
        } else if matches!(run.outcome, Some(Outcome::Unknown { .. })) {
            Some(KeptFor::Resolution)
        } else if run.kept_commit.is_some() && is_young {
            Some(KeptFor::Landing)
        } else if self.to_be_told.contains(&run.run) {
            Some(KeptFor::Notice)
        } else {
            None
        }
    }
}

/// Forgets piece by piece, until there is nothing left that a commit would write; returns whether there was something.
fn forget_counts(store: &dyn Store, counts: &Batch) -> Result<bool, StoreError> {
    for piece in 0..COUNTS_PIECES_MAX {
        let before = store.counters().commits;
        store.commit(counts)?;
        if store.counters().commits == before {
            return Ok(piece > 0);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::MemoryStore;

    #[test]
    fn all_counts_of_an_hour_go_at_one_look() {
        let store = MemoryStore::new();
        let ended = |n: u64| {
            let run = RunId::lowest_of(Timestamp::from_millis(n.cast_signed()));
            let summary: RunSummary = serde_json::from_value(serde_json::json!({
                "run": run, "skill": {"worker": "w", "skill": format!("s{n}")}, "phase": "finished",
                "outcome": {"kind": "succeeded"}, "unverified": false, "reconciled": false,
                "mutating": false, "attempts": 1, "submitted_at": 0, "started_at": 0,
                "finished_at": 1, "thread": "t", "commit": null,
            }))
            .unwrap();
            Write::Finished(Box::new(summary))
        };
        // More than go in one commit.
        let writes = (0..12_000).map(ended).collect();
        store.commit(&Batch { writes }).unwrap();
        let left = |at: &str| {
            let mut count = 0;
            store.counts(at, "", &mut |_, _| count += 1).unwrap();
            count
        };
        let (day, hour) = ("1970-01-01", "1970-01-01T00");
        assert_eq!((left(day), left(hour)), (12_001, 12_000));
        let writes = ["1970-01-02", "1970-01-01T01"].map(|at| Write::ForgetCounts(at.to_owned()));
        forget_counts(
            &store,
            &Batch {
                writes: writes.into(),
            },
        )
        .unwrap();
        assert_eq!((left(day), left(hour)), (0, 0));
    }
}
