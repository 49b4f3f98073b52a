//! The store on disk.

use std::path::Path;

use super::StoreError;
use super::keyed::{Keyed, OverTable};
use super::sled_table::SledTable;

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

/// The store on disk: sled and the files beside it. While it is open its directory is locked.
#[derive(Debug)]
pub struct SledStore(pub(super) Keyed<SledTable>);

impl SledStore {
    /// Opens the store in `directory`, which is created (mode 0700) when it is missing.
    ///
    /// `Busy` when another process has it open, `Newer` (nothing touched) when a later version wrote
    /// it, `Corrupt` when it is damaged or commits are missing that were durable once.
    pub fn open(directory: &Path, options: OpenOptions) -> Result<SledStore, StoreError> {
        SledTable::open(directory, options)
            .and_then(Keyed::over)
            .map(SledStore)
    }

    /// The store's directory.
    pub fn directory(&self) -> &Path {
        self.0.table().directory()
    }
}

impl OverTable for SledStore {
    type Table = SledTable;

    fn keyed(&self) -> &Keyed<SledTable> {
        &self.0
    }
}
