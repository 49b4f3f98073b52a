//! The store over any ordered table of records: what a batch means, what reads answer, which
//! failures are final. sled and memory differ in the table only.

mod store;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::de::DeserializeOwned;

use super::batch;
use super::counts;
use super::held::HeldCounts;
use super::keys;
use super::record;
use super::stored::{damaged, payload_of};
use super::table::{Rows, Table};
use super::tally;
use super::{Batch, STORE_VERSION, Shortage, StoreError};
use crate::model::RunId;
#[cfg(test)]
use crate::protocol::Counted;
use crate::protocol::DayCounts;

/// Most records that wait for the next sync; beyond it a lazy write syncs.
const LAZY_ROWS_MAX: usize = 4_096;

/// Most records of counts that one batch writes when all are counted anew.
const COUNTED_ROWS_MAX: usize = 1_000;

/// Whether anything may be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Health {
    Sound,
    Full(Shortage),
    Broken,
}

#[derive(Debug)]
struct Writer {
    health: Health,
    /// How many batches the table holds.
    commits: u64,
    /// Whether anything was applied since the last sync.
    unsynced: bool,
    /// Rows of lazy batches since the last sync; a reopened table may have lost them.
    lazy: Rows,
}

/// Runs for searching, read when somebody first searches; commits go on meanwhile.
#[derive(Debug, Default)]
struct RunIndex {
    /// All of them, once they were read.
    runs: Option<BTreeSet<RunId>>,
    /// Those of batches that were written while the others are read.
    meanwhile: Option<Meanwhile>,
}

#[derive(Debug, Default)]
struct Meanwhile {
    new: Vec<RunId>,
    gone: Vec<RunId>,
}

impl RunIndex {
    fn learn(&mut self, news: &[RunId]) {
        if let Some(runs) = &mut self.runs {
            runs.extend(news);
        }
        if let Some(meanwhile) = &mut self.meanwhile {
            meanwhile.new.extend(news);
        }
    }

    fn forget(&mut self, gone: &[RunId]) {
        if let Some(runs) = &mut self.runs {
            for run in gone {
                runs.remove(run);
            }
        }
        if let Some(meanwhile) = &mut self.meanwhile {
            meanwhile.gone.extend(gone);
        }
    }
}

/// The store over a table.
#[derive(Debug)]
pub(super) struct Keyed<T> {
    table: T,
    writer: Mutex<Writer>,
    known: Mutex<RunIndex>,
    /// Held by whoever reads all runs, so that it is done once.
    reading: Mutex<()>,
    held: HeldCounts,
    written: AtomicU64,
}

impl<T: Table> Keyed<T> {
    /// The store over an opened table, whose version is checked and whose content is durable.
    pub(super) fn over(table: T) -> Result<Keyed<T>, StoreError> {
        let version: u32 = read(&table, keys::VERSION)?.ok_or_else(|| StoreError::Corrupt {
            path: table.path().to_owned(),
            reason: "it has no version".to_owned(),
        })?;
        if version > STORE_VERSION {
            return Err(StoreError::Newer {
                path: table.path().to_owned(),
                found: version,
            });
        }
        let commits = read(&table, keys::COMMITS)?.unwrap_or(0);
        Ok(Keyed::holding(table, commits))
    }

    /// The store over a table that holds so many batches.
    pub(super) fn holding(table: T, commits: u64) -> Keyed<T> {
        Keyed {
            table,
            writer: Mutex::new(Writer {
                health: Health::Sound,
                commits,
                unsynced: false,
                lazy: Rows::new(),
            }),
            known: Mutex::new(RunIndex::default()),
            reading: Mutex::new(()),
            held: HeldCounts::default(),
            written: AtomicU64::new(0),
        }
    }

    /// The table.
    pub(super) fn table(&self) -> &T {
        &self.table
    }

    /// How many batches were ever written.
    pub(super) fn commits(&self) -> u64 {
        lock(&self.writer).commits
    }

    /// Forgets that a write failed, as a process that starts anew does.
    pub(super) fn forget_failure(&self) -> Result<(), StoreError> {
        let mut writer = lock(&self.writer);
        writer.health = Health::Sound;
        writer.lazy.clear();
        writer.commits = read(&self.table, keys::COMMITS)?.unwrap_or(0);
        *lock(&self.known) = RunIndex::default();
        self.held.forget();
        Ok(())
    }

