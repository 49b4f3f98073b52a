//! Paths that are never part of a baseline or a commit.

use serde::{Deserialize, Serialize};

use super::ids::RepoPath;

/// Paths that this program or another run owns: each names a file, or everything beneath it.
///
/// They are the state directory, the threads, the metrics, `.workerctl`, and the destinations
/// of other runs, each relative to the root of the work tree.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Exclusions(Vec<RepoPath>);

impl Exclusions {
    /// Exclusions for these paths.
    pub fn new(paths: impl IntoIterator<Item = RepoPath>) -> Self {
        let mut paths: Vec<_> = paths.into_iter().collect();
        paths.sort();
        paths.dedup();
        Self(paths)
    }

    /// These and more.
    #[must_use]
    pub fn with(&self, more: impl IntoIterator<Item = RepoPath>) -> Self {
        Self::new(self.0.iter().cloned().chain(more))
    }

    /// The paths, in the order of their bytes.
    pub fn paths(&self) -> &[RepoPath] {
        &self.0
    }

    /// Whether `path` is one of them or lies beneath one.
    pub fn covers(&self, path: &RepoPath) -> bool {
        let holds = |candidate: &[u8]| {
            let found = self.0.binary_search_by(|p| p.as_bytes().cmp(candidate));
            found.is_ok()
        };
        let bytes = path.as_bytes();
        holds(bytes)
            || bytes
                .iter()
                .enumerate()
                .any(|(i, b)| *b == b'/' && holds(&bytes[..i]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_components_are_covered() {
        let path = |t| RepoPath::literal(t).unwrap();
        let some = Exclusions::new([path("state"), path("workspace/threads"), path("a.md")]);
        for covered in ["state", "state/db/x", "workspace/threads/t.json", "a.md"] {
            assert!(some.covers(&path(covered)), "{covered}");
        }
        for open in [
            "states",
            "workspace",
            "workspace/threads2",
            "a.md.bak",
            "x/state",
        ] {
            assert!(!some.covers(&path(open)), "{open}");
        }
    }
}
