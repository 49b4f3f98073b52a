//! The trees of one state directory: taking, listing, removing.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{
    FlockOperation, Mode, OFlags, Timespec, Timestamps, UTIME_NOW, flock, futimens, mkdirat,
    openat, statvfs,
};
use rustix::io::Errno;

use crate::error::{TreeError, io_at};
use crate::model::{Owner, SweepLimits, TreeInfo};
use crate::owner::OwnerRecord;
use crate::place::{Gone, look, open_root};
use crate::record;
use crate::tree::{Tree, TreeLock};

/// How often it is tried to lock a tree again: a process that a killed engine was starting may still hold it.
const TRIES: u32 = 200;

/// How long after each try.
const RETRY: Duration = Duration::from_millis(10);

/// All run trees below one directory.
#[derive(Debug, Clone)]
pub struct Trees {
    root: PathBuf,
}

impl Trees {
    /// The trees below `root`, which is made when the first is taken.
    pub fn at(root: &Path) -> Trees {
        Self {
            root: root.to_owned(),
        }
    }

    /// Locks a tree for one run: the one that this worker last used for this repository, else one that
    /// belongs to nobody, else a new one. One that is held is passed over.
    pub fn take(&self, owner: &Owner<'_>) -> Result<Tree, TreeError> {
        self.refuse_work_tree()?;
        make_private(&self.root)?;
        let mut numbers = self.numbers()?;
        let mut used: Vec<(i64, u32)> = Vec::new();
        for number in &numbers {
            match OwnerRecord::read(&self.dir(*number))? {
                Some(held) if !held.is_of(owner) => {}
                Some(_) => used.push((self.last_used_s(*number), *number)),
                None => used.push((i64::MIN, *number)),
            }
        }
        // Tried from the end: the tree that this owner used last has the warmest caches. Trees that are nobody's come
        // after all of the owner's.
        used.sort_unstable();
        for (_, number) in used.into_iter().rev() {
            if let Some(lock) = self.lock(number)?
                && let Some(tree) = self.held(number, owner, lock)?
            {
                return Ok(tree);
            }
        }
        numbers.sort_unstable();
        let mut number = 1;
        loop {
            if numbers.binary_search(&number).is_err() {
                let root = open_root(&self.root)?;
                // Making the directory decides between two that want the same number.
                match mkdirat(&root, number.to_string(), Mode::RWXU) {
                    Err(Errno::EXIST) => {}
                    Err(e) => return Err(io_at("make the directory", &self.dir(number))(e)),
                    Ok(()) => {
                        if let Some(lock) = self.lock(number)?
                            && let Some(tree) = self.held(number, owner, lock)?
                        {
                            return Ok(tree);
                        }
                    }
                }
            }
            number += 1;
        }
    }

    /// The tree with this number again, after a crash; `None` if it is no longer there.
    pub fn retake(&self, number: u32, owner: &Owner<'_>) -> Result<Option<Tree>, TreeError> {
        let Some(found) = OwnerRecord::read(&self.dir(number))? else {
            return Ok(None);
        };
        let other = |found: OwnerRecord| TreeError::OtherOwner {
            path: self.dir(number),
            worker: found.worker,
            repository: found.repository,
        };
        if !found.is_of(owner) {
            return Err(other(found));
        }
        for _ in 0..TRIES {
            match self.lock(number)? {
                Some(lock) => return self.held(number, owner, lock),
                None => std::thread::sleep(RETRY),
            }
        }
        Err(TreeError::InUse(self.dir(number)))
    }

    /// Keeps all runs out of the trees of an owner that no run uses. They are deleted once they have been idle.
    pub fn retire(&self, owner: &Owner<'_>) -> Result<(), TreeError> {
        for number in self.numbers()? {
            let dir = self.dir(number);
            let is_owned = OwnerRecord::read(&dir)?.is_some_and(|found| found.is_of(owner));
            if is_owned && self.lock(number)?.is_some() {
                OwnerRecord::retired().write(&dir)?;
            }
        }
        Ok(())
    }

    /// Every tree, by number.
    pub fn list(&self) -> Result<Vec<TreeInfo>, TreeError> {
        let mut found = Vec::new();
        for number in self.numbers()? {
            let path = self.dir(number);
            let owned = OwnerRecord::read(&self.dir(number))?;
            let figures = record::figures(&path);
            found.push(TreeInfo {
                number,
                worker: owned.as_ref().map_or(String::new(), |o| o.worker.clone()),
                repository: owned.map_or(PathBuf::new(), |o| o.repository),
                last_used_s: self.last_used_s(number),
                in_use: self.is_held(number)?,
                files: figures.as_ref().map_or(0, |figures| figures.files),
                bytes: figures.map_or(0, |figures| figures.bytes),
                path,
            });
        }
        Ok(found)
    }

    /// Removes trees beyond the limits that nobody holds, and leftovers of a killed removal.
    pub fn sweep(&self, limits: &SweepLimits, now_s: i64) -> Result<Vec<u32>, TreeError> {
        if !self.root.exists() {
            return Ok(Vec::new());
        }
        let mut gone = Gone::open(&self.root)?;
        let fail = io_at("empty", &self.root.join("gone"));
        gone.empty().map_err(&fail)?;
        let mut trees: Vec<(i64, u32)> = self
            .numbers()?
            .into_iter()
            .map(|n| (self.last_used_s(n), n))
            .collect();
        trees.sort_unstable();
        let mut left = trees.len();
        let mut removed = Vec::new();
        for (last_used_s, number) in trees {
            let is_idle = now_s.saturating_sub(last_used_s) >= limits.idle_s;
            if !(is_idle || left > limits.max || self.free()? < limits.min_free) {
                continue;
            }
            let Some(lock) = self.lock(number)? else {
                continue;
            };
            let root = open_root(&self.root)?;
            let name = number.to_string();
            // Moved away under its lock, and removed without it: a removal may take long and may be killed. Whoever
            // had opened the lock finds that it is no longer the tree's, and the next sweep removes what is left.
            let moved = gone.take_in(root.as_fd(), name.as_bytes());
            moved.map_err(io_at("remove", &self.dir(number)))?;
            drop(lock);
            gone.empty().map_err(&fail)?;
            removed.push(number);
            left -= 1;
        }
        removed.sort_unstable();
        Ok(removed)
    }

