//! What is new on a branch.

use std::path::Path;

use git2::ErrorCode;

use super::commit::run_of_message;
use super::error::{GitError, git};
use super::ids::Oid;
use super::open::Handle;

/// Most new commits that are looked at; of more it is not told which runs made them.
const ARRIVALS_MAX: usize = 1_000;

/// Most commits of a skill that are listed.
pub const COMMITS_LISTED_MAX: usize = 100;

/// Most commits of a skill that are counted.
const COMMITS_COUNTED_MAX: usize = 100_000;

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

/// What became of the branch during a run.
#[derive(Default)]
pub(super) struct Made {
    /// The newest commits that it has now and had not, the oldest of them first.
    pub(super) newest: Vec<Oid>,
    /// How many there are.
    pub(super) count: u64,
    /// Whether it lost the commit that it was at.
    pub(super) rewritten: bool,
}

impl Handle {
    /// The commits that `now` has and `then` had not.
    pub(super) fn commits_since(
        &self,
        then: Option<&Oid>,
        now: Option<&Oid>,
    ) -> Result<Made, GitError> {
        let fail = git("list the commits");
        let mut made = Made::default();
        let Some(now) = now.filter(|now| Some(*now) != then) else {
            made.rewritten = now.is_none() && then.is_some();
            return Ok(made);
        };
        let mut walk = self.repo.revwalk().map_err(&fail)?;
        walk.set_sorting(git2::Sort::TOPOLOGICAL).map_err(&fail)?;
        walk.push(now.raw()).map_err(&fail)?;
        if let Some(then) = then {
            walk.hide(then.raw()).map_err(&fail)?;
            let graph = self.repo.graph_descendant_of(now.raw(), then.raw());
            made.rewritten = !graph.map_err(&fail)?;
        }
        for oid in walk.take(COMMITS_COUNTED_MAX) {
            let oid = oid.map_err(&fail)?;
            made.count += 1;
            if made.newest.len() < COMMITS_LISTED_MAX {
                made.newest.push(oid.into());
            }
        }
        made.newest.reverse();
        Ok(made)
    }
}
