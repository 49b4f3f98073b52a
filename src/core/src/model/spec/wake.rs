//! The wake gate: a command that decides before anything executes whether there is anything to do.

use serde::{Deserialize, Serialize};

use super::Program;

/// A wake gate, frozen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakeSpec {
    /// What runs; exit code 0 without output: there is nothing to do.
    pub program: Program,
    /// Its limit in milliseconds.
    pub timeout_ms: u64,
}
