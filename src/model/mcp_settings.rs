//! What clients of the Model Context Protocol may do, and how much they are told at once.

use serde::{Deserialize, Serialize};

/// The part of the configuration that is about clients of the Model Context Protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpSettings {
    /// Whether they may run skills that change things.
    pub mutating: bool,
    /// Bytes of the list of skills in the description of one tool.
    pub list_bytes: u64,
    /// How long a call waits for its run, in milliseconds.
    pub wait_ms: u64,
    /// How often changed definitions are looked for, in milliseconds.
    pub refresh_ms: u64,
}

impl Default for McpSettings {
    fn default() -> McpSettings {
        McpSettings {
            mutating: false,
            list_bytes: 32 * 1024,
            wait_ms: 45_000,
            refresh_ms: 30_000,
        }
    }
}
