//! Counts of all runs and of the slots of all schedules, held once somebody has asked for them: a year has many records,
//! and pages ask for them again and again.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::half_day::{HalfDay, place_of};
use super::keys;
use super::stored::each_row;
use super::table::{Rows, Table};
use super::tally::{read, subject_of_all};
use super::{StoreError, counts};
use crate::model::Timestamp;
use crate::protocol::{Counted, DayCounts, HALF_HOUR_MS, SlotCounts};

/// Days that are held at once: all that are kept, and a few more.
const DAYS_MAX: usize = 1_000;

/// What was asked for; nothing after a write that failed.
#[derive(Debug, Default)]
pub(super) struct HeldCounts(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    /// Slots of all schedules, by the half day, once somebody has asked for some.
    half_days: Option<BTreeMap<Timestamp, HalfDay>>,
    /// All runs that ended on a day, by the key of their record; none ended then where there is no record.
    days: BTreeMap<Vec<u8>, Option<DayCounts>>,
}

impl HeldCounts {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in records that were written. Whoever reads at the same time holds these, before or after them.
    pub(super) fn learn(&self, table: &impl Table, written: &Rows) -> Result<(), StoreError> {
        let mut held = self.held();
        for (key, value) in written {
            if let Some(day) = held.days.get_mut(key) {
                *day = match value {
                    Some(value) => Some(counts::read(table, key, value)?),
                    None => None,
                };
            }
        }
        let Some(all) = held.half_days.as_mut() else {
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
        *self.held() = Held::default();
    }

    /// Tells of all runs that ended on a day, if some did.
    pub(super) fn day(
        &self,
        table: &impl Table,
        day: &str,
        callback: &mut dyn FnMut(Counted, DayCounts),
    ) -> Result<(), StoreError> {
        let key = keys::counts(day, &Counted::All.key());
        let mut held = self.held();
        if held.days.len() >= DAYS_MAX {
            held.days.clear();
        }
        if !held.days.contains_key(&key) {
            let stored = table.get(&key)?;
            let read = stored.map(|value| counts::read(table, &key, &value));
            held.days.insert(key.clone(), read.transpose()?);
        }
        if let Some(Some(counts)) = held.days.get(&key) {
            callback(Counted::All, counts.clone());
        }
        Ok(())
    }

    /// Tells of the slots in each half hour from an instant up to, not including, another.
    pub(super) fn half_hours(
        &self,
        table: &impl Table,
        (from, to): (Timestamp, Timestamp),
        callback: &mut dyn FnMut(Timestamp, SlotCounts),
    ) -> Result<(), StoreError> {
        let mut held = self.held();
        let all = match held.half_days.take() {
            Some(all) => all,
            None => load(table)?,
        };
        for (began, half_day) in all.range(place_of(from).0..to) {
            tell(*began, half_day, (from, to), callback);
        }
        held.half_days = Some(all);
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
