//! Gives space back: sled's file never becomes smaller, so what it holds is copied into a new one that takes its place.
//!
//! The new database is complete and on disk before the names are exchanged in one step: whenever this process ends, the
//! name of the database leads to one that holds everything that was acknowledged.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags};

use super::StoreError;
use super::files::{create_private_directory, sync_directory};
use super::keys::KeyRange;
use super::sled_error::{from_file, from_io};
use super::sled_open::{DATABASE, remove_tree};
use super::stored::after;
use super::table::{Rows, Table};

/// The name of the new database until it takes the place of the other, and of the other from then on.
pub(super) const OTHER: &str = "db.compact";

/// Records that are copied at once.
const COPIED_ROWS: usize = 1_000;

/// Removes what a compaction left that was interrupted; nothing leads to it.
pub(super) fn clear(directory: &Path, shown: &str) -> Result<(), StoreError> {
    remove_tree(&directory.join(OTHER)).map_err(|e| from_file(shown, e))
}

/// The empty place of the new database.
pub(super) fn place(directory: &Path, shown: &str) -> Result<PathBuf, StoreError> {
    clear(directory, shown)?;
    let place = directory.join(OTHER);
    create_private_directory(&place).map_err(|e| from_file(shown, e))?;
    Ok(place)
}

/// Copies all records.
pub(super) fn copy(from: &impl Table, to: &impl Table) -> Result<(), StoreError> {
    let mut range = everything();
    loop {
        let rows = from.scan(&range, false, COPIED_ROWS)?;
        let Some((last, _)) = rows.last() else {
            return to.sync(0);
        };
        range.from = after(last);
        let rows: Rows = rows
            .into_iter()
            .map(|(key, value)| (key, Some(value)))
            .collect();
        to.apply(&rows)?;
    }
}

/// Makes the files of the new database durable, their names included.
pub(super) fn sync(place: &Path, shown: &str) -> Result<(), StoreError> {
    for file in ["conf", "db"] {
        let synced = File::open(place.join(file)).and_then(|file| file.sync_all());
        synced.map_err(|e| from_io(shown, e))?;
    }
    sync_directory(&place.join("blobs"))
        .and_then(|()| sync_directory(place))
        .map_err(|e| from_file(shown, e))
}

/// Exchanges the names of the two, durable on return; `Refused` where the file system cannot.
pub(super) fn exchange(directory: &Path, shown: &str) -> Result<(), StoreError> {
    let (one, other) = (directory.join(DATABASE), directory.join(OTHER));
    rustix::fs::renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).map_err(|errno| {
        StoreError::Refused {
            path: shown.to_owned(),
            reason: format!("its file system cannot exchange two names: {errno}"),
        }
    })?;
    sync_directory(directory).map_err(|e| from_file(shown, e))
}

/// Every key there is.
pub(super) fn everything() -> KeyRange {
    KeyRange {
        from: Vec::new(),
        to: vec![u8::MAX],
    }
}
