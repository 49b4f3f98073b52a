//! Files of the work tree, reached from its root without following a single symbolic link.
//!
//! A skill can plant links, swap a directory for one, or leave a fifo where a file was. So each
//! directory on the way is opened by its own name with `O_NOFOLLOW`, and everything that is
//! done to a path is done through the descriptor of its parent.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::error::{GitError, io_at};
use super::ids::RepoPath;
use crate::sandbox;

/// The root of a work tree.
pub(super) struct Worktree {
    root: OwnedFd,
}

/// What lies at a path.
pub(super) enum Observed {
    /// Nothing, or something on the way is not a directory.
    Absent,
    /// A regular file.
    File(Stat),
    /// A symbolic link and where it points.
    Link(Vec<u8>, Stat),
    /// A directory.
    Directory,
    /// A fifo, socket or device, which git does not record.
    Other,
}

/// What a file is replaced by.
pub(super) enum Content<'a> {
    /// Bytes and permission bits.
    File(&'a mut dyn Read, u32),
    /// The target of a symbolic link.
    Link(&'a [u8]),
}

/// How a directory on the way is opened.
pub(super) const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

impl Worktree {
    pub(super) fn open(root: &Path) -> Result<Self, GitError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(root, flags, Mode::empty())
            .map_err(io_at("open the work tree", root))?;
        Ok(Self { root })
    }

    /// The descriptor of the directory that holds `path`; `None` when there is no such directory.
    fn parent(&self, path: &RepoPath, create: bool) -> rustix::io::Result<Option<OwnedFd>> {
        let above = path.as_path().parent().unwrap_or(Path::new(""));
        if create {
            sandbox::make_directories_below(&self.root, above)?;
        }
        match sandbox::open_below(&self.root, above, DIRECTORY) {
            Ok(directory) => Ok(Some(directory)),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if !create => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// The root, to be listed.
    pub(super) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// Looks at a path without following a link at its end or on the way.
    pub(super) fn observe(&self, path: &RepoPath) -> Result<Observed, GitError> {
        let fail = io_at("look at", path.as_path());
        let Some(dir) = self.parent(path, false).map_err(&fail)? else {
            return Ok(Observed::Absent);
        };
        let name = file_name(path);
        let stat = match rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(Observed::Absent),
            Err(e) => return Err(fail(e)),
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(Observed::File(stat)),
            FileType::Directory => Ok(Observed::Directory),
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(&dir, name, Vec::new()).map_err(fail)?;
                Ok(Observed::Link(target.into_bytes(), stat))
            }
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => Ok(Observed::Other),
        }
    }

    /// The permission bits of a regular file. Nothing but a number is read, so a link on the way is harmless.
    pub(super) fn permissions(&self, path: &[u8]) -> Option<u32> {
        let path = OsStr::from_bytes(path);
        let stat = rustix::fs::statat(&self.root, path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let is_file = FileType::from_raw_mode(stat.st_mode).is_file();
        is_file.then_some(stat.st_mode & 0o777)
    }

    /// Opens a regular file for reading; `None` when there is none any more.
    pub(super) fn read(&self, path: &RepoPath) -> Result<Option<(File, Stat)>, GitError> {
        let fail = io_at("read", path.as_path());
        let Some(dir) = self.parent(path, false).map_err(&fail)? else {
            return Ok(None);
        };
        // Without O_NONBLOCK a fifo that took the file's place would stop the engine for ever.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = match rustix::fs::openat(&dir, file_name(path), flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => return Ok(None),
            Err(e) => return Err(fail(e)),
        };
        let stat = rustix::fs::fstat(&fd).map_err(&fail)?;
        let regular = FileType::from_raw_mode(stat.st_mode).is_file();
        Ok(regular.then(|| (File::from(fd), stat)))
    }

    /// Puts content in the place of what lies at `path`, in one step, making its directories.
    ///
    /// The content is written under `temporary` beside the path, so a crash leaves either the
    /// old file or the new one. It is synced, because the record that a path was put back is.
    pub(super) fn replace(
        &self,
        path: &RepoPath,
        content: Content<'_>,
        temporary: &str,
    ) -> Result<(), GitError> {
        let fail = |doing| io_at::<Errno>(doing, path.as_path());
        let dir = self
            .parent(path, true)
            .map_err(fail("make the directory of"))?
            .ok_or_else(|| fail("make the directory of")(Errno::NOENT))?;
        remove_if_there(&dir, temporary).map_err(fail("replace"))?;
        let placed = write_beside(&dir, temporary, content).and_then(|()| {
            Ok(rustix::fs::renameat(
                &dir,
                temporary,
                &dir,
                file_name(path),
            )?)
        });
        if let Err(e) = placed {
            // The first failure is the one worth telling.
            let _ = remove_if_there(&dir, temporary);
            return Err(io_at("write", path.as_path())(e));
        }
        rustix::fs::fsync(&dir).map_err(fail("sync the directory of"))
    }

    /// Removes a file or link, then the directories above it that this leaves empty.
    pub(super) fn remove(&self, path: &RepoPath) -> Result<(), GitError> {
        let fail = io_at("remove", path.as_path());
        if let Some(dir) = self.parent(path, false).map_err(&fail)? {
            remove_if_there(&dir, file_name(path)).map_err(&fail)?;
            rustix::fs::fsync(&dir).map_err(&fail)?;
        }
        self.remove_empty_above(path)
    }

    /// Removes the directories above `path` that are empty.
    pub(super) fn remove_empty_above(&self, path: &RepoPath) -> Result<(), GitError> {
        let fail = io_at("remove the directory of", path.as_path());
        let mut above = path.clone();
        while let Some(directory) = directory_of(&above) {
            if let Some(holder) = self.parent(&directory, false).map_err(&fail)? {
                let name = file_name(&directory);
                match rustix::fs::unlinkat(&holder, name, AtFlags::REMOVEDIR) {
                    Ok(()) | Err(Errno::NOENT) => {}
                    // It is not empty, or no directory any more: either way it stays.
                    Err(_) => break,
                }
            }
            above = directory;
        }
        Ok(())
    }

    /// Removes an empty directory that stands where a file belongs.
    pub(super) fn remove_empty_directory(&self, path: &RepoPath) -> Result<(), GitError> {
        let fail = io_at("remove the directory", path.as_path());
        let Some(dir) = self.parent(path, false).map_err(&fail)? else {
            return Ok(());
        };
        rustix::fs::unlinkat(&dir, file_name(path), AtFlags::REMOVEDIR).map_err(fail)
    }

    /// Whether a directory has an entry `.git`, that is, whether another repository begins there.
    pub(super) fn has_git_inside(&self, directory: &RepoPath) -> Result<bool, GitError> {
        let fail = io_at("look at", directory.as_path());
        let Some(dir) = self.parent(directory, false).map_err(&fail)? else {
            return Ok(false);
        };
        let opened = rustix::fs::openat(&dir, file_name(directory), DIRECTORY, Mode::empty());
        match opened {
            Ok(fd) => {
                let stat = rustix::fs::statat(&fd, ".git", AtFlags::SYMLINK_NOFOLLOW);
                Ok(stat.is_ok())
            }
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(false),
            Err(e) => Err(fail(e)),
        }
    }

    /// Whether a symbolic link or anything but a directory stands on the way to `path`.
    pub(super) fn is_blocked(&self, path: &RepoPath) -> Result<bool, GitError> {
        let mut above = path.clone();
        while let Some(parent) = directory_of(&above) {
            match self.observe(&parent)? {
                Observed::Absent => {}
                Observed::Directory => return Ok(false),
                Observed::File(_) | Observed::Link(..) | Observed::Other => return Ok(true),
            }
            above = parent;
        }
        Ok(false)
    }
}

