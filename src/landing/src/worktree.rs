//! Files of a work tree, reached from its root without following a single symbolic link.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;

use crate::error::{GitError, git, io_at};
use crate::ids::RepoPath;
use crate::plan::{Entry, MODE_EXECUTABLE, MODE_LINK};
use crate::sharing::Sharing;

/// The root of a work tree.
pub(crate) struct Worktree {
    root: OwnedFd,
    /// Whether the executable bit counts (`core.fileMode`).
    follows_modes: bool,
}

/// What lies at a path.
pub(crate) enum Observed {
    Absent,
    File(Stat, git2::Oid),
    Link(Stat, git2::Oid),
    Directory,
    /// A fifo, a socket or a device.
    Other,
}

impl Observed {
    /// The inode, with its device.
    pub(crate) fn inode(&self) -> Option<(u64, u64)> {
        match self {
            Self::File(stat, _) | Self::Link(stat, _) => Some((stat.st_dev, stat.st_ino)),
            Self::Absent | Self::Directory | Self::Other => None,
        }
    }
}

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

impl Worktree {
    pub(crate) fn open(root: &Path, follows_modes: bool) -> Result<Self, GitError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fail = io_at("open the work tree", root);
        let root = rustix::fs::open(root, flags, Mode::empty()).map_err(fail)?;
        Ok(Self {
            root,
            follows_modes,
        })
    }

    /// The directory that holds `path`; `None` where there is no such directory.
    pub(crate) fn parent(&self, path: &RepoPath) -> Result<Option<OwnedFd>, GitError> {
        let fail = io_at("open the directory of", path.as_path());
        let mut dir = rustix::io::fcntl_dupfd_cloexec(&self.root, 0).map_err(&fail)?;
        let mut names: Vec<&[u8]> = path.components().collect();
        names.pop();
        for name in names {
            dir = match rustix::fs::openat(&dir, OsStr::from_bytes(name), DIRECTORY, Mode::empty())
            {
                Ok(next) => next,
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
                Err(e) => return Err(fail(e)),
            };
        }
        Ok(Some(dir))
    }

    /// Makes one directory; says whether there is one now.
    pub(crate) fn make_directory(&self, path: &RepoPath) -> Result<bool, GitError> {
        let Some(dir) = self.parent(path)? else {
            return Ok(false);
        };
        match rustix::fs::mkdirat(&dir, file_name(path), Mode::from_raw_mode(0o777)) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(self.is_directory(path)?),
            Err(e) => Err(io_at("make the directory", path.as_path())(e)),
        }
    }

    /// Removes a directory if it is empty.
    pub(crate) fn remove_if_empty(&self, path: &RepoPath) -> Result<bool, GitError> {
        let Some(dir) = self.parent(path)? else {
            return Ok(false);
        };
        Ok(rustix::fs::unlinkat(&dir, file_name(path), AtFlags::REMOVEDIR).is_ok())
    }

    /// Whether a directory is there, not a link to one.
    pub(crate) fn is_directory(&self, path: &RepoPath) -> Result<bool, GitError> {
        let Some(dir) = self.parent(path)? else {
            return Ok(false);
        };
        let stat = rustix::fs::statat(&dir, file_name(path), AtFlags::SYMLINK_NOFOLLOW);
        Ok(stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_dir()))
    }

    /// The nearest thing above `path` that is there, if it is no directory, or another repository.
    pub(crate) fn is_blocked(&self, path: &RepoPath) -> Result<bool, GitError> {
        for above in directories_above(path) {
            let Some(dir) = self.parent(&above)? else {
                continue;
            };
            let name = file_name(&above);
            match rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) => return Ok(false),
                Err(e) => return Err(io_at("look at", above.as_path())(e)),
                Ok(stat) if !FileType::from_raw_mode(stat.st_mode).is_dir() => return Ok(true),
                Ok(_) => {}
            }
            let inner = Path::new(name).join(".git");
            if rustix::fs::statat(&dir, &inner, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The times and the size at a path, without a look at the content.
    pub(crate) fn stat(&self, path: &RepoPath) -> Result<Option<Stat>, GitError> {
        let Some(dir) = self.parent(path)? else {
            return Ok(None);
        };
        Ok(rustix::fs::statat(&dir, file_name(path), AtFlags::SYMLINK_NOFOLLOW).ok())
    }

    /// What lies at a path, with the id of its content.
    pub(crate) fn observe(&self, path: &RepoPath) -> Result<Observed, GitError> {
        match self.parent(path)? {
            None => Ok(Observed::Absent),
            Some(dir) => observe_at(&dir, Path::new(file_name(path))),
        }
    }

    /// Whether the kind and the executable bit of a file are those of an entry.
    pub(crate) fn mode_fits(&self, stat: &Stat, entry: &Entry) -> bool {
        let is_executable = stat.st_mode & 0o100 != 0;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {
                entry.mode != MODE_LINK
                    && (!self.follows_modes || is_executable == (entry.mode == MODE_EXECUTABLE))
            }
            FileType::Symlink => entry.mode == MODE_LINK,
            _ => false,
        }
    }

    /// Whether something observed is what a commit holds.
    pub(crate) fn is(&self, observed: &Observed, entry: Option<&Entry>) -> bool {
        let holds = |entry: &Entry, oid: &git2::Oid| {
            entry.oid.raw() == *oid || entry.written.as_ref().is_some_and(|w| w.raw() == *oid)
        };
        match (observed, entry) {
            // Git knows no directories: what lies in one has paths of its own.
            (Observed::Absent | Observed::Directory, None) => true,
            (Observed::File(stat, oid) | Observed::Link(stat, oid), Some(entry)) => {
                self.mode_fits(stat, entry) && holds(entry, oid)
            }
            _ => false,
        }
    }

    /// Renames between the staging folder and a path; `Ok(false)` where one of the two is not as the
    /// flags want it: something is in the way, or nothing is there.
    pub(crate) fn rename(&self, mv: &Move<'_>) -> Result<bool, GitError> {
        let Some(dir) = self.parent(mv.path)? else {
            return Ok(false);
        };
        let name = Path::new(file_name(mv.path));
        let done = match mv.direction {
            Direction::In => {
                rustix::fs::renameat_with(CWD, mv.staged, &dir, name, RenameFlags::NOREPLACE)
            }
            Direction::Out => {
                rustix::fs::renameat_with(&dir, name, CWD, mv.staged, RenameFlags::NOREPLACE)
            }
            Direction::Exchange => {
                rustix::fs::renameat_with(CWD, mv.staged, &dir, name, RenameFlags::EXCHANGE)
            }
        };
        match done {
            Ok(()) => Ok(true),
            Err(Errno::NOENT | Errno::EXIST | Errno::NOTDIR | Errno::ISDIR | Errno::NOTEMPTY) => {
                Ok(false)
            }
            Err(e) => Err(io_at("exchange", mv.path.as_path())(e)),
        }
    }

    /// Makes the names in the root durable.
    pub(crate) fn sync_root(&self) -> Result<(), GitError> {
        rustix::fs::fsync(&self.root).map_err(io_at("sync", Path::new(".")))
    }

    /// Makes the names in a directory durable, if it is there.
    pub(crate) fn sync_directory(&self, path: &RepoPath) -> Result<(), GitError> {
        let Some(dir) = self.parent(path)? else {
            return Ok(());
        };
        match rustix::fs::openat(&dir, file_name(path), DIRECTORY, Mode::empty()) {
            Ok(open) => rustix::fs::fsync(open).map_err(io_at("sync", path.as_path())),
            Err(_) => Ok(()),
        }
    }

    /// Makes everything on the file system durable.
    pub(crate) fn sync_all(&self) -> Result<(), GitError> {
        rustix::fs::syncfs(&self.root).map_err(io_at("sync", Path::new(".")))
    }
}