    fn write_batch(&self, batch: &Batch, durable: bool) -> Result<(), StoreError> {
        self.guarded(|writer| {
            let plan = batch::plan(&self.table, batch)?;
            // Payloads first: no record may name a file that is not durable. A crash in between leaves files that
            // nothing names, which `verify` lists and nothing else reads.
            self.table.write_payloads(&plan.spills)?;
            // What a run leaves goes with a sync: its payloads may not be missed by a record that comes back.
            self.write(writer, plan.rows, durable || !plan.forgotten.is_empty())?;
            lock(&self.known).learn(&plan.runs);
            self.drop_payloads(&plan.forgotten);
            Ok(())
        })
    }

    /// Payloads of runs that are forgotten go; those of a crash in between are swept later.
    fn drop_payloads(&self, forgotten: &[RunId]) {
        lock(&self.known).forget(forgotten);
        for run in forgotten {
            if let Err(error) = self.table.remove_payloads(&run.to_string()) {
                tracing::warn!(%run, %error, "payloads of a forgotten run are left");
            }
        }
    }

    /// Counts what the counts do not say that they have: an earlier version wrote the store.
    pub(super) fn count_where_needed(&self) -> Result<(), StoreError> {
        if self.table.get(&[keys::RUN_HOURS])?.is_none() {
            let has_days = self.table.get(&[keys::COUNTS])?.is_some();
            let all = counts::lacking(&self.table, has_days)?;
            let row = |(key, counts): (Vec<u8>, DayCounts)| {
                let json = serde_json::to_vec(&counts).unwrap_or_default();
                let value = record::inline(&key, &json);
                (key, Some(value))
            };
            let rows = all.into_iter().map(row).collect();
            self.write_counted(&[keys::COUNTS, keys::RUN_HOURS], rows)?;
        }
        if self.table.get(&[keys::HOURS])?.is_none() {
            let rows = tally::of_everything(&self.table)?;
            self.write_counted(&[keys::HOURS], rows)?;
        }
        Ok(())
    }

    /// Writes what was counted, and at last that it was.
    pub(super) fn write_counted(&self, kinds: &[u8], rows: Rows) -> Result<(), StoreError> {
        self.guarded(|writer| {
            let mut part = Rows::new();
            for (key, value) in rows {
                part.insert(key, value);
                if part.len() >= COUNTED_ROWS_MAX {
                    self.write(writer, std::mem::take(&mut part), false)?;
                }
            }
            for kind in kinds {
                let marker = vec![*kind];
                part.insert(marker.clone(), Some(record::inline(&marker, b"true")));
            }
            self.write(writer, part, true)
        })
    }

    /// The next token, greater than `floor` too.
    pub(super) fn raise_fence(&self, floor: u64) -> Result<u64, StoreError> {
        self.guarded(|writer| {
            let last: u64 = read(&self.table, keys::FENCE)?.unwrap_or(0);
            let next = last.max(floor).saturating_add(1);
            let value = record::inline(keys::FENCE, next.to_string().as_bytes());
            let rows = Rows::from([(keys::FENCE.to_vec(), Some(value))]);
            self.write(writer, rows, true)?;
            Ok(next)
        })
    }

    fn reopen_locked(&self, writer: &mut Writer) -> Result<(), StoreError> {
        self.table.reopen()?;
        writer.commits = read(&self.table, keys::COMMITS)?.unwrap_or(0);
        // The batch that found no space may lie in the table without being durable, so it is synced even where
        // nothing is written again.
        writer.unsynced = true;
        let lazy = writer.lazy.clone();
        self.write(writer, lazy, true)
    }

    /// Runs a write, unless an earlier one failed, and remembers how it failed.
    fn guarded<R>(
        &self,
        write: impl FnOnce(&mut Writer) -> Result<R, StoreError>,
    ) -> Result<R, StoreError> {
        let mut writer = lock(&self.writer);
        match writer.health {
            Health::Sound => {}
            Health::Full(shortage) => return Err(self.full(shortage)),
            Health::Broken => return Err(self.broken()),
        }
        let result = write(&mut writer);
        if let Err(error) = &result {
            writer.health = health_after(error, Health::Sound);
            self.held.forget();
        }
        result
    }

