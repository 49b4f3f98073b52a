//! The scheduler: when each schedule is due, what is written of that, and which runs it leads to.
//!
//! It decides and performs nothing. The core loop asks it, with the time and the store as arguments, and carries out
//! what it answers within the same turn: a slot's ledger row, its schedule's state and its run are one commit.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::model::schedule::{Occurrence, Schedule, ScheduleState, SlotRow, SlotStatus};
use crate::model::{Notice, RunId, Timestamp};
use crate::pool::ProbeRequest;
use crate::request::Submission;
use crate::store::{Store, Write};
use crate::stored_schedules::{StoredSchedule, StoredSchedules};

mod active;
mod alarm;
mod ledger;
mod manual;
mod occurrences;
mod resident;
mod slots;
#[cfg(test)]
mod tests;

pub(crate) use active::enabled;
use alarm::Alarms;
pub(crate) use ledger::blocked;
pub(crate) use occurrences::End;
use resident::{ActiveSchedule, ResidentSchedule};
use slots::Presence;

/// After how long a slot is tried again that finds the queue full or meets a fault, in milliseconds.
const TRY_AGAIN_MS: u64 = 5_000;

/// Most schedules that one turn looks at, some milliseconds; the others follow in the next. A slot takes three
/// turns until its run starts.
pub(crate) const EVALUATIONS_MAX: usize = 200;

/// So many schedules that have just become active are looked at however many are due.
const FIRST_EVALUATIONS_LEAST: usize = 20;

/// What the scheduler is told with each question.
#[derive(Clone, Copy)]
pub(crate) struct SchedulerContext<'a> {
    /// The time.
    pub now: Timestamp,
    /// By which time things expire.
    pub expiry: Timestamp,
    /// What is committed. It is only read.
    pub store: &'a dyn Store,
    /// The runs there are.
    pub runs: &'a dyn RunStates,
    /// What this turn has gathered for its commit.
    pub uncommitted: &'a [Write],
    /// Whether the engine ends, so that nothing new starts.
    pub is_draining: bool,
    /// How long rows of slots are kept, in milliseconds.
    pub slots_kept_ms: u64,
}

/// What the scheduler asks about runs.
pub(crate) trait RunStates {
    /// Whether a run waits in the queue; `None`: there is no such run any more.
    fn is_waiting(&self, run: RunId) -> Option<bool>;
}

/// What the core loop has to do, in the order in which it was decided.
#[derive(Debug)]
pub(crate) enum Instruction {
    /// Write it in this turn's commit.
    Write(Write),
    /// Make the run of an occurrence once the turn is committed: what it follows is stored then. The result goes to
    /// [`Scheduler::on_prepared`].
    Prepare(Arc<Schedule>, Occurrence),
    /// Look at what a schedule waits for. The result goes to [`Scheduler::on_probed`].
    Probe(Arc<Schedule>, ProbeRequest),
    /// Enqueue the run of a slot, and say in the same turn what came of it: [`Scheduler::on_enqueued`] or
    /// [`Scheduler::on_refused`].
    Enqueue(Box<Submission>, SlotRun),
    /// Forget a run that was made and is not wanted.
    Forget(RunId),
    /// Tell people of a schedule.
    Notify(Arc<Schedule>, Notice),
}

impl Instruction {
    fn write(&self) -> Option<&Write> {
        match self {
            Instruction::Write(write) => Some(write),
            _ => None,
        }
    }
}

/// A run that is to be enqueued for a slot.
#[derive(Debug)]
pub(crate) struct SlotRun {
    pub schedule: Arc<str>,
    /// Other runs of the schedule, which are cancelled for it.
    pub cancels: Vec<RunId>,
    record: SlotRecord,
}

/// What is recorded once the run is in the queue.
#[derive(Debug)]
enum SlotRecord {
    /// The slot was due.
    Due { slot: Timestamp, status: SlotStatus },
    /// A person asked for it.
    Asked {
        state: Box<ScheduleState>,
        rows: Vec<SlotRow>,
    },
}

/// The owner of every schedule.
#[derive(Default)]
pub(crate) struct Scheduler {
    /// All that are active.
    active: BTreeMap<Arc<str>, ActiveSchedule>,
    /// Those of them to which something happens.
    resident: BTreeMap<Arc<str>, Box<ResidentSchedule>>,
    /// Which schedules follow a skill; its address is in lower case.
    followers: BTreeMap<String, Vec<String>>,
    /// What the store has of schedules whose definitions are not there.
    known: BTreeMap<String, StoredSchedule>,
    /// While an engine starts: those that go on with the state that the store has of them, with their cursors.
    going_on: HashMap<Arc<str>, Timestamp>,
    /// When each is looked at; of those due at once the first of every worker, then the second of every worker.
    wakes: BTreeSet<(Timestamp, u32, Arc<str>)>,
    /// Those of which it is not known when they are due, by their cursors: what was due last is likely due soon.
    /// They stand behind those whose time has come, for after a start there may be very many.
    unseen: BTreeSet<(Reverse<Timestamp>, Arc<str>)>,
    /// How many of them were looked at since there were none.
    first_evaluations: usize,
    presence: Presence,
    alarms: Alarms,
    /// What was decided and is not carried out yet.
    instructions: Vec<Instruction>,
}

impl Scheduler {
    /// With what is stored.
    pub(crate) fn new(known: StoredSchedules) -> Scheduler {
        Scheduler {
            known: known.others,
            going_on: known.going_on,
            ..Scheduler::default()
        }
    }

    /// What was decided since it was asked last.
    pub(crate) fn take_instructions(&mut self) -> Vec<Instruction> {
        std::mem::take(&mut self.instructions)
    }

    /// The earliest wall time at which it has something to do; the beginning of time: at once.
    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        if !self.are_seen() {
            return Some(Timestamp::default());
        }
        let slot = self.wakes.first().map(|(wake, ..)| *wake);
        slot.into_iter().chain(self.alarms.next_wake()).min()
    }

    /// Whether it is known of each when it is due.
    fn are_seen(&self) -> bool {
        self.unseen.is_empty()
    }

    /// The definition of one that is active.
    fn definition(&self, id: &str) -> Option<&Arc<Schedule>> {
        self.active.get(id).map(|one| &one.definition)
    }

    /// The active ones.
    fn ids(&self) -> Vec<Arc<str>> {
        self.active.keys().map(Arc::clone).collect()
    }
}
