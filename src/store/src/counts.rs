//! Counts of ended runs by day: written with the line of a run, and left when the run is forgotten.

use std::collections::BTreeMap;

use super::StoreError;
use super::keys::{self, KeyRange};
use super::record;
use super::stored::payload_of;
use super::table::Table;
use crate::model::Zone;
use crate::protocol::{Counted, DayCounts, RunSummary};

/// The day on which a run counts, as `2026-11-25`; a run that has not ended counts on none.
pub(super) fn day_of(run: &RunSummary) -> Option<String> {
    let ended = run.finished_at?;
    // Versions before there were counts left no day.
    Some(run.day.clone().unwrap_or_else(|| ended.date_in(Zone::UTC)))
}

/// What is counted of one subject on one day. A record that cannot be read counts nothing: runs matter more.
pub(super) fn read(table: &impl Table, key: &[u8], value: &[u8]) -> Result<DayCounts, StoreError> {
    match payload_of(table, key, value) {
        Ok(payload) => Ok(record::from_json(&payload).unwrap_or_default()),
        Err(StoreError::Corrupt { reason, .. }) => {
            tracing::warn!(%reason, "the counts of a day cannot be read and begin anew");
            Ok(DayCounts::default())
        }
        Err(other) => Err(other),
    }
}

/// Counts every line of an ended run: a store of a version that counted none.
pub(super) fn of_all_runs(
    table: &impl Table,
) -> Result<BTreeMap<(String, Counted), DayCounts>, StoreError> {
    let mut all: BTreeMap<(String, Counted), DayCounts> = BTreeMap::new();
    let mut range = KeyRange::kind(keys::DONE);
    loop {
        let rows = table.scan(&range, false, 1_000)?;
        let Some((last, _)) = rows.last() else {
            return Ok(all);
        };
        range.from = super::stored::after(last);
        for (key, value) in &rows {
            let Some(run) = line(table, key, value)? else {
                continue;
            };
            let Some(day) = day_of(&run) else { continue };
            for of in Counted::of(&run) {
                let counts = all.entry((day.clone(), of)).or_default();
                counts.add(&DayCounts::of(&run));
            }
        }
    }
}

/// The line of a run; `None` where it is damaged, which whoever asks for that run is told.
pub(super) fn line(
    table: &impl Table,
    key: &[u8],
    value: &[u8],
) -> Result<Option<RunSummary>, StoreError> {
    match payload_of(table, key, value) {
        Ok(payload) => Ok(record::from_json(&payload).ok()),
        Err(StoreError::Corrupt { .. }) => Ok(None),
        Err(other) => Err(other),
    }
}
