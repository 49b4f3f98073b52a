//! Commands that are told of an event.

use serde::{Deserialize, Serialize};

/// A hook as written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HookText {
    /// Shell text without placeholders; the event arrives on standard input.
    pub command: String,
    /// Its limit in milliseconds.
    pub timeout_ms: u64,
}
