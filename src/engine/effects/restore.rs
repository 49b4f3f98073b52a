//! Restoring: puts back what the run changed, path by path, only where nobody edited since.

use std::path::Path;
use std::time::Duration;

use super::super::work::Work;
use super::execute::{stdout_path, temporary_beside};
use super::{Performer, git_message, repository_gone};
use crate::git::{self, GitError, IndexRefresh, RepoPath};
use crate::machine::Event;
use crate::model::evidence::RestoreReport;
use crate::model::outcome::Step;

/// How often a restore is tried again that failed for want of space, as the store does.
const RETRY_FULL: Duration = Duration::from_secs(5);

/// How often it is looked meanwhile whether the engine ends.
const LOOK: Duration = Duration::from_millis(100);

impl Performer {
    /// Puts back, and again until there is space for it or the engine ends: then the next one goes on.
    pub(super) fn restore(&self, work: &Work) -> Event {
        if let (Some(path), Ok(beneath)) = (stdout_path(&work.spec), self.beneath()) {
            let _ = beneath.discard(&temporary_beside(path, work.spec.run));
        }
        loop {
            let report = self.put_back(work);
            if !report.out_of_space || !waits(work) {
                return Event::Restored { report };
            }
        }
    }

    fn put_back(&self, work: &Work) -> RestoreReport {
        let Some(baseline) = work
            .groundwork()
            .and_then(|groundwork| groundwork.repository)
        else {
            return RestoreReport::default();
        };
        let tree = work.attempt_tree();
        let result = tree.as_ref().and_then(|tree| tree.repository.as_ref());
        let changed = || {
            let changes = result.map_or(&[][..], |result| &result.changes[..]);
            changes.iter().map(|change| change.change.path.clone())
        };
        if let Some(gone) = repository_gone(Step::Verify, work) {
            return left(gone.message, changed());
        }
        if let Err(error) = self.hold_repository(work) {
            return nothing(work, &error, changed());
        }
        let (excluded, notes) = match &tree {
            Some(tree) => (tree.excluded.clone(), Vec::new()),
            None => match self.left_unrecorded(work, &baseline) {
                Ok(left) => left,
                Err(failure) => return left(failure.message, changed()),
            },
        };
        let cwd = Path::new(&work.spec.cwd);
        match git::restore(cwd, &baseline, result, &excluded, &git::Limits::default()) {
            Ok(restored) => {
                let mut report = report(restored);
                report.notes.extend(notes);
                report
            }
            Err(error) => nothing(work, &error.source, error.paths.into_iter()),
        }
    }
}

/// Waits until it is worth trying again; false: the engine ends.
fn waits(work: &Work) -> bool {
    tracing::error!(
        run = %work.spec.run,
        repository = work.spec.cwd,
        "there is no space to put back what the run changed: it is tried again until there is"
    );
    for _ in 0..RETRY_FULL.as_millis() / LOOK.as_millis() {
        if work.stop.requested().is_some() {
            return false;
        }
        std::thread::sleep(LOOK);
    }
    true
}

fn report(restored: git::Restored) -> RestoreReport {
    let mut failed: Vec<String> = restored
        .failed
        .iter()
        .map(|(path, why)| format!("{path}: {why}"))
        .collect();
    failed.extend(restored.branch_kept);
    failed.extend(restored.operation_left);
    failed.extend(staged_left(&restored.index));
    let edited = restored.edited_since.iter();
    RestoreReport {
        put_back: u64::try_from(restored.put_back.len()).unwrap_or(u64::MAX),
        edited_since: edited.map(ToString::to_string).collect(),
        failed,
        notes: restored.notes,
        out_of_space: restored.out_of_space,
    }
}

/// What is staged and could not be put back.
fn staged_left(index: &IndexRefresh) -> Vec<String> {
    match index {
        IndexRefresh::Done { left } => left
            .iter()
            .map(|path| format!("{path}: what is staged of it was changed since"))
            .collect(),
        IndexRefresh::Skipped { why } => vec![format!("what the run staged: {why}")],
        IndexRefresh::NotOurs => Vec::new(),
    }
}

/// Nothing was put back for this reason.
fn nothing(work: &Work, error: &GitError, paths: impl Iterator<Item = RepoPath>) -> RestoreReport {
    let mut report = left(git_message(work, error), paths);
    report.out_of_space = error.is_out_of_space();
    report
}

/// Each path that is left, with the reason; the reason alone where no path is known.
fn left(why: String, paths: impl Iterator<Item = RepoPath>) -> RestoreReport {
    let mut failed: Vec<String> = paths.map(|path| format!("{path}: {why}")).collect();
    if failed.is_empty() {
        failed.push(why);
    }
    RestoreReport {
        failed,
        ..RestoreReport::default()
    }
}
