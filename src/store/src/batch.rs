//! What a batch means: the records that it writes and removes, worked out before anything is written.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::keys::{self, KeyRange};
use super::payload::Spill;
use super::record::{self, Body, FileRef, INLINE_BYTES_MAX, RecordError};
use super::stored::{after, payload_of, refused};
use super::table::{Rows, Table};
use super::tally::{self, Tally};
use super::{Batch, StoreError, Write, counts};
use crate::machine::Entry;
use crate::model::schedule::SlotRow;
use crate::model::{RunId, RunSpec, Timestamp};
use crate::protocol::{DayCounts, RunSummary};

/// Most idempotency keys that one batch forgets; the rest goes with the next.
pub(super) const FORGOTTEN_KEYS_MAX: usize = 10_000;

/// What a batch writes.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Records.
    pub(super) rows: Rows,
    /// Payloads that must be durable before the records are written.
    pub(super) spills: Vec<Spill>,
    /// Runs that are known from now on.
    pub(super) runs: Vec<RunId>,
    /// Runs that are forgotten.
    pub(super) forgotten: Vec<RunId>,
    /// Counts of slots, which become records at the end.
    tally: Tally,
}

/// The payload of an idempotency key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeyRecord {
    /// The key as it was given.
    pub(super) key: String,
    /// The run that it answers.
    pub(super) run: RunId,
    /// When it was given.
    pub(super) at: Timestamp,
}

/// Works out what `batch` writes to `table`.
pub(super) fn plan(table: &impl Table, batch: &Batch) -> Result<Plan, StoreError> {
    let mut plan = Plan::default();
    // Specifications come first wherever they stand: a run cannot end before it is accepted, and only
    // so does a batch that says otherwise mean the same when it is applied again.
    for write in &batch.writes {
        if let Write::Spec(spec) = write {
            plan.spec(table, spec)?;
        }
    }
    for (run, entries) in journals(batch) {
        plan.entries(table, run, &entries)?;
    }
    for write in &batch.writes {
        plan.write(table, write)?;
    }
    let counted = std::mem::take(&mut plan.tally).rows(table)?;
    plan.rows.extend(counted);
    Ok(plan)
}

/// The events of a batch, those of one run that follow each other together.
fn journals(batch: &Batch) -> Vec<(RunId, Vec<&Entry>)> {
    let mut groups: Vec<(RunId, Vec<&Entry>)> = Vec::new();
    let mut last_of: BTreeMap<RunId, usize> = BTreeMap::new();
    for write in &batch.writes {
        let Write::Entries { run, entries } = write else {
            continue;
        };
        for entry in entries {
            let follows = last_of.get(run).copied().filter(|&at| {
                let last = groups[at].1.last();
                last.is_some_and(|last| last.seq.checked_add(1) == Some(entry.seq))
            });
            if let Some(at) = follows {
                groups[at].1.push(entry);
            } else {
                last_of.insert(*run, groups.len());
                groups.push((*run, vec![entry]));
            }
        }
    }
    groups
}

impl Plan {
    /// The first specification of a run stands: written again, by the batch tried again or by mistake,
    /// it must not make a closed run active.
    fn spec(&mut self, table: &impl Table, spec: &RunSpec) -> Result<(), StoreError> {
        let key = keys::spec(spec.run);
        if self.lookup(table, &key)?.is_none() {
            self.put(table, key, Some((spec.run, "spec")), spec)?;
            let active = keys::of_run(keys::ACTIVE, spec.run);
            self.put(table, active, None, &true)?;
            self.runs.push(spec.run);
        }
        Ok(())
    }

