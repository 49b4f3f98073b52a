//! The state of a work tree at one moment: a tree of everything that is tracked or not ignored.
//!
//! `git status` says which paths differ between `HEAD`, the index and the work tree; every other
//! path is exactly what `HEAD` holds. So the tree is that of `HEAD` with those paths read from
//! the work tree, whatever the index says of them, and two such trees compare by id.

use std::path::Path;

use git2::{Status, StatusEntry};
use rustix::fs::Stat;
use serde::{Deserialize, Serialize};

use super::again::again;
use super::baseline::Baseline;
use super::beneath::{Observed, Worktree};
use super::deadline::Deadline;
use super::error::{GitError, git};
use super::exclusions::Exclusions;
use super::flagged::Flagged;
use super::former_rules::{Hidden, HiddenRules, is_rules};
use super::ids::{Oid, RepoPath};
use super::open::{Handle, Head};
use super::quarantine::Writing;
use super::record::Recorder;
use super::staged::{StagedPath, slot};
use super::status::{complete, everything};
use super::tree::{MODE_SUBMODULE, Overlay, TreeEntry};
use super::worktree_form::Forms;

/// How much uncommitted content is recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// An untracked file larger than this many bytes is recorded by its digest only.
    pub untracked_file_bytes_max: u64,
    /// Most bytes of dirty and untracked files together in a baseline.
    pub baseline_bytes_max: u64,
    /// Most untracked files in a baseline.
    pub untracked_files_max: u64,
    /// Most bytes of dirty and untracked files together in a result.
    pub result_bytes_max: u64,
    /// Most dirty and untracked files in a result.
    pub result_files_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            untracked_file_bytes_max: 10 << 20,
            baseline_bytes_max: 256 << 20,
            untracked_files_max: 50_000,
            result_bytes_max: 1 << 30,
            result_files_max: 200_000,
        }
    }
}

/// A file that is recorded by its digest, so that a change is seen but cannot be undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnkeptFile {
    /// The path.
    pub path: RepoPath,
    /// Its size in bytes.
    pub bytes: u64,
    /// The SHA-256 of its content, in hexadecimal.
    pub sha256: String,
}

/// A path that differs from `HEAD`, in the index or in the work tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirtyPath {
    /// The path.
    pub path: RepoPath,
    /// What the work tree holds, in git's normal form; `None` when it is deleted or unkept.
    pub entry: Option<TreeEntry>,
    /// The exact bytes, where end-of-line conversion makes them differ from the normal form.
    pub raw: Option<Oid>,
    /// The permission bits.
    pub unix_mode: Option<u32>,
    /// Whether git did not know the path.
    pub untracked: bool,
    /// Whether the index differs from `HEAD`.
    pub staged: bool,
}

/// Everything that one look at the work tree found.
pub(super) struct Snapshot {
    pub(super) head: Head,
    pub(super) tree: Oid,
    pub(super) dirty: Vec<DirtyPath>,
    pub(super) unkept: Vec<UnkeptFile>,
    /// Dirty or untracked paths with a `filter` attribute.
    pub(super) filtered: Vec<RepoPath>,
    /// Repositories inside the work tree that are no submodules.
    pub(super) nested: Vec<RepoPath>,
    /// Trees of directories that are too deep to be looked at; a baseline fails instead.
    pub(super) too_deep: Vec<RepoPath>,
    /// Files that are ignored now and would not have been before the run.
    pub(super) hidden: Vec<RepoPath>,
    /// What holds more of them than are recorded.
    pub(super) hidden_in: Vec<RepoPath>,
    /// Ignore rules that git does not show.
    pub(super) hidden_rules: HiddenRules,
    /// Submodules whose own work tree is dirty.
    pub(super) submodules_dirty: Vec<RepoPath>,
    /// Paths with an unresolved merge.
    pub(super) unmerged: Vec<RepoPath>,
    /// What the index holds otherwise than `HEAD`, in the order of the paths.
    pub(super) staged: Vec<StagedPath>,
    /// Files that exist although git is told that they need not (`--skip-worktree`).
    pub(super) unneeded: Vec<RepoPath>,
    /// Objects that were written, or would have been if they had not been there already.
    pub(super) written: Vec<Oid>,
}

