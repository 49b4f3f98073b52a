//! The state of one run; each state carries exactly its own data.

use serde::{Deserialize, Serialize};

use super::event::{Approval, CancelKind, Resolution};
use crate::model::Timestamp;
use crate::model::agent::Spent;
use crate::model::evidence::HeldResult;
use crate::model::outcome::{Failure, Outcome, Phase, Results, Step};
use crate::model::spec::{Gate, Plan};

/// Why a run is being ended before its work is done.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// Somebody asked.
    Cancelled(CancelKind),
    /// The limit of all attempts was reached.
    RuntimeExhausted,
    /// The engine drains.
    Interrupted,
}

/// How firmly the outstanding action's processes are to be ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StopKind {
    /// TERM, grace, KILL.
    Graceful,
    /// KILL at once.
    Now,
}

impl Ending {
    /// How firmly processes are ended for this reason.
    pub fn stop_kind(&self) -> StopKind {
        match self {
            Ending::Cancelled(CancelKind::Now) => StopKind::Now,
            Ending::Cancelled(CancelKind::Graceful)
            | Ending::RuntimeExhausted
            | Ending::Interrupted => StopKind::Graceful,
        }
    }
}

/// What follows once an attempt's result is recorded.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// Verify it.
    Verify {
        /// Whether the execution's end is unknown and only declared outputs count.
        reconciling: bool,
    },
    /// Put it back.
    Restore(AfterRestore),
}

impl Goal {
    /// Whether the result of an attempt is verified whose end nobody saw.
    pub fn is_reconciling(&self) -> bool {
        matches!(self, Goal::Verify { reconciling: true })
    }
}

/// What follows once everything is put back.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AfterRestore {
    /// Another attempt, after a wait in milliseconds.
    Retry {
        /// Length of the wait.
        wait_ms: u64,
    },
    /// Back into the queue: the engine drains, or a rate limit has to end.
    Requeue,
    /// The end.
    Finish(Outcome),
}

/// What follows once the thread is written.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AfterSave {
    /// The commit.
    Commit,
    /// The end.
    Finish(Outcome),
}

/// Where a run is, with the data that belongs to that place.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum State {
    /// Waiting for its turn.
    Queued,
    /// Looking, touching nothing.
    Validating {
        /// Why it is being ended, if it is.
        ending: Option<Ending>,
    },
    /// Waiting for a person, with neither place nor lease nor tree.
    AwaitingApproval {
        /// When they were asked.
        since: Timestamp,
        /// How long they have to answer, in milliseconds.
        for_ms: u64,
    },
    /// Recording the baseline.
    Preparing {
        /// Why it is being ended, if it is.
        ending: Option<Ending>,
    },
    /// The command is running.
    Executing {
        /// Which attempt.
        attempt: u32,
        /// Why it is being ended, if it is.
        ending: Option<Ending>,
    },
    /// The result of the attempt is being recorded.
    Recording {
        /// Which attempt.
        attempt: u32,
        /// What follows.
        goal: Goal,
        /// Why it is being ended, if it is.
        ending: Option<Ending>,
    },
    /// The checks are running.
    Verifying {
        /// Which attempt.
        attempt: u32,
        /// Whether the execution's end is unknown.
        reconciling: bool,
        /// Why it is being ended, if it is.
        ending: Option<Ending>,
    },
    /// Waiting before the next attempt.
    BackingOff {
        /// The attempt that will start.
        attempt: u32,
        /// When the wait was set.
        since: Timestamp,
        /// Its length in milliseconds.
        for_ms: u64,
    },
    /// A hook that may block is running.
    PostHook {
        /// Its place from 0.
        index: u32,
        /// Why it is being ended, if it is.
        ending: Option<Ending>,
    },
    /// The thread is being written.
    Saving {
        /// What follows.
        next: AfterSave,
        /// Whether somebody asked to end the run meanwhile.
        cancelled: bool,
    },
    /// The commit's objects are being built.
    Committing {
        /// How often the branch moved on.
        rebuilds: u32,
    },
    /// The branch is being moved.
    Publishing {
        /// Id of the commit in hex.
        oid: String,
        /// Id of its parent in hex.
        parent: Option<String>,
        /// Full name of the branch.
        reference: String,
        /// How often the branch moved on.
        rebuilds: u32,
        /// Whether somebody asked to end it.
        #[serde(default)]
        cancelled: bool,
    },
    /// A hook that follows the commit is running.
    Announcing {
        /// Its place from 0.
        index: u32,
    },
    /// What the run changed is being put back.
    Restoring {
        /// What follows.
        then: AfterRestore,
    },
    /// Ended.
    Finished {
        /// How.
        outcome: Outcome,
        /// Whether thread and metrics are written.
        closed: bool,
    },
}

