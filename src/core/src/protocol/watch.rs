//! What watchers of a run are told: committed events, output lines, and the line that a progress bar rewrites.

use serde::{Deserialize, Serialize};

use super::runs::RunSummary;
use crate::model::Timestamp;

/// Which stream a line belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogStream {
    /// Standard output of the skill's command.
    Stdout,
    /// Standard error of the skill's command.
    Stderr,
    /// Output of a check or a hook.
    Check,
    /// What a model calls, and what comes of it.
    Tool,
    /// An event of the journal.
    Event,
}

/// One line of a thread's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LogLine {
    /// Its number in the log from 0.
    pub line: u64,
    /// When it was written.
    pub at: Timestamp,
    /// Which attempt, 0 before the first.
    pub attempt: u32,
    /// Which stream.
    pub stream: LogStream,
    /// The text, masked, invalid UTF-8 replaced; control characters are escaped where it is shown.
    pub text: String,
    /// Whether the line goes on in the next record.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub continued: bool,
    /// How often the line was begun anew with a carriage return, as progress bars do; the text is its last form.
    #[serde(default, skip_serializing_if = "crate::model::schedule::is_zero")]
    pub rewrites: u64,
}

/// What happened to a watched run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum WatchEvent {
    /// A line of its log.
    Line(LogLine),
    /// A line that is being rewritten, as it stands now. It is not stored: `line` is the number that it may get.
    Partial(LogLine),
    /// Where it is now.
    Changed(Box<RunSummary>),
    /// This many lines were not delivered; they stand in the thread.
    Lagged {
        /// How many.
        lost: u64,
    },
}
