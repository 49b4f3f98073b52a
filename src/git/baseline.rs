//! The baseline, the result and the difference between them.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::again::again;
use super::beneath::Worktree;
use super::deadline::Deadline;
use super::error::{GitError, git};
use super::exclusions::Exclusions;
use super::former_rules::{HiddenRules, taken_at};
use super::ids::{Oid, RepoPath, RunId};
use super::open::{Handle, Head};
use super::operation::Operation;
use super::permissions::Permissions;
use super::record::digest;
use super::refs::Kept;
use super::snapshot::{DirtyPath, Limits, Purpose, Snapshot, UnkeptFile, take};
use super::staged::{StagedPath, objects};
use super::tree::{Change, ChangeKind, MODE_SUBMODULE, Overlay, entry_at};

/// The state of a repository before the first attempt of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baseline {
    /// The run.
    pub run: RunId,
    /// Where `HEAD` pointed; its `refname` is the reference that the run's commit will move.
    pub head: Head,
    /// Everything that was tracked or not ignored, as a tree.
    pub tree: Oid,
    /// Paths that differed from `HEAD`.
    pub dirty: Vec<DirtyPath>,
    /// What the index held otherwise than `HEAD`, in the order of the paths.
    #[serde(default)]
    pub staged: Vec<StagedPath>,
    /// Files that existed although git is told that they need not (`--skip-worktree`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unneeded: Vec<RepoPath>,
    /// Ignore rules that git does not show.
    #[serde(default)]
    pub hidden_rules: HiddenRules,
    /// When it was complete, by the clock of the file system: seconds since 1970 and nanoseconds.
    #[serde(default)]
    pub taken_at: Option<(i64, i64)>,
    /// The permission bits of tracked files.
    #[serde(default)]
    pub permissions: Permissions,
    /// Files that are known by their digest only and cannot be put back.
    pub unkept: Vec<UnkeptFile>,
    /// Submodules whose own work tree was dirty.
    pub submodules_dirty: Vec<RepoPath>,
    /// Repositories inside the work tree that are no submodules; they are never entered.
    pub nested: Vec<RepoPath>,
}

impl Baseline {
    /// The paths among `paths`, or beneath them, that were dirty or untracked.
    pub fn dirty_among(&self, paths: &[RepoPath]) -> Vec<RepoPath> {
        let dirty = self.dirty.iter().map(|d| &d.path);
        dirty
            .filter(|d| paths.iter().any(|p| d.is_within(p)))
            .cloned()
            .collect()
    }

    pub(super) fn dirty_at(&self, path: &RepoPath) -> Option<&DirtyPath> {
        let at = self.dirty.binary_search_by(|d| d.path.cmp(path)).ok()?;
        self.dirty.get(at)
    }
}

/// Records the baseline of a run and keeps it alive by `refs/workerctl/runs/<run>/…`.
///
/// On a clean tree no object is written. Recording it again replaces the first record. Once the time
/// is up it fails, and no reference was written.
pub fn baseline(
    cwd: &Path,
    exclusions: &Exclusions,
    limits: &Limits,
    run: &RunId,
    deadline: Deadline<'_>,
) -> Result<Baseline, GitError> {
    again(|| record(cwd, exclusions, limits, run, deadline))
}

fn record(
    cwd: &Path,
    exclusions: &Exclusions,
    limits: &Limits,
    run: &RunId,
    deadline: Deadline<'_>,
) -> Result<Baseline, GitError> {
    let handle = Handle::open(cwd)?;
    handle.give_back_of_ended();
    let mut taken = take(&handle, exclusions, limits, &Purpose::Baseline, deadline)?;
    taken.dirty.sort_by(|a, b| a.path.cmp(&b.path));
    let worktree = Worktree::open(handle.workdir())?;
    let index = handle.repo.index().map_err(git("read the index"))?;
    let permissions = Permissions::record(&worktree, &index, deadline)?;
    handle.keep_baseline(run, &taken, deadline)?;
    Ok(Baseline {
        run: run.clone(),
        head: taken.head,
        tree: taken.tree,
        dirty: taken.dirty,
        staged: taken.staged,
        unneeded: taken.unneeded,
        permissions,
        hidden_rules: taken.hidden_rules,
        taken_at: taken_at(&handle, run),
        unkept: taken.unkept,
        submodules_dirty: taken.submodules_dirty,
        nested: taken.nested,
    })
}

