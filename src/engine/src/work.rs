//! One action as it is handed to an executor thread, and the port that performs it.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::machine::{Action, Entry, Event, Run};
use crate::model::outcome::{Failure, Step};
use crate::model::schedule::{Pause, Schedule, SlotRow};
use crate::model::{Diagnostic, FailedPush, Notices, RunId, RunSpec, Timestamp};
use crate::process::StopHandle;
use crate::protocol::{ForgetRequest, Forgot, NotifyTest, Probe};
use crate::thread::metrics::RefusalLine;

/// One action with everything that it needs.
#[derive(Clone)]
pub(super) struct Work {
    /// The run's specification.
    pub spec: Arc<RunSpec>,
    /// Its journal so far, all of it committed.
    pub entries: Arc<Vec<Arc<Entry>>>,
    /// Where it is and what was learnt so far.
    pub run: Arc<Run>,
    /// What to do.
    pub action: Action,
    /// Ends the action's processes from outside.
    pub stop: StopHandle,
}

impl Work {
    /// What an executor goes on with at once after `event`: its result is recorded with the same commit.
    pub(super) fn following(&self, event: &Event) -> Option<Work> {
        let at = self.entries.last()?.at;
        let run = self.run.apply(at, event).ok()?;
        let action = run.next_action().filter(Action::may_precede_commit)?;
        // Outputs are replaced only after the loop has decided that the run neither exceeds its time nor is cancelled.
        if matches!(action, Action::Save { .. }) && self.spec.stages_outputs() {
            return None;
        }
        Some(Work {
            run: Arc::new(run),
            action,
            ..self.clone()
        })
    }
}

impl Work {
    /// What its wake gate found to do, once it was asked.
    pub(super) fn found_to_do(&self) -> Option<&str> {
        let mut events = self.entries.iter().map(|entry| &entry.event);
        events.find_map(|event| match event {
            Event::Validated { wake, .. } => wake.as_deref(),
            _ => None,
        })
    }
}

/// A notice to be told, the first that waits, with everything that its command is told.
#[derive(Clone)]
pub(super) struct Telling {
    /// What waits.
    pub notices: Notices,
    /// What is known of its schedule; absent: there is none, or none active.
    pub schedule: Option<OfSchedule>,
    /// Ends the telling from outside.
    pub stop: StopHandle,
    /// Whether nothing of it has happened.
    pub is_test: bool,
}

/// What is known of a schedule of which something is told.
#[derive(Clone)]
pub(super) struct OfSchedule {
    /// Its definition.
    pub definition: Arc<Schedule>,
    /// When it last succeeded.
    pub succeeded_at: Option<Timestamp>,
    /// Why nothing is due.
    pub pause: Option<Pause>,
    /// The newest row of its ledger.
    pub newest: Option<SlotRow>,
}

/// What became of a notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NoticeResult {
    /// Its command exited with 0, or its web server answered with 2xx.
    Delivered,
    /// Nobody is named for it.
    Unwanted,
    /// It was stopped before it had an end.
    Stopped,
    /// It failed.
    Failed {
        /// How, and the last that was said.
        why: String,
        /// How long a web server asks to wait.
        wait_ms: Option<u64>,
    },
}

/// A push of a branch whose last push failed.
pub(super) struct Pushing {
    /// The branch.
    pub push: FailedPush,
    /// Ends the push from outside.
    pub stop: StopHandle,
}

/// How such a push ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PushResult {
    /// The remote has the commit.
    Pushed,
    /// It was stopped.
    Stopped,
    /// It failed.
    Failed {
        /// Why.
        message: String,
    },
}

/// Performs actions; called on many threads at once, bounded in time and bytes.
pub(super) trait Effects: Send + Sync {
    /// Performs one action and says what happened.
    fn perform(&self, work: &Work) -> Event;
    /// Tries once to land the commit that was kept of a run that has ended; what is in the way is a
    /// `LandingWaiting`.
    fn land_kept(&self, work: &Work, oid: &str, parent: Option<&str>) -> Result<Event, Failure>;
    /// Tells a notice, to its end.
    fn tell(&self, telling: &Telling) -> NoticeResult;
    /// Pushes a branch once.
    fn push(&self, pushing: &Pushing) -> PushResult;
    /// Tells a test in each way that is configured, and says what was answered.
    ///
    /// # Errors
    /// There is no such way, or there are too many.
    fn test_notify(&self, _test: &NotifyTest) -> Result<Vec<Probe>, Diagnostic> {
        Ok(Vec::new())
    }
    /// Makes thread and metrics files durable as they are now. Returns the ended runs whose files find no space yet.
    fn sync_files(&self) -> BTreeSet<RunId>;
    /// Forgets what `retention` does not keep, as much as one request may take; or only tells what that is.
    fn forget(&self, _request: &ForgetRequest) -> Result<Forgot, Diagnostic> {
        Ok(Forgot::default())
    }
    /// Closes what is held open only to be quicker: what somebody removes meanwhile takes space until then.
    fn let_go(&self) {}
    /// Writes out what is held back of a run's log, for somebody who reads the file.
    fn flush_log(&self, run: RunId);
    /// Keeps that a request became no run.
    fn refused(&self, _line: &RefusalLine) {}
}

/// The event that says that `action` could not be performed at all.
pub(super) fn not_performed(action: &Action, code: &str, message: &str) -> Event {
    let failure = |step| Failure::new(step, code, message);
    let warned = || crate::machine::HookVerdict::Warned {
        message: message.to_owned(),
    };
    match action {
        Action::Validate => Event::ValidationFailed {
            failure: failure(Step::Validate),
            checks: Vec::new(),
        },
        Action::Prepare => Event::PreparationFailed {
            failure: failure(Step::Prepare),
        },
        Action::Execute { attempt } => Event::ExecutionFinished {
            attempt: *attempt,
            execution: crate::model::evidence::Execution {
                ended: crate::model::evidence::Ended::NotStarted {
                    code: code.to_owned(),
                    message: message.to_owned(),
                },
                duration_ms: 0,
                stdout_bytes: 0,
                stderr_bytes: 0,
                dropped_bytes: 0,
                survivors_ended: 0,
                stderr_tail: String::new(),
                sandbox_level: None,
            },
        },
        Action::Record { attempt } => Event::RecordingFailed {
            attempt: *attempt,
            failure: failure(Step::Record),
        },
        Action::Verify { attempt, .. } => Event::ChecksFinished {
            attempt: *attempt,
            checks: Vec::new(),
            failure: Some(failure(Step::Verify)),
            changed: false,
        },
        Action::RunHook { index } => Event::HookFinished {
            index: *index,
            verdict: warned(),
            sandbox_level: None,
        },
        Action::Save { .. } => Event::SaveFailed {
            failure: failure(Step::Save),
        },
        Action::PrepareCommit | Action::PublishCommit { .. } => Event::CommitFailed {
            failure: failure(Step::Commit),
        },
        Action::RunPostCommitHook { index } => Event::PostCommitHookFinished {
            index: *index,
            verdict: warned(),
            sandbox_level: None,
        },
        Action::Restore => Event::Restored {
            report: crate::model::evidence::RestoreReport {
                failed: vec![message.to_owned()],
                ..Default::default()
            },
        },
        Action::Close => Event::Closed,
    }
}
