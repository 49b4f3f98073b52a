//! What was observed of commands, outputs and checks, as it is kept in the journal.

use serde::{Deserialize, Serialize};

use super::limits::Resource;
use super::time::Timestamp;

/// The signal that ends a process at its limit of processor time.
const PROCESSOR_TIME: i32 = 24;

/// The signal that ends a process when a file reaches the limit of size.
const FILE_SIZE: i32 = 25;

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Ended {
    /// By itself, with this exit code.
    Exited {
        /// 0 to 255.
        code: i32,
    },
    /// By a signal that we did not send.
    Signalled {
        /// Signal number.
        signal: i32,
    },
    /// Its time was up and it was ended.
    TimedOut,
    /// It used more than it may, and was ended.
    LimitReached {
        /// What it used.
        resource: Resource,
        /// How much of it is allowed: processes, or bytes.
        limit: u64,
        /// How much was counted.
        counted: u64,
    },
    /// It was ended on request.
    Stopped,
    /// It never started.
    NotStarted {
        /// Stable code.
        code: String,
        /// For people.
        message: String,
    },
    /// The model ended it by itself, with an answer.
    Answered {
        /// How many turns the conversation had.
        turns: u32,
    },
    /// A limit ended the conversation, and checks decided about its work. Only in journals of machines before
    /// version 7: a conversation that has not ended fails its attempt now.
    Unfinished {
        /// Stable code.
        code: String,
        /// For people.
        message: String,
    },
    /// The conversation with the model failed, or processes of the command could not be ended.
    Failed {
        /// Stable code.
        code: String,
        /// For people.
        message: String,
        /// Whether another attempt may fare better.
        again: bool,
        /// Until when the model's server takes no more requests, where it said so. Of a run that may not be repeated
        /// everything that had an effect must be a turn of its journal then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    },
}

impl Ended {
    /// Whether the process ended by itself with exit code 0.
    pub fn is_success(&self) -> bool {
        matches!(self, Ended::Exited { code: 0 } | Ended::Answered { .. })
    }

    /// A lower-case fragment for people.
    pub fn describe(&self) -> String {
        match self {
            Ended::Exited { code } => format!("exit code {code}"),
            Ended::Signalled {
                signal: PROCESSOR_TIME,
            } => {
                format!(
                    "ended by signal {PROCESSOR_TIME}: its limit of processor time (`ulimit -t`)"
                )
            }
            Ended::Signalled { signal: FILE_SIZE } => format!(
                "ended by signal {FILE_SIZE}: a file that it wrote reached the limit of size (`ulimit -f`, `LimitFSIZE=` of the engine)"
            ),
            Ended::Signalled { signal } => format!("ended by signal {signal}"),
            Ended::TimedOut => "time limit reached".to_owned(),
            Ended::LimitReached {
                resource,
                limit,
                counted,
            } => resource.describe(*limit, *counted),
            Ended::Stopped => "stopped on request".to_owned(),
            Ended::NotStarted { message, .. } => format!("not started: {message}"),
            Ended::Answered { turns: 1 } => "answered in one turn".to_owned(),
            Ended::Answered { turns } => format!("answered in {turns} turns"),
            Ended::Unfinished { message, .. } | Ended::Failed { message, .. } => message.clone(),
        }
    }
}

/// One attempt's execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Execution {
    /// How the command ended.
    pub ended: Ended,
    /// Wall time of the command in milliseconds.
    pub duration_ms: u64,
    /// Bytes of standard output, dropped ones included.
    pub stdout_bytes: u64,
    /// Bytes of standard error, dropped ones included.
    pub stderr_bytes: u64,
    /// Bytes beyond the cap, read and not kept.
    pub dropped_bytes: u64,
    /// Processes that were still alive after the command and were ended.
    pub survivors_ended: u32,
    /// The last lines of standard error, masked, for messages and the next attempt.
    #[serde(default)]
    pub stderr_tail: String,
    /// The level of the walls that it had, where any were asked for: 0 none, 1 those of the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox_level: Option<u32>,
}

