//! Which states of schedules are in memory: only those to which something happens. There may be very many
//! schedules, and hardly any is needed often; the store has what was committed of each.

use std::sync::Arc;

use super::super::reading;
use super::super::stored_schedules::{self, StoredSchedule};
use super::Core;
use super::alarm::Outlook;
use super::schedules::{ResidentSchedule, TRY_AGAIN_MS};
use crate::model::schedule::{Schedule, ScheduleState};
use crate::model::{Diagnostic, Timestamp, Zone};

/// So many first looks are worth to have memory given back.
const EVALUATIONS_MANY: usize = 1_000;

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

impl Core {
    /// Has the state of a schedule in memory until nothing happens to it any more. Where it cannot be read that is
    /// tried again.
    pub(super) fn load(&mut self, id: &str) {
        if self.schedules.resident.contains_key(id) {
            return;
        }
        let Some(active) = self.schedules.active.get(id) else {
            return;
        };
        match self.stored_state(id) {
            Ok(state) => {
                let (definition, zone) = (&active.definition, active.zone);
                let scheduled = ResidentSchedule::new(definition, zone, state);
                let id = Arc::clone(&definition.id);
                self.schedules.resident.insert(id, Box::new(scheduled));
            }
            Err(error) => {
                tracing::error!(schedule = id, why = error.message, "its slots wait");
                let again = self.clock.now().plus_millis(TRY_AGAIN_MS);
                self.schedules.set_wake(id, Some(again));
            }
        }
    }

    /// Refuses what somebody asks for where the schedule is active and cannot be read.
    pub(super) fn refuse_unreadable(&mut self, id: &str) -> Result<(), Diagnostic> {
        self.load(id);
        let schedules = &self.schedules;
        if schedules.active.contains_key(id) && !schedules.resident.contains_key(id) {
            return self.stored_state(id).map(drop);
        }
        Ok(())
    }

    pub(super) fn stored_state(&self, id: &str) -> Result<Box<ScheduleState>, Diagnostic> {
        let state = stored_schedules::schedule(self.store.as_ref(), id);
        let state = state.map_err(|error| reading::unreadable(&error))?;
        state.ok_or_else(|| reading::missing(id))
    }

    /// The state of a schedule that is not active; `None`: nothing is known of it.
    pub(super) fn known_state(&self, id: &str) -> Result<Option<Box<ScheduleState>>, Diagnostic> {
        match self.schedules.known.get(id) {
            Some(StoredSchedule::Held(state)) => Ok(Some(state.clone())),
            Some(StoredSchedule::Stored { .. }) => self.stored_state(id).map(Some),
            None => Ok(None),
        }
    }

    /// After the commit: states of schedules to which nothing more happens leave memory.
    pub(super) fn evict(&mut self) {
        #[cfg(test)]
        for (id, scheduled) in &self.schedules.resident {
            self.assert_stored(id, &scheduled.state);
        }
        let resident = &mut self.schedules.resident;
        resident.retain(|_, scheduled| !scheduled.is_at_rest());
    }

    /// Looking at very many schedules leaves much behind that is not needed any more.
    pub(super) fn give_back_memory(&mut self) {
        let all_are_seen = self.schedules.are_seen() && self.alarms.are_seen();
        if all_are_seen && std::mem::take(&mut self.schedules.first_evaluations) >= EVALUATIONS_MANY
        {
            self.pool.give_back_memory();
        }
    }

    /// What may leave memory has been committed.
    #[cfg(test)]
    fn assert_stored(&self, id: &str, state: &ScheduleState) {
        let stored = self.stored_state(id).unwrap();
        assert_eq!(*stored, *state, "{id}");
    }
}
