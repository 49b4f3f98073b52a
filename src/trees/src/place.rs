//! Directories by handle: listing, opening without following a link, and taking apart what must go.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RawDir, RenameFlags, Stat, chmodat, mkdirat, openat,
    renameat_with, statat, unlinkat,
};
use rustix::io::Errno;

use crate::error::{TreeError, io_at};

/// Opens a directory that is no link.
pub(crate) const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// The names in a directory, in one allocation.
#[derive(Default)]
pub(crate) struct Names {
    bytes: Vec<u8>,
    list: Vec<(usize, usize, FileType)>,
}

impl Names {
    /// Reads them all; the kinds are as the file system says, which may be unknown.
    pub(crate) fn read(dir: BorrowedFd<'_>) -> rustix::io::Result<Self> {
        let mut names = Self::default();
        let mut buffer = Vec::with_capacity(32 * 1024);
        let mut listing = RawDir::new(dir, buffer.spare_capacity_mut());
        while let Some(entry) = listing.next() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            let start = names.bytes.len();
            names.bytes.extend_from_slice(name);
            let end = names.bytes.len();
            names.list.push((start, end, entry.file_type()));
        }
        Ok(names)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], FileType)> {
        let named = |(start, end, kind): &(usize, usize, FileType)| {
            (self.bytes.get(*start..*end).unwrap_or_default(), *kind)
        };
        self.list.iter().map(named)
    }
}

/// The stat data of a name, not following a link.
pub(crate) fn look(dir: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<Stat> {
    statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
}

/// What a name is, where the listing did not say.
pub(crate) fn kind_of(
    dir: BorrowedFd<'_>,
    name: &[u8],
    listed: FileType,
) -> rustix::io::Result<FileType> {
    if listed == FileType::Unknown {
        return look(dir, name).map(|stat| FileType::from_raw_mode(stat.st_mode));
    }
    Ok(listed)
}

/// Opens a directory, without a link on its last step.
pub(crate) fn open_root(path: &Path) -> Result<OwnedFd, TreeError> {
    match openat(rustix::fs::CWD, path, DIRECTORY, Mode::empty()) {
        Err(Errno::LOOP | Errno::NOTDIR) => Err(TreeError::Foreign {
            path: path.to_owned(),
            wanted: "directory",
        }),
        other => other.map_err(io_at("open", path)),
    }
}

/// Opens a directory by name; one without permissions gets them first.
pub(crate) fn open_child(dir: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<OwnedFd> {
    match openat(dir, name, DIRECTORY, Mode::empty()) {
        Err(Errno::ACCESS) => {
            let stat = look(dir, name)?;
            if FileType::from_raw_mode(stat.st_mode).is_dir() {
                chmodat(dir, name, Mode::RWXU, AtFlags::empty())?;
            }
            openat(dir, name, DIRECTORY, Mode::empty())
        }
        other => other,
    }
}

/// Where directories go to be removed. What is in it is taken apart one level at a time, so that
/// no depth is too much; several may do that at once.
pub(crate) struct Gone {
    dir: OwnedFd,
    next: u64,
}

impl Gone {
    /// The folder `gone` in `parent`.
    pub(crate) fn open(parent: &Path) -> Result<Self, TreeError> {
        let path = parent.join("gone");
        let at = open_root(parent)?;
        match mkdirat(&at, "gone", Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(e) => return Err(io_at("make the directory", &path)(e)),
        }
        let dir = open_root(&path)?;
        Ok(Self { dir, next: 0 })
    }

    /// Removes whatever has this name.
    pub(crate) fn remove(&mut self, dir: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<()> {
        match unlinkat(dir, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => return Ok(()),
            Err(Errno::ISDIR | Errno::PERM) => {}
            Err(e) => return Err(e),
        }
        self.take_in(dir, name)?;
        self.empty()
    }

    /// Moves a directory here.
    pub(crate) fn take_in(&mut self, dir: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<()> {
        // A directory gets another parent only if it can be written.
        match chmodat(dir, name, Mode::RWXU, AtFlags::empty()) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Ok(()),
            Err(e) => return Err(e),
        }
        loop {
            let to = self.next.to_string();
            self.next += 1;
            match renameat_with(dir, name, &self.dir, &to, RenameFlags::NOREPLACE) {
                Ok(()) | Err(Errno::NOENT) => return Ok(()),
                Err(Errno::EXIST | Errno::NOTEMPTY) => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Takes everything in it apart.
    pub(crate) fn empty(&mut self) -> rustix::io::Result<()> {
        loop {
            let held = openat(&self.dir, ".", DIRECTORY, Mode::empty())?;
            let names = Names::read(held.as_fd())?;
            let mut any = false;
            for (name, _) in names.iter() {
                any = true;
                self.take_apart(held.as_fd(), name)?;
            }
            if !any {
                return Ok(());
            }
        }
    }

    fn take_apart(&mut self, held: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<()> {
        let inner = match open_child(held, name) {
            Ok(inner) => inner,
            Err(Errno::NOENT) => return Ok(()),
            Err(Errno::NOTDIR | Errno::LOOP) => return vanish(held, name, AtFlags::empty()),
            Err(e) => return Err(e),
        };
        let names = Names::read(inner.as_fd())?;
        for (child, kind) in names.iter() {
            let is_dir = match kind_of(inner.as_fd(), child, kind) {
                Ok(kind) => kind.is_dir(),
                Err(Errno::NOENT) => continue,
                Err(e) => return Err(e),
            };
            if !is_dir {
                match vanish(inner.as_fd(), child, AtFlags::empty()) {
                    Err(Errno::ACCESS) => {
                        rustix::fs::fchmod(&inner, Mode::RWXU)?;
                        vanish(inner.as_fd(), child, AtFlags::empty())?;
                    }
                    other => other?,
                }
            } else if vanish(inner.as_fd(), child, AtFlags::REMOVEDIR).is_err() {
                rustix::fs::fchmod(&inner, Mode::RWXU)?;
                self.take_in(inner.as_fd(), child)?;
            }
        }
        vanish(held, name, AtFlags::REMOVEDIR)
    }
}

fn vanish(dir: BorrowedFd<'_>, name: &[u8], flags: AtFlags) -> rustix::io::Result<()> {
    match unlinkat(dir, name, flags) {
        Err(Errno::NOENT) => Ok(()),
        other => other,
    }
}

/// Opens a file for reading that is no link; a fifo in its place does not stop the caller.
pub(crate) fn open_file(dir: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    openat(dir, name, flags, Mode::empty())
}

/// The same; a file without permissions gets them first.
pub(crate) fn open_own_file(dir: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<OwnedFd> {
    match open_file(dir, name) {
        Err(Errno::ACCESS) => {
            let stat = look(dir, name)?;
            if !FileType::from_raw_mode(stat.st_mode).is_file() {
                return Err(Errno::ACCESS);
            }
            let mode = Mode::from_raw_mode(stat.st_mode & 0o777) | Mode::RUSR;
            chmodat(dir, name, mode, AtFlags::empty())?;
            open_file(dir, name)
        }
        other => other,
    }
}
