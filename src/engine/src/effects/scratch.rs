//! Directories for temporary files: each run has one of its own while it needs it.

use std::collections::HashSet;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use super::lock;
use crate::model::RunId;

/// Permission bits of every such directory.
const MODE: u32 = 0o700;

/// How many empty ones are kept for runs to come.
const SPARE_MAX: usize = 64;

/// The runs' directories for temporary files, below the state directory. One that comes back empty
/// serves a later run under that run's name: renaming costs a third of removing and making.
pub(super) struct Scratch {
    root: PathBuf,
    places: Mutex<ScratchDirs>,
}

#[derive(Default)]
struct ScratchDirs {
    held: HashSet<RunId>,
    /// Runs with processes that could not be ended.
    retired: HashSet<RunId>,
    spare: Vec<PathBuf>,
}

impl Scratch {
    /// Nothing is made yet.
    pub(super) fn new(state_dir: &Path) -> Scratch {
        Scratch {
            root: state_dir.join("scratch"),
            places: Mutex::default(),
        }
    }

    /// The directory of a run; made when it is first asked for.
    pub(super) fn of(&self, run: RunId) -> Result<PathBuf, String> {
        let path = self.root.join(run.to_string());
        if !self.places().held.insert(run) {
            return Ok(path);
        }
        let spare = self.places().spare.pop();
        // The run may have one already, from an engine that was lost; a rename would take its files.
        if let Some(spare) = spare {
            if !path.exists() && fs::rename(&spare, &path).is_ok() {
                return Ok(path);
            }
            let _ = fs::remove_dir(&spare);
        }
        match make(&path) {
            Ok(()) => Ok(path),
            Err(error) => {
                self.places().held.remove(&run);
                Err(format!("cannot make `{}`: {error}", path.display()))
            }
        }
    }

    /// Empties the directory of a run before an attempt that starts anew: what an earlier one left there, such as a
    /// half-written download, must not become part of its result.
    pub(super) fn empty(&self, run: RunId) -> Result<(), String> {
        let path = self.root.join(run.to_string());
        if is_as_made(&path) {
            return Ok(());
        }
        remove(&path)
            .and_then(|()| make(&path))
            .map_err(|error| format!("cannot empty `{}`: {error}", path.display()))
    }

    /// Keeps later runs from using the directory of this run, because processes that could not be ended may still
    /// write to it.
    pub(super) fn retire(&self, run: RunId) {
        self.places().retired.insert(run);
    }

    /// The run has ended and needs its directory no more.
    pub(super) fn give_back(&self, run: RunId) {
        let path = self.root.join(run.to_string());
        let is_reusable = {
            let mut places = self.places();
            let retired = places.retired.remove(&run);
            places.held.remove(&run) && !retired
        };
        if is_reusable && is_as_made(&path) {
            let mut places = self.places();
            if places.spare.len() < SPARE_MAX {
                places.spare.push(path);
                return;
            }
        }
        let _ = remove(&path);
    }

    fn places(&self) -> MutexGuard<'_, ScratchDirs> {
        lock(&self.places)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let spare = std::mem::take(&mut self.places().spare);
        for path in spare {
            let _ = fs::remove_dir(path);
        }
    }
}

/// Removes a directory with everything in it. Directories without write permission, such as Go's module cache, are
/// made writable on the way.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            make_writable(path)?;
            fs::remove_dir_all(path)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn make_writable(directory: &Path) -> io::Result<()> {
    fs::set_permissions(directory, fs::Permissions::from_mode(MODE))?;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            make_writable(&entry.path())?;
        }
    }
    Ok(())
}

fn make(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(MODE).create(path)?;
    if fs::symlink_metadata(path)?.is_dir() {
        Ok(())
    } else {
        Err(io::Error::other("it is a link"))
    }
}

/// Whether a directory is empty and nobody changed whose it is or who may use it.
fn is_as_made(path: &Path) -> bool {
    let found = fs::symlink_metadata(path);
    let ours = found.is_ok_and(|found| {
        found.is_dir()
            && found.mode() & 0o7777 == MODE
            && found.uid() == rustix::process::geteuid().as_raw()
    });
    ours && fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Timestamp;

    fn run(number: u128) -> RunId {
        RunId::following(None, Timestamp::from_millis(1_795_000_000_000), number)
    }

    fn entries(root: &Path) -> usize {
        fs::read_dir(root.join("scratch")).unwrap().count()
    }

    #[test]
    fn an_empty_directory_serves_the_next_run_and_nothing_of_the_last_is_in_it() {
        let root = xtest::tempdir();
        let scratch = Scratch::new(root.path());
        let first = scratch.of(run(1)).unwrap();
        assert_eq!(scratch.of(run(1)).unwrap(), first);
        scratch.give_back(run(1));
        let second = scratch.of(run(2)).unwrap();
        assert!(!first.exists() && second.is_dir());
        assert_eq!(entries(root.path()), 1);
        fs::write(second.join("left"), "x").unwrap();
        scratch.give_back(run(2));
        assert_eq!(entries(root.path()), 0);
        assert_eq!(
            fs::read_dir(scratch.of(run(3)).unwrap()).unwrap().count(),
            0
        );
    }

    #[test]
    fn nothing_is_left_when_the_engine_ends() {
        let root = xtest::tempdir();
        let scratch = Scratch::new(root.path());
        scratch.of(run(1)).unwrap();
        scratch.give_back(run(1));
        drop(scratch);
        assert_eq!(entries(root.path()), 0);
    }

    #[test]
    fn what_a_lost_engine_left_to_a_run_stays_with_it() {
        let root = xtest::tempdir();
        let scratch = Scratch::new(root.path());
        scratch.of(run(1)).unwrap();
        scratch.give_back(run(1));
        let kept = root.path().join("scratch").join(run(2).to_string());
        fs::create_dir(&kept).unwrap();
        fs::write(kept.join("half"), "x").unwrap();
        assert!(scratch.of(run(2)).unwrap().join("half").exists());
    }

    #[test]
    fn a_directory_that_was_opened_to_others_or_replaced_is_not_used_again() {
        let root = xtest::tempdir();
        let scratch = Scratch::new(root.path());
        let opened = scratch.of(run(1)).unwrap();
        fs::set_permissions(&opened, fs::Permissions::from_mode(0o777)).unwrap();
        scratch.give_back(run(1));
        assert!(!opened.exists());
        let replaced = scratch.of(run(2)).unwrap();
        fs::remove_dir(&replaced).unwrap();
        std::os::unix::fs::symlink(root.path(), &replaced).unwrap();
        scratch.give_back(run(2));
        assert!(root.path().is_dir() && !scratch.of(run(3)).unwrap().is_symlink());
    }
}
