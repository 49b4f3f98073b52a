//! The scheduler by itself: a store in memory, runs that only wait or go on, times as arguments.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::*;
use crate::clock::FakeClock;
use crate::core::tests::bench::FakeDesk;
use crate::core::tests::schedules::{HOUR_MS, hourly, statuses};
use crate::model::outcome::Outcome;
use crate::model::schedule::{Overlap, Policy};
use crate::model::{Diagnostic, Kind, RunSpec};
use crate::prepares::Prepares;
use crate::store::{Batch, MemoryStore};
use crate::stored_schedules::stored_state;

impl Scheduler {
    /// What may leave memory has been committed.
    pub(crate) fn assert_stored(&self, store: &dyn Store) {
        for (id, scheduled) in &self.resident {
            assert_eq!(stored_state(store, id).unwrap(), scheduled.state, "{id}");
        }
    }

    /// Schedules in the order in which they are looked at.
    pub(crate) fn in_turn(&self) -> Vec<Arc<str>> {
        self.wakes.iter().map(|(.., id)| Arc::clone(id)).collect()
    }

    /// When each active one is looked at again.
    pub(crate) fn wakes_in_force(&self) -> impl Iterator<Item = (&str, Option<Timestamp>)> {
        self.active.iter().map(|(id, one)| (&**id, one.wake))
    }

    /// Whether somebody looks at what a schedule waits for.
    pub(crate) fn is_looking(&self) -> bool {
        let mut all = self.resident.values();
        all.any(|one| one.probing.is_in_flight())
    }
}

/// Runs, and whether each waits.
#[derive(Default)]
struct Waits(HashMap<RunId, bool>);

impl RunStates for Waits {
    fn is_waiting(&self, run: RunId) -> Option<bool> {
        self.0.get(&run).copied()
    }
}

struct Rig {
    scheduler: Scheduler,
    store: MemoryStore,
    runs: Waits,
    now: Timestamp,
    slots_kept_ms: u64,
}

impl Rig {
    /// With one schedule, due each hour from now on.
    fn hourly(overlap: Overlap) -> Rig {
        let mut rig = Rig {
            scheduler: Scheduler::default(),
            store: MemoryStore::new(),
            runs: Waits::default(),
            now: Timestamp::from_millis(1_800_000_000_000),
            slots_kept_ms: u64::MAX,
        };
        let policy = Policy {
            overlap,
            ..Policy::default()
        };
        let schedule = Arc::new(hourly(policy));
        rig.ask(|scheduler, context| {
            let set = scheduler.set_schedules(context, &[schedule], BTreeMap::new());
            set.unwrap();
        });
        assert!(rig.on_time().is_empty());
        rig
    }

