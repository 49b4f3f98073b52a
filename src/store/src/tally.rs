//! Counts of slots by half hours, and each skill's newest run: written with rows of slots and with lines of runs, and left
//! when those go.
//!
//! Of a row that covers several slots only the first, the last and their number are known: the others count evenly
//! between them. A row that grows slot by slot, as it does while an engine is there, counts each where it was.

use std::collections::BTreeMap;

use super::StoreError;
use super::counts::line;
use super::keys::{self, KeyRange};
use super::record;
use super::stored::{after, payload_of, refused};
use super::table::{Rows, Table};
use crate::model::schedule::{SlotRow, spread};
use crate::model::{RunId, Timestamp};
use crate::protocol::{HALF_DAY_MS, HALF_HOUR_MS, HalfDay, RunSummary, SlotCounts};
use crate::schedule::COUNT_MAX;

/// The subject of counts of all schedules; no worker has this id.
const ALL: &str = "";

/// Half days whose counts one batch changes.
#[derive(Debug, Default)]
pub(super) struct Tally(BTreeMap<Vec<u8>, HalfDay>);

type Change = fn(&mut SlotCounts, &SlotCounts);

impl Tally {
    /// A row takes the place of another one; a batch that is applied twice finds its own.
    pub(super) fn row(
        &mut self,
        table: &impl Table,
        schedule: &str,
        (former, row): (Option<&SlotRow>, Option<&SlotRow>),
    ) -> Result<(), StoreError> {
        match (former, row) {
            (Some(former), Some(row)) if former.fate == row.fate && former.to <= row.to => {
                self.tail(table, schedule, (former, row), SlotCounts::add)
            }
            (Some(former), Some(row)) if former.fate == row.fate => {
                self.tail(table, schedule, (row, former), SlotCounts::take_back)
            }
            (former, row) => {
                if let Some(former) = former {
                    self.whole(table, schedule, former, SlotCounts::take_back)?;
                }
                row.map_or(Ok(()), |row| {
                    self.whole(table, schedule, row, SlotCounts::add)
                })
            }
        }
    }

    /// What the longer of two rows with the same beginning covers beyond the shorter one.
    fn tail(
        &mut self,
        table: &impl Table,
        schedule: &str,
        (shorter, longer): (&SlotRow, &SlotRow),
        change: Change,
    ) -> Result<(), StoreError> {
        let count = count_of(longer).saturating_sub(count_of(shorter));
        let mut parts = Vec::new();
        let stretch = (shorter.to, longer.to);
        spread(stretch, count, HALF_HOUR_MS, &mut |at, count| {
            parts.push((at, count));
        });
        self.parts(table, (schedule, longer), &parts, change)
    }

    fn whole(
        &mut self,
        table: &impl Table,
        schedule: &str,
        row: &SlotRow,
        change: Change,
    ) -> Result<(), StoreError> {
        let mut parts = Vec::new();
        row.spread(COUNT_MAX + 1, HALF_HOUR_MS, &mut |at, count| {
            parts.push((at, count));
        });
        self.parts(table, (schedule, row), &parts, change)
    }

    fn parts(
        &mut self,
        table: &impl Table,
        (schedule, row): (&str, &SlotRow),
        parts: &[(Timestamp, u64)],
        change: Change,
    ) -> Result<(), StoreError> {
        for (at, count) in parts {
            let count = u32::try_from(*count).unwrap_or(u32::MAX);
            let counts = SlotCounts::of_fate(row.fate, count);
            self.change(table, (schedule, *at), &counts, change)?;
        }
        Ok(())
    }

    /// The run of a slot has ended, or ends otherwise after all.
    pub(super) fn end(
        &mut self,
        table: &impl Table,
        former: Option<&RunSummary>,
        run: &RunSummary,
    ) -> Result<(), StoreError> {
        let (Some(schedule), Some(slot)) = (&run.schedule, run.slot) else {
            return Ok(());
        };
        // Lines of versions that counted none have no slot; theirs was counted by the row that names the run.
        for (line, change) in [
            (former, SlotCounts::take_back as Change),
            (Some(run), SlotCounts::add),
        ] {
            if let Some(outcome) = line.and_then(|line| line.outcome.as_ref()) {
                let counts = SlotCounts::of_outcome(outcome.name());
                self.change(table, (schedule, slot), &counts, change)?;
            }
        }
        Ok(())
    }

    fn change(
        &mut self,
        table: &impl Table,
        (schedule, at): (&str, Timestamp),
        counts: &SlotCounts,
        change: Change,
    ) -> Result<(), StoreError> {
        let (half_day, half_hour) = place_of(at);
        // The id of a schedule begins with its worker.
        let worker = schedule.split('/').next().unwrap_or_default();
        for subject in [ALL, worker] {
            let key = keys::hours(subject, half_day);
            if !self.0.contains_key(&key) {
                let stored = table.get(&key)?;
                let read = stored
                    .map_or_else(|| Ok(HalfDay::default()), |value| read(table, &key, &value));
                self.0.insert(key.clone(), read?);
            }
            let half_day = self.0.get_mut(&key);
            if let Some(kept) = half_day.and_then(|half_day| half_day.0.get_mut(half_hour)) {
                change(kept, counts);
            }
        }
        Ok(())
    }