    fn write(&mut self, table: &impl Table, write: &Write) -> Result<(), StoreError> {
        match write {
            Write::Spec(_) | Write::Entries { .. } => {}
            Write::Finished(summary) => {
                let key = keys::of_run(keys::DONE, summary.run);
                self.count(table, &key, summary)?;
                self.put(table, key, Some((summary.run, "summary")), summary.as_ref())?;
                self.newest(table, summary)?;
                self.ended(table, summary)?;
                self.runs.push(summary.run);
            }
            Write::Closed(run) => {
                self.rows.insert(keys::of_run(keys::ACTIVE, *run), None);
            }
            Write::Key { key, run, at } => {
                let record = KeyRecord {
                    key: key.clone(),
                    run: *run,
                    at: *at,
                };
                self.put(table, keys::idempotency(key), Some((*run, "key")), &record)?;
            }
            Write::ForgetKeys(before) => self.forget_keys(table, *before)?,
            Write::Schedule { id, state } => {
                self.put(table, keys::schedule(id), None, state.as_ref())?;
            }
            Write::Slot { schedule, row } => {
                let key = self.tallied(table, schedule, row.from, Some(row))?;
                self.put(table, key, None, row)?;
            }
            Write::UndoSlot { schedule, from } => {
                let key = self.tallied(table, schedule, *from, None)?;
                self.rows.insert(key, None);
            }
            Write::DropSlot { schedule, from } => {
                self.rows.insert(keys::slot(schedule, *from), None);
            }
            Write::Forget(run) => self.forget(table, *run)?,
            Write::ForgetSchedule(id) => {
                self.rows.insert(keys::schedule(id), None);
            }
            Write::ForgetCounts(before) => {
                let older = table.keys(&KeyRange::counts_before(before), FORGOTTEN_KEYS_MAX)?;
                self.rows.extend(older.into_iter().map(|key| (key, None)));
            }
            Write::ForgetHours(before) => {
                let old = tally::before(table, *before, FORGOTTEN_KEYS_MAX)?;
                self.rows.extend(old.into_iter().map(|key| (key, None)));
            }
            Write::FailedPush(push) => {
                self.put(table, keys::failed_push(&push.key()), None, push.as_ref())?;
            }
            Write::EndFailedPush(key) => drop(self.rows.insert(keys::failed_push(key), None)),
            Write::WebSession(session) => {
                let key = keys::web_session(&session.token_digest);
                self.put(table, key, None, session.as_ref())?;
            }
            Write::EndWebSession(digest) => drop(self.rows.insert(keys::web_session(digest), None)),
            Write::Notices(notices) if notices.is_over() => {
                self.rows.insert(keys::notices(&notices.subject()), None);
            }
            Write::Notices(notices) => {
                self.put(
                    table,
                    keys::notices(&notices.subject()),
                    None,
                    notices.as_ref(),
                )?;
            }
        }
        Ok(())
    }

    /// Counts a row instead of the one that its key has; answers that key.
    fn tallied(
        &mut self,
        table: &impl Table,
        schedule: &str,
        from: Timestamp,
        row: Option<&SlotRow>,
    ) -> Result<Vec<u8>, StoreError> {
        let key = keys::slot(schedule, from);
        let former = self.slot(table, &key)?;
        self.tally.row(table, schedule, (former.as_ref(), row))?;
        Ok(key)
    }

    /// Cuts the events into records that fit; an event that does not fit alone goes into a file.
    fn entries(
        &mut self,
        table: &impl Table,
        run: RunId,
        entries: &[&Entry],
    ) -> Result<(), StoreError> {
        let mut rest = entries;
        while let Some(first) = rest.first() {
            let (taken, payload) = fitting(table, rest)?;
            let key = keys::entries(run, first.seq);
            if !self.holds_as_many(table, &key, taken)? {
                let stem = format!("entries-{:05}", first.seq);
                self.put_payload(table, key, Some((run, &stem)), payload)?;
            }
            rest = &rest[taken..];
        }
        Ok(())
    }

