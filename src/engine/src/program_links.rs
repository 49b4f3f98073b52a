//! Symbolic links in the directories of `PATH`.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Directories of the system, which contain no repository.
const SYSTEM: [&str; 4] = ["/usr", "/bin", "/sbin", "/lib"];

/// Links that lead out of the system's directories, by the directory of `PATH` that they are in.
///
/// A directory is read again only after its entries have changed: there are thousands of entries, and each result is
/// compared with them.
static LINKS: Mutex<BTreeMap<PathBuf, (Stamp, Vec<PathBuf>)>> = Mutex::new(BTreeMap::new());

/// Device, inode, and time of the last change of its entries.
type Stamp = (u64, u64, i64, i64);

/// Returns the links in a directory that lead out of the system's directories, or nowhere.
pub(super) fn in_directory(directory: &Path) -> Vec<PathBuf> {
    let Ok(now) = fs::metadata(directory).map(|found| stamp(&found)) else {
        return Vec::new();
    };
    let known = || LINKS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((stamp, links)) = known().get(directory)
        && *stamp == now
    {
        return links.clone();
    }
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    let is_outside = |link: &PathBuf| {
        let target = link.canonicalize();
        let is_of_system = |target: PathBuf| SYSTEM.iter().any(|above| target.starts_with(above));
        !target.is_ok_and(is_of_system)
    };
    let links: Vec<PathBuf> = links.map(|link| link.path()).filter(is_outside).collect();
    known().insert(directory.to_owned(), (now, links.clone()));
    links
}

fn stamp(found: &Metadata) -> Stamp {
    (found.dev(), found.ino(), found.mtime(), found.mtime_nsec())
}
