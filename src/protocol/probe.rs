//! What skills need, tried where the engine runs.

use serde::{Deserialize, Serialize};

/// One thing that skills need, and whether it works for the engine and what it starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Probe {
    /// What was tried: `output`, `command`, `repository`, `temporary`, `state`, `sandbox`, `access`.
    pub what: String,
    /// Whether it worked.
    pub works: bool,
    /// What works, or why it does not.
    pub message: String,
    /// What to do about it; for a service the line of its unit that forbids it, as far as that can be told.
    pub hints: Vec<String>,
}
