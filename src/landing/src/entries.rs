//! The index of a checkout as a table of entries. The git library builds an object for each of them and
//! hashes slowly; with 50,000 that was most of a landing.
//!
//! The format is git's own description of it (`gitformat-index`): versions 2 to 4, and of the extensions the
//! cached trees and the undone merges. Others are left out when it is written: git makes them again.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Range;

use git2::{Index, IndexEntry, IndexTime};
use rustix::fs::Stat;

use crate::plan::MODE_LINK;

mod format;

const STAGES: u16 = 0x3000;
/// `git update-index --assume-unchanged`.
const ASSUME_UNCHANGED: u16 = 0x8000;
const SKIP_WORKTREE: u16 = 0x4000;
const INTENT_TO_ADD: u16 = 0x2000;

/// What an index notes of a file. Numbers are the low 32 bits, as git stores them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryStat {
    /// Times of the last change and of the last modification: seconds and nanoseconds since 1970.
    pub changed: (u32, u32),
    /// See `changed`.
    pub modified: (u32, u32),
    device: u32,
    inode: u32,
    /// Git's mode of the file.
    pub mode: u32,
    owner: (u32, u32),
    /// In bytes; zero also stands for an entry whose file git has to read.
    pub size: u32,
    /// The blob.
    pub oid: git2::Oid,
    flags: u16,
    extended: u16,
}

impl EntryStat {
    /// An entry as it is after the file was written, if its state is known; marks of the one that was there stay.
    pub fn new(oid: git2::Oid, mode: u32, stat: Option<&Stat>, former: Option<&Self>) -> Self {
        let time = |s: i64, ns: u64| (low(s.cast_unsigned()), low(ns));
        Self {
            changed: stat.map_or((0, 0), |s| time(s.st_ctime, s.st_ctime_nsec)),
            modified: stat.map_or((0, 0), |s| time(s.st_mtime, s.st_mtime_nsec)),
            device: stat.map_or(0, |s| low(s.st_dev)),
            inode: stat.map_or(0, |s| low(s.st_ino)),
            mode,
            owner: stat.map_or((0, 0), |s| (s.st_uid, s.st_gid)),
            size: stat.map_or(0, |s| low(s.st_size.cast_unsigned())),
            oid,
            flags: former.map_or(0, |noted| noted.flags & ASSUME_UNCHANGED),
            extended: former.map_or(0, |noted| noted.extended & SKIP_WORKTREE),
        }
    }

    fn stage(&self) -> u16 {
        self.flags & STAGES
    }

    /// Whether the file is left out of the work tree, as by a sparse checkout.
    pub fn is_skipped(&self) -> bool {
        self.extended & SKIP_WORKTREE != 0
    }

    /// `git add --intent-to-add`: there is no content yet.
    pub fn is_intended(&self) -> bool {
        self.extended & INTENT_TO_ADD != 0
    }

    /// Whether git itself would look at the file to know whether it is changed.
    pub fn is_looked_at(&self) -> bool {
        self.flags & (ASSUME_UNCHANGED | STAGES) == 0
    }

    /// Whether it has noted this very file with this size, which is not empty.
    pub fn is_of(&self, stat: &Stat) -> bool {
        self.size != 0
            && self.size == low(stat.st_size.cast_unsigned())
            && self.inode == low(stat.st_ino)
    }
}

/// A whole index, in git's order: by path, then by the side of a merge.
#[derive(Debug, Clone)]
pub struct Entries {
    version: u32,
    list: Vec<(EntryStat, Range<usize>)>,
    names: Vec<u8>,
    trees: Vec<u8>,
    undone: Vec<u8>,
}

impl Default for Entries {
    fn default() -> Self {
        Self {
            version: 2,
            list: Vec::new(),
            names: Vec::new(),
            trees: Vec::new(),
            undone: Vec::new(),
        }
    }
}

impl Entries {
    fn order(&self, one: &(EntryStat, Range<usize>), path: &[u8], stage: u16) -> Ordering {
        let name = self.name(&one.1);
        name.cmp(path).then(one.0.stage().cmp(&stage))
    }

    fn name(&self, range: &Range<usize>) -> &[u8] {
        self.names.get(range.clone()).unwrap_or_default()
    }

