//! The durable store: one trait, sled behind it, an in-memory implementation, and the files beside it.
//!
//! The trait separates two crashes: what [`Store::commit`] returned `Ok` for survives a power cut;
//! what it did not return for may or may not be there, whole or not at all.
//!
//! What lies in the store's directory:
//!
//! | path | holds |
//! |---|---|
//! | `db/` | sled: one tree, records of at most 4 KiB |
//! | `payload/<run>/` | what is larger, written before the record that names it |
//! | `witness` | the store's version and how many commits are durable |
//! | `id` | which store it is; its workspace knows it too |
//! | `reserve` | space that is given back when the disk is full |
//! | `secrets/<run>.json` | values of sensitive inputs, mode 0600 |
//! | `db.corrupt-<time>/` | a damaged store, moved aside |

use workerctl_core::{machine, model, protocol, schedule, thread};

mod batch;
mod counts;
mod files;
mod flushing;
mod guard;
mod half_day;
mod held;
pub mod identity;
mod keyed;
mod keys;
pub mod lock;
pub mod maintenance;
mod memory;
mod payload;
pub mod places;
pub mod rebuild;
mod record;
pub mod secrets;
mod shortage;
mod sled_compact;
mod sled_error;
mod sled_open;
mod sled_store;
mod sled_table;
mod stored;
mod table;
mod tally;
mod verify;
mod witness;

#[cfg(test)]
mod tests;

pub mod metrics_file;
pub mod thread_files;

pub use shortage::Shortage;

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::machine::Entry;
use crate::model::diagnostic::chain;
use crate::model::schedule::{ScheduleState, SlotRow};
use crate::model::{
    Diagnostic, FailedPush, Kind, Notices, RunId, RunSpec, SkillRef, Timestamp, WebSession,
};
use crate::protocol::{Counted, DayCounts, RunSummary, SlotCounts};

pub use files::{Durability, FileError, write_atomically};
pub use memory::{FaultPlace, InjectedFault, MemoryStore};
pub use sled_open::OpenOptions;
pub use sled_store::SledStore;

/// Version of everything stored; writers refuse newer stores, readers accept older ones for ever.
pub const STORE_VERSION: u32 = 1;

/// One part of a batch. Applying a batch twice changes nothing.
///
/// Parts count in their order, except that specifications and events come before all else.
#[derive(Debug, Clone)]
pub enum Write {
    /// The specification of an accepted run; the run counts as active from here on.
    Spec(Arc<RunSpec>),
    /// Consecutive events of one run.
    Entries {
        /// The run.
        run: RunId,
        /// The events in order.
        entries: Vec<Entry>,
    },
    /// A run has ended: the line that lists show of it. It stays active until [`Write::Closed`].
    Finished(Box<RunSummary>),
    /// Thread and metrics of a finished run are written: it is no longer active.
    Closed(RunId),
    /// A submission's idempotency key.
    Key {
        /// The key.
        key: String,
        /// The run that it answers.
        run: RunId,
        /// When it was given.
        at: Timestamp,
    },
    /// Forgets keys given before this instant.
    ForgetKeys(Timestamp),
    /// What is remembered of a schedule.
    Schedule {
        /// The schedule.
        id: String,
        /// Its state.
        state: Box<ScheduleState>,
    },
    /// A row of the ledger of slots; another with the same first slot goes.
    Slot {
        /// The schedule.
        schedule: String,
        /// The row.
        row: SlotRow,
    },
    /// A row goes for good; its slots stay counted.
    DropSlot {
        /// The schedule.
        schedule: String,
        /// Its first slot.
        from: Timestamp,
    },
    /// A row goes because its slots come again; they are counted then.
    UndoSlot {
        /// The schedule.
        schedule: String,
        /// Its first slot.
        from: Timestamp,
    },
    /// What is to be told of a schedule or a skill; once it is over, nothing is remembered.
    Notices(Box<Notices>),
    /// A run is forgotten: its specification, its journal and its line; one that is active stays. What was counted of
    /// it stays. Only [`Store::commit`] takes it: payloads go once nothing names them.
    Forget(RunId),
    /// The stored state of a schedule is forgotten, its rows and notices apart.
    ForgetSchedule(String),
    /// Counts of days before this one, `2026-11-25`, or of hours before this one, `2026-11-25T05`, go.
    ForgetCounts(String),
    /// Counts of slots go, of the half days that ended before this instant.
    ForgetHours(Timestamp),
    /// The last push of a branch failed.
    FailedPush(Box<FailedPush>),
    /// The push of the branch with this key, [`FailedPush::key`], succeeded or is not wanted any more.
    EndFailedPush(String),
    /// Somebody has logged in to the web page.
    WebSession(Box<WebSession>),
    /// The session of the token with this digest has ended.
    EndWebSession(String),
}

