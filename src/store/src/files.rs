//! Files that are there whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::OFlags;

/// What a written file survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The end of this process: readers see the old file or the new one.
    Process,
    /// Power loss too: file and directory are synced.
    Power,
}

/// A file or directory that could not be written, read or removed.
#[derive(Debug, thiserror::Error)]
#[error("`{path}` could not be read or written")]
pub struct FileError {
    /// Which.
    pub path: PathBuf,
    /// Why.
    #[source]
    pub source: io::Error,
}

impl FileError {
    /// Whether there was no space.
    pub fn is_full(&self) -> bool {
        is_full(&self.source)
    }

    pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> FileError + '_ {
        move |source| FileError {
            path: path.to_owned(),
            source,
        }
    }
}

/// Whether an error means that there was no space: a full disk or a used-up quota.
pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// Replaces the file at `path` by `bytes` with permission bits `mode`: written under another name in
/// the same directory and renamed, so that no reader ever sees a part of it. The other name is
/// removed when anything fails. Answers how many calls synced something.
pub fn write_atomically(
    path: &Path,
    bytes: &[u8],
    mode: u32,
    durability: Durability,
) -> Result<u64, FileError> {
    let directory = parent(path);
    replace(path, bytes, mode, durability)?;
    match durability {
        Durability::Process => Ok(0),
        Durability::Power => {
            sync_directory(directory)?;
            Ok(2)
        }
    }
}

/// As [`write_atomically`], but the directory is left for the caller to sync.
pub(super) fn replace(
    path: &Path,
    bytes: &[u8],
    mode: u32,
    durability: Durability,
) -> Result<(), FileError> {
    replace_by(&temporary_beside(path), path, bytes, mode, durability)
}

fn replace_by(
    temporary: &Path,
    path: &Path,
    bytes: &[u8],
    mode: u32,
    durability: Durability,
) -> Result<(), FileError> {
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(temporary)
        .map_err(FileError::at(temporary))?;
    let written = fill(file, bytes, durability)
        .map_err(FileError::at(temporary))
        .and_then(|()| fs::rename(temporary, path).map_err(FileError::at(path)));
    if written.is_err() {
        // What failed is reported; what is left of it may stay if even this fails.
        let _ = fs::remove_file(temporary);
    }
    written
}

fn fill(mut file: File, bytes: &[u8], durability: Durability) -> io::Result<()> {
    file.write_all(bytes)?;
    if durability == Durability::Power {
        file.sync_all()?;
    }
    Ok(())
}

/// Opens a file of ours for reading: at once, whatever somebody put in its place, and only a regular file.
/// A link is not followed.
pub(super) fn open_regular(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(SAFELY.bits().cast_signed())
        .open(path)?;
    must_be_regular(file)
}

/// Opens a directory of ours; a link to one is not followed.
pub(super) fn open_directory(path: &Path) -> io::Result<File> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW;
    OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
}

/// How a file of ours is opened: a link is not followed, a pipe is not waited for.
pub(super) const SAFELY: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK);

/// Refuses an open file that is no regular one.
pub(super) fn must_be_regular(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(not_regular())
    }
}

/// What stands there is a directory, a pipe or a device.
pub(super) fn not_regular() -> io::Error {
    io::Error::other("it is not a regular file; move it away")
}

/// The end of a name that a file has only while it is written.
pub(super) const TEMPORARY_SUFFIX: &str = ".tmp";

/// Tells this process from earlier ones with its pid: in a container that is the same at every start.
static MARK: LazyLock<String> = LazyLock::new(|| {
    // The keys of the hasher stem from the operating system's source of randomness.
    format!("{:016x}", RandomState::new().hash_one(std::process::id()))
});

fn temporary_beside(path: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let (pid, mark) = (std::process::id(), MARK.as_str());
    parent(path).join(format!(".{name}.{pid}-{mark}-{count}{TEMPORARY_SUFFIX}"))
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// Makes the names in a directory durable.
pub(super) fn sync_directory(path: &Path) -> Result<(), FileError> {
    File::open(path)
        .and_then(|directory| directory.sync_all())
        .map_err(FileError::at(path))
}

/// Creates a directory with mode 0700 unless it is there; answers whether it was created. A link to one is refused.
pub(super) fn create_private_directory(path: &Path) -> Result<bool, FileError> {
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && is_real_directory(path) => {
            Ok(false)
        }
        Err(error) => Err(FileError::at(path)(error)),
    }
}

fn is_real_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

/// Removes a file if it is there; answers whether it was.
pub(super) fn remove_if_there(path: &Path) -> Result<bool, FileError> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(FileError::at(path)(error)),
    }
}

/// Calls `visit` with the path and the length of each file below a directory, two levels deep.
pub(super) fn each_file(
    directory: &Path,
    visit: &mut dyn FnMut(&Path, u64),
) -> Result<(), FileError> {
    fn walk(
        directory: &Path,
        levels: u32,
        visit: &mut dyn FnMut(&Path, u64),
    ) -> Result<(), FileError> {
        let entries = match fs::read_dir(directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(FileError::at(directory)(error)),
        };
        for entry in entries {
            let entry = entry.map_err(FileError::at(directory))?;
            let path = entry.path();
            let found = match fs::symlink_metadata(&path) {
                Ok(found) => found,
                // It went away while the directory was read.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(FileError::at(&path)(error)),
            };
            if found.is_dir() && levels > 0 {
                walk(&path, levels - 1, visit)?;
            } else if !found.is_dir() {
                visit(&path, found.len());
            }
        }
        Ok(())
    }
    walk(directory, 1, visit)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_leaves_nothing_beside_it() {
        let dir = xtest::tempdir();
        let path = dir.path().join("a.json");
        assert_eq!(
            write_atomically(&path, b"one", 0o600, Durability::Power).unwrap(),
            2
        );
        assert_eq!(
            write_atomically(&path, b"two", 0o600, Durability::Process).unwrap(),
            0
        );
        assert_eq!(fs::read(&path).unwrap(), b"two");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_an_earlier_process_left_neither_stands_in_the_way_nor_is_removed() {
        let dir = xtest::tempdir();
        let path = dir.path().join("a.json");
        let pid = std::process::id();
        let left: Vec<_> = (0..2_000)
            .map(|n| {
                dir.path()
                    .join(format!(".a.json.{pid}-{n}{TEMPORARY_SUFFIX}"))
            })
            .collect();
        for left in &left {
            fs::write(left, "left").unwrap();
        }
        write_atomically(&path, b"one", 0o600, Durability::Process).unwrap();
        let refused = replace_by(&left[0], &path, b"two", 0o600, Durability::Process);
        assert_eq!(refused.unwrap_err().path, left[0]);
        assert_eq!(fs::read(&left[0]).unwrap(), b"left");
        assert_eq!(fs::read(&path).unwrap(), b"one");
    }

    #[test]
    fn a_failed_replacement_changes_nothing() {
        let dir = xtest::tempdir();
        let path = dir.path().join("taken");
        fs::create_dir(&path).unwrap();
        fs::write(path.join("x"), "").unwrap();
        let error = write_atomically(&path, b"x", 0o600, Durability::Power).unwrap_err();
        assert_eq!(error.path, path);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