    /// The records to be written.
    pub(super) fn rows(self, table: &impl Table) -> Result<Rows, StoreError> {
        let row = |(key, half_day): (Vec<u8>, HalfDay)| {
            if half_day == HalfDay::default() {
                return Ok((key, None));
            }
            let json = record::to_json(&half_day).map_err(|error| refused(table, &error))?;
            let value = record::inline(&key, &json);
            Ok((key, Some(value)))
        };
        self.0.into_iter().map(row).collect()
    }
}

fn count_of(row: &SlotRow) -> u64 {
    row.count.unwrap_or(COUNT_MAX + 1)
}

/// The beginning of the half day in which an instant lies, and the number of its half hour there.
fn place_of(at: Timestamp) -> (Timestamp, usize) {
    let millis = at.millis();
    let half_day = millis.div_euclid(HALF_DAY_MS).saturating_mul(HALF_DAY_MS);
    let half_hour = millis.rem_euclid(HALF_DAY_MS) / HALF_HOUR_MS;
    let half_hour = usize::try_from(half_hour).unwrap_or(0);
    (Timestamp::from_millis(half_day), half_hour)
}

/// The counts of half a day. A record that cannot be read counts nothing: slots matter more.
pub(super) fn read(table: &impl Table, key: &[u8], value: &[u8]) -> Result<HalfDay, StoreError> {
    match payload_of(table, key, value) {
        Ok(payload) => Ok(record::from_json(&payload).unwrap_or_default()),
        Err(StoreError::Corrupt { reason, .. }) => {
            tracing::warn!(%reason, "the counts of half a day cannot be read and begin anew");
            Ok(HalfDay::default())
        }
        Err(other) => Err(other),
    }
}

/// The records of counts of all schedules.
pub(super) fn subject_of_all() -> KeyRange {
    KeyRange {
        from: keys::hours(ALL, Timestamp::from_millis(i64::MIN)),
        to: keys::after_hours(ALL),
    }
}

/// The records of counts of a worker's schedules that hold these instants.
pub(super) fn range(subject: &str, from: Timestamp, to: Timestamp) -> KeyRange {
    KeyRange {
        from: keys::hours(subject, place_of(from).0),
        to: keys::hours(subject, place_of(to.just_before()).0.plus_millis(1)),
    }
}

/// At most so many keys of counts of half days that end before an instant. Of each subject they lie side by side, and so
/// each subject is looked at alone.
pub(super) fn before(
    table: &impl Table,
    at: Timestamp,
    most: usize,
) -> Result<Vec<Vec<u8>>, StoreError> {
    let mut range = KeyRange::kind(keys::HOURS);
    range.from = after(&range.from);
    let mut old = Vec::new();
    while old.len() < most {
        let first = table.keys(&range, 1)?;
        let Some((subject, _)) = first.first().and_then(|key| keys::hours_of(key)) else {
            break;
        };
        let own = self::range(subject, Timestamp::from_millis(i64::MIN), at);
        range.from = keys::after_hours(subject);
        let begun = place_of(at).0;
        let keys = table.keys(&own, most - old.len())?.into_iter();
        old.extend(keys.filter(|key| keys::hours_of(key).is_some_and(|(_, from)| from < begun)));
    }
    Ok(old)
}

/// Counts every row of slots with its run's end, and finds each skill's newest run: a store of a version that did neither.
pub(super) fn of_everything(table: &impl Table) -> Result<Rows, StoreError> {
    let mut tally = Tally::default();
    each_row(table, keys::SLOT, &mut |key, value| {
        let row = payload_of(table, key, value)
            .ok()
            .and_then(|payload| record::from_json::<SlotRow>(&payload).ok());
        let (Some((schedule, _)), Some(row)) = (keys::slot_of(key), row) else {
            return Ok(());
        };
        tally.row(table, schedule, (None, Some(&row)))?;
        let Some(run) = row.run else { return Ok(()) };
        let key = keys::of_run(keys::DONE, run);
        let ended = match table.get(&key)? {
            Some(value) => line(table, &key, &value)?,
            None => None,
        };
        let Some(outcome) = ended.and_then(|run| run.outcome) else {
            return Ok(());
        };
        let counts = SlotCounts::of_outcome(outcome.name());
        tally.change(table, (schedule, row.from), &counts, SlotCounts::add)
    })?;
    let mut newest: BTreeMap<Vec<u8>, RunId> = BTreeMap::new();
    each_row(table, keys::DONE, &mut |key, value| {
        if let Some(run) = line(table, key, value)? {
            // They come by their ids, the newest last.
            newest.insert(keys::newest(&run.skill), run.run);
        }
        Ok(())
    })?;
    let mut rows = tally.rows(table)?;
    for (key, run) in newest {
        let json = record::to_json(&run).map_err(|error| refused(table, &error))?;
        let value = record::inline(&key, &json);
        rows.insert(key, Some(value));
    }
    Ok(rows)
}

/// What is done with a record, by its key.
type Visit<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> Result<(), StoreError>;

fn each_row(table: &impl Table, kind: u8, see: Visit<'_>) -> Result<(), StoreError> {
    let mut range = KeyRange::kind(kind);
    loop {
        let rows = table.scan(&range, false, 1_000)?;
        let Some((last, _)) = rows.last() else {
            return Ok(());
        };
        range.from = after(last);
        for (key, value) in &rows {
            see(key, value)?;
        }
    }
}
