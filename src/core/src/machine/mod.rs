//! The state machine of one run: state, event, `apply`, action. Pure, total, synchronous.
//!
//! Live work and recovery are the same code: fold the journal with [`Run::apply`], ask
//! [`Run::next_action`], and where an attempt may have been running record [`Event::OwnerLost`].

mod action;
mod apply;
mod approval;
mod attempt;
mod conversation;
mod ending;
mod event;
mod landing;
mod rate_limit;
mod state;

pub use action::Action;
pub use apply::FoldError;
pub use event::{Admission, Approval, CancelKind, Entry, Event, HookVerdict, Resolution};
pub use state::{AfterRestore, AfterSave, Ending, Facts, Goal, Run, State, StopKind};

/// Version of the machine that a journal is written under.
pub const MACHINE_VERSION: u32 = 7;

/// How many events one journal may hold; a run that would exceed it ends as `unknown`.
pub const JOURNAL_EVENTS_MAX: u32 = 10_000;

/// How many attempts may be lost to crashes before a run is given up.
pub const CRASH_ATTEMPTS_MAX: u32 = 3;

/// How often a result may be put on a branch that has moved, the first time included.
pub const LANDING_ROUNDS_MAX: u32 = 3;

/// How often machines before version 3 built a commit again because its branch had moved on.
pub const COMMIT_REBUILDS_MAX: u32 = 20;

/// Code of a recording that failed because a power cut has torn the tree with what the attempt had left; and why such a
/// run is unknown.
pub const TREE_LOST: &str = "tree_lost";

/// An event that the state does not accept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{event}` is not accepted in `{state}`")]
pub struct IllegalEvent {
    /// Name of the state.
    pub state: &'static str,
    /// Name of the event.
    pub event: &'static str,
}