/// The directory that holds a path; `None` at the root.
pub(super) fn directory_of(path: &RepoPath) -> Option<RepoPath> {
    let cut = path.as_bytes().iter().rposition(|b| *b == b'/')?;
    RepoPath::from_bytes(&path.as_bytes()[..cut]).ok()
}

fn file_name(path: &RepoPath) -> &OsStr {
    let bytes = path.as_bytes();
    let start = bytes.iter().rposition(|b| *b == b'/').map_or(0, |i| i + 1);
    OsStr::from_bytes(&bytes[start..])
}

fn remove_if_there(dir: impl AsFd, name: impl rustix::path::Arg) -> rustix::io::Result<()> {
    match rustix::fs::unlinkat(dir, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(e) => Err(e),
    }
}

fn write_beside(dir: &OwnedFd, name: &str, content: Content<'_>) -> io::Result<()> {
    match content {
        Content::Link(target) => {
            rustix::fs::symlinkat(OsStr::from_bytes(target), dir, name)?;
            Ok(())
        }
        Content::File(source, mode) => {
            let flags =
                OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let fd = rustix::fs::openat(dir, name, flags, Mode::from_raw_mode(0o600))?;
            let mut file = File::from(fd);
            io::copy(source, &mut file)?;
            file.flush()?;
            rustix::fs::fchmod(&file, Mode::from_raw_mode(mode & 0o777))?;
            rustix::fs::fsync(&file)?;
            Ok(())
        }
    }
}
