//! Records as they are stored: their payloads, from files where they lie in some, and what a damaged one means.

use super::keys::KeyRange;
use super::record::{self, Body, RecordError};
use super::table::Table;
use super::{StoreError, keys};

/// Records that are read at once.
const SCAN_ROWS: usize = 256;

/// The first key after `key`.
pub(super) fn after(key: &[u8]) -> Vec<u8> {
    let mut next = key.to_vec();
    next.push(0);
    next
}

/// Visits all records of a range, some at a time.
pub(super) fn each_row(
    table: &impl Table,
    mut range: KeyRange,
    mut see: impl FnMut(&[u8], &[u8]) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    loop {
        let rows = table.scan(&range, false, SCAN_ROWS)?;
        let Some((last, _)) = rows.last() else {
            return Ok(());
        };
        range.from = after(last);
        for (key, value) in &rows {
            see(key, value)?;
        }
    }
}

/// The payload of a record, from its file where it lies in one.
pub(super) fn payload_of(
    table: &impl Table,
    key: &[u8],
    value: &[u8],
) -> Result<Vec<u8>, StoreError> {
    match record::open(key, value).map_err(|e| damaged(table, key, &e))? {
        Body::Inline(payload) => Ok(payload.to_vec()),
        Body::File(file) => table.read_payload(&file),
    }
}

/// What a record that cannot be read means for the caller.
pub(super) fn damaged(table: &impl Table, key: &[u8], error: &RecordError) -> StoreError {
    let path = table.path().to_owned();
    match error {
        RecordError::Newer(version) => StoreError::Newer {
            path,
            found: u32::from(*version),
        },
        _ => StoreError::Corrupt {
            path,
            reason: match keys::Kind::of(key) {
                Some(kind) => format!("{error} (under {kind})"),
                None => error.to_string(),
            },
        },
    }
}

/// A batch holds what cannot be stored.
pub(super) fn refused(table: &impl Table, error: &RecordError) -> StoreError {
    StoreError::Refused {
        path: table.path().to_owned(),
        reason: error.to_string(),
    }
}
