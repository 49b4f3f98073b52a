//! What became of slots, counted by hours and days, and what is asked of that.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::stats::Bucket;
use crate::model::schedule::SlotStatus;
use crate::model::{Outcome, Timestamp};

/// How long one entry of the kept counts is, in milliseconds: borders of hours and days lie on half hours of UTC in
/// nearly every zone.
pub const HALF_HOUR_MS: i64 = 30 * 60_000;

/// How many statuses and outcomes there are. Stored counts have their order, so that new ones go to the end.
const FATES: usize = SlotStatus::ALL.len();
const OUTCOMES: usize = Outcome::NAMES.len();

/// How many slots had which status, and how many of their runs ended with which outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SlotCounts {
    statuses: [u32; FATES],
    outcomes: [u32; OUTCOMES],
}

impl SlotCounts {
    /// So many slots of one status.
    pub fn of_status(status: SlotStatus, count: u32) -> SlotCounts {
        let mut counts = SlotCounts::default();
        let at = SlotStatus::ALL.iter().position(|one| *one == status);
        if let Some(kept) = at.and_then(|at| counts.statuses.get_mut(at)) {
            *kept = count;
        }
        counts
    }

    /// One run that ended so.
    pub fn of_outcome(name: &str) -> SlotCounts {
        let mut counts = SlotCounts::default();
        let at = Outcome::NAMES.iter().position(|one| *one == name);
        if let Some(kept) = at.and_then(|at| counts.outcomes.get_mut(at)) {
            *kept = 1;
        }
        counts
    }

    /// As they are kept: statuses and outcomes, in their order.
    pub fn lists(&self) -> [&[u32]; 2] {
        [&self.statuses, &self.outcomes]
    }

    /// Reads [`SlotCounts::lists`], cut or not; what a later version counts besides is passed over.
    pub fn of_lists([statuses, outcomes]: [&[u32]; 2]) -> SlotCounts {
        let mut counts = SlotCounts::default();
        let own = counts.statuses.iter_mut().zip(statuses);
        let own = own.chain(counts.outcomes.iter_mut().zip(outcomes));
        own.for_each(|(own, kept)| *own = *kept);
        counts
    }

    /// How many slots had this status.
    pub fn with_status(&self, status: SlotStatus) -> u32 {
        let mut all = SlotStatus::ALL.into_iter().zip(self.statuses);
        all.find(|(one, _)| *one == status)
            .map_or(0, |(_, count)| count)
    }

    /// Adds others.
    pub fn add(&mut self, other: &SlotCounts) {
        self.combine(other, u32::saturating_add);
    }

    /// Takes back what was added.
    pub fn take_back(&mut self, other: &SlotCounts) {
        self.combine(other, u32::saturating_sub);
    }

    fn combine(&mut self, other: &SlotCounts, by: fn(u32, u32) -> u32) {
        for (own, other) in self.statuses.iter_mut().zip(other.statuses) {
            *own = by(*own, other);
        }
        for (own, other) in self.outcomes.iter_mut().zip(other.outcomes) {
            *own = by(*own, other);
        }
    }

    /// Whether nothing is counted.
    pub fn is_empty(&self) -> bool {
        *self == SlotCounts::default()
    }

    /// Slots by their status.
    pub fn statuses(&self) -> BTreeMap<SlotStatus, u32> {
        let all = SlotStatus::ALL.into_iter().zip(self.statuses);
        all.filter(|(_, count)| *count > 0).collect()
    }

    /// Ended runs by the names of their outcomes.
    pub fn outcomes(&self) -> BTreeMap<String, u32> {
        let all = Outcome::NAMES.into_iter().zip(self.outcomes);
        let some = all.filter(|(_, count)| *count > 0);
        some.map(|(name, count)| (name.to_owned(), count)).collect()
    }

    /// The worst of what is counted: a status or an outcome; `due` where nothing is.
    fn worst(&self) -> &'static str {
        const WORST_FIRST: [&str; 12] = [
            "failed",
            "timed_out",
            "unknown",
            "blocked_config",
            "missed",
            "denied",
            "cancelled",
            "skipped_overlap",
            "paused",
            "ran",
            "succeeded",
            "blocked_hours",
        ];
        let ended: u64 = self.outcomes.into_iter().map(u64::from).sum();
        let mut led_to_runs = 0;
        let mut present = Vec::new();
        for (status, count) in SlotStatus::ALL.into_iter().zip(self.statuses) {
            if status.is_run() {
                led_to_runs += u64::from(count);
            } else if count > 0 {
                present.push(status.name());
            }
        }
        let outcomes = Outcome::NAMES.into_iter().zip(self.outcomes);
        present.extend(
            outcomes
                .filter(|(_, count)| *count > 0)
                .map(|(name, _)| name),
        );
        // It goes on, or how it ended is not kept.
        if led_to_runs > ended {
            present.push("ran");
        }
        let worst = WORST_FIRST.into_iter().find(|name| present.contains(name));
        worst.unwrap_or("due")
    }
}

