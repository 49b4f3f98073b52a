//! The index of a checkout: what it holds for our paths, and a new one made from a copy.
//!
//! The copy has a second name in the staging folder, so that its inode cannot be used again: while the
//! index still is that inode, nothing was staged since, and the new index can take its place.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use git2::{Index, IndexEntry, IndexTime, Repository};
use rustix::fs::{CWD, RenameFlags, Stat, renameat_with};
use rustix::io::Errno;

use crate::error::{GitError, git, git_write, io_at};
use crate::ids::RepoPath;
use crate::plan::{Change, Entry, Follower};
use crate::worktree::{directories_above, inode};

/// What an index holds for a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    Old,
    New,
    /// Something that somebody staged.
    Other,
}

const STAGES: u16 = 0x3000;
const EXTENDED_SKIP_WORKTREE: u16 = git2::IndexEntryExtendedFlag::SKIP_WORKTREE.bits();
const EXTENDED_INTENT: u16 = git2::IndexEntryExtendedFlag::INTENT_TO_ADD.bits();
/// `git update-index --assume-unchanged`.
const ASSUME_UNCHANGED: u16 = git2::IndexEntryFlag::VALID.bits();

/// The times of the staged files, by the numbers of their changes.
pub(crate) type Stats = BTreeMap<usize, Stat>;

/// Reads the index of a checkout, which need not exist.
pub(crate) fn read(path: &Path) -> Result<Index, GitError> {
    Index::open(path).map_err(git("read the index"))
}

/// Indexes that were read, for as long as they stay the same files: one of 50,000 entries takes long to read.
#[derive(Default)]
pub(crate) struct Indexes(RefCell<BTreeMap<PathBuf, Rc<Seen>>>);

/// An index as it was read.
pub(crate) struct Seen {
    pub(crate) index: Index,
    /// When it was written, and the rest; `None` where there was none.
    pub(crate) written: Option<fs::Metadata>,
    /// Open, so that its inode cannot be used again while it is believed.
    _file: Option<File>,
}

impl Indexes {
    /// The index at a path, read anew where it is another file by now.
    pub(crate) fn read(&self, path: &Path) -> Result<Rc<Seen>, GitError> {
        let held = self.0.borrow().get(path).cloned();
        let now = fs::metadata(path).ok();
        match held {
            Some(held) if is_same_file(held.written.as_ref(), now.as_ref()) => Ok(held),
            _ => self.read_anew(path, None),
        }
    }

    /// Reads the index of a checkout also for a handle of it, which would else read it once more.
    pub(crate) fn share(&self, path: &Path, handle: &Repository) -> Result<(), GitError> {
        self.read_anew(path, Some(handle)).map(|_| ())
    }

    fn read_anew(&self, path: &Path, handle: Option<&Repository>) -> Result<Rc<Seen>, GitError> {
        let seen = loop {
            let file = match File::open(path) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => None,
                other => Some(other.map_err(io_at("open", path))?),
            };
            let written = file.as_ref().and_then(|file| file.metadata().ok());
            let mut index = read(path)?;
            if let Some(handle) = handle {
                handle
                    .set_index(&mut index)
                    .map_err(git("read the index"))?;
            }
            if is_same_file(written.as_ref(), fs::metadata(path).ok().as_ref()) {
                break Rc::new(Seen {
                    index,
                    written,
                    _file: file,
                });
            }
        };
        self.0
            .borrow_mut()
            .insert(path.to_owned(), Rc::clone(&seen));
        Ok(seen)
    }
}

fn is_same_file(one: Option<&fs::Metadata>, other: Option<&fs::Metadata>) -> bool {
    let of = |meta: &fs::Metadata| {
        let times = (meta.mtime(), meta.mtime_nsec(), meta.ctime());
        (meta.dev(), meta.ino(), meta.size(), times)
    };
    one.map(of) == other.map(of)
}

/// What the index holds for a change; `changes` are all of the plan.
pub(crate) fn held(index: &Index, change: &Change, changes: &[Change]) -> Held {
    let path = change.path.as_path();
    let is_conflict = (1..=3).any(|stage| index.get_path(path, stage).is_some());
    if is_conflict || is_obstructed(index, change, changes) {
        return Held::Other;
    }
    let entry = index.get_path(path, 0);
    let is = |wanted: Option<&Entry>| match (&entry, wanted) {
        (None, None) => true,
        (Some(entry), Some(wanted)) => {
            entry.flags_extended & EXTENDED_INTENT == 0 && wanted.is(entry.id, entry.mode)
        }
        _ => false,
    };
    if is(change.old.as_ref()) {
        Held::Old
    } else if is(change.new.as_ref()) {
        Held::New
    } else {
        Held::Other
    }
}

