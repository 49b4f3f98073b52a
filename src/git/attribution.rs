//! Which paths are the run's own, and what stands in the way of committing them.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::again::again;
use super::baseline::{Baseline, ResultTree};
use super::beneath::{Observed, Worktree, directory_of};
use super::deadline::Deadline;
use super::error::{GitError, git};
use super::exclusions::Exclusions;
use super::ids::RepoPath;
use super::open::{Handle, Head};
use super::operation::Operation;
use super::snapshot::{Limits, Purpose, take};
use super::staged::staged_at;
use super::tree::Change;
use super::tree::MODE_SUBMODULE;

/// The paths that a run's commit takes from the result tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attribution {
    /// What is to be committed; empty when there is nothing to commit.
    pub commit_paths: Vec<RepoPath>,
    /// Changed paths that commits made during the run hold already.
    pub committed_paths: Vec<RepoPath>,
}

/// Why a run's change cannot be committed as its own.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AttributionError {
    /// The run changed paths that held uncommitted work before it.
    #[error("the run changed paths that held uncommitted work before it: {}", list(.0))]
    PathWasDirty(Vec<RepoPath>),
    /// The work tree has an unresolved merge.
    #[error("the run left an unresolved merge: {}", list(.0))]
    Unmerged(Vec<RepoPath>),
    /// An operation of git's is under way, so that a commit would not be the one that ends it.
    #[error("the run left {} under way", .0.what())]
    OperationUnderWay(Operation),
    /// `HEAD` is on another branch than before the run.
    #[error("the run switched from `{from}` to `{to}`")]
    BranchSwitched {
        /// The reference before.
        from: String,
        /// The reference after.
        to: String,
    },
    /// The branch lost the commit that it was at before the run.
    #[error("the run rewrote the history of `{0}`")]
    BranchRewritten(String),
    /// Changed paths are handled by a filter program, such as Git LFS.
    #[error("changed paths have a `filter` attribute, which is not run here: {}", list(.0))]
    Filtered(Vec<RepoPath>),
    /// Submodules were changed.
    #[error("the run changed submodules: {}", list(.0))]
    Submodule(Vec<RepoPath>),
    /// The run made repositories inside the work tree.
    #[error("the run made repositories inside the repository: {}", list(.0))]
    NestedRepository(Vec<RepoPath>),
    /// The run made more directories inside each other than can be looked at.
    #[error("the run made more than 100 directories inside each other: {}", list(.0))]
    TooDeep(Vec<RepoPath>),
    /// Two names differ only in case where case does not matter.
    #[error("new paths differ from others only in case: {}", list(.0))]
    CaseCollision(Vec<RepoPath>),
}

impl AttributionError {
    /// A stable code for journals and views.
    pub fn code(&self) -> &'static str {
        match self {
            Self::PathWasDirty(_) => "path_was_dirty",
            Self::Unmerged(_) => "unmerged",
            Self::OperationUnderWay(operation) => operation.code(),
            Self::BranchSwitched { .. } => "branch_switched",
            Self::BranchRewritten(_) => "branch_rewritten",
            Self::Filtered(_) => "filtered",
            Self::Submodule(_) => "submodule_changed",
            Self::NestedRepository(_) => "nested_repository",
            Self::TooDeep(_) => "too_deep",
            Self::CaseCollision(_) => "case_collision",
        }
    }

    /// What a person can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::PathWasDirty(_) => "commit or stash your own changes to these paths first",
            Self::Unmerged(_) => "let the skill finish or abort the merge that it starts",
            Self::OperationUnderWay(_) => "finish or abort it in the skill",
            Self::BranchSwitched { .. } => "let the skill return to the branch it started on",
            Self::BranchRewritten(_) => "let the skill add commits instead of replacing them",
            Self::Filtered(_) => "let the skill commit these paths itself with `git commit`",
            Self::Submodule(_) => "let the skill commit the new submodule state itself",
            Self::NestedRepository(_) => "list them in `.gitignore`, or make them outside",
            Self::TooDeep(_) => "let the skill remove them, or list them in `.gitignore`",
            Self::CaseCollision(_) => "rename one of them",
        }
    }

    /// The paths that are named, if the obstacle is about paths.
    pub fn paths(&self) -> &[RepoPath] {
        match self {
            Self::PathWasDirty(paths)
            | Self::Unmerged(paths)
            | Self::Filtered(paths)
            | Self::Submodule(paths)
            | Self::NestedRepository(paths)
            | Self::TooDeep(paths)
            | Self::CaseCollision(paths) => paths,
            Self::OperationUnderWay(_) | Self::BranchSwitched { .. } | Self::BranchRewritten(_) => {
                &[]
            }
        }
    }
}

