//! What became of slots, counted by hours and days, and what is asked of that.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::stats::Bucket;
use crate::model::schedule::Fate;
use crate::model::{Outcome, Timestamp};

/// How long one entry of the kept counts is, in milliseconds: borders of hours and days lie on half hours of UTC in
/// nearly every zone.
pub const HALF_HOUR_MS: i64 = 30 * 60_000;

/// How long the stretch of one record of counts is, in milliseconds.
pub const HALF_DAY_MS: i64 = 24 * HALF_HOUR_MS;

/// Names of outcomes in the order of their stored counts, as that of fates; new ones go to the end.
const OUTCOMES: [&str; 6] = Outcome::NAMES;

/// How many slots had which fate, and how many of their runs ended with which outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(Vec<u32>, Vec<u32>)", into = "(Vec<u32>, Vec<u32>)")]
pub struct SlotCounts {
    fates: [u32; Fate::ALL.len()],
    outcomes: [u32; OUTCOMES.len()],
}

impl SlotCounts {
    /// So many slots of one fate.
    pub fn of_fate(fate: Fate, count: u32) -> SlotCounts {
        let mut counts = SlotCounts::default();
        let at = Fate::ALL.iter().position(|one| *one == fate);
        if let Some(kept) = at.and_then(|at| counts.fates.get_mut(at)) {
            *kept = count;
        }
        counts
    }

    /// One run that ended so.
    pub fn of_outcome(name: &str) -> SlotCounts {
        let mut counts = SlotCounts::default();
        let at = OUTCOMES.iter().position(|one| *one == name);
        if let Some(kept) = at.and_then(|at| counts.outcomes.get_mut(at)) {
            *kept = 1;
        }
        counts
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
        let own = self.fates.iter_mut().chain(&mut self.outcomes);
        for (own, other) in own.zip(other.fates.iter().chain(&other.outcomes)) {
            *own = by(*own, *other);
        }
    }

    /// Whether nothing is counted.
    pub fn is_empty(&self) -> bool {
        *self == SlotCounts::default()
    }

    /// Slots by their fate.
    pub fn fates(&self) -> BTreeMap<Fate, u32> {
        let all = Fate::ALL.into_iter().zip(self.fates);
        all.filter(|(_, count)| *count > 0).collect()
    }

    /// Ended runs by the names of their outcomes.
    pub fn outcomes(&self) -> BTreeMap<String, u32> {
        let all = OUTCOMES.into_iter().zip(self.outcomes);
        let some = all.filter(|(_, count)| *count > 0);
        some.map(|(name, count)| (name.to_owned(), count)).collect()
    }

    /// The worst of what is counted: a fate or an outcome; `due` where nothing is.
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
        for (fate, count) in Fate::ALL.into_iter().zip(self.fates) {
            if fate.is_run() {
                led_to_runs += u64::from(count);
            } else if count > 0 {
                present.push(fate.name());
            }
        }
        let outcomes = OUTCOMES.into_iter().zip(self.outcomes);
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

/// The stored form has no zeros at its ends.
impl From<SlotCounts> for (Vec<u32>, Vec<u32>) {
    fn from(counts: SlotCounts) -> (Vec<u32>, Vec<u32>) {
        let trimmed = |all: &[u32]| {
            let used = all.iter().rposition(|count| *count > 0);
            all[..used.map_or(0, |last| last + 1)].to_vec()
        };
        (trimmed(&counts.fates), trimmed(&counts.outcomes))
    }
}

impl From<(Vec<u32>, Vec<u32>)> for SlotCounts {
    fn from((fates, outcomes): (Vec<u32>, Vec<u32>)) -> SlotCounts {
        let mut counts = SlotCounts::default();
        let own = counts.fates.iter_mut().zip(fates);
        for (own, stored) in own.chain(counts.outcomes.iter_mut().zip(outcomes)) {
            *own = stored;
        }
        counts
    }
}

/// The kept counts of half a day of UTC, by the number of the half hour in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HalfDay(pub BTreeMap<u8, SlotCounts>);

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
    /// How many slots had which fate.
    pub fates: BTreeMap<Fate, u32>,
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
            fates: counts.fates(),
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
    fn the_largest_counts_fit_into_a_record() {
        let most = SlotCounts {
            fates: [u32::MAX; Fate::ALL.len()],
            outcomes: [u32::MAX; OUTCOMES.len()],
        };
        let half_day = HalfDay((0..24).map(|half_hour| (half_hour, most)).collect());
        let text = serde_json::to_string(&half_day).unwrap();
        assert!(text.len() <= 4_090, "{}", text.len());
        assert_eq!(serde_json::from_str::<HalfDay>(&text).unwrap(), half_day);
    }

    #[test]
    fn what_is_stored_has_no_zeros_at_its_ends_and_may_be_shorter_or_longer() {
        let mut counts = SlotCounts::of_fate(Fate::CaughtUp, 3);
        counts.add(&SlotCounts::of_outcome("succeeded"));
        assert_eq!(serde_json::to_string(&counts).unwrap(), "[[0,3],[1]]");
        let longer = "[[0,3,0,0,0,0,0,0,9],[1]]";
        assert_eq!(serde_json::from_str::<SlotCounts>(longer).unwrap(), counts);
    }

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
        let mut counts = SlotCounts::of_fate(Fate::Ran, 2);
        assert_eq!(counts.worst(), "ran");
        counts.add(&SlotCounts::of_outcome("succeeded"));
        assert_eq!(counts.worst(), "ran");
        counts.add(&SlotCounts::of_outcome("succeeded"));
        counts.add(&SlotCounts::of_fate(Fate::BlockedHours, 5));
        assert_eq!(counts.worst(), "succeeded");
        counts.add(&SlotCounts::of_fate(Fate::Missed, 1));
        assert_eq!(counts.worst(), "missed");
        counts.add(&SlotCounts::of_outcome("failed"));
        assert_eq!(counts.worst(), "failed");
        assert_eq!(SlotCounts::default().worst(), "due");
    }
}
