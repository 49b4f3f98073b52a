//! An ordered table of records: what the store is built on.

use std::collections::BTreeMap;

use super::StoreError;
use super::keys::KeyRange;
use super::payload::Spill;
use super::record::FileRef;

/// Records by key; `None` removes.
pub(super) type Rows = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// A record with its key.
pub(super) type Row = (Vec<u8>, Vec<u8>);

/// An ordered table of records and the payloads beside it.
pub(super) trait Table: Send + Sync {
    /// Where it lies, for messages.
    fn path(&self) -> &str;
    /// The record under a key.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError>;
    /// At most `limit` records of a range, from its end when `backwards`.
    fn scan(&self, range: &KeyRange, backwards: bool, limit: usize)
    -> Result<Vec<Row>, StoreError>;
    /// At most `limit` keys of a range.
    fn keys(&self, range: &KeyRange, limit: usize) -> Result<Vec<Vec<u8>>, StoreError>;
    /// Writes payloads, durable on return.
    fn write_payloads(&self, spills: &[Spill]) -> Result<(), StoreError>;
    /// Reads a payload and checks it.
    fn read_payload(&self, file: &FileRef) -> Result<Vec<u8>, StoreError>;
    /// Removes the payloads of a run; nothing names them any more.
    fn remove_payloads(&self, run: &str) -> Result<(), StoreError>;
    /// Names of all runs that have payloads.
    fn runs_with_payloads(&self) -> Result<Vec<String>, StoreError>;
    /// Writes and removes records, all or none; durable after [`Table::sync`].
    fn apply(&self, rows: &Rows) -> Result<(), StoreError>;
    /// Makes all that was applied durable against power loss: `commits` batches in all.
    fn sync(&self, commits: u64) -> Result<(), StoreError>;
    /// Opens again after there was no space.
    fn reopen(&self) -> Result<(), StoreError>;
    /// Bytes of its file.
    fn file_bytes(&self) -> Result<u64, StoreError>;
    /// Bytes of what is in it.
    fn held_bytes(&self) -> Result<u64, StoreError>;
    /// Closes it and opens it again; nothing may be written meanwhile. What was applied is durable then.
    fn let_go(&self) -> Result<(), StoreError>;
    /// Writes what it holds into a new file, which takes the place of the old one; nothing may be written meanwhile.
    fn compact(&self) -> Result<(), StoreError>;
    /// How many calls synced something.
    fn syncs(&self) -> u64;
}
