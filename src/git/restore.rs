//! Putting back what a run changed, path by path, without touching what anybody else did.

use std::borrow::Cow;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::again::again;
use super::baseline::{Baseline, PathChange, ResultTree, result_once};
use super::beneath::{Content, Observed, Worktree};
use super::deadline::{Deadline, Paced};
use super::error::{GitError, git};
use super::exclusions::Exclusions;
use super::ids::RepoPath;
use super::open::Handle;
use super::refs::Kept;
use super::snapshot::{Limits, dirty_paths};
use super::tree::{MODE_EXECUTABLE, MODE_LINK, MODE_SUBMODULE, TreeEntry, entry_at};
use super::user_index::IndexRefresh;
use super::worktree_form::{Forms, exact_bytes};

mod branch;
mod index;
mod under_way;

use branch::BranchState;

/// What became of each path that a run had changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restored {
    /// Paths that hold what they held before the run.
    pub put_back: Vec<RepoPath>,
    /// Paths that were edited after the run ended; they were left as they are.
    pub edited_since: Vec<RepoPath>,
    /// Paths that could not be put back, and why.
    pub failed: Vec<(RepoPath, String)>,
    /// Whether commits of the run are no longer in the branch.
    pub branch_reset: bool,
    /// What a person may have made during the run and will miss, with how to get it back.
    pub notes: Vec<String>,
    /// Why the branch or `HEAD` was not put back although it moved during the run.
    pub branch_kept: Option<String>,
    /// What git has under way and was left, with how to end it.
    pub operation_left: Option<String>,
    /// What became of the user's index.
    pub index: IndexRefresh,
    /// Whether something failed for want of space on the disk, so that it succeeds once there is some.
    pub out_of_space: bool,
}

impl Restored {
    /// Whether everything is as it was before the run.
    pub fn is_complete(&self) -> bool {
        self.edited_since.is_empty()
            && self.failed.is_empty()
            && self.branch_kept.is_none()
            && self.operation_left.is_none()
    }
}

/// A restore that could not begin: nothing was put back.
#[derive(Debug, thiserror::Error)]
#[error("{source}")]
pub struct NotRestored {
    /// Why.
    pub source: GitError,
    /// The paths that the run had changed, as far as they can be told.
    pub paths: Vec<RepoPath>,
}

/// Puts back what the run changed, and may be repeated after a crash or a failure at any point.
///
/// What the run had done is kept under `refs/workerctl/runs/<run>/discarded` first. A path is
/// put back only where it still holds what the result tree holds. The branch goes back only when
/// the result was recorded and the branch still points at the last commit of the run. Without a
/// recorded result the present state counts as the run's, except for commits.
pub fn restore(
    cwd: &Path,
    baseline: &Baseline,
    result: Option<&ResultTree>,
    exclusions: &Exclusions,
    limits: &Limits,
) -> Result<Restored, NotRestored> {
    let begun = again(|| begin(cwd, baseline, result, exclusions, limits));
    let (result, branch, work) = begun.map_err(|source| NotRestored {
        source,
        paths: concerned(cwd, baseline, result, exclusions),
    })?;
    let mut restored = Restored {
        put_back: Vec::new(),
        edited_since: Vec::new(),
        failed: Vec::new(),
        branch_reset: branch.reset,
        branch_kept: branch.kept,
        notes: branch.notes,
        operation_left: None,
        index: IndexRefresh::NotOurs,
        out_of_space: false,
    };
    for change in ordered(&result.changes) {
        work.path(change, &mut restored);
    }
    for path in &result.submodules {
        if !result.changes.iter().any(|c| c.change.path == *path) {
            let why = "it is a submodule, which is never entered".to_owned();
            restored.failed.push((path.clone(), why));
        }
    }
    for path in &result.nested {
        let why = "it is a repository of its own, which is never entered".to_owned();
        restored.failed.push((path.clone(), why));
    }
    for path in &result.too_deep {
        let why = "it holds too many directories inside each other to be looked at: remove it";
        restored.failed.push((path.clone(), why.to_owned()));
    }
    for path in &result.hidden_in {
        let why = "more than can be put back is hidden in it by ignore rules of the run";
        restored.failed.push((path.clone(), why.to_owned()));
    }
    restored.index = work.index(&result, &restored).unwrap_or_else(|error| {
        restored.out_of_space |= error.is_out_of_space();
        IndexRefresh::Skipped {
            why: error.to_string(),
        }
    });
    work.operation(&result, &mut restored);
    Ok(restored)
}

