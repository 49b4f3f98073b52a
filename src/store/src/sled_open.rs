//! Opening sled's directory: the lock, and the checks before and after.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::fs::FlockOperation;

use super::files::{
    FileError, create_private_directory, not_regular, open_directory, remove_if_there,
    sync_directory,
};
use super::flushing::FlushGuard;
use super::guard;
use super::sled_error::{broken, corrupt, from_file, from_io, from_sled};
use super::witness::{Said, Witness};
use super::{STORE_VERSION, StoreError};

/// sled's directory within the store's.
pub(super) const DATABASE: &str = "db";
/// sled's file within it.
pub(super) const DATABASE_FILE: &str = "db";
/// Beginning of the name of a damaged store that was moved aside.
pub(super) const ASIDE_PREFIX: &str = "db.corrupt-";

/// A process that was just forked and has not yet become another program holds our locks for an
/// instant; so long is waited for it, in all.
const LOCK_TRIES: u32 = 50;
const LOCK_WAIT: Duration = Duration::from_millis(10);

/// How a store is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenOptions {
    /// Bound of sled's page cache in bytes.
    pub cache_bytes: u64,
    /// Size in bytes of the file that is given back when the disk is full; 0 for none.
    pub reserve_bytes: u64,
    /// Whether a store is created where there is none. One that was moved aside as damaged is never
    /// replaced by an empty one.
    pub create: bool,
}

impl Default for OpenOptions {
    fn default() -> OpenOptions {
        OpenOptions {
            // The system keeps the files' pages anyway, and what sled keeps of many schedules is never needed again.
            cache_bytes: 4 * 1024 * 1024,
            reserve_bytes: 16 * 1024 * 1024,
            create: true,
        }
    }
}

/// sled, and our own handle beside it.
pub(super) struct Open {
    pub(super) database: sled::Db,
    /// Our own handle of sled's file, for syncing.
    pub(super) data: File,
}

/// Takes the lock that keeps a second process out, on the directory itself.
pub(super) fn lock_directory(
    directory: &Path,
    shown: &str,
    create: bool,
) -> Result<File, StoreError> {
    if create && create_private_directory(directory).map_err(|e| from_file(shown, e))? {
        let parent = directory.parent().filter(|parent| *parent != Path::new(""));
        sync_directory(parent.unwrap_or(Path::new("."))).map_err(|e| from_file(shown, e))?;
    }
    let file = open_directory(directory).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => corrupt(shown, "there is no store".to_owned()),
        _ => broken(shown, error),
    })?;
    for _ in 0..LOCK_TRIES {
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(rustix::io::Errno::WOULDBLOCK) => std::thread::sleep(LOCK_WAIT),
            Err(error) => return Err(broken(shown, error.into())),
        }
    }
    Err(StoreError::Busy {
        path: shown.to_owned(),
    })
}

/// Damaged stores that lie aside, oldest first.
pub(super) fn moved_aside(directory: &Path) -> Result<Vec<String>, FileError> {
    let mut aside: Vec<String> = fs::read_dir(directory)
        .map_err(FileError::at(directory))?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with(ASIDE_PREFIX))
        .collect();
    aside.sort();
    Ok(aside)
}

/// Removes a directory of ours with all it holds, if it is there.
pub(super) fn remove_tree(path: &Path) -> Result<(), FileError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(FileError::at(path)(error)),
        _ => Ok(()),
    }
}

/// Opens sled and makes durable what it recovered.
pub(super) fn open_database(
    path: &Path,
    shown: &str,
    options: OpenOptions,
) -> Result<Open, StoreError> {
    let opened = open_raw(path, shown, options)?;
    let flushed = guard::catch_panics(|| FlushGuard::start().flush(&opened.database));
    match flushed {
        Ok(result) => result.map_err(|e| from_sled(shown, e))?,
        Err(panic) => return Err(corrupt(shown, format!("sled: {panic}"))),
    };
    opened.data.sync_data().map_err(|e| from_io(shown, e))?;
    sync_directory(path).map_err(|e| from_file(shown, e))?;
    check_witness(path, shown, &opened)?;
    Ok(opened)
}

