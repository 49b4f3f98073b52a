//! Hints that definitions have changed. Only hints: the truth is what a look at the files finds, and whoever
//! is hinted at nothing looks from time to time anyway.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use inotify::{EventMask, EventOwned, Inotify, WatchDescriptor, WatchMask, Watches};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

use super::{config_file, open, roots};
use crate::model::config::CONFIG_FILE;
use crate::model::worker_paths::ANY_DIRECTORY;
use crate::model::{Config, Scope};

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
    /// Whether whatever comes or goes may be a directory on the way to definitions.
    any_name: bool,
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
        let Some(config) = self.config() else {
            return;
        };
        for pattern in config.workers.patterns() {
            let watched = self.workers(pattern);
            tell(&workspace.join(pattern), watched);
        }
        for registry in config.workers.registries() {
            let registry = workspace.join(registry);
            let watched = self.paths_towards(&workspace, &registry).map(drop);
            tell(&registry, watched);
        }
        for (goal, is_own) in self.roots(&config) {
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
                    self.paths_towards(&base, &goal).map(drop)
                }
            });
            tell(&goal, watched);
        }
    }

    /// Watches the directories that a path of workers leads to; a link out of the workspace is not read.
    fn workers(&mut self, pattern: &str) -> io::Result<()> {
        let workspace = self.workspace.clone();
        let found = self.paths_towards(&workspace, &workspace.join(pattern))?;
        let found = found.iter().map(|path| real(path));
        for directory in found.filter(|path| path.starts_with(&workspace)) {
            self.add(directory, DEPTH_MAX)?;
        }
        Ok(())
    }

    fn config(&self) -> Option<Config> {
        let root = open::Root::open(&self.workspace).ok()?;
        Some(config_file::read(&root).0)
    }

    /// The directories of skills that belong to no worker, whether they are there or not; and whether they
    /// may lie out of the workspace.
    fn roots(&self, config: &Config) -> Vec<(PathBuf, bool)> {
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
        for found in self.paths_towards(base, goal)? {
            self.add(real(&found), DEPTH_MAX)?;
        }
        Ok(())
    }

    /// Watches the directories between a place, or all that its `*` stand for, and `base` for the next one of them;
    /// gives the places whose directories are all there.
    fn paths_towards(&mut self, base: &Path, goal: &Path) -> io::Result<Vec<PathBuf>> {
        let mut paths = vec![base.to_owned()];
        for part in goal.strip_prefix(base).into_iter().flatten() {
            let mut next = Vec::new();
            for path in paths {
                // Any of them may be a link to where its content is kept.
                let Some(watched) = self.place(&real(&path))? else {
                    continue;
                };
                if part == ANY_DIRECTORY {
                    watched.any_name = true;
                    // Listed after it is watched, so that nothing comes to be in between unseen.
                    let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
                    let entries = entries.filter(|entry| !is_hidden(&entry.file_name()));
                    next.extend(entries.map(|entry| entry.path()));
                } else {
                    watched.names.insert(part.to_owned());
                    next.push(path.join(part));
                }
            }
            paths = next;
        }
        Ok(paths)
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
        let comes_or_goes =
            EventMask::CREATE | EventMask::DELETE | EventMask::MOVED_TO | EventMask::MOVED_FROM;
        let named = watched.names.contains(name)
            || (watched.any_name && notice.mask.intersects(comes_or_goes));
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

fn is_hidden(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}

/// There is no directory of that name.
pub fn is_no_directory(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

#[cfg(test)]
mod tests;
