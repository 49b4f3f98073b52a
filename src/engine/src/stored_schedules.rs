//! What is stored of schedules, for an engine that starts. A state that is damaged is kept aside and
//! made anew of the schedule's rows.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::model::legible::hex;
use crate::model::outcome::Outcome;
use crate::model::schedule::{
    FAILURES_IN_A_ROW, Pause, Restored, Schedule, ScheduleState, SlotRow, SlotStatus, cut,
};
use crate::model::{Diagnostic, Kind, Timestamp};
use crate::store::{Durability, Store, StoreError, Unreadable, write_atomically};

/// Directory of damaged records below the store's.
const DAMAGED: &str = "store/damaged";

/// Runs whose ends are looked at for the last success.
const RUNS_LOOKED_AT: usize = 1_000;

/// The SHA-256 of what slots follow from; other changes of a definition leave them as they are.
pub(super) fn digest(schedule: &Schedule) -> String {
    // Plain data is serialised to text without fail.
    let text = serde_json::to_string(&(&schedule.trigger, &schedule.timezone)).unwrap_or_default();
    hex(&Sha256::digest(text))
}

/// What the store has of schedules when an engine starts.
#[derive(Default)]
pub(super) struct StoredSchedules {
    /// Those whose definitions are there, and whose slots follow from the same, with their cursors.
    pub(super) going_on: HashMap<Arc<str>, Timestamp>,
    /// All others.
    pub(super) others: BTreeMap<String, StoredSchedule>,
}

/// What is known of a schedule before its state is needed.
pub(super) enum StoredSchedule {
    /// Its state is in the store.
    Stored {
        /// What its slots follow from.
        digest: String,
        /// Whether its definition has gone.
        is_closed: bool,
    },
    /// Its state: the store has a damaged one, or does not have the newest yet.
    Held(Box<ScheduleState>),
}

impl StoredSchedule {
    /// Of a state that is in the store.
    pub(super) fn of(state: &ScheduleState) -> StoredSchedule {
        StoredSchedule::Stored {
            digest: state.digest.clone(),
            is_closed: state.closed.is_some(),
        }
    }

    pub(super) const fn is_closed(&self) -> bool {
        matches!(
            self,
            StoredSchedule::Stored {
                is_closed: true,
                ..
            }
        )
    }

    /// Whether a definition of that digest goes on with the state as it is.
    pub(super) fn goes_on(&self, with: &str) -> bool {
        matches!(self, StoredSchedule::Stored { digest, is_closed: false } if digest == with)
    }
}

/// The id of the schedule that goes on with this state. The definitions are sorted.
fn going_on(id: &str, state: &ScheduleState, definitions: &[Arc<Schedule>]) -> Option<Arc<str>> {
    let at = definitions.binary_search_by(|one| (*one.id).cmp(id)).ok()?;
    let definition = definitions.get(at)?;
    let goes_on =
        !definition.disabled && state.closed.is_none() && digest(definition) == state.digest;
    goes_on.then(|| Arc::clone(&definition.id))
}

/// The state of one schedule.
pub(super) fn schedule(
    store: &dyn Store,
    id: &str,
) -> Result<Option<Box<ScheduleState>>, StoreError> {
    let Some(mut state) = store.schedule(id)? else {
        return Ok(None);
    };
    if state.has_run_ahead {
        state.ran_ahead = ran_ahead(store, id, state.cursor)?;
    }
    Ok(Some(Box::new(state)))
}

/// The state of an active schedule, which the store has.
pub(super) fn stored_state(store: &dyn Store, id: &str) -> Result<Box<ScheduleState>, Diagnostic> {
    let state = schedule(store, id);
    let state = state?;
    state.ok_or_else(|| missing(id))
}

/// An active schedule has no state in the store.
fn missing(schedule: &str) -> Diagnostic {
    let message = format!("the store has nothing of the schedule `{schedule}`");
    Diagnostic::new(Kind::Internal, "store_unreadable", message)
        .hint("`workerctl store verify` shows what is damaged")
}

/// Every schedule that the store knows of.
pub(super) fn schedules(
    store: &dyn Store,
    state_dir: &Path,
    now: Timestamp,
    definitions: &[Arc<Schedule>],
) -> Result<StoredSchedules, StoreError> {
    let (mut known, mut damaged) = (StoredSchedules::default(), Vec::new());
    store.schedules(&mut |id, state| match state {
        Ok(state) => match going_on(id, &state, definitions) {
            Some(id) => drop(known.going_on.insert(id, state.cursor)),
            None => drop(
                known
                    .others
                    .insert(id.to_owned(), StoredSchedule::of(&state)),
            ),
        },
        Err(one) => damaged.push((id.to_owned(), one)),
    })?;
    for (id, one) in damaged {
        let state = restored(store, &id, &one, now)?;
        let reason = state.restored.as_ref().map(|restored| &restored.reason);
        match kept_aside(state_dir, &one.record) {
            Ok(path) => {
                let path = path.display();
                tracing::error!(schedule = id, reason, %path, "its state is damaged and was reset");
            }
            Err(error) => {
                tracing::error!(schedule = id, reason, %error, "its state is damaged and was reset; the damaged state could not be kept");
            }
        }
        known
            .others
            .insert(id, StoredSchedule::Held(Box::new(state)));
    }
    Ok(known)
}

