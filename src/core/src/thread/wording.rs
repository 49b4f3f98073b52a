//! Events as one line for people.

use super::line::OutputSize;
use crate::machine::{CancelKind, Event, HookVerdict, Resolution};
use crate::model::duration::show_millis;
use crate::model::evidence::{CheckRecord, Verdict};

/// Says how much output is missing in the place where this line is shown.
pub fn omitted(size: OutputSize) -> String {
    let lines = if size.lines == 1 { "line" } else { "lines" };
    let bytes = if size.bytes == 1 { "byte" } else { "bytes" };
    format!(
        "[{} {lines}, {} {bytes} omitted here: the output exceeds `output_bytes_max`]",
        size.lines, size.bytes
    )
}

/// The event as one line: its name, and what matters of it.
pub fn event(event: &Event) -> String {
    let name = event.name();
    let detail = match event {
        Event::Submitted { .. }
        | Event::Prepared { .. }
        | Event::Saved
        | Event::ApprovalExpired
        | Event::NothingToCommit
        | Event::CommitOvertaken
        | Event::LandingStopped
        | Event::RuntimeExhausted
        | Event::Interrupted
        | Event::OwnerLost
        | Event::Discarded { by: None }
        | Event::Closed => return name.to_owned(),
        Event::Admitted { admission } => format!("by {}", admission.owner),
        Event::Validated { checks, .. } | Event::NothingToDo { checks } => counts(checks),
        Event::ValidationFailed { failure, .. }
        | Event::PreparationFailed { failure }
        | Event::RecordingFailed { failure, .. }
        | Event::SaveFailed { failure }
        | Event::CommitFailed { failure }
        | Event::Conflicted { failure }
        | Event::ChecksFinished {
            failure: Some(failure),
            ..
        } => failure.to_string(),
        Event::ExecutionFinished { attempt, execution } => format!(
            "attempt {attempt}, {} after {}",
            execution.ended.describe(),
            show_millis(execution.duration_ms)
        ),
        Event::ResultRecorded { attempt, result } => {
            format!("attempt {attempt}, {} paths changed", result.changed_count)
        }
        Event::ChecksFinished {
            attempt,
            checks,
            failure: None,
            ..
        } => format!("attempt {attempt}, {}", counts(checks)),
        Event::BackoffElapsed { attempt } => format!("attempt {attempt} may start"),
        Event::HookFinished { index, verdict, .. } => hooked(*index, verdict),
        Event::PostCommitHookFinished { index, verdict, .. } => followed(*index, verdict),
        Event::CommitPrepared { oid, reference, .. } => format!("{oid} for {reference}"),
        Event::LandedLater { oid, by: None } | Event::Committed { oid, warning: None } => {
            oid.clone()
        }
        Event::LandedLater { oid, by: Some(by) } => format!("{oid}, by {by}"),
        Event::Discarded { by: Some(by) } => format!("by {by}"),
        Event::Committed {
            oid,
            warning: Some(warning),
        } => format!("{oid} ({warning})"),
        Event::TargetMoved { tip } | Event::LandedIn { tip } => tip.clone(),
        Event::Restored { report } if report.put_back == 0 && report.is_complete() => {
            return name.to_owned();
        }
        Event::Restored { report } => {
            let left = report.edited_since.len() + report.failed.len();
            format!("{} paths put back, {left} not", report.put_back)
        }
        Event::CancelRequested { kind, by } => match kind {
            CancelKind::Graceful => format!("by {by}"),
            CancelKind::Now => format!("by {by}, at once"),
        },
        Event::GivenUp { why } | Event::LandingWaiting { why, .. } => why.clone(),
        other => said(other),
    };
    format!("{name}: {detail}")
}

/// What people and models are asked and say.
fn said(event: &Event) -> String {
    match event {
        Event::TurnTaken { attempt, turn } => {
            let tokens = turn.spent.tokens.sum();
            format!("attempt {attempt}, turn {}, {tokens} tokens", turn.number)
        }
        Event::RequestSent { attempt, .. } => format!("attempt {attempt}"),
        Event::TurnFailed {
            attempt,
            code,
            spent,
        } => {
            let tokens = spent.tokens.sum();
            format!("attempt {attempt}, {code}, {tokens} tokens")
        }
        Event::ChildStarted { run, .. } | Event::ChildEnded { run, .. } => run.to_string(),
        Event::ToolsFinished { attempt, turn, .. } => format!("attempt {attempt}, turn {turn}"),
        Event::Held { result } => match &result.commit {
            Some(commit) => format!("{commit}, until a person approves it"),
            None => format!(
                "{} outputs, until a person approves them",
                result.outputs.len()
            ),
        },
        Event::Approved { approval } => match &approval.note {
            Some(note) => format!("by {}: {note}", approval.by),
            None => format!("by {}", approval.by),
        },
        Event::Denied { by, note } => format!("by {by}: {note}"),
        Event::Resolved {
            resolution,
            note,
            by,
        } => {
            let whose = by
                .as_ref()
                .map_or_else(String::new, |by| format!(" by {by}"));
            match resolution {
                Resolution::Succeeded => format!("as succeeded{whose}: {note}"),
                Resolution::Failed => format!("as failed{whose}: {note}"),
            }
        }
        other => other.name().to_owned(),
    }
}

fn hooked(index: u32, verdict: &HookVerdict) -> String {
    let number = u64::from(index) + 1;
    match verdict {
        HookVerdict::Passed => format!("hook {number} passed"),
        HookVerdict::Blocked { message } => format!("hook {number} blocked: {message}"),
        HookVerdict::Changed { message } => format!("hook {number} {message}"),
        HookVerdict::Warned { message } => format!("hook {number} warned: {message}"),
    }
}

/// A hook that follows the landing is named by its message, for it may be the push.
fn followed(index: u32, verdict: &HookVerdict) -> String {
    match verdict {
        HookVerdict::Warned { message } => message.clone(),
        other => hooked(index, other),
    }
}

fn counts(checks: &[CheckRecord]) -> String {
    let of = |verdict| {
        checks
            .iter()
            .filter(|check| check.verdict == verdict)
            .count()
    };
    let mut parts = vec![format!("{} checks passed", of(Verdict::Passed))];
    for (verdict, word) in [
        (Verdict::Failed, "failed"),
        (Verdict::Warned, "warned"),
        (Verdict::NotRun, "not run"),
    ] {
        let number = of(verdict);
        if number > 0 {
            parts.push(format!("{number} {word}"));
        }
    }
    parts.join(", ")
}
