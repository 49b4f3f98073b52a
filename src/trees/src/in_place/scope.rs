//! Which paths of a checkout are a run's own: declared outputs, and what `writes` matches.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use git2::{ErrorCode, ObjectType, Pathspec, PathspecFlags, Repository};
use rustix::fs::{FileType, Mode, openat};
use rustix::io::Errno;
use workerctl_landing::ids::{PATH_COMPONENTS_MAX, RepoPath};

use super::InPlaceBase;
use super::files::{ParentDir, way};
use crate::error::{TreeError, git, io_at};
use crate::forms::Rules;
use crate::known::{Item, empty_tree};
use crate::place::{DIRECTORY, Names, kind_of};

/// The run's own paths.
pub(crate) struct Scope {
    pub(crate) outputs: BTreeSet<Vec<u8>>,
    patterns: Pathspec,
    /// The workspace within the work tree, with a `/` behind it; empty where both are one.
    root: Vec<u8>,
    /// Where the patterns can match: the parts of each before its first wildcard.
    tops: BTreeSet<Vec<u8>>,
    except: Vec<RepoPath>,
}

/// What a tree holds of the run's own paths.
#[derive(Default)]
pub(crate) struct Tracked {
    pub(crate) items: BTreeMap<Vec<u8>, Item>,
    /// Submodules among and above them, which are nobody's.
    pub(crate) submodules: BTreeSet<Vec<u8>>,
}

impl Tracked {
    /// Whether a path lies in a submodule, or is one.
    pub(crate) fn is_in_submodule(&self, path: &[u8]) -> bool {
        let is_in = |at: usize| self.submodules.contains(path.get(..at).unwrap_or_default());
        let cuts = path.iter().enumerate().filter(|(_, b)| **b == b'/');
        !self.submodules.is_empty() && cuts.map(|(at, _)| at).chain([path.len()]).any(is_in)
    }
}

/// What one walk over the directories that can match found.
#[derive(Default)]
pub(crate) struct Walked {
    /// Files and links that match; untracked ones only where git does not ignore them.
    pub(crate) files: BTreeSet<Vec<u8>>,
    /// Directories without a tracked file.
    pub(crate) directories: Vec<RepoPath>,
    /// Repositories inside, which are not entered.
    pub(crate) nested: Vec<RepoPath>,
    /// Directories that cannot be read.
    pub(crate) unreadable: Vec<Vec<u8>>,
}

impl Scope {
    pub(crate) fn of(base: &InPlaceBase<'_>) -> Result<Self, TreeError> {
        let plain = |text: &String| {
            let text = text.trim_start_matches("./").trim_end_matches('/');
            let whole = text.is_empty() || text == ".";
            if whole {
                "*".to_owned()
            } else {
                text.to_owned()
            }
        };
        let writes: Vec<String> = base.writes.iter().map(plain).collect();
        let mut root = base
            .root
            .map_or_else(Vec::new, |root| root.as_bytes().to_vec());
        let mut tops = BTreeSet::new();
        for pattern in &writes {
            let is_plain = |part: &&str| !part.contains(['*', '?', '[', '\\']);
            let parts: Vec<&str> = pattern.split('/').take_while(is_plain).collect();
            let above = root.iter().copied();
            let above = above.chain((!root.is_empty() && !parts.is_empty()).then_some(b'/'));
            tops.insert(above.chain(parts.join("/").into_bytes()).collect());
        }
        if !root.is_empty() {
            root.push(b'/');
        }
        let outputs = base.outputs.iter().map(|path| path.as_bytes().to_vec());
        Ok(Self {
            outputs: outputs.collect(),
            // A specification without a pattern stands for everything.
            patterns: Pathspec::new(&writes).map_err(git("read the patterns of `writes`"))?,
            root,
            tops,
            except: base.except.to_vec(),
        })
    }

    pub(crate) fn owns(&self, path: &[u8]) -> bool {
        self.outputs.contains(path) || self.matches(path)
    }

