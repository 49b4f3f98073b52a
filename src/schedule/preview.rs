//! The next runs of a schedule, as if each ended at once.

use super::due::{Moment, Next, Others, settle};
use super::planned::Planned;
use crate::model::schedule::{Fate, SlotRow};
use crate::model::{RunId, Timestamp};

/// Most runs of one preview.
pub const FIRES_MAX: usize = 10_000;

/// Most decisions of one preview: a schedule whose due times are all blocked comes to an end too.
const STEPS_MAX: usize = 200_000;

/// A due time that is to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fire {
    /// The due time.
    pub due: Timestamp,
    /// When its run starts: later by its jitter.
    pub starts: Timestamp,
}

/// What a schedule does next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preview {
    /// Its next runs.
    pub fires: Vec<Fire>,
    /// Due times among them that do not run, in stretches of one fate.
    pub left_out: Vec<SlotRow>,
    /// Whether nothing is due behind the last of them.
    pub ends: bool,
}

/// The next `most` runs of due times after `after`; a pause is taken for ended. Empty where an event makes it due.
pub fn preview(planned: &Planned, after: Timestamp, most: usize) -> Preview {
    let mut found = Preview::default();
    let Some(slots) = planned.recurrence() else {
        return found;
    };
    let mut state = planned.state(after);
    state.pause = None;
    let mut now = after;
    for _ in 0..STEPS_MAX {
        if found.fires.len() >= most.min(FIRES_MAX) {
            return found;
        }
        let moment = Moment {
            now,
            zone: planned.zone,
            id: &planned.id,
            others: Others::default(),
        };
        let (rows, next) = settle(&slots, &planned.policy, &mut state, moment);
        for row in rows {
            found.left_out.pop_if(|last| last.from == row.from);
            found.left_out.push(row);
        }
        match next {
            Next::Wait(Some(later)) => now = later,
            Next::Hold(later) => now = later,
            Next::Again => {}
            Next::Fire { slot, .. } => {
                found.fires.push(Fire {
                    due: slot,
                    starts: now,
                });
                state.fired(slot, Fate::Ran, RunId::from_bytes([0; 16]), now);
            }
            Next::Wait(None) => {
                found.ends = true;
                return found;
            }
        }
    }
    found
}
