//! From local times to instants: what fires where the clocks of a zone change.

use crate::model::Zone;

use super::matcher::Matcher;
use super::zone::{Change, EARLIEST, LATEST, REACH, change_within, offset, utc};
use crate::model::schedule::{Dst, Fold, Gap};

const DAY: i64 = 86_400;

/// The times of an expression on each of its days.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimesOfDay {
    /// The first, in seconds from midnight.
    pub(crate) first: i64,
    /// How many there are.
    pub(crate) count: u64,
}

/// The local times of an expression in a zone.
#[derive(Clone, Copy)]
pub(crate) struct Slots<'a> {
    pub(crate) matcher: &'a Matcher,
    pub(crate) zone: Zone,
    pub(crate) dst: Dst,
}

impl Slots<'_> {
    /// The first slot at or after `from`, in seconds since the epoch.
    ///
    /// Local time runs through between two changes of the clocks, so the next local time is the next slot
    /// unless a change lies near; the search then goes on behind the change.
    pub(crate) fn first_at_or_after(self, from: i64) -> Option<i64> {
        self.search(from).filter(|slot| *slot <= LATEST)
    }

    fn search(self, from: i64) -> Option<i64> {
        let mut from = from.max(EARLIEST);
        while from <= LATEST {
            if let Some(change) = change_within(self.zone, from - REACH, from) {
                if change.at == from && self.runs_after(change) {
                    return Some(from);
                }
                from = from.max(self.resumes(change));
            }
            let offset = offset(self.zone, from);
            let slot = self.local_at_or_after(from + offset)? - offset;
            let seen = slot.min(from + REACH);
            match change_within(self.zone, from, seen + REACH) {
                None if slot == seen => return Some(slot),
                // Between here and there no local time fires, whatever the clocks do meanwhile.
                None => from = slot - REACH,
                Some(change) if slot < self.pauses(change) => return Some(slot),
                Some(change) => from = self.resumes(change),
            }
        }
        None
    }

    /// How many slots lie in `from ..= until`; counts to `at_most` and stops.
    ///
    /// A day on which no clock changes has as many slots as any other, so it is counted at once.
    pub(crate) fn count(self, from: i64, until: i64, day: TimesOfDay, at_most: u64) -> u64 {
        let (mut count, mut from) = (0_u64, from);
        while count < at_most {
            let Some(slot) = self.first_at_or_after(from).filter(|slot| *slot <= until) else {
                break;
            };
            let whole = self
                .calm_day_from(slot, day.first)
                .filter(|end| *end <= until);
            count = count.saturating_add(if whole.is_some() { day.count } else { 1 });
            from = whole.unwrap_or(slot) + 1;
        }
        count.min(at_most)
    }

    /// The last second of the local day of `slot`, if that is its first and the whole day counts.
    fn calm_day_from(self, slot: i64, first: i64) -> Option<i64> {
        let local = slot + offset(self.zone, slot);
        if local.rem_euclid(DAY) != first {
            return None;
        }
        let (start, end) = (slot - first, slot - first + DAY - 1);
        let near = |from, until| change_within(self.zone, from, until);
        let begins = near(start - REACH, start).is_none_or(|change| self.resumes(change) <= start);
        let ends = near(end, end + REACH).is_none_or(|change| end < self.pauses(change));
        (begins && ends && near(start, end).is_none()).then_some(end)
    }

    /// Until when local times before `change` are slots.
    fn pauses(self, change: Change) -> i64 {
        if !change.is_gap() && self.dst.fold == Fold::Second {
            change.at - change.length()
        } else {
            change.at
        }
    }

    /// From when on local times after `change` are slots.
    fn resumes(self, change: Change) -> i64 {
        if !change.is_gap() && self.dst.fold == Fold::First {
            change.at + change.length()
        } else {
            change.at
        }
    }

    /// Whether `change` is a gap that swallowed a local time, which then fires right after it.
    fn runs_after(self, change: Change) -> bool {
        change.is_gap() && self.dst.gap == Gap::RunAfter && self.meets(change)
    }

    /// Whether a local time lies in what `change` skips or repeats.
    pub(crate) fn meets(self, change: Change) -> bool {
        self.local_at_or_after(change.local_start())
            .is_some_and(|local| local < change.local_end())
    }

    /// In local seconds, as if they were UTC.
    pub(crate) fn local_at_or_after(self, from: i64) -> Option<i64> {
        let found = self.matcher.first_at_or_after(utc(from))?;
        Some(found.and_utc().timestamp())
    }
}
