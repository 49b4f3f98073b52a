//! Hints that definitions have changed. Only hints: the truth is the rescan of the host's tick.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use futures_util::StreamExt;
use inotify::{EventMask, EventOwned, Inotify, WatchDescriptor, WatchMask, Watches};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::model::config::CONFIG_FILE;

/// The directory that holds definitions.
const WORKERS: &str = "workers";

/// Bytes of notices that are taken at once.
const BUFFER_BYTES: usize = 16 * 1024;

/// Most directories that are watched; beyond, the rescan finds changes.
const DIRECTORIES_MAX: usize = 65_536;

/// Watches the definitions of a workspace as long as it lives.
pub(super) struct DefinitionsWatch {
    task: JoinHandle<()>,
}

impl DefinitionsWatch {
    /// Sends a hint for each change, and one once everything is watched: something may have changed
    /// before. Where watching is not possible, that is said and the rescan remains.
    pub(super) fn start(workspace: &Path, hints: mpsc::Sender<()>) -> DefinitionsWatch {
        let workspace = workspace.to_owned();
        let task = tokio::spawn(async move {
            if let Err(error) = listen(&workspace, hints).await {
                tracing::warn!(
                    %error,
                    "definitions are not watched; changes are found by the rescan every 30 s"
                );
            }
        });
        DefinitionsWatch { task }
    }
}

impl Drop for DefinitionsWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn listen(workspace: &Path, hints: mpsc::Sender<()>) -> io::Result<()> {
    let inotify = Inotify::init()?;
    let mut tree = Tree::watch(workspace, inotify.watches())?;
    let mut notices = inotify.into_event_stream(vec![0; BUFFER_BYTES])?;
    let mut changed = true;
    loop {
        if changed {
            // A full channel holds a hint already.
            let _ = hints.try_send(());
        }
        match notices.next().await {
            Some(notice) => changed = tree.hear(&notice?),
            None => return Ok(()),
        }
    }
}

/// The directories that are watched: the workspace itself and everything below `workers`.
struct Tree {
    watches: Watches,
    root: WatchDescriptor,
    places: HashMap<WatchDescriptor, PathBuf>,
}

impl Tree {
    fn watch(workspace: &Path, mut watches: Watches) -> io::Result<Tree> {
        // Directories, because editors replace files; the root for `workerctl.yaml` and for `workers`.
        let root = watches.add(workspace, mask())?;
        let mut tree = Tree {
            watches,
            places: HashMap::from([(root.clone(), workspace.to_owned())]),
            root,
        };
        tree.add(workspace.join(WORKERS))?;
        Ok(tree)
    }

    /// Watches a directory and all below it; what is gone or no directory is passed over.
    fn add(&mut self, directory: PathBuf) -> io::Result<()> {
        let mut open = vec![directory];
        while let Some(directory) = open.pop() {
            match self.watches.add(&directory, mask()) {
                Ok(descriptor) => drop(self.places.insert(descriptor, directory.clone())),
                Err(error) if is_no_directory(&error) => continue,
                Err(error) => return Err(error),
            }
            if self.places.len() >= DIRECTORIES_MAX {
                return Err(io::Error::other(format!(
                    "more than {DIRECTORIES_MAX} directories lie below `{WORKERS}`"
                )));
            }
            // Listed after it is watched, so that nothing comes to be in between unseen.
            let entries = std::fs::read_dir(&directory).into_iter().flatten();
            let below = entries.flatten().filter(|entry| {
                let kind = entry.file_type();
                kind.is_ok_and(|kind| kind.is_dir())
            });
            open.extend(below.map(|entry| entry.path()));
        }
        Ok(())
    }

    /// Takes a notice in; whether definitions may have changed.
    fn hear(&mut self, notice: &EventOwned) -> bool {
        if notice.mask.contains(EventMask::Q_OVERFLOW) {
            return true;
        }
        if notice.mask.contains(EventMask::IGNORED) {
            self.places.remove(&notice.wd);
            return false;
        }
        let Some(name) = &notice.name else {
            return false;
        };
        if notice.wd == self.root && name != CONFIG_FILE && name != WORKERS {
            return false;
        }
        let came = EventMask::CREATE | EventMask::MOVED_TO;
        if notice.mask.contains(EventMask::ISDIR)
            && notice.mask.intersects(came)
            && let Some(place) = self.places.get(&notice.wd)
        {
            let directory = place.join(name);
            if let Err(error) = self.add(directory) {
                tracing::warn!(%error, "a new directory is not watched; the rescan every 30 s remains");
            }
        }
        true
    }
}

/// Changes only: reading is none, above all not our own.
fn mask() -> WatchMask {
    WatchMask::CREATE
        | WatchMask::DELETE
        | WatchMask::CLOSE_WRITE
        | WatchMask::MOVED_FROM
        | WatchMask::MOVED_TO
        | WatchMask::ATTRIB
        | WatchMask::ONLYDIR
        | WatchMask::DONT_FOLLOW
}

fn is_no_directory(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::*;

    const LONG: Duration = Duration::from_mins(1);

    async fn hinted(hints: &mut mpsc::Receiver<()>) {
        tokio::time::timeout(LONG, hints.recv())
            .await
            .unwrap()
            .unwrap();
    }

    /// What `change` does is hinted at; nothing that was heard before counts.
    async fn noticed(hints: &mut mpsc::Receiver<()>, change: impl FnOnce()) {
        while hints.try_recv().is_ok() {}
        change();
        hinted(hints).await;
    }

    #[tokio::test]
    async fn changes_are_noticed_wherever_definitions_may_come_to_stand() {
        let root = tempfile::tempdir().unwrap();
        let (sender, mut hints) = mpsc::channel(1);
        let _watch = DefinitionsWatch::start(root.path(), sender);
        hinted(&mut hints).await;
        let path = |relative: &str| root.path().join(relative);
        noticed(&mut hints, || fs::create_dir(path("workers")).unwrap()).await;
        let deep = path("workers/w/skills");
        noticed(&mut hints, || fs::create_dir_all(&deep).unwrap()).await;
        noticed(&mut hints, || fs::write(deep.join("s.md"), "x").unwrap()).await;
        noticed(&mut hints, || fs::remove_file(deep.join("s.md")).unwrap()).await;
        noticed(&mut hints, || fs::write(path(CONFIG_FILE), "x").unwrap()).await;
        let elsewhere = path("made");
        fs::create_dir(&elsewhere).unwrap();
        noticed(&mut hints, || {
            fs::rename(&elsewhere, path("workers/moved")).unwrap();
        })
        .await;
        noticed(&mut hints, || {
            fs::write(path("workers/moved/worker.yaml"), "x").unwrap();
        })
        .await;
    }

    #[tokio::test]
    async fn reading_and_what_lies_elsewhere_is_no_change() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("workers/w/worker.yaml");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "x").unwrap();
        let inotify = Inotify::init().unwrap();
        let mut tree = Tree::watch(root.path(), inotify.watches()).unwrap();
        fs::read(&file).unwrap();
        fs::read_dir(root.path().join("workers")).unwrap().count();
        fs::write(root.path().join("other"), "x").unwrap();
        fs::write(root.path().join("last"), "x").unwrap();
        let mut notices = inotify.into_event_stream(vec![0; BUFFER_BYTES]).unwrap();
        loop {
            let notice = notices.next().await.unwrap().unwrap();
            assert!(!tree.hear(&notice), "{notice:?}");
            if notice.name.is_some_and(|name| name == "last") {
                break;
            }
        }
    }
}
