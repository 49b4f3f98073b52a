//! One walk that makes a work tree what the manifest says.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use git2::Repository;
use rustix::fs::{
    FileType, Mode, OFlags, Stat, chmodat, fchmod, fstat, mkdirat, openat, symlinkat,
};
use rustix::io::Errno;

use crate::error::{TreeError, git, io_at};
use crate::forms::Rules;
use crate::keep::Keep;
use crate::known::{
    Child, FileStamp, Item, Laid, MODE_EXECUTABLE, MODE_LINK, Manifest, RecordedPath, hash,
    hash_file,
};
use crate::overlay::Layer;
use crate::place::{Gone, Names, look, open_child};

/// Asked before each step; `false` stops.
pub(crate) type Observer = Box<dyn FnMut(&'static str) -> bool + Send>;

/// What the walk needs to know.
pub(crate) struct Repair<'a> {
    pub(crate) manifest: &'a mut Manifest,
    pub(crate) repo: &'a Repository,
    pub(crate) rules: &'a Rules,
    pub(crate) layer: &'a Layer,
    pub(crate) keep: &'a Keep,
    pub(crate) gone: &'a mut Gone,
    pub(crate) observer: &'a mut Option<Observer>,
    pub(crate) modes: Modes,
    /// Of each known file whether it need not be looked at.
    pub(crate) unchanged: Vec<bool>,
    /// The work tree, for messages.
    pub(crate) root: &'a Path,
    /// The path of the directory that is walked, with a slash at its end.
    pub(crate) path: Vec<u8>,
}

/// Permissions of new files and directories.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Modes {
    umask: u32,
}

impl Modes {
    /// As this process makes files.
    pub(crate) fn of_process() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
        let umask = line.and_then(|text| u32::from_str_radix(text.trim(), 8).ok());
        // The owner must be able to work with what is his.
        let umask = umask.unwrap_or(0o022) & 0o077;
        Self { umask }
    }

    fn directory(self) -> u32 {
        0o777 & !self.umask
    }

    pub(crate) fn file(self, item: Item) -> u32 {
        let all = if item.plain_mode() == MODE_EXECUTABLE {
            0o777
        } else {
            0o666
        };
        all & !self.umask
    }
}