    /// Commits what is to be written and answers all other instructions.
    fn ask(&mut self, ask: impl FnOnce(&mut Scheduler, &SchedulerContext<'_>)) -> Vec<Instruction> {
        let context = SchedulerContext {
            now: self.now,
            store: &self.store,
            runs: &self.runs,
            uncommitted: &[],
            is_draining: false,
            expiry: self.now,
            slots_kept_ms: self.slots_kept_ms,
        };
        ask(&mut self.scheduler, &context);
        let (mut writes, mut others) = (Vec::new(), Vec::new());
        for instruction in self.scheduler.take_instructions() {
            match instruction {
                Instruction::Write(write) => writes.push(write),
                other => others.push(other),
            }
        }
        self.store.commit(&Batch { writes }).unwrap();
        self.scheduler.assert_stored(&self.store);
        others
    }

    /// A turn begins: what nothing happened to in the last one has left memory.
    fn on_time(&mut self) -> Vec<Instruction> {
        self.scheduler.evict();
        self.ask(Scheduler::on_time)
    }

    /// The slot that is due is made into a run.
    fn make(&mut self) -> (Arc<Schedule>, Result<Submission, Diagnostic>) {
        let mut due = self.on_time();
        let Some(Instruction::Prepare(schedule, occurrence)) = due.pop() else {
            panic!("nothing is due");
        };
        assert!(due.is_empty(), "{due:?}");
        // Nobody makes it a second time meanwhile.
        assert!(self.on_time().is_empty());
        let clock = Arc::new(FakeClock::at(self.now));
        let factory = FakeDesk(clock, Arc::default(), self.store.clone());
        let made = factory.prepare(&schedule, occurrence);
        (schedule, made)
    }

    /// The run of the slot that is due, up to where the queue has to take it.
    fn due(&mut self) -> (Box<Submission>, SlotRun) {
        let (schedule, made) = self.make();
        let mut made = self.ask(|scheduler, context| {
            scheduler.on_prepared(context, &schedule.id, made);
        });
        let Some(Instruction::Enqueue(submission, slot_run)) = made.pop() else {
            panic!("it is not to be enqueued");
        };
        assert!(made.is_empty(), "{made:?}");
        (submission, slot_run)
    }

    /// Takes the run of the slot that is due, and has it go on.
    fn start(&mut self) -> Arc<RunSpec> {
        let (submission, slot_run) = self.due();
        let spec = submission.spec;
        self.runs.0.insert(spec.run, false);
        let then = self.ask(|scheduler, context| {
            scheduler.on_enqueued(context, spec.run, slot_run);
        });
        assert!(then.is_empty(), "{then:?}");
        spec
    }

    fn end(&mut self, spec: &RunSpec) {
        self.ask(|scheduler, context| {
            scheduler.on_run_ended(context, spec, (&Outcome::Succeeded, false));
        });
        self.runs.0.remove(&spec.run);
    }

    fn hour_passes(&mut self) {
        self.now = self.now.plus_millis(HOUR_MS);
    }
}

#[test]
fn a_slot_fires_once() {
    let mut rig = Rig::hourly(Overlap::Skip);
    let due = rig.now.plus_millis(HOUR_MS);
    assert_eq!(rig.scheduler.next_deadline(), Some(due));
    rig.hour_passes();
    rig.start();
    assert!(rig.on_time().is_empty());
    assert_eq!(statuses(&rig.store), [SlotStatus::Ran]);
    let next = due.plus_millis(HOUR_MS);
    assert_eq!(rig.scheduler.next_deadline(), Some(next));
}

#[test]
fn the_run_before_is_cancelled_where_the_policy_says_so() {
    for (overlap, is_cancelled) in [(Overlap::CancelOther, true), (Overlap::AllowAll, false)] {
        let mut rig = Rig::hourly(overlap);
        rig.hour_passes();
        let first = rig.start();
        rig.hour_passes();
        let (_, slot_run) = rig.due();
        let cancelled = is_cancelled.then_some(first.run);
        assert_eq!(slot_run.cancels, Vec::from_iter(cancelled), "{overlap:?}");
    }
}

#[test]
fn a_run_made_for_a_slot_that_passed_is_forgotten() {
    let mut rig = Rig::hourly(Overlap::Skip);
    rig.hour_passes();
    let (schedule, made) = rig.make();
    let run = made.as_ref().unwrap().spec.run;
    rig.hour_passes();
    let then = rig.ask(|scheduler, context| {
        scheduler.on_prepared(context, &schedule.id, made);
    });
    assert!(
        matches!(then.as_slice(), [Instruction::Forget(forgotten)] if *forgotten == run),
        "{then:?}"
    );
    rig.start();
    assert_eq!(statuses(&rig.store), [SlotStatus::Missed, SlotStatus::Ran]);
}

#[test]
fn a_slot_that_finds_the_queue_full_is_tried_again() {
    let mut rig = Rig::hourly(Overlap::Skip);
    rig.hour_passes();
    let (_, slot_run) = rig.due();
    let full = Diagnostic::new(Kind::Blocked, "queue_full", "3 runs are waiting already");
    rig.ask(|scheduler, context| scheduler.on_refused(context, &slot_run.schedule, full));
    assert!(statuses(&rig.store).is_empty());
    assert!(rig.on_time().is_empty());
    let again = rig.scheduler.next_deadline().unwrap();
    assert!(again > rig.now);
    rig.now = again;
    let spec = rig.start();
    assert_eq!(statuses(&rig.store), [SlotStatus::Ran]);
    let slot = spec.scheduled.as_ref().unwrap().slot;
    assert_eq!(again.millis_since(slot), 5_000);
}

#[test]
fn a_run_that_has_ended_makes_room_for_the_next_slot() {
    let mut rig = Rig::hourly(Overlap::Skip);
    rig.hour_passes();
    let first = rig.start();
    rig.hour_passes();
    assert!(rig.on_time().is_empty());
    assert_eq!(
        statuses(&rig.store),
        [SlotStatus::Ran, SlotStatus::SkippedOverlap]
    );
    rig.end(&first);
    rig.hour_passes();
    rig.start();
    let ran = [SlotStatus::Ran, SlotStatus::SkippedOverlap, SlotStatus::Ran];
    assert_eq!(statuses(&rig.store), ran);
}

#[test]
fn rows_go_when_their_time_is_over_but_not_that_of_a_run_that_goes_on() {
    let mut rig = Rig::hourly(Overlap::AllowAll);
    rig.slots_kept_ms = 5 * HOUR_MS;
    rig.hour_passes();
    let goes_on = rig.start();
    for _ in 0..20 {
        rig.hour_passes();
        let run = rig.start();
        rig.end(&run);
    }
    // Those of the last five hours, and the first one.
    assert_eq!(statuses(&rig.store), [SlotStatus::Ran; 6 + 1]);
    rig.end(&goes_on);
    rig.hour_passes();
    rig.start();
    assert_eq!(statuses(&rig.store), [SlotStatus::Ran; 6]);
}
