//! Which states of schedules are in memory: only those to which something happens. There may be very many
//! schedules, and hardly any is needed often; the store has what was committed of each.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::TRY_AGAIN_MS;
use super::occurrences::Probing;
use super::{RunStates, Scheduler, SchedulerContext};
use crate::model::schedule::{Overlap, Schedule, ScheduleState};
use crate::model::{Diagnostic, RunId, Timestamp, Zone};
use crate::schedule::{Others, Recurrence};
use crate::store::Store;
use crate::stored_schedules::{StoredSchedule, stored_state};
use crate::work::OfSchedule;

/// So many first looks are worth to have memory given back.
const EVALUATIONS_MANY: usize = 1_000;

/// When a schedule is expected to succeed, as far as that is known.
#[derive(Default)]
pub(super) struct Outlook {
    /// When it is to be looked at again.
    pub(super) wake: Option<Timestamp>,
    /// When it is due next.
    pub(super) next: Option<Timestamp>,
}

/// What is held of every active schedule.
pub(super) struct ActiveSchedule {
    pub(super) definition: Arc<Schedule>,
    pub(super) zone: Zone,
    /// When it is looked at again.
    pub(super) wake: Option<Timestamp>,
    /// Its turn among the schedules of its worker.
    pub(super) rank: u32,
    pub(super) outlook: Outlook,
}

/// An active schedule to which something happens.
pub(super) struct ResidentSchedule {
    pub(super) definition: Arc<Schedule>,
    pub(super) zone: Zone,
    pub(super) state: Box<ScheduleState>,
    /// The slot whose run is being made.
    pub(super) preparing: Option<Timestamp>,
    /// Its runs that have not ended.
    pub(super) runs: BTreeSet<RunId>,
    /// What it waits for, if that does not follow the clock.
    pub(super) probing: Probing,
    /// Why the slot that is next in turn could not run yet.
    pub(super) held_back: Option<String>,
}

impl ResidentSchedule {
    pub(super) fn new(
        definition: &Arc<Schedule>,
        zone: Zone,
        state: Box<ScheduleState>,
    ) -> ResidentSchedule {
        ResidentSchedule {
            definition: Arc::clone(definition),
            zone,
            state,
            preparing: None,
            runs: BTreeSet::new(),
            probing: Probing::default(),
            held_back: None,
        }
    }

    /// Whether nothing happens to it, so that all there is to know is in the store.
    fn is_at_rest(&self) -> bool {
        let waits = self.preparing.is_some() || self.held_back.is_some();
        !waits && self.runs.is_empty() && self.probing.is_at_rest()
    }

    /// Its slots that follow the clock. Made anew for each look: kept, they would be the most that is held
    /// of a schedule, and hardly any is looked at often.
    pub(super) fn recurrence(&self) -> Option<Recurrence> {
        Recurrence::of(&self.definition.trigger, self.zone, self.state.anchor)
    }

    /// How many of its runs wait, and how many go on.
    pub(super) fn others(&self, runs: &dyn RunStates) -> Others {
        let mut others = Others::default();
        for is_waiting in self.runs.iter().filter_map(|run| runs.is_waiting(*run)) {
            if is_waiting {
                others.waiting += 1;
            } else {
                others.running += 1;
            }
        }
        others
    }

    /// Its runs that another one cancels, where its policy or what somebody asks for says so.
    pub(super) fn cancelled_for_another(&self, overlap: Option<Overlap>) -> Vec<RunId> {
        let overlap = overlap.unwrap_or(self.definition.policy.overlap);
        let runs = self.runs.iter().copied();
        runs.filter(|_| overlap == Overlap::CancelOther).collect()
    }
}

impl Scheduler {
    /// Has the state of a schedule in memory until nothing happens to it any more. Where it cannot be read that is
    /// tried again.
    pub(super) fn load(&mut self, context: &SchedulerContext<'_>, id: &str) {
        if self.resident.contains_key(id) {
            return;
        }
        let Some(active) = self.active.get(id) else {
            return;
        };
        match stored_state(context.store, id) {
            Ok(state) => {
                let (definition, zone) = (&active.definition, active.zone);
                let scheduled = ResidentSchedule::new(definition, zone, state);
                let id = Arc::clone(&definition.id);
                self.resident.insert(id, Box::new(scheduled));
            }
            Err(error) => {
                tracing::error!(schedule = id, why = error.message, "its slots wait");
                let again = context.now.plus_millis(TRY_AGAIN_MS);
                self.set_wake(id, Some(again));
            }
        }
    }

    /// Refuses what somebody asks for where the schedule is active and cannot be read.
    pub(super) fn refuse_unreadable(
        &mut self,
        context: &SchedulerContext<'_>,
        id: &str,
    ) -> Result<(), Diagnostic> {
        self.load(context, id);
        if self.active.contains_key(id) && !self.resident.contains_key(id) {
            return stored_state(context.store, id).map(drop);
        }
        Ok(())
    }

    /// The state of a schedule that is not active; `None`: nothing is known of it.
    pub(super) fn known_state(
        &self,
        context: &SchedulerContext<'_>,
        id: &str,
    ) -> Result<Option<Box<ScheduleState>>, Diagnostic> {
        match self.known.get(id) {
            Some(StoredSchedule::Held(state)) => Ok(Some(state.clone())),
            Some(StoredSchedule::Stored { .. }) => stored_state(context.store, id).map(Some),
            None => Ok(None),
        }
    }

    /// What the commands of notices are told of a schedule.
    pub(crate) fn told_of(&self, store: &dyn Store, id: &str) -> Option<OfSchedule> {
        let definition = Arc::clone(self.definition(id)?);
        let state = match self.resident.get(id) {
            Some(scheduled) => scheduled.state.clone(),
            None => stored_state(store, id)
                .inspect_err(|error| {
                    tracing::warn!(
                        schedule = id,
                        why = error.message,
                        "its state is not reported"
                    );
                })
                .ok()?,
        };
        let mut newest = None;
        let mut take = |row: Result<_, _>| {
            newest = row.ok();
            ControlFlow::Break(())
        };
        if let Err(error) = store.slots(id, None, &mut take) {
            tracing::warn!(schedule = id, %error, "the ledger cannot be read");
        }
        Some(OfSchedule {
            definition,
            succeeded_at: state.succeeded_at,
            pause: state.pause.map(|pause| *pause),
            newest,
        })
    }

    /// After the commit: states of schedules to which nothing more happens leave memory.
    pub(crate) fn evict(&mut self) {
        self.resident.retain(|_, scheduled| !scheduled.is_at_rest());
    }

    /// Whether so many schedules were looked at for the first time that it is worth to give memory back: much is left
    /// of that which is not needed any more. Says so once.
    pub(crate) fn has_seen_many(&mut self) -> bool {
        let all_are_seen = self.are_seen() && self.alarms.are_seen();
        all_are_seen && std::mem::take(&mut self.first_evaluations) >= EVALUATIONS_MANY
    }
}
