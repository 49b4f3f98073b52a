//! One tree that is held for a run.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use git2::Repository;
use rustix::fs::{CWD, FlockOperation, Mode, Stat, flock, mkdirat, renameat};
use rustix::io::Errno;
use workerctl_landing::ids::RepoPath;

use crate::error::{TreeError, git_write, io_at};
use crate::forms::Rules;
use crate::keep::Keep;
use crate::known::{Item, Laid, Manifest, empty_tree, raw};
use crate::look::HeadChanges;
use crate::model::{Base, PathChange, RunResult, Start};
use crate::overlay::{Layer, Source};
use crate::owner::OwnerRecord;
use crate::place::{Gone, open_root};
use crate::real::Real;
use crate::repair::{Modes, Observer, Repair, step};
use crate::result::{
    Commits, added, build_tree, case_collisions, changed_rules, kept_is_tracked, operation, told,
    tree_of,
};
use crate::small::Settings;
use crate::submodules::{self, IndexedLinks};
use crate::{index, problems, record};

mod left;

/// Paths that a comparison names.
const DRIFT_MAX: usize = 20;

/// A lock that is held; it goes with this value.
#[derive(Debug)]
pub(crate) struct TreeLock(pub(crate) OwnedFd);

impl Drop for TreeLock {
    /// Unlocked by name: a process that is being started has the descriptor too until it executes its program, and
    /// meanwhile a worker would find its tree in use and get another one, without its caches.
    fn drop(&mut self) {
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// A tree that is locked for as long as this value lives.
pub struct Tree {
    number: u32,
    /// The directory that holds it all.
    dir: PathBuf,
    path: PathBuf,
    /// Its lock goes with it.
    _lock: TreeLock,
    /// What the last making equal left, if that was here.
    manifest: Option<Manifest>,
    /// The index as it was put there.
    index: Option<crate::known::FileStamp>,
    /// Whether this process made it equal to a base.
    is_made_here: bool,
    is_retired: bool,
    /// The first file of the small repository that was not as it was written.
    torn: Option<PathBuf>,
    observer: Option<Observer>,
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Tree {
    pub(crate) fn new(number: u32, dir: PathBuf, name: &str, lock: TreeLock) -> Self {
        Self {
            number,
            path: dir.join(name),
            dir,
            _lock: lock,
            manifest: None,
            index: None,
            is_made_here: false,
            is_retired: false,
            torn: None,
            observer: None,
        }
    }

    /// Its number.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The work tree.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The small repository.
    pub fn git_dir(&self) -> PathBuf {
        self.path.join(".git")
    }

    /// Keeps later runs from taking this tree, because processes that could not be ended may still write to it.
    ///
    /// A sweep removes it once it has been idle for long enough, like any other tree.
    ///
    /// # Errors
    /// The record of its owner cannot be written.
    pub fn retire(&mut self) -> Result<(), TreeError> {
        OwnerRecord::retired().write(&self.dir)?;
        self.is_retired = true;
        Ok(())
    }

    /// Returns true after [`Tree::retire`].
    pub fn is_retired(&self) -> bool {
        self.is_retired
    }

    /// Asks before each step; where the answer is `false`, the call ends there with an error, as if it
    /// had been killed.
    pub fn observe(&mut self, observer: impl FnMut(&'static str) -> bool + Send + 'static) {
        self.observer = Some(Box::new(observer));
    }

    /// Makes tree and small repository equal to the base, from any state.
    pub fn make_equal(&mut self, base: &Base<'_>) -> Result<Start, TreeError> {
        self.make(base, &[])
    }

    /// The same; nothing is laid over the paths of `changes`.
    fn make(&mut self, base: &Base<'_>, changes: &[PathChange]) -> Result<Start, TreeError> {
        let mut gone = Gone::open(&self.dir)?;
        gone.empty()
            .map_err(io_at("empty", &self.dir.join("gone")))?;
        let real = Real::open(base.repository)?;
        let keep = Keep::read(base.keep, &self.dir)?;
        let tree = tree_of(&real.repo, base.commit)?;
        let former = self.manifest.take().or_else(|| record::read(&self.dir));
        let mut manifest = match former {
            Some(former) => former.follow(&real.repo, tree)?,
            None => Manifest::read(&real.repo, tree)?,
        };
        keep.refuse_tracked(&manifest)?;
        let mut layer = Layer::read(&real.repo, base.overlay)?;
        for change in changes {
            layer.uncover(change.path.as_bytes());
        }
        self.make_work_tree(&mut gone)?;
        let root = open_root(&self.path)?;
        let stat = rustix::fs::fstat(&root).map_err(io_at("look at", &self.path))?;
        let mut settings = Settings::read(&real, base, &self.path, &keep)?;
        let rules = self.rules_for(&mut settings, base, &mut manifest, &mut layer, &stat)?;
        let modes = Modes::of_process();
        let all = (0, manifest.known.len());
        let unchanged = crate::preload::unchanged(root.as_fd(), &manifest);
        let mut repair = Repair {
            manifest: &mut manifest,
            repo: &real.repo,
            rules: &rules,
            layer: &layer,
            keep: &keep,
            gone: &mut gone,
            observer: &mut self.observer,
            modes,
            unchanged,
            root: &self.path,
            path: Vec::new(),
        };
        repair.directory(root.as_fd(), all)?;
        keep.record(&self.dir, &self.path)?;
        self.renew_repository(&settings, &real, base, (&manifest, &stat), &mut gone)?;
        step(&mut self.observer, "write the record")?;
        record::write(&self.dir, &mut manifest)?;
        let overlaid = what_was_laid(&manifest);
        self.manifest = Some(manifest);
        (self.is_made_here, self.torn) = (true, None);
        Ok(Start {
            number: self.number,
            base: base.commit.cloned(),
            tree: tree.into(),
            target: base.target.to_owned(),
            overlaid,
            keep: base.keep.to_vec(),
            allow_filtered: base.allow_filtered,
        })
    }

    /// The rules of the base, with what is laid over in the manifest. Where they are not those of the
    /// record, nothing of it is believed.
    fn rules_for(
        &mut self,
        settings: &mut Settings,
        base: &Base<'_>,
        manifest: &mut Manifest,
        layer: &mut Layer,
        stat: &Stat,
    ) -> Result<Rules, TreeError> {
        step(&mut self.observer, "write the rules")?;
        let place = self.dir.join("rules");
        settings.write_rules(&place, manifest)?;
        let mut rules = Rules::open(&place, false)?;
        let mut sum = rules.limit_to(&manifest.known)?;
        if base.allow_filtered {
            sum.reverse();
        }
        if sum != manifest.rules || stat.st_dev != manifest.device {
            manifest.stamps.fill(None);
        }
        manifest.rules = sum;
        manifest.device = stat.st_dev;
        if !base.allow_filtered {
            refuse_filtered(&rules, manifest)?;
        }
        in_stored_form(layer, manifest, &rules)?;
        manifest.lay(&layer.items);
        // Only now it is known what is hidden.
        settings.hide_laid(manifest, &place)?;
        Ok(rules)
    }

    /// The work tree's directory, which a run may have replaced.
    fn make_work_tree(&mut self, gone: &mut Gone) -> Result<(), TreeError> {
        step(&mut self.observer, "make the work tree")?;
        let dir = open_root(&self.dir)?;
        let name = self.path.file_name().unwrap_or_default().as_bytes();
        match crate::place::open_child(dir.as_fd(), name) {
            Ok(_) => return Ok(()),
            Err(Errno::NOENT) => {}
            Err(Errno::NOTDIR | Errno::LOOP) => {
                let removed = gone.remove(dir.as_fd(), name);
                removed.map_err(io_at("remove", &self.path))?;
            }
            Err(e) => return Err(io_at("open", &self.path)(e)),
        }
        mkdirat(&dir, name, Mode::RWXU).map_err(io_at("make the directory", &self.path))
    }

    /// Builds the small repository beside the work tree, and puts it in the place of the former one.
    fn renew_repository(
        &mut self,
        settings: &Settings,
        real: &Real,
        base: &Base<'_>,
        (manifest, stat): (&Manifest, &Stat),
        gone: &mut Gone,
    ) -> Result<(), TreeError> {
        step(&mut self.observer, "build the repository")?;
        let beside = self.dir.join("git.new");
        let dir = open_root(&self.dir)?;
        let removed = gone.remove(dir.as_fd(), b"git.new");
        removed.map_err(io_at("remove", &beside))?;
        settings.build(&beside, real, base, &index::encode(manifest, stat))?;
        step(&mut self.observer, "remove the former repository")?;
        let root = open_root(&self.path)?;
        let removed = gone.remove(root.as_fd(), b".git");
        removed.map_err(io_at("remove", &self.git_dir()))?;
        step(&mut self.observer, "put the repository in its place")?;
        let renamed = renameat(CWD, &beside, &root, ".git");
        renamed.map_err(io_at("rename", &beside))?;
        self.index = index_stamp(&self.git_dir());
        Ok(())
    }

    /// What the run changed; its blobs and trees are in the small repository afterwards.
    pub fn result(&mut self, start: &Start) -> Result<RunResult, TreeError> {
        let outcome = self.manifest_of(start).and_then(|manifest| {
            let outcome = self.result_of(start, &manifest);
            self.manifest = Some(manifest);
            outcome
        });
        outcome.map_err(|error| self.own_error(error))
    }

    fn result_of(&mut self, start: &Start, manifest: &Manifest) -> Result<RunResult, TreeError> {
        step(&mut self.observer, "look at the repository")?;
        let git_dir = self.git_dir();
        let opened = self.open_repository()?;
        let mut repo = None;
        let mut head = HeadChanges::default();
        let mut links = IndexedLinks::default();
        let mut refusals = Vec::new();
        let commits = match opened {
            Err(what) => {
                refusals.push(problems::damaged(&what));
                Commits::moved(what)
            }
            Ok(opened) => {
                refusals.extend(operation(&git_dir));
                links = self.indexed_links();
                if links.is_unmerged {
                    refusals.push(problems::unmerged());
                }
                let commits = Commits::read(&opened, start)?;
                if let Some(what) = &commits.unreadable {
                    refusals.push(problems::damaged(what));
                }
                head = commits.changes(&opened, start)?;
                repo = Some(opened);
                commits
            }
        };
        step(&mut self.observer, "look at the files")?;
        let mut found = self.look(
            start,
            manifest,
            repo.as_ref(),
            (&added(&head), &head, &links),
        )?;
        refusals.extend(found.problems);
        refusals.extend(kept_is_tracked(&Keep::read(&start.keep, &self.dir)?, &head));
        refusals.extend(self.committed_copy(manifest, &head)?);
        // Where something is laid over, the result has what the run's commits have.
        let covered = head.into_iter();
        let covered = covered.filter(|(path, _)| manifest.is_covered(path));
        found.changes.extend(covered);
        refusals.extend(changed_rules(repo.as_ref(), &found.changes)?);
        if self.rules()?.ignores_case() {
            refusals.extend(case_collisions(manifest, &found.changes));
        }
        let mut tree = raw(&start.tree);
        if let Some(repo) = repo.as_ref().filter(|_| !found.changes.is_empty()) {
            step(&mut self.observer, "write the result")?;
            let changes: Vec<(&[u8], Option<Item>)> = found
                .changes
                .iter()
                .map(|(path, seen)| (path.as_slice(), seen.new))
                .collect();
            let former = (tree != empty_tree()).then_some(tree);
            tree = match build_tree(repo, former, &changes)? {
                Some(tree) => tree,
                None => write_empty(repo)?,
            };
        }
        Ok(RunResult {
            head: commits.head,
            commits_made: commits.made,
            commits_count: commits.count,
            tree: tree.into(),
            changes: told(&found.changes)?,
            ignored: found.ignored,
            unkept: found.unkept,
            problems: refusals,
            is_unrelated: commits.is_unrelated,
        })
    }

    /// The paths, at most 20, in which the tree is no longer what `result` found.
    pub fn drift(&mut self, start: &Start, result: &RunResult) -> Result<Vec<RepoPath>, TreeError> {
        let drift = self.drift_from(start, result);
        drift.map_err(|error| self.own_error(error))
    }

    fn drift_from(
        &mut self,
        start: &Start,
        result: &RunResult,
    ) -> Result<Vec<RepoPath>, TreeError> {
        let manifest = self.manifest_of(start)?;
        let tracked = result.changes.iter();
        let tracked = tracked
            .map(|change| change.path.as_bytes().to_vec())
            .collect();
        let (head, links) = (HeadChanges::default(), self.indexed_links());
        let found = self.look(start, &manifest, None, (&tracked, &head, &links));
        // These come from the run's commits, and not from the tree.
        let changes = result.changes.iter();
        let changes = changes.filter(|change| !manifest.is_covered(change.path.as_bytes()));
        let before: BTreeMap<_, _> = changes.map(|c| (&c.path, &c.new)).collect();
        self.manifest = Some(manifest);
        let now = told(&found?.changes)?;
        let after: BTreeMap<_, _> = now.iter().map(|c| (&c.path, &c.new)).collect();
        let mut differing: Vec<RepoPath> = Vec::new();
        for path in before.keys().chain(after.keys()) {
            if before.get(*path) != after.get(*path) {
                differing.push((*path).clone());
            }
        }
        differing.sort();
        differing.dedup();
        differing.truncate(DRIFT_MAX);
        Ok(differing)
    }

    /// Puts the changes of a result onto another base; a following `result` finds them.
    pub fn make_result(
        &mut self,
        base: &Base<'_>,
        changes: &[PathChange],
    ) -> Result<Start, TreeError> {
        let start = self.make(base, changes)?;
        let real = Real::open(base.repository)?;
        // Files of the tree are not asked: a kept cache may hold what a link of the base leads to.
        let rules = Rules::open(&self.dir.join("rules"), false)?;
        let mut gone = Gone::open(&self.dir)?;
        let root = open_root(&self.path)?;
        let modes = Modes::of_process();
        // What goes makes room for what comes.
        let gone_first = changes.iter().filter(|change| change.new.is_none());
        for change in gone_first.chain(changes.iter().filter(|change| change.new.is_some())) {
            step(&mut self.observer, "put a change")?;
            let placed = crate::put::put(&root, &real.repo, (&rules, modes), &mut gone, change);
            placed.map_err(|error| error.at(&self.path, &change.path))?;
        }
        if submodules::record(&self.git_dir(), changes)? {
            // It is another index than the one that was made.
            self.index = None;
        }
        Ok(start)
    }

    fn rules(&self) -> Result<Rules, TreeError> {
        Rules::open(&self.dir.join("rules"), true)
    }
}

pub(crate) fn write_empty(repo: &Repository) -> Result<git2::Oid, TreeError> {
    let fail = git_write("write a tree into the run's repository", repo.path());
    repo.treebuilder(None)
        .and_then(|builder| builder.write())
        .map_err(fail)
}

fn refuse_filtered(rules: &Rules, manifest: &Manifest) -> Result<(), TreeError> {
    // What is believed was looked at when it was written, under the same rules.
    for (known, stamp) in manifest.known.iter().zip(&manifest.stamps) {
        if stamp.is_none()
            && let Some(attribute) = rules.filter_of_base(&known.path)?
            && let Ok(path) = RepoPath::from_bytes(&known.path)
        {
            let attribute = attribute.to_owned();
            return Err(TreeError::Filtered { path, attribute });
        }
    }
    Ok(())
}

/// Drops from the layer what git would store as the base has it.
fn in_stored_form(layer: &mut Layer, manifest: &Manifest, rules: &Rules) -> Result<(), TreeError> {
    let mut same = Vec::new();
    for (path, source) in &layer.sources {
        let found = manifest
            .find(path)
            .ok()
            .and_then(|at| manifest.known.get(at));
        let (Some(base), Some(item)) = (found.and_then(|k| k.base), layer.items.get(path)) else {
            continue;
        };
        if let Source::File(from) = source
            && base.oid != item.oid
            && rules.converts(path)?
        {
            let content = fs::read(from).map_err(io_at("read", from))?;
            let oid = rules.stored_id(path, content, Some(base.oid))?;
            if base.is_same(Item {
                oid,
                mode: item.mode,
            }) {
                same.push(path.clone());
            }
        }
    }
    for path in same {
        layer.items.remove(&path);
        layer.sources.remove(&path);
    }
    Ok(())
}

fn what_was_laid(manifest: &Manifest) -> Vec<(RepoPath, String)> {
    let laid = manifest.known.iter().filter_map(|known| match known.laid {
        Laid::Over(item) => {
            let path = RepoPath::from_bytes(&known.path).ok()?;
            Some((path, format!("{:o} {}", item.mode, item.oid)))
        }
        Laid::No | Laid::Hidden => None,
    });
    laid.collect()
}

fn index_stamp(git_dir: &Path) -> Option<crate::known::FileStamp> {
    let stat = rustix::fs::lstat(git_dir.join("index")).ok()?;
    Some(crate::known::FileStamp::of(&stat))
}
