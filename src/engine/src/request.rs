//! What others may ask of the core loop, and how they are answered.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use crate::machine::{Approval, CancelKind, Event};
use crate::model::schedule::{Overlap, Pause, Schedule};
use crate::model::{Diagnostic, RunId, RunSpec, Timestamp, WebSessionChanges};
use crate::protocol::{RunSummary, SlotView, Submitted};
use crate::queue::Needs;
use crate::schedule::Overrides;

/// Code of the answer to a request that was being stored when the engine had to end.
pub const ENDED_OPEN: &str = "engine_ended_open";

/// A run that is ready to be accepted.
#[derive(Debug)]
pub(super) struct Submission {
    /// Its frozen specification; the run id is given by the loop's own generator beforehand.
    pub spec: Arc<RunSpec>,
    /// What it needs before it may start.
    pub needs: Needs,
    /// Its idempotency key.
    pub key: Option<String>,
}

/// A run of a schedule that a person asks for.
#[derive(Debug)]
pub(super) struct ManualTrigger {
    /// The schedule.
    pub schedule: String,
    /// The run.
    pub submission: Submission,
    /// Its slot.
    pub slot: Timestamp,
    /// Whether that is one of the schedule's own which is past, rather than now.
    pub is_past: bool,
    /// Instead of the schedule's own.
    pub overlap: Option<Overlap>,
    /// Policies that are not respected.
    pub overrides: Overrides,
}

/// A request to the core loop.
pub(super) enum Request {
    /// Accept a run.
    Submit(Box<Submission>),
    /// End a run.
    Cancel {
        /// Which.
        run: RunId,
        /// How firmly.
        kind: CancelKind,
        /// Who asks.
        by: String,
    },
    /// Approve what a run waits with.
    Approve {
        /// Which.
        run: RunId,
        /// Who, and what they were shown.
        approval: Approval,
    },
    /// Refuse it.
    Deny {
        /// Which.
        run: RunId,
        /// Who.
        by: String,
        /// Why.
        note: String,
    },
    /// Add what a person did about an ended run to its journal.
    Settled {
        /// Which.
        run: RunId,
        /// `Resolved`, `LandedLater` or `Discarded`.
        event: Event,
    },
    /// Definitions were read again, at somebody's request or because they changed: the queue has these limits, and what
    /// waits to be told is tried at once.
    Reloaded {
        /// How many runs may be active.
        parallel_max: u32,
        /// How many runs may wait.
        waiting_max: u32,
    },
    /// These schedules are active from now on.
    Schedules(Vec<Arc<Schedule>>),
    /// No definition has an error: what is remembered of schedules without one is of schedules that have gone.
    CloseAbsent,
    /// Pause a schedule, or let it go on.
    Pause {
        /// Its id.
        schedule: String,
        /// Why; absent: it goes on.
        pause: Option<Pause>,
    },
    /// Accept a run of a schedule that a person asks for.
    Trigger(Box<ManualTrigger>),
    /// What a schedule waits for may have changed; absent: of every one.
    Hint(Option<String>),
    /// Sessions of the web page begin and end.
    WebSessions(WebSessionChanges),
    /// Settle what earlier engines lost.
    Settle,
    /// Start nothing new, let what runs end, then end the loop.
    Drain,
}

impl Request {
    /// Whether it needs every run of earlier engines to be settled first.
    pub(super) fn changes_runs(&self) -> bool {
        match self {
            Request::Submit(_)
            | Request::Trigger(_)
            | Request::Cancel { .. }
            | Request::Approve { .. }
            | Request::Deny { .. }
            | Request::Settled { .. }
            | Request::Settle => true,
            Request::Reloaded { .. }
            | Request::Schedules(_)
            | Request::CloseAbsent
            | Request::Pause { .. }
            | Request::Hint(_)
            | Request::WebSessions(_)
            | Request::Drain => false,
        }
    }
}

/// The answer to a request, given after the commit that it needed.
#[derive(Debug, Clone)]
pub(super) enum Answer {
    /// A run is durable.
    Submitted(Submitted),
    /// A run as it is now.
    Run(Box<RunSummary>),
    /// A slot has its row.
    Slot(SlotView),
    /// It is done.
    Done,
}

/// A request with the way back to who asked.
pub(super) struct Envelope {
    /// The request.
    pub request: Request,
    /// Takes exactly one answer; nobody may be listening any more.
    pub reply: SyncSender<Result<Answer, Diagnostic>>,
}

impl Envelope {
    /// Answers; a client that has vanished changes nothing.
    pub(super) fn answer(self, answer: Result<Answer, Diagnostic>) {
        let _ = self.reply.try_send(answer);
    }
}
