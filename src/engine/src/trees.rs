//! Where trees of runs lie.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use workerctl_trees::{SweepLimits, Trees};

use super::EngineOptions;
use crate::model::Config;
use crate::model::diagnostic::chain;
use crate::model::legible::hex;
use crate::protocol::TreesView;

/// When trees go that nobody uses.
pub(super) fn limits(config: &Config) -> SweepLimits {
    let bounds = config.trees;
    SweepLimits {
        idle_s: i64::try_from(bounds.idle_ms / 1_000).unwrap_or(i64::MAX),
        max: usize::try_from(bounds.max).unwrap_or(usize::MAX),
        min_free: bounds.min_free_bytes,
    }
}

/// The trees below their place, and whether more can be made there.
pub(super) fn view(place: &Result<PathBuf, String>, min_free: u64) -> TreesView {
    let root = match place {
        Ok(root) => root,
        Err(why) => {
            return TreesView {
                problem: Some(why.clone()),
                ..TreesView::default()
            };
        }
    };
    let (trees, unreadable) = match Trees::at(root).list() {
        Ok(trees) => (trees, None),
        Err(error) => (Vec::new(), Some(chain(&error))),
    };
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    TreesView {
        place: Some(root.display().to_string()),
        count: count(trees.len()),
        in_use: count(trees.iter().filter(|tree| tree.in_use).count()),
        bytes: trees.iter().map(|tree| tree.bytes).sum(),
        problem: problem(root, min_free).or(unreadable),
    }
}

/// Why no tree can be made below this directory, or soon none can.
fn problem(root: &Path, min_free: u64) -> Option<String> {
    use rustix::fs::Access;
    let existing = root
        .ancestors()
        .find(|one| one.symlink_metadata().is_ok())?;
    let shown = existing.display();
    if !existing.is_dir() {
        return Some(format!("`{shown}` is not a directory: move it away"));
    }
    if let Err(error) = rustix::fs::access(existing, Access::WRITE_OK | Access::EXEC_OK) {
        return Some(format!(
            "`{shown}` is not writable: {error}; run as its owner, or choose another state directory with `--state-dir`"
        ));
    }
    let found = rustix::fs::statvfs(existing).ok()?;
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    (free < min_free).then(|| {
        format!(
            "{free} bytes are free at `{shown}`, less than the {min_free} of `trees.min_free`: free some space; unused worktrees are deleted first"
        )
    })
}

/// Below the state directory where that lies outside of every work tree, so that no tool that searches a
/// checkout finds its files twice; else in the account's own directory for state.
pub(super) fn place(workspace: &Path, options: &EngineOptions) -> Result<PathBuf, String> {
    let state_dir = &options.state_dir;
    let is_inside = state_dir
        .ancestors()
        .any(|above| above == workspace || above.join(".git").symlink_metadata().is_ok());
    if !is_inside {
        return Ok(state_dir.join("trees"));
    }
    let of = |name: &str| {
        let value = options.environment.get(name).map(PathBuf::from);
        value.filter(|path| path.is_absolute())
    };
    let home = of("XDG_STATE_HOME").or_else(|| Some(of("HOME")?.join(".local/state")));
    let Some(home) = home else {
        return Err(format!(
            "the state directory `{}` is in a work tree, and neither `XDG_STATE_HOME` nor `HOME` names another \
             place for the trees of runs: set one of them, or move the state with `--state-dir`",
            state_dir.display()
        ));
    };
    let mut name = hex(&Sha256::digest(state_dir.as_os_str().as_encoded_bytes()));
    name.truncate(16);
    Ok(home.join("workerctl").join(name))
}
