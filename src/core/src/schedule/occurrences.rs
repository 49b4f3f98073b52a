//! What makes a schedule due that does not follow the clock: each occurrence is a slot of its own, kept
//! until it has its row.

use super::recurrence::Recurrence;
use crate::model::schedule::{Occurrence, PENDING_MAX, ScheduleState, SlotRow, SlotStatus};
use crate::model::{RunId, Timestamp};

/// By how much occurrences may lie ahead of the clock, in milliseconds: more, and it was stepped back.
const STEP_MS: u64 = 1_000;

impl ScheduleState {
    /// Takes note of an occurrence; answers the row of one that had to make room.
    pub fn occurred(&mut self, at: Timestamp, after: Option<RunId>) -> Option<SlotRow> {
        let row = (self.pending.len() >= PENDING_MAX).then(|| {
            let oldest = self.pending.remove(0).at;
            let why = format!("more than {PENDING_MAX} waited");
            self.cover(SlotRow::one(oldest, SlotStatus::Missed, at).because(why))
        });
        if self.cursor > at.plus_millis(STEP_MS) || self.is_pending_after(at.plus_millis(STEP_MS)) {
            self.bring_forward(at);
        }
        let at = self.unused(at);
        self.pending.push(Occurrence { at, after });
        row
    }

    fn is_pending_after(&self, at: Timestamp) -> bool {
        self.pending.last().is_some_and(|last| last.at > at)
    }

    /// Takes in a row of something that happened and runs nothing; what waits keeps its turn.
    pub fn noted(&mut self, row: SlotRow) -> SlotRow {
        if self.pending.is_empty() {
            return self.cover(row);
        }
        let (cursor, pending) = (self.cursor, self.pending.clone());
        self.open = None;
        let row = self.cover(row);
        self.open = None;
        self.cursor = cursor;
        self.pending = pending;
        row
    }

    /// The first instant from `at` on that is no slot of it yet.
    pub fn unused(&self, at: Timestamp) -> Timestamp {
        let newest = self.pending.last().map_or(self.cursor, |last| last.at);
        at.max(newest.max(self.cursor).plus_millis(1))
    }

    /// Slots that wait for their row.
    pub fn occurrences(&self) -> Recurrence {
        Recurrence::instants(self.pending.iter().map(|one| one.at).collect())
    }

    /// The occurrence at this instant.
    pub fn occurrence(&self, at: Timestamp) -> Occurrence {
        let found = self.pending.iter().find(|one| one.at == at).copied();
        found.unwrap_or(Occurrence { at, after: None })
    }

    /// The definition has gone or was changed: what waits does not run.
    pub fn let_go(&mut self, now: Timestamp, why: &str) -> Vec<SlotRow> {
        let waiting = std::mem::take(&mut self.pending);
        let row = |one: Occurrence| {
            let row = SlotRow::one(one.at, SlotStatus::BlockedConfig, now);
            self.cover(row.because(why))
        };
        waiting.into_iter().map(row).collect()
    }

    /// The clock was stepped back: what waits is due now, and what has a row keeps it.
    pub fn bring_forward(&mut self, now: Timestamp) {
        let mut at = now.just_before();
        self.cursor = at;
        self.open = None;
        for one in &mut self.pending {
            at = at.plus_millis(1);
            one.at = at;
        }
    }
}
