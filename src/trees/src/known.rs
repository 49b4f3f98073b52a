//! What is known of a tree: every path of the base and of what was laid over, ordered by its bytes.

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;

use git2::{ObjectType, Repository};
use rustix::fs::{FileType, Stat};
use sha1::{Digest, Sha1};
use workerctl_landing::MODE_TREE;
use workerctl_landing::ids::{Oid, RepoPath};

use crate::error::{TreeError, git};
use crate::model::TreeEntry;

pub(crate) const MODE_FILE: u32 = 0o100_644;
pub(crate) const MODE_EXECUTABLE: u32 = 0o100_755;
pub(crate) const MODE_LINK: u32 = 0o120_000;
pub(crate) const MODE_COMMIT: u32 = 0o160_000;

/// Content and mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) oid: git2::Oid,
    pub(crate) mode: u32,
}

impl Item {
    /// The mode without differences that git has not made since its first years.
    pub(crate) fn plain_mode(self) -> u32 {
        match self.mode {
            MODE_LINK | MODE_COMMIT => self.mode,
            mode if mode & 0o100 != 0 => MODE_EXECUTABLE,
            _ => MODE_FILE,
        }
    }

    pub(crate) fn is_same(self, other: Self) -> bool {
        self.oid == other.oid && self.plain_mode() == other.plain_mode()
    }

    pub(crate) fn entry(self) -> TreeEntry {
        TreeEntry {
            oid: self.oid.into(),
            mode: self.mode,
        }
    }
}

/// What was laid over a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Laid {
    No,
    Over(Item),
    /// Something else was laid where this path's directory is, or what lies below it.
    Hidden,
}

/// One path.
#[derive(Debug, Clone)]
pub(crate) struct RecordedPath {
    pub(crate) path: Vec<u8>,
    pub(crate) base: Option<Item>,
    pub(crate) laid: Laid,
}

impl RecordedPath {
    /// What the tree is to hold here.
    pub(crate) fn wanted(&self) -> Option<Item> {
        match self.laid {
            Laid::No => self.base,
            Laid::Over(item) => Some(item),
            Laid::Hidden => None,
        }
    }
}

/// Stat data by which a file is recognized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileStamp {
    pub(crate) size: u64,
    pub(crate) modified_ns: i64,
    pub(crate) changed_ns: i64,
    pub(crate) inode: u64,
    pub(crate) mode: u32,
}

impl FileStamp {
    #[expect(
        clippy::cast_sign_loss,
        clippy::unnecessary_cast,
        clippy::cast_possible_wrap,
        reason = "the kernel's numbers differ in sign between machines"
    )]
    pub(crate) fn of(stat: &Stat) -> Self {
        let ns = |s: i64, ns: i64| s.saturating_mul(1_000_000_000).saturating_add(ns);
        Self {
            size: stat.st_size as u64,
            modified_ns: ns(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            changed_ns: ns(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
            inode: stat.st_ino as u64,
            mode: stat.st_mode as u32,
        }
    }

    pub(crate) fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.mode)
    }
}

/// Everything that is known, with the stat data of what was found as it is to be.
#[derive(Debug, Clone)]
pub(crate) struct Manifest {
    pub(crate) tree: git2::Oid,
    pub(crate) known: Vec<RecordedPath>,
    pub(crate) stamps: Vec<Option<FileStamp>>,
    /// A file that changed at this time or later is not believed.
    pub(crate) believed_before_ns: i64,
    /// The device of the work tree.
    pub(crate) device: u64,
    /// What converting files depends on.
    pub(crate) rules: [u8; 20],
}

/// One name of a directory.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Child {
    File(usize),
    /// The paths below it, as a range; an empty one is a submodule's directory.
    Directory(usize, usize),
}

impl Manifest {
    pub(crate) fn empty(tree: git2::Oid) -> Self {
        Self {
            tree,
            known: Vec::new(),
            stamps: Vec::new(),
            believed_before_ns: i64::MIN,
            device: 0,
            rules: [0; 20],
        }
    }

    /// All paths of a tree object, with nothing believed.
    pub(crate) fn read(repo: &Repository, tree: git2::Oid) -> Result<Self, TreeError> {
        let mut found = Self::empty(tree);
        if tree != empty_tree() {
            let mut path = Vec::new();
            read_into(repo, tree, &mut path, &mut found.known)?;
        }
        found.stamps = vec![None; found.known.len()];
        Ok(found)
    }

    /// The same for another tree: only what differs is read.
    pub(crate) fn follow(mut self, repo: &Repository, to: git2::Oid) -> Result<Self, TreeError> {
        self.unlay();
        if self.tree == to {
            return Ok(self);
        }
        let Some(changes) = differences(repo, self.tree, to)? else {
            return Self::read(repo, to);
        };
        let mut merged = Vec::with_capacity(self.known.len() + changes.len());
        let mut stamps = Vec::with_capacity(merged.capacity());
        let mut changes = changes.into_iter().peekable();
        for (known, stamp) in self.known.into_iter().zip(self.stamps) {
            while let Some((path, new)) = changes.next_if(|(path, _)| *path < known.path) {
                push_new(path, new, &mut merged, &mut stamps);
            }
            if let Some((path, new)) = changes.next_if(|(path, _)| *path == known.path) {
                push_new(path, new, &mut merged, &mut stamps);
            } else {
                merged.push(known);
                stamps.push(stamp);
            }
        }
        for (path, new) in changes {
            push_new(path, new, &mut merged, &mut stamps);
        }
        self.known = merged;
        self.stamps = stamps;
        self.tree = to;
        Ok(self)
    }

