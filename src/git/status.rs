//! The status of a repository, complete or an error that says what is in the way.

use std::cell::RefCell;

use git2::{StatusOptions, StatusShow, Statuses};

use super::beneath::Worktree;
use super::error::{GitError, git};
use super::exclusions::Exclusions;
use super::ids::RepoPath;
use super::open::Handle;
use super::overlooked::Listing;
use super::snapshot::Purpose;
use super::too_deep::is_too_deep;

/// A status of all that is tracked or not ignored.
pub(super) fn everything() -> StatusOptions {
    let mut options = StatusOptions::new();
    options
        .show(StatusShow::IndexAndWorkdir)
        .include_untracked(true)
        .recurse_untracked_dirs(true)
        .include_ignored(false)
        .include_unmodified(false)
        .exclude_submodules(false)
        .renames_head_to_index(false)
        .renames_index_to_workdir(false)
        .update_index(false);
    options
}

/// The status, taken a second time where the first one has overlooked something; what it leaves out; and
/// files of ignore rules that are ignored themselves.
pub(super) fn complete<'a>(
    handle: &'a Handle,
    worktree: &Worktree,
    exclusions: &Exclusions,
    purpose: &Purpose<'_>,
    index: &git2::Index,
    options: &mut StatusOptions,
) -> Result<(Statuses<'a>, Vec<RepoPath>, Vec<RepoPath>), GitError> {
    let mut left_out = Vec::new();
    let mut take = |options: &mut StatusOptions| loop {
        match handle.repo.statuses(Some(options)) {
            Err(error) if is_too_deep(&error) => {
                let found = handle.too_deep(index, exclusions)?;
                let Some(path) = found.filter(|path| !left_out.contains(path)) else {
                    return Err(git("read the status")(error));
                };
                if let Purpose::Baseline = purpose {
                    return Err(GitError::TooDeep(path));
                }
                handle.ignore_for_now(&path)?;
                left_out.push(path);
            }
            taken => return taken.map_err(git("read the status")),
        }
    };
    let statuses = take(options)?;
    let named = statuses.iter().map(|entry| entry.path_bytes().to_vec());
    let listing = Listing {
        handle,
        worktree,
        exclusions,
        index,
        named: &named.collect(),
        hidden_rules: RefCell::default(),
    };
    // It may also have come up since; what cannot be read at all is an error here.
    let statuses = match listing.overlooked()? {
        Some(_) => take(options)?,
        None => statuses,
    };
    let mut hidden_rules = listing.hidden_rules.take();
    hidden_rules.sort();
    Ok((statuses, left_out, hidden_rules))
}
