//! Reading everything in a store and telling what is wrong with it.

use std::collections::BTreeSet;
use std::path::Path;

use serde::de::DeserializeOwned;

use super::StoreError;
use super::batch::KeyRecord;
use super::files::{TEMPORARY_SUFFIX, each_file};
use super::half_day::HalfDay;
use super::keys::{self, KeyRange, Kind};
use super::payload::PAYLOADS;
use super::record::{self, Body};
use super::sled_error::from_file;
use super::stored::{after, damaged, payload_of};
use super::table::{Row, Table};
use super::witness::Said;
use crate::machine::{Entry, Run};
use crate::model::legible;
use crate::model::schedule::{ScheduleState, SlotRow};
use crate::model::{FailedPush, Notices, RunId, RunSpec, WebSession};
use crate::protocol::{DayCounts, RunSummary};

/// Most faults and most files that a report lists; all are counted.
pub const LISTED_MAX: usize = 100;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct StoreDamage {
    /// The run that it is about, where it is about one.
    pub run: Option<RunId>,
    /// What was found.
    pub reason: String,
}

/// What reading everything showed.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct VerifyReport {
    /// Batches that the store holds.
    #[serde(rename = "commit_count")]
    pub commits: u64,
    /// All records.
    #[serde(rename = "record_count")]
    pub records: u64,
    /// Runs with a specification.
    #[serde(rename = "run_count")]
    pub runs: u64,
    /// Runs that are not closed.
    #[serde(rename = "active_count")]
    pub active: u64,
    /// Runs with a line for lists.
    #[serde(rename = "finished_count")]
    pub finished: u64,
    /// Events in all journals.
    #[serde(rename = "event_count")]
    pub events: u64,
    /// Idempotency keys.
    #[serde(rename = "key_count")]
    pub keys: u64,
    /// Schedules that are remembered.
    #[serde(rename = "schedule_count")]
    pub schedules: u64,
    /// Rows of the ledger of slots.
    #[serde(rename = "slot_count")]
    pub slots: u64,
    /// Payload files that records name.
    #[serde(rename = "payload_file_count")]
    pub payload_files: u64,
    /// Files that no record names: of batches that were never committed. At most [`LISTED_MAX`].
    pub orphans: Vec<String>,
    /// How many such files there are.
    pub orphan_count: u64,
    /// What is wrong, at most [`LISTED_MAX`].
    pub faults: Vec<StoreDamage>,
    /// How many things are wrong.
    pub fault_count: u64,
}

impl VerifyReport {
    fn fault(&mut self, run: Option<RunId>, reason: String) {
        self.fault_count += 1;
        if self.faults.len() < LISTED_MAX {
            self.faults.push(StoreDamage { run, reason });
        }
    }
}

/// What is known while the records pass by.
#[derive(Default)]
struct RecordWalk {
    report: VerifyReport,
    active: BTreeSet<RunId>,
    specs: BTreeSet<RunId>,
    named: BTreeSet<String>,
    /// The run whose events pass by, and they; none once one could not be read.
    journal: Option<(RunId, Option<Vec<Entry>>)>,
}

/// Reads every record of `table`, whose payloads lie in `directory`.
pub(super) fn walk(
    table: &impl Table,
    said: Said,
    directory: &Path,
) -> Result<VerifyReport, StoreError> {
    let mut walk = RecordWalk::default();
    let mut range = KeyRange {
        from: Vec::new(),
        to: vec![u8::MAX],
    };
    loop {
        let rows = table.scan(&range, false, 256)?;
        let Some((last, _)) = rows.last() else { break };
        range.from = after(last);
        for row in &rows {
            walk.row(table, row)?;
        }
    }
    walk.end_journal();
    for run in walk.active.difference(&walk.specs) {
        let reason = "it is active and has no specification".to_owned();
        walk.report.fault(Some(*run), reason);
    }
    let mut report = walk.report;
    match said {
        Said::Commits(durable) if durable > report.commits => {
            let held = report.commits;
            report.fault(
                None,
                format!("{durable} commits were synced to disk, but only {held} are present"),
            );
        }
        Said::Nothing | Said::Damaged => {
            report.fault(None, "the witness file is missing or damaged".to_owned());
        }
        Said::Commits(_) | Said::Newer(_) => {}
    }
    report.payload_files = walk.named.len() as u64;
    find_orphans(directory, &walk.named, &mut report).map_err(|e| from_file(table.path(), e))?;
    Ok(report)
}

fn find_orphans(
    directory: &Path,
    named: &BTreeSet<String>,
    report: &mut VerifyReport,
) -> Result<(), super::FileError> {
    let payloads = directory.join(PAYLOADS);
    each_file(&payloads, &mut |path, _| {
        let relative = path.strip_prefix(&payloads).unwrap_or(path);
        let relative = relative.to_string_lossy();
        if relative.ends_with(TEMPORARY_SUFFIX) || !named.contains(relative.as_ref()) {
            report.orphan_count += 1;
            if report.orphans.len() < LISTED_MAX {
                report.orphans.push(relative.into_owned());
            }
        }
    })
}