    /// Whether there is more than declared outputs.
    pub(crate) fn has_patterns(&self) -> bool {
        !self.tops.is_empty()
    }

    fn matches(&self, path: &[u8]) -> bool {
        let Some(relative) = path.strip_prefix(self.root.as_slice()) else {
            return false;
        };
        let relative = Path::new(OsStr::from_bytes(relative));
        self.has_patterns()
            && !self.is_excepted(path)
            && self.patterns.matches_path(relative, PathspecFlags::DEFAULT)
    }

    fn is_excepted(&self, path: &[u8]) -> bool {
        let path = RepoPath::from_bytes(path);
        path.is_ok_and(|path| self.except.iter().any(|other| path.is_within(other)))
    }

    /// What a tree holds of them.
    pub(crate) fn tracked(&self, repo: &Repository, tree: git2::Oid) -> Result<Tracked, TreeError> {
        let fail = git("read a tree");
        let mut found = Tracked::default();
        if tree == empty_tree() {
            return Ok(found);
        }
        let tree = repo.find_tree(tree).map_err(&fail)?;
        for path in self.outputs.iter().chain(&self.tops) {
            if path.is_empty() {
                self.collect(repo, &tree, &mut Vec::new(), &mut found)?;
                continue;
            }
            for (cut, _) in path.iter().enumerate().filter(|(_, b)| **b == b'/') {
                let above = path.get(..cut).unwrap_or_default();
                let entry = tree.get_path(Path::new(OsStr::from_bytes(above)));
                if entry.is_ok_and(|entry| entry.kind() == Some(ObjectType::Commit)) {
                    found.submodules.insert(above.to_vec());
                }
            }
            let entry = match tree.get_path(Path::new(OsStr::from_bytes(path))) {
                Err(e) if e.code() == ErrorCode::NotFound => continue,
                other => other.map_err(&fail)?,
            };
            match entry.kind() {
                Some(ObjectType::Tree) if self.tops.contains(path) => {
                    let inner = repo.find_tree(entry.id()).map_err(&fail)?;
                    self.collect(repo, &inner, &mut path.clone(), &mut found)?;
                }
                Some(ObjectType::Blob) if self.owns(path) => {
                    found.items.insert(path.clone(), item(&entry));
                }
                Some(ObjectType::Commit) => {
                    found.submodules.insert(path.clone());
                }
                _ => {}
            }
        }
        Ok(found)
    }

    fn collect(
        &self,
        repo: &Repository,
        tree: &git2::Tree<'_>,
        path: &mut Vec<u8>,
        found: &mut Tracked,
    ) -> Result<(), TreeError> {
        let length = path.len();
        for entry in tree {
            add(path, entry.name_bytes());
            match entry.kind() {
                Some(ObjectType::Tree) => {
                    let inner = repo.find_tree(entry.id());
                    self.collect(repo, &inner.map_err(git("read a tree"))?, path, found)?;
                }
                Some(ObjectType::Blob) if self.matches(path) => {
                    found.items.insert(path.clone(), item(&entry));
                }
                Some(ObjectType::Commit) => {
                    found.submodules.insert(path.clone());
                }
                _ => {}
            }
            path.truncate(length);
        }
        Ok(())
    }

    /// Walks the directories in which the patterns can match, and no other.
    pub(crate) fn walk(
        &self,
        root: BorrowedFd<'_>,
        rules: &Rules,
        tracked: &Tracked,
    ) -> Result<Walked, TreeError> {
        let mut walk = ScopeWalk {
            scope: self,
            rules,
            tracked,
            found: Walked::default(),
        };
        for top in &self.tops {
            let fail = |e| io_at("look at", Path::new(OsStr::from_bytes(top)))(e);
            if top.is_empty() {
                walk.directory(root, &mut Vec::new(), 0)?;
            } else if let ParentDir::Open(dir) = way(root, top).map_err(fail)? {
                let name = top.rsplit(|b| *b == b'/').next().unwrap_or_default();
                let length = top.len() - name.len();
                let mut above = top
                    .get(..length.saturating_sub(1))
                    .unwrap_or_default()
                    .to_vec();
                walk.entry(dir.as_fd(), &mut above, (name, FileType::Unknown), 0)?;
            }
        }
        Ok(walk.found)
    }
}