/// What a snapshot is taken for.
pub(super) enum Purpose<'a> {
    /// The state before a run; large untracked files are only digested.
    Baseline,
    /// The state after it; the files that the baseline only digested are left out again.
    Result(&'a Baseline),
}

impl Purpose<'_> {
    /// Files that are known by their digest only.
    pub(super) fn unkept(&self) -> &[UnkeptFile] {
        match self {
            Purpose::Baseline => &[],
            Purpose::Result(baseline) => &baseline.unkept,
        }
    }

    /// Whether a file was there before the run although git was told that it need not be.
    pub(super) fn had(&self, path: &RepoPath) -> bool {
        match self {
            Purpose::Baseline => false,
            Purpose::Result(baseline) => baseline.unneeded.contains(path),
        }
    }
}

/// A path that status named, before its content is read.
pub(super) struct Candidate {
    pub(super) path: RepoPath,
    pub(super) observed: Observed,
    pub(super) known_mode: Option<u32>,
    pub(super) untracked: bool,
    pub(super) staged: bool,
    pub(super) filtered: bool,
}

#[derive(Default)]
struct Scan {
    candidates: Vec<Candidate>,
    submodules: Vec<(RepoPath, Option<TreeEntry>, bool)>,
    nested: Vec<RepoPath>,
    too_deep: Vec<RepoPath>,
    unmerged: Vec<RepoPath>,
    staged: Vec<StagedPath>,
    unneeded: Vec<RepoPath>,
    hidden_rules: HiddenRules,
    hidden: Vec<RepoPath>,
    hidden_in: Vec<RepoPath>,
}

impl Scan {
    /// Adds what the run has hidden by ignore rules of its own.
    fn add_hidden(
        &mut self,
        handle: &Handle,
        worktree: &Worktree,
        exclusions: &Exclusions,
        purpose: &Purpose<'_>,
        head: &Head,
    ) -> Result<(), GitError> {
        let Purpose::Result(baseline) = purpose else {
            return Ok(());
        };
        let look = Hidden {
            handle,
            worktree,
            exclusions,
            baseline,
            left_out: &self.too_deep,
        };
        if !self.may_hide(baseline) && !look.rules_committed(head)? {
            return Ok(());
        }
        let found = look.files()?;
        self.hidden = found.candidates.iter().map(|c| c.path.clone()).collect();
        self.hidden.sort();
        self.candidates.extend(found.candidates);
        self.hidden_in = found.too_many_in;
        Ok(())
    }

    /// Whether there may be other ignore rules than before the run.
    fn may_hide(&self, baseline: &Baseline) -> bool {
        self.hidden_rules != baseline.hidden_rules
            || self.candidates.iter().any(|c| is_rules(&c.path))
            || baseline.dirty.iter().any(|d| is_rules(&d.path))
    }
}

