//! What watchers of a run are told: committed events, output lines, and the line that a progress bar rewrites. And what
//! those are told who follow everything.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::runs::RunSummary;
use crate::model::{RunId, Timestamp};

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

impl LogStream {
    /// Every stream.
    pub const ALL: [LogStream; 5] = [
        LogStream::Stdout,
        LogStream::Stderr,
        LogStream::Check,
        LogStream::Tool,
        LogStream::Event,
    ];

    /// The stream's name in every interface.
    pub const fn name(self) -> &'static str {
        match self {
            LogStream::Stdout => "stdout",
            LogStream::Stderr => "stderr",
            LogStream::Check => "check",
            LogStream::Tool => "tool",
            LogStream::Event => "event",
        }
    }
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
    pub carriage_returns: u64,
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

/// What has changed in an engine, after the commit that changed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The first that is told.
    Hello {
        /// Whether nothing was missed since the id that was given; else everything may have changed.
        resumed: bool,
    },
    /// A run: its summary in JSON.
    Run(Arc<str>),
    /// More runs than are told one by one, or changes that are not kept any more.
    Many {
        /// How many.
        count: u64,
    },
    /// Schedules or rows of their slots.
    Schedules,
    /// Definitions or the configuration.
    Definitions,
    /// The engine is in another condition.
    Condition(&'static str),
}

/// A line of the log of one of several runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RunLine {
    /// The run.
    pub run: RunId,
    /// The line.
    #[serde(flatten)]
    pub line: LogLine,
}

/// What is followed besides everything that changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FollowQuery {
    /// Runs whose logs are told too, each from a line on: `RUN:0,RUN:120`; at most four.
    pub runs: Option<String>,
}

/// Most runs whose logs one stream tells.
const LOGS_MAX: usize = 4;

impl FollowQuery {
    /// The runs, each with the first line that is wanted of it.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn logs(&self) -> Result<Vec<(RunId, u64)>, String> {
        let written = self.runs.as_deref().unwrap_or_default();
        let each = written.split(',').filter(|one| !one.is_empty());
        let read = |one: &str| {
            let (run, from) = one.split_once(':').unwrap_or((one, "0"));
            run.parse().ok().zip(from.parse().ok())
        };
        let logs: Option<Vec<_>> = each.map(read).collect();
        let logs = logs.ok_or_else(|| {
            "`runs` is not written as `RUN:LINE,RUN:LINE` with ids in full".to_owned()
        })?;
        if logs.len() > LOGS_MAX {
            return Err(format!("one stream has at most {LOGS_MAX} logs"));
        }
        Ok(logs)
    }
}