    /// Takes away what was laid over; files that stay as they are keep their stat data.
    fn unlay(&mut self) {
        if self.known.iter().all(|known| known.laid == Laid::No) {
            return;
        }
        for (known, stamp) in self.known.iter_mut().zip(&mut self.stamps) {
            if known.laid != Laid::No {
                *stamp = None;
                known.laid = Laid::No;
            }
        }
        let kept: Vec<bool> = self.known.iter().map(|k| k.base.is_some()).collect();
        let mut is_kept = kept.iter().copied();
        self.known.retain(|_| is_kept.next().unwrap_or(false));
        let mut is_kept = kept.iter().copied();
        self.stamps.retain(|_| is_kept.next().unwrap_or(false));
    }

    /// Lays items over the base. Those that equal it are nothing.
    pub(crate) fn lay(&mut self, items: &BTreeMap<Vec<u8>, Item>) {
        let mut fresh = Vec::new();
        for (path, item) in items {
            let found = self.find(path);
            let held = found.ok().and_then(|at| self.known.get_mut(at));
            if let Some(known) = held {
                if known.base.is_some_and(|base| base.is_same(*item)) {
                    continue;
                }
                known.laid = Laid::Over(*item);
                if let Some(stamp) = found.ok().and_then(|at| self.stamps.get_mut(at)) {
                    *stamp = None;
                }
            } else {
                fresh.push(RecordedPath {
                    path: path.clone(),
                    base: None,
                    laid: Laid::Over(*item),
                });
            }
            self.hide_around(path);
        }
        if fresh.is_empty() {
            return;
        }
        let known = std::mem::take(&mut self.known);
        let stamps = std::mem::take(&mut self.stamps);
        let mut all: Vec<_> = known.into_iter().zip(stamps).collect();
        all.extend(fresh.into_iter().map(|known| (known, None)));
        all.sort_by(|a, b| a.0.path.cmp(&b.0.path));
        (self.known, self.stamps) = all.into_iter().unzip();
    }

    /// Returns true if something was laid over a path, over a directory on its way, or below it: the tree does not
    /// show what commits of the run have there.
    pub(crate) fn is_covered(&self, path: &[u8]) -> bool {
        let is_laid = |at: usize| {
            self.known
                .get(at)
                .is_some_and(|known| known.laid != Laid::No)
        };
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let mut above = ends.filter_map(|(end, _)| path.get(..end));
        if self.find(path).is_ok_and(is_laid)
            || above.any(|above| self.find(above).is_ok_and(is_laid))
        {
            return true;
        }
        let below = [path, b"/"].concat();
        let start = self.known.partition_point(|known| known.path < below);
        let known = self.known.iter().skip(start);
        let mut inside = known.take_while(|known| known.path.starts_with(&below));
        inside.any(|known| known.laid != Laid::No)
    }

    /// Hides the base's paths below a path, and those where its directories must be.
    fn hide_around(&mut self, path: &[u8]) {
        let mut below = path.to_vec();
        below.push(b'/');
        let start = self.known.partition_point(|known| known.path < below);
        for known in self.known.iter_mut().skip(start) {
            if !known.path.starts_with(&below) {
                break;
            }
            known.laid = Laid::Hidden;
        }
        for (at, _) in path.iter().enumerate().filter(|(_, b)| **b == b'/') {
            let above = path.get(..at).unwrap_or_default();
            if let Ok(found) = self.find(above)
                && let Some(known) = self.known.get_mut(found)
            {
                known.laid = Laid::Hidden;
            }
        }
    }

    pub(crate) fn find(&self, path: &[u8]) -> Result<usize, usize> {
        self.known
            .binary_search_by(|known| known.path.as_slice().cmp(path))
    }

    /// Whether the recorded stat data say that this is what is wanted.
    pub(crate) fn believes(&self, at: usize, now: &FileStamp) -> bool {
        let stamp = self.stamps.get(at).and_then(Option::as_ref);
        stamp == Some(now) && now.changed_ns < self.believed_before_ns
    }