impl Handle {
    fn keep_baseline(
        &self,
        run: &RunId,
        taken: &Snapshot,
        deadline: Deadline<'_>,
    ) -> Result<(), GitError> {
        self.keep_staged(run, &taken.staged, deadline)?;
        if taken.written.is_empty() {
            return match taken.head.oid() {
                Some(commit) => self.keep(run, Kept::Baseline, commit),
                None => Ok(()),
            };
        }
        let mut objects = taken.written.clone();
        let parents: Vec<_> = taken.head.oid().into_iter().collect();
        let commit = self.holding_commit(run, "baseline", &taken.tree, &parents)?;
        objects.push(commit.clone());
        let mut raw = Overlay::new();
        for dirty in &taken.dirty {
            if let (Some(oid), Some(entry)) = (&dirty.raw, &dirty.entry) {
                let mut entry = entry.clone();
                entry.oid = oid.clone();
                raw.insert(dirty.path.clone(), Some(entry));
            }
        }
        let mut raw_tree = None;
        if !raw.is_empty() {
            let durable = Handle::open_durable(self.workdir())?;
            raw_tree = Some(durable.write_tree(None, &raw, &mut objects, deadline)?);
        }
        deadline.check()?;
        if let Some(tree) = raw_tree {
            self.keep(run, Kept::Raw, &tree)?;
        }
        self.keep_all(run, Kept::Baseline, &commit, &objects)
    }

    /// Only the index names what is staged, so that a skill which stages could lose it.
    fn keep_staged(
        &self,
        run: &RunId,
        staged: &[StagedPath],
        deadline: Deadline<'_>,
    ) -> Result<(), GitError> {
        let contents = self.staged_contents(staged)?;
        if contents.is_empty() {
            return Ok(());
        }
        let mut kept: Vec<Oid> = objects(&contents).collect();
        let durable = Handle::open_durable(self.workdir())?;
        let tree = durable.write_tree(None, &contents, &mut kept, deadline)?;
        deadline.check()?;
        self.keep_all(run, Kept::Staged, &tree, &kept)
    }
}

/// A path that the run changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathChange {
    /// The difference between the baseline and the result.
    pub change: Change,
    /// Whether a commit that was made during the run holds exactly the result already.
    pub committed: bool,
    /// Whether the older content is known, so that it can be put back.
    pub restorable: bool,
}

/// The state of a repository when the last process of an attempt was dead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultTree {
    /// Where `HEAD` pointed.
    pub head: Head,
    /// Everything that was tracked or not ignored, as a tree.
    pub tree: Oid,
    /// Paths that differ from the baseline, in the order of their bytes.
    pub changes: Vec<PathChange>,
    /// The newest commits that were made during the run, the oldest of them first, at most
    /// [`super::COMMITS_LISTED_MAX`].
    pub commits_made: Vec<Oid>,
    /// How many were made in all, as far as they were counted.
    #[serde(default)]
    pub commits_count: u64,
    /// Whether the branch no longer contains the commit that it was at.
    pub rewritten: bool,
    /// What the index holds otherwise than `HEAD`, in the order of the paths.
    #[serde(default)]
    pub staged: Vec<StagedPath>,
    /// What git had under way; nothing before the run.
    #[serde(default)]
    pub operation: Option<Operation>,
    /// Changed paths with a `filter` attribute, which this program cannot commit.
    pub filtered: Vec<RepoPath>,
    /// Repositories inside the work tree that the baseline did not have.
    pub nested: Vec<RepoPath>,
    /// Files that git ignores now and would not have ignored before: the run's, but nothing to commit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<RepoPath>,
    /// What holds more of them than are recorded: they are left.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden_in: Vec<RepoPath>,
    /// Trees of directories that are too deep to be looked at; see [`super::DIRECTORIES_MAX`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub too_deep: Vec<RepoPath>,
    /// Submodules that became dirty or moved without a commit in this repository.
    pub submodules: Vec<RepoPath>,
    /// Paths with an unresolved merge.
    pub unmerged: Vec<RepoPath>,
    /// Declared outputs that git ignores: they exist, but can be neither committed nor restored.
    pub ignored_outputs: Vec<RepoPath>,
    /// Paths that differ only in case from another path of the result.
    pub case_collisions: Vec<RepoPath>,
}

