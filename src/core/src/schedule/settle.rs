//! What becomes of slots: which run now, which do not and why, and when to look again.
//!
//! [`decide`] is pure: it is given the time and told what else of the schedule runs. It covers slots in
//! their order, each once: whoever calls it writes the rows, the new state and the run in one commit.

use super::recurrence::Recurrence;
use super::starts::Starts;
use crate::model::schedule::{CatchUpMode, Overlap, Policy, ScheduleState, SlotRow, SlotStatus};
use crate::model::{Timestamp, Zone};

/// How much later than its slot a run may start and still count as in time, in milliseconds. The loop
/// looks at the wall clock every 30 s at least.
pub const LATE_AFTER_MS: u64 = 60_000;

/// Most rows of one decision; what is left is decided in the next.
pub const ROWS_MAX: usize = 64;

/// Slots are counted up to here; a longer row is without a count.
pub const COUNT_MAX: u64 = 100_000;

/// Why a slot was missed that another one stands in for.
pub const OVERTAKEN: &str = "a later slot took its place";

/// Runs of the schedule that have not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Others {
    /// Under way.
    pub running: usize,
    /// Waiting for their turn.
    pub waiting: usize,
}

impl Others {
    fn any(self) -> bool {
        self.running + self.waiting > 0
    }
}

/// The present, as far as a schedule is concerned.
#[derive(Debug, Clone, Copy)]
pub struct Moment<'a> {
    /// The wall clock.
    pub now: Timestamp,
    /// The schedule's zone.
    pub zone: Zone,
    /// Since when the engine watches slots: earlier ones were missed while the daemon was down.
    pub there_since: Timestamp,
    /// The schedule's id.
    pub id: &'a str,
    /// What else of it has not ended.
    pub others: Others,
}

/// What follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Nothing before this instant; absent: nothing ever.
    Wait(Option<Timestamp>),
    /// Nothing before another run of the schedule has ended, or this instant.
    Hold(Timestamp),
    /// There is more to decide at once.
    Again,
    /// A slot is to run now.
    Fire {
        /// The slot.
        slot: Timestamp,
        /// `ran` or `caught_up`.
        status: SlotStatus,
    },
}

/// What [`decide`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Slots that do not run, in their order; the first may go on the state's open row.
    pub rows: Vec<SlotRow>,
    /// Every slot up to here has its row once these are written.
    pub cursor: Timestamp,
    /// What follows.
    pub next: Next,
}

/// Decides about the slots after the state's cursor, in their order.
pub fn decide(
    slots: &Recurrence,
    policy: &Policy,
    state: &ScheduleState,
    moment: Moment<'_>,
) -> Decision {
    let mut walk = SlotWalk {
        slots,
        policy,
        state,
        starts: Starts::new(moment.id, slots, policy, moment.zone),
        moment,
        rows: Vec::new(),
        cursor: state.cursor,
    };
    let next = walk.until_something_follows();
    Decision {
        rows: walk.rows,
        cursor: walk.cursor,
        next,
    }
}

/// Decides, and takes into the state what was decided; answers the rows as they are to be stored.
pub fn settle(
    slots: &Recurrence,
    policy: &Policy,
    state: &mut ScheduleState,
    moment: Moment<'_>,
) -> (Vec<SlotRow>, Next) {
    let decision = decide(slots, policy, state, moment);
    let mut rows: Vec<SlotRow> = Vec::with_capacity(decision.rows.len());
    for row in decision.rows {
        let row = state.cover(row);
        // One that has grown stands there once.
        rows.pop_if(|last| last.from == row.from);
        rows.push(row);
    }
    state.advance(decision.cursor);
    (rows, decision.next)
}

struct SlotWalk<'a> {
    slots: &'a Recurrence,
    policy: &'a Policy,
    state: &'a ScheduleState,
    starts: Starts<'a>,
    moment: Moment<'a>,
    rows: Vec<SlotRow>,
    cursor: Timestamp,
}