/// What became of one declared output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OutputState {
    /// The output's name.
    pub name: String,
    /// Path relative to the workspace, where the output has one.
    pub path: Option<String>,
    /// Size in bytes when the file is there.
    pub bytes: Option<u64>,
    /// SHA-256 of the content in hex when the file is there.
    pub digest: Option<String>,
    /// Whether it was written in this run.
    pub written: bool,
    /// Why the output is not what was promised.
    pub problem: Option<String>,
    /// Of a `git_commit`: ids of the newest commits that the skill and the run made, in hex, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commits: Vec<String>,
}

/// What is put aside of a run until a person has approved it.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct HeldResult {
    /// Id in hex of the commit that would land; absent where nothing that git tracks has changed.
    pub commit: Option<String>,
    /// Declared outputs that git ignores, and that would be published.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<HeldOutput>,
}

/// A declared output that is put aside.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HeldOutput {
    /// Relative to the workspace.
    pub path: String,
    /// Its length.
    pub bytes: u64,
    /// SHA-256 of its content in hex.
    pub digest: String,
}

/// Commits that a skill made by itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CommitsMade {
    /// How many.
    pub count: u64,
    /// Ids of the newest in hex, the oldest of them first; at most 100.
    pub newest: Vec<String>,
}

impl CommitsMade {
    /// Whether there are none.
    pub fn is_none(&self) -> bool {
        self.newest.is_empty()
    }
}

/// What became of one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It ran and passed.
    Passed,
    /// It ran and failed, and had to pass.
    Failed,
    /// It ran and failed, and need not pass.
    Warned,
    /// It did not run: manual, or after the first failure.
    NotRun,
}

/// One check with its evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CheckRecord {
    /// What it verifies, for people.
    pub description: String,
    /// The command as it ran; absent for manual checks and for those of declared outputs.
    pub command: Option<String>,
    /// Whether its failure fails the run.
    pub must_pass: bool,
    /// What became of it.
    pub verdict: Verdict,
    /// How its command ended.
    pub ended: Option<Ended>,
    /// Why it did not run or did not pass, for people.
    pub message: Option<String>,
    /// The last of its output, masked.
    #[serde(default)]
    pub output_tail: String,
    /// Wall time in milliseconds.
    pub duration_ms: u64,
    /// The level of the walls that its command had; absent where none ran, and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox_level: Option<u32>,
}

impl CheckRecord {
    /// Stable code of its failure: that of a limit that it reached, else `usual`.
    pub fn failed_code<'a>(&self, usual: &'a str) -> &'a str {
        match self.ended {
            Some(Ended::LimitReached { resource, .. }) => resource.code(),
            _ => usual,
        }
    }
}

/// The result of one attempt, recorded when its last process was dead.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// Declared outputs.
    pub outputs: Vec<OutputState>,
    /// Changed paths, relative to the repository; bounded by [`CHANGES_SHOWN_MAX`].
    pub changed: Vec<String>,
    /// How many paths changed in all.
    pub changed_count: u64,
    /// What the git room needs to commit or restore; opaque to everyone else.
    pub tree: serde_json::Value,
    /// Commits that were made meanwhile.
    #[serde(default, skip_serializing_if = "CommitsMade::is_none")]
    pub commits: CommitsMade,
    /// What was left although it changed, for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// After a lost engine: why the change cannot be shown to be complete, so that it is not taken for done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
}

/// How many changed paths a record lists.
pub const CHANGES_SHOWN_MAX: usize = 1_000;

/// What restoring did.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RestoreReport {
    /// How many paths of the checkout an earlier version put back.
    pub put_back: u64,
    /// Paths of the checkout that an earlier version left alone because they were edited since.
    pub edited_since: Vec<String>,
    /// Paths that could not be put back, with the reason.
    pub failed: Vec<String>,
    /// What a person may miss although it was the run's to take back, with how to get it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Whether one of them failed for want of space on the disk: it was given up because the engine ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub out_of_space: bool,
    /// What the next attempt begins from; opaque to everyone but the output rooms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<serde_json::Value>,
}

impl RestoreReport {
    /// Whether everything was put back.
    pub fn is_complete(&self) -> bool {
        self.edited_since.is_empty() && self.failed.is_empty()
    }
}
