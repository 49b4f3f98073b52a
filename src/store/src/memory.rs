//! The store in memory: the same records and rules, faults on request, and power cuts.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::keyed::{Keyed, OverTable, first_rows, lock};
use super::keys::KeyRange;
use super::payload::Spill;
use super::record::FileRef;
use super::table::{Row, Rows, Table};
use super::{Shortage, StoreError};

const PATH: &str = "memory";

/// Which error an injected fault is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InjectedFault {
    /// [`StoreError::Full`].
    Full,
    /// [`StoreError::Broken`].
    Broken,
}

/// How far a failing batch gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultPlace {
    /// Nothing of it is written.
    BeforeApply,
    /// It is written and not durable: a power cut takes it away.
    BeforeSync,
    /// It is durable, and only the answer says otherwise.
    AfterSync,
}

/// The store in memory. Clones share one content, so that a new engine finds what the last one left.
#[derive(Debug, Clone)]
pub struct MemoryStore(Arc<Keyed<MemoryTable>>);

impl OverTable for MemoryStore {
    type Table = MemoryTable;

    fn keyed(&self) -> &Keyed<MemoryTable> {
        &self.0
    }
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> MemoryStore {
        let table = MemoryTable::default();
        lock(&table.content).rows = first_rows()
            .into_iter()
            .filter_map(|(key, value)| Some((key, value?)))
            .collect();
        MemoryStore(Arc::new(Keyed::holding(table, 0)))
    }

    /// Makes the `nth` written batch from now fail, counted from 1; fencing tokens count as batches.
    pub fn fail_nth(&self, nth: u64, fault: InjectedFault, place: FaultPlace) {
        let mut content = lock(&self.0.table().content);
        let at = content.applied + nth;
        content.faults.insert(at, (fault, place));
    }

    /// Ends the process that used the store: what was applied is still there.
    pub fn restart(&self) -> Result<(), StoreError> {
        self.0.forget_failure()
    }

    /// Cuts the power: of the batches applied since the last sync the first `kept` survive, as a disk
    /// that wrote some of them back would have it.
    pub fn power_cut(&self, kept: usize) -> Result<(), StoreError> {
        lock(&self.0.table().content).roll_back_to(kept);
        self.0.forget_failure()
    }
}

#[cfg(test)]
impl MemoryStore {
    /// The table, for tests of what is written to it.
    pub(super) fn table(&self) -> &impl Table {
        self.0.table()
    }

    /// Replaces the content by records from elsewhere; `payload` gives what lies in files.
    pub(super) fn load(&self, rows: impl Iterator<Item = Row>, payload: impl Fn(&str) -> Vec<u8>) {
        let mut content = lock(&self.0.table().content);
        content.rows = rows.collect();
        let mut payloads = BTreeMap::new();
        for (key, value) in &content.rows {
            if let Ok(super::record::Body::File(file)) = super::record::open(key, value) {
                payloads.insert(file.path.clone(), payload(&file.path));
            }
        }
        content.payloads = payloads;
    }
}

impl Default for MemoryStore {
    fn default() -> MemoryStore {
        MemoryStore::new()
    }
}

/// The records, and the faults that they are to meet.
#[derive(Debug, Default)]
pub(super) struct MemoryTable {
    content: Mutex<Content>,
    syncs: AtomicU64,
}

#[derive(Debug, Default)]
struct Content {
    rows: BTreeMap<Vec<u8>, Vec<u8>>,
    payloads: BTreeMap<String, Vec<u8>>,
    /// What the batches since the last sync replaced, oldest first.
    unsynced: Vec<Rows>,
    /// How many batches were to be applied.
    applied: u64,
    faults: BTreeMap<u64, (InjectedFault, FaultPlace)>,
    /// The fault of the batch that is being written.
    due: Option<(InjectedFault, FaultPlace)>,
}

impl Content {
    fn roll_back_to(&mut self, kept: usize) {
        while self.unsynced.len() > kept {
            for (key, value) in self.unsynced.pop().unwrap_or_default() {
                match value {
                    Some(value) => self.rows.insert(key, value),
                    None => self.rows.remove(&key),
                };
            }
        }
        self.unsynced.clear();
    }