impl State {
    /// The state's name in tables and messages.
    pub const fn name(&self) -> &'static str {
        match self {
            State::Queued => "queued",
            State::Validating { .. } => "validating",
            State::AwaitingApproval { .. } => "awaiting_approval",
            State::Preparing { .. } => "preparing",
            State::Executing { .. } => "executing",
            State::Recording { .. } => "recording",
            State::Verifying { .. } => "verifying",
            State::BackingOff { .. } => "backing_off",
            State::PostHook { .. } => "post_hook",
            State::Saving { .. } => "saving",
            State::Committing { .. } => "committing",
            State::Publishing { .. } => "publishing",
            State::Announcing { .. } => "announcing",
            State::Restoring { .. } => "restoring",
            State::Finished { .. } => "finished",
        }
    }

    /// The phase that every interface shows for this state.
    pub const fn phase(&self) -> Phase {
        match self {
            State::Queued => Phase::Queued,
            State::Validating { .. } => Phase::Validating,
            State::AwaitingApproval { .. } => Phase::AwaitingApproval,
            State::Preparing { .. } => Phase::Preparing,
            State::Executing { .. } => Phase::Executing,
            State::Recording { .. } | State::Verifying { .. } => Phase::Verifying,
            State::BackingOff { .. } => Phase::BackingOff,
            State::PostHook { .. } => Phase::PostHook,
            State::Saving { .. } => Phase::Saving,
            State::Committing { .. } | State::Publishing { .. } | State::Announcing { .. } => {
                Phase::Committing
            }
            State::Restoring { .. } => Phase::Restoring,
            State::Finished { .. } => Phase::Finished,
        }
    }
}

/// What was learnt on the way and outlives the state it was learnt in.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Facts {
    /// Number of the newest attempt that was started.
    pub attempts: u32,
    /// Attempts that failed and count against the configured number.
    pub failed_attempts: u32,
    /// Attempts lost to crashes.
    pub crash_attempts: u32,
    /// Whether `preparing` began, so that there may be something to put back.
    pub touched: bool,
    /// Whether a result was recorded for the newest attempt.
    pub recorded: bool,
    /// How often the branch had moved when the result was to land.
    #[serde(default)]
    pub rounds: u32,
    /// What the landing waits for.
    #[serde(default)]
    pub waits_for: Option<String>,
    /// The first execution's start, for the limit of all attempts.
    pub executing_since: Option<Timestamp>,
    /// Turns of the conversation with a model that the newest attempt goes on with.
    #[serde(default)]
    pub turns: u32,
    /// Turns of all attempts.
    #[serde(default)]
    pub all_turns: u32,
    /// How many runs it has started.
    #[serde(default)]
    pub children: u32,
    /// What was spent on a model.
    #[serde(default)]
    pub spent: Spent,
    /// What is counted as spent if the request that is in flight is lost with its engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<Spent>,
    /// The limit that ended the conversation, until checks have told whether its work is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<Failure>,
    /// How often it has waited for the end of a rate limit.
    #[serde(default)]
    pub rate_waits: u32,
    /// When the rate limit ends that it waits for in the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_until: Option<Timestamp>,
    /// Whether the result stands though the execution's end is unknown.
    pub reconciled: bool,
    /// Why the newest failed attempt failed.
    pub last_failure: Option<Failure>,
    /// The five results.
    pub results: Results,
    /// Id of the commit in hex.
    pub commit: Option<String>,
    /// Id of the commit in hex that was ready to land, until another round begins.
    #[serde(default)]
    pub prepared: Option<String>,
    /// What would land, while a person is asked and after they have approved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<HeldResult>,
    /// What a person approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// Whether somebody dropped what was kept of it.
    #[serde(default)]
    pub discarded: bool,
    /// Things worth knowing that changed nothing.
    pub warnings: Vec<String>,
    /// How many paths could not be put back.
    pub not_restored: u32,
    /// How a person settled it.
    pub resolution: Option<Resolution>,
    /// How many events were applied.
    pub events: u32,
}

/// One run: its plan, where it is, what was learnt.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Run {
    /// What the machine decides by.
    pub plan: Plan,
    /// Where it is.
    pub state: State,
    /// What was learnt.
    pub facts: Facts,
}

impl Run {
    /// The phase that every interface shows.
    pub fn phase(&self) -> Phase {
        self.state.phase()
    }

    /// How it ended, once it has.
    pub fn outcome(&self) -> Option<&Outcome> {
        match &self.state {
            State::Finished { outcome, .. } => Some(outcome),
            _ => None,
        }
    }

    /// Id of the commit in hex that can land later: the run ended between its commit and its branch.
    pub fn kept_commit(&self) -> Option<&str> {
        let ended_before_landing = match self.outcome()? {
            Outcome::Cancelled => true,
            Outcome::Failed { failure } => failure.step == Step::Land,
            _ => false,
        };
        let prepared = self.facts.prepared.as_deref();
        let may_land = !self.is_unapproved(Gate::Landing) && !self.facts.discarded;
        prepared.filter(|_| ended_before_landing && may_land)
    }

    /// Whether a person has to approve what this gate stands before, and has not.
    pub fn is_unapproved(&self, gate: Gate) -> bool {
        self.plan.asks_before(gate) && self.facts.approval.is_none()
    }

    /// Until when a person is asked: (asked at, length in milliseconds).
    pub fn asked(&self) -> Option<(Timestamp, u64)> {
        match &self.state {
            State::AwaitingApproval { since, for_ms } => Some((*since, *for_ms)),
            _ => None,
        }
    }

    /// Whether it waits for its turn.
    pub fn is_queued(&self) -> bool {
        matches!(self.state, State::Queued)
    }

    /// Whether it has ended.
    pub fn is_finished(&self) -> bool {
        matches!(self.state, State::Finished { .. })
    }
}
