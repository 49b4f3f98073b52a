//! Hints that definitions have changed. Only hints: the truth is the rescan of the host's tick.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use futures_util::StreamExt;
use inotify::{EventMask, EventOwned, Inotify, WatchDescriptor, WatchMask, Watches};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::catalog;
use crate::model::config::CONFIG_FILE;

/// The directory that holds definitions of workers.
const WORKERS: &str = "workers";

/// Directories that hold no definitions, however many they are.
const PASSED_OVER: [&str; 2] = [".git", "node_modules"];

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
    /// before. Where watching is not possible, that is said and the rescan remains. `home` is the
    /// directory whose skills count.
    pub(super) fn start(
        workspace: &Path,
        home: Option<PathBuf>,
        hints: mpsc::Sender<()>,
    ) -> DefinitionsWatch {
        let workspace = workspace.to_owned();
        let task = tokio::spawn(async move {
            if let Err(error) = listen(&workspace, home, hints).await {
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

async fn listen(
    workspace: &Path,
    home: Option<PathBuf>,
    hints: mpsc::Sender<()>,
) -> io::Result<()> {
    let inotify = Inotify::init()?;
    let mut tree = Tree::watch(workspace, home, inotify.watches())?;
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

/// A directory that is watched.
#[derive(Debug, Default)]
struct Watched {
    path: PathBuf,
    /// Whether everything in it counts.
    whole: bool,
    /// What alone counts otherwise.
    names: HashSet<OsString>,
}

/// The directories that are watched: those that hold definitions with everything below them, and above
/// them those in which they may come to be.
struct Tree {
    watches: Watches,
    workspace: PathBuf,
    home: Option<PathBuf>,
    places: HashMap<WatchDescriptor, Watched>,
}

impl Tree {
    fn watch(workspace: &Path, home: Option<PathBuf>, watches: Watches) -> io::Result<Tree> {
        let mut tree = Tree {
            watches,
            workspace: workspace.to_owned(),
            home,
            places: HashMap::new(),
        };
        tree.look()?;
        Ok(tree)
    }

    /// Watches whatever there is now; what is watched already stays so.
    fn look(&mut self) -> io::Result<()> {
        // Directories, because editors replace files; the workspace itself for `workerctl.yaml`.
        let workspace = self.workspace.clone();
        let watched = self.place(&workspace)?;
        if let Some(watched) = watched {
            watched.names.insert(CONFIG_FILE.into());
        }
        self.towards(&workspace, &workspace.join(WORKERS))?;
        for root in catalog::skill_directories(&workspace, self.home.as_deref()) {
            let home = self.home.clone().filter(|home| root.starts_with(home));
            let base = if root.starts_with(&workspace) {
                workspace.clone()
            } else if let Some(base) = home.or_else(|| root.parent().map(Path::to_owned)) {
                base
            } else {
                continue;
            };
            // What cannot be watched at home must not end the watch of the workspace; a home that the
            // unit hides is nothing to tell.
            let towards = self.towards(&base, &root);
            let told = towards
                .err()
                .filter(|error| error.kind() != io::ErrorKind::PermissionDenied);
            if let Some(error) = told {
                let root = root.display();
                tracing::warn!(%error, %root, "skills are not watched; the rescan every 30 s remains");
            }
        }
        Ok(())
    }

    /// Watches a directory that holds definitions, and those between it and `base`, as far as they are there.
    fn towards(&mut self, base: &Path, goal: &Path) -> io::Result<()> {
        let mut path = base.to_owned();
        for part in goal.strip_prefix(base).into_iter().flatten() {
            let Some(watched) = self.place(&path)? else {
                return Ok(());
            };
            watched.names.insert(part.to_owned());
            path.push(part);
        }
        // A root may be a link to where its skills are kept.
        self.add(goal.canonicalize().unwrap_or_else(|_| goal.to_owned()))
    }

    /// Watches one directory; `None` where there is none.
    fn place(&mut self, path: &Path) -> io::Result<Option<&mut Watched>> {
        match self.watches.add(path, mask()) {
            Ok(descriptor) => Ok(Some(self.places.entry(descriptor).or_insert_with(|| {
                Watched {
                    path: path.to_owned(),
                    ..Watched::default()
                }
            }))),
            Err(error) if is_no_directory(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Watches a directory and all below it; what is gone or no directory is passed over.
    fn add(&mut self, directory: PathBuf) -> io::Result<()> {
        let mut open = vec![directory];
        while let Some(directory) = open.pop() {
            let Some(watched) = self.place(&directory)? else {
                continue;
            };
            watched.whole = true;
            if self.places.len() >= DIRECTORIES_MAX {
                return Err(io::Error::other(format!(
                    "more than {DIRECTORIES_MAX} directories hold definitions"
                )));
            }
            // Listed after it is watched, so that nothing comes to be in between unseen.
            let entries = std::fs::read_dir(&directory).into_iter().flatten();
            let below = entries.flatten().filter(|entry| {
                let kind = entry.file_type();
                let name = entry.file_name();
                kind.is_ok_and(|kind| kind.is_dir()) && PASSED_OVER.iter().all(|one| name != *one)
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
        let (Some(name), Some(watched)) = (&notice.name, self.places.get(&notice.wd)) else {
            return false;
        };
        let named = watched.names.contains(name);
        if !(watched.whole || named) {
            return false;
        }
        let came = notice.mask.contains(EventMask::ISDIR)
            && notice
                .mask
                .intersects(EventMask::CREATE | EventMask::MOVED_TO);
        let directory = watched.path.join(name);
        let whole = watched.whole && PASSED_OVER.iter().all(|one| name != *one);
        let heard = match (named, came) {
            // Another configuration may name other roots.
            (true, _) => self.look(),
            (false, true) if whole => self.add(directory),
            (false, _) => Ok(()),
        };
        if let Err(error) = heard {
            tracing::warn!(%error, "a new directory is not watched; the rescan every 30 s remains");
        }
        true
    }
}

/// Changes only: reading is none, above all not our own.
pub(super) fn mask() -> WatchMask {
    WatchMask::CREATE
        | WatchMask::DELETE
        | WatchMask::CLOSE_WRITE
        | WatchMask::MOVED_FROM
        | WatchMask::MOVED_TO
        | WatchMask::ATTRIB
        | WatchMask::ONLYDIR
        | WatchMask::DONT_FOLLOW
}

/// There is no directory of that name.
pub(super) fn is_no_directory(error: &io::Error) -> bool {
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
        let _watch = DefinitionsWatch::start(root.path(), None, sender);
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
    async fn skills_are_watched_in_the_workspace_and_at_home_wherever_they_come_to_be() {
        let root = tempfile::tempdir().unwrap();
        let home = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let (sender, mut hints) = mpsc::channel(1);
        let at_home = Some(home.path().to_owned());
        let _watch = DefinitionsWatch::start(root.path(), at_home, sender);
        hinted(&mut hints).await;
        for (base, path) in [
            (root.path(), "workspace/skills/a"),
            (root.path(), ".claude/skills/a"),
            (home.path(), ".agents/skills/a"),
        ] {
            let skill = base.join(path);
            noticed(&mut hints, || fs::create_dir_all(&skill).unwrap()).await;
            let file = skill.join("SKILL.md");
            noticed(&mut hints, || fs::write(&file, "x").unwrap()).await;
            noticed(&mut hints, || fs::write(&file, "y").unwrap()).await;
            noticed(&mut hints, || fs::remove_file(&file).unwrap()).await;
        }
        // A root that is a link, and one that the configuration names later.
        fs::create_dir(home.path().join(".claude")).unwrap();
        let link = home.path().join(".claude/skills");
        noticed(&mut hints, || {
            std::os::unix::fs::symlink(elsewhere.path(), link).unwrap();
        })
        .await;
        let file = elsewhere.path().join("x");
        noticed(&mut hints, || fs::write(&file, "x").unwrap()).await;
        let named = tempfile::tempdir().unwrap();
        let text = format!("skills: {{roots: ['{}']}}\n", named.path().display());
        noticed(&mut hints, || {
            fs::write(root.path().join(CONFIG_FILE), text).unwrap();
        })
        .await;
        // The configuration is read while the hint is on its way.
        let file = named.path().join("x");
        noticed(&mut hints, || fs::write(&file, "x").unwrap()).await;
    }

    #[tokio::test]
    async fn reading_and_what_lies_elsewhere_is_no_change() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("workers/w/worker.yaml");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "x").unwrap();
        let inotify = Inotify::init().unwrap();
        let mut tree = Tree::watch(root.path(), None, inotify.watches()).unwrap();
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
