//! The one commit of a run, in two durable steps: build it, then move the branch to it.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::again::again;
use super::attribution::list;
use super::author::Author;
use super::baseline::{Baseline, ResultTree};
use super::branch::{LogLine, Swap};
use super::deadline::Deadline;
use super::error::{GitError, git, git_write};
use super::ids::{NameError, Oid, RepoPath, RunId, checked_refname};
use super::open::{Handle, Head};
use super::quarantine::Writing;
use super::refs::Kept;
use super::staged::unstaged;
use super::tree::{MODE_SUBMODULE, Overlay, entry_at};
use super::user_index::{IndexRefresh, IndexUpdate, refresh};

/// Most commits between a parent and a branch that are searched for a run's trailer.
pub const COMMITS_SEARCHED_MAX: usize = 100_000;

/// The trailer by which a run's commit is found.
pub const RUN_TRAILER: &str = "Run-Id";

/// Everything that a commit is made of. The same request on the same tip gives the same id.
#[derive(Debug, Clone)]
pub struct CommitRequest<'a> {
    /// The reference to move, as recorded in the baseline.
    pub refname: &'a str,
    /// The state before the run.
    pub baseline: &'a Baseline,
    /// The state after it.
    pub result: &'a ResultTree,
    /// The paths to commit, from the attribution.
    pub paths: &'a [RepoPath],
    /// The whole message with its trailers, among them [`RUN_TRAILER`].
    pub message: &'a str,
    /// Author and committer.
    pub author: &'a Author,
    /// When, in seconds since 1970.
    pub time_s: i64,
    /// The offset of the author's zone from UTC in minutes.
    pub offset_min: i32,
}

/// A commit that exists and is durable, but that no branch points at yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreparedCommit {
    /// The reference that shall move.
    pub refname: String,
    /// The commit.
    pub oid: Oid,
    /// What the reference must point at; `None` on a branch without a commit.
    pub parent: Option<Oid>,
}

/// What preparing a commit gave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Prepared {
    /// The branch holds everything already: there is nothing to commit.
    Nothing,
    /// The commit to move the branch to.
    Commit(PreparedCommit),
}

/// Why a commit could not be prepared.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// Commits since the end of the run changed the same paths.
    #[error("the run and commits since changed the same paths: {}", list(.0))]
    Conflict(Vec<RepoPath>),
    /// The branch is gone.
    #[error("the branch `{0}` is gone")]
    BranchGone(String),
    /// The message is unusable, or lacks the trailer by which recovery finds the commit.
    #[error("the commit message is not usable: {0}")]
    Message(&'static str),
    /// The repository failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl PrepareError {
    /// A stable code for journals and views.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Conflict(_) => "conflict",
            Self::BranchGone(_) => "branch_gone",
            Self::Message(_) => "message",
            Self::Git(error) => error.code(),
        }
    }
}

impl From<NameError> for PrepareError {
    fn from(error: NameError) -> Self {
        Self::Git(error.into())
    }
}

/// Builds the run's commit on the present tip of the reference and makes its objects durable.
///
/// The tree is that of the tip with the run's paths laid over it; the user's index plays no
/// part. A path that the tip holds otherwise than the run saw it is a conflict. Once the time is up it
/// fails, and no branch was moved. A hidden reference keeps the commit until [`super::drop_refs`].
pub fn prepare_commit(
    cwd: &Path,
    request: &CommitRequest<'_>,
    deadline: Deadline<'_>,
) -> Result<Prepared, PrepareError> {
    again(|| prepare_once(cwd, request, deadline))
}

fn prepare_once(
    cwd: &Path,
    request: &CommitRequest<'_>,
    deadline: Deadline<'_>,
) -> Result<Prepared, PrepareError> {
    let refname = checked_refname(request.refname)?;
    checked_message(request)?;
    Handle::open(cwd)?.give_back(&request.baseline.run);
    let writing = Writing::about(cwd, request.paths.len())?;
    let handle = writing.handle();
    let tip = handle.tip_or_detached(refname)?;
    if tip.is_none() && !matches!(request.baseline.head, Head::Unborn { .. }) {
        return Err(PrepareError::BranchGone(refname.to_owned()));
    }
    let tip_tree = handle.tree_of(tip.as_ref())?;
    let overlay = overlay(handle, request, tip_tree.as_ref(), deadline)?;
    let mut objects = Vec::new();
    let tree = handle.write_tree(tip_tree.as_ref(), &overlay, &mut objects, deadline)?;
    let unchanged = match &tip_tree {
        Some(before) => before.id() == tree.raw(),
        None => handle.tree(&tree)?.is_empty(),
    };
    if unchanged {
        return Ok(Prepared::Nothing);
    }
    let commit = write_commit(handle, request, tip.as_ref(), &tree)?;
    objects.push(commit.clone());
    // The commit of a submodule lives in the submodule.
    let blobs = overlay
        .values()
        .flatten()
        .filter(|e| e.mode != MODE_SUBMODULE);
    objects.extend(blobs.map(|e| e.oid.clone()));
    writing.release()?;
    deadline.check()?;
    handle.keep_all(&request.baseline.run, Kept::Commit, &commit, &objects)?;
    Ok(Prepared::Commit(PreparedCommit {
        refname: refname.to_owned(),
        oid: commit,
        parent: tip,
    }))
}

