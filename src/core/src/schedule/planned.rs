//! A schedule whose future is computed: its definition, and its stored state.

use super::recurrence::Recurrence;
use crate::model::schedule::{Pause, Policy, ScheduleState, Trigger};
use crate::model::{Timestamp, Zone};

/// A schedule as far as its future is concerned.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// Its id.
    pub id: String,
    /// What it runs: `worker/skill`.
    pub skill: String,
    /// What makes it due.
    pub trigger: Trigger,
    /// What becomes of its slots.
    pub policy: Policy,
    /// The zone of its slots.
    pub zone: Zone,
    /// The origin of `every`.
    pub anchor: Timestamp,
    /// How many runs it has led to.
    pub actions: u64,
    /// Why nothing of it runs.
    pub pause: Option<Pause>,
    /// Why its skill cannot run, so that no slot runs.
    pub blocked: Option<String>,
}

impl Planned {
    /// Its slots; `None` where an event makes it due.
    pub fn recurrence(&self) -> Option<Recurrence> {
        Recurrence::of(&self.trigger, self.zone, self.anchor)
    }

    /// What is remembered of it, as if everything until `cursor` were decided and nothing ran.
    pub(super) fn state(&self, cursor: Timestamp) -> ScheduleState {
        ScheduleState {
            anchor: self.anchor,
            actions: self.actions,
            pause: self.pause.clone().map(Box::new),
            ..ScheduleState::new(String::new(), cursor)
        }
    }
}
