//! The checkouts of a repository.

use std::path::{Path, PathBuf};

use workerctl_landing::IndexSnapshot;

/// A work tree of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkout {
    /// Absolute, without links.
    pub workdir: PathBuf,
    git_dir: PathBuf,
}

/// Returns all checkouts of the repository at `workdir`. A directory without a repository is its only checkout.
///
/// If they cannot be listed, only `workdir` is returned: a landing fails for the same reason.
pub fn checkouts(workdir: &Path) -> Vec<Checkout> {
    let listed = workerctl_landing::checkouts(workdir).unwrap_or_default();
    let present = listed.into_iter().filter_map(|checkout| {
        Some(Checkout {
            workdir: real(&checkout.workdir?),
            git_dir: checkout.git_dir,
        })
    });
    let found: Vec<Checkout> = present.collect();
    if !found.is_empty() {
        return found;
    }
    vec![Checkout {
        workdir: real(workdir),
        git_dir: workdir.join(".git"),
    }]
}

impl Checkout {
    /// Returns the symbolic links that git tracks, relative to the work tree; none if the index cannot be read, in which
    /// case nothing lands there.
    pub fn links(&self) -> Vec<String> {
        let snapshot = IndexSnapshot::read(&self.git_dir.join("index"));
        let links = |snapshot: IndexSnapshot| {
            let links = snapshot.index.links();
            links
                .map(|path| String::from_utf8_lossy(path).into_owned())
                .collect()
        };
        snapshot.map_or_else(|_| Vec::new(), links)
    }
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