    /// The names in the directory that holds `range`, whose path has `depth` bytes with its slash;
    /// ordered by name.
    pub(crate) fn children(&self, range: (usize, usize), depth: usize) -> Vec<(&[u8], Child)> {
        let mut found: Vec<(&[u8], Child)> = Vec::new();
        for at in range.0..range.1 {
            let Some(known) = self.known.get(at) else {
                continue;
            };
            let Some(wanted) = known.wanted() else {
                continue;
            };
            let rest = known.path.get(depth..).unwrap_or_default();
            let cut = rest.iter().position(|b| *b == b'/');
            let name = rest.get(..cut.unwrap_or(rest.len())).unwrap_or_default();
            if cut.is_some() {
                if let Some((last, Child::Directory(_, end))) = found.last_mut()
                    && *last == name
                {
                    *end = at + 1;
                    continue;
                }
                found.push((name, Child::Directory(at, at + 1)));
            } else if wanted.mode == MODE_COMMIT {
                found.push((name, Child::Directory(at, at)));
            } else {
                found.push((name, Child::File(at)));
            }
        }
        found.sort_by(|a, b| a.0.cmp(b.0));
        found
    }
}

fn push_new(
    path: Vec<u8>,
    new: Option<Item>,
    known: &mut Vec<RecordedPath>,
    stamps: &mut Vec<Option<FileStamp>>,
) {
    if new.is_some() {
        known.push(RecordedPath {
            path,
            base: new,
            laid: Laid::No,
        });
        stamps.push(None);
    }
}

type Differences = BTreeMap<Vec<u8>, Option<Item>>;

/// What differs between two trees; `None` where it cannot be read, as the first may be gone.
fn differences(
    repo: &Repository,
    from: git2::Oid,
    to: git2::Oid,
) -> Result<Option<Differences>, TreeError> {
    let named = |oid: git2::Oid| (oid != empty_tree()).then_some(oid);
    let mut found = Differences::new();
    let compared =
        workerctl_landing::differences(repo, named(from), named(to), &mut |path, _, new| {
            let item = new.map(|(oid, mode)| Item { oid, mode });
            // A tree of that name in place of the file has entries of its own.
            let item = item.filter(|item| item.mode != MODE_TREE);
            let held = found.entry(path.to_vec()).or_insert(None);
            *held = item.or(*held);
        });
    if compared.is_err() {
        return Ok(None);
    }
    for (path, _) in found.iter().filter(|(_, new)| new.is_some()) {
        usable(path)?;
    }
    Ok(Some(found))
}

fn read_into(
    repo: &Repository,
    tree: git2::Oid,
    path: &mut Vec<u8>,
    found: &mut Vec<RecordedPath>,
) -> Result<(), TreeError> {
    let tree = repo.find_tree(tree).map_err(git("read a tree"))?;
    let length = path.len();
    for entry in &tree {
        path.truncate(length);
        path.extend_from_slice(entry.name_bytes());
        usable(path)?;
        if entry.kind() == Some(ObjectType::Tree) {
            path.push(b'/');
            read_into(repo, entry.id(), path, found)?;
            continue;
        }
        let base = Item {
            oid: entry.id(),
            mode: u32::try_from(entry.filemode_raw()).unwrap_or(MODE_FILE),
        };
        found.push(RecordedPath {
            path: path.clone(),
            base: Some(base),
            laid: Laid::No,
        });
    }
    path.truncate(length);
    Ok(())
}

fn usable(path: &[u8]) -> Result<(), TreeError> {
    match RepoPath::from_bytes(path) {
        Ok(_) => Ok(()),
        Err(workerctl_landing::ids::NameError::Path { path, why }) => {
            Err(TreeError::BasePath { path, why })
        }
        Err(_) => Err(TreeError::BasePath {
            path: String::new(),
            why: "it has no usable name",
        }),
    }
}

/// The tree without an entry.
pub(crate) fn empty_tree() -> git2::Oid {
    hash(ObjectType::Tree, &[])
}

/// An id in the git library's form.
pub(crate) fn raw(oid: &Oid) -> git2::Oid {
    git2::Oid::from_str(oid.as_str()).unwrap_or(git2::Oid::ZERO_SHA1)
}

/// The id of an object.
pub(crate) fn hash(kind: ObjectType, bytes: &[u8]) -> git2::Oid {
    let mut sum = Sha1::new();
    sum.update(format!("{} {}\0", kind.str(), bytes.len()));
    sum.update(bytes);
    git2::Oid::from_bytes(&sum.finalize()).unwrap_or(git2::Oid::ZERO_SHA1)
}

/// Returns the id of a file's content as it is on the disk; `None` for a file that is larger than a result may be.
///
/// A file without content can have any size, and would be read for hours.
pub(crate) fn hash_file(dir: BorrowedFd<'_>, name: &[u8]) -> rustix::io::Result<Option<git2::Oid>> {
    let file = crate::place::open_own_file(dir, name)?;
    let size = u64::try_from(rustix::fs::fstat(&file)?.st_size).unwrap_or(0);
    if size > workerctl_landing::FILE_BYTES_MAX {
        return Ok(None);
    }
    let mut sum = Sha1::new();
    sum.update(format!("blob {size}\0"));
    let mut buffer = vec![0; 128 * 1024];
    loop {
        match rustix::io::read(&file, &mut buffer) {
            Ok(0) => break,
            Ok(count) => sum.update(buffer.get(..count).unwrap_or_default()),
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(git2::Oid::from_bytes(&sum.finalize()).ok())
}
