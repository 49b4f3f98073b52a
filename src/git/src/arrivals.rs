//! What is new on a branch.

use std::path::Path;

use git2::ErrorCode;

use super::open::Handle;
use workerctl_landing::error::{GitError, git};
use workerctl_landing::ids::{Oid, RunId};

/// Most new commits that are looked at; of more it is not told which runs made them.
const ARRIVALS_MAX: usize = 1_000;

/// The commit that a branch points to; `None` without such a branch.
///
/// # Errors
/// There is no repository, or it cannot be read.
pub fn branch_tip(cwd: &Path, branch: &str) -> Result<Option<Oid>, GitError> {
    Handle::open(cwd)?.tip(&format!("refs/heads/{branch}"))
}

/// Returns true if a branch, by its full name, has a commit now.
///
/// # Errors
/// There is no repository, or it cannot be read.
pub fn has_commit(cwd: &Path, target: &str, commit: &Oid) -> Result<bool, GitError> {
    let handle = Handle::open(cwd)?;
    let Some(tip) = handle.tip(target)? else {
        return Ok(false);
    };
    if tip == *commit || handle.repo.find_commit(commit.raw()).is_err() {
        return Ok(tip == *commit);
    }
    let descends = handle.repo.graph_descendant_of(tip.raw(), commit.raw());
    descends.map_err(git("look for a commit in"))
}

/// For each commit that `tip` has and `since` has not, the run that made it, as its trailer says; `None` stands
/// for a commit of somebody else.
///
/// # Errors
/// The repository cannot be read.
pub fn arrivals(cwd: &Path, tip: &Oid, since: &Oid) -> Result<Vec<Option<String>>, GitError> {
    let handle = Handle::open(cwd)?;
    let failed = || git("list new commits in");
    let mut walk = handle.repo.revwalk().map_err(failed())?;
    walk.push(tip.raw()).map_err(failed())?;
    match walk.hide(since.raw()) {
        Ok(()) => {}
        // It was pruned: whatever is there now is new.
        Err(error) if error.code() == ErrorCode::NotFound => return Ok(vec![None]),
        Err(error) => return Err(failed()(error)),
    }
    let mut made_by = Vec::new();
    for oid in walk.take(ARRIVALS_MAX) {
        let oid = oid.map_err(failed())?;
        let commit = handle.repo.find_commit(oid).map_err(failed())?;
        let message = String::from_utf8_lossy(commit.message_bytes()).into_owned();
        made_by.push(run_of_message(&message).map(str::to_owned));
    }
    Ok(made_by)
}

/// The commit by which a run has landed on a branch, as its trailer says: one that the branch has and `since`
/// has not, or one that was taken off it again. Of very many only the newest are looked at.
///
/// # Errors
/// The repository cannot be read.
pub fn commit_of_run(
    cwd: &Path,
    target: &str,
    since: Option<&Oid>,
    run: &RunId,
) -> Result<Option<Oid>, GitError> {
    let handle = Handle::open(cwd)?;
    let failed = || git("look for the run's commit in");
    let mut walk = handle.repo.revwalk().map_err(failed())?;
    let tip = handle.tip(target)?.map(|tip| tip.raw());
    let log = handle.repo.reflog(target).map_err(failed())?;
    let were = log.iter().map(|entry| entry.id_new());
    for oid in tip.into_iter().chain(were) {
        // What was pruned is nobody's any more.
        if handle.repo.find_commit(oid).is_ok() {
            walk.push(oid).map_err(failed())?;
        }
    }
    if let Some(since) = since
        && handle.repo.find_commit(since.raw()).is_ok()
    {
        walk.hide(since.raw()).map_err(failed())?;
    }
    for oid in walk.take(ARRIVALS_MAX) {
        let oid = oid.map_err(failed())?;
        let commit = handle.repo.find_commit(oid).map_err(failed())?;
        let message = String::from_utf8_lossy(commit.message_bytes());
        if run_of_message(&message) == Some(run.as_str()) {
            return Ok(Some(oid.into()));
        }
    }
    Ok(None)
}

/// The trailer that names the run of a commit.
const RUN_TRAILER: &str = "Run-Id";

/// The run that the trailer in the last paragraph of a message names.
fn run_of_message(message: &str) -> Option<&str> {
    let last = message
        .trim_end()
        .lines()
        .rev()
        .take_while(|line| !line.trim().is_empty());
    let mut values = last.filter_map(|line| line.split_once(':'));
    let (_, value) = values.find(|(key, _)| key.eq_ignore_ascii_case(RUN_TRAILER))?;
    Some(value.trim())
}
