//! Looking after a store that nobody has open: what is there, whether it is sound, moving it aside.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::files::{
    FileError, create_private_directory, each_file, open_directory, open_regular, sync_directory,
};
use super::payload::PAYLOADS;
use super::sled_error::{corrupt, from_file, from_io};
use super::sled_open::{
    ASIDE_PREFIX, DATABASE, OpenOptions, lock_directory, moved_aside, open_raw, remove_tree,
};
use super::sled_table::{RESERVE, SledTable};
use super::witness::{self, Said, Witness};
use super::{STORE_VERSION, StoreError};
use crate::model::Timestamp;

pub use super::verify::{LISTED_MAX, StoreDamage, VerifyReport};

/// Name of the copy that is verified.
const COPY: &str = "db.verify";

/// What lies in a store's directory, as far as files tell.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct StoreInfo {
    /// Which store it is; `None` before its first opening by this version.
    pub id: Option<String>,
    /// Its version, as far as the witness tells.
    pub version: Option<u32>,
    /// How many batches are durable at least, as far as the witness tells.
    #[serde(rename = "commit_count")]
    pub commits: Option<u64>,
    /// Whether some process has it open.
    pub in_use: bool,
    /// Bytes of the database; `None` when there is none.
    pub database_bytes: Option<u64>,
    /// Number of payload files.
    #[serde(rename = "payload_file_count")]
    pub payload_files: u64,
    /// Their bytes.
    pub payload_bytes: u64,
    /// Bytes set aside for a full disk.
    pub reserve_bytes: u64,
    /// Damaged stores that lie aside, oldest first.
    pub aside: Vec<String>,
}

/// What lies in the store's directory. Opens nothing, changes nothing, also beside a running engine.
pub fn info(directory: &Path) -> Result<StoreInfo, StoreError> {
    let shown = directory.display().to_string();
    let filed = |error| from_file(&shown, error);
    let (version, commits) = match Witness::read(directory).map_err(filed)? {
        Said::Commits(commits) => (Some(STORE_VERSION), Some(commits)),
        Said::Newer(version) => (Some(version), None),
        Said::Nothing | Said::Damaged => (None, None),
    };
    let database = directory.join(DATABASE);
    let database_bytes = if database.is_dir() {
        Some(size_of(&database).map_err(filed)?.1)
    } else {
        None
    };
    let (payload_files, payload_bytes) = size_of(&directory.join(PAYLOADS)).map_err(filed)?;
    Ok(StoreInfo {
        id: super::identity::id_of(directory),
        version,
        commits,
        in_use: is_in_use(directory, &shown)?,
        database_bytes,
        payload_files,
        payload_bytes,
        reserve_bytes: fs::metadata(directory.join(RESERVE)).map_or(0, |file| file.len()),
        aside: if directory.is_dir() {
            moved_aside(directory).map_err(filed)?
        } else {
            Vec::new()
        },
    })
}

/// Asks for a shared lock, which is had at once when nobody holds the exclusive one. An engine that
/// starts in this instant waits for it to be gone again.
fn is_in_use(directory: &Path, shown: &str) -> Result<bool, StoreError> {
    let file = match open_directory(directory) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(from_io(shown, error)),
    };
    match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockShared) {
        Ok(()) => Ok(false),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(true),
        Err(error) => Err(from_io(shown, error.into())),
    }
}

/// Files below a directory and their bytes; none when it is missing.
fn size_of(directory: &Path) -> Result<(u64, u64), FileError> {
    let (mut files, mut bytes) = (0, 0);
    each_file(directory, &mut |_, length| {
        files += 1;
        bytes += length;
    })?;
    Ok((files, bytes))
}

