//! What the processes of one command may use.

use serde::{Deserialize, Serialize};

/// Bounds that every command, check and hook has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceLimits {
    /// How many processes of it there may be at a time.
    pub processes: u64,
    /// How many bytes they may have written to disks together.
    pub written_bytes: u64,
}

impl Default for ResourceLimits {
    fn default() -> ResourceLimits {
        ResourceLimits {
            processes: 1_000,
            written_bytes: 32 << 30,
        }
    }
}

/// What is counted of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Its processes.
    Processes,
    /// The bytes that they wrote to disks.
    Written,
}

impl Resource {
    /// Stable code of a failure at this limit.
    pub const fn code(self) -> &'static str {
        match self {
            Resource::Processes => "process_limit",
            Resource::Written => "write_limit",
        }
    }

    /// For people: what was counted of it, the limit, and the key that raises that.
    pub fn describe(self, limit: u64, counted: u64) -> String {
        match self {
            Resource::Processes => format!(
                "{counted} or more processes at a time, and {limit} are allowed: `limits.processes` raises that"
            ),
            Resource::Written => format!(
                "{} written, and {} are allowed: `limits.written` raises that",
                super::size::show_bytes(counted),
                super::size::show_bytes(limit)
            ),
        }
    }
}
