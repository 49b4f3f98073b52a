//! Files of a checkout: looked at without following a link, and replaced only while they hold what is
//! expected.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use git2::ObjectType;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RenameFlags, Stat, mkdirat, openat, renameat_with, statat,
    symlinkat, unlinkat,
};
use rustix::io::Errno;

use crate::error::{TreeError, io_at};
use crate::forms::Rules;
use crate::known::{Item, MODE_EXECUTABLE, MODE_FILE, MODE_LINK, hash};
use crate::place::{DIRECTORY, look, open_file};

/// The directory of a path, or why there is none.
pub(crate) enum ParentDir {
    Open(OwnedFd),
    Missing,
    /// A link, a file or another repository has this path.
    Blocked(Vec<u8>),
}

/// What lies at a path, with its content in git's form.
pub(crate) enum PathContent {
    Absent,
    Item(Item, Vec<u8>),
    Directory,
    /// A fifo, a socket or a device.
    Other,
    /// It cannot be read.
    Unreadable,
    Blocked(Vec<u8>),
}

impl PathContent {
    pub(crate) fn item(&self) -> Option<Item> {
        match self {
            Self::Item(item, ..) => Some(*item),
            _ => None,
        }
    }

    /// Whether this is the item, or nothing where there is to be none.
    pub(crate) fn is(&self, wanted: Option<Item>) -> bool {
        match (self, wanted) {
            (Self::Item(item, ..), Some(wanted)) => item.is_same(wanted),
            // Git knows no directories, and nothing lies below a file.
            (Self::Absent | Self::Blocked(_) | Self::Directory, None) => true,
            _ => false,
        }
    }
}

/// What is to lie at a path, in the form of the work tree.
pub(crate) struct Wanted {
    pub(crate) item: Item,
    pub(crate) bytes: Vec<u8>,
}

/// What became of one replacement.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Replaced {
    Done,
    /// Somebody has changed what was expected; it stays.
    Edited,
    Failed(String),
}

/// The files of one checkout.
pub(crate) struct Files<'a> {
    root: OwnedFd,
    rules: &'a Rules,
    follows_modes: bool,
    /// The work tree, for messages.
    place: PathBuf,
    /// Where replacements are written first: a folder of ours in the git directory.
    staging: PathBuf,
}