/// Reads everything: checksums, payloads against their digests, journals by folding them.
///
/// sled repairs what it opens, so a copy is opened and the store itself stays as it is. `Busy` while
/// an engine runs; `Corrupt` when it cannot be opened at all; what is wrong with single records is in
/// the report.
pub fn verify(directory: &Path) -> Result<VerifyReport, StoreError> {
    let shown = directory.display().to_string();
    let filed = |error| from_file(&shown, error);
    let _locked = lock_directory(directory, &shown, false)?;
    let said = Witness::read(directory).map_err(filed)?;
    if let Said::Newer(found) = said {
        return Err(StoreError::Newer { path: shown, found });
    }
    let database = directory.join(DATABASE);
    if !database.is_dir() {
        return Err(corrupt(&shown, "its database is missing".to_owned()));
    }
    let copy = directory.join(COPY);
    remove_tree(&copy).map_err(filed)?;
    let report = copy_tree(&database, &copy)
        .map_err(filed)
        .and_then(|()| open_raw(&copy, &shown, OpenOptions::default()))
        .and_then(|opened| {
            let table = SledTable::detached(directory, opened, OpenOptions::default());
            super::verify::walk(&table, said, directory)
        });
    let removed = remove_tree(&copy).map_err(filed);
    let report = report?;
    removed?;
    Ok(report)
}

fn copy_tree(from: &Path, to: &Path) -> Result<(), FileError> {
    create_private_directory(to)?;
    create_private_directory(&to.join("blobs"))?;
    let mut failed = None;
    each_file(from, &mut |path, _| {
        let Ok(relative) = path.strip_prefix(from) else {
            return;
        };
        if failed.is_none() {
            failed = open_regular(path)
                .and_then(|mut file| io::copy(&mut file, &mut fs::File::create(to.join(relative))?))
                .map_err(FileError::at(path))
                .err();
        }
    })?;
    match failed {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// Moves the store aside, whole and for good, so that another can be built: database, payloads and
/// witness go to `db.corrupt-<time>`, whose path is answered. Nothing is deleted.
///
/// Until [`super::rebuild::rebuild`] has built another, the store cannot be opened.
pub fn quarantine(directory: &Path, now: Timestamp) -> Result<PathBuf, StoreError> {
    let shown = directory.display().to_string();
    let filed = |error| from_file(&shown, error);
    let _locked = lock_directory(directory, &shown, false)?;
    // The witness goes last: while it is there, a missing database is found out.
    let parts = [DATABASE, PAYLOADS, witness::NAME];
    if !parts.iter().any(|part| directory.join(part).exists()) {
        return Err(corrupt(&shown, "there is no store".to_owned()));
    }
    let aside = (0_u32..10_000)
        .map(|count| match count {
            0 => format!("{ASIDE_PREFIX}{}", now.utc_compact()),
            _ => format!("{ASIDE_PREFIX}{}-{count}", now.utc_compact()),
        })
        .map(|name| directory.join(name))
        .find(|path| !path.exists())
        .ok_or_else(|| corrupt(&shown, "too many stores lie aside".to_owned()))?;
    create_private_directory(&aside).map_err(filed)?;
    for part in parts {
        match fs::rename(directory.join(part), aside.join(part)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(from_io(&shown, error));
            }
            _ => {}
        }
    }
    // Where the parts arrived first: their new names are to be durable before the loss of the old ones is.
    sync_directory(&aside).map_err(filed)?;
    sync_directory(directory).map_err(filed)?;
    Ok(aside)
}

/// Takes back [`quarantine`] where no other store was built: the database, payloads and witness return from `aside`.
pub fn put_back(directory: &Path, aside: &Path) -> Result<(), StoreError> {
    let shown = directory.display().to_string();
    let filed = |error| from_file(&shown, error);
    let _locked = lock_directory(directory, &shown, false)?;
    // The database goes last: until it is there the store counts as moved aside.
    for part in [PAYLOADS, witness::NAME, DATABASE] {
        let from = aside.join(part);
        if from.exists() {
            if from.is_dir() {
                // What the unfinished store has written there.
                remove_tree(&directory.join(part)).map_err(filed)?;
            }
            fs::rename(&from, directory.join(part)).map_err(|error| from_io(&shown, error))?;
        }
    }
    sync_directory(directory).map_err(filed)?;
    fs::remove_dir(aside).map_err(|error| from_io(&shown, error))
}
