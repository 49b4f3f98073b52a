//! Which files of a checkout are tracked, and which of them are not what is committed.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use git2::{Index, StatusOptions, StatusShow};

use super::left_locks::directories;
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

/// Returns a path that git tracks in a directory or in its place, such as a link; `None` if there is none, or no
/// repository.
///
/// The directory may be missing. Of the repository only the index is read, because an engine asks at its start: a
/// configuration can be a pipe.
pub fn tracked_below(directory: &Path) -> Option<PathBuf> {
    let by_name = || {
        Some(
            directory
                .parent()?
                .canonicalize()
                .ok()?
                .join(directory.file_name()?),
        )
    };
    let places = [by_name(), directory.canonicalize().ok()];
    places
        .into_iter()
        .flatten()
        .find_map(|place| tracked_at(&place))
}

fn tracked_at(place: &Path) -> Option<PathBuf> {
    let mut above = place.ancestors();
    let workdir = above.find(|above| above.join(".git").exists())?;
    let inside = place.strip_prefix(workdir).ok()?;
    let file = directories(workdir)?.0.join("index");
    if !file.metadata().is_ok_and(|found| found.is_file()) {
        return None;
    }
    // With a slash at its end, unless the directory is the work tree itself.
    let prefix = inside.join("");
    let Ok(index) = Index::open(&file) else {
        // An index of another form, such as a sparse one, has its paths as plain text too.
        let (content, prefix) = (fs::read(file).ok()?, prefix.as_os_str().as_bytes());
        let mut parts = content.windows(prefix.len().max(1));
        return parts.any(|part| part == prefix).then(|| place.to_owned());
    };
    if index.get_path(inside, 0).is_some() {
        return Some(place.to_owned());
    }
    let entry = index.get(index.find_prefix(prefix).ok()?)?;
    Some(workdir.join(OsStr::from_bytes(&entry.path)))
}
