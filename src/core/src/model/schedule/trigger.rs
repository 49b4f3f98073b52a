//! What makes a schedule due.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::SkillRef;
use crate::model::outcome::Outcome;

/// What makes a schedule due.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "on", rename_all = "snake_case")]
pub enum Trigger {
    /// Slots of a cron expression.
    Cron {
        /// As written.
        expression: Arc<str>,
        /// Whether its first field is seconds.
        #[serde(default)]
        seconds: bool,
        /// What becomes of slots that a change of the clock skips or repeats; absent: by the expression.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dst: Option<Dst>,
    },
    /// Every so many milliseconds, counted from when the schedule was first seen.
    Every {
        /// The period in milliseconds, at least 1,000.
        period_ms: u64,
    },
    /// At given times of the schedule's zone, each `YYYY-MM-DDTHH:MM` with optional seconds, or RFC 3339 with
    /// an offset of its own.
    At {
        /// The times, `T` between date and time.
        times: Vec<String>,
        /// What becomes of times that a change of the clock skips or repeats; absent: as for fixed hours.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dst: Option<Dst>,
    },
    /// Once after each start of the machine.
    Reboot,
    /// When a run of another skill has ended.
    After {
        /// The other skill.
        skill: Box<SkillRef>,
        /// Which ends count.
        when: AfterWhen,
    },
    /// When files change.
    Watch {
        /// Paths or patterns relative to the workspace.
        paths: Vec<String>,
        /// How long nothing may change before it counts, in milliseconds.
        settle_ms: u64,
    },
    /// When a branch has got new commits.
    OnCommit {
        /// Short name of the branch.
        branch: String,
    },
}

impl Trigger {
    /// Whether its slots follow from the clock.
    pub const fn is_timed(&self) -> bool {
        matches!(
            self,
            Trigger::Cron { .. } | Trigger::Every { .. } | Trigger::At { .. }
        )
    }
}

impl Trigger {
    /// Whether it waits for something that has to be looked at.
    pub const fn is_seen(&self) -> bool {
        matches!(
            self,
            Trigger::Reboot | Trigger::Watch { .. } | Trigger::OnCommit { .. }
        )
    }
}

/// Which ends of another run count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AfterWhen {
    /// Only successes.
    Succeeded,
    /// Failures, reached limits of time and unknown ends; not what a person cancelled or denied.
    Failed,
    /// All.
    Always,
}

impl AfterWhen {
    /// Whether a run that ended like this counts.
    pub const fn counts(self, outcome: &Outcome) -> bool {
        match outcome {
            Outcome::Succeeded => !matches!(self, AfterWhen::Failed),
            Outcome::Failed { .. } | Outcome::TimedOut { .. } | Outcome::Unknown { .. } => {
                !matches!(self, AfterWhen::Succeeded)
            }
            Outcome::Cancelled | Outcome::Denied { .. } => matches!(self, AfterWhen::Always),
        }
    }
}

/// What becomes of a local time that the clocks skip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Gap {
    /// One slot at the first instant after the gap, however many local times fell into it.
    RunAfter,
    /// No slot.
    Skip,
}

/// Which passes count of a local time that comes twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fold {
    /// The earlier one.
    First,
    /// The later one.
    Second,
    /// Each is a slot.
    Both,
}

/// The rule of a schedule for both changes of the clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub struct Dst {
    /// Clocks go forward.
    pub gap: Gap,
    /// Clocks go back.
    pub fold: Fold,
}

impl Dst {
    /// For a job at fixed times: every day exactly once, also when the clocks are changed.
    pub const FIXED_TIME: Dst = Dst {
        gap: Gap::RunAfter,
        fold: Fold::First,
    };

    /// For a job that repeats through the day: its slots are as far apart in real time as on any other day.
    pub const REAL_TIME: Dst = Dst {
        gap: Gap::Skip,
        fold: Fold::Both,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_written_in_snake_case() {
        let json = serde_json::to_string(&Dst::FIXED_TIME).unwrap();
        assert_eq!(json, r#"{"gap":"run_after","fold":"first"}"#);
        let read: Dst = serde_json::from_str(r#"{"gap":"skip","fold":"both"}"#).unwrap();
        assert_eq!(read, Dst::REAL_TIME);
        assert!(serde_json::from_str::<Dst>(r#"{"gap":"skip","fold":"both","x":1}"#).is_err());
    }
}