impl RecordWalk {
    fn row(&mut self, table: &impl Table, (key, value): &Row) -> Result<(), StoreError> {
        self.report.records += 1;
        let Some(kind) = Kind::of(key) else {
            let shown = legible::hex(&key[..key.len().min(32)]);
            self.report
                .fault(None, format!("a record has the unknown key {shown}"));
            return Ok(());
        };
        match kind {
            Kind::Version => drop(self.parse::<u32>(table, key, value, None)?),
            Kind::Fence => drop(self.parse::<u64>(table, key, value, None)?),
            Kind::Commits => {
                self.report.commits = self.parse(table, key, value, None)?.unwrap_or(0);
            }
            Kind::Active(run) => {
                self.report.active += 1;
                self.active.insert(run);
                self.parse::<bool>(table, key, value, Some(run))?;
            }
            Kind::Done(run) => {
                self.report.finished += 1;
                let summary: Option<RunSummary> = self.parse(table, key, value, Some(run))?;
                self.same_run(run, summary.map(|summary| summary.run));
            }
            Kind::Key => {
                self.report.keys += 1;
                let found: Option<KeyRecord> = self.parse(table, key, value, None)?;
                if found.is_some_and(|found| keys::idempotency(&found.key) != *key) {
                    self.report
                        .fault(None, "an idempotency key has another's place".to_owned());
                }
            }
            Kind::Spec(run) => {
                self.report.runs += 1;
                self.specs.insert(run);
                let spec: Option<RunSpec> = self.parse(table, key, value, Some(run))?;
                self.same_run(run, spec.map(|spec| spec.run));
            }
            Kind::Schedule => {
                self.report.schedules += 1;
                self.parse::<ScheduleState>(table, key, value, None)?;
            }
            Kind::Counts | Kind::Hours if key.len() == 1 => {
                self.parse::<bool>(table, key, value, None)?;
            }
            Kind::Counts => drop(self.parse::<DayCounts>(table, key, value, None)?),
            Kind::Hours => drop(self.parse::<HalfDay>(table, key, value, None)?),
            Kind::Newest => drop(self.parse::<RunId>(table, key, value, None)?),
            Kind::FailedPush => drop(self.parse::<FailedPush>(table, key, value, None)?),
            Kind::WebSession => drop(self.parse::<WebSession>(table, key, value, None)?),
            Kind::Notices => {
                self.parse::<Notices>(table, key, value, None)?;
            }
            Kind::Slot(from) => {
                self.report.slots += 1;
                let row: Option<SlotRow> = self.parse(table, key, value, None)?;
                if row.is_some_and(|row| row.from != from) {
                    let reason = format!("{kind} has another's place");
                    self.report.fault(None, reason);
                }
            }
            Kind::Entries(run) => {
                let entries = self.parse::<Vec<Entry>>(table, key, value, Some(run))?;
                self.entries(run, entries);
            }
        }
        Ok(())
    }

    /// Parses a record; what is wrong with it is noted, what stops the walk is an error.
    fn parse<T: DeserializeOwned>(
        &mut self,
        table: &impl Table,
        key: &[u8],
        value: &[u8],
        run: Option<RunId>,
    ) -> Result<Option<T>, StoreError> {
        if let Ok(Body::File(file)) = record::open(key, value) {
            self.named.insert(file.path);
        }
        let parsed = payload_of(table, key, value)
            .and_then(|payload| record::from_json(&payload).map_err(|e| damaged(table, key, &e)));
        match parsed {
            Ok(parsed) => Ok(Some(parsed)),
            Err(StoreError::Corrupt { reason, .. }) => {
                self.report.fault(run, reason);
                Ok(None)
            }
            Err(other) => Err(other),
        }
    }

    fn same_run(&mut self, wanted: RunId, found: Option<RunId>) {
        if let Some(found) = found.filter(|found| *found != wanted) {
            self.report
                .fault(Some(wanted), format!("its record is of run {found}"));
        }
    }

    fn entries(&mut self, run: RunId, entries: Option<Vec<Entry>>) {
        if self
            .journal
            .as_ref()
            .is_none_or(|(current, _)| *current != run)
        {
            self.end_journal();
            self.journal = Some((run, Some(Vec::new())));
        }
        let Some((_, journal)) = &mut self.journal else {
            return;
        };
        match (journal.as_mut(), entries) {
            (Some(known), Some(entries)) => {
                let told = known.last().map_or(0, |last| last.seq.saturating_add(1));
                known.extend(entries.into_iter().filter(|entry| entry.seq >= told));
            }
            _ => *journal = None,
        }
    }

    fn end_journal(&mut self) {
        if let Some((run, Some(entries))) = self.journal.take() {
            self.report.events += entries.len() as u64;
            if let Err(error) = Run::fold(&entries) {
                self.report.fault(Some(run), error.to_string());
            }
        }
    }
}