    /// Whether the record under `key` holds at least `count` events already. A record that does not
    /// parse holds none: what replaces it is what it was meant to be.
    fn holds_as_many(
        &self,
        table: &impl Table,
        key: &[u8],
        count: usize,
    ) -> Result<bool, StoreError> {
        let Some(record) = self.lookup(table, key)? else {
            return Ok(false);
        };
        match payload_of(table, key, &record) {
            Ok(payload) => {
                Ok(record::from_json::<Vec<Entry>>(&payload)
                    .is_ok_and(|stored| stored.len() >= count))
            }
            Err(StoreError::Corrupt { reason, .. }) => {
                tracing::warn!(%reason, "a damaged record is replaced by what it was meant to be");
                Ok(false)
            }
            Err(other) => Err(other),
        }
    }

    /// A line counts on its day; one that replaces another counts instead of it. So a batch that is applied twice
    /// counts once.
    fn count(
        &mut self,
        table: &impl Table,
        key: &[u8],
        run: &RunSummary,
    ) -> Result<(), StoreError> {
        let former = match self.lookup(table, key)? {
            Some(value) => counts::line(table, key, &value)?,
            None => None,
        };
        if former.as_ref() == Some(run) {
            return Ok(());
        }
        if let Some(former) = &former {
            self.count_one(table, former, DayCounts::take_back)?;
        }
        self.tally.end(table, former.as_ref(), run)?;
        self.count_one(table, run, DayCounts::add)
    }

