//! What a person can do about a run that has ended.

use crate::model::Outcome;
use crate::protocol::RunSummary;

/// Returns what a person can do about a run whose outcome is unknown, or whose commit is on no branch.
pub(crate) fn next_step(summary: &RunSummary) -> Option<String> {
    let run = summary.run.short();
    if matches!(summary.outcome, Some(Outcome::Unknown { .. })) {
        let settle = format!("`workerctl resolve {run} --as succeeded|failed --note …`");
        return Some(if summary.mutating {
            format!("review its changes with `workerctl diff {run}`, then run {settle}")
        } else {
            format!("check whether the work was done, then run {settle}")
        });
    }
    summary.kept_commit.as_ref()?;
    if let Some(Outcome::Failed { failure }) = &summary.outcome
        && failure.code == "conflict"
    {
        // `land` puts exactly what was verified on the branch, so it is refused after a conflict.
        return Some(format!(
            "review `workerctl diff {run}`, run `git cherry-pick refs/workerctl/runs/{}/commit`, resolve the conflicts, then run `workerctl discard {run}`; or run it again: `workerctl retry {run}`",
            summary.run
        ));
    }
    Some(format!(
        "`workerctl land {run}` puts it on its branch, `workerctl discard {run}` drops it"
    ))
}
