//! Hints that definitions have changed. Only hints: the truth is what a look at the files finds, and whoever
//! is hinted at nothing looks from time to time anyway.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use inotify::{EventMask, EventOwned, Inotify, WatchDescriptor, WatchMask, Watches};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

use super::walk::WORKERS_DIR;
use super::{config_file, open, roots};
use crate::model::Scope;
use crate::model::config::CONFIG_FILE;

/// Directories that hold no definitions, however many they are.
const PASSED_OVER: [&str; 2] = [".git", "node_modules"];

/// Bytes of notices that are taken at once.
const BUFFER_BYTES: usize = 16 * 1024;

/// Most directories that are watched.
const DIRECTORIES_MAX: usize = 65_536;

/// Levels below a directory of definitions that are watched: as deep as a definition may lie.
const DEPTH_MAX: usize = super::DEPTH_MAX + 3;

/// Watches the definitions of a workspace as long as it lives, on a thread of its own.
pub struct Watch {
    stop: Arc<OwnedFd>,
}

impl Watch {
    /// Calls `hint` for each change, and once when everything is watched: something may have changed
    /// before. Where watching is not possible, that is logged and nothing is hinted at. `home` is the
    /// directory whose skills count.
    pub fn start(
        workspace: &Path,
        home: Option<PathBuf>,
        hint: impl Fn() + Send + 'static,
    ) -> io::Result<Watch> {
        let workspace = workspace.to_owned();
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let stopped = Arc::clone(&stop);
        let watching = move || {
            if let Err(error) = listen(&workspace, home, &stopped, &hint) {
                tracing::warn!(%error, "definitions are not watched; changes are found by the next look");
            }
        };
        std::thread::Builder::new()
            .name("watch".to_owned())
            .spawn(watching)?;
        Ok(Watch { stop })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // Its thread is not waited for: a file system may keep it for long.
        let _ = rustix::io::write(&self.stop, &1_u64.to_ne_bytes());
    }
}