struct ScopeWalk<'a> {
    scope: &'a Scope,
    rules: &'a Rules,
    tracked: &'a Tracked,
    found: Walked,
}

impl ScopeWalk<'_> {
    fn directory(
        &mut self,
        dir: BorrowedFd<'_>,
        path: &mut Vec<u8>,
        depth: usize,
    ) -> Result<(), TreeError> {
        let names = Names::read(dir).map_err(Self::fail(path))?;
        if !path.is_empty() && names.iter().any(|(name, _)| name == b".git") {
            self.found.nested.extend(RepoPath::from_bytes(path));
            return Ok(());
        }
        for entry in names.iter().filter(|(name, _)| *name != b".git") {
            self.entry(dir, path, entry, depth)?;
        }
        Ok(())
    }

    fn entry(
        &mut self,
        dir: BorrowedFd<'_>,
        path: &mut Vec<u8>,
        (name, listed): (&[u8], FileType),
        depth: usize,
    ) -> Result<(), TreeError> {
        let length = path.len();
        add(path, name);
        let done = match kind_of(dir, name, listed) {
            Err(Errno::NOENT) => Ok(()),
            Err(e) => Err(Self::fail(path)(e)),
            Ok(FileType::Directory) => self.enter(dir, path, name, depth),
            Ok(kind) => {
                let is_tracked = self.tracked.items.contains_key(path.as_slice());
                let can_be = matches!(kind, FileType::RegularFile | FileType::Symlink);
                if self.scope.matches(path)
                    && (is_tracked || can_be && !self.is_ignored(path, false)?)
                {
                    self.found.files.insert(path.clone());
                }
                Ok(())
            }
        };
        path.truncate(length);
        done
    }

    fn enter(
        &mut self,
        dir: BorrowedFd<'_>,
        path: &mut Vec<u8>,
        name: &[u8],
        depth: usize,
    ) -> Result<(), TreeError> {
        let below = [path.as_slice(), b"/"].concat();
        let mut next = self.tracked.items.range(below.clone()..);
        let is_tracked = next
            .next()
            .is_some_and(|(path, _)| path.starts_with(&below));
        if self.scope.is_excepted(path)
            || self.tracked.is_in_submodule(path)
            || depth >= PATH_COMPONENTS_MAX
            || !is_tracked && self.is_ignored(path, true)?
        {
            return Ok(());
        }
        if !is_tracked {
            self.found.directories.extend(RepoPath::from_bytes(path));
        }
        match openat(dir, name, DIRECTORY, Mode::empty()) {
            Ok(inner) => self.directory(inner.as_fd(), path, depth + 1),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(()),
            Err(Errno::ACCESS) => {
                self.found.unreadable.push(path.clone());
                Ok(())
            }
            Err(e) => Err(Self::fail(path)(e)),
        }
    }

    fn is_ignored(&self, path: &[u8], is_directory: bool) -> Result<bool, TreeError> {
        let slash: &[u8] = if is_directory { b"/" } else { b"" };
        let asked = [path, slash].concat();
        self.rules.is_ignored(Path::new(OsStr::from_bytes(&asked)))
    }

    fn fail(path: &[u8]) -> impl Fn(Errno) -> TreeError + use<> {
        io_at("look at", Path::new(OsStr::from_bytes(path)))
    }
}

pub(super) fn item(entry: &git2::TreeEntry<'_>) -> Item {
    Item {
        oid: entry.id(),
        mode: u32::try_from(entry.filemode()).unwrap_or(0),
    }
}

fn add(path: &mut Vec<u8>, name: &[u8]) {
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
}