impl SlotWalk<'_> {
    fn until_something_follows(&mut self) -> Next {
        loop {
            if self.rows.len() >= ROWS_MAX {
                return Next::Again;
            }
            if let Some(next) = self.step() {
                return next;
            }
        }
    }

    /// Decides about the next slot, or a stretch of them; `None`: there may be more.
    fn step(&mut self) -> Option<Next> {
        let now = self.moment.now;
        let Some(slot) = self.next_slot() else {
            // What its policy leaves out is no slot, whatever that says later.
            if self
                .slots
                .next_after(self.cursor)
                .is_some_and(|passed| passed <= now)
            {
                self.cursor = now;
            }
            return Some(Next::Wait(None));
        };
        let start = self.starts.of(slot);
        if start > now {
            return Some(Next::Wait(Some(start)));
        }
        if self.has_run(slot) {
            self.cursor = slot;
            return None;
        }
        if let Some(pause) = &self.state.pause {
            self.cover(slot, now, SlotStatus::Paused, Some(pause.reason.clone()));
            return None;
        }
        if let Some(until) = self.starts.blocked.until(slot, now) {
            self.cover(slot, until.just_before(), SlotStatus::BlockedHours, None);
            return None;
        }
        if self.is_late(slot) {
            return self.late(slot);
        }
        self.in_time(slot)
    }

    /// The next slot that counts; those before the schedule's start and after its end do not.
    fn next_slot(&self) -> Option<Timestamp> {
        if self
            .policy
            .max_actions
            .is_some_and(|most| self.state.actions >= most)
        {
            return None;
        }
        let after = match self.policy.start {
            Some(start) => self.cursor.max(start.just_before()),
            None => self.cursor,
        };
        let slot = self.slots.next_after(after)?;
        (self.policy.end.is_none_or(|end| slot <= end)).then_some(slot)
    }

    /// Whether the clock was stepped back over a run of this slot.
    fn has_run(&self, slot: Timestamp) -> bool {
        self.state.ran_ahead.binary_search(&slot).is_ok()
    }

    /// Whether it comes later than a run on time may start.
    fn is_overdue(&self, slot: Timestamp) -> bool {
        let late_after = LATE_AFTER_MS.saturating_add(self.starts.queued_ms());
        self.moment.now.millis_since(self.starts.of(slot)) > late_after
    }

    fn is_late(&self, slot: Timestamp) -> bool {
        if self.is_overdue(slot) {
            return true;
        }
        let start = self.starts.of(slot);
        // Of several that came while no daemon ran no more than one is still in time.
        start < self.moment.there_since
            && match self.policy.catch_up.mode {
                CatchUpMode::All => self.is_within_window(slot),
                CatchUpMode::Last | CatchUpMode::None => {
                    self.newest_unblocked().is_some_and(|newest| slot < newest)
                }
            }
    }

    /// What was missed does not start in blocked hours either: they are waited for.
    fn when_free(&self) -> Option<Next> {
        let free = self.starts.free_from(self.moment.now)?;
        Some(Next::Wait(Some(free)))
    }

    fn is_within_window(&self, slot: Timestamp) -> bool {
        self.moment.now.millis_since(slot) <= self.policy.catch_up.window_ms
    }

    fn in_time(&mut self, slot: Timestamp) -> Option<Next> {
        let others = self.moment.others;
        let skipped = match self.policy.overlap {
            Overlap::Skip => others.any(),
            Overlap::BufferOne => others.waiting > 0,
            Overlap::BufferAll | Overlap::CancelOther | Overlap::AllowAll => false,
        };
        if skipped {
            self.cover(slot, slot, SlotStatus::SkippedOverlap, None);
            return None;
        }
        let status = SlotStatus::Ran;
        Some(Next::Fire { slot, status })
    }

    /// Nobody was there when it was due.
    fn late(&mut self, slot: Timestamp) -> Option<Next> {
        let stretch = self.late_stretch(slot);
        match self.policy.catch_up.mode {
            CatchUpMode::None => self.cover(slot, stretch, SlotStatus::Missed, None),
            CatchUpMode::All => return self.catch_up_all(slot, stretch),
            CatchUpMode::Last => return self.catch_up_last(slot, stretch),
        }
        None
    }

    fn catch_up_all(&mut self, slot: Timestamp, stretch: Timestamp) -> Option<Next> {
        if !self.is_within_window(slot) {
            let border = self.window_begins();
            self.cover(
                slot,
                stretch.min(border.just_before()),
                SlotStatus::Missed,
                None,
            );
            return None;
        }
        let one_by_one = matches!(self.policy.overlap, Overlap::Skip | Overlap::BufferOne);
        if one_by_one && self.moment.others.any() {
            let until = slot.plus_millis(self.policy.catch_up.window_ms.saturating_add(1));
            return Some(Next::Hold(until));
        }
        let status = if self.is_overdue(slot) {
            SlotStatus::CaughtUp
        } else {
            SlotStatus::Ran
        };
        self.when_free().or(Some(Next::Fire { slot, status }))
    }

    fn catch_up_last(&mut self, slot: Timestamp, stretch: Timestamp) -> Option<Next> {
        let newest = self.newest_unblocked().unwrap_or(slot);
        if slot < newest {
            let until = stretch.min(newest.just_before());
            if self.is_within_window(slot) {
                let why = Some(OVERTAKEN.to_owned());
                self.cover(slot, until, SlotStatus::Missed, why);
            } else {
                let until = until.min(self.window_begins().just_before());
                self.cover(slot, until, SlotStatus::Missed, None);
            }
            return None;
        }
        if !self.is_within_window(slot) {
            self.cover(slot, slot, SlotStatus::Missed, None);
            return None;
        }
        if let Some(later) = self.when_free() {
            return Some(later);
        }
        match self.in_time(slot) {
            Some(Next::Fire { slot, .. }) => Some(Next::Fire {
                slot,
                status: SlotStatus::CaughtUp,
            }),
            other => other,
        }
    }

    fn window_begins(&self) -> Timestamp {
        let window = i64::try_from(self.policy.catch_up.window_ms).unwrap_or(i64::MAX);
        Timestamp::from_millis(self.moment.now.millis().saturating_sub(window))
    }

    /// The last instant up to which slots from `slot` on are late and not blocked.
    fn late_stretch(&self, slot: Timestamp) -> Timestamp {
        let before = |at: Timestamp, ms: u64| at.minus_millis(ms.saturating_add(1));
        let jitter = self.policy.jitter_ms;
        let by_age = before(self.moment.now, LATE_AFTER_MS.saturating_add(jitter));
        let unseen = before(self.moment.there_since, jitter);
        let newest = || self.newest_unblocked().map(Timestamp::just_before);
        let by_absence = (unseen > by_age).then(|| newest().unwrap_or(by_age).min(unseen));
        // A slot that is put off may be late or not; it is looked at alone.
        let late = by_absence.unwrap_or(by_age).max(by_age).max(slot);
        // Whatever is put off into blocked hours starts at their end, and is late after that.
        match self.starts.blocked.next_from(slot, late) {
            Some(blocked) => blocked
                .minus_millis(self.policy.jitter_ms.saturating_add(1))
                .max(slot),
            None => late,
        }
    }

    /// The newest slot that has come and is not blocked.
    fn newest_unblocked(&self) -> Option<Timestamp> {
        let now = self.moment.now;
        let mut until = self.policy.end.map_or(now, |end| end.min(now));
        loop {
            let slot = self
                .slots
                .last_at_or_before(until, self.cursor.plus_millis(1))?;
            if self.has_run(slot) || self.starts.of(slot) > now {
                until = slot.just_before();
                continue;
            }
            match self.starts.blocked.since(slot, self.cursor) {
                Some(since) => until = since.just_before(),
                None => return Some(slot),
            }
        }
    }

    /// Gives every slot from `slot` to `until` one status, up to one that has run already.
    fn cover(
        &mut self,
        slot: Timestamp,
        until: Timestamp,
        status: SlotStatus,
        reason: Option<String>,
    ) {
        let ran = &self.state.ran_ahead;
        let ahead = ran.get(ran.partition_point(|ran| *ran <= slot));
        let until = ahead.map_or(until, |ran| until.min(ran.just_before()));
        let until = self.policy.end.map_or(until, |end| until.min(end));
        let to = self
            .slots
            .last_at_or_before(until, slot)
            .unwrap_or(slot)
            .max(slot);
        let count = if to == slot {
            1
        } else {
            self.slots
                .count_between(slot.just_before(), to, COUNT_MAX + 1)
        };
        self.rows.push(SlotRow {
            to,
            count: (count <= COUNT_MAX).then_some(count),
            reason,
            ..SlotRow::one(slot, status, self.moment.now)
        });
        self.cursor = to;
    }
}
