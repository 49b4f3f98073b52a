//! How long what is recorded stays, as `retention` of workerctl.yaml says it.

use serde::{Deserialize, Serialize};

const DAY_MS: u64 = 24 * 3_600_000;

/// How long what is recorded stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Retention {
    /// How long a run stays after its end, with its journal and its thread, in milliseconds.
    pub runs_ms: u64,
    /// How many of the newest runs of each skill stay, however old.
    pub runs_min: u32,
    /// How long a run stays that a person approved or denied, in milliseconds.
    pub approvals_ms: u64,
    /// Bytes that threads may have together; beyond, the oldest runs go before their time.
    pub threads_bytes: u64,
    /// How long rows of slots stay, and the stored state of a schedule that is defined no more, in milliseconds.
    pub slots_ms: u64,
}

impl Default for Retention {
    fn default() -> Retention {
        Retention {
            runs_ms: 90 * DAY_MS,
            runs_min: 20,
            approvals_ms: 365 * DAY_MS,
            threads_bytes: 10 * 1024 * 1024 * 1024,
            slots_ms: 365 * DAY_MS,
        }
    }
}

/// Shortest time that runs stay, in milliseconds: a submission that is repeated within a day is answered by its run.
pub const RUNS_MS_MIN: u64 = 2 * DAY_MS;

/// How long the counts of an hour stay, in milliseconds: eight days.
pub const HOURS_MS: u64 = 8 * DAY_MS;

/// How long the counts of a day stay that statistics are made of, in milliseconds: five years.
pub const STATISTICS_MS: u64 = 5 * 365 * DAY_MS;
