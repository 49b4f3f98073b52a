//! What is staged: the index where it differs from `HEAD`.
//!
//! A skill that stages replaces what a person had staged, and the index alone held that. So a baseline and
//! a result record these entries, and what a run did to them can be told from what a person did.

use git2::{Index, IndexEntry, IndexEntryExtendedFlag};
use serde::{Deserialize, Serialize};

use super::baseline::{Baseline, ResultTree};
use super::error::{GitError, git};
use super::ids::{Oid, RepoPath};
use super::open::Handle;
use super::tree::{MODE_SUBMODULE, Overlay, TreeEntry, entry_at};
use super::user_index::{IndexRefresh, IndexUpdate, refresh};

/// One entry of the index at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagedEntry {
    /// 0, or 1 to 3 for the sides of an unresolved merge.
    pub stage: u8,
    /// What it holds.
    pub entry: TreeEntry,
    /// Whether it only says that the path is to be added (`git add -N`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub intent: bool,
}

/// A path that the index holds otherwise than `HEAD`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagedPath {
    /// The path.
    pub path: RepoPath,
    /// Its entries; none where `HEAD` has the path and the index has not.
    pub entries: Slot,
}

/// All that the index holds at one path.
pub(super) type Slot = Vec<StagedEntry>;

/// What the index holds at a path.
pub(super) fn slot(index: &Index, path: &RepoPath) -> Slot {
    let at = |stage: u8| Some((stage, index.get_path(path.as_path(), i32::from(stage))?));
    let found = (0..=3).filter_map(at);
    found
        .map(|(stage, entry)| StagedEntry {
            stage,
            entry: tree_entry(&entry),
            intent: entry.flags_extended & INTENT != 0,
        })
        .collect()
}

const INTENT: u16 = IndexEntryExtendedFlag::INTENT_TO_ADD.bits();

fn tree_entry(entry: &IndexEntry) -> TreeEntry {
    TreeEntry {
        oid: entry.id.into(),
        mode: entry.mode,
    }
}

/// What the index holds at a path where nothing is staged.
pub(super) fn unstaged(entry: Option<TreeEntry>) -> Slot {
    let entry = entry.map(|entry| StagedEntry {
        stage: 0,
        entry,
        intent: false,
    });
    entry.into_iter().collect()
}

/// The record for a path, if there is one; `paths` are sorted.
pub(super) fn staged_at<'a>(paths: &'a [StagedPath], path: &RepoPath) -> Option<&'a Slot> {
    let at = paths.binary_search_by(|s| s.path.cmp(path)).ok()?;
    paths.get(at).map(|staged| &staged.entries)
}

impl Handle {
    /// The staged contents as one tree, so that they can be kept.
    pub(super) fn staged_contents(&self, staged: &[StagedPath]) -> Result<Overlay, GitError> {
        let odb = self.repo.odb().map_err(git("open the objects"))?;
        let mut contents = Overlay::new();
        for path in staged {
            for held in &path.entries {
                // A submodule's commit lies elsewhere; what is only announced has no content.
                let is_here = held.entry.mode != MODE_SUBMODULE && odb.exists(held.entry.oid.raw());
                if is_here && held.stage == 0 {
                    contents.insert(path.path.clone(), Some(held.entry.clone()));
                }
            }
        }
        Ok(contents)
    }
}

/// The objects of an overlay.
pub(super) fn objects(contents: &Overlay) -> impl Iterator<Item = Oid> + '_ {
    contents.values().flatten().map(|entry| entry.oid.clone())
}

/// Takes back what the skill staged, after a run that ends well: a path of its commit is staged as the
/// commit has it, any other as it was before the run. What somebody staged since stays.
pub fn settle_index(
    cwd: &std::path::Path,
    baseline: &Baseline,
    result: &ResultTree,
) -> Result<IndexRefresh, GitError> {
    let handle = Handle::open(cwd)?;
    let head = handle.head()?;
    if head.refname() != baseline.head.refname() {
        return Ok(IndexRefresh::NotOurs);
    }
    let then = handle.tree_of(baseline.head.oid())?;
    let end = handle.tree_of(result.head.oid())?;
    let now = handle.tree_of(head.oid())?;
    let mut updates = Vec::new();
    for path in staged_in_either(baseline, result) {
        let (old, new) = (
            entry_at(then.as_ref(), path)?,
            entry_at(now.as_ref(), path)?,
        );
        let before = staged_at(&baseline.staged, path).cloned();
        let before = before.unwrap_or_else(|| unstaged(old.clone()));
        let seen = match staged_at(&result.staged, path) {
            Some(seen) => seen.clone(),
            None => unstaged(entry_at(end.as_ref(), path)?),
        };
        if before == seen {
            continue;
        }
        updates.push(IndexUpdate {
            path: path.clone(),
            expected: vec![seen],
            to: if old == new { before } else { unstaged(new) },
        });
    }
    Ok(refresh(&handle, &updates))
}

/// Every path that was staged before the run or at its end, once.
pub(super) fn staged_in_either<'a>(
    baseline: &'a Baseline,
    result: &'a ResultTree,
) -> Vec<&'a RepoPath> {
    let both = baseline.staged.iter().chain(&result.staged);
    let mut paths: Vec<_> = both.map(|staged| &staged.path).collect();
    paths.sort();
    paths.dedup();
    paths
}
