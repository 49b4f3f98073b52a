//! Counts of ended runs by day and by hour: written with the line of a run, and left when the run is forgotten.

use std::collections::BTreeMap;

use super::StoreError;
use super::keys::{self, KeyRange};
use super::record;
use super::stored::{each_row, payload_of};
use super::table::Table;
use crate::model::Zone;
use crate::protocol::{Counted, DayCounts, RunSummary};

/// The keys of the records in which a run counts: none while it has not ended.
pub(super) fn keys_of(run: &RunSummary) -> Vec<Vec<u8>> {
    let Some(ended) = run.finished_at else {
        return Vec::new();
    };
    // Versions before there were counts left no day.
    let day = run.day.clone().unwrap_or_else(|| ended.date_in(Zone::UTC));
    let hour = ended.hour();
    let of_day = Counted::of(run).map(|of| keys::counts(&day, &of.key()));
    // Of few hours there are few counts, and those of everything are their sums.
    let of_hour = Counted::of(run)
        .filter(|of| *of != Counted::All)
        .map(|of| keys::counts(&hour, &of.key()));
    of_day.chain(of_hour).collect()
}

/// What is counted of one subject on one day or in one hour. A record that cannot be read counts nothing: runs matter more.
pub(super) fn read(table: &impl Table, key: &[u8], value: &[u8]) -> Result<DayCounts, StoreError> {
    match payload_of(table, key, value) {
        Ok(payload) => Ok(record::from_json(&payload).unwrap_or_default()),
        Err(StoreError::Corrupt { reason, .. }) => {
            tracing::warn!(%reason, "counts cannot be read and start again");
            Ok(DayCounts::default())
        }
        Err(other) => Err(other),
    }
}

/// What is to be counted in a store of an earlier version. One that counted by day and subject has all of that, also
/// of runs that it has forgotten.
pub(super) fn lacking(
    table: &impl Table,
    has_days: bool,
) -> Result<BTreeMap<Vec<u8>, DayCounts>, StoreError> {
    let mut all: BTreeMap<Vec<u8>, DayCounts> = BTreeMap::new();
    each_row(table, KeyRange::kind(keys::DONE), |key, value| {
        let Some(run) = line(table, key, value)? else {
            return Ok(());
        };
        for key in keys_of(&run) {
            if !has_days || key.first() == Some(&keys::RUN_HOURS) {
                all.entry(key).or_default().add(&DayCounts::of(&run));
            }
        }
        Ok(())
    })?;
    if !has_days {
        return Ok(all);
    }
    each_row(table, KeyRange::kind(keys::COUNTS), |key, value| {
        if let Some((day, Counted::Skill(_))) = keys::counts_of(key) {
            let of_all = all.entry(keys::counts(day, &Counted::All.key()));
            of_all.or_default().add(&read(table, key, value)?);
        }
        Ok(())
    })?;
    Ok(all)
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
