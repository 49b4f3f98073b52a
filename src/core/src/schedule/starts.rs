//! When the run of a slot starts: put off by its jitter, and never while nothing may run.

use sha2::{Digest, Sha256};

use super::blocked::Blocked;
use super::recurrence::Recurrence;
use crate::model::schedule::{Policy, ScheduleState};
use crate::model::{Timestamp, Zone};

/// How far the end of blocked hours and dates is looked for, in milliseconds: a year.
const BLOCKED_MS_MAX: u64 = 366 * 24 * 3_600_000;

/// How far one search for the end of blocked hours looks, in milliseconds.
const BLOCKED_STEP_MS: u64 = 24 * 3_600_000;

/// Most blocked stretches that are passed over; beyond, nothing is expected.
const BLOCKED_STEPS_MAX: usize = 400;

/// A schedule, as far as its slots are concerned.
#[derive(Debug, Clone, Copy)]
pub struct Watched<'a> {
    /// Its id, from which its jitter follows.
    pub id: &'a str,
    /// Its slots.
    pub slots: &'a Recurrence,
    /// Its policy.
    pub policy: &'a Policy,
    /// Its zone.
    pub zone: Zone,
}

/// Milliseconds by which a slot is put off: the same for it always.
pub fn jitter_ms(id: &str, slot: Timestamp, most: u64) -> u64 {
    if most == 0 {
        return 0;
    }
    let digest = Sha256::new()
        .chain_update(id.as_bytes())
        .chain_update(slot.millis().to_be_bytes())
        .finalize();
    let mut head = [0; 8];
    head.copy_from_slice(&digest[..8]);
    u64::from_be_bytes(head) % most.saturating_add(1)
}

/// The starts of one schedule's runs.
pub(super) struct Starts<'a> {
    id: &'a str,
    slots: &'a Recurrence,
    jitter_ms: u64,
    pub(super) blocked: Blocked<'a>,
}

impl<'a> Starts<'a> {
    pub(super) fn new(
        id: &'a str,
        slots: &'a Recurrence,
        policy: &'a Policy,
        zone: Zone,
    ) -> Starts<'a> {
        Starts {
            id,
            slots,
            jitter_ms: policy.jitter_ms,
            blocked: Blocked::new(policy, zone),
        }
    }

    /// When the run of a slot starts. One that is put off comes before the next slot, and not into blocked
    /// hours: it waits for their end. A slot that is itself blocked has no run; this is when that is told.
    pub(super) fn of(&self, slot: Timestamp) -> Timestamp {
        let most = self.slots.room_after(slot, self.jitter_ms);
        let start = slot.plus_millis(jitter_ms(self.id, slot, most));
        if start == slot || self.blocked.holds(slot) {
            return start;
        }
        self.free_from(start).unwrap_or(start)
    }

    /// How long a slot may wait for those before it, which were put off further.
    pub(super) fn queued_ms(&self) -> u64 {
        if self.slots.is_list() {
            self.jitter_ms
        } else {
            0
        }
    }

    /// The end of the blocked hours in which an instant lies; `None` where it is not blocked.
    pub(super) fn free_from(&self, at: Timestamp) -> Option<Timestamp> {
        self.blocked.until(at, at.plus_millis(BLOCKED_MS_MAX))
    }
}

/// The slot that has come and has no row yet, and when its run starts at the earliest; `None`: there is none, or
/// the schedule is paused.
pub fn undecided(
    watched: Watched<'_>,
    state: &ScheduleState,
    now: Timestamp,
) -> Option<(Timestamp, Timestamp)> {
    let policy = watched.policy;
    let is_over = policy.max_actions.is_some_and(|most| state.actions >= most);
    if is_over || state.pause.is_some() {
        return None;
    }
    let begun = policy.start.map(Timestamp::just_before);
    let since = begun.map_or(state.cursor, |begun| state.cursor.max(begun));
    let slot = next_that_counts(watched, since).filter(|slot| *slot <= now)?;
    let starts = Starts::new(watched.id, watched.slots, policy, watched.zone);
    Some((slot, starts.of(slot)))
}

/// When the next run of a schedule starts, as if every slot that has come were decided and no other run of it
/// went on; `None`: never, or too much of it is blocked to tell.
pub fn next_start(
    watched: Watched<'_>,
    state: &ScheduleState,
    now: Timestamp,
) -> Option<Timestamp> {
    let policy = watched.policy;
    if policy.max_actions.is_some_and(|most| state.actions >= most) {
        return None;
    }
    let starts = Starts::new(watched.id, watched.slots, policy, watched.zone);
    let begun = policy.start.map(Timestamp::just_before);
    let since = begun.map_or(state.cursor, |begun| state.cursor.max(begun));
    let put_off = watched
        .slots
        .last_at_or_before(now, since.plus_millis(1))
        .filter(|slot| starts.of(*slot) > now && !starts.blocked.holds(*slot))
        .filter(|slot| policy.end.is_none_or(|end| *slot <= end));
    let next = put_off.or_else(|| next_that_counts(watched, since.max(now)));
    next.map(|slot| starts.of(slot))
}

/// The first slot after an instant that is not blocked and not after the schedule's end.
pub(super) fn next_that_counts(watched: Watched<'_>, mut after: Timestamp) -> Option<Timestamp> {
    let blocked = Blocked::new(watched.policy, watched.zone);
    for _ in 0..BLOCKED_STEPS_MAX {
        let slot = watched.slots.next_after(after)?;
        if watched.policy.end.is_some_and(|end| slot > end) {
            return None;
        }
        match blocked.until(slot, slot.plus_millis(BLOCKED_STEP_MS)) {
            Some(free) => after = free.just_before(),
            None => return Some(slot),
        }
    }
    None
}

/// The slots of a schedule that are to run after an instant, in their order; what its policy leaves out is not among them.
pub struct Ahead<'a> {
    slots: Recurrence,
    policy: &'a Policy,
    zone: Zone,
    after: Timestamp,
    left: u64,
}

impl<'a> Ahead<'a> {
    /// Those of slots that a state has been left at.
    pub fn new(
        slots: Recurrence,
        policy: &'a Policy,
        zone: Zone,
        (actions, after): (u64, Timestamp),
    ) -> Ahead<'a> {
        let begun = policy.start.map(Timestamp::just_before);
        Ahead {
            slots,
            policy,
            zone,
            after: begun.map_or(after, |begun| after.max(begun)),
            left: policy
                .max_actions
                .map_or(u64::MAX, |most| most.saturating_sub(actions)),
        }
    }
}

impl Iterator for Ahead<'_> {
    type Item = Timestamp;

    fn next(&mut self) -> Option<Timestamp> {
        self.left = self.left.checked_sub(1)?;
        let watched = Watched {
            id: "",
            slots: &self.slots,
            policy: self.policy,
            zone: self.zone,
        };
        self.after = next_that_counts(watched, self.after)?;
        Some(self.after)
    }
}