impl ResultTree {
    /// How many commits were made during the run; records of earlier versions have no number.
    pub fn count_made(&self) -> usize {
        let counted = usize::try_from(self.commits_count).unwrap_or(usize::MAX);
        counted.max(self.commits_made.len())
    }

    /// The changes without what the run hid by ignore rules of its own: that is neither shown nor committed.
    pub fn shown_changes(&self) -> impl Iterator<Item = &PathChange> {
        let is_hidden = |c: &&PathChange| self.hidden.binary_search(&c.change.path).is_ok();
        self.changes.iter().filter(move |c| !is_hidden(c))
    }
}

/// Records the result of a run, once, when its last process is dead.
///
/// `outputs` are the declared outputs; those that git ignores are named in the answer.
pub fn result_tree(
    cwd: &Path,
    baseline: &Baseline,
    exclusions: &Exclusions,
    limits: &Limits,
    outputs: &[RepoPath],
) -> Result<ResultTree, GitError> {
    again(|| result_once(cwd, baseline, exclusions, limits, outputs))
}

/// Records the result, for callers that try the whole again.
pub(super) fn result_once(
    cwd: &Path,
    baseline: &Baseline,
    exclusions: &Exclusions,
    limits: &Limits,
    outputs: &[RepoPath],
) -> Result<ResultTree, GitError> {
    let handle = Handle::open(cwd)?;
    handle.give_back(&baseline.run);
    let taken = take(
        &handle,
        exclusions,
        limits,
        &Purpose::Result(baseline),
        Deadline::NONE,
    )?;
    let mut objects = taken.written.clone();
    let parents: Vec<_> = taken.head.oid().into_iter().collect();
    let commit = handle.holding_commit(&baseline.run, "result", &taken.tree, &parents)?;
    objects.push(commit.clone());
    handle.keep_all(&baseline.run, Kept::Result, &commit, &objects)?;

    let made = handle.commits_since(baseline.head.oid(), taken.head.oid())?;
    let mut changes = handle.path_changes(baseline, &taken, exclusions)?;
    let filtered = handle.filtered_changes(baseline, &taken, &mut changes)?;
    changes.sort_by(|a, b| a.change.path.cmp(&b.change.path));
    Ok(ResultTree {
        operation: handle.operation()?,
        ignored_outputs: handle.ignored(outputs)?,
        case_collisions: handle.case_collisions(&taken.tree, &changes)?,
        submodules: submodules(baseline, &taken, &changes),
        hidden: taken.hidden,
        hidden_in: taken.hidden_in,
        too_deep: taken.too_deep,
        nested: fresh(&taken.nested, &baseline.nested),
        unmerged: taken.unmerged,
        staged: taken.staged,
        head: taken.head,
        tree: taken.tree,
        changes,
        commits_made: made.newest,
        commits_count: made.count,
        rewritten: made.rewritten,
        filtered,
    })
}

impl Handle {
    fn path_changes(
        &self,
        baseline: &Baseline,
        taken: &Snapshot,
        exclusions: &Exclusions,
    ) -> Result<Vec<PathChange>, GitError> {
        let old = self.tree(&baseline.tree)?;
        let new = self.tree(&taken.tree)?;
        let moved = baseline.head.oid() != taken.head.oid();
        let head = if moved {
            self.tree_of(taken.head.oid())?
        } else {
            None
        };
        let mut changes = Vec::new();
        for change in self.differences(Some(&old), Some(&new))? {
            let known = baseline.unkept.iter().any(|u| u.path == change.path);
            if known || exclusions.covers(&change.path) {
                continue;
            }
            let committed = moved && entry_at(head.as_ref(), &change.path)? == change.new;
            changes.push(PathChange {
                change,
                committed,
                restorable: true,
            });
        }
        let worktree = Worktree::open(self.workdir())?;
        for before in &baseline.unkept {
            let now = digest(&worktree, &before.path, Deadline::NONE)?;
            if now.as_ref() == Some(before) {
                continue;
            }
            changes.push(unrestorable(
                before.path.clone(),
                match now {
                    Some(_) => ChangeKind::Modified,
                    None => ChangeKind::Deleted,
                },
            ));
        }
        Ok(changes)
    }

