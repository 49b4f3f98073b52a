//! The permission bits of tracked files, of which git knows one: whether the owner may execute.
//!
//! A file that is put back has to get the bits that it had, or a private file would be open to everybody.
//! What most files have is recorded once, and what differs from it by path.

use std::collections::BTreeMap;

use git2::Index;
use serde::{Deserialize, Serialize};

use super::beneath::Worktree;
use super::deadline::Deadline;
use super::error::GitError;
use super::ids::RepoPath;
use super::tree::{MODE_EXECUTABLE, MODE_FILE};

/// Most paths that are recorded one by one.
const OTHERS_MAX: usize = 10_000;

/// The permission bits of all tracked files of a work tree.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permissions {
    /// What most files have that git calls plain; nothing where there are none.
    plain: Option<u32>,
    /// What most files have that git calls executable.
    executable: Option<u32>,
    /// Files that have others, in the order of their paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    others: Vec<(RepoPath, u32)>,
    /// What all files have in common, where too many differ to record each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    common: Option<u32>,
}

impl Permissions {
    /// Looks at every regular file that the index names.
    pub(super) fn record(
        worktree: &Worktree,
        index: &Index,
        deadline: Deadline<'_>,
    ) -> Result<Self, GitError> {
        let mut found: Vec<(Vec<u8>, bool, u32)> = Vec::new();
        let mut counts: BTreeMap<(bool, u32), usize> = BTreeMap::new();
        for entry in index.iter() {
            if !matches!(entry.mode, MODE_FILE | MODE_EXECUTABLE) {
                continue;
            }
            deadline.check()?;
            if let Some(bits) = worktree.permissions(&entry.path) {
                let executable = entry.mode == MODE_EXECUTABLE;
                *counts.entry((executable, bits)).or_default() += 1;
                found.push((entry.path, executable, bits));
            }
        }
        let usual = |executable: bool| {
            let of_kind = counts.iter().filter(|((kind, _), _)| *kind == executable);
            let most = of_kind.max_by_key(|(_, count)| **count);
            most.map(|((_, bits), _)| *bits)
        };
        let (plain, executable) = (usual(false), usual(true));
        let is_other = |kind: bool, bits: u32| Some(bits) != if kind { executable } else { plain };
        let mut others = Vec::new();
        for (path, kind, bits) in &found {
            if is_other(*kind, *bits) && others.len() < OTHERS_MAX {
                others.push((RepoPath::from_bytes(path)?, *bits));
            }
        }
        others.sort();
        let differing = found
            .iter()
            .filter(|(_, kind, bits)| is_other(*kind, *bits));
        let is_cut = differing.count() > OTHERS_MAX;
        let common = found.iter().fold(0o777, |all, (_, _, bits)| all & bits);
        Ok(Self {
            plain,
            executable,
            others,
            common: is_cut.then_some(common),
        })
    }

    /// The bits that a file had; `None` where nothing is known. Never more than it had.
    pub(super) fn of(&self, path: &RepoPath, executable: bool) -> Option<u32> {
        if let Ok(at) = self.others.binary_search_by(|(other, _)| other.cmp(path)) {
            return self.others.get(at).map(|(_, bits)| *bits);
        }
        let usual = if executable {
            self.executable
        } else {
            self.plain
        };
        self.common.or(usual)
    }
}
