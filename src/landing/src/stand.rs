//! Where each file of a landing stands, read from inodes and contents alone.
//!
//! | the change | the slot holds | so the file |
//! |---|---|---|
//! | modifies | our file | waits |
//! | modifies | another file, which came out | was placed |
//! | creates | our file | waits |
//! | creates | nothing | was placed |
//! | deletes | nothing in `out` | is still there |
//! | deletes | the file, in `out` | was deleted |
//!
//! A second name of our file, a hard link, tells it wherever it is, also when somebody has written to it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use rustix::fs::Stat;

use crate::entries::Entries;
use crate::error::{GitError, io_at};
use crate::ids::RepoPath;
use crate::index::{self, IndexSnapshot};
use crate::journal::Observer;
use crate::plan::{Change, Entry, Follower};
use crate::worktree::{Observed, Worktree, inode, observe};

/// How a path stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stand {
    /// As before; nothing of ours is there.
    Old,
    /// As after, and not by us.
    New,
    /// Ours, as we placed it.
    Placed,
    /// Ours, and somebody has written to it since.
    Edited,
    /// It was placed, and somebody has put back what was there before.
    Restored,
    /// Anything else.
    Blocked,
}

/// The files of one checkout.
pub(crate) struct Files<'a> {
    pub(crate) follower: &'a Follower<'a>,
    pub(crate) worktree: Worktree,
    pub(crate) observer: &'a dyn Observer,
}

impl<'a> Files<'a> {
    pub(crate) fn open(
        follower: &'a Follower<'a>,
        follows_modes: bool,
        observer: &'a dyn Observer,
    ) -> Result<Self, GitError> {
        Ok(Self {
            worktree: Worktree::open(follower.workdir, follows_modes)?,
            follower,
            observer,
        })
    }

    /// Whether our part of a change was done: the file exchanged, put there or taken away.
    pub(crate) fn is_placed(&self, number: usize, change: &Change) -> bool {
        let in_slot = inode(&self.follower.slot(number));
        let ours = inode(&self.follower.ours(number));
        match (&change.old, &change.new) {
            (_, None) => inode(&self.follower.out(number)).is_some(),
            (None, Some(_)) => in_slot.is_none() && ours.is_some(),
            (Some(_), Some(_)) => in_slot.is_some() && in_slot != ours,
        }
    }

    pub(crate) fn stand(&self, number: usize, change: &Change) -> Result<Stand, GitError> {
        let (old, new) = (change.old.as_ref(), change.new.as_ref());
        let observed = self.worktree.observe(&change.path)?;
        let ours = inode(&self.follower.ours(number));
        let is_ours = new.is_some() && ours.is_some() && observed.inode() == ours;
        let is_placed = self.is_placed(number, change);
        if self.worktree.is(&observed, new) {
            let by_us = is_placed && (is_ours || new.is_none());
            return Ok(if by_us { Stand::Placed } else { Stand::New });
        }
        if is_ours {
            return Ok(Stand::Edited);
        }
        let in_the_way = new.is_some()
            && matches!(observed, Observed::Directory)
            && !self.only_holds_deleted(&change.path)?;
        if !self.worktree.is(&observed, old) || in_the_way {
            return Ok(Stand::Blocked);
        }
        if !is_placed {
            let blocked = new.is_some() && self.is_way_blocked(&change.path)?;
            return Ok(if blocked { Stand::Blocked } else { Stand::Old });
        }
        // What is placed again is our file under its second name, if nobody has written to it.
        let usable = match new {
            Some(new) => self.is(&observe(&self.follower.ours(number))?, new),
            None => true,
        };
        Ok(if usable {
            Stand::Restored
        } else {
            Stand::Blocked
        })
    }

    fn is(&self, observed: &Observed, entry: &Entry) -> bool {
        self.worktree.is(observed, Some(entry))
    }

