//! What is noticed of a schedule besides its slots: that it does not succeed, that its state was damaged.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::Timestamp;

/// How the reason ends of a pause that a schedule made itself.
pub const FAILURES_IN_A_ROW: &str = " failures in a row";

/// An episode in which a schedule has not succeeded in time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missed {
    /// By when it was to have succeeded.
    pub expected_by: Timestamp,
    /// When a daemon noticed that it had not.
    pub at: Timestamp,
}

/// A state was damaged, and made anew of the schedule's rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Restored {
    /// When.
    pub at: Timestamp,
    /// What was wrong with it, and what is not known any more.
    pub reason: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::RunId;
    use crate::model::schedule::{
        Occurrence, PENDING_MAX, Pause, REASON_BYTES_MAX, ScheduleState, SlotRow, SlotStatus, cut,
    };

    /// A state is one record of at most 4,096 bytes.
    #[test]
    fn a_state_with_all_that_it_may_hold_is_small() {
        let at = Timestamp::from_millis(1_800_000_000_000);
        let mut state = ScheduleState::new("0".repeat(64), at);
        let reason = cut(&"\"".repeat(REASON_BYTES_MAX), REASON_BYTES_MAX).to_owned();
        state.pause = Some(Box::new(Pause {
            reason: reason.clone(),
            by: "x".repeat(128),
            at,
        }));
        let row = SlotRow::one(at, SlotStatus::SkippedOverlap, at);
        state.open = Some(Box::new(row.because(reason)));
        state.totals = SlotStatus::ALL.map(|status| (status, 1_000_000)).into();
        let run = Some(RunId::following(None, at, 1));
        state.pending = vec![Occurrence { at, after: run }; PENDING_MAX];
        state.seen = Some("0".repeat(64));
        state.trimmed_until = Some(at);
        state.closed = Some(at);
        state.last = Some((at, RunId::following(None, at, 1)));
        state.succeeded_at = Some(at);
        state.resumed_at = Some(at);
        let text = Some("x".repeat(240));
        state.missed = Some(Box::new(Missed {
            expected_by: at,
            at,
        }));
        state.restored = text.map(|reason| Box::new(Restored { at, reason }));
        let length = serde_json::to_string(&state).unwrap().len();
        assert!(length < 4_000, "{length}");
    }
}
