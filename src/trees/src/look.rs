//! One walk that finds what a run changed.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use git2::{ObjectType, Repository};
use rustix::fs::{FileType, Mode, Stat, openat};
use rustix::io::Errno;
use workerctl_landing::ids::{PATH_COMPONENTS_MAX, RepoPath};

use crate::error::{TreeError, git_write, io_at};
use crate::forms::Rules;
use crate::keep::Keep;
use crate::known::{
    Child, FileStamp, Item, Laid, MODE_COMMIT, MODE_EXECUTABLE, MODE_FILE, MODE_LINK, Manifest,
    hash,
};
use crate::model::{IgnoredSeen, ResultProblem};
use crate::place::{DIRECTORY, Names, kind_of, look, open_file};
use crate::problems;
use crate::rule_files::{RuleFiles, is_rule_file};
use crate::submodules::{self, IndexedLinks, SubmoduleState};

/// Names of ignored files that are told.
const NAMES_MAX: usize = 20;

/// Largest file of a result, in bytes: each is held in memory while its blob is written.
const FILE_BYTES_MAX: i64 = workerctl_landing::FILE_BYTES_MAX.cast_signed();

/// One path that differs from the base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChangedPath {
    pub(crate) old: Option<Item>,
    pub(crate) new: Option<Item>,
    pub(crate) bytes: u64,
}

/// What the run's commits change, by path.
pub(crate) type HeadChanges = BTreeMap<Vec<u8>, ChangedPath>;

/// What git has of the run besides its files: paths that it follows although its rules ignore them, what its commits
/// change, and submodules of its index.
pub(crate) type GitState<'a> = (&'a BTreeSet<Vec<u8>>, &'a HeadChanges, &'a IndexedLinks);

/// What the walk found.
#[derive(Debug, Default)]
pub(crate) struct TreeChanges {
    pub(crate) changes: BTreeMap<Vec<u8>, ChangedPath>,
    pub(crate) ignored: IgnoredSeen,
    pub(crate) unkept: Vec<RepoPath>,
    pub(crate) problems: Vec<ResultProblem>,
}

/// What the walk needs to know.
pub(crate) struct TreeWalk<'a> {
    pub(crate) manifest: &'a Manifest,
    pub(crate) rules: &'a Rules,
    /// Where the rules of the tree are copied to before they are evaluated.
    rule_files: RuleFiles,
    pub(crate) keep: &'a Keep,
    /// Where changed contents are written; nowhere if they are only compared.
    pub(crate) into: Option<&'a Repository>,
    /// The work tree, for messages.
    pub(crate) root: &'a Path,
    /// Paths beside the base that git follows although its rules ignore them.
    pub(crate) tracked: &'a BTreeSet<Vec<u8>>,
    /// What the run's commits change.
    head: &'a HeadChanges,
    /// Submodules of the run's index.
    links: &'a IndexedLinks,
    follows_modes: bool,
    /// Of each known file whether it need not be looked at.
    unchanged: Vec<bool>,
    path: Vec<u8>,
    depth: usize,
    names: BTreeSet<String>,
    found: TreeChanges,
}

