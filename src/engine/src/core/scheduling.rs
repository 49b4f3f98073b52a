//! How the loop talks to the scheduler: it asks, and carries out what was decided within the same turn.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::{Core, Reply, Turn};
use crate::live::Live;
use crate::machine::CancelKind;
use crate::model::schedule::Schedule;
use crate::model::{Diagnostic, Kind, RunId, RunSpec};
use crate::request::{Answer, ManualTrigger, Submission};
use crate::scheduler::{
    End, Instruction, RunStates, Scheduler, SchedulerContext, SlotRun, enabled,
};

/// States of new schedules that are stored together.
const COMMITTED_AT_ONCE: usize = 250;

impl RunStates for HashMap<RunId, Live> {
    fn is_waiting(&self, run: RunId) -> Option<bool> {
        self.get(&run).map(|live| live.run.is_queued())
    }
}

impl Core {
    /// Asks the scheduler, and carries out what it decided.
    pub(super) fn ask_scheduler<T>(
        &mut self,
        turn: &mut Turn,
        ask: impl FnOnce(&mut Scheduler, &SchedulerContext<'_>) -> T,
    ) -> T {
        let context = SchedulerContext {
            now: self.clock.now(),
            expiry: self.expiry.now(),
            store: self.store.as_ref(),
            runs: &self.live,
            uncommitted: &turn.before,
            is_draining: self.draining.is_some(),
            slots_kept_ms: self.slots_kept_ms,
        };
        let answer = ask(&mut self.scheduler, &context);
        for instruction in self.scheduler.take_instructions() {
            self.carry_out(turn, instruction);
        }
        answer
    }

    fn carry_out(&mut self, turn: &mut Turn, instruction: Instruction) {
        match instruction {
            Instruction::Write(write) => turn.before.push(write),
            Instruction::Prepare(schedule, occurrence) => {
                turn.due.push((schedule, occurrence));
                self.preparing += 1;
            }
            Instruction::Probe(schedule, request) => self.pool.probe(&schedule, request),
            Instruction::Enqueue(submission, slot_run) => {
                let id = Arc::clone(&slot_run.schedule);
                if let Err(refused) = self.enqueue_slot(turn, &submission, slot_run) {
                    self.ask_scheduler(turn, |scheduler, context| {
                        scheduler.on_refused(context, &id, refused);
                    });
                    self.pool.forget(submission.spec.run);
                }
            }
            Instruction::Forget(run) => self.pool.forget(run),
            Instruction::Notify(schedule, notice) => {
                self.notice_of_schedule(turn, &schedule, notice);
            }
        }
    }

    /// Enqueues the run of a slot and cancels those that give way to it; then the slot is recorded.
    fn enqueue_slot(
        &mut self,
        turn: &mut Turn,
        submission: &Submission,
        slot_run: SlotRun,
    ) -> Result<(), Diagnostic> {
        self.enqueue(turn, submission)?;
        let by = format!("schedule {}", slot_run.schedule);
        for other in &slot_run.cancels {
            // One that can no longer be cancelled ends by itself.
            let _ = self.cancel(turn, *other, CancelKind::Graceful, &by);
        }
        let run = submission.spec.run;
        self.ask_scheduler(turn, |scheduler, context| {
            scheduler.on_enqueued(context, run, slot_run);
        });
        Ok(())
    }

    /// A run has ended; its schedule may have waited for that, and others may follow it.
    pub(super) fn scheduled_run_ended(&mut self, turn: &mut Turn, spec: &RunSpec, end: End<'_>) {
        self.ask_scheduler(turn, |scheduler, context| {
            scheduler.on_run_ended(context, spec, end);
        });
    }

    /// Accepts a run of a schedule that a person asks for.
    pub(super) fn trigger(
        &mut self,
        turn: &mut Turn,
        trigger: &ManualTrigger,
    ) -> Result<Reply, Diagnostic> {
        if self.draining.is_some() {
            return Err(
                Diagnostic::new(Kind::Conflict, "draining", "the engine is ending")
                    .hint("ask again once it has been started again"),
            );
        }
        let (slot_run, shown) = self.ask_scheduler(turn, |scheduler, context| {
            scheduler.trigger(context, trigger)
        })?;
        self.enqueue_slot(turn, &trigger.submission, slot_run)?;
        Ok(Reply::Now(Box::new(Answer::Slot(shown))))
    }

    /// These definitions are current from now on.
    pub(super) fn set_schedules(
        &mut self,
        turn: &mut Turn,
        definitions: &[Arc<Schedule>],
    ) -> Result<(), Diagnostic> {
        let runs = self.runs_of_schedules();
        self.ask_scheduler(turn, |scheduler, context| {
            scheduler.set_schedules(context, definitions, runs)
        })?;
        self.try_now();
        Ok(())
    }

    /// Makes notices and pushes due that failed before, because a user may have removed the cause.
    pub(super) fn try_now(&mut self) {
        let now = self.clock.now();
        self.board.try_now(now);
        self.pushes.try_now(now);
    }

    /// Activates schedules before runs of earlier engines are settled. Nobody waits for an answer, so that a
    /// workspace of very many that are new is stored part by part. They are complete where no error hides one.
    pub(crate) fn begin_schedules(
        &mut self,
        definitions: &[Arc<Schedule>],
        are_complete: bool,
    ) -> Result<(), Diagnostic> {
        let mut turn = Turn::default();
        let mut runs = self.runs_of_schedules();
        for definition in enabled(definitions) {
            self.ask_scheduler(&mut turn, |scheduler, context| {
                scheduler.activate(context, definition, &mut runs)
            })?;
            if turn.before.len() >= COMMITTED_AT_ONCE {
                self.commit(&mut turn)?;
                self.evict();
            }
        }
        self.scheduler.take_turns(definitions);
        if are_complete {
            self.ask_scheduler(&mut turn, Scheduler::close_absent_schedules)?;
        }
        self.commit(&mut turn)?;
        self.evict();
        self.scheduler.begun();
        Ok(())
    }

    /// Runs of schedules that have not ended.
    fn runs_of_schedules(&self) -> BTreeMap<String, BTreeSet<RunId>> {
        let mut runs: BTreeMap<String, BTreeSet<RunId>> = BTreeMap::new();
        for (run, live) in &self.live {
            if let Some(due) = &live.spec.scheduled
                && !live.run.is_finished()
            {
                runs.entry(due.schedule.clone()).or_default().insert(*run);
            }
        }
        runs
    }

    /// After the commit: states of schedules to which nothing more happens leave memory.
    pub(super) fn evict(&mut self) {
        #[cfg(test)]
        self.scheduler.assert_stored(self.store.as_ref());
        self.scheduler.evict();
    }
}
