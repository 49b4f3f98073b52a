//! Requests for effects, derived from the state: at most one is outstanding for a run.

use super::state::{AfterSave, Run, State, StopKind};
use crate::model::Timestamp;

/// A request for an effect, imperative.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Action {
    /// Look at inputs, scripts and the repository; run the checks before anything is touched.
    Validate,
    /// Take the leases, record baseline and outputs.
    Prepare,
    /// Run the skill's command.
    Execute {
        /// Which attempt, from 1.
        attempt: u32,
    },
    /// Record what the attempt left.
    Record {
        /// Which attempt.
        attempt: u32,
    },
    /// Run the checks.
    Verify {
        /// Which attempt.
        attempt: u32,
        /// Whether the execution's end is unknown and only declared outputs count.
        reconciling: bool,
    },
    /// Run one hook that may block.
    RunHook {
        /// Its place from 0.
        index: u32,
    },
    /// Write the thread.
    Save {
        /// Whether nothing but the run's end follows, so that `Close` writes the summary in a moment.
        last: bool,
    },
    /// Build the commit's objects.
    PrepareCommit,
    /// Move the branch, or find that it has been moved.
    PublishCommit {
        /// Id of the commit in hex.
        oid: String,
        /// Id of its parent in hex.
        parent: Option<String>,
        /// Full name of the branch.
        reference: String,
    },
    /// Run one hook that follows the commit.
    RunPostCommitHook {
        /// Its place from 0.
        index: u32,
    },
    /// Put back what the run changed.
    Restore,
    /// Write thread and metrics of the finished run.
    Close,
}

impl Action {
    /// The action's name for logs.
    pub const fn name(&self) -> &'static str {
        match self {
            Action::Validate => "validate",
            Action::Prepare => "prepare",
            Action::Execute { .. } => "execute",
            Action::Record { .. } => "record",
            Action::Verify { .. } => "verify",
            Action::RunHook { .. } => "run_hook",
            Action::Save { .. } => "save",
            Action::PrepareCommit => "prepare_commit",
            Action::PublishCommit { .. } => "publish_commit",
            Action::RunPostCommitHook { .. } => "run_post_commit_hook",
            Action::Restore => "restore",
            Action::Close => "close",
        }
    }
}

impl Action {
    /// Whether an executor may go on with it before the event that asked for it is committed, so that one
    /// commit records both: repeating it is harmless, and nothing that it does tells of that event.
    pub const fn may_precede_commit(&self) -> bool {
        matches!(self, Action::Save { last: true })
    }
}

impl Run {
    /// The one effect that this state asks for; `None` while it waits for its turn, for time, or for nobody.
    pub fn next_action(&self) -> Option<Action> {
        Some(match &self.state {
            State::Queued
            | State::AwaitingApproval { .. }
            | State::BackingOff { .. }
            | State::Finished { closed: true, .. } => return None,
            State::Validating { .. } => Action::Validate,
            State::Preparing { .. } => Action::Prepare,
            State::Executing { attempt, .. } => Action::Execute { attempt: *attempt },
            State::Recording { attempt, .. } => Action::Record { attempt: *attempt },
            State::Verifying {
                attempt,
                reconciling,
                ..
            } => Action::Verify {
                attempt: *attempt,
                reconciling: *reconciling,
            },
            State::PostHook { index, .. } => Action::RunHook { index: *index },
            State::Saving { next, .. } => Action::Save {
                last: matches!(next, AfterSave::Finish(_)),
            },
            State::Committing { .. } => Action::PrepareCommit,
            State::Publishing {
                oid,
                parent,
                reference,
                ..
            } => Action::PublishCommit {
                oid: oid.clone(),
                parent: parent.clone(),
                reference: reference.clone(),
            },
            State::Announcing { index } => Action::RunPostCommitHook { index: *index },
            State::Restoring { .. } => Action::Restore,
            State::Finished { closed: false, .. } => Action::Close,
        })
    }

    /// How firmly the outstanding action's processes are to be ended, if they are.
    pub fn stop_wanted(&self) -> Option<StopKind> {
        match &self.state {
            State::Validating { ending }
            | State::Preparing { ending }
            | State::Executing { ending, .. }
            | State::Recording { ending, .. }
            | State::Verifying { ending, .. }
            | State::PostHook { ending, .. } => ending.as_ref().map(super::Ending::stop_kind),
            State::Publishing { cancelled, .. } => cancelled.then_some(StopKind::Graceful),
            State::Queued
            | State::AwaitingApproval { .. }
            | State::BackingOff { .. }
            | State::Saving { .. }
            | State::Committing { .. }
            | State::Announcing { .. }
            | State::Restoring { .. }
            | State::Finished { .. } => None,
        }
    }

    /// When the wait before the next attempt is over: (set at, length in milliseconds).
    pub fn backoff(&self) -> Option<(Timestamp, u64)> {
        match &self.state {
            State::BackingOff { since, for_ms, .. } => Some((*since, *for_ms)),
            _ => None,
        }
    }

    /// The limit of all attempts while it counts: (first execution at, length in milliseconds).
    pub fn runtime_limit(&self) -> Option<(Timestamp, u64)> {
        // It has run in time already when it waits for its branch.
        let limit = self
            .plan
            .max_runtime_ms
            .filter(|_| self.facts.rounds == 0)?;
        let since = self.facts.executing_since?;
        match &self.state {
            State::Executing { ending: None, .. }
            | State::Recording {
                ending: None,
                goal: super::Goal::Verify { .. },
                ..
            }
            | State::Verifying { ending: None, .. }
            | State::BackingOff { .. } => Some((since, limit)),
            _ => None,
        }
    }
}
