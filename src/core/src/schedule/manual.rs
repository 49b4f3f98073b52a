//! Runs that a person asks for: now, or for a past slot.

use super::blocked::Blocked;
use super::recurrence::Recurrence;
use super::settle::{COUNT_MAX, Others};
use crate::model::schedule::{Overlap, Policy, ScheduleState, SlotRow, SlotStatus};
use crate::model::{RunId, Timestamp, Zone};

/// Why a person's run does not start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManualRefused {
    /// The schedule is paused.
    #[error("the schedule is paused: {0}")]
    Paused(String),
    /// The instant lies in hours or dates in which nothing is due.
    #[error("it is in blocked hours or dates")]
    Blackout,
    /// The schedule begins later.
    #[error("the schedule begins later")]
    NotBegun,
    /// The schedule has ended.
    #[error("the schedule has ended")]
    Ended,
    /// It has led to as many runs as it may.
    #[error("it has reached its limit of {0} runs")]
    UsedUp(u64),
    /// An earlier run of the schedule has not ended.
    #[error("an earlier run of the schedule has not ended")]
    Overlap,
    /// The slot has run.
    #[error("{0} ran for it")]
    HasRun(RunId),
    /// It is no slot of the schedule.
    #[error("the schedule is not due then")]
    NoDueTime,
    /// It is not past, or its status is not decided yet.
    #[error("its status is not decided yet")]
    NotDecided,
    /// Its row tells of slots of another definition.
    #[error("the schedule had another definition then, and its history already covers that time")]
    OtherDefinition,
    /// Its row is no longer kept, so whether it ran cannot be told.
    #[error("the history of that time was deleted, so it is unknown whether it ran")]
    NotKept,
}

/// Which policies a person's run does not respect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each stands for one policy, and any of them may be set"
)]
pub struct Overrides {
    /// The schedule is paused.
    pub pause: bool,
    /// Blocked hours and dates.
    pub blackout: bool,
    /// The schedule's start.
    pub start: bool,
    /// The schedule's end.
    pub end: bool,
    /// How often it may run.
    pub max_actions: bool,
}

/// Whether a run for `slot` that a person asks for may start.
///
/// # Errors
/// Names the first policy that speaks against it.
pub fn permitted(
    policy: &Policy,
    state: &ScheduleState,
    (slot, zone): (Timestamp, Zone),
    overrides: Overrides,
) -> Result<(), ManualRefused> {
    if let Some(pause) = state.pause.as_ref().filter(|_| !overrides.pause) {
        return Err(ManualRefused::Paused(pause.reason.clone()));
    }
    if !overrides.blackout && Blocked::new(policy, zone).until(slot, slot).is_some() {
        return Err(ManualRefused::Blackout);
    }
    if !overrides.start && policy.start.is_some_and(|start| slot < start) {
        return Err(ManualRefused::NotBegun);
    }
    if !overrides.end && policy.end.is_some_and(|end| slot > end) {
        return Err(ManualRefused::Ended);
    }
    match policy.max_actions {
        Some(most) if !overrides.max_actions && state.actions >= most => {
            Err(ManualRefused::UsedUp(most))
        }
        _ => Ok(()),
    }
}

/// Whether a run that a person asks for now finds others in its way.
///
/// # Errors
/// Another run of the schedule has not ended, and `overlap` leaves no place beside or behind it.
pub fn finds_room(overlap: Overlap, others: Others) -> Result<(), ManualRefused> {
    let refused = match overlap {
        Overlap::Skip => others.running + others.waiting > 0,
        Overlap::BufferOne => others.waiting > 0,
        Overlap::BufferAll | Overlap::CancelOther | Overlap::AllowAll => false,
    };
    if refused {
        return Err(ManualRefused::Overlap);
    }
    Ok(())
}

/// The part of a row before an instant, or after it, with its slots counted.
fn part(slots: &Recurrence, row: &SlotRow, from: Timestamp, to: Timestamp) -> SlotRow {
    let count = slots.count_between(from.just_before(), to, COUNT_MAX + 1);
    SlotRow {
        from,
        to,
        count: (count <= COUNT_MAX).then_some(count),
        ..row.clone()
    }
}

impl ScheduleState {
    /// A run that a person asked for now: a slot of its own.
    pub fn triggered(&mut self, slot: Timestamp, run: RunId, at: Timestamp) -> SlotRow {
        // What is due and not decided yet keeps its turn.
        let cursor = self.cursor;
        let pending = self.pending.clone();
        let ahead = self.ran_ahead.clone();
        let row = self.fired(slot, SlotStatus::Ran, run, at);
        self.cursor = cursor;
        self.pending = pending;
        self.ran_ahead = ahead;
        row
    }

    /// A slot that is past leads to its run after all. `row` is the stored row that covers it, if any;
    /// answers the rows to be stored in its place.
    ///
    /// # Errors
    /// It has run, is no slot, or what became of it is not known.
    pub fn backfilled(
        &mut self,
        slots: &Recurrence,
        row: Option<SlotRow>,
        slot: Timestamp,
        (run, at): (RunId, Timestamp),
    ) -> Result<Vec<SlotRow>, ManualRefused> {
        if slots.last_at_or_before(slot, slot).is_none() {
            return Err(ManualRefused::NoDueTime);
        }
        if self.trimmed_until.is_some_and(|until| slot <= until) {
            return Err(ManualRefused::NotKept);
        }
        if slot > self.cursor {
            return Err(ManualRefused::NotDecided);
        }
        if let Some(ran) = row.as_ref().and_then(|row| row.run) {
            return Err(ManualRefused::HasRun(ran));
        }
        if row.as_ref().is_some_and(|row| row.from <= self.anchor) {
            return Err(ManualRefused::OtherDefinition);
        }
        let mut rows = vec![SlotRow {
            run: Some(run),
            ..SlotRow::one(slot, SlotStatus::Backfilled, at)
        }];
        if let Some(row) = row {
            rows.extend(self.divided(slots, &row, slot));
        } else {
            self.rows = self.rows.saturating_add(1);
        }
        let total = self.totals.entry(SlotStatus::Backfilled).or_default();
        *total = total.saturating_add(1);
        self.has_led_to(slot, run);
        Ok(rows)
    }

    /// What is left of a row without one of its slots.
    fn divided(&mut self, slots: &Recurrence, row: &SlotRow, slot: Timestamp) -> Vec<SlotRow> {
        let before = slots.last_at_or_before(slot.just_before(), row.from);
        let after = slots.next_after(slot).filter(|after| *after <= row.to);
        let before = before.map(|to| part(slots, row, row.from, to));
        let after = after.map(|from| part(slots, row, from, row.to));
        let left = before.iter().chain(&after).filter_map(|part| part.count);
        let left: u64 = left.sum();
        self.uncount(
            row.status,
            row.count.map(|count| count.saturating_sub(left)),
        );
        let pieces = u64::from(before.is_some()) + u64::from(after.is_some());
        self.rows = self.rows.saturating_add(pieces);
        if self.open.as_ref().is_some_and(|open| open.from == row.from) {
            self.open = after.clone().map(Box::new);
        }
        before.into_iter().chain(after).collect()
    }
}