/// At most a handful of paths for a message; the whole list is in the value.
pub(super) fn list(paths: &[RepoPath]) -> String {
    const SHOWN: usize = 5;
    let mut text: Vec<_> = paths.iter().take(SHOWN).map(|p| format!("`{p}`")).collect();
    if paths.len() > SHOWN {
        text.push(format!("and {} more", paths.len() - SHOWN));
    }
    text.join(", ")
}

/// Attributes the difference between baseline and result to the run.
///
/// With `only`, just these paths and what lies beneath them are considered: the declared outputs
/// of a run whose end nobody saw.
pub fn attribute(
    baseline: &Baseline,
    result: &ResultTree,
    only: Option<&[RepoPath]>,
) -> Result<Attribution, AttributionError> {
    let is_hidden = |path: &RepoPath| {
        result.hidden.binary_search(path).is_ok() && baseline.dirty_at(path).is_none()
    };
    let wanted = |path: &RepoPath| {
        only.is_none_or(|only| only.iter().any(|o| path.is_within(o))) && !is_hidden(path)
    };
    let among = |paths: &[RepoPath]| -> Vec<RepoPath> {
        paths.iter().filter(|p| wanted(p)).cloned().collect()
    };
    let none = |paths: Vec<RepoPath>, error: fn(Vec<RepoPath>) -> AttributionError| {
        if paths.is_empty() {
            Ok(())
        } else {
            Err(error(paths))
        }
    };
    none(among(&result.unmerged), AttributionError::Unmerged)?;
    if let Some(operation) = &result.operation {
        return Err(AttributionError::OperationUnderWay(operation.clone()));
    }
    same_branch(baseline, result)?;
    let changed = || result.changes.iter().filter(|c| wanted(&c.change.path));
    let was_dirty = changed()
        .map(|c| &c.change.path)
        .filter(|p| baseline.dirty_at(p).is_some());
    none(was_dirty.cloned().collect(), AttributionError::PathWasDirty)?;
    none(among(&result.filtered), AttributionError::Filtered)?;
    none(among(&result.submodules), AttributionError::Submodule)?;
    none(among(&result.nested), AttributionError::NestedRepository)?;
    none(among(&result.too_deep), AttributionError::TooDeep)?;
    none(
        among(&result.case_collisions),
        AttributionError::CaseCollision,
    )?;
    let paths = |committed: bool| {
        let of = changed().filter(|c| c.committed == committed);
        of.map(|c| c.change.path.clone()).collect()
    };
    Ok(Attribution {
        commit_paths: paths(false),
        committed_paths: paths(true),
    })
}

fn same_branch(baseline: &Baseline, result: &ResultTree) -> Result<(), AttributionError> {
    let (from, to) = (&baseline.head, &result.head);
    if from.refname() != to.refname() {
        let name = |head: &Head| match head {
            Head::Detached { oid } => format!("detached at {oid}"),
            Head::Branch { refname, .. } | Head::Unborn { refname } => refname.clone(),
        };
        return Err(AttributionError::BranchSwitched {
            from: name(from),
            to: name(to),
        });
    }
    if result.rewritten {
        return Err(AttributionError::BranchRewritten(from.refname().to_owned()));
    }
    Ok(())
}