fn checked_message(request: &CommitRequest<'_>) -> Result<(), PrepareError> {
    let message = request.message;
    if message.trim().is_empty() {
        return Err(PrepareError::Message("it is empty"));
    }
    if message.contains('\0') {
        return Err(PrepareError::Message("it contains a NUL byte"));
    }
    if !has_run_trailer(message, &request.baseline.run) {
        return Err(PrepareError::Message("it lacks the run's `Run-Id` trailer"));
    }
    Ok(())
}

fn overlay(
    handle: &Handle,
    request: &CommitRequest<'_>,
    tip: Option<&git2::Tree<'_>>,
    deadline: Deadline<'_>,
) -> Result<Overlay, PrepareError> {
    let result = handle.tree(&request.result.tree)?;
    let seen = handle.tree_of(request.result.head.oid())?;
    let mut overlay = Overlay::new();
    let mut conflicts = Vec::new();
    for path in request.paths {
        deadline.check()?;
        let wanted = entry_at(Some(&result), path)?;
        let there = entry_at(tip, path)?;
        if there == wanted {
            continue;
        }
        if there != entry_at(seen.as_ref(), path)? {
            conflicts.push(path.clone());
        }
        overlay.insert(path.clone(), wanted);
    }
    if conflicts.is_empty() {
        Ok(overlay)
    } else {
        Err(PrepareError::Conflict(conflicts))
    }
}

fn write_commit(
    handle: &Handle,
    request: &CommitRequest<'_>,
    parent: Option<&Oid>,
    tree: &Oid,
) -> Result<Oid, GitError> {
    let fail = git_write("write the commit in", handle.repo.commondir());
    let time = git2::Time::new(request.time_s, request.offset_min);
    let Author { name, email } = request.author;
    let who = git2::Signature::new(name, email, &time).map_err(&fail)?;
    let tree = handle.tree(tree)?;
    let parent = match parent {
        Some(oid) => Some(handle.repo.find_commit(oid.raw()).map_err(&fail)?),
        None => None,
    };
    let parents: Vec<_> = parent.iter().collect();
    let oid = handle
        .repo
        .commit(None, &who, &who, request.message, &tree, &parents);
    oid.map(Oid::from).map_err(fail)
}

/// How moving the reference ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Moved {
    /// The reference points at the commit, durably.
    Done {
        /// What became of the user's index.
        index: IndexRefresh,
    },
    /// It pointed there already.
    AlreadyThere {
        /// What became of the user's index.
        index: IndexRefresh,
    },
    /// It points at another commit; build again on that one, unless [`find_commit`] finds ours.
    TipMoved {
        /// Where it points.
        tip: Oid,
    },
    /// It does not exist any more.
    BranchGone,
    /// `HEAD` was detached and is on a branch now.
    BranchSwitched,
}

/// Moves the reference from the commit's parent to the commit, by compare-and-swap, durably;
/// then brings the user's index up to date for exactly the commit's paths.
///
/// Repeating it is harmless. `message` becomes the line in the reflog.
pub fn move_ref(
    cwd: &Path,
    commit: &PreparedCommit,
    author: &Author,
    time_s: i64,
    offset_min: i32,
    message: &str,
) -> Result<Moved, GitError> {
    let log = LogLine {
        author,
        time_s,
        offset_min,
        message,
    };
    again(|| move_once(cwd, commit, &log))
}

fn move_once(cwd: &Path, commit: &PreparedCommit, log: &LogLine<'_>) -> Result<Moved, GitError> {
    let handle = Handle::open(cwd)?;
    let refname = checked_refname(&commit.refname)?;
    // A branch that points at nothing is a broken repository.
    handle.expect_kept(std::slice::from_ref(&commit.oid))?;
    match handle.swap_ref(refname, commit.parent.as_ref(), &commit.oid, log)? {
        Swap::Moved => Ok(Moved::Done {
            index: refresh_after(cwd, commit)?,
        }),
        Swap::Tip(Some(tip)) if tip == commit.oid => Ok(Moved::AlreadyThere {
            index: refresh_after(cwd, commit)?,
        }),
        Swap::Tip(Some(tip)) => Ok(Moved::TipMoved { tip }),
        Swap::Tip(None) if refname == "HEAD" => Ok(Moved::BranchSwitched),
        Swap::Tip(None) => Ok(Moved::BranchGone),
    }
}

