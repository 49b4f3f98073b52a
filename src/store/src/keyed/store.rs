//! The trait [`Store`], implemented once for every store over a table.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use serde::de::DeserializeOwned;

use super::{Health, Keyed, Meanwhile, OverTable, decode, health_after, lock, read};
use crate::batch::KeyRecord;
use crate::keys::{self, KeyRange};
use crate::machine::Entry;
use crate::model::schedule::{ScheduleState, SlotRow};
use crate::model::{FailedPush, Notices, RunId, RunSpec, SkillRef, Timestamp, WebSession};
use crate::protocol::{Counted, DayCounts, RunSummary, SlotCounts};
use crate::stored::after;
use crate::table::{Row, Table};
use crate::{Batch, Store, StoreCounters, StoreError, Unreadable, counts, held, tally};

/// Records that are read at once while nothing may be written.
const SCAN_ROWS: usize = 256;

impl<S: OverTable> Store for S {
    fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        self.keyed().write_batch(batch, true)
    }

    fn commit_lazily(&self, batch: &Batch) -> Result<(), StoreError> {
        self.keyed().write_batch(batch, false)
    }

    fn reopen(&self) -> Result<(), StoreError> {
        let keyed = self.keyed();
        let mut writer = lock(&keyed.writer);
        match writer.health {
            Health::Sound => return Ok(()),
            Health::Full(_) => {}
            Health::Broken => return Err(keyed.broken()),
        }
        let before = writer.health;
        let reopened = keyed.reopen_locked(&mut writer);
        writer.health = match &reopened {
            Ok(()) => Health::Sound,
            Err(error) => health_after(error, before),
        };
        reopened
    }

    fn next_fence(&self) -> Result<u64, StoreError> {
        self.keyed().raise_fence(0)
    }

    fn active(&self) -> Result<Vec<RunId>, StoreError> {
        let mut runs = Vec::new();
        let range = KeyRange::kind(keys::ACTIVE);
        self.keyed().each_key(&range, &mut |key| {
            runs.extend(keys::run_of(key));
        })?;
        Ok(runs)
    }

    fn spec(&self, run: RunId) -> Result<Option<RunSpec>, StoreError> {
        read(self.keyed().table(), &keys::spec(run))
    }

    fn journal(&self, run: RunId) -> Result<Vec<Entry>, StoreError> {
        let keyed = self.keyed();
        let mut journal: Vec<Entry> = Vec::new();
        let range = KeyRange::journal(run);
        keyed.each_row(range, false, SCAN_ROWS, &mut |(key, value)| {
            let entries: Vec<Entry> = decode(&keyed.table, key, value)?;
            // The same events in other portions are not told twice; a gap stays to be seen.
            let told = journal.last().map_or(0, |last| last.seq.saturating_add(1));
            journal.extend(entries.into_iter().filter(|entry| entry.seq >= told));
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(journal)
    }

    fn summary(&self, run: RunId) -> Result<Option<RunSummary>, StoreError> {
        read(self.keyed().table(), &keys::of_run(keys::DONE, run))
    }

    fn summaries(
        &self,
        before: Option<RunId>,
        callback: &mut dyn FnMut(RunSummary) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let keyed = self.keyed();
        let range = KeyRange::runs_before(keys::DONE, before);
        keyed.each_row(range, true, 32, &mut |(key, value)| {
            Ok(callback(decode(&keyed.table, key, value)?))
        })
    }

    fn find(&self, fragment: &str, limit: usize) -> Result<Vec<RunId>, StoreError> {
        let keyed = self.keyed();
        let search = |known: &BTreeSet<RunId>| {
            let newest_first = known.iter().rev().copied();
            newest_first
                .filter(|run| run.matches(fragment))
                .take(limit)
                .collect()
        };
        let _reading = lock(&keyed.reading);
        let mut known = lock(&keyed.known);
        if let Some(runs) = &known.runs {
            return Ok(search(runs));
        }
        known.meanwhile = Some(Meanwhile::default());
        // Let go while the store is read: every commit adds its runs to it, and must not wait for a search.
        drop(known);
        let mut runs = keyed.known_runs()?;
        let mut known = lock(&keyed.known);
        let meanwhile = known.meanwhile.take().unwrap_or_default();
        runs.extend(meanwhile.new);
        for run in &meanwhile.gone {
            runs.remove(run);
        }
        let found = search(&runs);
        known.runs = Some(runs);
        Ok(found)
    }

    fn key(&self, key: &str) -> Result<Option<(RunId, Timestamp)>, StoreError> {
        let found: Option<KeyRecord> = read(self.keyed().table(), &keys::idempotency(key))?;
        Ok(found
            .filter(|record| record.key == key)
            .map(|record| (record.run, record.at)))
    }

    fn newest(&self) -> Result<Option<RunId>, StoreError> {
        let mut newest = None;
        for kind in [keys::RUN, keys::DONE] {
            let last = self.keyed().table.scan(&KeyRange::kind(kind), true, 1)?;
            let run = last.first().and_then(|(key, _)| keys::run_of(key));
            newest = newest.max(run);
        }
        Ok(newest)
    }

    fn schedules(
        &self,
        callback: &mut dyn FnMut(&str, Result<ScheduleState, Unreadable>),
    ) -> Result<(), StoreError> {
        let keyed = self.keyed();
        let range = KeyRange::kind(keys::SCHEDULE);
        keyed.each_row(range, false, SCAN_ROWS, &mut |row| {
            let id = String::from_utf8_lossy(&row.0[1..]);
            callback(&id, keyed.lenient(row, None)?);
            Ok(ControlFlow::Continue(()))
        })
    }

    fn schedule(&self, id: &str) -> Result<Option<ScheduleState>, StoreError> {
        read(self.keyed().table(), &keys::schedule(id))
    }

    fn slots(
        &self,
        schedule: &str,
        before: Option<Timestamp>,
        callback: &mut dyn FnMut(Result<SlotRow, Unreadable>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let keyed = self.keyed();
        let range = KeyRange::ledger(schedule, before);
        keyed.each_row(range, true, 16, &mut |row| {
            let from = keys::slot_of(&row.0).map(|(_, from)| from);
            Ok(callback(keyed.lenient(row, from)?))
        })
    }

    fn notices(
        &self,
        callback: &mut dyn FnMut(Result<Notices, Unreadable>),
    ) -> Result<(), StoreError> {
        let keyed = self.keyed();
        let range = KeyRange::kind(keys::NOTICES);
        keyed.each_row(range, false, SCAN_ROWS, &mut |row| {
            callback(keyed.lenient(row, None)?);
            Ok(ControlFlow::Continue(()))
        })
    }

    fn failed_pushes(
        &self,
        callback: &mut dyn FnMut(Result<FailedPush, Unreadable>),
    ) -> Result<(), StoreError> {
        let keyed = self.keyed();
        let range = KeyRange::kind(keys::FAILED_PUSH);
        keyed.each_row(range, false, SCAN_ROWS, &mut |row| {
            callback(keyed.lenient(row, None)?);
            Ok(ControlFlow::Continue(()))
        })
    }

    fn web_sessions(
        &self,
        callback: &mut dyn FnMut(Result<WebSession, Unreadable>),
    ) -> Result<(), StoreError> {
        let keyed = self.keyed();
        let range = KeyRange::kind(keys::WEB_SESSION);
        keyed.each_row(range, false, SCAN_ROWS, &mut |row| {
            callback(keyed.lenient(row, None)?);
            Ok(ControlFlow::Continue(()))
        })
    }

    fn counts(
        &self,
        at: &str,
        of: &str,
        callback: &mut dyn FnMut(Counted, DayCounts),
    ) -> Result<(), StoreError> {
        let keyed = self.keyed();
        if of == Counted::All.key() {
            return keyed.held.day(&keyed.table, at, callback);
        }
        let range = KeyRange::counts(at, of);
        keyed.each_row(range, false, SCAN_ROWS, &mut |(key, value)| {
            if let Some((_, of)) = keys::counts_of(key) {
                callback(of, counts::read(&keyed.table, key, value)?);
            }
            Ok(ControlFlow::Continue(()))
        })
    }

    fn slot_counts(
        &self,
        worker: Option<&str>,
        from: Timestamp,
        to: Timestamp,
        callback: &mut dyn FnMut(Timestamp, SlotCounts),
    ) -> Result<(), StoreError> {
        let keyed = self.keyed();
        let Some(worker) = worker else {
            return keyed.held.half_hours(&keyed.table, (from, to), callback);
        };
        let range = tally::range(worker, from, to);
        keyed.each_row(range, false, SCAN_ROWS, &mut |(key, value)| {
            let half_day = tally::read(&keyed.table, key, value)?;
            let began = keys::hours_of(key).map_or(from, |(_, began)| began);
            held::tell(began, &half_day, (from, to), callback);
            Ok(ControlFlow::Continue(()))
        })
    }

    fn newest_of(&self, skill: &SkillRef) -> Result<Option<RunId>, StoreError> {
        match read(self.keyed().table(), &keys::newest(skill)) {
            // The next run of the skill takes its place.
            Err(StoreError::Corrupt { .. }) => Ok(None),
            read => read,
        }
    }

    fn sweep_payloads(&self, before: Timestamp) -> Result<u32, StoreError> {
        let table = self.keyed().table();
        let mut swept = 0;
        for name in table.runs_with_payloads()? {
            let Ok(run) = name.parse::<RunId>() else {
                continue;
            };
            let has = |kind| table.get(&keys::of_run(kind, run)).map(|row| row.is_some());
            let is_known = !table.keys(&KeyRange::run(run), 1)?.is_empty()
                || has(keys::DONE)?
                || has(keys::ACTIVE)?;
            if run.timestamp() < before && !is_known {
                table.remove_payloads(&name)?;
                swept += 1;
            }
        }
        Ok(swept)
    }

    fn file_bytes(&self) -> Result<u64, StoreError> {
        self.keyed().table().file_bytes()
    }

    fn held_bytes(&self) -> Result<u64, StoreError> {
        self.keyed().table().held_bytes()
    }

    fn let_go(&self) -> Result<(), StoreError> {
        self.keyed().opened_anew(Table::let_go)
    }

    fn compact(&self) -> Result<(), StoreError> {
        self.keyed().opened_anew(Table::compact)
    }

    fn counters(&self) -> StoreCounters {
        let keyed = self.keyed();
        StoreCounters {
            commits: keyed.written.load(Ordering::Relaxed),
            syncs: keyed.table.syncs(),
        }
    }
}

impl<T: Table> Keyed<T> {
    /// Has the table opened anew while nothing is written; what was written lazily is on disk then.
    fn opened_anew(&self, open: fn(&T) -> Result<(), StoreError>) -> Result<(), StoreError> {
        let mut writer = lock(&self.writer);
        match writer.health {
            Health::Sound => {}
            Health::Full(shortage) => return Err(self.full(shortage)),
            Health::Broken => return Err(self.broken()),
        }
        let opened = open(&self.table);
        match &opened {
            Ok(()) => {
                writer.unsynced = false;
                writer.lazy.clear();
            }
            // Nothing was lost for want of space, so only what is worse ends the engine.
            Err(StoreError::Full { .. }) => {}
            Err(error) => writer.health = health_after(error, Health::Sound),
        }
        opened
    }

    /// All runs that are stored.
    fn known_runs(&self) -> Result<BTreeSet<RunId>, StoreError> {
        let mut runs = BTreeSet::new();
        for kind in [keys::DONE, keys::ACTIVE] {
            self.each_key(&KeyRange::kind(kind), &mut |key| {
                runs.extend(keys::run_of(key));
            })?;
        }
        Ok(runs)
    }

    fn each_key(&self, range: &KeyRange, visit: &mut dyn FnMut(&[u8])) -> Result<(), StoreError> {
        let mut range = range.clone();
        loop {
            let keys = self.table.keys(&range, 4_096)?;
            let Some(last) = keys.last() else {
                return Ok(());
            };
            range.from = after(last);
            for key in &keys {
                visit(key);
            }
        }
    }

    /// Visits the records of a range, from its end when `backwards`, until the visitor breaks. `first` is how
    /// many are read at first: callers that usually break soon should not pay for more.
    fn each_row(
        &self,
        mut range: KeyRange,
        backwards: bool,
        first: usize,
        visit: &mut dyn FnMut(&Row) -> Result<ControlFlow<()>, StoreError>,
    ) -> Result<(), StoreError> {
        let mut portion = first;
        loop {
            let rows = self.table.scan(&range, backwards, portion)?;
            let Some((last, _)) = rows.last() else {
                return Ok(());
            };
            if backwards {
                range.to.clone_from(last);
            } else {
                range.from = after(last);
            }
            portion = SCAN_ROWS;
            for row in &rows {
                if visit(row)?.is_break() {
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
        match decode(&self.table, key, value) {
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