/// Everything that has to be done before the first path is put back.
fn begin<'a>(
    cwd: &Path,
    baseline: &'a Baseline,
    result: Option<&'a ResultTree>,
    exclusions: &Exclusions,
    limits: &Limits,
) -> Result<(Cow<'a, ResultTree>, BranchState, Restoring<'a>), GitError> {
    let handle = Handle::open(cwd)?;
    handle.give_back(&baseline.run);
    let recorded = result.is_some();
    let result = match result {
        Some(result) => Cow::Borrowed(result),
        None => Cow::Owned(handle.unrecorded(cwd, baseline, exclusions, limits)?),
    };
    handle.keep_discarded(baseline, &result)?;
    let branch = if recorded {
        handle.put_branch_back(baseline, &result)?
    } else {
        BranchState::unrecorded(baseline, &handle.head()?)
    };
    Ok((result, branch, Restoring::begin(cwd, baseline)?))
}

/// The paths that a restore which could not begin has left.
fn concerned(
    cwd: &Path,
    baseline: &Baseline,
    result: Option<&ResultTree>,
    exclusions: &Exclusions,
) -> Vec<RepoPath> {
    match result {
        Some(result) => result
            .changes
            .iter()
            .map(|c| c.change.path.clone())
            .collect(),
        // Only what can be looked at without writing: what was dirty before may have been left as it was.
        None => dirty_paths(cwd, exclusions)
            .unwrap_or_default()
            .into_iter()
            .filter(|path| baseline.dirty_at(path).is_none())
            .collect(),
    }
}

impl Handle {
    /// The result of a run that nobody recorded: what an interrupted restore kept, else the
    /// state now.
    fn unrecorded(
        &self,
        cwd: &Path,
        baseline: &Baseline,
        exclusions: &Exclusions,
        limits: &Limits,
    ) -> Result<ResultTree, GitError> {
        let mut now = result_once(cwd, baseline, exclusions, limits, &[])?;
        let Some(discarded) = self.kept(&baseline.run, Kept::Discarded)? else {
            return Ok(now);
        };
        let fail = git("read what was discarded");
        let commit = self.repo.find_commit(discarded.raw()).map_err(&fail)?;
        let tree = commit.tree().map_err(&fail)?;
        let old = self.tree(&baseline.tree)?;
        let mut changes: Vec<_> = now.changes.into_iter().filter(|c| !c.restorable).collect();
        for change in self.differences(Some(&old), Some(&tree))? {
            let unkept = baseline.unkept.iter().any(|u| u.path == change.path);
            if !unkept && !exclusions.covers(&change.path) {
                changes.push(PathChange {
                    change,
                    committed: false,
                    restorable: true,
                });
            }
        }
        now.changes = changes;
        now.tree = tree.id().into();
        Ok(now)
    }

    fn keep_discarded(&self, baseline: &Baseline, result: &ResultTree) -> Result<(), GitError> {
        let parents: Vec<_> = result.head.oid().into_iter().collect();
        let run = &baseline.run;
        if let Some(kept) = self.kept(run, Kept::Discarded)?
            && self.expect_kept(&[kept]).is_ok()
        {
            return Ok(());
        }
        let commit = self.holding_commit(run, "discarded", &result.tree, &parents)?;
        let objects = [result.tree.clone(), commit.clone()];
        self.keep_all(run, Kept::Discarded, &commit, &objects)
    }
}

/// Files that must go come first, the deepest of them first, so that directories are empty when
/// a file has to take their place; attributes come before what is written by them.
fn ordered(changes: &[PathChange]) -> impl Iterator<Item = &PathChange> {
    let goes = |c: &&PathChange| c.change.old.is_none();
    let attributes = |c: &&PathChange| c.change.path.as_bytes().ends_with(b".gitattributes");
    let removals = changes.iter().rev().filter(goes);
    let rules = changes.iter().filter(move |c| !goes(c) && attributes(c));
    let others = changes.iter().filter(move |c| !goes(c) && !attributes(c));
    removals.chain(rules).chain(others)
}

/// One restore under way.
struct Restoring<'a> {
    handle: Handle,
    worktree: Worktree,
    baseline: &'a Baseline,
    forms: Forms,
    temporary: String,
    head_is_back: bool,
}

impl<'a> Restoring<'a> {
    fn begin(cwd: &Path, baseline: &'a Baseline) -> Result<Self, GitError> {
        // What is compared in its normal form is written, and must not become an empty object.
        let handle = Handle::open_durable(cwd)?;
        Ok(Self {
            worktree: Worktree::open(handle.workdir())?,
            forms: Forms::new(&handle),
            temporary: format!(".workerctl-{}.tmp", baseline.run),
            head_is_back: handle.head()? == baseline.head,
            handle,
            baseline,
        })
    }

    fn path(&self, change: &PathChange, restored: &mut Restored) {
        let path = change.change.path.clone();
        match again(|| self.try_path(change)) {
            Ok(Outcome::PutBack) => restored.put_back.push(path),
            Ok(Outcome::Edited) => restored.edited_since.push(path),
            Ok(Outcome::Refused(why)) => restored.failed.push((path, why.to_owned())),
            Err(error) => {
                restored.out_of_space |= error.is_out_of_space();
                restored.failed.push((path, error.to_string()));
            }
        }
    }