impl<'a> Files<'a> {
    pub(crate) fn open(
        workdir: &Path,
        git_dir: &Path,
        rules: &'a Rules,
    ) -> Result<Self, TreeError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = openat(rustix::fs::CWD, workdir, flags, Mode::empty());
        Ok(Self {
            root: root.map_err(io_at("open the work tree", workdir))?,
            rules,
            follows_modes: rules.follows_modes(),
            place: workdir.to_owned(),
            staging: git_dir.join("workerctl-in-place"),
        })
    }

    pub(crate) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// What lies at a path; `former` is what the base has there.
    pub(crate) fn observe(
        &self,
        path: &[u8],
        former: Option<Item>,
    ) -> Result<PathContent, TreeError> {
        let fail = |e: Errno| io_at("look at", &self.place.join(OsStr::from_bytes(path)))(e);
        match way(self.root.as_fd(), path).map_err(fail)? {
            ParentDir::Missing => Ok(PathContent::Absent),
            ParentDir::Blocked(by) => Ok(PathContent::Blocked(by)),
            ParentDir::Open(dir) => self.observe_at(dir.as_fd(), name_of(path), path, former),
        }
    }

    /// The stat data of a path.
    pub(crate) fn stat(&self, path: &[u8]) -> Option<Stat> {
        match way(self.root.as_fd(), path) {
            Ok(ParentDir::Open(dir)) => look(dir.as_fd(), name_of(path)).ok(),
            _ => None,
        }
    }

    /// The bytes of a file as they are on the disk.
    pub(crate) fn bytes(&self, path: &[u8]) -> Result<Option<Vec<u8>>, TreeError> {
        let fail = |e: io::Error| io_at("read", &self.place.join(OsStr::from_bytes(path)))(e);
        let ParentDir::Open(dir) = way(self.root.as_fd(), path).map_err(|e| fail(e.into()))? else {
            return Ok(None);
        };
        let Ok(file) = open_file(dir.as_fd(), name_of(path)) else {
            return Ok(None);
        };
        let mut content = Vec::new();
        File::from(file).read_to_end(&mut content).map_err(fail)?;
        Ok(Some(content))
    }

    fn observe_at(
        &self,
        dir: BorrowedFd<'_>,
        name: &[u8],
        path: &[u8],
        former: Option<Item>,
    ) -> Result<PathContent, TreeError> {
        let fail = |e: io::Error| io_at("read", &self.place.join(OsStr::from_bytes(path)))(e);
        let stat = match look(dir, name) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(PathContent::Absent),
            Err(e) => return Err(fail(e.into())),
        };
        let (mode, content) = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => return Ok(PathContent::Directory),
            FileType::Symlink => match rustix::fs::readlinkat(dir, name, Vec::new()) {
                Ok(target) => (MODE_LINK, target.into_bytes()),
                Err(_) => return Ok(PathContent::Other),
            },
            FileType::RegularFile => {
                let mut file = match open_file(dir, name) {
                    Ok(file) => File::from(file),
                    Err(Errno::ACCESS) => return Ok(PathContent::Unreadable),
                    Err(Errno::LOOP | Errno::NOENT | Errno::NXIO) => return Ok(PathContent::Other),
                    Err(e) => return Err(fail(e.into())),
                };
                let mut content = Vec::new();
                file.read_to_end(&mut content).map_err(fail)?;
                let former = former.filter(|item| item.mode != MODE_LINK);
                let content = self
                    .rules
                    .to_git(path, content, former.map(|item| item.oid))?;
                (self.mode(&stat, former), content)
            }
            _ => return Ok(PathContent::Other),
        };
        let oid = hash(ObjectType::Blob, &content);
        Ok(PathContent::Item(Item { oid, mode }, content))
    }

    pub(crate) fn mode(&self, stat: &Stat, former: Option<Item>) -> u32 {
        let is_executable = if self.follows_modes {
            stat.st_mode & 0o100 != 0
        } else {
            former.is_some_and(|item| item.plain_mode() == MODE_EXECUTABLE)
        };
        if is_executable {
            MODE_EXECUTABLE
        } else {
            MODE_FILE
        }
    }

    /// Puts `wanted` in the place of `expected`. What is taken out is looked at once more, so that nothing
    /// that somebody writes meanwhile can be lost.
    pub(crate) fn replace(
        &self,
        path: &[u8],
        expected: Option<Item>,
        wanted: Option<&Wanted>,
    ) -> Replaced {
        let done = self.try_to_replace(path, expected, wanted);
        let _ = std::fs::remove_dir(&self.staging);
        done.unwrap_or_else(|error| Replaced::Failed(chain(&error)))
    }

    fn try_to_replace(
        &self,
        path: &[u8],
        expected: Option<Item>,
        wanted: Option<&Wanted>,
    ) -> Result<Replaced, TreeError> {
        self.recover(path, expected, wanted)?;
        let staging = self.staging()?;
        let slot = slot_of(path);
        let seen = self.observe(path, expected)?;
        if !seen.is(expected) {
            return Ok(Replaced::Edited);
        }
        let place = self.place.join(OsStr::from_bytes(path));
        let fail = |e: Errno| io_at("replace", &place)(e);
        let Some(wanted) = wanted else {
            let ParentDir::Open(dir) = way(self.root.as_fd(), path).map_err(fail)? else {
                return Ok(Replaced::Done);
            };
            return match renameat_with(&dir, name_of(path), &staging, &slot, RenameFlags::NOREPLACE)
            {
                Err(Errno::NOENT) => Ok(Replaced::Edited),
                Err(e) => Err(fail(e)),
                Ok(()) => self.settle(
                    &dir,
                    (&staging, &slot),
                    path,
                    expected,
                    RenameFlags::NOREPLACE,
                ),
            };
        };
        write(&staging, &slot, wanted).map_err(|e| io_at("write what belongs at", &place)(e))?;
        let Some(dir) = self.make_way(path).map_err(fail)? else {
            let _ = unlinkat(&staging, &slot, AtFlags::empty());
            return Ok(Replaced::Edited);
        };
        let flags = match (&seen, expected) {
            (_, Some(_)) => RenameFlags::EXCHANGE,
            (PathContent::Directory, None) => {
                let _ = unlinkat(&dir, name_of(path), AtFlags::REMOVEDIR);
                RenameFlags::NOREPLACE
            }
            _ => RenameFlags::NOREPLACE,
        };
        match renameat_with(&staging, &slot, &dir, name_of(path), flags) {
            Ok(()) if expected.is_none() => Ok(Replaced::Done),
            Ok(()) => self.settle(&dir, (&staging, &slot), path, expected, flags),
            Err(e) => {
                let _ = unlinkat(&staging, &slot, AtFlags::empty());
                match e {
                    Errno::NOENT | Errno::EXIST => Ok(Replaced::Edited),
                    e => Err(fail(e)),
                }
            }
        }
    }

    /// Removes what came out, or puts it back where somebody has written it meanwhile.
    fn settle(
        &self,
        dir: &OwnedFd,
        (staging, slot): (&OwnedFd, &str),
        path: &[u8],
        expected: Option<Item>,
        flags: RenameFlags,
    ) -> Result<Replaced, TreeError> {
        let fail = |e: Errno| io_at("replace", &self.staging.join(slot))(e);
        if self
            .observe_at(staging.as_fd(), slot.as_bytes(), path, expected)?
            .is(expected)
        {
            unlinkat(staging, slot, AtFlags::empty()).map_err(fail)?;
            return Ok(Replaced::Done);
        }
        renameat_with(staging, slot, dir, name_of(path), flags).map_err(fail)?;
        if flags == RenameFlags::EXCHANGE {
            unlinkat(staging, slot, AtFlags::empty()).map_err(fail)?;
        }
        Ok(Replaced::Edited)
    }

    /// Ends a replacement that was killed half-way: an edit that had come out goes back.
    pub(crate) fn recover(
        &self,
        path: &[u8],
        expected: Option<Item>,
        wanted: Option<&Wanted>,
    ) -> Result<(), TreeError> {
        let staging = match crate::place::open_root(&self.staging) {
            Ok(staging) => staging,
            Err(_) if !self.staging.exists() => return Ok(()),
            Err(error) => return Err(error),
        };
        let slot = slot_of(path);
        let fail = |e: Errno| io_at("replace", &self.staging.join(&slot))(e);
        let wanted = wanted.map(|wanted| wanted.item);
        let left = self.observe_at(staging.as_fd(), slot.as_bytes(), path, expected)?;
        if matches!(left, PathContent::Absent) {
            return Ok(());
        }
        let mut own = [expected, wanted].into_iter().flatten();
        let is_ours = left
            .item()
            .is_some_and(|left| own.any(|item| item.is_same(left)));
        if !is_ours
            && self.observe(path, expected)?.is(wanted)
            && let ParentDir::Open(dir) = way(self.root.as_fd(), path).map_err(fail)?
        {
            let flags = match wanted {
                Some(_) => RenameFlags::EXCHANGE,
                None => RenameFlags::NOREPLACE,
            };
            renameat_with(&staging, &slot, &dir, name_of(path), flags).map_err(fail)?;
        }
        match unlinkat(&staging, &slot, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(e) => Err(fail(e)),
        }
    }

    /// Makes the directories of a path; `None` where something else is in the way.
    fn make_way(&self, path: &[u8]) -> rustix::io::Result<Option<OwnedFd>> {
        loop {
            match way(self.root.as_fd(), path)? {
                ParentDir::Open(dir) => return Ok(Some(dir)),
                ParentDir::Blocked(_) => return Ok(None),
                ParentDir::Missing => {}
            }
            // The first one that is missing.
            for (cut, _) in path.iter().enumerate().filter(|(_, b)| **b == b'/') {
                let above = path.get(..cut).unwrap_or_default();
                let ParentDir::Open(dir) = way(self.root.as_fd(), above)? else {
                    break;
                };
                match mkdirat(&dir, name_of(above), Mode::from_raw_mode(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(e) => return Err(e),
                }
            }
        }
    }

    /// Removes the directories above a path that are empty, up to the first that `stays`.
    pub(crate) fn remove_emptied(&self, path: &[u8], stays: impl Fn(&[u8]) -> bool) {
        for (cut, _) in path.iter().enumerate().rev().filter(|(_, b)| **b == b'/') {
            let above = path.get(..cut).unwrap_or_default();
            let Ok(ParentDir::Open(dir)) = way(self.root.as_fd(), above) else {
                continue;
            };
            let is_gone = |e| e == Errno::NOENT;
            if stays(above)
                || unlinkat(&dir, name_of(above), AtFlags::REMOVEDIR).is_err_and(|e| !is_gone(e))
            {
                return;
            }
        }
    }

    /// Makes everything that was replaced durable.
    pub(crate) fn sync(&self) -> Result<(), TreeError> {
        rustix::fs::syncfs(&self.root).map_err(io_at("sync", &self.place))
    }

    fn staging(&self) -> Result<OwnedFd, TreeError> {
        match std::fs::create_dir(&self.staging) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => {
                return Err(io_at("make the directory", &self.staging)(e));
            }
            _ => {}
        }
        crate::place::open_root(&self.staging)
    }
}