impl<'a> TreeWalk<'a> {
    pub(crate) fn new(
        manifest: &'a Manifest,
        (rules, rule_files): (&'a Rules, RuleFiles),
        keep: &'a Keep,
        root: &'a Path,
        into: Option<&'a Repository>,
        (tracked, head, links): GitState<'a>,
    ) -> Self {
        Self {
            manifest,
            rules,
            rule_files,
            keep,
            into,
            root,
            tracked,
            head,
            links,
            follows_modes: rules.follows_modes(),
            unchanged: Vec::new(),
            path: Vec::new(),
            depth: 0,
            names: BTreeSet::new(),
            found: TreeChanges::default(),
        }
    }

    /// Walks the whole tree.
    pub(crate) fn all(mut self) -> Result<TreeChanges, TreeError> {
        let root = crate::place::open_root(self.root)?;
        self.unchanged = crate::preload::unchanged(root.as_fd(), self.manifest);
        self.directory(root.as_fd(), (0, self.manifest.known.len()))?;
        self.found.ignored.names = self.names.into_iter().collect();
        Ok(self.found)
    }

    fn directory(&mut self, dir: BorrowedFd<'_>, range: (usize, usize)) -> Result<(), TreeError> {
        let names = match Names::read(dir) {
            Ok(names) => names,
            Err(e) => return Err(self.fail("read the directory", b"", e)),
        };
        if !self.path.is_empty() && names.iter().any(|(name, _)| name == b".git") {
            self.problem(problems::nested_repository(&self.path));
            return Ok(());
        }
        self.copy_rules(dir, &names)?;
        let manifest = self.manifest;
        let children = manifest.children(range, self.path.len());
        let mut done = vec![false; children.len()];
        for (name, kind) in names.iter() {
            if self.path.is_empty() && name == b".git" {
                continue;
            }
            let found = children.binary_search_by(|(child, _)| (*child).cmp(name));
            let child = found.ok().and_then(|at| children.get(at));
            let is_there = match child {
                Some((_, Child::File(at))) => self.file(dir, name, *at)?,
                Some((_, Child::Directory(from, to))) => self.enter(dir, name, (*from, *to))?,
                None => false,
            };
            if let Some(done) = found.ok().and_then(|at| done.get_mut(at)) {
                *done = is_there;
            }
            if !is_there {
                self.unknown(dir, name, kind)?;
            }
        }
        for ((_, child), _) in children.iter().zip(&done).filter(|(_, done)| !**done) {
            match child {
                Child::File(at) => self.missing(*at),
                Child::Directory(from, to) => {
                    for at in *from..(*to).max(from + 1) {
                        self.missing(at);
                    }
                }
            }
        }
        Ok(())
    }

    /// Copies the rule files of a directory to where the git library reads them.
    fn copy_rules(&mut self, dir: BorrowedFd<'_>, names: &Names) -> Result<(), TreeError> {
        for (name, _) in names.iter().filter(|(name, _)| is_rule_file(name)) {
            let path = self.at(name);
            let copied = self.rule_files.copy(dir, name, &path, self.manifest);
            if let Some(problem) = copied? {
                self.problem(problem);
            }
        }
        Ok(())
    }

    /// Goes into a directory that the base has; `false` if something else is there.
    fn enter(
        &mut self,
        dir: BorrowedFd<'_>,
        name: &[u8],
        range: (usize, usize),
    ) -> Result<bool, TreeError> {
        let inner = match openat(dir, name, DIRECTORY, Mode::empty()) {
            Ok(inner) => inner,
            Err(Errno::NOTDIR | Errno::LOOP | Errno::NOENT) => return Ok(false),
            Err(Errno::ACCESS) => {
                self.problem(problems::unreadable(&self.at(name)));
                return Ok(true);
            }
            Err(e) => return Err(self.fail("open the directory", name, e)),
        };
        // An unknown directory has a range beyond everything that is known.
        let known = self.manifest.known.get(range.0);
        if let Some(known) = known.filter(|_| range.0 == range.1) {
            self.submodule(inner.as_fd(), &known.path, known.base)?;
            return Ok(true);
        }
        let length = self.path.len();
        self.path.extend_from_slice(name);
        self.path.push(b'/');
        self.depth += 1;
        let done = self.directory(inner.as_fd(), range);
        self.depth -= 1;
        self.path.truncate(length);
        done.map(|()| true)
    }

    /// The commit that `git add` would record for a submodule.
    fn submodule(
        &mut self,
        dir: BorrowedFd<'_>,
        path: &[u8],
        base: Option<Item>,
    ) -> Result<(), TreeError> {
        let place = self.root.join(OsStr::from_bytes(path));
        let former = base.map(|item| item.oid);
        let (commit, has_more) = match submodules::look((&place, path), self.root, former)? {
            SubmoduleState::Refused(problem) => {
                self.problem(problem);
                return Ok(());
            }
            SubmoduleState::At {
                commit,
                has_untracked,
            } => (Some(commit), has_untracked),
            SubmoduleState::NotCheckedOut => {
                let names = Names::read(dir).map_err(io_at("read the directory", &place))?;
                let has_more = names.iter().next().is_some();
                (self.links.recorded(path, former), has_more)
            }
        };
        if has_more {
            // As git has it, that is no change; but it goes with the tree, which is said.
            self.ignored(&[path, b"/"].concat());
        }
        let mode = MODE_COMMIT;
        let new = commit.map(|oid| Item { oid, mode });
        if new != base {
            self.change(path.to_vec(), base, new, 0);
        }
        Ok(())
    }

    /// A path that was there at the start and is not now.
    fn missing(&mut self, at: usize) {
        let Some(known) = self.manifest.known.get(at) else {
            return;
        };
        match (known.laid, known.base) {
            // Its own commits have removed it.
            (Laid::Over(_), _)
                if self
                    .head
                    .get(&known.path)
                    .is_some_and(|head| head.new.is_none()) => {}
            (Laid::Over(_), _) => self.problem(problems::overlay_changed(&known.path)),
            (Laid::No, Some(base)) => self.change(known.path.clone(), Some(base), None, 0),
            _ => {}
        }
    }

    /// Looks at a file of the base or of what was laid over; `false` if it is no file any more.
    fn file(&mut self, dir: BorrowedFd<'_>, name: &[u8], at: usize) -> Result<bool, TreeError> {
        if self.unchanged.get(at) == Some(&true) {
            return Ok(true);
        }
        let stat = match look(dir, name) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(false),
            Err(e) => return Err(self.fail("look at", name, e)),
        };
        if self.manifest.believes(at, &FileStamp::of(&stat)) {
            return Ok(true);
        }
        let Some(known) = self.manifest.known.get(at) else {
            return Ok(true);
        };
        let former = known.base.filter(|_| known.laid == Laid::No);
        let Some((item, content)) = self.item(dir, name, &stat, former, known.laid == Laid::No)?
        else {
            return Ok(FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
        };
        match (known.laid, known.base) {
            (Laid::Over(laid), _) if !laid.is_same(item) => {
                // A merge of the run has put there what its commits have.
                let new = self.head.get(&known.path).and_then(|head| head.new);
                if new.is_none_or(|new| !new.is_same(item)) {
                    self.problem(problems::overlay_changed(&known.path));
                }
            }
            (Laid::No, Some(base)) if !base.is_same(item) => {
                let bytes = self.write(&known.path, item, &content)?;
                self.change(known.path.clone(), Some(base), Some(item), bytes);
            }
            _ => {}
        }
        Ok(true)
    }

    /// Content and mode of a file or link; `None` for anything else, or where it cannot be read.
    fn item(
        &mut self,
        dir: BorrowedFd<'_>,
        name: &[u8],
        stat: &Stat,
        former: Option<Item>,
        converts: bool,
    ) -> Result<Option<(Item, Vec<u8>)>, TreeError> {
        let path = self.at(name);
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(dir, name, Vec::new());
                let target = target.map_err(|e| self.fail("read", name, e))?.into_bytes();
                let oid = hash(ObjectType::Blob, &target);
                let mode = MODE_LINK;
                Ok(Some((Item { oid, mode }, target)))
            }
            FileType::RegularFile if stat.st_size > FILE_BYTES_MAX => {
                self.problem(problems::too_large(&path));
                Ok(None)
            }
            FileType::RegularFile => {
                let file = match open_file(dir, name) {
                    Ok(file) => File::from(file),
                    Err(Errno::ACCESS) => {
                        self.problem(problems::unreadable(&path));
                        return Ok(None);
                    }
                    Err(e) => return Err(self.fail("open", name, e)),
                };
                let mut content = Vec::new();
                let read = { &file }.read_to_end(&mut content);
                read.map_err(io_at("read", &self.place(name)))?;
                if converts {
                    let former = former.filter(|item| item.mode != MODE_LINK).map(|i| i.oid);
                    content = self.rules.to_git(&path, content, former)?;
                }
                let oid = hash(ObjectType::Blob, &content);
                let mode = self.mode(stat, former);
                Ok(Some((Item { oid, mode }, content)))
            }
            _ => Ok(None),
        }
    }

    fn mode(&self, stat: &Stat, former: Option<Item>) -> u32 {
        if self.follows_modes {
            return if stat.st_mode & 0o100 != 0 {
                MODE_EXECUTABLE
            } else {
                MODE_FILE
            };
        }
        let former = former.map(Item::plain_mode);
        former
            .filter(|mode| *mode == MODE_EXECUTABLE)
            .unwrap_or(MODE_FILE)
    }

    /// Something that the base does not have.
    fn unknown(
        &mut self,
        dir: BorrowedFd<'_>,
        name: &[u8],
        listed: FileType,
    ) -> Result<(), TreeError> {
        let kind = match kind_of(dir, name, listed) {
            Ok(kind) => kind,
            Err(Errno::NOENT) => return Ok(()),
            Err(e) => return Err(self.fail("look at", name, e)),
        };
        let path = self.at(name);
        let is_kept = self.keep.stays(&path);
        if is_kept && !self.keep.fits(&path, kind) {
            self.found.unkept.extend(RepoPath::from_bytes(&path));
        }
        let can_be = matches!(
            kind,
            FileType::Directory | FileType::RegularFile | FileType::Symlink
        );
        if is_kept || !can_be {
            return Ok(());
        }
        if kind.is_dir() && self.links.recorded(&path, None).is_some() {
            let inner = openat(dir, name, DIRECTORY, Mode::empty());
            let inner = inner.map_err(|e| self.fail("open the directory", name, e))?;
            return self.submodule(inner.as_fd(), &path, None);
        }
        if !(kind.is_dir() && self.keep.is_above(&path)) && self.is_ignored(&path, kind)? {
            return Ok(());
        }
        if workerctl_landing::is_git_directory(name) || std::str::from_utf8(name).is_err() {
            self.problem(problems::path_name(&path));
            return Ok(());
        }
        if kind.is_dir() {
            if self.depth >= PATH_COMPONENTS_MAX {
                self.problem(problems::path_name(&path));
                return Ok(());
            }
            return self.enter(dir, name, (usize::MAX, usize::MAX)).map(|_| ());
        }
        if RepoPath::from_bytes(&path).is_err() {
            self.problem(problems::path_name(&path));
            return Ok(());
        }
        let stat = look(dir, name).map_err(|e| self.fail("look at", name, e))?;
        if let Some((item, content)) = self.item(dir, name, &stat, None, true)? {
            let bytes = self.write(&path, item, &content)?;
            self.change(path, None, Some(item), bytes);
        }
        Ok(())
    }

    /// Whether git ignores something; it is counted then.
    fn is_ignored(&mut self, path: &[u8], kind: FileType) -> Result<bool, TreeError> {
        let mut asked = path.to_vec();
        if kind.is_dir() {
            asked.push(b'/');
        }
        let mut tracked = self.tracked.range(asked.clone()..);
        let is_tracked = tracked
            .next()
            .is_some_and(|found| *found == asked || kind.is_dir() && found.starts_with(&asked));
        if is_tracked
            || !self
                .rules
                .is_ignored(Path::new(OsStr::from_bytes(&asked)))?
        {
            return Ok(false);
        }
        self.ignored(&asked);
        Ok(true)
    }

    fn ignored(&mut self, path: &[u8]) {
        self.found.ignored.count += 1;
        self.names.insert(problems::escape(path));
        if self.names.len() > NAMES_MAX {
            self.names.pop_last();
        }
    }

    /// Keeps the content of a changed path.
    fn write(&mut self, path: &[u8], item: Item, content: &[u8]) -> Result<u64, TreeError> {
        if item.mode != MODE_LINK
            && let Ok(place) = RepoPath::from_bytes(path)
            && let Some(attribute) = self.rules.filter_of_result(&place)?
        {
            self.problem(problems::filtered(path, attribute));
        }
        if let Some(repo) = self.into {
            let fail = git_write("write a blob into the run's repository", repo.path());
            repo.blob(content).map_err(fail)?;
        }
        Ok(content.len() as u64)
    }

    fn change(&mut self, path: Vec<u8>, old: Option<Item>, new: Option<Item>, bytes: u64) {
        // A file that became a directory and the like is told from both sides.
        let held = self.found.changes.entry(path).or_insert(ChangedPath {
            old: None,
            new: None,
            bytes: 0,
        });
        held.old = old.or(held.old);
        held.new = new.or(held.new);
        held.bytes = bytes.max(held.bytes);
    }

    fn problem(&mut self, problem: ResultProblem) {
        if !self.found.problems.contains(&problem) {
            self.found.problems.push(problem);
        }
    }

    fn at(&self, name: &[u8]) -> Vec<u8> {
        [self.path.as_slice(), name].concat()
    }

    fn place(&self, name: &[u8]) -> std::path::PathBuf {
        self.root.join(OsStr::from_bytes(&self.at(name)))
    }

    fn fail(&self, doing: &'static str, name: &[u8], source: impl Into<io::Error>) -> TreeError {
        io_at(doing, &self.place(name))(source)
    }
}