/// Compares what sled holds with what the witness says, and renews a witness that says nothing.
fn check_witness(path: &Path, shown: &str, opened: &Open) -> Result<(), StoreError> {
    let directory = path.parent().unwrap_or(path);
    let count = guard::catch_panics(|| opened.database.get(super::keys::COMMITS));
    let count = match count {
        Ok(value) => value.map_err(|e| from_sled(shown, e))?,
        Err(panic) => return Err(corrupt(shown, format!("sled: {panic}"))),
    };
    let held = count.and_then(
        |record| match super::record::open(super::keys::COMMITS, &record) {
            Ok(super::record::Body::Inline(json)) => super::record::from_json::<u64>(json).ok(),
            _ => None,
        },
    );
    let Some(held) = held else {
        return Err(corrupt(
            shown,
            "it does not say how many commits it holds".to_owned(),
        ));
    };
    match Witness::read(directory).map_err(|e| from_file(shown, e))? {
        Said::Commits(durable) if durable > held => Err(corrupt(
            shown,
            format!("{durable} commits were synced to disk, but only {held} are present"),
        )),
        // More than the witness tells is usual: it is written after each sync, and never synced itself.
        Said::Commits(_) => Ok(()),
        Said::Newer(found) => Err(StoreError::Newer {
            path: shown.to_owned(),
            found,
        }),
        Said::Nothing | Said::Damaged => {
            tracing::warn!(
                version = STORE_VERSION,
                "the witness of the store is created again"
            );
            Witness::create(directory, held).map_err(|e| from_file(shown, e))
        }
    }
}

pub(super) fn open_raw(path: &Path, shown: &str, options: OpenOptions) -> Result<Open, StoreError> {
    remove_unfinished_snapshots(path).map_err(|e| from_file(shown, e))?;
    refuse_what_is_no_file(path).map_err(|e| from_file(shown, e))?;
    let config = sled::Config::new()
        .path(path)
        .mode(sled::Mode::LowSpace)
        .cache_capacity(options.cache_bytes)
        .flush_every_ms(None);
    let mut tries = 0;
    let database = loop {
        match guard::catch_panics(|| config.open()) {
            Ok(Ok(database)) => break database,
            Ok(Err(error)) => {
                tries += 1;
                if !is_locked(&error) {
                    return Err(from_sled(shown, error));
                }
                if tries >= LOCK_TRIES {
                    return Err(StoreError::Busy {
                        path: shown.to_owned(),
                    });
                }
                std::thread::sleep(LOCK_WAIT);
            }
            Err(panic) => return Err(corrupt(shown, format!("sled: {panic}"))),
        }
    };
    let data = File::options()
        .read(true)
        .write(true)
        .open(path.join(DATABASE_FILE))
        .map_err(|e| from_io(shown, e))?;
    Ok(Open { database, data })
}

/// sled writes a snapshot as `snap.<position>.generating` and renames it. What an interruption leaves
/// under that name it takes for the newest snapshot, finds damaged, and refuses to open the store; the
/// log holds everything that it could have said.
fn remove_unfinished_snapshots(path: &Path) -> Result<(), FileError> {
    for entry in fs::read_dir(path).map_err(FileError::at(path))? {
        let name = entry.map_err(FileError::at(path))?.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("snap.") && name.ends_with(".generating") {
            remove_if_there(&path.join(name.as_ref()))?;
        }
    }
    Ok(())
}

/// sled would wait for ever for a pipe that stands in place of one of its files.
fn refuse_what_is_no_file(path: &Path) -> Result<(), FileError> {
    for entry in fs::read_dir(path).map_err(FileError::at(path))? {
        let entry = entry.map_err(FileError::at(path))?;
        let kind = entry.file_type().map_err(FileError::at(&entry.path()))?;
        if !kind.is_file() && !kind.is_dir() {
            return Err(FileError::at(&entry.path())(not_regular()));
        }
    }
    Ok(())
}

/// sled has no error of its own for a file that another handle has locked.
fn is_locked(error: &sled::Error) -> bool {
    matches!(error, sled::Error::Io(io) if io.to_string().contains("could not acquire lock"))
}