/// Writes what is to be put in place, durably.
fn write(staging: &OwnedFd, slot: &str, wanted: &Wanted) -> io::Result<()> {
    if wanted.item.mode == MODE_LINK {
        return Ok(symlinkat(OsStr::from_bytes(&wanted.bytes), staging, slot)?);
    }
    let mode = if wanted.item.plain_mode() == MODE_EXECUTABLE {
        0o777
    } else {
        0o666
    };
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(openat(staging, slot, flags, Mode::from_raw_mode(mode))?);
    let written = file.write_all(&wanted.bytes).and_then(|()| file.sync_all());
    if written.is_err() {
        let _ = unlinkat(staging, slot, AtFlags::empty());
    }
    written
}

/// Opens the directory of a path step by step.
pub(crate) fn way(root: BorrowedFd<'_>, path: &[u8]) -> rustix::io::Result<ParentDir> {
    let mut dir = rustix::io::fcntl_dupfd_cloexec(root, 0)?;
    let mut from = 0;
    for (cut, _) in path.iter().enumerate().filter(|(_, b)| **b == b'/') {
        let name = path.get(from..cut).unwrap_or_default();
        let blocked = || {
            Ok(ParentDir::Blocked(
                path.get(..cut).unwrap_or_default().to_vec(),
            ))
        };
        dir = match openat(&dir, name, DIRECTORY, Mode::empty()) {
            Ok(inner) => inner,
            Err(Errno::NOENT) => return Ok(ParentDir::Missing),
            Err(Errno::NOTDIR | Errno::LOOP) => return blocked(),
            Err(e) => return Err(e),
        };
        if statat(&dir, ".git", AtFlags::SYMLINK_NOFOLLOW).is_ok() {
            return blocked();
        }
        from = cut + 1;
    }
    Ok(ParentDir::Open(dir))
}

fn name_of(path: &[u8]) -> &[u8] {
    path.rsplit(|b| *b == b'/').next().unwrap_or_default()
}

/// The name in the staging folder under which a path is replaced, the same after a crash.
fn slot_of(path: &[u8]) -> String {
    hash(ObjectType::Blob, path).to_string()
}

/// An error with its causes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}
