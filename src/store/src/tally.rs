//! Counts of slots by half hours, and each skill's newest run: written with rows of slots and with lines of runs, and left
//! when those go.
//!
//! Of a row that covers several slots only the first, the last and their number are known: the others count evenly
//! between them. A row that grows slot by slot, as it does while an engine is there, counts each where it was.

use std::collections::BTreeMap;

use super::StoreError;
use super::counts::line;
use super::half_day::{HalfDay, place_of};
use super::keys::{self, KeyRange};
use super::record;
use super::stored::{after, each_row, payload_of, refused};
use super::table::{Rows, Table};
use crate::model::schedule::{SlotRow, SlotStatus, spread};
use crate::model::{RunId, Timestamp};
use crate::protocol::{HALF_HOUR_MS, RunSummary, SlotCounts};
use crate::schedule::COUNT_MAX;

/// The subject of counts of all schedules; no worker has this id.
const ALL: &str = "";

/// Half days whose counts one batch changes.
#[derive(Debug, Default)]
pub(super) struct Tally {
    half_days: BTreeMap<Vec<u8>, HalfDay>,
    /// Whether all is counted, so that what is stored is what a count that was cut off left.
    anew: bool,
}

type Change = fn(&mut SlotCounts, &SlotCounts);

/// Slots of one status by half hours, and between which instants they lie.
struct Stretch {
    status: SlotStatus,
    parts: Vec<(Timestamp, u32)>,
    ends: (Timestamp, Timestamp),
}

impl Tally {
    /// A row takes the place of another one; a batch that is applied twice finds its own.
    pub(super) fn row(
        &mut self,
        table: &impl Table,
        schedule: &str,
        (former, row): (Option<&SlotRow>, Option<&SlotRow>),
    ) -> Result<(), StoreError> {
        match (former, row) {
            (Some(former), Some(row)) if former.status == row.status && former.to <= row.to => {
                self.add(table, schedule, &Stretch::tail(former, row))
            }
            (Some(former), Some(row)) if former.status == row.status => {
                self.take_back(table, schedule, &Stretch::tail(row, former))
            }
            (former, row) => {
                if let Some(former) = former {
                    self.take_back(table, schedule, &Stretch::whole(former))?;
                }
                row.map_or(Ok(()), |row| {
                    self.add(table, schedule, &Stretch::whole(row))
                })
            }
        }
    }

    fn add(
        &mut self,
        table: &impl Table,
        schedule: &str,
        stretch: &Stretch,
    ) -> Result<(), StoreError> {
        for (at, count) in &stretch.parts {
            let counts = SlotCounts::of_status(stretch.status, *count);
            self.change(table, (schedule, *at), &counts, SlotCounts::add)?;
        }
        Ok(())
    }

    /// Takes back as many as were added. Where they were is not known of those between the ends: what a half hour lacks is
    /// taken from others of the stretch.
    fn take_back(
        &mut self,
        table: &impl Table,
        schedule: &str,
        stretch: &Stretch,
    ) -> Result<(), StoreError> {
        for subject in subjects(schedule) {
            let mut lacking = 0_u32;
            for (at, count) in &stretch.parts {
                let taken = self.take(table, (subject, *at), stretch.status, *count)?;
                lacking = lacking.saturating_add(count - taken);
            }
            let (mut at, last) = stretch.ends;
            while lacking > 0 && at <= last {
                lacking -= self.take(table, (subject, at), stretch.status, lacking)?;
                at = at.plus_millis(HALF_HOUR_MS.unsigned_abs());
            }
        }
        Ok(())
    }

    /// Takes back at most so many slots of one half hour; how many there were.
    fn take(
        &mut self,
        table: &impl Table,
        place: (&str, Timestamp),
        status: SlotStatus,
        most: u32,
    ) -> Result<u32, StoreError> {
        let Some(counts) = self.half_hour(table, place)? else {
            return Ok(0);
        };
        let taken = counts.with_status(status).min(most);
        counts.take_back(&SlotCounts::of_status(status, taken));
        Ok(taken)
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
        for subject in subjects(schedule) {
            if let Some(kept) = self.half_hour(table, (subject, at))? {
                change(kept, counts);
            }
        }
        Ok(())
    }

    /// The counts of the half hour in which an instant lies.
    fn half_hour(
        &mut self,
        table: &impl Table,
        (subject, at): (&str, Timestamp),
    ) -> Result<Option<&mut SlotCounts>, StoreError> {
        let (half_day, half_hour) = place_of(at);
        let key = keys::hours(subject, half_day);
        if !self.half_days.contains_key(&key) {
            let stored = if self.anew { None } else { table.get(&key)? };
            let read =
                stored.map_or_else(|| Ok(HalfDay::default()), |value| read(table, &key, &value));
            self.half_days.insert(key.clone(), read?);
        }
        let half_day = self.half_days.get_mut(&key);
        Ok(half_day.and_then(|half_day| half_day.0.get_mut(half_hour)))
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
        self.half_days.into_iter().map(row).collect()
    }
}

impl Stretch {
    fn whole(row: &SlotRow) -> Stretch {
        let mut stretch = Stretch::of(row.status, (row.from, row.to));
        row.spread(COUNT_MAX + 1, HALF_HOUR_MS, &mut |at, count| {
            stretch.push(at, count);
        });
        stretch
    }

    /// What the longer of two rows with the same beginning covers beyond the shorter one.
    fn tail(shorter: &SlotRow, longer: &SlotRow) -> Stretch {
        let count = |row: &SlotRow| row.count.unwrap_or(COUNT_MAX + 1);
        let count = count(longer).saturating_sub(count(shorter));
        let mut stretch = Stretch::of(longer.status, (shorter.to, longer.to));
        spread(stretch.ends, count, HALF_HOUR_MS, &mut |at, count| {
            stretch.push(at, count);
        });
        stretch
    }

    fn of(status: SlotStatus, ends: (Timestamp, Timestamp)) -> Stretch {
        let parts = Vec::new();
        Stretch {
            status,
            parts,
            ends,
        }
    }

    fn push(&mut self, at: Timestamp, count: u64) {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        self.parts.push((at, count));
    }
}

/// For whom a slot counts: all schedules, and those of its worker, with whom the id of a schedule begins.
fn subjects(schedule: &str) -> [&str; 2] {
    [ALL, schedule.split('/').next().unwrap_or_default()]
}

/// The counts of half a day. A record that cannot be read counts nothing: slots matter more.
pub(super) fn read(table: &impl Table, key: &[u8], value: &[u8]) -> Result<HalfDay, StoreError> {
    match payload_of(table, key, value) {
        Ok(payload) => Ok(record::from_json(&payload).unwrap_or_default()),
        Err(StoreError::Corrupt { reason, .. }) => {
            tracing::warn!(%reason, "the counts of half a day cannot be read and start again");
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
    let mut tally = Tally {
        anew: true,
        ..Tally::default()
    };
    each_row(table, KeyRange::kind(keys::SLOT), |key, value| {
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
    each_row(table, KeyRange::kind(keys::DONE), |key, value| {
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
