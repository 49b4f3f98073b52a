//! What is told at the rim when something is refused or fails.

use serde::{Deserialize, Serialize};

/// What kind of refusal or failure it is; the exit code follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The command line or the request is wrong.
    Usage,
    /// Nothing of that name.
    NotFound,
    /// A definition or the configuration is wrong.
    Definition,
    /// It may not start: unavailable, denied, disk or queue full.
    Blocked,
    /// No engine answers.
    Unreachable,
    /// Someone else holds it, or it is too late.
    Conflict,
    /// Whether it was done cannot be told.
    Open,
    /// Our own fault or the machine's.
    Internal,
}

/// A refusal or failure with its remedy.
#[derive(
    Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error, schemars::JsonSchema,
)]
#[error("{message}")]
pub struct Diagnostic {
    /// What kind.
    pub kind: Kind,
    /// Stable code, lower case with underscores.
    pub code: String,
    /// A lower-case fragment, causes included.
    pub message: String,
    /// What to do about it.
    #[serde(default)]
    pub hints: Vec<String>,
    /// Several problems of one request, such as of its inputs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
}

impl Diagnostic {
    /// A diagnostic without hints.
    pub fn new(kind: Kind, code: &str, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            kind,
            code: code.to_owned(),
            message: message.into(),
            hints: Vec::new(),
            details: Vec::new(),
        }
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Diagnostic {
        self.hints.push(hint.into());
        self
    }
}

/// An error and all its causes in one lower-case line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