/// What is committed at once, or not at all.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// Its parts in order.
    pub writes: Vec<Write>,
}

/// Why the store did not do it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No space is left; the batch may be tried again after [`Store::reopen`].
    #[error("{shortage} for the store in `{path}`")]
    Full {
        /// The store's directory.
        path: String,
        /// What leaves none.
        shortage: Shortage,
    },
    /// A read, write, flush or sync failed: nothing more may be written; the process is to end and recover.
    #[error("the store in `{path}` could not read or write")]
    Broken {
        /// The store's directory.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Its files were removed or replaced while it was open: what is written to them is lost with this process.
    #[error("the store in `{path}` is gone: its files were removed or replaced while it was open")]
    Gone {
        /// The store's directory.
        path: String,
    },
    /// The store cannot be read.
    #[error("the store in `{path}` is damaged: {reason}")]
    Corrupt {
        /// The store's directory.
        path: String,
        /// What was found.
        reason: String,
    },
    /// A later version wrote it.
    #[error("the store in `{path}` has version {found}; this program reads up to {STORE_VERSION}")]
    Newer {
        /// The store's directory.
        path: String,
        /// Its version.
        found: u32,
    },
    /// Another process has it open.
    #[error("the store in `{path}` is in use by another process")]
    Busy {
        /// The store's directory.
        path: String,
    },
    /// The batch cannot be stored; nothing of it was written and the store goes on.
    #[error("the store in `{path}` refuses the batch: {reason}")]
    Refused {
        /// The store's directory.
        path: String,
        /// What is wrong with the batch.
        reason: String,
    },
}

/// What somebody is told who asked for what cannot be read. A commit that fails is told apart where it is made.
impl From<StoreError> for Diagnostic {
    fn from(error: StoreError) -> Diagnostic {
        Diagnostic::new(Kind::Internal, "store_unreadable", chain(&error))
            .hint("`workerctl store verify` shows what is damaged")
    }
}

/// A record that cannot be read, and that nothing else depends on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Unreadable {
    /// Its first slot, of a row.
    pub from: Option<Timestamp>,
    /// What is wrong with it.
    pub reason: String,
    /// Its bytes.
    pub record: Vec<u8>,
}

/// Counters since the store was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreCounters {
    /// Commits.
    pub commits: u64,
    /// Calls of ours that sync a file or directory to disk; one for a commit of small records.
    pub syncs: u64,
}

