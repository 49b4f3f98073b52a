//! Which tracked files of a checkout are not what is committed.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use git2::{StatusOptions, StatusShow};

use super::open::Handle;
use workerctl_landing::error::{GitError, git};

/// Files that are looked at; a repository of more takes too long.
const FILES_MAX: usize = 20_000;

/// The paths that `git status` would name as changed, with what tells whether they have changed again: status, inode,
/// size and the time of the last change.
pub type TrackedChanges = BTreeMap<String, (u32, Option<(u64, u64, i64, i64)>)>;

/// Looks for changed tracked files; `None` where there is no repository, or a large one.
///
/// # Errors
/// The repository cannot be read.
pub fn tracked_changes(cwd: &Path) -> Result<Option<TrackedChanges>, GitError> {
    let fail = git("look for changed files");
    let handle = match Handle::open(cwd) {
        Ok(handle) => handle,
        Err(GitError::NotARepository(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    if handle.repo.index().map_err(&fail)?.len() > FILES_MAX {
        return Ok(None);
    }
    let mut options = StatusOptions::new();
    options
        .show(StatusShow::IndexAndWorkdir)
        .include_untracked(false)
        .exclude_submodules(true);
    let found = handle.repo.statuses(Some(&mut options)).map_err(&fail)?;
    let workdir = handle.workdir();
    let entries = found.iter().filter_map(|entry| {
        let path = entry.path().ok()?.to_owned();
        let stamp = workdir.join(&path).symlink_metadata().ok();
        let stamp = stamp
            .map(|found: Metadata| (found.ino(), found.len(), found.ctime(), found.ctime_nsec()));
        Some((path, (entry.status().bits(), stamp)))
    });
    Ok(Some(entries.collect()))
}