/// One rename between the staging folder and the work tree.
pub(crate) struct Move<'a> {
    pub(crate) staged: &'a Path,
    pub(crate) path: &'a RepoPath,
    pub(crate) direction: Direction,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    In,
    Out,
    Exchange,
}

/// What lies at a place outside of a work tree.
pub(crate) fn observe(path: &Path) -> Result<Observed, GitError> {
    observe_at(CWD, path)
}

fn observe_at(dir: impl AsFd + Copy, name: &Path) -> Result<Observed, GitError> {
    let fail = io_at("look at", name);
    let stat = match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(Observed::Absent),
        Err(e) => return Err(fail(e)),
    };
    let hash = |bytes: &[u8]| {
        git2::Oid::hash_object(git2::ObjectType::Blob, bytes).map_err(git("hash a file"))
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {
            // Without O_NONBLOCK a fifo that took the file's place would stop the caller for ever.
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let fd = match rustix::fs::openat(dir, name, flags, Mode::empty()) {
                Ok(fd) => fd,
                Err(Errno::NOENT) => return Ok(Observed::Absent),
                Err(Errno::LOOP | Errno::NXIO) => return Ok(Observed::Other),
                Err(e) => return Err(fail(e)),
            };
            let stat = rustix::fs::fstat(&fd).map_err(&fail)?;
            let mut bytes = Vec::new();
            File::from(fd)
                .read_to_end(&mut bytes)
                .map_err(io_at("read", name))?;
            Ok(Observed::File(stat, hash(&bytes)?))
        }
        FileType::Symlink => match rustix::fs::readlinkat(dir, name, Vec::new()) {
            Ok(target) => Ok(Observed::Link(stat, hash(target.as_bytes())?)),
            Err(Errno::NOENT | Errno::INVAL) => Ok(Observed::Other),
            Err(e) => Err(fail(e)),
        },
        FileType::Directory => Ok(Observed::Directory),
        _ => Ok(Observed::Other),
    }
}

/// The inode at a place, not following a link.
pub(crate) fn inode(path: &Path) -> Option<(u64, u64)> {
    let stat = rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some((stat.st_dev, stat.st_ino))
}

/// The directories above a path, from the root down.
pub(crate) fn directories_above(path: &RepoPath) -> Vec<RepoPath> {
    let bytes = path.as_bytes();
    let cuts = bytes.iter().enumerate().filter(|(_, b)| **b == b'/');
    cuts.filter_map(|(at, _)| RepoPath::from_bytes(&bytes[..at]).ok())
        .collect()
}

pub(crate) fn file_name(path: &RepoPath) -> &OsStr {
    OsStr::from_bytes(path.components().next_back().unwrap_or_default())
}

/// Syncs a directory, so that the names in it are durable.
pub(crate) fn sync_directory(path: &Path) -> Result<(), GitError> {
    let open = File::open(path).map_err(io_at("open", path))?;
    open.sync_all().map_err(io_at("sync", path))
}

/// Makes the directories down to `dir` and syncs each that got a new name.
pub(crate) fn make_directories(dir: &Path, sharing: Sharing) -> Result<(), GitError> {
    sharing.make_each(dir, &|made| made.parent().map_or(Ok(()), sync_directory))
}
