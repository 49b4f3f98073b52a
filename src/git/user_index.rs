//! Keeping the user's index in step with a commit or a restore, for exactly our paths.
//!
//! After the branch moved, an entry that nobody touched still holds the old content and would
//! show as a staged change that takes the commit back. Such an entry, and no other, is brought
//! up to date. Git's own lock is taken *before* the index is read, so that a `git add` at the
//! same moment is neither lost nor overwritten.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use git2::{Index, IndexEntry, IndexTime};
use serde::{Deserialize, Serialize};

use super::beneath::{Observed, Worktree};
use super::durable::Written;
use super::error::{GitError, git, git_write, io_at};
use super::ids::RepoPath;
use super::lock::GitLock;
use super::open::Handle;
use super::staged::{Slot, StagedEntry, slot};
use super::tree::{MODE_SUBMODULE, TreeEntry};

/// How one entry of the index shall become, if nobody but us has touched it.
pub(super) struct IndexUpdate {
    pub(super) path: RepoPath,
    /// What the index may hold there for us to replace it.
    pub(super) expected: Vec<Slot>,
    pub(super) to: Slot,
}

/// What became of the user's index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum IndexRefresh {
    /// It is in step with the commit, except for entries that the user staged meanwhile.
    Done {
        /// Entries that hold something of the user's and were left as they are.
        left: Vec<RepoPath>,
    },
    /// It could not be brought up to date; `git status` shows the paths as staged until
    /// `git reset -q -- <paths>`.
    Skipped {
        /// Why.
        why: String,
    },
    /// `HEAD` is elsewhere by now, so the index belongs to another commit.
    NotOurs,
}

const EXTENDED_SKIP_WORKTREE: u16 = git2::IndexEntryExtendedFlag::SKIP_WORKTREE.bits();
const EXTENDED_INTENT: u16 = git2::IndexEntryExtendedFlag::INTENT_TO_ADD.bits();

/// `git update-index --assume-unchanged`.
const ASSUME_UNCHANGED: u16 = git2::IndexEntryFlag::VALID.bits();

/// Where the stage lies in the flags of an entry.
const STAGE_SHIFT: u16 = 12;

/// Applies the updates, best effort: whatever fails leaves the index as it was.
pub(super) fn refresh(handle: &Handle, updates: &[IndexUpdate]) -> IndexRefresh {
    match update(handle, updates) {
        Ok(left) => IndexRefresh::Done { left },
        Err(error) => IndexRefresh::Skipped {
            why: error.to_string(),
        },
    }
}

/// Applies the updates; answers entries that hold something of the user's and were left as they are.
pub(super) fn update(handle: &Handle, updates: &[IndexUpdate]) -> Result<Vec<RepoPath>, GitError> {
    if updates.is_empty() {
        return Ok(Vec::new());
    }
    let git_dir = handle.repo.path();
    let fail = git_write("update the index in", git_dir);
    let path = git_dir.join("index");
    let _lock = GitLock::take(&path, git_dir)?;
    let copy = Written::reserve(git_dir);
    let old_mtime = match fs::copy(&path, copy.path()) {
        Ok(_) => Some(fs::metadata(&path).map_err(io_at("look at", &path))?),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
        Err(e) => return Err(io_at("copy", &path)(e)),
    };
    let mut index = Index::open(copy.path()).map_err(&fail)?;
    if let Some(old) = &old_mtime {
        distrust_racy(&mut index, old)?;
    }
    let worktree = Worktree::open(handle.workdir())?;
    let mut left = Vec::new();
    let mut touched = false;
    let (removals, additions): (Vec<_>, Vec<_>) = updates.iter().partition(|u| u.to.is_empty());
    for update in removals.into_iter().chain(additions) {
        let present = index.get_path(update.path.as_path(), 0);
        let held = slot(&index, &update.path);
        if held == update.to {
            continue;
        }
        if !update.expected.contains(&held) || is_obstructed(&index, update)? {
            left.push(update.path.clone());
            continue;
        }
        touched = true;
        for entry in &held {
            let stage = i32::from(entry.stage);
            index.remove(update.path.as_path(), stage).map_err(&fail)?;
        }
        for to in &update.to {
            let entry = index_entry(&worktree, &update.path, to, present.as_ref())?;
            index.add(&entry).map_err(&fail)?;
        }
    }
    if touched {
        index.write().map_err(&fail)?;
        if let Some(old) = &old_mtime {
            let mode = fs::Permissions::from_mode(old.mode() & 0o777);
            fs::set_permissions(copy.path(), mode).map_err(io_at("set the mode of", &path))?;
        }
        // After a power cut an index without its content would make every use of git fail.
        copy.sync()?;
        copy.publish(&path)?;
    }
    Ok(left)
}

