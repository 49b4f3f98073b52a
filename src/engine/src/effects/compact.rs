//! Compacting: the database gives space back once much of its file is free.

use super::super::expiry::SWEEP_MS;
use super::Performer;
use crate::model::Timestamp;
use crate::store::StoreError;

/// A database that is smaller is not worth compacting.
pub(super) const COMPACTED_BYTES_MIN: u64 = 8 * 1024 * 1024;

/// One that is larger is compacted only when somebody asks: commits wait meanwhile, and the watchdog does not for ever.
const COMPACTED_BYTES_MAX: u64 = 2 * 1024 * 1024 * 1024;

/// On one day of so many it is looked how much of its file the database needs.
const WASTE_DAYS: i64 = 30;

impl Performer {
    pub(super) fn is_at_work(&self) -> bool {
        let open = self.parts.view.open(0);
        open.running + open.queued + open.backing_off > 0
    }

    /// Whether the database's file takes twice of what is in it. Every record is read for that.
    pub(super) fn wastes_space(&self, now: Timestamp) -> bool {
        let store = self.parts.store.as_ref();
        let day = now.millis().div_euclid(SWEEP_MS.cast_signed());
        let wastes = || Ok::<bool, StoreError>(store.held_bytes()? * 2 < store.file_bytes()?);
        day.rem_euclid(WASTE_DAYS) == 0 && wastes().unwrap_or(false)
    }

    /// Commits wait while the database is compacted, so that is done while nothing is under way.
    pub(super) fn compact(&self) {
        let store = self.parts.store.as_ref();
        let compacted = store.file_bytes().and_then(|before| {
            if !(COMPACTED_BYTES_MIN..COMPACTED_BYTES_MAX).contains(&before) {
                return Ok(());
            }
            store.compact()?;
            let after = store.file_bytes()?;
            tracing::info!(before, after, "the database was compacted");
            Ok(())
        });
        if let Err(error) = compacted {
            tracing::warn!(%error, "the database is not compacted");
        }
    }
}
