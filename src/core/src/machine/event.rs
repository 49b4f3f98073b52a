//! Facts about a run, recorded in its journal.

use serde::{Deserialize, Serialize};

use crate::model::agent::{Spent, TurnRecord};
use crate::model::evidence::{CheckRecord, Execution, HeldResult, Recorded, RestoreReport};
use crate::model::outcome::Failure;
use crate::model::spec::Plan;
use crate::model::{RunId, Timestamp};

/// One line of a journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Counted from 0 within the run.
    pub seq: u32,
    /// Wall clock when it was recorded.
    pub at: Timestamp,
    /// What happened.
    pub event: Event,
}

/// Who may act on a run, and since when: an owner's name and a token that only grows.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Admission {
    /// The engine, as its locks name it.
    pub owner: String,
    /// Fencing token: grows with every engine that opens the store.
    pub fence: u64,
}

/// What a person said when they were asked.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Approval {
    /// SHA-256 in hex of what they were shown: skill, inputs, commands and result.
    pub digest: String,
    /// Who, as the system knows them.
    pub by: String,
    /// What they added, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// How firmly a run is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelKind {
    /// TERM, grace, KILL.
    Graceful,
    /// KILL at once.
    Now,
}

/// What a hook said.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum HookVerdict {
    /// Exit code 0.
    Passed,
    /// Exit code 2: the run is to fail.
    Blocked {
        /// The last of its standard error, masked.
        message: String,
    },
    /// It changed what is to be committed, whatever its exit code: the run is to fail.
    Changed {
        /// What it changed.
        message: String,
    },
    /// Anything else: noted, no more.
    Warned {
        /// What happened.
        message: String,
    },
}

/// How a person settled an unknown outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resolution {
    /// The work was done.
    Succeeded,
    /// It was not.
    Failed,
}