/// Entries changed in the same instant as the old index was written are not trusted by their
/// times. The new index is younger, so the mark that git uses, a size of zero, must say it. This
/// comes before our own entries, whose content is compared when their times are taken.
fn distrust_racy(index: &mut Index, old: &fs::Metadata) -> Result<(), GitError> {
    let written = (old.mtime(), old.mtime_nsec());
    let racy: Vec<IndexEntry> = index
        .iter()
        .filter(|e| e.file_size != 0 && e.mode != MODE_SUBMODULE)
        .filter(|e| {
            (
                i64::from(e.mtime.seconds()),
                i64::from(e.mtime.nanoseconds()),
            ) >= written
        })
        .collect();
    for mut entry in racy {
        entry.file_size = 0;
        index.add(&entry).map_err(git("update the index"))?;
    }
    Ok(())
}

/// Whether adding the entry would throw out entries of the user's that lie where its directory
/// must be, or beneath it.
fn is_obstructed(index: &Index, update: &IndexUpdate) -> Result<bool, GitError> {
    if update.to.is_empty() {
        return Ok(false);
    }
    let mut beneath = update.path.as_bytes().to_vec();
    beneath.push(b'/');
    match index.find_prefix(beneath) {
        Ok(_) => return Ok(true),
        Err(e) if e.code() == git2::ErrorCode::NotFound => {}
        Err(e) => return Err(git("read the index")(e)),
    }
    let mut above = update.path.clone();
    while let Some(directory) = super::beneath::directory_of(&above) {
        if index.get_path(directory.as_path(), 0).is_some() {
            return Ok(true);
        }
        above = directory;
    }
    Ok(false)
}

/// An entry for content, with the file's times only when the file is certain to hold it.
fn index_entry(
    worktree: &Worktree,
    path: &RepoPath,
    staged: &StagedEntry,
    present: Option<&IndexEntry>,
) -> Result<IndexEntry, GitError> {
    let to = &staged.entry;
    let intent = if staged.intent { EXTENDED_INTENT } else { 0 };
    let mut entry = IndexEntry {
        ctime: IndexTime::new(0, 0),
        mtime: IndexTime::new(0, 0),
        dev: 0,
        ino: 0,
        mode: to.mode,
        uid: 0,
        gid: 0,
        file_size: 0,
        id: to.oid.raw(),
        flags: (u16::from(staged.stage) << STAGE_SHIFT)
            | present.map_or(0, |e| e.flags & ASSUME_UNCHANGED),
        flags_extended: intent | present.map_or(0, |e| e.flags_extended & EXTENDED_SKIP_WORKTREE),
        path: path.as_bytes().to_vec(),
    };
    let stat = match worktree.observe(path)? {
        Observed::File(_) => match worktree.read(path)? {
            Some((file, before)) => holds(file, to)?.then_some(before),
            None => None,
        },
        Observed::Link(target, stat) => {
            let oid = git2::Oid::hash_object(git2::ObjectType::Blob, &target);
            (oid.ok() == Some(to.oid.raw())).then_some(stat)
        }
        Observed::Absent | Observed::Directory | Observed::Other => None,
    };
    if let Some(stat) = stat {
        // Git stores the low 32 bits of each.
        let low = |n: u64| u32::try_from(n & u64::from(u32::MAX)).unwrap_or(0);
        let time = |s: i64, ns: u64| {
            let seconds = i32::try_from(s).unwrap_or(0);
            IndexTime::new(seconds, u32::try_from(ns).unwrap_or(0))
        };
        entry.ctime = time(stat.st_ctime, stat.st_ctime_nsec);
        entry.mtime = time(stat.st_mtime, stat.st_mtime_nsec);
        entry.dev = low(stat.st_dev);
        entry.ino = low(stat.st_ino);
        entry.uid = stat.st_uid;
        entry.gid = stat.st_gid;
        entry.file_size = low(stat.st_size.cast_unsigned());
    }
    Ok(entry)
}

/// Largest file that is read to learn whether the index may trust its times.
const COMPARED_BYTES_MAX: u64 = 64 << 20;

fn holds(file: fs::File, to: &TreeEntry) -> Result<bool, GitError> {
    use std::io::Read;
    let mut bytes = Vec::new();
    let limit = COMPARED_BYTES_MAX;
    let read = file.take(limit).read_to_end(&mut bytes);
    read.map_err(io_at("read", Path::new("a committed file")))?;
    if bytes.len() as u64 >= limit {
        return Ok(false);
    }
    let oid = git2::Oid::hash_object(git2::ObjectType::Blob, &bytes);
    Ok(oid.ok() == Some(to.oid.raw()))
}
