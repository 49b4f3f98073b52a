//! One change of a result, put into a work tree.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use git2::Repository;
use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, openat, symlinkat, unlinkat};
use rustix::io::Errno;
use workerctl_landing::ids::RepoPath;

use crate::error::{TreeError, git, io_at};
use crate::forms::Rules;
use crate::known::{Item, MODE_COMMIT, MODE_LINK, raw};
use crate::model::PathChange;
use crate::place::{Gone, open_child};
use crate::repair::Modes;

/// A failure whose place is known to the caller.
pub(crate) enum PutError {
    System(Errno),
    Tree(TreeError),
}

impl PutError {
    pub(crate) fn at(self, root: &Path, path: &RepoPath) -> TreeError {
        match self {
            Self::Tree(error) => error,
            Self::System(e) => {
                io_at("put the change at", &root.join(path.as_path()))(io::Error::from(e))
            }
        }
    }
}

impl From<Errno> for PutError {
    fn from(e: Errno) -> Self {
        Self::System(e)
    }
}

pub(crate) fn put(
    root: &OwnedFd,
    repo: &Repository,
    (rules, modes): (&Rules, Modes),
    gone: &mut Gone,
    change: &PathChange,
) -> Result<(), PutError> {
    let parts: Vec<&[u8]> = change.path.as_bytes().split(|b| *b == b'/').collect();
    let Some((name, above)) = parts.split_last() else {
        return Ok(());
    };
    // The directories down to the path, opened one by one.
    let mut held = vec![rustix::io::fcntl_dupfd_cloexec(root, 0)?];
    for part in above {
        let Some(dir) = held.last() else { break };
        let inner = match open_child(dir.as_fd(), part) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if change.new.is_none() => {
                return Ok(());
            }
            Err(Errno::NOENT) => {
                mkdirat(dir, *part, Mode::from_raw_mode(0o777))?;
                open_child(dir.as_fd(), part)?
            }
            other => other?,
        };
        held.push(inner);
    }
    let Some(dir) = held.last() else {
        return Ok(());
    };
    gone.remove(dir.as_fd(), name)?;
    let Some(new) = &change.new else {
        // A directory is there only for what lies in it.
        for (dir, name) in held.iter().zip(above).rev() {
            if unlinkat(dir, *name, AtFlags::REMOVEDIR).is_err() {
                break;
            }
        }
        return Ok(());
    };
    if new.mode == MODE_COMMIT {
        // The commit is recorded in the index; the directory of a submodule is empty.
        mkdirat(dir, *name, Mode::from_raw_mode(0o777))?;
        return Ok(());
    }
    let blob = repo.find_blob(raw(&new.oid));
    let blob = blob.map_err(|e| PutError::Tree(git("read a blob of the result")(e)))?;
    if new.mode == MODE_LINK {
        symlinkat(OsStr::from_bytes(blob.content()), dir, *name)?;
        return Ok(());
    }
    let bytes = rules.to_work_tree(change.path.as_bytes(), blob.content().to_vec());
    let bytes = bytes.map_err(PutError::Tree)?;
    let item = Item {
        oid: raw(&new.oid),
        mode: new.mode,
    };
    // `EXCL`, because the place was emptied just now: what is there again is somebody else's and is not written over.
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(dir, *name, flags, Mode::from_raw_mode(modes.file(item)))?;
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        let count = rustix::io::retry_on_intr(|| rustix::io::write(&file, rest))?;
        rest = rest.get(count..).unwrap_or_default();
    }
    Ok(())
}
