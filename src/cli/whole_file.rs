//! Files that are written whole or not at all.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

/// Writes a file, whose directory is made too; nobody sees a part of it. One that is there is replaced, and its permissions
/// stay, only where that is wanted.
///
/// # Errors
/// The system's; `AlreadyExists` where a file is there that is not to be replaced.
pub(crate) fn write_whole(path: &Path, text: &str, replace: bool) -> io::Result<()> {
    write(path, text, replace, false)
}

/// The same for a file of somebody else's program: whose it is stays too.
///
/// # Errors
/// The system's; only root may leave a file to another owner.
pub(crate) fn rewrite_whole(path: &Path, text: &str) -> io::Result<()> {
    write(path, text, true, true)
}

fn write(path: &Path, text: &str, replace: bool, keep_owner: bool) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let aside = Aside(directory.join(format!(".{name}.{}", std::process::id())));
    let mut options = fs::File::options();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o644)
        .open(&aside.0)?;
    file.write_all(text.as_bytes())?;
    if replace && let Ok(before) = fs::metadata(path) {
        let fresh = file.metadata()?;
        let owners = |found: &fs::Metadata| (found.uid(), found.gid());
        if keep_owner && owners(&before) != owners(&fresh) {
            // Before its mode, some of which a change of the owner takes away.
            fchown(&file, Some(before.uid()), Some(before.gid()))?;
        }
        file.set_permissions(before.permissions())?;
    }
    file.sync_all()?;
    if replace {
        fs::rename(&aside.0, path)?;
    } else {
        // A link fails where there is a file, also one that came this moment.
        fs::hard_link(&aside.0, path)?;
    }
    fs::File::open(directory)?.sync_all()
}

/// A file that goes when it has served.
struct Aside(PathBuf);

impl Drop for Aside {
    fn drop(&mut self) {
        // Renamed, it is not there any more.
        let _ = fs::remove_file(&self.0);
    }
}
