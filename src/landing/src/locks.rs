//! Git's locks, taken by linking complete files of ours, and told by their inodes.
//!
//! Git's lock on `x` is the existence of `x.lock`. Ours get their names by `link(2)` from tokens in the
//! staging folder: no lock is ever empty, the branch's already holds the new value, and while its token
//! exists no other file can have its inode. So a lock is ours or is not, without a word read.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{GitError, io_at};
use crate::journal::Observer;
use crate::outcome::Obstacle;
use crate::plan::Plan;
use crate::sharing::Sharing;
use crate::worktree::{inode, make_directories};

/// The locks of one landing, in the order in which they are taken.
pub(crate) struct Locks<'a> {
    list: Vec<Lock>,
    observer: &'a dyn Observer,
}

/// One lock, whether taken or not.
pub(crate) struct Lock {
    token: PathBuf,
    path: PathBuf,
    /// Where it lies; gone with a work tree that is removed.
    home: PathBuf,
    kind: Kind,
    sharing: Sharing,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Index,
    Head,
    Branch,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Index => "index",
            Self::Head => "HEAD",
            Self::Branch => "branch",
        }
    }
}

/// The lock file of a file of git's.
pub(crate) fn lock_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}

/// The token of the branch's lock, which holds its new value.
pub(crate) fn branch_token(plan: &Plan) -> PathBuf {
    plan.staging.join("branch-lock")
}

/// The tokens of a checkout's locks, on its index and on its `HEAD`.
pub(crate) fn checkout_tokens(plan: &Plan, number: usize) -> [PathBuf; 2] {
    let place = plan.place_of(number);
    [place.join("index-lock"), place.join("head-lock")]
}

impl<'a> Locks<'a> {
    pub(crate) fn of(plan: &Plan, observer: &'a dyn Observer) -> Self {
        let mut list = Vec::new();
        for (number, checkout) in plan.checkouts.iter().enumerate() {
            let [index, head] = checkout_tokens(plan, number);
            let lock = |token: PathBuf, name: &str, kind| Lock {
                token,
                path: lock_of(&checkout.git_dir.join(name)),
                home: checkout.git_dir.clone(),
                kind,
                sharing: plan.sharing,
            };
            if checkout.follows {
                list.push(lock(index, "index", Kind::Index));
            }
            // `HEAD` is locked in every checkout, so that none switches to the branch meanwhile.
            list.push(lock(head, "HEAD", Kind::Head));
        }
        list.push(Lock {
            token: branch_token(plan),
            path: lock_of(&plan.common_dir.join(&plan.target)),
            home: plan.common_dir.clone(),
            kind: Kind::Branch,
            sharing: plan.sharing,
        });
        Self { list, observer }
    }

    /// Takes all that are not taken yet, or none at all.
    pub(crate) fn take(&self) -> Result<Option<Obstacle>, GitError> {
        for lock in &self.list {
            self.observer.before(&format!("lock {}", lock.kind.name()));
            let obstacle = match lock.take() {
                Ok(true) => continue,
                Ok(false) => Obstacle::Locked {
                    lock: lock.path.clone(),
                },
                // A directory of git's may not be written: the locks beside it must not stay.
                Err(error) if error.code() == "read_only" => Obstacle::Denied {
                    why: error.with_hint(),
                },
                Err(error) => return Err(error),
            };
            self.release()?;
            return Ok(Some(obstacle));
        }
        Ok(None)
    }

    /// Takes the locks on indexes again that somebody removed, to put back what is in them.
    pub(crate) fn retake_indexes(&self) -> Result<Option<Obstacle>, GitError> {
        for lock in self.list.iter().filter(|lock| lock.kind == Kind::Index) {
            if !lock.take()? {
                let lock = lock.path.clone();
                return Ok(Some(Obstacle::Locked { lock }));
            }
        }
        Ok(None)
    }

    /// The first lock that somebody has removed meanwhile.
    pub(crate) fn lost(&self) -> Option<Obstacle> {
        let lost = self
            .list
            .iter()
            .find(|lock| !lock.is_ours() && lock.home.exists());
        lost.map(|lock| Obstacle::LockLost {
            lock: lock.path.clone(),
        })
    }

    /// Those that are ours now.
    pub(crate) fn held(&self) -> Vec<PathBuf> {
        let ours = self.list.iter().filter(|lock| lock.is_ours());
        ours.map(|lock| lock.path.clone()).collect()
    }

    /// Lets go of all that are ours: the index last, because most commands begin with its lock.
    pub(crate) fn release(&self) -> Result<(), GitError> {
        for kind in [Kind::Branch, Kind::Head, Kind::Index] {
            for lock in self.list.iter().filter(|lock| lock.kind == kind) {
                if lock.is_ours() {
                    self.observer.before(&format!("unlock {}", kind.name()));
                    lock.release()?;
                }
            }
        }
        Ok(())
    }
}

impl Lock {
    /// Whether the lock is ours now: taken, or already ours since before a crash.
    fn take(&self) -> Result<bool, GitError> {
        if !self.home.exists() {
            return Ok(true);
        }
        if self.kind == Kind::Branch
            && let Some(dir) = self.path.parent()
        {
            // Git removes directories of branches that it packs.
            make_directories(dir, self.sharing)?;
        }
        match fs::hard_link(&self.token, &self.path) {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(self.is_ours()),
            Err(e) => Err(io_at("create", &self.path)(e)),
        }
    }

    fn is_ours(&self) -> bool {
        let token = inode(&self.token);
        token.is_some() && token == inode(&self.path)
    }

    fn release(&self) -> Result<(), GitError> {
        match fs::remove_file(&self.path) {
            Ok(()) => Ok(()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(e) => Err(io_at("remove the lock", &self.path)(e)),
        }
    }
}