/// Records the state of the work tree that `cwd` lies in. Nothing is written for a clean one.
pub(super) fn take(
    handle: &Handle,
    exclusions: &Exclusions,
    limits: &Limits,
    purpose: &Purpose<'_>,
    deadline: Deadline<'_>,
) -> Result<Snapshot, GitError> {
    let head = handle.head()?;
    let worktree = Worktree::open(handle.workdir())?;
    deadline.check()?;
    let mut scan = scan(handle, &worktree, exclusions, purpose, deadline)?;
    scan.add_hidden(handle, &worktree, exclusions, purpose, &head)?;
    within_limits(&scan.candidates, limits, purpose)?;
    let changes = scan.candidates.len() + scan.submodules.len();
    let writing = if changes > 0 || head.oid().is_none() {
        Some(Writing::about(handle.workdir(), changes)?)
    } else {
        None
    };
    let writer = Recorder {
        handle: writing.as_ref().map_or(handle, Writing::handle),
        worktree: &worktree,
        limits,
        purpose,
        forms: Forms::new(handle),
        has_links: handle.setting("core.symlinks", true),
        deadline,
    };
    let mut snapshot = Snapshot {
        tree: Oid::from(git2::Oid::ZERO_SHA1),
        dirty: Vec::new(),
        unkept: Vec::new(),
        filtered: Vec::new(),
        nested: scan.nested,
        too_deep: scan.too_deep,
        hidden: scan.hidden,
        hidden_in: scan.hidden_in,
        hidden_rules: scan.hidden_rules,
        submodules_dirty: Vec::new(),
        unmerged: scan.unmerged,
        staged: scan.staged,
        unneeded: scan.unneeded,
        written: Vec::new(),
        head,
    };
    let mut overlay = Overlay::new();
    for candidate in scan.candidates {
        writer.record(&candidate, &mut snapshot, &mut overlay)?;
    }
    for (path, entry, dirty) in scan.submodules {
        if dirty {
            snapshot.submodules_dirty.push(path.clone());
        }
        overlay.extend(entry.map(|entry| (path, Some(entry))));
    }
    let base = handle.tree_of(snapshot.head.oid())?;
    snapshot.tree =
        writer
            .handle
            .write_tree(base.as_ref(), &overlay, &mut snapshot.written, deadline)?;
    deadline.check()?;
    writing.map_or(Ok(()), |writing| writing.release())?;
    Ok(snapshot)
}

/// The paths that differ from `HEAD` now; nothing is written.
pub fn dirty_paths(cwd: &Path, exclusions: &Exclusions) -> Result<Vec<RepoPath>, GitError> {
    again(|| {
        let handle = Handle::open(cwd)?;
        let worktree = Worktree::open(handle.workdir())?;
        let purpose = Purpose::Baseline;
        let scan = scan(&handle, &worktree, exclusions, &purpose, Deadline::NONE)?;
        Ok(scan.candidates.into_iter().map(|c| c.path).collect())
    })
}

fn scan(
    handle: &Handle,
    worktree: &Worktree,
    exclusions: &Exclusions,
    purpose: &Purpose<'_>,
    deadline: Deadline<'_>,
) -> Result<Scan, GitError> {
    let mut options = everything();
    let index = handle.repo.index().map_err(git("read the index"))?;
    let (statuses, too_deep, hidden_rules) =
        complete(handle, worktree, exclusions, purpose, &index, &mut options)?;
    let mut scan = Scan {
        too_deep,
        hidden_rules: HiddenRules::read(handle, &hidden_rules),
        ..Scan::default()
    };
    for entry in statuses.iter() {
        deadline.check()?;
        let bytes = entry.path_bytes();
        let (bytes, is_directory) = match bytes.strip_suffix(b"/") {
            Some(directory) => (directory, true),
            None => (bytes, false),
        };
        let path = RepoPath::from_bytes(bytes)?;
        if exclusions.covers(&path) {
            continue;
        }
        if is_directory {
            scan.nested.push(path);
            continue;
        }
        let status = entry.status();
        if status.intersects(STAGED.union(Status::CONFLICTED)) {
            scan.staged.push(StagedPath {
                entries: slot(&index, &path),
                path: path.clone(),
            });
        }
        if status.contains(Status::CONFLICTED) {
            scan.unmerged.push(path.clone());
        }
        if is_submodule(&entry) {
            scan.submodules.push(submodule(path, &entry));
            continue;
        }
        let observed = worktree.observe(&path)?;
        if matches!(observed, Observed::Absent) && is_sparse(&index, &path) {
            continue;
        }
        scan.candidates.push(Candidate {
            filtered: matches!(observed, Observed::File(_)) && handle.is_filtered(&path)?,
            known_mode: known_mode(&entry),
            untracked: status.contains(Status::WT_NEW),
            staged: status.intersects(STAGED),
            path,
            observed,
        });
    }
    let flagged = Flagged {
        handle,
        worktree,
        index: &index,
        exclusions,
        purpose,
        deadline,
    };
    let unseen = flagged.look(&scan.candidates.iter().map(|c| c.path.clone()).collect())?;
    scan.candidates.extend(unseen.candidates);
    scan.unneeded = unseen.present;
    scan.staged.sort_by(|a, b| a.path.cmp(&b.path));
    scan.staged.dedup_by(|a, b| a.path == b.path);
    Ok(scan)
}

