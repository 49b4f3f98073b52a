//! Reading schedules and their ledgers: what cannot be read is told and stops nothing.

use std::ops::ControlFlow;

use serde::de::DeserializeOwned;

use super::batch::after;
use super::keyed::{Keyed, Row, Table, decode};
use super::keys::{self, KeyRange};
use super::{StoreError, Unreadable};
use crate::model::schedule::{ScheduleState, SlotRow};
use crate::model::{Notices, Timestamp};

/// Records that are read at once while nothing may be written.
const SCAN_ROWS: usize = 256;

impl<T: Table> Keyed<T> {
    pub(super) fn schedules(
        &self,
        callback: &mut dyn FnMut(&str, Result<ScheduleState, Unreadable>),
    ) -> Result<(), StoreError> {
        let mut range = KeyRange::kind(keys::SCHEDULE);
        loop {
            let rows = self.table().scan(&range, false, SCAN_ROWS)?;
            let Some((last, _)) = rows.last() else {
                return Ok(());
            };
            range.from = after(last);
            for row in &rows {
                let id = String::from_utf8_lossy(&row.0[1..]);
                callback(&id, self.lenient(row, None)?);
            }
        }
    }

    pub(super) fn notices(
        &self,
        callback: &mut dyn FnMut(Result<Notices, Unreadable>),
    ) -> Result<(), StoreError> {
        let mut range = KeyRange::kind(keys::NOTICES);
        loop {
            let rows = self.table().scan(&range, false, SCAN_ROWS)?;
            let Some((last, _)) = rows.last() else {
                return Ok(());
            };
            range.from = after(last);
            for row in &rows {
                callback(self.lenient(row, None)?);
            }
        }
    }

    pub(super) fn slots(
        &self,
        schedule: &str,
        before: Option<Timestamp>,
        callback: &mut dyn FnMut(Result<SlotRow, Unreadable>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let mut range = KeyRange::ledger(schedule, before);
        let mut portion = 16;
        loop {
            let rows = self.table().scan(&range, true, portion)?;
            let Some((last, _)) = rows.last() else {
                return Ok(());
            };
            range.to.clone_from(last);
            portion = SCAN_ROWS;
            for row in &rows {
                let from = keys::slot_of(&row.0).map(|(_, from)| from);
                if callback(self.lenient(row, from)?).is_break() {
                    return Ok(());
                }
            }
        }
    }

    /// Parses a record; one that is damaged is no failure of the store.
    fn lenient<V: DeserializeOwned>(
        &self,
        (key, value): &Row,
        from: Option<Timestamp>,
    ) -> Result<Result<V, Unreadable>, StoreError> {
        match decode(self.table(), key, value) {
            Ok(parsed) => Ok(Ok(parsed)),
            Err(StoreError::Corrupt { reason, .. }) => Ok(Err(Unreadable {
                from,
                reason,
                record: value.clone(),
            })),
            Err(other) => Err(other),
        }
    }
}
