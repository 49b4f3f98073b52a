//! The index of a checkout: what it holds for our paths, and a new one made from a copy.
//!
//! Which file was copied is noted in the staging folder: while the index still is that file, nothing was staged
//! since, and the new index can take its place. A second name of it would say the same, but the kernel refuses one
//! where the file is another user's (`fs.protected_hardlinks`), as an index is after `sudo git commit`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{CWD, RenameFlags, Stat, renameat_with};
use rustix::io::Errno;

use crate::entries::{Entries, EntryStat};
use crate::error::{GitError, io_at};
use crate::ids::RepoPath;
use crate::plan::{Change, Entry, Follower};
use crate::worktree::{directories_above, inode};

/// How every index begins.
const SIGNATURE: &[u8] = b"DIRC";

/// What an index holds for a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IndexContent {
    Old,
    New,
    /// Something that somebody staged.
    Other,
}

/// The times of the staged files, by the numbers of their changes.
pub(crate) type Stats = BTreeMap<usize, Stat>;

/// Indexes that were read, for as long as they stay the same files.
#[derive(Default)]
pub(crate) struct Indexes(RefCell<Vec<Rc<IndexSnapshot>>>);

/// An index as it was read.
pub struct IndexSnapshot {
    /// What it holds.
    pub index: Entries,
    /// When it was written, and the rest; `None` where there was none.
    pub written: Option<fs::Metadata>,
    /// Open, so that its inode cannot be used again while it is believed.
    _file: Option<File>,
}

impl IndexSnapshot {
    /// Reads the index of a checkout, which need not exist.
    ///
    /// # Errors
    /// It cannot be read, is damaged, or of a kind that is not supported.
    pub fn read(path: &Path) -> Result<Self, GitError> {
        let mut file = match File::open(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                return Ok(Self {
                    index: Entries::default(),
                    written: None,
                    _file: None,
                });
            }
            other => other.map_err(io_at("open", path))?,
        };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(io_at("read", path))?;
        Ok(Self {
            index: Entries::parse(&bytes)?,
            written: Some(file.metadata().map_err(io_at("look at", path))?),
            _file: Some(file),
        })
    }

    fn identity(&self) -> Option<FileIdentity> {
        self.written.as_ref().map(FileIdentity::new)
    }
}

impl Indexes {
    /// The index at a path, under whichever name it was read, or read now.
    pub(crate) fn read(&self, path: &Path) -> Result<Rc<IndexSnapshot>, GitError> {
        let now = FileIdentity::at(path);
        let is_it = |seen: &&Rc<IndexSnapshot>| seen.identity() == now;
        if let Some(seen) = self.0.borrow().iter().find(is_it) {
            return Ok(Rc::clone(seen));
        }
        let seen = Rc::new(IndexSnapshot::read(path)?);
        self.0.borrow_mut().push(Rc::clone(&seen));
        Ok(seen)
    }
}

/// What tells an index from every other one, whatever its name is. Git never writes into one that is in place; and
/// another file that gets the inode of one that is gone has another size or time.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FileIdentity {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl FileIdentity {
    fn new(meta: &fs::Metadata) -> Self {
        Self {
            device: meta.dev(),
            inode: meta.ino(),
            size: meta.size(),
            modified: (meta.mtime(), meta.mtime_nsec()),
        }
    }

    /// The file at a path; `None` if there is none.
    fn at(path: &Path) -> Option<Self> {
        fs::symlink_metadata(path).ok().as_ref().map(Self::new)
    }

    fn to_line(self) -> String {
        let (seconds, nanoseconds) = self.modified;
        let (device, inode, size) = (self.device, self.inode, self.size);
        format!("{device} {inode} {size} {seconds} {nanoseconds}\n")
    }

    fn from_line(line: &str) -> Option<Self> {
        let mut parts = line.strip_suffix('\n')?.split(' ');
        let mut number = || parts.next()?.parse::<u64>().ok();
        let (device, inode, size) = (number()?, number()?, number()?);
        let mut time = || parts.next()?.parse::<i64>().ok();
        Some(Self {
            device,
            inode,
            size,
            modified: (time()?, time()?),
        })
    }
}

