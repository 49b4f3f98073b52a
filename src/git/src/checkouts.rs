//! The checkouts of a repository.

use std::path::{Path, PathBuf};

use git2::Repository;
use workerctl_landing::IndexSnapshot;

use crate::open::locate;

/// A work tree of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkout {
    /// Absolute, without links.
    pub workdir: PathBuf,
    git_dir: PathBuf,
}

/// Returns the checkout at `workdir` first, then all other checkouts of its repository that exist. A directory without a
/// repository is its only checkout.
pub fn checkouts(workdir: &Path) -> Vec<Checkout> {
    let Ok(own) = locate(workdir) else {
        let git_dir = workdir.join(".git");
        return vec![Checkout {
            workdir: real(workdir),
            git_dir,
        }];
    };
    let mut found = vec![Checkout {
        workdir: real(&own.workdir),
        git_dir: own.git_dir.clone(),
    }];
    if own.git_dir == own.common_dir && !own.common_dir.join("worktrees").exists() {
        return found;
    }
    let others = || {
        let main = Repository::open(&own.common_dir)?;
        let mut workdirs: Vec<PathBuf> = main.workdir().map(Path::to_owned).into_iter().collect();
        for name in main.worktrees()?.iter().flatten().flatten() {
            workdirs.push(main.find_worktree(name)?.path().to_owned());
        }
        Ok::<_, git2::Error>(workdirs)
    };
    for other in others().unwrap_or_default() {
        if let Ok(other) = locate(&other) {
            let checkout = Checkout {
                workdir: real(&other.workdir),
                git_dir: other.git_dir,
            };
            if !found.contains(&checkout) {
                found.push(checkout);
            }
        }
    }
    found
}

impl Checkout {
    /// Returns the symbolic links that git tracks, relative to the work tree. An index that cannot be read has none: nothing lands
    /// there either.
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