/// A recorded fact, past tense.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// The run was accepted.
    Submitted {
        /// Version of the machine that writes this journal.
        machine: u32,
        /// What the machine decides by.
        plan: Plan,
    },
    /// Its turn came.
    Admitted {
        /// Who acts on it.
        admission: Admission,
    },
    /// Nothing stands against it.
    Validated {
        /// Checks that ran before anything was touched.
        checks: Vec<CheckRecord>,
        /// What its wake gate found to do, masked; absent where none was asked, and in older journals.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wake: Option<String>,
    },
    /// Nothing stands against it, and its wake gate found nothing to do.
    NothingToDo {
        /// Checks that ran before anything was touched.
        checks: Vec<CheckRecord>,
    },
    /// Something stands against it.
    ValidationFailed {
        /// What.
        failure: Failure,
        /// Checks that ran, the failing one last.
        checks: Vec<CheckRecord>,
    },
    /// The baseline is recorded.
    Prepared {
        /// What the git and output rooms need later; opaque here.
        baseline: serde_json::Value,
    },
    /// The baseline could not be recorded.
    PreparationFailed {
        /// Why.
        failure: Failure,
    },
    /// A request is about to be sent to a model, or a program has one in flight. It is durable before the request is sent.
    RequestSent {
        /// Which attempt.
        attempt: u32,
        /// What is counted if nothing else tells what it cost, because the engine was lost: an estimate, which replaces
        /// that of an earlier request.
        spent: Spent,
    },
    /// A turn with a model has ended; its tools run after this is durable.
    TurnTaken {
        /// Which attempt.
        attempt: u32,
        /// What was said, and what it cost.
        turn: TurnRecord,
    },
    /// A request failed, and may have cost something all the same; or a program tells later what it cost.
    TurnFailed {
        /// Which attempt.
        attempt: u32,
        /// Stable code.
        code: String,
        /// What it cost.
        spent: Spent,
    },
    /// The tools that a turn asked for have ended.
    ToolsFinished {
        /// Which attempt.
        attempt: u32,
        /// Number of the turn.
        turn: u32,
        /// What each said; opaque here.
        results: serde_json::Value,
    },
    /// The model has started a run of another skill.
    ChildStarted {
        /// Which attempt.
        attempt: u32,
        /// The child.
        run: RunId,
    },
    /// That run has ended.
    ChildEnded {
        /// Which attempt.
        attempt: u32,
        /// The child.
        run: RunId,
        /// Turns that it took.
        turns: u32,
        /// What it has spent.
        spent: Spent,
        /// How it ended, where it did not succeed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failed: Option<String>,
    },
    /// The last process of an attempt is dead.
    ExecutionFinished {
        /// Which attempt.
        attempt: u32,
        /// How it went.
        execution: Execution,
    },
    /// The result of an attempt is recorded.
    ResultRecorded {
        /// Which attempt.
        attempt: u32,
        /// What it left.
        result: Recorded,
    },
    /// The result of an attempt could not be recorded.
    RecordingFailed {
        /// Which attempt.
        attempt: u32,
        /// Why.
        failure: Failure,
    },
    /// The checks of an attempt ended.
    ChecksFinished {
        /// Which attempt.
        attempt: u32,
        /// Each with its evidence, those of outputs first.
        checks: Vec<CheckRecord>,
        /// A failure that is no check's, such as a result changed by a check.
        failure: Option<Failure>,
        /// Whether the repository is no longer as it was recorded, so that it has to be recorded again
        /// before it is put back.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        changed: bool,
    },
    /// The wait before an attempt is over.
    BackoffElapsed {
        /// The attempt that may start.
        attempt: u32,
    },
    /// A hook that may block ended.
    HookFinished {
        /// Its place from 0.
        index: u32,
        /// What it said.
        verdict: HookVerdict,
        /// The level of the walls that its command had; absent where none ran, and in older journals.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sandbox_level: Option<u32>,
    },
    /// The thread is written.
    Saved,
    /// The thread could not be written.
    SaveFailed {
        /// Why.
        failure: Failure,
    },
    /// The commit's objects are durable; its id will be the same if built again.
    CommitPrepared {
        /// Id of the commit in hex.
        oid: String,
        /// Id of its parent in hex; absent on an unborn branch.
        parent: Option<String>,
        /// Full name of the branch.
        reference: String,
    },
    /// The result is complete and put aside, with nothing of it in a tree, until a person has approved it.
    Held {
        /// What would land.
        result: HeldResult,
    },
    /// A person approved what was shown to them.
    Approved {
        /// Who, and what it was.
        approval: Approval,
    },
    /// A person refused.
    Denied {
        /// Who.
        by: String,
        /// Why.
        note: String,
    },
    /// Nobody answered in time.
    ApprovalExpired,
    /// Nothing changed, so nothing is committed.
    NothingToCommit,
    /// The branch moved on before it could be swapped; of machines before version 3.
    CommitOvertaken,
    /// The branch moved on, and changed none of the run's paths: its change is put on the new tip and
    /// verified there.
    TargetMoved {
        /// Id of the tip in hex.
        tip: String,
    },
    /// The branch moved on and changed paths of the run.
    Conflicted {
        /// What, for people.
        failure: Failure,
    },
    /// Something is in the way of the landing; it is tried again.
    LandingWaiting {
        /// Stable code.
        code: String,
        /// What, for people.
        why: String,
    },
    /// Somebody asked to end it while it waited, and nothing of it has landed.
    LandingStopped,
    /// The branch holds the same already, in a commit of somebody else's.
    LandedIn {
        /// Id of the tip in hex.
        tip: String,
    },
    /// The commit is durable on its branch.
    Committed {
        /// Its id in hex.
        oid: String,
        /// What could not be refreshed in the user's index, if anything.
        warning: Option<String>,
    },
    /// The commit could not be made.
    CommitFailed {
        /// Why.
        failure: Failure,
    },
    /// A hook that follows the commit ended.
    PostCommitHookFinished {
        /// Its place from 0.
        index: u32,
        /// What it said; a block is only a warning here.
        verdict: HookVerdict,
        /// The level of the walls that its command had; absent where none ran, and in older journals.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sandbox_level: Option<u32>,
    },
    /// What could be put back is put back.
    Restored {
        /// What was and what was not.
        report: RestoreReport,
    },
    /// Somebody asked to end it.
    CancelRequested {
        /// How firmly.
        kind: CancelKind,
        /// Who, for people.
        by: String,
    },
    /// The limit of all attempts was reached.
    RuntimeExhausted,
    /// The engine drains and ended the running command.
    Interrupted,
    /// An engine found the run without its owner; every process of it is dead.
    OwnerLost,
    /// Nobody can tell how far it got, and nothing goes on with it: its outcome is unknown.
    GivenUp {
        /// Stable code.
        why: String,
    },
    /// A person settled an unknown outcome.
    Resolved {
        /// As what.
        resolution: Resolution,
        /// Why.
        note: String,
        /// Who, as the system knows them; absent in older journals.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// The commit that was kept of an ended run is durable on its branch.
    LandedLater {
        /// Its id in hex.
        oid: String,
        /// Who asked for it, as the system knows them; absent in older journals.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// What was kept of an ended run is dropped.
    Discarded {
        /// Who asked for it, as the system knows them; absent in older journals.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// Thread and metrics of a finished run are written.
    Closed,
}

impl Event {
    /// The event's name in journals, threads and messages.
    pub const fn name(&self) -> &'static str {
        match self {
            Event::Submitted { .. } => "submitted",
            Event::Admitted { .. } => "admitted",
            Event::Validated { .. } => "validated",
            Event::NothingToDo { .. } => "nothing_to_do",
            Event::ValidationFailed { .. } => "validation_failed",
            Event::Prepared { .. } => "prepared",
            Event::PreparationFailed { .. } => "preparation_failed",
            Event::RequestSent { .. } => "request_sent",
            Event::TurnTaken { .. } => "turn_taken",
            Event::TurnFailed { .. } => "turn_failed",
            Event::ToolsFinished { .. } => "tools_finished",
            Event::ChildStarted { .. } => "child_started",
            Event::ChildEnded { .. } => "child_ended",
            Event::ExecutionFinished { .. } => "execution_finished",
            Event::ResultRecorded { .. } => "result_recorded",
            Event::RecordingFailed { .. } => "recording_failed",
            Event::ChecksFinished { .. } => "checks_finished",
            Event::BackoffElapsed { .. } => "backoff_elapsed",
            Event::HookFinished { .. } => "hook_finished",
            Event::Saved => "saved",
            Event::SaveFailed { .. } => "save_failed",
            Event::CommitPrepared { .. } => "commit_prepared",
            Event::Held { .. } => "held",
            Event::Approved { .. } => "approved",
            Event::Denied { .. } => "denied",
            Event::ApprovalExpired => "approval_expired",
            Event::NothingToCommit => "nothing_to_commit",
            Event::CommitOvertaken => "commit_overtaken",
            Event::TargetMoved { .. } => "target_moved",
            Event::Conflicted { .. } => "conflicted",
            Event::LandingWaiting { .. } => "landing_waiting",
            Event::LandingStopped => "landing_stopped",
            Event::LandedIn { .. } => "landed_in",
            Event::Committed { .. } => "committed",
            Event::CommitFailed { .. } => "commit_failed",
            Event::PostCommitHookFinished { .. } => "post_commit_hook_finished",
            Event::Restored { .. } => "restored",
            Event::CancelRequested { .. } => "cancel_requested",
            Event::RuntimeExhausted => "runtime_exhausted",
            Event::Interrupted => "interrupted",
            Event::OwnerLost => "owner_lost",
            Event::GivenUp { .. } => "given_up",
            Event::Resolved { .. } => "resolved",
            Event::LandedLater { .. } => "landed_later",
            Event::Discarded { .. } => "discarded",
            Event::Closed => "closed",
        }
    }
}