    fn find(&self, path: &[u8], stage: u16) -> Result<usize, usize> {
        self.list
            .binary_search_by(|one| self.order(one, path, stage))
    }

    /// The entry of a path that is in no merge.
    pub fn get(&self, path: &[u8]) -> Option<&EntryStat> {
        let at = self.find(path, 0).ok()?;
        self.list.get(at).map(|(noted, _)| noted)
    }

    /// Whether a path has sides of a merge that is not solved.
    pub fn is_unmerged(&self, path: &[u8]) -> bool {
        let at = self.find(path, 1).unwrap_or_else(|at| at);
        let next = self.list.get(at);
        next.is_some_and(|(noted, name)| noted.stage() > 0 && self.name(name) == path)
    }

    /// The paths that begin with these bytes.
    pub fn beginning_with<'a>(&'a self, start: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        let first = self.list.partition_point(|one| self.name(&one.1) < start);
        let rest = self.list.get(first..).unwrap_or_default();
        let paths = rest.iter().map(|(_, name)| self.name(name));
        paths.take_while(move |path| path.starts_with(start))
    }

    /// The paths of symbolic links.
    pub fn links(&self) -> impl Iterator<Item = &[u8]> {
        let links = self
            .list
            .iter()
            .filter(|(noted, _)| noted.mode == MODE_LINK);
        links.map(|(_, name)| self.name(name))
    }

    /// The git library's form of what it needs of an index to know the attributes of files.
    ///
    /// # Errors
    /// The library refuses an entry.
    pub fn attributes(&self) -> Result<Index, git2::Error> {
        let mut index = Index::new()?;
        let is_rule = |name: &[u8]| {
            let above = name.strip_suffix(b".gitattributes");
            above.is_some_and(|above| above.is_empty() || above.ends_with(b"/"))
        };
        for (noted, name) in &self.list {
            let name = self.name(name);
            if is_rule(name) && noted.stage() == 0 {
                index.add(&IndexEntry {
                    ctime: IndexTime::new(0, 0),
                    mtime: IndexTime::new(0, 0),
                    dev: 0,
                    ino: 0,
                    mode: noted.mode,
                    uid: 0,
                    gid: 0,
                    file_size: 0,
                    id: noted.oid,
                    flags: 0,
                    flags_extended: 0,
                    path: name.to_vec(),
                })?;
            }
        }
        Ok(index)
    }

    /// Git does not trust the times of a file that was changed in the same *second* as the index was written:
    /// most builds of it compare whole seconds. An index that is written later must say it of such entries by
    /// the mark that git uses, a size of zero. `written_s` is when this one was written.
    pub fn distrust_racy(&mut self, written_s: i64) {
        const MODE_SUBMODULE: u32 = 0o160_000;
        for (noted, _) in &mut self.list {
            if noted.mode != MODE_SUBMODULE && i64::from(noted.modified.0) >= written_s {
                noted.size = 0;
            }
        }
    }

    /// Sets or removes the entries of paths that are in no merge.
    pub fn change(&mut self, changes: &BTreeMap<&[u8], Option<EntryStat>>) {
        let names = std::mem::take(&mut self.names);
        let list = std::mem::take(&mut self.list);
        self.names.reserve(names.len());
        let mut coming = changes.iter().peekable();
        let mut push = |noted: Option<EntryStat>, name: &[u8]| {
            let start = self.names.len();
            if let Some(noted) = noted {
                self.names.extend_from_slice(name);
                self.list.push((noted, start..self.names.len()));
            }
        };
        for (noted, name) in list {
            let name = names.get(name).unwrap_or_default();
            let here = (name, noted.stage());
            while let Some((path, new)) = coming.next_if(|(path, _)| (**path, 0) < here) {
                push(*new, path);
            }
            match coming.next_if(|(path, _)| (**path, 0) == here) {
                Some((path, new)) => push(*new, path),
                None => push(Some(noted), name),
            }
        }
        for (path, new) in coming {
            push(*new, path);
        }
        self.keep_trees(changes);
    }
}

/// Git stores the low 32 bits of each.
fn low(n: u64) -> u32 {
    u32::try_from(n & u64::from(u32::MAX)).unwrap_or(0)
}
