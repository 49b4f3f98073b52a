//! Resolves paths below the root, one name after the other.
//!
//! Each name is opened from the descriptor of its parent with `O_NOFOLLOW`, and links are followed here, so
//! that every place on the way is checked and none is outside. `openat2` with `RESOLVE_BENEATH` promises that
//! too and is not used: the product's own systemd units set `RestrictSUIDSGID=`, which refuses it with
//! ENOSYS. The tests compare both.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::reply::RefusedPath;
use super::root::{FileRoot, open_regular};

/// Links on one way, the limit of the kernel.
const LINKS_MAX: usize = 40;

/// A directory below the root, open for reading.
#[derive(Debug)]
pub(super) struct OpenDirectory {
    pub(super) file: File,
    /// Relative to the root, without links.
    pub(super) path: PathBuf,
}

/// What a path leads to.
#[derive(Debug)]
pub(super) enum Opened {
    Directory(OpenDirectory),
    File(File),
}

impl FileRoot<'_> {
    /// Opens the directory or regular file that a path leads to; links are followed as long as they stay
    /// below the root.
    pub(super) fn open_any(&self, path: &str) -> Result<Opened, RefusedPath> {
        self.open_place(&self.locate(path)?, path)
    }

    /// Opens the regular file that a path leads to.
    pub(super) fn open_file(&self, path: &str) -> Result<File, RefusedPath> {
        match self.open_any(path)? {
            Opened::File(file) => Ok(file),
            Opened::Directory(_) => Err(RefusedPath::of(path, Errno::ISDIR)),
        }
    }

    /// Opens the directory that a path leads to.
    pub(super) fn open_directory(&self, path: &str) -> Result<OpenDirectory, RefusedPath> {
        self.open_directory_at(&self.locate(path)?, path)
    }

    /// Opens a directory, making it and those above it as far as they are missing.
    pub(super) fn make_directory(
        &self,
        place: &Path,
        shown: &str,
    ) -> Result<OpenDirectory, RefusedPath> {
        let opened = self.open_directory_at(place, shown);
        let (Err(RefusedPath::Missing(_)), Some(above), Some(name)) =
            (&opened, place.parent(), place.file_name())
        else {
            return opened;
        };
        let above = self.make_directory(above, shown)?;
        self.permit(&above.path.join(name), shown)?;
        match rustix::fs::mkdirat(&above.file, name, Mode::from_raw_mode(0o777)) {
            // A link that leads nowhere is there, or somebody else was faster: opening it again tells.
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(RefusedPath::of(shown, errno)),
        }
        self.open_directory_at(place, shown)
    }

    pub(super) fn open_directory_at(
        &self,
        place: &Path,
        shown: &str,
    ) -> Result<OpenDirectory, RefusedPath> {
        match self.open_place(place, shown)? {
            Opened::Directory(directory) => Ok(directory),
            Opened::File(_) => Err(RefusedPath::of(shown, Errno::NOTDIR)),
        }
    }

    fn open_place(&self, place: &Path, shown: &str) -> Result<Opened, RefusedPath> {
        let way = PathWalk {
            root: self,
            shown,
            passed: Vec::new(),
            ahead: place.iter().map(OsStr::to_owned).collect(),
            links: 0,
        };
        way.open()
    }
}

/// A path that is being resolved.
struct PathWalk<'r> {
    root: &'r FileRoot<'r>,
    shown: &'r str,
    /// Directories from the root down to where the way is.
    passed: Vec<(OwnedFd, OsString)>,
    /// Names that are still to be opened.
    ahead: VecDeque<OsString>,
    links: usize,
}

impl PathWalk<'_> {
    fn open(mut self) -> Result<Opened, RefusedPath> {
        while let Some(name) = self.ahead.pop_front() {
            if name == ".." {
                if self.passed.pop().is_none() {
                    return Err(self.root.outside(self.shown));
                }
                continue;
            }
            self.root.permit(&self.path().join(&name), self.shown)?;
            // With `PATH` nothing is opened for good: a link is opened as such, a pipe or device not at all.
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let found = rustix::fs::openat(self.at(), &name, flags, Mode::empty())
                .map_err(|errno| self.refused(errno))?;
            let stat = rustix::fs::fstat(&found).map_err(|errno| self.refused(errno))?;
            self.root.permit_found(&stat, self.shown)?;
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => self.passed.push((found, name)),
                FileType::Symlink => self.follow(&found)?,
                _ if !self.ahead.is_empty() => return Err(self.refused(Errno::NOTDIR)),
                FileType::RegularFile => {
                    return open_regular(self.at(), &name, self.shown).map(Opened::File);
                }
                _ => return Err(self.refused(Errno::NXIO)),
            }
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(self.at(), ".", flags, Mode::empty())
            .map_err(|errno| self.refused(errno))?;
        Ok(Opened::Directory(OpenDirectory {
            file: file.into(),
            path: self.path(),
        }))
    }

    /// Puts the target of a link in its place.
    fn follow(&mut self, link: &OwnedFd) -> Result<(), RefusedPath> {
        self.links += 1;
        if self.links > LINKS_MAX {
            return Err(self.refused(Errno::LOOP));
        }
        let target = rustix::fs::readlinkat(link, "", Vec::new())
            .map_err(|errno| self.refused(errno))?
            .into_bytes();
        let mut target = PathBuf::from(OsString::from_vec(target));
        if target.is_absolute() {
            target = self
                .root
                .strip(&target)
                .ok_or_else(|| self.root.outside(self.shown))?;
            self.passed.clear();
        }
        // `components` leaves out each `.`, and keeps `..`, which is taken from where the link is.
        for part in target.components().rev() {
            if part.as_os_str() != "." {
                self.ahead.push_front(part.as_os_str().to_owned());
            }
        }
        Ok(())
    }

    fn at(&self) -> BorrowedFd<'_> {
        let last = self.passed.last();
        last.map_or(self.root.directory().as_fd(), |(directory, _)| {
            directory.as_fd()
        })
    }

    fn path(&self) -> PathBuf {
        self.passed.iter().map(|(_, name)| name).collect()
    }

    fn refused(&self, errno: Errno) -> RefusedPath {
        RefusedPath::of(self.shown, errno)
    }
}
