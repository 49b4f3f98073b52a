//! What is told of a schedule in words.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which way clocks go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DstKind {
    /// Forward: local times are skipped.
    Gap,
    /// Back: local times come twice.
    Fold,
}

/// A change of the clocks that meets local times of a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DstWarning {
    /// The local day on which the skipped or repeated time begins, `YYYY-MM-DD`.
    pub date: String,
    /// Which way clocks go.
    pub kind: DstKind,
    /// What happens, for people.
    pub message: String,
}

/// One sentence about a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sentence {
    /// The key that it explains: `overlap`, `catch_up` …
    pub key: String,
    /// For people.
    pub text: String,
}