/// What a check or a hook changed after the result had been recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drift {
    /// Paths that no longer hold what the result tree holds.
    pub paths: Vec<RepoPath>,
    /// Where `HEAD` is, if it or its branch moved.
    pub head: Option<Head>,
    /// Paths of which a person had staged something that is staged no more.
    pub staged: Vec<RepoPath>,
    /// What git has under way that it had not.
    pub operation: Option<Operation>,
}

impl Drift {
    /// Whether nothing changed.
    pub fn is_none(&self) -> bool {
        self.paths.is_empty()
            && self.head.is_none()
            && self.staged.is_empty()
            && self.operation.is_none()
    }

    /// What changed, for people.
    pub fn describe(&self) -> String {
        let mut parts = Vec::new();
        if !self.paths.is_empty() {
            parts.push(list(&self.paths));
        }
        match &self.head {
            Some(Head::Branch { refname, oid }) => {
                parts.push(format!("the branch: `{refname}` is at {oid}"));
            }
            Some(Head::Detached { oid }) => parts.push(format!("`HEAD`: it is detached at {oid}")),
            Some(Head::Unborn { refname }) => parts.push(format!("`HEAD`: it is on `{refname}`")),
            None => {}
        }
        if !self.staged.is_empty() {
            parts.push(format!("what is staged of {}", list(&self.staged)));
        }
        parts.extend(
            self.operation
                .as_ref()
                .map(|o| format!("the state of git: {} is under way", o.what())),
        );
        parts.join(", and ")
    }
}

/// Compares the repository with the recorded result: checks and hooks must not change it.
pub fn check_unchanged(
    cwd: &Path,
    baseline: &Baseline,
    result: &ResultTree,
    exclusions: &Exclusions,
    limits: &Limits,
) -> Result<Drift, GitError> {
    again(|| drift(cwd, baseline, result, exclusions, limits))
}

fn drift(
    cwd: &Path,
    baseline: &Baseline,
    result: &ResultTree,
    exclusions: &Exclusions,
    limits: &Limits,
) -> Result<Drift, GitError> {
    let handle = Handle::open(cwd)?;
    handle.give_back(&baseline.run);
    let taken = take(
        &handle,
        exclusions,
        limits,
        &Purpose::Result(baseline),
        Deadline::NONE,
    )?;
    let old = handle.tree(&result.tree)?;
    let new = handle.tree(&taken.tree)?;
    let changes = handle.differences(Some(&old), Some(&new))?;
    // Caches that ignore themselves are no part of what is committed.
    let hides = |c: &Change| c.old.is_none() && taken.hidden.binary_search(&c.path).is_ok();
    let paths = changes.into_iter().filter(|c| !hides(c)).map(|c| c.path);
    Ok(Drift {
        paths: paths.filter(|p| !exclusions.covers(p)).collect(),
        staged: baseline
            .staged
            .iter()
            .filter(|s| !exclusions.covers(&s.path))
            .filter(|s| staged_at(&taken.staged, &s.path) != staged_at(&result.staged, &s.path))
            .map(|s| s.path.clone())
            .collect(),
        operation: handle
            .operation()?
            .filter(|o| result.operation.as_ref() != Some(o)),
        head: (taken.head != result.head).then_some(taken.head),
    })
}

/// What stands against committing a declared output, known before anything is spent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputObstacle {
    /// It holds uncommitted work, or is untracked, already.
    Dirty,
    /// Git ignores it: it can be written, but not committed.
    Ignored,
    /// It has a `filter` attribute.
    Filtered,
    /// It lies in a submodule or another repository inside this one.
    InOtherRepository,
    /// A symbolic link or a file stands where one of its directories should be.
    Blocked,
    /// A directory stands where the file should be.
    IsDirectory,
}