/// Brings the user's index up to date with a commit that the branch points at. For trying again
/// after [`IndexRefresh::Skipped`].
pub fn refresh_index(cwd: &Path, commit: &PreparedCommit) -> Result<IndexRefresh, GitError> {
    refresh_after(cwd, commit)
}

pub(super) fn refresh_after(cwd: &Path, commit: &PreparedCommit) -> Result<IndexRefresh, GitError> {
    let handle = Handle::open(cwd)?;
    let head = handle.head()?;
    if head.refname() != commit.refname || head.oid() != Some(&commit.oid) {
        return Ok(IndexRefresh::NotOurs);
    }
    let before = handle.tree_of(commit.parent.as_ref())?;
    let after = handle.tree_of(Some(&commit.oid))?;
    let changes = handle.differences(before.as_ref(), after.as_ref())?;
    let updates: Vec<_> = changes
        .into_iter()
        .map(|change| IndexUpdate {
            path: change.path,
            expected: vec![unstaged(change.old)],
            to: unstaged(change.new),
        })
        .collect();
    Ok(refresh(&handle, &updates))
}

/// Where a prepared commit stands, as recovery sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Found {
    /// The branch contains a commit of this run, or contained it and was moved back since.
    Done {
        /// The commit.
        oid: Oid,
    },
    /// The branch is still at the parent: move it.
    AtParent,
    /// The branch is elsewhere and has no commit of this run: build again.
    Absent {
        /// Where it points.
        tip: Oid,
    },
    /// The branch does not exist.
    BranchGone,
}

/// Looks for a run's commit after a crash: by its id in the branch and in its reflog, then by
/// the `Run-Id` trailer in the commits since its parent.
pub fn find_commit(
    cwd: &Path,
    refname: &str,
    oid: Option<&Oid>,
    run: &RunId,
    parent: Option<&Oid>,
) -> Result<Found, GitError> {
    again(|| find_once(cwd, refname, oid, run, parent))
}

fn find_once(
    cwd: &Path,
    refname: &str,
    oid: Option<&Oid>,
    run: &RunId,
    parent: Option<&Oid>,
) -> Result<Found, GitError> {
    let handle = Handle::open(cwd)?;
    handle.give_back(run);
    let refname = checked_refname(refname)?;
    let tip = handle.tip_or_detached(refname)?;
    if let Some(oid) = oid {
        let done = Found::Done { oid: oid.clone() };
        if tip.as_ref() == Some(oid) || handle.was_at(refname, oid)? {
            return Ok(done);
        }
        if let Some(tip) = &tip
            && handle
                .repo
                .graph_descendant_of(tip.raw(), oid.raw())
                .unwrap_or(false)
        {
            return Ok(done);
        }
    }
    let Some(tip) = tip else {
        return Ok(match parent {
            Some(_) => Found::BranchGone,
            None => Found::AtParent,
        });
    };
    if Some(&tip) == parent {
        return Ok(Found::AtParent);
    }
    match handle.by_trailer(&tip, parent, run)? {
        Some(oid) => Ok(Found::Done { oid }),
        None => Ok(Found::Absent { tip }),
    }
}

impl Handle {
    fn by_trailer(
        &self,
        tip: &Oid,
        parent: Option<&Oid>,
        run: &RunId,
    ) -> Result<Option<Oid>, GitError> {
        let fail = git("search the commits");
        let mut walk = self.repo.revwalk().map_err(&fail)?;
        walk.push(tip.raw()).map_err(&fail)?;
        if let Some(parent) = parent
            && self.repo.find_commit(parent.raw()).is_ok()
        {
            walk.hide(parent.raw()).map_err(&fail)?;
        }
        for oid in walk.take(COMMITS_SEARCHED_MAX) {
            let oid = oid.map_err(&fail)?;
            let commit = self.repo.find_commit(oid).map_err(&fail)?;
            let message = String::from_utf8_lossy(commit.message_raw_bytes());
            if has_run_trailer(&message, run) {
                return Ok(Some(oid.into()));
            }
        }
        Ok(None)
    }
}

/// Whether the last paragraph of a message has the trailer of this run.
fn has_run_trailer(message: &str, run: &RunId) -> bool {
    run_of_message(message) == Some(run.as_str())
}

/// The run that the trailer in the last paragraph of a message names.
pub(super) fn run_of_message(message: &str) -> Option<&str> {
    let last = message
        .trim_end()
        .lines()
        .rev()
        .take_while(|line| !line.trim().is_empty());
    let mut values = last.filter_map(|line| line.split_once(':'));
    let (_, value) = values.find(|(key, _)| key.eq_ignore_ascii_case(RUN_TRAILER))?;
    Some(value.trim())
}
