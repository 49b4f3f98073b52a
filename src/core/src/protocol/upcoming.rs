//! What schedules do next, and what their policies will do, as `schedule next` and `schedule explain` tell it.

use serde::{Deserialize, Serialize};

use crate::model::Timestamp;
use crate::model::schedule::{DstWarning, Sentence, SlotStatus};

/// How many slots are told where no number is asked for.
const UPCOMING_DEFAULT: u32 = 5;

/// Most slots of one answer.
const UPCOMING_MAX: u32 = 10_000;

fn most(count: u32) -> usize {
    let most = match count {
        0 => UPCOMING_DEFAULT,
        some => some.min(UPCOMING_MAX),
    };
    most as usize
}

/// Which of the next slots are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NextQuery {
    /// Only of this schedule, even where it is paused; absent: of all that run.
    pub schedule: Option<String>,
    /// How many; 0: 5.
    #[schemars(range(max = 10_000))]
    pub count: u32,
    /// Only slots after this instant, in milliseconds since the epoch; absent: now.
    pub after_ms: Option<i64>,
}

impl NextQuery {
    /// How many slots an answer has at most.
    pub fn most(&self) -> usize {
        most(self.count)
    }
}

/// Which schedule is to be explained.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExplainQuery {
    /// The schedule.
    pub schedule: String,
    /// How many of its next slots; 0: 5.
    #[serde(default)]
    #[schemars(range(max = 10_000))]
    pub count: u32,
    /// Only slots after this instant, in milliseconds since the epoch; absent: now.
    #[serde(default)]
    pub at_ms: Option<i64>,
}

impl ExplainQuery {
    /// How many slots an answer has at most.
    pub fn most(&self) -> usize {
        most(self.count)
    }
}

/// A slot that is to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NextSlot {
    /// The schedule; absent: of an expression.
    pub schedule: Option<String>,
    /// The slot.
    pub due: Timestamp,
    /// When its run starts: later by its jitter.
    pub starts: Timestamp,
    /// The slot in the schedule's zone.
    pub local: String,
    /// IANA zone of the schedule.
    pub timezone: String,
}

/// Slots that do not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OmittedSlots {
    /// The schedule.
    pub schedule: String,
    /// The first of them.
    pub from: Timestamp,
    /// The last one.
    pub to: Timestamp,
    /// How many there are; absent: too many to be counted.
    pub count: Option<u64>,
    /// Why they do not run.
    pub status: SlotStatus,
}

/// Up to where the slots of a schedule were looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SearchedUntil {
    /// The schedule.
    pub schedule: String,
    /// Up to here, for so many of its slots do not run.
    pub until: Timestamp,
}

/// A schedule whose skill cannot run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BlockedSchedule {
    /// The schedule.
    pub schedule: String,
    /// Why.
    pub reason: Option<String>,
}

/// What schedules do next.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NextSlots {
    /// The next slots, in the order in which their runs start.
    pub next: Vec<NextSlot>,
    /// Slots before the last of them that do not run.
    pub omitted: Vec<OmittedSlots>,
    /// Where not everything was looked at.
    pub searched_until: Vec<SearchedUntil>,
    /// Those that are paused.
    pub paused: Vec<String>,
    /// Why no schedule is fired at all; null: schedules are.
    pub inactive_reason: Option<String>,
    /// Those whose skill cannot run.
    pub blocked: Vec<BlockedSchedule>,
    /// Those that no clock makes due.
    pub by_events: Vec<String>,
}

/// A schedule in words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ExplainedSchedule {
    /// The schedule; absent: an expression is explained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// The skill that it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
    /// When it is due.
    pub description: String,
    /// Its next slots.
    pub next: Vec<Timestamp>,
    /// Changes of the clocks that meet it within two years.
    pub clock_changes: Vec<DstWarning>,
    /// What each of its policies will do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policies: Option<Vec<Sentence>>,
}
