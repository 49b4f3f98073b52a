//! Programs in the directories of `PATH` that a repository can contain, or whose interpreter it can contain.

use std::collections::BTreeMap;
use std::fs::{self, DirEntry, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Directories of the system, which contain no repository.
const SYSTEM: [&str; 4] = ["/usr", "/bin", "/sbin", "/lib"];

/// Programs outside of the system's directories, by the directory of `PATH` that they are in.
///
/// A directory is read again only after its entries have changed: there are thousands of entries, and each result is
/// compared with them.
static PROGRAMS: Mutex<BTreeMap<PathBuf, (Stamp, Vec<PathBuf>)>> = Mutex::new(BTreeMap::new());

/// Device, inode, and time of the last change of its entries.
type Stamp = (u64, u64, i64, i64);

/// Returns the links in a directory that lead out of the system's directories, or nowhere, and its files unless it is one
/// of the system's directories.
pub(super) fn in_directory(directory: &Path) -> Vec<PathBuf> {
    let Ok(now) = fs::metadata(directory).map(|found| stamp(&found)) else {
        return Vec::new();
    };
    let known = || PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((stamp, programs)) = known().get(directory)
        && *stamp == now
    {
        return programs.clone();
    }
    let is_of_system = |path: &Path| SYSTEM.iter().any(|above| path.starts_with(above));
    let has_files = !is_of_system(directory);
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let is_program = |entry: &DirEntry| {
        let kind = entry.file_type();
        kind.is_ok_and(|kind| kind.is_symlink() || has_files && kind.is_file())
    };
    let programs = entries.filter(is_program).map(|entry| entry.path());
    // Most links of a system's directory lead to another entry of it, which has its own place in the list.
    let is_alias = |program: &PathBuf| {
        let target = fs::read_link(program).unwrap_or_default();
        let mut parts = target.components();
        let is_name = matches!(
            (parts.next(), parts.next()),
            (Some(Component::Normal(_)), None)
        );
        !has_files && is_name
    };
    let is_outside = |program: &PathBuf| {
        !is_alias(program) && !program.canonicalize().is_ok_and(|real| is_of_system(&real))
    };
    let programs: Vec<PathBuf> = programs.filter(is_outside).collect();
    known().insert(directory.to_owned(), (now, programs.clone()));
    programs
}

fn stamp(found: &Metadata) -> Stamp {
    (found.dev(), found.ino(), found.mtime(), found.mtime_nsec())
}
