//! What is known of schedules, for those beside the loop's decisions.

use std::sync::Arc;

use chrono_tz::Tz;

use super::super::{Core, Turn};
use super::{Schedules, written};
use crate::model::schedule::{Schedule, ScheduleState};
use crate::schedule::Recurrence;

/// A schedule in force, as others of the loop see it.
pub(in crate::engine::core) struct InForce<'a> {
    /// Its definition.
    pub definition: &'a Arc<Schedule>,
    /// Its due times, where they follow from the clock.
    pub slots: Option<&'a Recurrence>,
    /// Its zone.
    pub zone: Tz,
    /// Its state; whoever changes it writes it in the same turn.
    pub state: &'a mut ScheduleState,
}

impl Schedules {
    /// Ids of those in force.
    pub(in crate::engine::core) fn ids(&self) -> impl Iterator<Item = &String> {
        self.in_force.keys()
    }

    /// A schedule in force.
    pub(in crate::engine::core) fn in_force(&mut self, id: &str) -> Option<InForce<'_>> {
        let one = self.in_force.get_mut(id)?;
        Some(InForce {
            definition: &one.definition,
            slots: one.recurrence.as_ref(),
            zone: one.zone,
            state: &mut one.state,
        })
    }
}

impl Core {
    /// Closes what is remembered of schedules without a definition. Not done while a definition has an error:
    /// after a restart nobody knows which schedules that hides, and one that comes back goes on where it was.
    pub(in crate::engine::core) fn close_absent_schedules(&mut self, turn: &mut Turn) {
        let now = self.clock.now();
        for (id, state) in &mut self.schedules.known {
            if state.closed.is_none() {
                state.closed = Some(now);
                state.open = None;
                turn.before.push(written(id, state));
            }
        }
    }
}