/// The declared outputs that could not be committed, each with the first reason found.
///
/// With the baseline at hand this is the test of *preparing*; a path that is fine is not listed.
pub fn declared_dirty(
    cwd: &Path,
    baseline: &Baseline,
    outputs: &[RepoPath],
) -> Result<Vec<(RepoPath, OutputObstacle)>, GitError> {
    let handle = Handle::open(cwd)?;
    let worktree = Worktree::open(handle.workdir())?;
    let index = handle.repo.index().map_err(git("read the index"))?;
    let mut found = Vec::new();
    for output in outputs {
        let tracked = index.get_path(output.as_path(), 0).is_some();
        let obstacle = if worktree.is_blocked(output)? {
            Some(OutputObstacle::Blocked)
        } else if in_other_repository(&index, &worktree, output)? {
            Some(OutputObstacle::InOtherRepository)
        } else if !baseline
            .dirty_among(std::slice::from_ref(output))
            .is_empty()
        {
            Some(OutputObstacle::Dirty)
        } else if matches!(worktree.observe(output)?, Observed::Directory) {
            Some(OutputObstacle::IsDirectory)
        } else if !tracked && handle.is_ignored(output)? {
            Some(OutputObstacle::Ignored)
        } else if handle.is_filtered(output)? {
            Some(OutputObstacle::Filtered)
        } else {
            None
        };
        found.extend(obstacle.map(|o| (output.clone(), o)));
    }
    Ok(found)
}

impl Handle {
    fn is_ignored(&self, path: &RepoPath) -> Result<bool, GitError> {
        let ignored = self.repo.is_path_ignored(path.as_path());
        ignored.map_err(git("read the ignore rules"))
    }

    /// Declared outputs that git ignores and does not track.
    pub(super) fn ignored(&self, outputs: &[RepoPath]) -> Result<Vec<RepoPath>, GitError> {
        let index = self.repo.index().map_err(git("read the index"))?;
        let mut ignored = Vec::new();
        for output in outputs {
            let tracked = index.get_path(output.as_path(), 0).is_some();
            if !tracked && self.is_ignored(output)? {
                ignored.push(output.clone());
            }
        }
        Ok(ignored)
    }
}

/// Whether a submodule or another repository begins on the way to `path`. Ignored repositories
/// are known to nobody, so a `.git` in a directory tells.
fn in_other_repository(
    index: &git2::Index,
    worktree: &Worktree,
    path: &RepoPath,
) -> Result<bool, GitError> {
    let mut above = path.clone();
    while let Some(directory) = directory_of(&above) {
        let link = index.get_path(directory.as_path(), 0);
        if link.is_some_and(|e| e.mode == MODE_SUBMODULE) || worktree.has_git_inside(&directory)? {
            return Ok(true);
        }
        above = directory;
    }
    Ok(false)
}

/// The commit message with its trailers, as git writes them: a blank line before the block.
///
/// Control characters other than line ends are dropped from the text, and a trailer's value is
/// put on one line, so that nothing in a value can pose as another trailer.
pub fn message_with_trailers(text: &str, trailers: &[(&str, &str)]) -> String {
    let clean = |c: &char| *c == '\n' || *c == '\t' || !c.is_control();
    let text: String = text.chars().filter(clean).collect();
    let mut lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    while lines.last().is_some_and(|l| l.is_empty()) {
        lines.pop();
    }
    let body = lines.join("\n");
    let body = body.trim_start_matches('\n');
    let mut message = if body.is_empty() {
        "workerctl".to_owned()
    } else {
        body.to_owned()
    };
    message.push('\n');
    for (i, (key, value)) in trailers.iter().enumerate() {
        if i == 0 {
            message.push('\n');
        }
        let value: String = value.chars().filter(|c| !c.is_control()).collect();
        message.push_str(key);
        message.push_str(": ");
        message.push_str(value.trim());
        message.push('\n');
    }
    message
}