    fn try_path(&self, changed: &PathChange) -> Result<Outcome, GitError> {
        let change = &changed.change;
        if !changed.restorable {
            return Ok(Outcome::Refused("its earlier content was not kept"));
        }
        let mut sides = [&change.old, &change.new].into_iter().flatten();
        if sides.any(|e| e.mode == MODE_SUBMODULE) {
            return Ok(Outcome::Refused("it is a submodule"));
        }
        if self.belongs_to_a_commit(&change.path)? {
            return Ok(Outcome::Refused(
                "a commit that stays in the branch changed it",
            ));
        }
        let present = self.present(&change.path)?;
        if self.same(present.as_ref(), change.old.as_ref()) {
            if change.old.is_none() && present.is_none() {
                self.worktree.remove_empty_above(&change.path)?;
            }
            return Ok(Outcome::PutBack);
        }
        if !self.same(present.as_ref(), change.new.as_ref()) {
            return Ok(Outcome::Edited);
        }
        match &change.old {
            None => self.worktree.remove(&change.path)?,
            Some(_) if self.handle.is_filtered(&change.path)? => {
                return Ok(Outcome::Refused("a filter program would have to write it"));
            }
            Some(old) => self.write(&change.path, old)?,
        }
        Ok(Outcome::PutBack)
    }

    /// Whether the branch, where it is now, holds something else than before the run: then the
    /// work tree follows the branch.
    fn belongs_to_a_commit(&self, path: &RepoPath) -> Result<bool, GitError> {
        if self.head_is_back {
            return Ok(false);
        }
        let head = self.handle.head()?;
        let now = self.handle.tree_of(head.oid())?;
        let then = self.handle.tree_of(self.baseline.head.oid())?;
        let now = entry_at(now.as_ref(), path)?;
        Ok(now != entry_at(then.as_ref(), path)?)
    }

    /// What lies at a path now, in git's normal form.
    fn present(&self, path: &RepoPath) -> Result<Option<TreeEntry>, GitError> {
        Ok(match self.worktree.observe(path)? {
            Observed::Absent | Observed::Directory | Observed::Other => None,
            Observed::Link(target, _) => {
                let oid = git2::Oid::hash_object(git2::ObjectType::Blob, &target);
                Some(TreeEntry {
                    oid: oid.map_err(git("hash a link"))?.into(),
                    mode: MODE_LINK,
                })
            }
            Observed::File(_) => match self.worktree.read(path)? {
                None => None,
                Some((file, stat)) => {
                    let mut file = Paced::new(file, Deadline::NONE);
                    Some(TreeEntry {
                        oid: self.handle.normal_id(&mut file, path, &self.forms)?.into(),
                        mode: self.forms.mode(stat.st_mode),
                    })
                }
            },
        })
    }

    fn same(&self, a: Option<&TreeEntry>, b: Option<&TreeEntry>) -> bool {
        match (a, b) {
            (None, None) => true,
            (Some(a), Some(b)) => a.oid == b.oid && self.forms.same_mode(a.mode, b.mode),
            (Some(_), None) | (None, Some(_)) => false,
        }
    }

    fn write(&self, path: &RepoPath, old: &TreeEntry) -> Result<(), GitError> {
        let now = self.worktree.observe(path)?;
        if matches!(now, Observed::Directory) {
            self.worktree.remove_empty_directory(path)?;
        }
        if old.mode == MODE_LINK {
            let target = self
                .handle
                .repo
                .find_blob(old.oid.raw())
                .map_err(git("read a blob"))?;
            let content = Content::Link(target.content());
            return self.worktree.replace(path, content, &self.temporary);
        }
        let dirty = self.baseline.dirty_at(path);
        // What was dirty is on record byte for byte; what was clean is as git would write it.
        let mut bytes = match dirty.map(|d| d.raw.as_ref().unwrap_or(&old.oid)) {
            Some(exact) => exact_bytes(&self.handle, exact)?,
            None => self
                .forms
                .written(&self.handle, &self.baseline.tree, path, &old.oid)?,
        };
        let present = match now {
            Observed::File(stat) => Some(stat.st_mode & 0o777),
            Observed::Absent | Observed::Link(..) | Observed::Directory | Observed::Other => None,
        };
        let executable = old.mode == MODE_EXECUTABLE;
        let mode = dirty
            .and_then(|d| d.unix_mode)
            .or_else(|| self.baseline.permissions.of(path, executable))
            .unwrap_or_else(|| self.forms.permissions(present, executable));
        let content = Content::File(&mut bytes, mode);
        self.worktree.replace(path, content, &self.temporary)
    }
}

enum Outcome {
    PutBack,
    Edited,
    Refused(&'static str),
}
