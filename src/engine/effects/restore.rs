//! Restoring: puts back what the run changed, path by path, only where nobody edited since.

use std::path::Path;

use super::super::work::Work;
use super::Performer;
use super::execute::{stdout_path, temporary_beside};
use crate::git;
use crate::machine::Event;
use crate::model::evidence::RestoreReport;

impl Performer {
    pub(super) fn restore(&self, work: &Work) -> Event {
        if let (Some(path), Ok(beneath)) = (stdout_path(&work.spec), self.beneath()) {
            let _ = beneath.discard(&temporary_beside(path, work.spec.run));
        }
        let report = match self.put_back(work) {
            Ok(report) => report,
            Err(message) => RestoreReport {
                failed: vec![message],
                ..RestoreReport::default()
            },
        };
        Event::Restored { report }
    }

    fn put_back(&self, work: &Work) -> Result<RestoreReport, String> {
        let Some(baseline) = work
            .groundwork()
            .and_then(|groundwork| groundwork.repository)
        else {
            return Ok(RestoreReport::default());
        };
        let said = |error: git::GitError| crate::model::diagnostic::chain(&error);
        self.hold_repository(work).map_err(said)?;
        let tree = work.attempt_tree();
        let excluded = match &tree {
            Some(tree) => tree.excluded.clone(),
            None => self.excluded(work).map_err(|failure| failure.message)?,
        };
        let result = tree.as_ref().and_then(|tree| tree.repository.as_ref());
        let cwd = Path::new(&work.spec.cwd);
        let restored = git::restore(cwd, &baseline, result, &excluded, &git::Limits::default())
            .map_err(said)?;
        let mut failed: Vec<String> = restored
            .failed
            .iter()
            .map(|(path, why)| format!("{path}: {why}"))
            .collect();
        failed.extend(restored.branch_kept);
        Ok(RestoreReport {
            put_back: u64::try_from(restored.put_back.len()).unwrap_or(u64::MAX),
            edited_since: restored
                .edited_since
                .iter()
                .map(ToString::to_string)
                .collect(),
            failed,
        })
    }
}
