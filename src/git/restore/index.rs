//! Putting the user's index back: what the run staged goes, what a person had staged returns.

use std::collections::BTreeSet;

use super::super::baseline::ResultTree;
use super::super::error::GitError;
use super::super::ids::RepoPath;
use super::super::staged::{staged_at, staged_in_either, unstaged};
use super::super::tree::entry_at;
use super::super::user_index::{IndexRefresh, IndexUpdate, update};
use super::{Restored, Restoring};

impl Restoring<'_> {
    /// Each entry that the run changed goes back to what it was, unless somebody changed it since. For a path
    /// that was clean before, an entry that holds the run's content counts as the run's as well.
    pub(super) fn index(
        &self,
        result: &ResultTree,
        restored: &Restored,
    ) -> Result<IndexRefresh, GitError> {
        if self.handle.head()? != self.baseline.head {
            return Ok(IndexRefresh::NotOurs);
        }
        let then = self.handle.tree_of(self.baseline.head.oid())?;
        let end = self.handle.tree_of(result.head.oid())?;
        let tree = self.handle.tree(&result.tree)?;
        let mut updates = Vec::new();
        let mut staged_by_run = BTreeSet::new();
        for path in self.index_paths(result, restored, then.as_ref(), end.as_ref())? {
            let before = staged_at(&self.baseline.staged, &path).cloned();
            let at_end = entry_at(end.as_ref(), &path)?;
            let seen = staged_at(&result.staged, &path).cloned();
            let seen = seen.unwrap_or_else(|| unstaged(at_end.clone()));
            let to = match before {
                Some(before) => before,
                None => unstaged(entry_at(then.as_ref(), &path)?),
            };
            let is_users = self.baseline.dirty_at(&path).is_some();
            if is_users && seen == to {
                continue;
            }
            if seen != to {
                staged_by_run.insert(path.clone());
            }
            let mut expected = vec![seen];
            if !is_users {
                expected.push(unstaged(entry_at(Some(&tree), &path)?));
                expected.push(unstaged(at_end));
            }
            updates.push(IndexUpdate { path, expected, to });
        }
        let mut left = update(&self.handle, &updates)?;
        left.retain(|path| staged_by_run.contains(path));
        Ok(IndexRefresh::Done { left })
    }

    fn index_paths(
        &self,
        result: &ResultTree,
        restored: &Restored,
        then: Option<&git2::Tree<'_>>,
        end: Option<&git2::Tree<'_>>,
    ) -> Result<BTreeSet<RepoPath>, GitError> {
        let mut paths: BTreeSet<RepoPath> = restored.put_back.iter().cloned().collect();
        for change in self.handle.differences(then, end)? {
            paths.insert(change.path);
        }
        let staged = staged_in_either(self.baseline, result);
        paths.extend(staged.into_iter().cloned());
        Ok(paths)
    }
}