    /// Whether a file of somebody's, or another repository, stands where directories must be.
    fn is_way_blocked(&self, path: &RepoPath) -> Result<bool, GitError> {
        if !self.worktree.is_blocked(path)? {
            return Ok(false);
        }
        let above = crate::worktree::directories_above(path);
        Ok(!self.deleted().iter().any(|gone| above.contains(gone)))
    }

    fn deleted(&self) -> BTreeSet<&RepoPath> {
        let changes = self.follower.file_changes();
        let deleted = changes.filter(|(_, change)| change.new.is_none());
        deleted.map(|(_, change)| &change.path).collect()
    }

    /// Whether a directory holds only files that the commit deletes, so that a file can take its place.
    fn only_holds_deleted(&self, path: &RepoPath) -> Result<bool, GitError> {
        if !self.worktree.is_directory(path)? {
            return Ok(false);
        }
        only_holds(self.follower.workdir, path, &self.deleted())
    }

    /// The paths that keep a landing from beginning: whatever is neither as before nor as after. What the index
    /// shows to be as before is not read.
    pub(crate) fn dirty(
        &self,
        stand_fits: impl Fn(Stand) -> bool,
        seen: Option<&IndexSnapshot>,
    ) -> Result<Vec<RepoPath>, GitError> {
        let known = seen.and_then(|seen| Some((seen.written.as_ref()?, &seen.index)));
        let mut found = Vec::new();
        for (number, change) in self.follower.file_changes() {
            let is_placed = self.is_placed(number, change);
            let stat = self.worktree.stat(&change.path)?;
            if let (Some((written, index)), Some(old), Some(stat)) = (&known, &change.old, &stat)
                && !is_placed
                && self.is_known_old(index, written, (change, old), stat)
            {
                continue;
            }
            let at = stat.map(|stat| (stat.st_dev, stat.st_ino));
            let is_ours = at.is_some() && at == inode(&self.follower.ours(number));
            // Whether somebody has written to it makes no difference then.
            if is_ours && is_placed && stand_fits(Stand::Placed) && stand_fits(Stand::Edited) {
                continue;
            }
            if !stand_fits(self.stand(number, change)?) {
                found.push(change.path.clone());
            }
        }
        for change in self.follower.submodules().filter(|c| c.old.is_none()) {
            let observed = self.worktree.observe(&change.path)?;
            if !matches!(observed, Observed::Absent | Observed::Directory)
                || self.is_way_blocked(&change.path)?
            {
                found.push(change.path.clone());
            }
        }
        Ok(found)
    }

    /// Whether the index shows that a file is as before, so that it need not be read.
    fn is_known_old(
        &self,
        index: &Entries,
        written: &fs::Metadata,
        (change, old): (&Change, &Entry),
        stat: &Stat,
    ) -> bool {
        index.get(change.path.as_bytes()).is_some_and(|noted| {
            old.is(noted.oid, noted.mode)
                && self.worktree.mode_fits(stat, old)
                && index::has_noted(noted, written, stat)
        })
    }
}

fn only_holds(
    workdir: &Path,
    path: &RepoPath,
    deleted: &BTreeSet<&RepoPath>,
) -> Result<bool, GitError> {
    use std::os::unix::ffi::OsStrExt;
    let dir = workdir.join(path.as_path());
    for entry in fs::read_dir(&dir).map_err(io_at("list", &dir))? {
        let entry = entry.map_err(io_at("list", &dir))?;
        let bytes = [path.as_bytes(), b"/", entry.file_name().as_bytes()].concat();
        let Ok(inner) = RepoPath::from_bytes(&bytes) else {
            return Ok(false);
        };
        let is_directory = entry.file_type().is_ok_and(|t| t.is_dir());
        let fits =
            deleted.contains(&inner) || (is_directory && only_holds(workdir, &inner, deleted)?);
        if !fits {
            return Ok(false);
        }
    }
    Ok(true)
}