    fn dir(&self, number: u32) -> PathBuf {
        self.root.join(number.to_string())
    }

    fn numbers(&self) -> Result<Vec<u32>, TreeError> {
        let listed = match fs::read_dir(&self.root) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(io_at("list", &self.root))?,
        };
        let mut found = Vec::new();
        for entry in listed {
            let entry = entry.map_err(io_at("list", &self.root))?;
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.parse::<u32>().ok());
            let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
            found
                .extend(number.filter(|n| is_dir && Some(n.to_string().as_str()) == name.to_str()));
        }
        found.sort_unstable();
        Ok(found)
    }

    fn last_used_s(&self, number: u32) -> i64 {
        let stat = rustix::fs::lstat(self.dir(number).join("lock"));
        stat.map_or(i64::MIN, |stat| stat.st_mtime)
    }

    /// The lock, unless somebody holds it or the tree is gone.
    fn lock(&self, number: u32) -> Result<Option<TreeLock>, TreeError> {
        let path = self.dir(number).join("lock");
        let dir = match open_root(&self.dir(number)) {
            Ok(dir) => dir,
            Err(_) if !self.dir(number).exists() => return Ok(None),
            Err(e) => return Err(e),
        };
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let lock = openat(&dir, "lock", flags, Mode::RUSR | Mode::WUSR);
        let lock = match lock {
            Ok(lock) => TreeLock(lock),
            Err(Errno::NOENT) => return Ok(None),
            Err(e) => return Err(io_at("open", &path)(e)),
        };
        loop {
            match flock(&lock.0, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(Errno::WOULDBLOCK) => {}
                Err(e) => return Err(io_at("lock", &path)(e)),
            }
            // A look at it holds it shared for a moment; a run holds it alone.
            match flock(&lock.0, FlockOperation::NonBlockingLockShared) {
                Ok(()) => std::thread::yield_now(),
                Err(Errno::WOULDBLOCK) => return Ok(None),
                Err(e) => return Err(io_at("lock", &path)(e)),
            }
        }
        // It may have been moved away, with the tree, before it was locked.
        let at = open_root(&self.dir(number))
            .ok()
            .and_then(|dir| look(dir.as_fd(), b"lock").ok());
        let held = rustix::fs::fstat(&lock.0).map_err(io_at("look at", &path))?;
        let is_it = at.is_some_and(|at| at.st_ino == held.st_ino && at.st_dev == held.st_dev);
        Ok(is_it.then_some(lock))
    }

    fn is_held(&self, number: u32) -> Result<bool, TreeError> {
        let path = self.dir(number).join("lock");
        let Ok(lock) = fs::File::open(&path) else {
            return Ok(false);
        };
        match flock(&lock, FlockOperation::NonBlockingLockShared) {
            Ok(()) => Ok(false),
            Err(Errno::WOULDBLOCK) => Ok(true),
            Err(e) => Err(io_at("lock", &path)(e)),
        }
    }

    /// A tree whose lock is held, as this owner's; `None` if it became somebody else's meanwhile.
    fn held(
        &self,
        number: u32,
        owner: &Owner<'_>,
        lock: TreeLock,
    ) -> Result<Option<Tree>, TreeError> {
        let dir = self.dir(number);
        match OwnerRecord::read(&self.dir(number))? {
            Some(found) if !found.is_of(owner) => return Ok(None),
            Some(_) => {}
            None => {
                OwnerRecord::new(owner).write(&dir)?;
            }
        }
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_NOW,
        };
        let times = Timestamps {
            last_access: now,
            last_modification: now,
        };
        futimens(&lock.0, &times).map_err(io_at("update the timestamps of", &dir))?;
        Ok(Some(Tree::new(number, dir, &place_name(owner.name), lock)))
    }

    fn free(&self) -> Result<u64, TreeError> {
        let disk = statvfs(&self.root).map_err(io_at("look at", &self.root))?;
        Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
    }

    fn refuse_work_tree(&self) -> Result<(), TreeError> {
        let above = self.root.ancestors().find(|dir| dir.join(".git").exists());
        match above {
            None => Ok(()),
            Some(worktree) => Err(TreeError::InsideWorkTree {
                root: self.root.clone(),
                worktree: worktree.to_owned(),
            }),
        }
    }
}

/// The work tree's directory: the workspace's name, unless that is a file of ours.
fn place_name(name: &str) -> String {
    let own = [
        "",
        ".",
        "..",
        "lock",
        "owner.json",
        "owner.new",
        "record",
        "record.new",
    ];
    let folders = ["rules", "gone", "git.new"];
    if own.contains(&name) || folders.contains(&name) || name.contains('/') {
        return format!("tree-{}", name.replace('/', "-"));
    }
    name.to_owned()
}

fn make_private(root: &Path) -> Result<(), TreeError> {
    use std::os::unix::fs::DirBuilderExt;
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder
        .create(root)
        .map_err(io_at("make the directory", root))
}
