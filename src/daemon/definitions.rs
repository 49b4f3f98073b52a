//! Hints that definitions have changed. Only hints: the truth is the rescan of the host's tick.

use std::path::Path;

use notify::{Config, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;

use crate::model::config::CONFIG_FILE;

/// Watches the definitions of a workspace as long as it lives.
pub(super) struct DefinitionsWatch {
    _watcher: Option<RecommendedWatcher>,
}

impl DefinitionsWatch {
    /// Sends a hint for each change. Where watching is not possible, that is said and the rescan remains.
    pub(super) fn start(workspace: &Path, hints: mpsc::Sender<()>) -> DefinitionsWatch {
        let watched = watch(workspace, hints);
        if let Err(error) = &watched {
            tracing::warn!(
                %error,
                "definitions are not watched; changes are found by the rescan every 30 s"
            );
        }
        DefinitionsWatch {
            _watcher: watched.ok(),
        }
    }
}

fn watch(workspace: &Path, hints: mpsc::Sender<()>) -> notify::Result<RecommendedWatcher> {
    let workers = workspace.join("workers");
    let config = workspace.join(CONFIG_FILE);
    let of_interest = workers.clone();
    let mut watcher = RecommendedWatcher::new(
        move |event: notify::Result<Event>| {
            let changed = match event {
                // Reading is no change; above all not our own.
                Ok(event) if matches!(event.kind, EventKind::Access(_)) => false,
                Ok(event) => event
                    .paths
                    .iter()
                    .any(|path| path.starts_with(&of_interest) || *path == config),
                // Such as an overflow of the kernel's queue: something has changed.
                Err(_) => true,
            };
            if changed {
                // A full channel holds a hint already.
                let _ = hints.try_send(());
            }
        },
        Config::default().with_follow_symlinks(false),
    )?;
    // Directories, because editors replace files; the root for `workerctl.yaml` and for `workers` itself.
    watcher.watch(workspace, RecursiveMode::NonRecursive)?;
    if workers.is_dir() {
        watcher.watch(&workers, RecursiveMode::Recursive)?;
    }
    Ok(watcher)
}