    /// The row under a key; one that is damaged counts nothing.
    fn slot(&self, table: &impl Table, key: &[u8]) -> Result<Option<SlotRow>, StoreError> {
        let stored = self.lookup(table, key)?;
        let payload = stored.map(|value| payload_of(table, key, &value));
        match payload.transpose() {
            Ok(payload) => Ok(payload.and_then(|payload| record::from_json(&payload).ok())),
            Err(StoreError::Corrupt { .. }) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// The row of a run's slot says how it ended: whoever counts rows need not look at runs.
    fn ended(&mut self, table: &impl Table, run: &RunSummary) -> Result<(), StoreError> {
        let (Some(schedule), Some(slot)) = (&run.schedule, run.slot) else {
            return Ok(());
        };
        let key = keys::slot(schedule, slot);
        let row = self.slot(table, &key)?;
        if let Some(mut row) = row.filter(|row| row.run == Some(run.run)) {
            row.outcome = run
                .outcome
                .as_ref()
                .map(|outcome| outcome.name().to_owned());
            self.put(table, key, None, &row)?;
        }
        Ok(())
    }

    /// Remembers a run as the newest of its skill.
    fn newest(&mut self, table: &impl Table, run: &RunSummary) -> Result<(), StoreError> {
        let key = keys::newest(&run.skill);
        if self
            .newest_under(table, &key)?
            .is_none_or(|newest| newest < run.run)
        {
            self.put(table, key, None, &run.run)?;
        }
        Ok(())
    }

    fn newest_under(&self, table: &impl Table, key: &[u8]) -> Result<Option<RunId>, StoreError> {
        let stored = self.lookup(table, key)?;
        let payload = stored.and_then(|value| payload_of(table, key, &value).ok());
        Ok(payload.and_then(|payload| record::from_json(&payload).ok()))
    }

    fn count_one(
        &mut self,
        table: &impl Table,
        run: &RunSummary,
        count: fn(&mut DayCounts, &DayCounts),
    ) -> Result<(), StoreError> {
        for key in counts::keys_of(run) {
            let mut counts = match self.lookup(table, &key)? {
                Some(value) => counts::read(table, &key, &value)?,
                None => DayCounts::default(),
            };
            count(&mut counts, &DayCounts::of(run));
            self.put(table, key, None, &counts)?;
        }
        Ok(())
    }

    /// An active run stays whatever is asked: something is still to be done or written for it.
    fn forget(&mut self, table: &impl Table, run: RunId) -> Result<(), StoreError> {
        if self
            .lookup(table, &keys::of_run(keys::ACTIVE, run))?
            .is_some()
        {
            tracing::error!(%run, "an active run is not forgotten");
            return Ok(());
        }
        let range = KeyRange::run(run);
        let stored = table.keys(&range, usize::MAX)?;
        self.rows.extend(stored.into_iter().map(|key| (key, None)));
        let key = keys::of_run(keys::DONE, run);
        if let Some(value) = self.lookup(table, &key)?
            && let Some(ended) = counts::line(table, &key, &value)?
        {
            // Runs are forgotten by their age: there is hardly an older one that takes its place.
            let newest = keys::newest(&ended.skill);
            if self.newest_under(table, &newest)? == Some(run) {
                self.rows.insert(newest, None);
            }
        }
        self.rows.insert(key, None);
        self.forgotten.push(run);
        Ok(())
    }

    fn forget_keys(&mut self, table: &impl Table, before: Timestamp) -> Result<(), StoreError> {
        let range = KeyRange::kind(keys::KEY);
        let mut forgotten = 0;
        let mut from = range.from.clone();
        loop {
            let part = KeyRange {
                from,
                to: range.to.clone(),
            };
            let rows = table.scan(&part, false, 1_000)?;
            let Some((last, _)) = rows.last() else { break };
            from = after(last);
            for (key, value) in &rows {
                if forgotten == FORGOTTEN_KEYS_MAX {
                    break;
                }
                if !self.rows.contains_key(key) && is_older(key, value, before) {
                    self.rows.insert(key.clone(), None);
                    forgotten += 1;
                }
            }
        }
        let kind = range.from..range.to;
        for (key, value) in self.rows.range_mut(kind) {
            if value
                .as_ref()
                .is_some_and(|value| is_older(key, value, before))
            {
                *value = None;
            }
        }
        Ok(())
    }

    fn lookup(&self, table: &impl Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        match self.rows.get(key) {
            Some(planned) => Ok(planned.clone()),
            None => table.get(key),
        }
    }

    fn put<T: Serialize>(
        &mut self,
        table: &impl Table,
        key: Vec<u8>,
        spill: Option<(RunId, &str)>,
        value: &T,
    ) -> Result<(), StoreError> {
        let payload = record::to_json(value).map_err(|e| refused(table, &e))?;
        self.put_payload(table, key, spill, payload)
    }

    fn put_payload(
        &mut self,
        table: &impl Table,
        key: Vec<u8>,
        spill: Option<(RunId, &str)>,
        payload: Vec<u8>,
    ) -> Result<(), StoreError> {
        let value = match spill {
            Some((run, stem)) if payload.len() > INLINE_BYTES_MAX => {
                let file = FileRef::name(&run.to_string(), stem, &payload);
                let value = record::in_file(&key, &file).map_err(|e| refused(table, &e))?;
                self.spills.push(Spill { file, payload });
                value
            }
            None if payload.len() > INLINE_BYTES_MAX => {
                let what = keys::Kind::of(&key).map_or_else(String::new, |kind| kind.to_string());
                let why = format!("{what} has {} bytes", payload.len());
                return Err(refused(table, &RecordError::Bound(why)));
            }
            _ => record::inline(&key, &payload),
        };
        self.rows.insert(key, Some(value));
        Ok(())
    }
}

/// The longest beginning of `entries` that fits into a record, at least one, and its payload.
fn fitting(table: &impl Table, entries: &[&Entry]) -> Result<(usize, Vec<u8>), StoreError> {
    let mut payload = vec![b'['];
    let mut taken = 0;
    for entry in entries {
        let json = record::to_json(entry).map_err(|e| refused(table, &e))?;
        // One for the comma or bracket that follows.
        if taken > 0 && payload.len() + json.len() + 1 > INLINE_BYTES_MAX {
            break;
        }
        payload.extend_from_slice(&json);
        payload.push(b',');
        taken += 1;
    }
    if let Some(end) = payload.last_mut() {
        *end = b']';
    }
    Ok((taken, payload))
}

/// A damaged key answers nothing, so it is as good as forgotten.
fn is_older(key: &[u8], value: &[u8], before: Timestamp) -> bool {
    let Ok(Body::Inline(payload)) = record::open(key, value) else {
        return true;
    };
    record::from_json::<KeyRecord>(payload).map_or(true, |stored| stored.at < before)
}