    fn fail_at(&mut self, place: FaultPlace) -> Result<(), StoreError> {
        match self.due {
            Some((fault, due)) if due == place => {
                self.due = None;
                let path = PATH.to_owned();
                Err(match fault {
                    InjectedFault::Full => StoreError::Full {
                        path,
                        shortage: Shortage::Disk,
                    },
                    InjectedFault::Broken => StoreError::Broken {
                        path,
                        source: io::Error::other("injected"),
                    },
                })
            }
            _ => Ok(()),
        }
    }
}

impl Table for MemoryTable {
    fn path(&self) -> &str {
        PATH
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(lock(&self.content).rows.get(key).cloned())
    }

    fn scan(
        &self,
        range: &KeyRange,
        backwards: bool,
        limit: usize,
    ) -> Result<Vec<Row>, StoreError> {
        let content = lock(&self.content);
        let rows = content.rows.range(range.from.clone()..range.to.clone());
        let owned = |(key, value): (&Vec<u8>, &Vec<u8>)| (key.clone(), value.clone());
        Ok(if backwards {
            rows.rev().take(limit).map(owned).collect()
        } else {
            rows.take(limit).map(owned).collect()
        })
    }

    fn keys(&self, range: &KeyRange, limit: usize) -> Result<Vec<Vec<u8>>, StoreError> {
        let content = lock(&self.content);
        let rows = content.rows.range(range.from.clone()..range.to.clone());
        Ok(rows.take(limit).map(|(key, _)| key.clone()).collect())
    }

    fn write_payloads(&self, spills: &[Spill]) -> Result<(), StoreError> {
        let mut content = lock(&self.content);
        for spill in spills {
            let path = spill.file.path.clone();
            content.payloads.insert(path, spill.payload.clone());
        }
        Ok(())
    }

    fn read_payload(&self, file: &FileRef) -> Result<Vec<u8>, StoreError> {
        let corrupt = |reason| StoreError::Corrupt {
            path: PATH.to_owned(),
            reason,
        };
        let content = lock(&self.content);
        let payload = content
            .payloads
            .get(&file.path)
            .ok_or_else(|| corrupt(format!("payload `{}` is missing", file.path)))?;
        match file.mismatch(payload) {
            Some(reason) => Err(corrupt(reason)),
            None => Ok(payload.clone()),
        }
    }

    fn remove_payloads(&self, run: &str) -> Result<(), StoreError> {
        let mut content = lock(&self.content);
        content
            .payloads
            .retain(|path, _| path.split('/').next() != Some(run));
        Ok(())
    }

    fn runs_with_payloads(&self) -> Result<Vec<String>, StoreError> {
        let content = lock(&self.content);
        let runs = content
            .payloads
            .keys()
            .filter_map(|path| path.split('/').next());
        Ok(runs.map(str::to_owned).collect())
    }

    fn apply(&self, rows: &Rows) -> Result<(), StoreError> {
        let mut content = lock(&self.content);
        content.applied += 1;
        let number = content.applied;
        content.due = content.faults.remove(&number);
        content.fail_at(FaultPlace::BeforeApply)?;
        let mut former = Rows::new();
        for (key, value) in rows {
            let replaced = match value {
                Some(value) => content.rows.insert(key.clone(), value.clone()),
                None => content.rows.remove(key),
            };
            former.insert(key.clone(), replaced);
        }
        content.unsynced.push(former);
        Ok(())
    }

    fn sync(&self, _commits: u64) -> Result<(), StoreError> {
        let mut content = lock(&self.content);
        content.fail_at(FaultPlace::BeforeSync)?;
        content.unsynced.clear();
        self.syncs.fetch_add(1, Ordering::Relaxed);
        content.fail_at(FaultPlace::AfterSync)
    }

    fn reopen(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn file_bytes(&self) -> Result<u64, StoreError> {
        Ok(0)
    }

    fn held_bytes(&self) -> Result<u64, StoreError> {
        Ok(0)
    }

    fn let_go(&self) -> Result<(), StoreError> {
        lock(&self.content).unsynced.clear();
        Ok(())
    }

    fn compact(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }
}
