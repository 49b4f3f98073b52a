//! Reading the log of a run: which lines are asked for, and what one answer holds.

use serde::{Deserialize, Serialize};

use super::watch::LogLine;

/// Most lines of one answer.
const LINES_MAX: usize = 10_000;

/// Most lines from the end of a log that are asked for at once.
pub const TAIL_LINES_MAX: u32 = 1_000_000;

/// Which lines of a thread's log to read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogsQuery {
    /// First line from 0.
    #[serde(default)]
    pub from: u64,
    /// At most this many lines; 0: 10,000.
    #[serde(default)]
    #[schemars(range(max = 10_000))]
    pub limit: u32,
    /// Instead of `from`: the last so many lines of those that are asked for, at most 1,000,000; an answer begins with the
    /// first of them.
    #[serde(default)]
    #[schemars(range(max = 1_000_000))]
    pub tail: Option<u32>,
    /// Only of this stream, `stdout`, `stderr`, `check`, `tool` or `event`, or one of several with commas between them.
    #[serde(default)]
    pub stream: Option<String>,
    /// Only of this attempt; 0: before the first.
    #[serde(default)]
    pub attempt: Option<u32>,
    /// Only written at or after this instant, milliseconds since the epoch.
    #[serde(default)]
    pub since_ms: Option<i64>,
    /// Only with this text; case and colours do not count.
    #[serde(default)]
    pub search: Option<String>,
}

impl LogsQuery {
    /// How many lines an answer holds at most.
    pub fn most(&self) -> usize {
        match self.limit {
            0 => LINES_MAX,
            some => (some as usize).min(LINES_MAX),
        }
    }
}

/// Lines of one answer, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogsPage {
    /// Those that were asked for; an answer may hold fewer than there are, even none.
    pub lines: Vec<LogLine>,
    /// How many lines the log has now, whichever were asked for.
    pub total: u64,
    /// What `from` goes on with; absent: everything up to `total` was looked at.
    pub next: Option<u64>,
}