/// Which cells of a calendar are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CalendarQuery {
    /// Only of this schedule; absent: of all.
    pub schedule: Option<String>,
    /// Only of schedules of this worker; it counts only where no schedule is named.
    pub worker: Option<String>,
    /// The cell of this instant is the first, in milliseconds since the epoch; absent: that of 30 days ago.
    pub from_ms: Option<i64>,
    /// Up to here, in milliseconds since the epoch, and to the end of that cell; absent: a week from now.
    pub to_ms: Option<i64>,
    /// How long a cell is.
    pub bucket: Bucket,
}

/// What became of the slots of one hour or day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CalendarCell {
    /// When it begins.
    pub at: Timestamp,
    /// How many slots had which status.
    pub statuses: BTreeMap<SlotStatus, u32>,
    /// How many of their runs ended with which outcome.
    pub outcomes: BTreeMap<String, u32>,
    /// How many slots are still to come.
    pub due: u32,
    /// The worst of all: `failed`, `timed_out`, `unknown`, `blocked_config`, `missed`, `denied`, `cancelled`,
    /// `skipped_overlap`, `paused`, `ran` (how it ended is not known, or it goes on), `succeeded`, `blocked_hours`, `due`.
    pub worst: String,
}

impl CalendarCell {
    /// The cell of these counts; `None` where there is nothing in it.
    pub fn of(at: Timestamp, counts: &SlotCounts, due: u32) -> Option<CalendarCell> {
        (due > 0 || !counts.is_empty()).then(|| CalendarCell {
            at,
            statuses: counts.statuses(),
            outcomes: counts.outcomes(),
            due,
            worst: counts.worst().to_owned(),
        })
    }
}

/// What became of slots, and how many are to come, by hours or days.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Calendar {
    /// The zone in which cells begin.
    pub timezone: String,
    /// How long a cell is.
    pub bucket: Bucket,
    /// When the first cell begins.
    pub from: Timestamp,
    /// When the last one ends.
    pub to: Timestamp,
    /// Cells in which there is anything, oldest first.
    pub cells: Vec<CalendarCell>,
    /// Up to here slots that are to come are counted; absent: nothing of it lies in the future.
    pub due_known_until: Option<Timestamp>,
    /// Whether not everything is counted: rows of the past are kept no more, or too much is to come.
    pub incomplete: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_has_its_place() {
        use crate::model::outcome::{Failure, Step};
        let all = [
            Outcome::Succeeded,
            Outcome::Failed {
                failure: Failure::new(Step::Land, "c", "m"),
            },
            Outcome::Cancelled,
            Outcome::TimedOut {
                message: String::new(),
            },
            Outcome::Denied {
                message: String::new(),
            },
            Outcome::Unknown { why: String::new() },
        ];
        for outcome in all {
            let counts = SlotCounts::of_outcome(outcome.name());
            assert_eq!(counts.outcomes(), [(outcome.name().to_owned(), 1)].into());
        }
    }

    #[test]
    fn a_failure_is_never_painted_green() {
        let mut counts = SlotCounts::of_status(SlotStatus::Ran, 2);
        assert_eq!(counts.worst(), "ran");
        counts.add(&SlotCounts::of_outcome("succeeded"));
        assert_eq!(counts.worst(), "ran");
        counts.add(&SlotCounts::of_outcome("succeeded"));
        counts.add(&SlotCounts::of_status(SlotStatus::BlockedHours, 5));
        assert_eq!(counts.worst(), "succeeded");
        counts.add(&SlotCounts::of_status(SlotStatus::Missed, 1));
        assert_eq!(counts.worst(), "missed");
        counts.add(&SlotCounts::of_outcome("failed"));
        assert_eq!(counts.worst(), "failed");
        assert_eq!(SlotCounts::default().worst(), "due");
    }
}