/// What the index holds for a change; `changes` are all of the plan.
pub(crate) fn held(index: &Entries, change: &Change, changes: &[Change]) -> IndexContent {
    let path = change.path.as_bytes();
    if index.is_unmerged(path) || is_obstructed(index, change, changes) {
        return IndexContent::Other;
    }
    let noted = index.get(path);
    let is = |wanted: Option<&Entry>| match (noted, wanted) {
        (None, None) => true,
        (Some(noted), Some(wanted)) => !noted.is_intended() && wanted.is(noted.oid, noted.mode),
        _ => false,
    };
    if is(change.old.as_ref()) {
        IndexContent::Old
    } else if is(change.new.as_ref()) {
        IndexContent::New
    } else {
        IndexContent::Other
    }
}

/// Whether adding the entry would throw out others: those below it, or one where its directory must be.
fn is_obstructed(index: &Entries, change: &Change, changes: &[Change]) -> bool {
    if change.new.is_none() {
        return false;
    }
    let goes = |path: &[u8]| {
        let found = changes.binary_search_by(|c| c.path.as_bytes().cmp(path));
        found.is_ok_and(|at| changes.get(at).is_some_and(|c| c.new.is_none()))
    };
    let above = directories_above(&change.path);
    let blocked = above
        .iter()
        .any(|dir| index.get(dir.as_bytes()).is_some() && !goes(dir.as_bytes()));
    let below = [change.path.as_bytes(), b"/"].concat();
    blocked || index.beginning_with(&below).any(|path| !goes(path))
}

/// Whether the index says that the file of a path is left out of the work tree.
pub(crate) fn is_skipped(index: &Entries, path: &RepoPath) -> bool {
    index
        .get(path.as_bytes())
        .is_some_and(EntryStat::is_skipped)
}

/// Whether an index entry has noted the very times of a file, long enough before the index was written.
pub(crate) fn has_noted(noted: &EntryStat, written: &fs::Metadata, stat: &Stat) -> bool {
    let modified = (i64::from(noted.modified.0), i64::from(noted.modified.1));
    let nanoseconds = i64::try_from(stat.st_mtime_nsec).unwrap_or(-1);
    noted.is_looked_at()
        && noted.is_of(stat)
        && modified == (stat.st_mtime, nanoseconds)
        && modified < (written.mtime(), written.mtime_nsec())
        && i64::from(noted.changed.0) == stat.st_ctime
}

/// Which way the entries go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Forward,
    Back,
}

/// A new index in the staging folder, with a second name of it and a note of the one of which it was made.
pub(crate) struct Prepared {
    new: PathBuf,
    ours: PathBuf,
    seen: PathBuf,
}

impl Prepared {
    /// The two ways have names of their own: a crash must not make the one be taken for the other.
    pub(crate) fn of(follower: &Follower<'_>, way: Direction) -> Self {
        let name = match way {
            Direction::Forward => "index",
            Direction::Back => "index-back",
        };
        Self {
            new: follower.staged(name),
            ours: follower.staged(&format!("{name}-ours")),
            seen: follower.staged(&format!("{name}-seen")),
        }
    }

    /// Whether it waits, and the index still is the one of which it was made.
    pub(crate) fn is_current(&self, follower: &Follower<'_>) -> bool {
        let waits = inode(&self.new).is_some() && inode(&self.new) == inode(&self.ours);
        waits && self.seen() == FileIdentity::at(&follower.index())
    }

    /// The index of which the new one was made; `None` if there was none.
    fn seen(&self) -> Option<FileIdentity> {
        let noted = fs::read(&self.seen).ok()?;
        if noted.starts_with(SIGNATURE) {
            // A landing that an earlier version began has a second name of that index instead.
            return FileIdentity::at(&self.seen);
        }
        FileIdentity::from_line(std::str::from_utf8(&noted).ok()?)
    }

    /// Exchanges the index with the new one; `false` where what came out was not the one seen, which
    /// is put back then.
    ///
    /// A rename would be enough under git's lock. But a person can have removed the lock a moment ago.
    pub(crate) fn replace(&self, follower: &Follower<'_>) -> Result<bool, GitError> {
        let index = follower.index();
        let flags = match self.seen() {
            Some(_) => RenameFlags::EXCHANGE,
            None => RenameFlags::NOREPLACE,
        };
        match renameat_with(CWD, &self.new, CWD, &index, flags) {
            Ok(()) => {}
            Err(Errno::NOENT | Errno::EXIST) => return Ok(false),
            Err(e) => return Err(io_at("replace", &index)(e)),
        }
        Ok(!self.put_back(follower)?)
    }