/// The durable store of one engine. One writer; reads from any thread.
pub trait Store: Send + Sync {
    /// Writes the batch, whole; on return it is durable against power loss.
    ///
    /// An empty batch makes durable what was written lazily, and costs nothing when there is none.
    fn commit(&self, batch: &Batch) -> Result<(), StoreError>;
    /// Writes the batch without waiting for the disk; reads see it at once.
    ///
    /// After a crash it may be there or not, whole or not at all, until a later [`Store::commit`]
    /// returns `Ok`: then it is as durable as that. For what may be done again, such as
    /// [`Write::Closed`].
    fn commit_lazily(&self, batch: &Batch) -> Result<(), StoreError>;
    /// After [`StoreError::Full`]: frees the reserve, opens again. The caller then commits the same batch again.
    fn reopen(&self) -> Result<(), StoreError>;
    /// A token greater than any handed out before, durable.
    fn next_fence(&self) -> Result<u64, StoreError>;
    /// Runs that have not been closed, oldest first.
    fn active(&self) -> Result<Vec<RunId>, StoreError>;
    /// The specification of a run.
    fn spec(&self, run: RunId) -> Result<Option<RunSpec>, StoreError>;
    /// The journal of a run, in order; empty when there is none.
    fn journal(&self, run: RunId) -> Result<Vec<Entry>, StoreError>;
    /// The line of a finished run.
    fn summary(&self, run: RunId) -> Result<Option<RunSummary>, StoreError>;
    /// Lines of finished runs, newest first, starting below `before`, until the callback breaks.
    fn summaries(
        &self,
        before: Option<RunId>,
        callback: &mut dyn FnMut(RunSummary) -> ControlFlow<()>,
    ) -> Result<(), StoreError>;
    /// All runs known whose id begins or ends with `fragment` (ignoring case), at most `limit`, newest first.
    fn find(&self, fragment: &str, limit: usize) -> Result<Vec<RunId>, StoreError>;
    /// The run that answers an idempotency key, and when it was given.
    fn key(&self, key: &str) -> Result<Option<(RunId, Timestamp)>, StoreError>;
    /// The newest run id ever stored.
    fn newest(&self) -> Result<Option<RunId>, StoreError>;
    /// What is remembered of every schedule, in the order of their ids; a state that cannot be read is
    /// told as such and stops nothing.
    fn schedules(
        &self,
        callback: &mut dyn FnMut(&str, Result<ScheduleState, Unreadable>),
    ) -> Result<(), StoreError>;
    /// What is remembered of one schedule.
    fn schedule(&self, id: &str) -> Result<Option<ScheduleState>, StoreError>;
    /// Rows of a schedule's ledger, newest first, starting below `before`, until the callback breaks; a row
    /// that cannot be read is told as such and stops nothing.
    fn slots(
        &self,
        schedule: &str,
        before: Option<Timestamp>,
        callback: &mut dyn FnMut(Result<SlotRow, Unreadable>) -> ControlFlow<()>,
    ) -> Result<(), StoreError>;
    /// What is to be told of every schedule and skill; a record that cannot be read is told as such and stops
    /// nothing.
    fn notices(
        &self,
        callback: &mut dyn FnMut(Result<Notices, Unreadable>),
    ) -> Result<(), StoreError>;
    /// Calls back with every branch whose last push failed, or with a record that cannot be read.
    fn failed_pushes(
        &self,
        callback: &mut dyn FnMut(Result<FailedPush, Unreadable>),
    ) -> Result<(), StoreError>;
    /// Sessions of the web page that have not been ended; a record that cannot be read is told as such and stops nothing.
    fn web_sessions(
        &self,
        callback: &mut dyn FnMut(Result<WebSession, Unreadable>),
    ) -> Result<(), StoreError>;
    /// What was counted on a day, `2026-11-25`, or in an hour, `2026-11-25T05`, of subjects whose keys begin so.
    fn counts(
        &self,
        at: &str,
        of: &str,
        callback: &mut dyn FnMut(Counted, DayCounts),
    ) -> Result<(), StoreError>;
    /// What was counted of slots from an instant up to, not including, another one: of all schedules, or of those of a
    /// worker, by half hours.
    fn slot_counts(
        &self,
        worker: Option<&str>,
        from: Timestamp,
        to: Timestamp,
        callback: &mut dyn FnMut(Timestamp, SlotCounts),
    ) -> Result<(), StoreError>;
    /// The newest run of a skill that has ended; it may have been forgotten.
    fn newest_of(&self, skill: &SkillRef) -> Result<Option<RunId>, StoreError>;
    /// Removes files of payloads of runs that were accepted before this instant and are not known: a crash between
    /// forgetting a run and removing its files left them. Answers for how many runs.
    fn sweep_payloads(&self, before: Timestamp) -> Result<u32, StoreError>;
    /// Bytes of the database's file.
    fn file_bytes(&self) -> Result<u64, StoreError>;
    /// Bytes of all keys and records; every one is read for that.
    fn held_bytes(&self) -> Result<u64, StoreError>;
    /// Gives memory back after much was read: sled keeps far more than its cache, until it is opened again. Commits and
    /// reads wait meanwhile, for about as long as a start takes.
    fn let_go(&self) -> Result<(), StoreError>;
    /// Gives space back to the file system: what the database holds is written into a new one that takes its place.
    ///
    /// Commits wait meanwhile, reads do not. What was acknowledged stays durable whenever the process ends.
    /// [`StoreError::Full`]: there is no space for it now, and everything is as it was.
    fn compact(&self) -> Result<(), StoreError>;
    /// Counters since the store was opened.
    fn counters(&self) -> StoreCounters;
}
