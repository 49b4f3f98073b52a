//! What a request is told when the loop does not answer it.

use crate::model::{Diagnostic, Kind};

/// No run is called so.
pub(super) fn no_such_run(text: &str) -> Diagnostic {
    let shown: String = text.chars().take(64).filter(|c| !c.is_control()).collect();
    Diagnostic::new(Kind::NotFound, "run_not_found", format!("no run `{shown}`"))
        .hint("`workerctl runs` lists them")
}

/// More requests wait than the loop takes.
pub(super) fn busy() -> Diagnostic {
    let message = "too many requests wait for the engine";
    Diagnostic::new(Kind::Conflict, "busy", message).hint("try again in a moment")
}

/// The loop is gone without an answer; a change may have been stored before.
pub(super) fn ended(changes: bool) -> Diagnostic {
    if changes {
        let message = "whether this was accepted is open: the engine has ended";
        return Diagnostic::new(Kind::Open, super::ENDED_OPEN, message);
    }
    Diagnostic::new(Kind::Unreachable, "ended", "the engine has ended")
}

/// A request that is applied and cannot be stored: it will be once there is space, unless the engine ends before.
pub(super) fn open() -> Diagnostic {
    Diagnostic::new(
        Kind::Open,
        "disk_full_open",
        "the disk is full: whether this is accepted is open",
    )
    .hint("free some space, then look: `workerctl runs`")
    .hint("a submission with an idempotency key can be repeated safely with the same key")
}

/// An answer to another question.
pub(super) fn unexpected() -> Diagnostic {
    Diagnostic::new(
        Kind::Internal,
        "internal",
        "the engine answered something else",
    )
}