/// Whether adding the entry would throw out others: those below it, or one where its directory must be.
fn is_obstructed(index: &Index, change: &Change, changes: &[Change]) -> bool {
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
        .any(|dir| index.get_path(dir.as_path(), 0).is_some() && !goes(dir.as_bytes()));
    let mut below = change.path.as_bytes().to_vec();
    below.push(b'/');
    let first = index.find_prefix(&below).unwrap_or(index.len());
    let inside = (first..index.len()).filter_map(|at| index.get(at));
    let mut inside = inside.take_while(|entry| entry.path.starts_with(&below));
    blocked || inside.any(|entry| !goes(&entry.path))
}

/// Whether the index says that the file of a path is left out of the work tree.
pub(crate) fn is_skipped(index: &Index, path: &RepoPath) -> bool {
    let entry = index.get_path(path.as_path(), 0);
    entry.is_some_and(|entry| entry.flags_extended & EXTENDED_SKIP_WORKTREE != 0)
}

/// Whether an index entry has noted the very times of a file, long enough before the index was written.
pub(crate) fn has_noted(
    index: &Index,
    written: &fs::Metadata,
    path: &RepoPath,
    stat: &Stat,
) -> bool {
    let Some(entry) = index.get_path(path.as_path(), 0) else {
        return false;
    };
    let noted = (
        i64::from(entry.mtime.seconds()),
        i64::from(entry.mtime.nanoseconds()),
    );
    let nanoseconds = i64::try_from(stat.st_mtime_nsec).unwrap_or(-1);
    entry.flags & (ASSUME_UNCHANGED | STAGES) == 0
        && noted == (stat.st_mtime, nanoseconds)
        && noted < (written.mtime(), written.mtime_nsec())
        && entry.file_size != 0
        && entry.file_size == low(stat.st_size.cast_unsigned())
        && entry.ino == low(stat.st_ino)
        && i64::from(entry.ctime.seconds()) == stat.st_ctime
}

/// Which way the entries go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Forward,
    Back,
}

/// A new index in the staging folder, with second names of it and of the one of which it was made.
pub(crate) struct Prepared {
    new: PathBuf,
    ours: PathBuf,
    seen: PathBuf,
}

impl Prepared {
    /// The two ways have names of their own: a crash must not make the one be taken for the other.
    pub(crate) fn of(follower: &Follower<'_>, way: Way) -> Self {
        let name = match way {
            Way::Forward => "index",
            Way::Back => "index-back",
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
        waits && inode(&self.seen) == inode(&follower.index())
    }

    /// Exchanges the index with the new one; `false` where what came out was not the one seen, which
    /// is put back then.
    ///
    /// A rename would be enough under git's lock. But a person can have removed the lock a moment ago.
    pub(crate) fn replace(&self, follower: &Follower<'_>) -> Result<bool, GitError> {
        let index = follower.index();
        let flags = match inode(&self.seen) {
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
        let is_foreign = out.is_some() && out != ours && out != inode(&self.seen);
        if is_foreign && ours.is_some() && inode(&index) == ours {
            renameat_with(CWD, &self.new, CWD, &index, RenameFlags::EXCHANGE)
                .map_err(io_at("put back", &index))?;
        }
        Ok(is_foreign)
    }
}

/// What became of making a new index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Made {
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
    follower: &Follower<'_>,
    way: Way,
    stats: &Stats,
    wanted: impl Fn(usize) -> bool,
) -> Result<Made, GitError> {
    let Prepared { new, ours, seen } = Prepared::of(follower, way);
    for stale in [&new, &ours, &seen] {
        match fs::remove_file(stale) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(io_at("remove", stale)(e)),
            _ => {}
        }
    }
    let temporary = new.with_extension("partial");
    let _ = fs::remove_file(&temporary);
    let written = match fs::hard_link(follower.index(), &seen) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => None,
        Err(e) => return Err(io_at("link", &follower.index())(e)),
        Ok(()) => {
            fs::copy(&seen, &temporary).map_err(io_at("copy", &seen))?;
            Some(fs::metadata(&seen).map_err(io_at("look at", &seen))?)
        }
    };
    let mut index = read(&temporary)?;
    if let Some(written) = &written {
        distrust_racy(&mut index, written)?;
    }
    let made = edit(&mut index, follower, way, stats, wanted)?;
    if made != Made::Ready {
        let _ = fs::remove_file(&temporary);
        return Ok(made);
    }
    index
        .write()
        .map_err(git_write("write an index in", &follower.checkout.git_dir))?;
    if let Some(written) = &written {
        let bits = fs::Permissions::from_mode(written.mode() & 0o777);
        fs::set_permissions(&temporary, bits).map_err(io_at("set the mode of", &temporary))?;
    }
    // After a power cut an index without its content would make every use of git fail.
    let file = File::open(&temporary).map_err(io_at("open", &temporary))?;
    file.sync_all().map_err(io_at("sync", &temporary))?;
    fs::hard_link(&temporary, &ours).map_err(io_at("link", &temporary))?;
    fs::rename(&temporary, &new).map_err(io_at("rename", &temporary))?;
    Ok(made)
}

