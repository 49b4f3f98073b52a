//! The files of a checkout: put in place by exchange, and taken back.
//!
//! A file is exchanged in one step with the one in its place, and what came out is looked at afterwards: so
//! nothing that somebody writes between the comparison and the exchange can be lost, only met.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{GitError, io_at};
use crate::ids::RepoPath;
use crate::outcome::{LandError, MetFile};
use crate::plan::{Change, Entry};
use crate::repository::{entry_at, same};
use crate::stand::{Files, Stand};
use crate::worktree::{Direction, Move, directories_above, inode, observe};

/// Up to this many directories are synced one by one; more by one sync of the file system.
const DIRECTORIES_SYNCED_SINGLY_MAX: usize = 64;

impl Files<'_> {
    /// Brings every file to the state after the commit; names the first that somebody has changed.
    pub(crate) fn place_all(&self) -> Result<Option<RepoPath>, GitError> {
        // Deletions come first: a file has to go before a directory can get its name, and the last file of a
        // directory before a file can.
        let (gone, come): (Vec<_>, Vec<_>) = self
            .follower
            .file_changes()
            .partition(|(_, change)| change.new.is_none());
        for (number, change) in gone {
            if !self.place(number, change)? {
                return Ok(Some(change.path.clone()));
            }
            self.remove_emptied(&change.path)?;
        }
        for change in self.follower.submodules() {
            if change.new.is_none() {
                self.remove_directory(&change.path)?;
            } else if change.old.is_none() && !self.make_directory(&change.path)? {
                return Ok(Some(change.path.clone()));
            }
        }
        for (number, change) in come {
            if !self.place(number, change)? {
                return Ok(Some(change.path.clone()));
            }
        }
        Ok(None)
    }

    fn place(&self, number: usize, change: &Change) -> Result<bool, GitError> {
        match self.stand(number, change)? {
            Stand::New | Stand::Placed | Stand::Edited => return Ok(true),
            Stand::Blocked => return Ok(false),
            Stand::Restored => self.retire(number, change)?,
            Stand::Old => {}
        }
        let (slot, out) = (self.follower.slot(number), self.follower.out(number));
        if let Some(new) = &change.new
            && inode(&slot).is_none()
            && !self.relink(number, new)?
        {
            return Ok(false);
        }
        match (&change.old, &change.new) {
            (Some(old), None) => self.remove(change, old, &out),
            (None, _) => {
                self.make_way(&change.path)?;
                self.observer.before("create a file");
                self.rename(&slot, &change.path, Direction::In)
            }
            (Some(old), Some(_)) => self.exchange(change, old, &slot),
        }
    }

    fn rename(
        &self,
        staged: &Path,
        path: &RepoPath,
        direction: Direction,
    ) -> Result<bool, GitError> {
        self.worktree.rename(&Move {
            staged,
            path,
            direction,
        })
    }

    fn holds(&self, staged: &Path, entry: &Entry) -> Result<bool, GitError> {
        Ok(self.worktree.is(&observe(staged)?, Some(entry)))
    }

    fn remove(&self, change: &Change, old: &Entry, out: &Path) -> Result<bool, GitError> {
        self.observer.before("take a file away");
        if !self.rename(out, &change.path, Direction::Out)? {
            return Ok(false);
        }
        if self.holds(out, old)? {
            return Ok(true);
        }
        self.observer.before("put an edited file back");
        // Where somebody has made another meanwhile, this one stays in the staging folder and is named.
        self.rename(out, &change.path, Direction::In)?;
        Ok(false)
    }

    fn exchange(&self, change: &Change, old: &Entry, slot: &Path) -> Result<bool, GitError> {
        let ours = inode(slot);
        self.observer.before("exchange a file");
        if !self.rename(slot, &change.path, Direction::Exchange)? {
            return Ok(false);
        }
        if self.holds(slot, old)? {
            return Ok(true);
        }
        self.observer.before("put an edited file back");
        if self.rename(slot, &change.path, Direction::Exchange)? && inode(slot) != ours {
            // Somebody has saved another file in that instant: the later one stays in the work tree.
            self.rename(slot, &change.path, Direction::Exchange)?;
        }
        Ok(false)
    }

    /// Puts what came out once aside, so that the change can be made again.
    fn retire(&self, number: usize, change: &Change) -> Result<(), GitError> {
        let from = match &change.new {
            None => self.follower.out(number),
            Some(_) => self.follower.slot(number),
        };
        if inode(&from).is_some() {
            self.observer.before("put a former file aside");
            let aside = free_name(&self.follower.out(number).with_extension("again"));
            fs::rename(&from, &aside).map_err(io_at("rename", &from))?;
        }
        Ok(())
    }

    /// Our file under its second name is staged again, unless somebody has written to it.
    fn relink(&self, number: usize, new: &Entry) -> Result<bool, GitError> {
        let (ours, slot) = (self.follower.ours(number), self.follower.slot(number));
        if !self.holds(&ours, new)? {
            return Ok(false);
        }
        self.observer.before("stage a file again");
        fs::hard_link(&ours, &slot).map_err(io_at("link", &ours))?;
        Ok(true)
    }

    /// Makes the empty directory that stands for a submodule; says whether there is one now.
    fn make_directory(&self, path: &RepoPath) -> Result<bool, GitError> {
        self.observer.before("make the directory of a submodule");
        for dir in directories_above(path) {
            self.worktree.make_directory(&dir)?;
        }
        self.worktree.make_directory(path)
    }

    /// Removes the directory of a submodule if nothing is in it.
    fn remove_directory(&self, path: &RepoPath) -> Result<(), GitError> {
        self.observer.before("remove the directory of a submodule");
        if self.worktree.remove_if_empty(path)? {
            self.remove_emptied(path)?;
        }
        Ok(())
    }

    /// Makes the directories of a path, and removes an empty one in its place.
    fn make_way(&self, path: &RepoPath) -> Result<(), GitError> {
        for dir in directories_above(path) {
            if !self.worktree.is_directory(&dir)? {
                self.observer.before("make a directory");
                self.worktree.make_directory(&dir)?;
            }
        }
        if self.worktree.is_directory(path)? {
            self.observer.before("remove a directory");
            self.remove_empty_tree(path)?;
        }
        Ok(())
    }

    fn remove_empty_tree(&self, path: &RepoPath) -> Result<(), GitError> {
        use std::os::unix::ffi::OsStrExt;
        let dir = self.follower.workdir.join(path.as_path());
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            let bytes = [path.as_bytes(), b"/", entry.file_name().as_bytes()].concat();
            if entry.file_type().is_ok_and(|t| t.is_dir())
                && let Ok(inner) = RepoPath::from_bytes(&bytes)
            {
                self.remove_empty_tree(&inner)?;
            }
        }
        self.worktree.remove_if_empty(path)?;
        Ok(())
    }

    /// Removes the directories above a path that are empty now, as git does.
    fn remove_emptied(&self, path: &RepoPath) -> Result<(), GitError> {
        for dir in directories_above(path).iter().rev() {
            if !self.worktree.remove_if_empty(dir)? {
                break;
            }
        }
        Ok(())
    }

    /// Makes every name that was placed durable: the branch must never say more than the files.
    pub(crate) fn sync(&self) -> Result<(), GitError> {
        self.observer.before("sync directories");
        let files = self.follower.file_changes().map(|(_, change)| change);
        let directories: BTreeSet<RepoPath> = files
            .chain(self.follower.submodules())
            .flat_map(|change| directories_above(&change.path))
            .collect();
        if directories.len() > DIRECTORIES_SYNCED_SINGLY_MAX {
            return self.worktree.sync_all();
        }
        self.worktree.sync_root()?;
        directories
            .iter()
            .try_for_each(|directory| self.worktree.sync_directory(directory))
    }

    /// Takes back each file of ours where `head` has the old one; names those that somebody has changed.
    pub(crate) fn take_back_all(
        &self,
        head: Option<&git2::Tree<'_>>,
    ) -> Result<Vec<MetFile>, LandError> {
        let mut left = Vec::new();
        for change in self.follower.submodules() {
            let in_head = entry_at(head, &change.path)?;
            if change.old.is_none() && in_head.is_none() {
                self.remove_directory(&change.path)?;
            } else if change.new.is_none() && in_head.is_some() {
                self.make_directory(&change.path)?;
            }
        }
        // The reverse of the way there: what came goes first, and gives its names back to what was deleted.
        let (gone, come): (Vec<_>, Vec<_>) = self
            .follower
            .file_changes()
            .rev()
            .partition(|(_, change)| change.new.is_none());
        for (number, change) in come.into_iter().chain(gone) {
            if !self.is_placed(number, change) {
                if change.old.is_none() {
                    // Directories may have been made for it.
                    self.remove_emptied(&change.path)?;
                }
                continue;
            }
            let in_head = entry_at(head, &change.path)?;
            let stand = self.stand(number, change)?;
            let is_back = match stand {
                Stand::Old | Stand::Restored => true,
                Stand::New | Stand::Placed if same(in_head.as_ref(), change.old.as_ref()) => {
                    self.take_back(number, change)?
                }
                _ => {
                    let observed = self.worktree.observe(&change.path)?;
                    self.worktree.is(&observed, in_head.as_ref())
                }
            };
            if !is_back {
                left.push(self.kept(number, change));
            }
        }
        Ok(left)
    }

    fn take_back(&self, number: usize, change: &Change) -> Result<bool, GitError> {
        let (slot, out) = (self.follower.slot(number), self.follower.out(number));
        self.observer.before("take a file back");
        let Some(new) = &change.new else {
            for dir in directories_above(&change.path) {
                self.worktree.make_directory(&dir)?;
            }
            return self.rename(&out, &change.path, Direction::In);
        };
        let direction = match change.old {
            Some(_) => Direction::Exchange,
            None => Direction::Out,
        };
        if !self.rename(&slot, &change.path, direction)? {
            return Ok(false);
        }
        if !self.holds(&slot, new)? {
            let back = match direction {
                Direction::Exchange => Direction::Exchange,
                Direction::In | Direction::Out => Direction::In,
            };
            self.observer.before("put an edited file back");
            self.rename(&slot, &change.path, back)?;
            return Ok(false);
        }
        if direction == Direction::Out {
            self.remove_emptied(&change.path)?;
        }
        Ok(true)
    }

    fn kept(&self, number: usize, change: &Change) -> MetFile {
        let replaced = match (&change.old, &change.new) {
            (None, _) => None,
            (Some(_), None) => Some(self.follower.out(number)),
            (Some(_), Some(_)) => Some(self.follower.slot(number)),
        };
        MetFile {
            workdir: self.follower.workdir.to_owned(),
            path: change.path.clone(),
            replaced: replaced.filter(|path| inode(path).is_some()),
        }
    }

    /// Files that came out and hold something else than before: they were written to while they, or
    /// after they, were replaced.
    pub(crate) fn late(&self) -> Result<Vec<MetFile>, GitError> {
        let mut found = Vec::new();
        for (number, change) in self.follower.file_changes() {
            let Some(old) = &change.old else { continue };
            if !self.is_placed(number, change) {
                continue;
            }
            let kept = self.kept(number, change);
            if let Some(replaced) = &kept.replaced
                && !self.holds(replaced, old)?
            {
                found.push(kept);
            }
        }
        Ok(found)
    }
}

/// The first name of its kind that nothing has.
fn free_name(wanted: &Path) -> PathBuf {
    let mut number = 0_u32;
    loop {
        let mut name = wanted.as_os_str().to_owned();
        name.push(format!("-{number}"));
        let name = PathBuf::from(name);
        if inode(&name).is_none() {
            return name;
        }
        number += 1;
    }
}
