//! Slots that are to come, of a schedule or of very many.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::catalog::Catalog;
use crate::model::schedule::{Schedule, ScheduleState};
use crate::model::{Diagnostic, Timestamp, Zone};
use crate::schedule::{Ahead, Recurrence};
use crate::store::Store;

const HOUR_MS: i64 = 3_600_000;

/// Most slots to come that are counted.
const DUE_MAX: usize = 20_000;

/// How far slots to come are counted.
const AHEAD_MS: u64 = 800 * 24 * HOUR_MS.unsigned_abs();

/// Most workers whose slots to come are held.
const HELD_MAX: usize = 64;

/// Slots to come, in their order.
pub(super) struct Due {
    pub(super) slots: Vec<Timestamp>,
    /// All before this instant are among them.
    pub(super) known_until: Timestamp,
}

/// Slots to come as they were counted last, by the worker whose schedules are meant. They are counted anew each hour, and
/// when definitions or pauses change.
#[derive(Default)]
pub(super) struct DueCache(Mutex<Counted>);

#[derive(Default)]
struct Counted {
    by: Weak<Catalog>,
    hour: i64,
    /// Schedules that have paused themselves.
    paused: usize,
    due: BTreeMap<Option<String>, Arc<Due>>,
}

impl DueCache {
    /// A person has paused a schedule, or lets it go on.
    pub(super) fn forget(&self) {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counted.due.clear();
    }

    /// What is to come of all schedules, or of those of a worker; so many have paused themselves.
    pub(super) fn of(
        &self,
        (catalog, store): (&Arc<Catalog>, &dyn Store),
        (worker, paused): (Option<&String>, usize),
        now: Timestamp,
    ) -> Result<Arc<Due>, Diagnostic> {
        let hour = now.millis().div_euclid(HOUR_MS);
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_present = (counted.hour, counted.paused) == (hour, paused)
            && Weak::ptr_eq(&counted.by, &Arc::downgrade(catalog));
        if !is_present || counted.due.len() >= HELD_MAX {
            *counted = Counted {
                by: Arc::downgrade(catalog),
                hour,
                paused,
                due: BTreeMap::new(),
            };
        }
        let worker = worker.cloned();
        if let Some(due) = counted.due.get(&worker) {
            return Ok(Arc::clone(due));
        }
        let due = Arc::new(of_schedules(catalog, store, worker.as_deref(), now)?);
        counted.due.insert(worker, Arc::clone(&due));
        Ok(due)
    }
}

fn of_schedules(
    catalog: &Catalog,
    store: &dyn Store,
    worker: Option<&str>,
    now: Timestamp,
) -> Result<Due, Diagnostic> {
    let mut states: HashMap<String, ScheduleState> = HashMap::new();
    store.schedules(&mut |id, state| {
        states.extend(state.ok().map(|state| (id.to_owned(), state)));
    })?;
    let of_worker = |one: &&Arc<Schedule>| worker.is_none_or(|id| *id == one.skill.worker);
    let all = catalog.schedules.iter().filter(of_worker);
    let ahead = all.filter_map(|one| ahead(catalog, one, states.get(&*one.id), now));
    Ok(merged(ahead.collect(), now.plus_millis(AHEAD_MS)))
}

/// What is to come of one schedule, up to an instant.
pub(super) fn of_one(
    catalog: &Catalog,
    schedule: &Schedule,
    state: Option<&ScheduleState>,
    (now, until): (Timestamp, Timestamp),
) -> Due {
    let ahead = ahead(catalog, schedule, state, now);
    merged(ahead.into_iter().collect(), until)
}

/// The slots of a schedule that are to come; `None` where no clock makes it due, and while nothing of it runs.
fn ahead<'a>(
    catalog: &Catalog,
    schedule: &'a Schedule,
    state: Option<&ScheduleState>,
    now: Timestamp,
) -> Option<Ahead<'a>> {
    let is_paused = state.is_some_and(|state| state.pause.is_some());
    if is_paused || schedule.disabled || catalog.schedules_held().is_some() {
        return None;
    }
    let zone = schedule.timezone.parse().unwrap_or(Zone::UTC);
    let anchor = state.map_or(now, |state| state.anchor);
    let slots = Recurrence::of(&schedule.trigger, zone, anchor)?;
    let actions = state.map_or(0, |state| state.actions);
    Some(Ahead::new(slots, &schedule.policy, zone, (actions, now)))
}

/// The first slots of all, up to an instant.
fn merged(mut all: Vec<Ahead<'_>>, until: Timestamp) -> Due {
    let first = |(index, one): (usize, &mut Ahead<'_>)| Some(Reverse((one.next()?, index)));
    let mut heads: BinaryHeap<_> = all.iter_mut().enumerate().filter_map(first).collect();
    let mut slots = Vec::new();
    while let Some(Reverse((slot, index))) = heads.pop() {
        if slot >= until {
            break;
        }
        if slots.len() >= DUE_MAX {
            return Due {
                slots,
                known_until: slot,
            };
        }
        slots.push(slot);
        let next = all.get_mut(index).and_then(Iterator::next);
        heads.extend(next.map(|next| Reverse((next, index))));
    }
    Due {
        slots,
        known_until: until,
    }
}