const STAGED: Status = Status::INDEX_NEW
    .union(Status::INDEX_MODIFIED)
    .union(Status::INDEX_DELETED)
    .union(Status::INDEX_RENAMED)
    .union(Status::INDEX_TYPECHANGE);

fn within_limits(
    candidates: &[Candidate],
    limits: &Limits,
    purpose: &Purpose<'_>,
) -> Result<(), GitError> {
    let (mut files, mut untracked, mut bytes) = (0, 0, 0_u64);
    for candidate in candidates {
        if let Observed::File(stat) = &candidate.observed {
            files += 1;
            untracked += u64::from(candidate.untracked);
            bytes = bytes.saturating_add(size(stat));
        }
    }
    let refuse = |what, found, limit| {
        if found > limit {
            Err(GitError::TooMuch { what, found, limit })
        } else {
            Ok(())
        }
    };
    match purpose {
        Purpose::Baseline => {
            refuse("untracked files", untracked, limits.untracked_files_max)?;
            refuse(
                "bytes of uncommitted files",
                bytes,
                limits.baseline_bytes_max,
            )
        }
        Purpose::Result(_) => {
            let known: u64 = purpose.unkept().iter().map(|u| u.bytes).sum();
            let bytes = bytes.saturating_sub(known);
            refuse("changed files", files, limits.result_files_max)?;
            refuse("bytes of changed files", bytes, limits.result_bytes_max)
        }
    }
}

pub(super) fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

/// The mode that the index has on record, else `HEAD`.
fn known_mode(entry: &StatusEntry<'_>) -> Option<u32> {
    let in_index = entry.index_to_workdir().map(|d| d.old_file().mode());
    let in_head = entry.head_to_index().map(|d| d.old_file().mode());
    let modes = [in_index, in_head].into_iter().flatten();
    modes.map(u32::from).find(|mode| *mode != 0)
}

fn is_submodule(entry: &StatusEntry<'_>) -> bool {
    let deltas = [entry.head_to_index(), entry.index_to_workdir()];
    deltas.into_iter().flatten().any(|d| {
        d.new_file().mode() == git2::FileMode::Commit
            || (d.old_file().mode() == git2::FileMode::Commit
                && d.status() != git2::Delta::Typechange)
    })
}

/// A submodule's path, the commit it is at (`None` leaves what `HEAD` says), and its dirt.
fn submodule(path: RepoPath, entry: &StatusEntry<'_>) -> (RepoPath, Option<TreeEntry>, bool) {
    let at = match (entry.index_to_workdir(), entry.head_to_index()) {
        (Some(delta), _) | (None, Some(delta)) => delta.new_file().id(),
        (None, None) => git2::Oid::ZERO_SHA1,
    };
    let recorded = entry.index_to_workdir().map(|d| d.old_file().id());
    let dirty = recorded == Some(at);
    let entry = (!at.is_zero()).then(|| TreeEntry {
        oid: at.into(),
        mode: MODE_SUBMODULE,
    });
    (path, entry, dirty)
}

/// Whether the index says that a path is left out of the work tree on purpose.
fn is_sparse(index: &git2::Index, path: &RepoPath) -> bool {
    let skip = git2::IndexEntryExtendedFlag::SKIP_WORKTREE.bits();
    let entry = index.get_path(path.as_path(), 0);
    entry.is_some_and(|e| e.flags_extended & skip != 0)
}
