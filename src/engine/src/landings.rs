//! Landings that a lost engine left half-way: whoever comes first completes them or takes them back, so that
//! git works again in the checkouts.

use std::path::{Path, PathBuf};

use workerctl_landing::{FileJournal, Plan, Recovered, Unobserved, held_locks, recover};

use crate::git::{self, GitError};

/// Directory of the records of landings in the state directory, one file for each run.
pub(super) const DIRECTORY: &str = "landings";

/// A landing that was begun, and that nobody is ending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftLanding {
    /// The branch, as a full name.
    pub branch: String,
    /// The run.
    pub run: String,
    /// The lock files of git's that it holds.
    pub locks: Vec<PathBuf>,
}

/// The landings that were begun and have not ended, but for those that somebody is at work on.
pub fn left_landings(state_dir: &Path) -> Vec<LeftLanding> {
    let open = open_landings(state_dir).into_iter();
    let left = open.filter(|(_, plan)| {
        let lease = git::RepositoryLease::of_repository(&plan.common_dir, "looking");
        lease.is_ok()
    });
    let told = left.map(|(_, plan)| LeftLanding {
        locks: held_locks(&plan),
        branch: plan.target,
        run: plan.run.to_string(),
    });
    told.collect()
}

/// The landings that were begun and have not ended, each with its record.
fn open_landings(state_dir: &Path) -> Vec<(PathBuf, Plan)> {
    let entries = std::fs::read_dir(state_dir.join(DIRECTORY));
    let paths = entries.into_iter().flatten().flatten().map(|e| e.path());
    let open = paths.filter_map(|path| match FileJournal::new(&path).open_plan() {
        Ok(plan) => Some((path, plan?)),
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "the record of a landing cannot be read");
            None
        }
    });
    open.collect()
}

/// Ends every landing that was left; what cannot be ended now is tried again by the run's own engine.
pub fn recover_left_landings(state_dir: &Path) {
    for (path, plan) in open_landings(state_dir) {
        let recovered = git::RepositoryLease::of_repository(&plan.common_dir, "recovering")
            .map_err(Box::<dyn std::error::Error>::from)
            .and_then(|_lease| Ok(recover(&plan, &mut FileJournal::new(&path), &Unobserved)?));
        let branch = &plan.target;
        match recovered {
            Ok(Recovered::Landed { commit, .. }) => {
                tracing::info!(%commit, branch, "a landing that a lost engine left was completed");
            }
            Ok(Recovered::TakenBack { obstacle, .. }) => {
                tracing::info!(branch, %obstacle, "a landing that a lost engine left was taken back");
            }
            Ok(Recovered::Blocked { obstacle }) => {
                tracing::warn!(branch, %obstacle, "a landing that a lost engine left waits");
            }
            Err(error) if is_held(error.as_ref()) => {}
            Err(error) => {
                tracing::warn!(branch, %error, "a landing that a lost engine left cannot be ended yet");
            }
        }
    }
}

/// Whether somebody else is at work in the repository, who ends it.
fn is_held(error: &(dyn std::error::Error + 'static)) -> bool {
    let error = error.downcast_ref::<GitError>();
    matches!(error, Some(GitError::Locked { .. }))
}
