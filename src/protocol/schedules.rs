//! Schedules and their due times, as every interface shows them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::SchedulePlan;
use crate::model::schedule::{Fate, Overlap};
use crate::model::{RunId, Timestamp};

/// A schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ScheduleView {
    /// Its id.
    pub id: String,
    /// The skill that it runs.
    pub skill: String,
    /// When it is due, in words.
    pub when: String,
    /// IANA zone of its due times.
    pub timezone: String,
    /// Where it stands.
    pub defined_at: String,
    /// Whether this version fires it.
    pub fires: bool,
    /// The next due time; absent when there is none.
    pub next: Option<Timestamp>,
    /// Why nothing is due, and since when.
    pub paused: Option<PauseView>,
    /// What happens while an earlier run has not ended.
    pub overlap: Overlap,
    /// Whether a daemon has taken note of it.
    pub known: bool,
    /// The last run that it led to.
    pub last: Option<LastFire>,
    /// When a run of it last succeeded.
    pub succeeded_at: Option<Timestamp>,
    /// Failures since its last success.
    pub failures: u32,
    /// How many runs it has led to.
    pub actions: u64,
    /// How many due times had which fate.
    pub totals: BTreeMap<Fate, u64>,
    /// What its future follows from.
    pub plan: SchedulePlan,
}

/// The last run that a schedule led to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LastFire {
    /// The due time.
    pub slot: Timestamp,
    /// The run.
    pub run: RunId,
    /// How it ended; absent while it has not, or is not kept.
    pub outcome: Option<String>,
}

/// Why nothing is due.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PauseView {
    /// In words.
    pub reason: String,
    /// Who paused it.
    pub by: String,
    /// Since when.
    pub at: Timestamp,
}

/// One row of the ledger of due times.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SlotView {
    /// The schedule.
    pub schedule: String,
    /// The first due time that it covers.
    pub from: Timestamp,
    /// The last one.
    pub to: Timestamp,
    /// How many there are; absent: too many to be counted.
    pub count: Option<u64>,
    /// What became of them.
    pub fate: Fate,
    /// The run that it led to.
    pub run: Option<RunId>,
    /// When that was decided.
    pub at: Timestamp,
    /// Why, where the fate alone does not say it; `unreadable` says that the row is damaged.
    pub reason: Option<String>,
}

/// Which rows are wanted, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SlotsQuery {
    /// The schedule; absent: all.
    pub schedule: Option<String>,
    /// Only rows that reach this instant, in milliseconds since the epoch.
    pub since_ms: Option<i64>,
    /// How many at most; 0: the default of 50.
    pub limit: u32,
}

/// A request to pause a schedule.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PauseRequest {
    /// The schedule.
    pub schedule: String,
    /// Why.
    pub reason: String,
    /// Who asks, for people.
    pub by: Option<String>,
}

/// A request to let a schedule go on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ResumeRequest {
    /// The schedule.
    pub schedule: String,
}
