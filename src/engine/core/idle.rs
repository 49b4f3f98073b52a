//! Which states of schedules are in memory: only those to which something happens. There may be very many
//! schedules, and hardly any is needed often; the store has what was committed of each.

use std::sync::Arc;

use chrono_tz::Tz;

use super::super::reading;
use super::super::remembered::{self, Remembered};
use super::Core;
use super::occurrences::Looking;
use super::schedules::{Scheduled, TRY_AGAIN_MS};
use crate::model::schedule::{Schedule, ScheduleState};
use crate::model::{Diagnostic, Timestamp};

/// What is held of a schedule in force to which nothing happens.
pub(super) struct Idle {
    pub(super) definition: Arc<Schedule>,
    pub(super) zone: Tz,
    /// When it is looked at again.
    pub(super) wake: Option<Timestamp>,
}

impl Core {
    /// Has the state of a schedule in memory until nothing happens to it any more. One that cannot be read stays
    /// idle and is tried again.
    pub(super) fn rouse(&mut self, id: &str) {
        let Some((id, _)) = self.schedules.idle.get_key_value(id) else {
            return;
        };
        let id = Arc::clone(id);
        match self.stored_state(&id) {
            Ok(state) => {
                if let Some(idle) = self.schedules.idle.remove(&id) {
                    let scheduled = Box::new(Scheduled {
                        definition: idle.definition,
                        zone: idle.zone,
                        state,
                        wake: idle.wake,
                        preparing: None,
                        runs: std::collections::BTreeSet::new(),
                        looking: Looking::default(),
                    });
                    self.schedules.in_hand.insert(id, scheduled);
                }
            }
            Err(error) => {
                tracing::error!(schedule = &*id, why = error.message, "its due times wait");
                let again = self.clock.now().plus_millis(TRY_AGAIN_MS);
                self.schedules.set_wake(&id, Some(again));
            }
        }
    }

    /// Refuses what somebody asks for where the schedule is in force and cannot be read.
    pub(super) fn refuse_unreadable(&mut self, id: &str) -> Result<(), Diagnostic> {
        self.rouse(id);
        if self.schedules.idle.contains_key(id) {
            return self.stored_state(id).map(drop);
        }
        Ok(())
    }

    pub(super) fn stored_state(&self, id: &str) -> Result<Box<ScheduleState>, Diagnostic> {
        let state = remembered::schedule(self.store.as_ref(), id);
        let state = state.map_err(|error| reading::unreadable(&error))?;
        state.ok_or_else(|| reading::missing(id))
    }

    /// The state of a schedule that is not in force; `None`: nothing is known of it.
    pub(super) fn known_state(&self, id: &str) -> Result<Option<Box<ScheduleState>>, Diagnostic> {
        match self.schedules.known.get(id) {
            Some(Remembered::Held(state)) => Ok(Some(state.clone())),
            Some(Remembered::Stored { .. }) => self.stored_state(id).map(Some),
            None => Ok(None),
        }
    }

    /// After the commit: states of schedules to which nothing more happens leave memory.
    pub(super) fn lull(&mut self) {
        let at_rest: Vec<Arc<str>> = self
            .schedules
            .in_hand
            .iter()
            .filter(|(_, scheduled)| scheduled.is_at_rest())
            .map(|(id, _)| Arc::clone(id))
            .collect();
        for id in at_rest {
            if let Some(scheduled) = self.schedules.in_hand.remove(&id) {
                #[cfg(test)]
                self.assert_stored(&id, &scheduled.state);
                let idle = Idle {
                    definition: scheduled.definition,
                    zone: scheduled.zone,
                    wake: scheduled.wake,
                };
                self.schedules.idle.insert(id, idle);
            }
        }
    }

    /// What leaves memory has been committed.
    #[cfg(test)]
    fn assert_stored(&self, id: &str, state: &ScheduleState) {
        let stored = self.stored_state(id).unwrap();
        assert_eq!(*stored, *state, "{id}");
    }
}