/// What is remembered of one schedule; a state that is damaged is shown as it will be made anew.
pub(super) fn one(
    store: &dyn Store,
    id: &str,
    now: Timestamp,
) -> Result<Option<ScheduleState>, StoreError> {
    match store.schedule(id) {
        Err(StoreError::Corrupt { reason, .. }) => {
            let damaged = Unreadable {
                from: None,
                reason,
                record: Vec::new(),
            };
            restored(store, id, &damaged, now).map(Some)
        }
        read => read,
    }
}

/// Slots behind a cursor that have run already. A row that cannot be read may be of a run: it counts.
fn ran_ahead(store: &dyn Store, id: &str, cursor: Timestamp) -> Result<Vec<Timestamp>, StoreError> {
    let mut ahead = Vec::new();
    store.slots(id, None, &mut |row| match row {
        Ok(row) if row.to <= cursor => ControlFlow::Break(()),
        Ok(row) => {
            ahead.extend(row.status.is_run().then_some(row.from));
            ControlFlow::Continue(())
        }
        Err(damaged) => {
            ahead.extend(damaged.from.filter(|from| *from > cursor));
            ControlFlow::Continue(())
        }
    })?;
    ahead.reverse();
    Ok(ahead)
}

/// The state that a schedule's rows tell of: every slot up to the newest row is decided. Its digest is
/// empty, for what its slots followed from is not known; the present definition goes on behind that row.
pub(super) fn restored(
    store: &dyn Store,
    id: &str,
    damaged: &Unreadable,
    now: Timestamp,
) -> Result<ScheduleState, StoreError> {
    let mut state = ScheduleState::new(String::new(), now);
    let mut runs = Vec::new();
    store.slots(id, None, &mut |row| {
        let newest = state.rows == 0;
        state.rows += 1;
        let from = row
            .as_ref()
            .map_or_else(|row| row.from, |row| Some(row.from));
        let to = row.as_ref().map_or(from, |row| Some(row.to));
        if newest {
            state.cursor = to.unwrap_or(now);
            state.anchor = state.cursor;
        }
        if let Ok(row) = row {
            if newest {
                state.pause = pause_of(&row).map(Box::new);
            }
            let total = state.totals.entry(row.status).or_default();
            *total = total.saturating_add(row.count.unwrap_or(0));
            runs.extend(row.run.map(|run| (row.from, run)));
        }
        ControlFlow::Continue(())
    })?;
    state.actions = runs.len() as u64;
    state.last = runs.first().copied();
    for (_, run) in runs.into_iter().take(RUNS_LOOKED_AT) {
        let summary = store.summary(run)?;
        match summary
            .as_ref()
            .and_then(|summary| summary.outcome.as_ref())
        {
            Some(Outcome::Succeeded) => {
                state.succeeded_at = summary.and_then(|summary| summary.finished_at);
                break;
            }
            Some(Outcome::Cancelled | Outcome::Denied { .. }) | None => {}
            Some(_) => state.failures = state.failures.saturating_add(1),
        }
    }
    state.paused_itself = state
        .pause
        .as_ref()
        .is_some_and(|pause| pause.reason.ends_with(FAILURES_IN_A_ROW));
    state.restored = Some(Box::new(Restored {
        at: now,
        reason: lost(&damaged.reason, &state),
    }));
    Ok(state)
}

/// The newest row says whether it was paused then.
fn pause_of(newest: &SlotRow) -> Option<Pause> {
    (newest.status == SlotStatus::Paused).then(|| Pause {
        reason: newest.reason.clone().unwrap_or_default(),
        by: "unknown".to_owned(),
        at: newest.from,
    })
}

/// What was wrong, and what is not known any more.
fn lost(damage: &str, state: &ScheduleState) -> String {
    let damage = cut(damage, 120);
    let pause = match (&state.pause, state.rows) {
        (Some(_), _) => "according to its newest row it was paused, and it remains paused",
        (None, 0) => "it has no history, so it starts again, and a pause is lost",
        (None, _) => "according to its newest row it was not paused; a later pause is lost",
    };
    format!("{damage}; {pause}")
}

/// Keeps the bytes of a damaged record for a person, under a name that follows from them.
fn kept_aside(state_dir: &Path, record: &[u8]) -> std::io::Result<PathBuf> {
    let directory = state_dir.join(DAMAGED);
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(&directory)?;
    let name = hex(&Sha256::digest(record));
    let path = directory.join(format!("schedule-{}.record", &name[..16]));
    write_atomically(&path, record, 0o600, Durability::Power).map_err(std::io::Error::other)?;
    Ok(path)
}