    fn write(&self, writer: &mut Writer, mut rows: Rows, durable: bool) -> Result<(), StoreError> {
        let lazy_max = writer.lazy.len() + rows.len() > LAZY_ROWS_MAX;
        if !rows.is_empty() {
            let commits = writer.commits.saturating_add(1);
            let count = record::inline(keys::COMMITS, commits.to_string().as_bytes());
            // The count is one of the rows, so that what a crash leaves tells how many batches it holds.
            rows.insert(keys::COMMITS.to_vec(), Some(count));
            // Before it is tried: what fails may have been written all the same.
            writer.unsynced = true;
            self.table.apply(&rows)?;
            self.held.learn(&self.table, &rows)?;
            writer.commits = commits;
            if !durable {
                writer.lazy.append(&mut rows);
            }
            self.written.fetch_add(1, Ordering::Relaxed);
        }
        if writer.unsynced && (durable || lazy_max) {
            self.table.sync(writer.commits)?;
            writer.unsynced = false;
            writer.lazy.clear();
        }
        Ok(())
    }

    /// As an earlier version left it: without counts, or with those of days alone.
    #[cfg(test)]
    pub(super) fn forget_counts(&self, has_days: bool) -> Result<(), StoreError> {
        let mut rows = Rows::new();
        let is_of_all = |key: &[u8]| matches!(keys::counts_of(key), Some((_, Counted::All)));
        for kind in [keys::COUNTS, keys::HOURS, keys::RUN_HOURS, keys::NEWEST] {
            let mut keys = self.table.keys(&keys::KeyRange::kind(kind), usize::MAX)?;
            keys.retain(|key| !has_days || kind != keys::COUNTS || is_of_all(key));
            rows.extend(keys.into_iter().map(|key| (key, None)));
        }
        self.guarded(|writer| self.write(writer, rows, true))
    }

    fn full(&self, shortage: Shortage) -> StoreError {
        StoreError::Full {
            path: self.table.path().to_owned(),
            shortage,
        }
    }

    fn broken(&self) -> StoreError {
        StoreError::Broken {
            path: self.table.path().to_owned(),
            source: std::io::Error::other("an earlier write failed"),
        }
    }
}

/// The records of a table that holds nothing yet.
pub(super) fn first_rows() -> Rows {
    let mut rows = Rows::new();
    let mut put = |key: &[u8], json: String| {
        rows.insert(key.to_vec(), Some(record::inline(key, json.as_bytes())));
    };
    put(keys::VERSION, STORE_VERSION.to_string());
    put(keys::COMMITS, "0".to_owned());
    put(keys::FENCE, "0".to_owned());
    put(&[keys::COUNTS], "true".to_owned());
    put(&[keys::HOURS], "true".to_owned());
    put(&[keys::RUN_HOURS], "true".to_owned());
    rows
}

/// What remains possible after an error; `refused` is how it was before.
fn health_after(error: &StoreError, refused: Health) -> Health {
    match error {
        StoreError::Full { shortage, .. } => Health::Full(*shortage),
        StoreError::Refused { .. } => refused,
        StoreError::Broken { .. }
        | StoreError::Gone { .. }
        | StoreError::Corrupt { .. }
        | StoreError::Newer { .. }
        | StoreError::Busy { .. } => Health::Broken,
    }
}

/// A store that leads to a [`Keyed`], alone or shared.
pub(super) trait OverTable: Send + Sync {
    /// The table.
    type Table: Table;
    /// The store over it.
    fn keyed(&self) -> &Keyed<Self::Table>;
}

/// Reads and parses the record under a key.
pub(super) fn read<V: DeserializeOwned>(
    table: &impl Table,
    key: &[u8],
) -> Result<Option<V>, StoreError> {
    match table.get(key)? {
        Some(value) => decode(table, key, &value).map(Some),
        None => Ok(None),
    }
}

/// Parses a record.
pub(super) fn decode<V: DeserializeOwned>(
    table: &impl Table,
    key: &[u8],
    value: &[u8],
) -> Result<V, StoreError> {
    let payload = payload_of(table, key, value)?;
    record::from_json(&payload).map_err(|e| damaged(table, key, &e))
}

/// A thread that panicked while it held the lock left nothing half done: what it guards is changed
/// by single assignments.
pub(super) fn lock<V>(mutex: &Mutex<V>) -> MutexGuard<'_, V> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