impl Repair<'_> {
    /// Makes one directory equal, with everything in it.
    pub(crate) fn directory(
        &mut self,
        dir: BorrowedFd<'_>,
        range: (usize, usize),
    ) -> Result<(), TreeError> {
        self.set_directory_mode(dir)?;
        let children: Vec<(Vec<u8>, Child)> = {
            let found = self.manifest.children(range, self.path.len());
            found
                .into_iter()
                .map(|(name, child)| (name.to_vec(), child))
                .collect()
        };
        let mut done = vec![false; children.len()];
        let names = Names::read(dir).map_err(self.fail("read the directory", b""))?;
        for (name, _) in names.iter() {
            if self.path.is_empty() && name == b".git" {
                continue;
            }
            let found = children.binary_search_by(|(child, _)| child.as_slice().cmp(name));
            let Ok(at) = found else {
                self.unknown(dir, name)?;
                continue;
            };
            let is_there = match children.get(at) {
                Some((_, Child::File(file))) => self.file(dir, name, *file)?,
                Some((_, Child::Directory(from, to))) => self.enter(dir, name, (*from, *to))?,
                None => true,
            };
            if let Some(done) = done.get_mut(at) {
                *done = is_there;
            }
        }
        for ((name, child), _) in children.iter().zip(&done).filter(|(_, done)| !**done) {
            match child {
                Child::File(at) => self.write(dir, name, *at)?,
                Child::Directory(from, to) => {
                    self.step("make a directory")?;
                    let mode = Mode::from_raw_mode(self.modes.directory());
                    mkdirat(dir, name.as_slice(), mode)
                        .map_err(self.fail("make the directory", name))?;
                    self.enter(dir, name, (*from, *to))?;
                }
            }
        }
        Ok(())
    }

    /// Goes into a directory; `false` if something else was there, which is gone then.
    fn enter(
        &mut self,
        dir: BorrowedFd<'_>,
        name: &[u8],
        range: (usize, usize),
    ) -> Result<bool, TreeError> {
        let inner = match open_child(dir, name) {
            Ok(inner) => inner,
            Err(Errno::NOTDIR | Errno::LOOP) => {
                self.remove(dir, name)?;
                return Ok(false);
            }
            Err(e) => return Err(self.fail("open the directory", name)(e)),
        };
        let length = self.path.len();
        self.path.extend_from_slice(name);
        self.path.push(b'/');
        let done = self.directory(inner.as_fd(), range);
        self.path.truncate(length);
        done.map(|()| true)
    }

    /// Something that the base does not have.
    fn unknown(&mut self, dir: BorrowedFd<'_>, name: &[u8]) -> Result<(), TreeError> {
        let mut path = self.path.clone();
        path.extend_from_slice(name);
        if self.keep.stays(&path) {
            let stat = look(dir, name).map_err(self.fail("look at", name))?;
            let kind = FileType::from_raw_mode(stat.st_mode);
            if self.keep.fits(&path, kind) {
                return self.make_accessible(dir, name, &stat);
            }
        }
        if self.keep.is_above(&path) && self.enter(dir, name, (0, 0))? {
            return Ok(());
        }
        self.remove(dir, name)
    }

    /// Gives the owner's permissions back to something that is kept.
    fn make_accessible(
        &mut self,
        dir: BorrowedFd<'_>,
        name: &[u8],
        stat: &Stat,
    ) -> Result<(), TreeError> {
        let kind = FileType::from_raw_mode(stat.st_mode);
        let needed = if kind.is_dir() { 0o700 } else { 0o600 };
        if stat.st_mode & needed == needed {
            return Ok(());
        }
        self.step("set a mode")?;
        let mode = Mode::from_raw_mode(stat.st_mode & 0o7777 | needed);
        let changed = chmodat(dir, name, mode, rustix::fs::AtFlags::empty());
        changed.map_err(self.fail("set the mode of", name))
    }

    fn remove(&mut self, dir: BorrowedFd<'_>, name: &[u8]) -> Result<(), TreeError> {
        self.step("remove something")?;
        let removed = self.gone.remove(dir, name);
        removed.map_err(self.fail("remove", name))
    }

    /// Whether a file is as it is to be; otherwise it is gone then.
    fn file(&mut self, dir: BorrowedFd<'_>, name: &[u8], at: usize) -> Result<bool, TreeError> {
        if self.unchanged.get(at) == Some(&true) {
            return Ok(true);
        }
        let stat = match look(dir, name) {
            Ok(stat) => stat,
            Err(e) => return Err(self.fail("look at", name)(e)),
        };
        let now = FileStamp::of(&stat);
        if self.manifest.believes(at, &now) {
            return Ok(true);
        }
        let Some(item) = self.manifest.known.get(at).and_then(RecordedPath::wanted) else {
            return Ok(true);
        };
        let wanted = if item.mode == MODE_LINK {
            FileType::Symlink
        } else {
            FileType::RegularFile
        };
        // A second name could change it later from elsewhere.
        let is_same =
            now.kind() == wanted && stat.st_nlink == 1 && self.holds(dir, name, at, item)?;
        if !is_same {
            self.remove(dir, name)?;
            return Ok(false);
        }
        let mode = self.modes.file(item);
        if item.mode != MODE_LINK && stat.st_mode & 0o7777 != mode {
            self.step("set a mode")?;
            let mode = Mode::from_raw_mode(mode);
            chmodat(dir, name, mode, rustix::fs::AtFlags::empty())
                .map_err(self.fail("set the mode of", name))?;
        }
        let stat = look(dir, name).map_err(self.fail("look at", name))?;
        self.stamp(at, FileStamp::of(&stat));
        Ok(true)
    }

    /// Whether a file or link has the content that it is to have.
    fn holds(
        &self,
        dir: BorrowedFd<'_>,
        name: &[u8],
        at: usize,
        item: Item,
    ) -> Result<bool, TreeError> {
        let fail = self.fail("read", name);
        if item.mode == MODE_LINK {
            let target = rustix::fs::readlinkat(dir, name, Vec::new()).map_err(fail)?;
            let oid = hash(git2::ObjectType::Blob, target.as_bytes());
            return Ok(oid == item.oid);
        }
        let Some(found) = hash_file(dir, name).map_err(fail)? else {
            return Ok(false);
        };
        let known = self.manifest.known.get(at);
        match known {
            Some(known) if known.laid == Laid::No && self.rules.converts(&known.path)? => {
                let bytes = self.rules.to_work_tree(&known.path, self.blob(item)?)?;
                Ok(found == hash(git2::ObjectType::Blob, &bytes))
            }
            _ => Ok(found == item.oid),
        }
    }

    fn blob(&self, item: Item) -> Result<Vec<u8>, TreeError> {
        let blob = self.repo.find_blob(item.oid);
        Ok(blob
            .map_err(git("read a blob of the base"))?
            .content()
            .to_vec())
    }

    /// The bytes that a path is to hold.
    fn content(&self, at: usize, item: Item) -> Result<Vec<u8>, TreeError> {
        let Some(known) = self.manifest.known.get(at) else {
            return Ok(Vec::new());
        };
        if known.laid == Laid::No {
            let blob = self.blob(item)?;
            if item.mode == MODE_LINK {
                return Ok(blob);
            }
            return self.rules.to_work_tree(&known.path, blob);
        }
        let bytes = match self.layer.sources.get(&known.path) {
            Some(source) => source.read(),
            None => Err(io::Error::from(io::ErrorKind::NotFound)),
        };
        let path = Path::new(OsStr::from_bytes(&known.path));
        let bytes = bytes.map_err(io_at("read what is laid over", path))?;
        if hash(git2::ObjectType::Blob, &bytes) != item.oid {
            let changed = io::Error::other("it changed while it was copied; start the run again");
            return Err(io_at("copy what is laid over", path)(changed));
        }
        Ok(bytes)
    }

    /// Writes a file or link that is not there.
    fn write(&mut self, dir: BorrowedFd<'_>, name: &[u8], at: usize) -> Result<(), TreeError> {
        self.step("write a file")?;
        let Some(item) = self.manifest.known.get(at).and_then(RecordedPath::wanted) else {
            return Ok(());
        };
        let bytes = self.content(at, item)?;
        let stat = if item.mode == MODE_LINK {
            symlinkat(bytes.as_slice(), dir, name).and_then(|()| look(dir, name))
        } else {
            let flags =
                OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mode = Mode::from_raw_mode(self.modes.file(item));
            openat(dir, name, flags, mode).and_then(|file| {
                let mut rest = bytes.as_slice();
                while !rest.is_empty() {
                    let count = rustix::io::retry_on_intr(|| rustix::io::write(&file, rest))?;
                    rest = rest.get(count..).unwrap_or_default();
                }
                let stat = fstat(&file)?;
                if stat.st_mode & 0o7777 == mode.as_raw_mode() {
                    return Ok(stat);
                }
                fchmod(&file, mode)?;
                fstat(&file)
            })
        };
        let stat = stat.map_err(self.fail("write", name))?;
        self.stamp(at, FileStamp::of(&stat));
        Ok(())
    }

    fn stamp(&mut self, at: usize, stamp: FileStamp) {
        if let Some(held) = self.manifest.stamps.get_mut(at) {
            *held = Some(stamp);
        }
    }

    fn set_directory_mode(&mut self, dir: BorrowedFd<'_>) -> Result<(), TreeError> {
        let stat = fstat(dir).map_err(self.fail("look at", b""))?;
        if stat.st_mode & 0o1777 == self.modes.directory() {
            return Ok(());
        }
        self.step("set a mode")?;
        let special = stat.st_mode & 0o2000;
        let mode = Mode::from_raw_mode(self.modes.directory() | special);
        fchmod(dir, mode).map_err(self.fail("set the mode of", b""))
    }

    fn step(&mut self, what: &'static str) -> Result<(), TreeError> {
        step(self.observer, what)
    }

    /// A failure at a name of the directory that is walked.
    fn fail(&self, doing: &'static str, name: &[u8]) -> impl Fn(Errno) -> TreeError + use<> {
        let inner = Path::new(OsStr::from_bytes(&self.path)).join(OsStr::from_bytes(name));
        io_at(doing, &self.root.join(inner))
    }
}

/// Asks the observer whether to go on.
pub(crate) fn step(observer: &mut Option<Observer>, what: &'static str) -> Result<(), TreeError> {
    let goes_on = observer.as_mut().is_none_or(|asked| asked(what));
    goes_on.then_some(()).ok_or(TreeError::Stopped(what))
}
