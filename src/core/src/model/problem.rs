//! One diagnosed defect of a definition.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// How much a problem weighs.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth knowing; nothing is wrong.
    Note,
    /// Accepted, though probably not what was meant.
    Warning,
    /// Something is rejected.
    Error,
}

/// Where in a file; lines and columns count from 1, columns in characters.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct Place {
    /// Path relative to the workspace, absolute only outside it.
    pub path: Arc<str>,
    /// Line from 1; 0 when the whole file is meant.
    pub line: u32,
    /// Column from 1; 0 when the whole line is meant.
    pub column: u32,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.line, self.column) {
            (0, _) => f.write_str(&self.path),
            (line, 0) => write!(f, "{}:{line}", self.path),
            (line, column) => write!(f, "{}:{line}:{column}", self.path),
        }
    }
}

/// One diagnosed defect, with what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Problem {
    /// Stable code, lower case with dashes.
    pub code: String,
    /// Weight.
    pub severity: Severity,
    /// Where.
    pub place: Place,
    /// What is wrong, a lower-case fragment.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// The worker that the problem belongs to, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// The skill that the problem belongs to, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
}
