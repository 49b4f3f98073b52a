//! Git's lock files that somebody holds or has left behind: listed for people, and those of ours cleared.
//!
//! An engine looks at its start, so nothing of the repository is read but where it is: a configuration that is a
//! pipe would be waited for.

use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::durable::is_temporary;
use super::lock::{LEASES, LockOwner, RepositoryLease, clear_if_stale, open_at_once, owner_of};
use super::open::sharing;
use workerctl_landing::error::GitError;

/// Most entries of the directories of references that are looked at.
const ENTRIES_MAX: usize = 10_000;

/// Longest path that a file of git's is read for.
const PATH_BYTES_MAX: u64 = 4096;

/// A lock file of git's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitLockFile {
    /// Where it is.
    pub path: PathBuf,
    /// Since when it has been there, in seconds since 1970.
    pub since_s: i64,
    /// Whose it is.
    pub owner: LockOwner,
}

/// The lock files of the repository that `cwd` lies in: of its index, its `HEAD` and its references.
pub fn git_locks(cwd: &Path) -> Vec<GitLockFile> {
    let Some((git_dir, common)) = directories(cwd) else {
        return Vec::new();
    };
    let mut paths = lock_files(&git_dir, 0);
    if git_dir != common {
        paths.extend(lock_files(&common, 0));
    }
    paths.extend(lock_files(&common.join("refs"), ENTRIES_MAX));
    let found = paths.into_iter().filter_map(|path| {
        // It may be gone by now: that is what becomes of locks.
        let found = fs::symlink_metadata(&path).ok()?;
        Some(GitLockFile {
            since_s: found.mtime(),
            owner: owner_of(&path),
            path,
        })
    });
    found.collect()
}

/// Removes the lock files that a process of ours left which is gone; answers which. Those of others stay.
///
/// # Errors
/// Another engine holds the repository's lease, or a lock cannot be removed.
pub fn clear_left_locks(cwd: &Path) -> Result<Vec<PathBuf>, GitError> {
    let mut left = git_locks(cwd);
    left.retain(|lock| lock.owner == LockOwner::Left);
    let (Some((git_dir, common)), false) = (directories(cwd), left.is_empty()) else {
        return Ok(Vec::new());
    };
    // Two engines that clear the same lock could else remove the one that somebody takes in between.
    let _lease = RepositoryLease::of(&git_dir, &common, "clearing locks", sharing(&common))?;
    let mut cleared = Vec::new();
    for lock in left {
        if clear_if_stale(&lock.path)? {
            cleared.push(lock.path);
        }
    }
    Ok(cleared)
}

/// `.git` of the work tree that `cwd` lies in, and the directory that linked work trees share.
pub fn directories(cwd: &Path) -> Option<(PathBuf, PathBuf)> {
    let (root, dot) = cwd.ancestors().find_map(|root| {
        let dot = root.join(".git");
        dot.exists().then_some((root, dot))
    })?;
    let git_dir = if dot.is_dir() {
        dot
    } else {
        root.join(path_in(&dot)?.strip_prefix("gitdir: ")?)
    };
    let common = path_in(&git_dir.join("commondir"));
    let common = common.map_or_else(|| git_dir.clone(), |path| git_dir.join(path));
    let common = common.canonicalize().ok()?;
    Some((git_dir.canonicalize().ok()?, common))
}

/// The path that a small file holds.
fn path_in(file: &Path) -> Option<String> {
    let mut text = String::new();
    let file = open_at_once(file).ok()?;
    let is_file = file.metadata().is_ok_and(|found| found.is_file());
    let read = file.take(PATH_BYTES_MAX).read_to_string(&mut text);
    (is_file && read.is_ok()).then(|| text.trim_end_matches('\n').to_owned())
}

/// Lock files of git's in a directory and, as far as `more` entries go, below it.
fn lock_files(directory: &Path, mut more: usize) -> Vec<PathBuf> {
    let (mut found, mut directories) = (Vec::new(), vec![directory.to_owned()]);
    let deep = more > 0;
    while let Some(directory) = directories.pop() {
        let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
        for entry in entries {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            if deep && kind.is_dir() && more > 0 {
                directories.push(entry.path());
            }
            let is_ours = LEASES.contains(&name.as_ref()) || is_temporary(&name);
            if kind.is_file() && name.ends_with(".lock") && !is_ours {
                found.push(entry.path());
            }
            more = more.saturating_sub(1);
        }
    }
    found.sort();
    found
}
