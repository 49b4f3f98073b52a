//! The commit of a run, or why there is none.

use super::{DIM, Line, field, hint, next_step};
use crate::cli::io::Stream;
use crate::model::{Outcome, StepResult};
use crate::protocol::{RunDetail, RunSummary};

/// Commits of a skill that are shown.
const COMMITS_SHOWN_MAX: usize = 10;

/// Returns the command that shows the change of a mutating run that has ended without a commit.
pub(super) fn not_landed(summary: &RunSummary) -> Option<String> {
    let has_ended = summary.mutating && summary.outcome.is_some();
    let is_landed = summary.commit.is_some() || summary.kept_commit.is_some();
    (has_ended && !is_landed).then(|| format!("workerctl diff {}", summary.run.short()))
}

/// Returns a hint at the change of a run that was resolved: recording its outcome lands nothing.
pub(crate) fn unlanded_hint(summary: &RunSummary) -> Option<Line> {
    let diff = not_landed(summary)?;
    let kept = format!("refs/workerctl/runs/{}/commit", summary.run);
    Some(Line::of(DIM, "hint: ").text(format!(
        "its changes did not land: `{diff}` shows them, `git merge --squash {kept}` applies them"
    )))
}

pub(super) fn commit(out: &mut Stream<'_>, detail: &RunDetail) {
    let summary = &detail.summary;
    made_by_the_skill(out, summary);
    if let Some(commit) = &summary.commit {
        let branch = detail.branch.as_ref();
        let on = branch.map_or_else(String::new, |branch| format!("  on {branch}"));
        field(out, "commit", &format!("{commit}{on}"));
        if let Some(error) = &summary.push_error {
            field(out, "not pushed", error);
            hint(out, "`workerctl status` shows when the push is tried again");
        }
        return;
    }
    if let Some(kept) = &summary.kept_commit {
        field(out, "kept", &format!("{kept}, on no branch"));
        let is_told = matches!(summary.outcome, Some(Outcome::Unknown { .. }));
        if let Some(next) = next_step(summary).filter(|_| !is_told) {
            hint(out, &next);
        }
        return;
    }
    if !summary.commits_made.is_none() {
        return;
    }
    let succeeded = matches!(summary.outcome, Some(Outcome::Succeeded));
    match &detail.results.commit {
        StepResult::Skipped { why } if succeeded && summary.mutating => {
            field(out, "commit", &format!("none: {}", why.replace('_', " ")));
        }
        StepResult::Pending | StepResult::Passed | StepResult::Skipped { .. }
            if succeeded && !summary.mutating && detail.outputs.iter().any(|o| o.written) =>
        {
            field(
                out,
                "commit",
                "none: the skill is not mutating, its outputs stay in the work tree",
            );
        }
        StepResult::Pending
        | StepResult::Passed
        | StepResult::Failed { .. }
        | StepResult::Skipped { .. }
        | StepResult::Unknown { .. } => {}
    }
}

fn made_by_the_skill(out: &mut Stream<'_>, summary: &RunSummary) {
    let made = &summary.commits_made;
    let shown = made.newest.iter().rev().take(COMMITS_SHOWN_MAX);
    let shown: Vec<&String> = shown.collect();
    let left = made.count.saturating_sub(shown.len() as u64);
    if left > 0 {
        let text = format!("{left} earlier commits by the skill itself");
        field(out, "commit", &text);
    }
    for commit in shown.into_iter().rev() {
        field(out, "commit", &format!("{commit}  by the skill itself"));
    }
}
