//! What is new on a branch.

use std::path::Path;

use git2::ErrorCode;

use super::commit::run_of_message;
use super::error::{GitError, git};
use super::ids::Oid;
use super::open::Handle;

/// Most new commits that are looked at; of more it is not told which runs made them.
const ARRIVALS_MAX: usize = 1_000;

/// The commit that a branch points to; `None` without such a branch.
///
/// # Errors
/// There is no repository, or it cannot be read.
pub fn branch_tip(cwd: &Path, branch: &str) -> Result<Option<Oid>, GitError> {
    Handle::open(cwd)?.tip(&format!("refs/heads/{branch}"))
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