fn edit(
    index: &mut Index,
    follower: &Follower<'_>,
    way: Way,
    stats: &Stats,
    wanted: impl Fn(usize) -> bool,
) -> Result<Made, GitError> {
    let fail = git("change the index");
    let changes = &follower.plan.changes;
    let from = if way == Way::Forward {
        Held::Old
    } else {
        Held::New
    };
    let mut todo = Vec::new();
    for (number, change) in changes.iter().enumerate() {
        let held = held(index, change, changes);
        if wanted(number) && held == from {
            todo.push((number, change));
        }
        if way == Way::Forward && held == Held::Other {
            return Ok(Made::Staged);
        }
    }
    let to = |change: &Change| match way {
        Way::Forward => change.new.clone(),
        Way::Back => change.old.clone(),
    };
    let present = |index: &Index, change: &Change| index.get_path(change.path.as_path(), 0);
    // What goes goes first: a file may become a directory, or the other way round.
    for (_, change) in &todo {
        if to(change).is_none() && present(index, change).is_some() {
            index.remove(change.path.as_path(), 0).map_err(&fail)?;
        }
    }
    for (number, change) in &todo {
        if let Some(entry) = to(change) {
            let present = present(index, change);
            let stat = stats.get(number);
            let entry = index_entry(&change.path, &entry, present.as_ref(), stat);
            index.add(&entry).map_err(&fail)?;
        }
    }
    Ok(if todo.is_empty() {
        Made::Same
    } else {
        Made::Ready
    })
}

/// Git does not trust the times of a file that was changed in the same *second* as the index was written:
/// most builds of it compare whole seconds. The new index is younger, so the mark that git uses for such an
/// entry, a size of zero, must say it.
fn distrust_racy(index: &mut Index, old: &fs::Metadata) -> Result<(), GitError> {
    const MODE_SUBMODULE: u32 = 0o160_000;
    let is_racy = |e: &IndexEntry| {
        let is_file = e.file_size != 0 && e.mode != MODE_SUBMODULE;
        is_file && i64::from(e.mtime.seconds()) >= old.mtime()
    };
    let racy: Vec<IndexEntry> = index.iter().filter(is_racy).collect();
    for mut entry in racy {
        entry.file_size = 0;
        index.add(&entry).map_err(git("change the index"))?;
    }
    Ok(())
}

fn index_entry(
    path: &RepoPath,
    to: &Entry,
    present: Option<&IndexEntry>,
    stat: Option<&Stat>,
) -> IndexEntry {
    let time = |s: i64, ns: u64| {
        let seconds = i32::try_from(s).unwrap_or(0);
        IndexTime::new(seconds, u32::try_from(ns).unwrap_or(0))
    };
    IndexEntry {
        ctime: stat.map_or(time(0, 0), |s| time(s.st_ctime, s.st_ctime_nsec)),
        mtime: stat.map_or(time(0, 0), |s| time(s.st_mtime, s.st_mtime_nsec)),
        dev: stat.map_or(0, |s| low(s.st_dev)),
        ino: stat.map_or(0, |s| low(s.st_ino)),
        mode: to.mode,
        uid: stat.map_or(0, |s| s.st_uid),
        gid: stat.map_or(0, |s| s.st_gid),
        file_size: stat.map_or(0, |s| low(s.st_size.cast_unsigned())),
        id: to.oid.raw(),
        flags: present.map_or(0, |e| e.flags & ASSUME_UNCHANGED),
        flags_extended: present.map_or(0, |e| e.flags_extended & EXTENDED_SKIP_WORKTREE),
        path: path.as_bytes().to_vec(),
    }
}

/// Git stores the low 32 bits of each.
fn low(n: u64) -> u32 {
    u32::try_from(n & u64::from(u32::MAX)).unwrap_or(0)
}
