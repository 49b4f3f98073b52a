//! What is noticed of a schedule besides its due times: that it does not succeed, that its state was damaged.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::Timestamp;

/// How the reason ends of a pause that a schedule made itself.
pub const FAILURES_IN_A_ROW: &str = " failures in a row";

/// An episode in which a schedule has not succeeded in time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missed {
    /// By when it was to have succeeded.
    pub expected_by: Timestamp,
    /// When a daemon noticed that it had not.
    pub at: Timestamp,
    /// What became of its `on_missed` command; absent: it has not run to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<Told>,
}

/// A state was damaged, and made anew of the schedule's rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Restored {
    /// When.
    pub at: Timestamp,
    /// What was wrong with it, and what is not known any more.
    pub reason: String,
}

/// How the `on_missed` command of a schedule ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Told {
    /// When it ended.
    pub at: Timestamp,
    /// Whether it exited with 0.
    pub succeeded: bool,
    /// How it ended and the last that it said, where it did not succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}
