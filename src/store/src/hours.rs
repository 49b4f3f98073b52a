//! The counts of slots of all schedules, held once somebody has asked for them: a year has many records, and pages of a
//! calendar ask for them again and again.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::StoreError;
use super::half_day::{HalfDay, place_of};
use super::keys;
use super::stored::each_row;
use super::table::{Rows, Table};
use super::tally::{read, subject_of_all};
use crate::model::Timestamp;
use crate::protocol::{HALF_HOUR_MS, SlotCounts};

/// All of them, by the half day; nothing until somebody asks, and after a write that failed.
#[derive(Debug, Default)]
pub(super) struct HeldHours(Mutex<Option<BTreeMap<Timestamp, HalfDay>>>);

impl HeldHours {
    /// Takes in records that were written. Whoever reads all of them at the same time may have seen these or not.
    pub(super) fn learn(&self, table: &impl Table, written: &Rows) -> Result<(), StoreError> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(all) = held.as_mut() else {
            return Ok(());
        };
        let range = subject_of_all();
        for (key, value) in written.range(range.from..range.to) {
            let Some((_, began)) = keys::hours_of(key) else {
                continue;
            };
            match value {
                Some(value) => drop(all.insert(began, read(table, key, value)?)),
                None => drop(all.remove(&began)),
            }
        }
        Ok(())
    }

    /// What is stored is not known any more.
    pub(super) fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Tells of each half hour from an instant up to, not including, another.
    pub(super) fn each(
        &self,
        table: &impl Table,
        (from, to): (Timestamp, Timestamp),
        callback: &mut dyn FnMut(Timestamp, SlotCounts),
    ) -> Result<(), StoreError> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all = match held.take() {
            Some(all) => all,
            None => load(table)?,
        };
        for (began, half_day) in all.range(place_of(from).0..to) {
            tell(*began, half_day, (from, to), callback);
        }
        *held = Some(all);
        Ok(())
    }
}

fn load(table: &impl Table) -> Result<BTreeMap<Timestamp, HalfDay>, StoreError> {
    let mut all = BTreeMap::new();
    each_row(table, subject_of_all(), |key, value| {
        if let Some((_, began)) = keys::hours_of(key) {
            all.insert(began, read(table, key, value)?);
        }
        Ok(())
    })?;
    Ok(all)
}

/// Tells of the half hours of half a day that lie between two instants and have counts.
pub(super) fn tell(
    began: Timestamp,
    half_day: &HalfDay,
    (from, to): (Timestamp, Timestamp),
    callback: &mut dyn FnMut(Timestamp, SlotCounts),
) {
    for (number, counts) in (0..).zip(half_day.0) {
        let at = began.plus_millis(number * HALF_HOUR_MS.unsigned_abs());
        if !counts.is_empty() && (from..to).contains(&at) {
            callback(at, counts);
        }
    }
}