    /// Puts an index back that was not the one seen when it came out; says whether there was one.
    pub(crate) fn put_back(&self, follower: &Follower<'_>) -> Result<bool, GitError> {
        let index = follower.index();
        let (out, ours) = (inode(&self.new), inode(&self.ours));
        let is_seen = || FileIdentity::at(&self.new) == self.seen();
        let is_foreign = out.is_some() && out != ours && !is_seen();
        if is_foreign && ours.is_some() && inode(&index) == ours {
            renameat_with(CWD, &self.new, CWD, &index, RenameFlags::EXCHANGE)
                .map_err(io_at("put back", &index))?;
        }
        Ok(is_foreign)
    }
}

/// What became of making a new index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IndexBuild {
    /// It waits in the staging folder.
    Ready,
    /// The present one holds everything already.
    Same,
    /// Somebody has something staged for a path of the commit, so there is none.
    Staged,
}

/// Makes a new index from a copy of the present one.
///
/// `wanted` tells of each change whether its entry is to be replaced.
pub(crate) fn prepare(
    (follower, indexes): (&Follower<'_>, &Indexes),
    way: Direction,
    stats: &Stats,
    wanted: impl Fn(usize) -> bool,
) -> Result<IndexBuild, GitError> {
    let Prepared { new, ours, seen } = Prepared::of(follower, way);
    for stale in [&new, &ours, &seen] {
        match fs::remove_file(stale) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(io_at("remove", stale)(e)),
            _ => {}
        }
    }
    let temporary = new.with_extension("partial");
    let _ = fs::remove_file(&temporary);
    // What is noted is the very file that was read, even if somebody replaces the index in between.
    let read = indexes.read(&follower.index())?;
    if let Some(identity) = read.identity() {
        let fail = io_at("write", &seen);
        let mut note = File::create_new(&seen).map_err(&fail)?;
        note.write_all(identity.to_line().as_bytes())
            .and_then(|()| follower.plan.sharing.adjust_file(&note))
            .and_then(|()| note.sync_all())
            .map_err(fail)?;
    }
    let mut index = read.index.clone();
    let written = read.written.as_ref();
    if let Some(written) = written {
        index.distrust_racy(written.mtime());
    }
    let made = edit(&mut index, follower, way, stats, wanted);
    if made != IndexBuild::Ready {
        return Ok(made);
    }
    let fail = io_at("write", &temporary);
    let mut file = File::create_new(&temporary).map_err(&fail)?;
    file.write_all(&index.encode()).map_err(&fail)?;
    if let Some(written) = written {
        let bits = fs::Permissions::from_mode(written.mode() & 0o777);
        file.set_permissions(bits).map_err(&fail)?;
    }
    follower.plan.sharing.adjust_file(&file).map_err(&fail)?;
    // After a power cut an index without its content would make every use of git fail.
    file.sync_all().map_err(fail)?;
    // Our own second name comes before the final one: an index that waits and has no such name could not be told from
    // one of somebody's.
    fs::hard_link(&temporary, &ours).map_err(io_at("link", &temporary))?;
    fs::rename(&temporary, &new).map_err(io_at("rename", &temporary))?;
    Ok(made)
}

fn edit(
    index: &mut Entries,
    follower: &Follower<'_>,
    way: Direction,
    stats: &Stats,
    wanted: impl Fn(usize) -> bool,
) -> IndexBuild {
    let changes = &follower.plan.changes;
    let from = match way {
        Direction::Forward => IndexContent::Old,
        Direction::Back => IndexContent::New,
    };
    let mut todo = BTreeMap::new();
    for (number, change) in changes.iter().enumerate() {
        let held = held(index, change, changes);
        if way == Direction::Forward && held == IndexContent::Other {
            return IndexBuild::Staged;
        }
        if wanted(number) && held == from {
            let to = match way {
                Direction::Forward => change.new.as_ref(),
                Direction::Back => change.old.as_ref(),
            };
            let path = change.path.as_bytes();
            let (former, stat) = (index.get(path), stats.get(&number));
            let noted = to.map(|to| EntryStat::new(to.oid.raw(), to.mode, stat, former));
            todo.insert(path, noted);
        }
    }
    if todo.is_empty() {
        return IndexBuild::Same;
    }
    index.change(&todo);
    IndexBuild::Ready
}
