//! What skills need, tried where the engine runs.

use serde::{Deserialize, Serialize};

/// What is to be tried.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProbeRequest {
    /// Alias of a model, which is asked for one token; absent: all else that skills need.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// One thing that skills need, and whether it works for the engine and what it starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Probe {
    /// What was tried: `output`, `command`, `repository`, `temporary`, `state`, `sandbox`, `access`, `model`.
    pub what: String,
    /// Whether it worked.
    pub works: bool,
    /// What works, or why it does not.
    pub message: String,
    /// What to do about it; for a service the line of its unit that forbids it, as far as that can be told.
    pub hints: Vec<String>,
}