/// Hands hints on until it is told to stop.
fn listen(
    workspace: &Path,
    home: Option<PathBuf>,
    stop: &OwnedFd,
    hint: &dyn Fn(),
) -> io::Result<()> {
    let mut inotify = Inotify::init()?;
    let mut tree = Tree::watch(workspace, home, inotify.watches());
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut changed = true;
    loop {
        if changed {
            hint();
        }
        if is_stopped(&inotify, stop)? {
            return Ok(());
        }
        changed = false;
        match inotify.read_events(&mut buffer) {
            // Each of them is taken in: new directories among them are to be watched.
            Ok(notices) => notices.for_each(|notice| changed |= tree.receive(&notice.to_owned())),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

/// Waits for a notice, or for the word to stop.
fn is_stopped(inotify: &Inotify, stop: &OwnedFd) -> io::Result<bool> {
    let mut waiting = [
        PollFd::from_borrowed_fd(inotify.as_fd(), PollFlags::IN),
        PollFd::new(stop, PollFlags::IN),
    ];
    match poll(&mut waiting, None) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(!waiting[1].revents().is_empty()),
        Err(errno) => Err(errno.into()),
    }
}

/// A directory that is watched.
#[derive(Debug, Default)]
struct Watched {
    path: PathBuf,
    /// Everything in it counts, and so many levels below; `None`: only what is named.
    levels: Option<usize>,
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
    fn watch(workspace: &Path, home: Option<PathBuf>, watches: Watches) -> Tree {
        let mut tree = Tree {
            watches,
            workspace: real(workspace),
            home,
            places: HashMap::new(),
        };
        tree.look();
        tree
    }

    /// Watches whatever there is now; what is watched already stays so. What cannot be watched keeps nothing
    /// else from it.
    fn look(&mut self) {
        let workspace = self.workspace.clone();
        // Directories, because editors replace files; the workspace itself for `workerctl.yaml`.
        let configuration = self.place(&workspace).map(|watched| {
            if let Some(watched) = watched {
                watched.names.insert(CONFIG_FILE.into());
            }
        });
        tell(&workspace, configuration);
        let workers = workspace.join(WORKERS_DIR);
        let watched = self.towards(&workspace, &workers);
        tell(&workers, watched);
        for (goal, is_own) in self.roots() {
            let home = self.home.clone().filter(|home| goal.starts_with(home));
            let base = if goal.starts_with(&workspace) {
                Some(workspace.clone())
            } else {
                home.or_else(|| {
                    goal.ancestors()
                        .skip(1)
                        .find(|one| one.is_dir())
                        .map(Path::to_owned)
                })
            };
            let watched = base.map_or(Ok(()), |base| {
                // A link out of the workspace is not read, and may lead to anything.
                if is_own || real(&goal).starts_with(&workspace) {
                    self.towards(&base, &goal)
                } else {
                    self.path_towards(&base, &goal).map(drop)
                }
            });
            tell(&goal, watched);
        }
    }

    /// The directories of skills that belong to no worker, whether they are there or not; and whether they
    /// may lie out of the workspace.
    fn roots(&self) -> Vec<(PathBuf, bool)> {
        let Ok(root) = open::Root::open(&self.workspace) else {
            return Vec::new();
        };
        let (config, _) = config_file::read(&root);
        roots::order::in_order(&self.workspace, &config.skills, self.home.as_deref())
            .iter()
            .map(|root| {
                let is_own = matches!(root.scope, Scope::Personal | Scope::Extra);
                (root.directory.clone(), is_own)
            })
            .collect()
    }

    /// Watches a directory that holds definitions, and those between it and `base`, as far as they are there.
    fn towards(&mut self, base: &Path, goal: &Path) -> io::Result<()> {
        if self.path_towards(base, goal)? {
            self.add(real(goal), DEPTH_MAX)?;
        }
        Ok(())
    }

    /// Watches the directories between a place and `base` for the next one of them; false: one is not there.
    fn path_towards(&mut self, base: &Path, goal: &Path) -> io::Result<bool> {
        let mut path = base.to_owned();
        for part in goal.strip_prefix(base).into_iter().flatten() {
            // Any of them may be a link to where its content is kept.
            let Some(watched) = self.place(&real(&path))? else {
                return Ok(false);
            };
            watched.names.insert(part.to_owned());
            path.push(part);
        }
        Ok(true)
    }

    /// Watches one directory; `None` where there is none.
    fn place(&mut self, path: &Path) -> io::Result<Option<&mut Watched>> {
        let descriptor = match self.watches.add(path, changes()) {
            Ok(descriptor) => descriptor,
            Err(error) if is_no_directory(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let watched = self.places.entry(descriptor).or_default();
        // It may have been moved since it was watched.
        if watched.path != path {
            path.clone_into(&mut watched.path);
        }
        Ok(Some(watched))
    }

    /// Watches a directory and what is below it, so many levels; what is gone or no directory is passed over.
    fn add(&mut self, directory: PathBuf, levels: usize) -> io::Result<()> {
        let mut open = vec![(directory, levels)];
        while let Some((directory, levels)) = open.pop() {
            let Some(watched) = self.place(&directory)? else {
                continue;
            };
            watched.levels = watched.levels.max(Some(levels));
            if self.places.len() >= DIRECTORIES_MAX {
                return Err(io::Error::other(format!(
                    "more than {DIRECTORIES_MAX} directories hold definitions"
                )));
            }
            let Some(below) = levels.checked_sub(1) else {
                continue;
            };
            // Listed after it is watched, so that nothing comes to be in between unseen.
            let entries = std::fs::read_dir(&directory).into_iter().flatten();
            let directories = entries.flatten().filter(|entry| {
                let kind = entry.file_type();
                let name = entry.file_name();
                kind.is_ok_and(|kind| kind.is_dir()) && PASSED_OVER.iter().all(|one| name != *one)
            });
            open.extend(directories.map(|entry| (entry.path(), below)));
        }
        Ok(())
    }

    /// Takes a notice in; whether definitions may have changed.
    fn receive(&mut self, notice: &EventOwned) -> bool {
        if notice.mask.contains(EventMask::Q_OVERFLOW) {
            // Directories may have come to be unseen.
            self.look();
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
        if !named && watched.levels.is_none() {
            return false;
        }
        let came = notice.mask.contains(EventMask::ISDIR)
            && notice
                .mask
                .intersects(EventMask::CREATE | EventMask::MOVED_TO);
        let below = watched.levels.and_then(|levels| levels.checked_sub(1));
        if named {
            // Another configuration may name other roots.
            self.look();
        } else if let Some(levels) = below
            && came
            && PASSED_OVER.iter().all(|one| name != *one)
        {
            let directory = watched.path.join(name);
            let watched = self.add(directory.clone(), levels);
            tell(&directory, watched);
        }
        true
    }
}

/// Where a path leads; itself where that is not known.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Logs what is not watched. A home that the unit hides is nothing to tell.
fn tell(place: &Path, watched: io::Result<()>) {
    if let Err(error) = watched
        && error.kind() != io::ErrorKind::PermissionDenied
    {
        let place = place.display();
        tracing::warn!(%error, %place, "definitions are not watched there; changes are found by the next look");
    }
}

/// Changes only: reading is none, above all not our own.
pub fn changes() -> WatchMask {
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
pub fn is_no_directory(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::sync::mpsc::{Receiver, channel};
    use std::time::Duration;

    use super::*;

    const LONG: Duration = Duration::from_mins(1);

    /// A watch whose first hint has come.
    fn watched(workspace: &Path, home: Option<&Path>) -> (Watch, Receiver<()>) {
        let (sender, hints) = channel();
        let hint = move || {
            let _ = sender.send(());
        };
        let watch = Watch::start(workspace, home.map(Path::to_owned), hint).unwrap();
        hints.recv_timeout(LONG).unwrap();
        (watch, hints)
    }

    /// What `change` does is hinted at; nothing that was received before counts.
    fn noticed(hints: &Receiver<()>, change: impl FnOnce()) {
        while hints.try_recv().is_ok() {}
        change();
        hints.recv_timeout(LONG).unwrap();
    }

    #[test]
    fn changes_are_noticed_wherever_definitions_may_come_to_stand() {
        let root = tempfile::tempdir().unwrap();
        let (_watch, hints) = watched(root.path(), None);
        let path = |relative: &str| root.path().join(relative);
        noticed(&hints, || fs::create_dir(path("workers")).unwrap());
        let deep = path("workers/w/skills");
        noticed(&hints, || fs::create_dir_all(&deep).unwrap());
        noticed(&hints, || fs::write(deep.join("s.md"), "x").unwrap());
        noticed(&hints, || fs::remove_file(deep.join("s.md")).unwrap());
        noticed(&hints, || fs::write(path(CONFIG_FILE), "x").unwrap());
        let elsewhere = path("made");
        fs::create_dir(&elsewhere).unwrap();
        noticed(&hints, || {
            fs::rename(&elsewhere, path("workers/moved")).unwrap();
        });
        noticed(&hints, || {
            fs::write(path("workers/moved/worker.yaml"), "x").unwrap();
        });
        // Below a directory that was moved, directories are known by where they are now.
        noticed(&hints, || {
            fs::rename(path("workers/moved"), path("workers/again")).unwrap();
        });
        noticed(&hints, || {
            fs::create_dir(path("workers/again/below")).unwrap();
        });
        noticed(&hints, || {
            fs::write(path("workers/again/below/x.md"), "x").unwrap();
        });
    }

    #[test]
    fn skills_are_watched_in_the_workspace_and_at_home_wherever_they_come_to_be() {
        let root = tempfile::tempdir().unwrap();
        let home = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let (_watch, hints) = watched(root.path(), Some(home.path()));
        for (base, path) in [
            (root.path(), "workspace/skills/a"),
            (root.path(), ".claude/skills/a"),
            (home.path(), ".agents/skills/a"),
        ] {
            let skill = base.join(path);
            noticed(&hints, || fs::create_dir_all(&skill).unwrap());
            let file = skill.join("SKILL.md");
            noticed(&hints, || fs::write(&file, "x").unwrap());
            noticed(&hints, || fs::write(&file, "y").unwrap());
            noticed(&hints, || fs::remove_file(&file).unwrap());
        }
        // A root that is a link, one below a link, and one that the configuration names later.
        fs::create_dir(home.path().join(".claude")).unwrap();
        let link = home.path().join(".claude/skills");
        noticed(&hints, || symlink(elsewhere.path(), link).unwrap());
        noticed(&hints, || {
            fs::write(elsewhere.path().join("x"), "x").unwrap();
        });
        let kept = elsewhere.path().join("kept");
        fs::create_dir_all(kept.join("skills")).unwrap();
        noticed(&hints, || {
            symlink(&kept, home.path().join(".wave")).unwrap();
        });
        noticed(&hints, || fs::write(kept.join("skills/x"), "x").unwrap());
        let named = tempfile::tempdir().unwrap();
        let named = named.path().join("not/there/yet");
        let text = format!("skills: {{roots: ['{}']}}\n", named.display());
        noticed(&hints, || {
            fs::write(root.path().join(CONFIG_FILE), text).unwrap();
        });
        noticed(&hints, || fs::create_dir_all(&named).unwrap());
        noticed(&hints, || fs::write(named.join("x"), "x").unwrap());
    }

    /// What of the changes made by `change` is taken for a change of definitions.
    fn received(tree: &mut Tree, inotify: &mut Inotify, last: &str) -> usize {
        let mut buffer = vec![0; BUFFER_BYTES];
        let mut received = 0;
        loop {
            let notices: Vec<EventOwned> = inotify
                .read_events_blocking(&mut buffer)
                .unwrap()
                .map(|notice| notice.to_owned())
                .collect();
            for notice in notices {
                received += usize::from(tree.receive(&notice));
                if notice.name.is_some_and(|name| name == last) {
                    return received;
                }
            }
        }
    }

    #[test]
    fn reading_and_what_lies_elsewhere_is_no_change() {
        let root = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let file = root.path().join("workers/w/worker.yaml");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "x").unwrap();
        // A root of the workspace that leads out of it is not read either.
        fs::create_dir(root.path().join(".claude")).unwrap();
        symlink(outside.path(), root.path().join(".claude/skills")).unwrap();
        let mut inotify = Inotify::init().unwrap();
        let mut tree = Tree::watch(root.path(), None, inotify.watches());
        fs::read(&file).unwrap();
        fs::read_dir(root.path().join("workers")).unwrap().count();
        fs::write(outside.path().join("x"), "x").unwrap();
        fs::write(root.path().join("other"), "x").unwrap();
        fs::write(root.path().join("last"), "x").unwrap();
        assert_eq!(received(&mut tree, &mut inotify, "last"), 0);
    }

    #[test]
    fn a_watch_that_is_dropped_ends() {
        let root = tempfile::tempdir().unwrap();
        let (watch, hints) = watched(root.path(), None);
        drop(watch);
        fs::write(root.path().join(CONFIG_FILE), "x").unwrap();
        assert!(hints.recv().is_err(), "its thread is gone with its sender");
    }
}
