//! What skills need, tried where the engine runs.

use serde::{Deserialize, Serialize};

use crate::model::News;

/// What is to be tried.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProbeRequest {
    /// Alias of a model, which is asked for one token; absent: all else that skills need.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Has people told a test instead, in each way that is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<NotifyTest>,
}

/// Which ways of telling people are tried.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NotifyTest {
    /// Those that count for a skill or a schedule; absent: all of the workspace.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Those that are told of this; absent: of anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<NotifyEvent>,
}

/// What people may be told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NotifyEvent {
    /// `on_failure`.
    Failure,
    /// `on_recovery`.
    Recovery,
    /// `on_missed`.
    Missed,
    /// `on_approval`.
    Approval,
}

impl NotifyEvent {
    /// What happens then.
    pub const fn news(self) -> News {
        match self {
            NotifyEvent::Failure => News::Failed,
            NotifyEvent::Recovery => News::Recovered,
            NotifyEvent::Missed => News::Missed,
            NotifyEvent::Approval => News::Awaiting,
        }
    }
}

/// One thing that was tried where the engine runs, and whether it works.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Probe {
    /// What was tried: `output`, `command`, `repository`, `temporary`, `state`, `sandbox`, `access`, `model`, `notify`.
    pub subject: String,
    /// Whether it worked.
    pub ok: bool,
    /// What works, or why it does not.
    pub message: String,
    /// What to do about it; for a service the line of its unit that forbids it, as far as that can be told.
    pub hints: Vec<String>,
}
