//! Files of a run's object store that git derives from other files, and that the engine must not read.
//!
//! A commit graph states the parents of commits, and the git library believes it without reading the commits. A command
//! can write any such file into the store of its run.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{GitError, io_at};

/// Derived files and directories in `objects/info`.
const IN_INFO: [&str; 2] = ["commit-graph", "commit-graphs"];

/// Removes the commit graphs, multi-pack indexes, bitmaps and reverse indexes of a run's object store.
///
/// Call this after each command and before the repository of the run is opened, because the library maps these files when
/// it opens the store. Symbolic links are removed, never followed.
///
/// # Errors
/// A file cannot be removed, or a directory on the way is a link.
pub fn remove_derived(git_dir: &Path) -> Result<(), GitError> {
    for part in ["", "objects", "objects/info", "objects/pack"] {
        let place = git_dir.join(part);
        match fs::symlink_metadata(&place) {
            Ok(found) if !found.is_dir() => {
                let why = io::Error::new(io::ErrorKind::InvalidData, "it is not a directory");
                return Err(io_at("read the directory", &place)(why));
            }
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                return Err(io_at("read the directory", &place)(e));
            }
            _ => {}
        }
    }
    let info = git_dir.join("objects/info");
    let mut derived: Vec<PathBuf> = IN_INFO.map(|name| info.join(name)).into();
    let packs = git_dir.join("objects/pack");
    match fs::read_dir(&packs) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        listed => {
            for entry in listed.map_err(io_at("list", &packs))? {
                let path = entry.map_err(io_at("list", &packs))?.path();
                if is_derived(&path) {
                    derived.push(path);
                }
            }
        }
    }
    derived.iter().try_for_each(|path| remove(path))
}

fn is_derived(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    let end = path.extension().unwrap_or_default().as_encoded_bytes();
    name.starts_with(b"multi-pack-index") || matches!(end, b"bitmap" | b"rev" | b"mtimes")
}

fn remove(path: &Path) -> Result<(), GitError> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(e) => Err(e),
    };
    match removed {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(io_at("remove", path)(e)),
        _ => Ok(()),
    }
}