    /// Paths with a filter that the run touched: their recorded form cannot be computed here,
    /// so they are named, and are changes that cannot be put back.
    fn filtered_changes(
        &self,
        baseline: &Baseline,
        taken: &Snapshot,
        changes: &mut Vec<PathChange>,
    ) -> Result<Vec<RepoPath>, GitError> {
        let mut filtered = Vec::new();
        for path in &taken.filtered {
            let known = baseline.unkept.iter().any(|u| u.path == *path);
            if known && !changes.iter().any(|c| c.change.path == *path) {
                continue;
            }
            filtered.push(path.clone());
            if !changes.iter().any(|c| c.change.path == *path) {
                let base = self.tree(&baseline.tree)?;
                let kind = match entry_at(Some(&base), path)? {
                    Some(_) => ChangeKind::Modified,
                    None => ChangeKind::Added,
                };
                changes.push(unrestorable(path.clone(), kind));
            }
        }
        for change in changes.iter() {
            let path = &change.change.path;
            let writes = change.change.new.is_some() && !change.committed;
            if writes && !filtered.contains(path) && self.is_filtered(path)? {
                filtered.push(path.clone());
            }
        }
        Ok(filtered)
    }

    fn case_collisions(
        &self,
        tree: &Oid,
        changes: &[PathChange],
    ) -> Result<Vec<RepoPath>, GitError> {
        // Where case matters, two such names are two files, as git itself treats them.
        if !self.setting("core.ignorecase", false) {
            return Ok(Vec::new());
        }
        let tree = self.tree(tree)?;
        let mut found = Vec::new();
        for change in changes
            .iter()
            .filter(|c| c.change.kind == ChangeKind::Added)
        {
            if collides(self, &tree, &change.change.path) {
                found.push(change.change.path.clone());
            }
        }
        Ok(found)
    }
}

fn collides(handle: &Handle, tree: &git2::Tree<'_>, path: &RepoPath) -> bool {
    let mut level = tree.clone();
    for name in path.components() {
        let same = |e: &git2::TreeEntry<'_>| e.name_bytes().eq_ignore_ascii_case(name);
        if level.iter().filter(same).count() > 1 {
            return true;
        }
        let next = level.get_name_bytes(name).map(|e| e.id());
        level = match next.and_then(|oid| handle.repo.find_tree(oid).ok()) {
            Some(next) => next,
            None => return false,
        };
    }
    false
}

fn unrestorable(path: RepoPath, kind: ChangeKind) -> PathChange {
    PathChange {
        change: Change {
            path,
            kind,
            old: None,
            new: None,
        },
        committed: false,
        restorable: false,
    }
}

fn submodules(baseline: &Baseline, taken: &Snapshot, changes: &[PathChange]) -> Vec<RepoPath> {
    let is_link = |c: &&PathChange| {
        let sides = [&c.change.old, &c.change.new];
        let link = sides
            .into_iter()
            .flatten()
            .any(|e| e.mode == MODE_SUBMODULE);
        link && !c.committed
    };
    let mut found = fresh(&taken.submodules_dirty, &baseline.submodules_dirty);
    found.extend(
        changes
            .iter()
            .filter(is_link)
            .map(|c| c.change.path.clone()),
    );
    found.sort();
    found.dedup();
    found
}

fn fresh(now: &[RepoPath], before: &[RepoPath]) -> Vec<RepoPath> {
    let new = now.iter().filter(|p| !before.contains(p));
    new.cloned().collect()
}
