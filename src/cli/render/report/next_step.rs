//! What a person can do about a run that has ended.

use crate::model::Outcome;
use crate::protocol::RunSummary;

/// Returns what a person can do about a run whose outcome is unknown, or whose commit is on no branch.
pub(crate) fn next_step(summary: &RunSummary) -> Option<String> {
    let run = summary.run.short();
    if matches!(summary.outcome, Some(Outcome::Unknown { .. })) {
        let settle = format!("`workerctl resolve {run} --as succeeded|failed --note …`");
        return Some(if summary.mutating {
            format!("look at its changes, `workerctl diff {run}`, then {settle}")
        } else {
            format!("look whether the work was done, then {settle}")
        });
    }
    summary.kept_commit.as_ref()?;
    if let Some(Outcome::Failed { failure }) = &summary.outcome
        && failure.code == "conflict"
    {
        // `land` puts exactly what was verified on the branch, so it is refused after a conflict.
        return Some(format!(
            "`workerctl diff {run}`, `git cherry-pick refs/workerctl/runs/{}/commit`, resolve, then `workerctl discard {run}`; or `workerctl retry {run}`",
            summary.run
        ));
    }
    Some(format!(
        "`workerctl land {run}` puts it on its branch, `workerctl discard {run}` drops it"
    ))
}
