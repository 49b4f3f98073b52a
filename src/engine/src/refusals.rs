//! What a request is told when the loop does not answer it.

use crate::catalog::Catalog;
use crate::git::GitError;
use crate::model::diagnostic::chain;
use crate::model::schedule::cut;
use crate::model::{Diagnostic, Kind, RunId, RunSpec, Timestamp};
use crate::thread::metrics::{METRICS_VERSION, RefusalLine};

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
        let message = "it is unknown whether the request was accepted: the engine has ended";
        return Diagnostic::new(Kind::Open, super::ENDED_OPEN, message);
    }
    Diagnostic::new(Kind::Unreachable, "ended", "the engine has ended")
}

/// A request that is applied and cannot be stored: it will be once there is space, unless the engine ends before.
pub(super) fn open() -> Diagnostic {
    Diagnostic::new(
        Kind::Open,
        "disk_full_open",
        "there is no space for the store: it is not yet known whether the request is accepted",
    )
    .hint("`workerctl status` shows what is full; free some space, then check the result with `workerctl runs`")
    .hint("a submission with an idempotency key can be repeated safely with the same key")
}

/// Something was agreed to, and something else would run.
pub(super) fn changed(skill: &str) -> Diagnostic {
    let message = format!("`{skill}`, its inputs or its branch changed after they were agreed to");
    Diagnostic::new(Kind::Conflict, "changed", message).hint("review it again")
}

/// Refuses a command of `caller` that would end a run which it did not submit.
pub(super) fn unless_started_by(caller: RunId, spec: &RunSpec) -> Result<(), Diagnostic> {
    let parent = spec.parent.as_ref().map(|parent| parent.run);
    if spec.submitter_run == Some(caller) || parent == Some(caller) {
        return Ok(());
    }
    let message = format!(
        "run {} was not submitted by run {}: a command of a run cancels only what its run submitted",
        spec.run.short(),
        caller.short()
    );
    Err(
        Diagnostic::new(Kind::Blocked, "person_needed", message).hint(format!(
            "cancel it outside of a run: `workerctl cancel {}`",
            spec.run.short()
        )),
    )
}

/// An answer to another question.
pub(super) fn unexpected() -> Diagnostic {
    Diagnostic::new(
        Kind::Internal,
        "internal",
        "the engine answered something else",
    )
}

/// Why the repository is not what is needed, and what helps.
pub(super) fn of_git(error: &GitError) -> Diagnostic {
    let refused = Diagnostic::new(Kind::Blocked, error.code(), chain(error));
    match error.hint() {
        Some(hint) => refused.hint(hint),
        None => refused,
    }
}

/// Most bytes of a skill's name that are kept where there is no such skill.
const ASKED_BYTES_MAX: usize = 200;

/// The line of metrics of a request that became no run: whoever counts how a skill fares sees these too. What the
/// engine itself cannot do is no refusal.
pub(super) fn line(
    catalog: &Catalog,
    asked: &str,
    refused: &Diagnostic,
    now: Timestamp,
) -> Option<RefusalLine> {
    let by_us = [Kind::Unreachable, Kind::Open, Kind::Internal];
    if by_us.contains(&refused.kind) {
        return None;
    }
    let (worker, skill) = match super::lookup::find_skill(catalog, asked) {
        Ok(skill) => (
            Some(skill.address.worker.clone()),
            skill.address.skill.clone(),
        ),
        Err(_) => (None, cut(asked, ASKED_BYTES_MAX).to_owned()),
    };
    Some(RefusalLine {
        version: METRICS_VERSION,
        worker,
        skill,
        outcome: "refused",
        code: refused.code.clone(),
        submitted_at: now.rfc3339(),
    })
}
