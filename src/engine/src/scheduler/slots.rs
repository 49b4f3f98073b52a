//! When each schedule is looked at, and what is decided of its slots.
//!
//! A slot that is to run is made into a run off the loop, for that reads files; when it comes back, it is
//! decided anew.

use std::cmp::Reverse;
use std::sync::Arc;

use super::ledger::{Hindrance, blocked, stored};
use super::{
    EVALUATIONS_MAX, End, FIRST_EVALUATIONS_LEAST, Instruction, Scheduler, SchedulerContext,
    SlotRecord, SlotRun, TRY_AGAIN_MS,
};
use crate::model::schedule::{Pause, SlotStatus};
use crate::model::{Diagnostic, Kind, RunId, RunSpec, Timestamp};
use crate::request::Submission;
use crate::schedule::{LATE_AFTER_MS, Moment, Next, settle};

/// Rows of one look before others have their turn.
const ROUNDS_MAX: usize = 16;

/// Since when slots have been looked at without a break.
#[derive(Default)]
pub(super) struct Presence {
    evaluated_at: Option<Timestamp>,
    since: Timestamp,
    /// Why they were not looked at before.
    absence: &'static str,
}

impl Presence {
    /// They are looked at; answers when that was done before. The loop does so every 30 s at least: more time has
    /// passed where it did not run, or the machine was suspended.
    fn note(&mut self, now: Timestamp) -> Option<Timestamp> {
        let before = self.evaluated_at.replace(now);
        if before.is_none_or(|before| now.millis_since(before) > LATE_AFTER_MS) {
            self.since = now;
            self.absence = match before {
                None => "no daemon ran",
                Some(_) => "the machine slept, or its clock was set forward",
            };
        }
        self.since = self.since.min(now);
        before
    }
}

impl Scheduler {
    pub(super) fn set_wake(&mut self, id: &str, wake: Option<Timestamp>) {
        let Some(active) = self.active.get_mut(id) else {
            return;
        };
        let id = Arc::clone(&active.definition.id);
        let earlier = std::mem::replace(&mut active.wake, wake);
        if earlier == wake {
            return;
        }
        let rank = active.rank;
        if let Some(earlier) = earlier {
            self.wakes.remove(&(earlier, rank, Arc::clone(&id)));
        }
        self.wakes.extend(wake.map(|wake| (wake, rank, id)));
    }

    /// Its turn among the schedules of its worker.
    pub(super) fn set_rank(&mut self, id: &str, rank: u32) {
        let Some(active) = self.active.get(id).filter(|one| one.rank != rank) else {
            return;
        };
        let wake = active.wake;
        self.set_wake(id, None);
        if let Some(active) = self.active.get_mut(id) {
            active.rank = rank;
        }
        self.set_wake(id, wake);
    }

    /// Looks at every schedule whose time has come, and at what is overdue.
    pub(crate) fn on_time(&mut self, context: &SchedulerContext<'_>) {
        self.slots_on_time(context);
        self.alarms_on_time(context);
    }

    fn slots_on_time(&mut self, context: &SchedulerContext<'_>) {
        let now = context.now;
        if self.presence.note(now).is_some_and(|before| before > now) {
            // Which of them are ahead of the clock now is known once each is looked at.
            let all = self.ids().into_iter().map(|id| (Reverse(now), id));
            self.unseen.extend(all);
        }
        let mut left = EVALUATIONS_MAX;
        while left > 0 {
            let due = self.wakes.first();
            let Some((.., id)) = due.filter(|(wake, ..)| *wake <= now).cloned() else {
                break;
            };
            self.evaluate(context, &id);
            left -= 1;
        }
        for _ in 0..left.max(FIRST_EVALUATIONS_LEAST) {
            let Some((_, id)) = self.unseen.pop_first() else {
                return;
            };
            self.evaluate(context, &id);
            self.first_evaluations += 1;
        }
    }

    fn evaluate(&mut self, context: &SchedulerContext<'_>, id: &str) {
        self.set_wake(id, None);
        self.load(context, id);
        self.probe_if_due(context, id);
        let scheduled = self.resident.get(id);
        if scheduled.is_none_or(|one| one.preparing.is_some()) {
            return;
        }
        self.rewind(context, id);
        match self.decide(context, id) {
            Some(Next::Fire { slot, .. }) => {
                if let Some(scheduled) = self.resident.get_mut(id) {
                    scheduled.preparing = Some(slot);
                    let occurrence = scheduled.state.occurrence(slot);
                    let definition = Arc::clone(&scheduled.definition);
                    self.instructions
                        .push(Instruction::Prepare(definition, occurrence));
                }
            }
            Some(next) => self.wait_for(context.now, id, next),
            None => {}
        }
    }

    fn wait_for(&mut self, now: Timestamp, id: &str, next: Next) {
        let probe = self.resident.get(id).and_then(|one| one.probing.due);
        let wake = match next {
            Next::Wait(wake) => wake,
            Next::Hold(until) => Some(until),
            Next::Again | Next::Fire { .. } => Some(now),
        };
        let wake = wake.into_iter().chain(probe).min();
        self.set_wake(id, wake);
    }

    /// Decides about the slots that have come.
    pub(super) fn decide(&mut self, context: &SchedulerContext<'_>, id: &str) -> Option<Next> {
        let scheduled = self.resident.get_mut(id)?;
        let moment = Moment {
            now: context.now,
            zone: scheduled.zone,
            there_since: self.presence.since,
            id,
            others: scheduled.others(context.runs),
        };
        let mut runs = scheduled.runs.iter().copied();
        let blocking = runs.find(|run| context.runs.is_waiting(*run).is_some());
        let occurrences = scheduled.state.occurrences();
        let recurrence = scheduled.recurrence();
        let slots = recurrence.as_ref().unwrap_or(&occurrences);
        let cursor = scheduled.state.cursor;
        let mut next = Next::Again;
        for _ in 0..ROUNDS_MAX {
            let policy = &scheduled.definition.policy;
            let (rows, then) = settle(slots, policy, &mut scheduled.state, moment);
            let hindrance = Hindrance {
                held_back: scheduled.held_back.as_deref(),
                absence: (self.presence.absence, self.presence.since),
                blocking,
            };
            let rows = rows.into_iter().map(|row| hindrance.explain(row));
            self.instructions.extend(rows.map(|row| stored(id, row)));
            next = then;
            if next != Next::Again {
                break;
            }
        }
        if scheduled.state.cursor != cursor {
            scheduled.held_back = None;
            self.write_state(context, id);
        }
        Some(next)
    }

    /// The run of a slot has been made, or cannot be.
    pub(crate) fn on_prepared(
        &mut self,
        context: &SchedulerContext<'_>,
        id: &str,
        made: Result<Submission, Diagnostic>,
    ) {
        let scheduled = self.resident.get_mut(id);
        let wanted = scheduled
            .and_then(|scheduled| scheduled.preparing.take())
            .filter(|_| !context.is_draining);
        let next = wanted.and_then(|_| self.decide(context, id));
        let is_due = |slot| wanted == Some(slot);
        match (next, made) {
            (Some(Next::Fire { slot, status }), Ok(submission)) if is_due(slot) => {
                self.fire(id, (slot, status), submission);
            }
            (Some(Next::Fire { slot, .. }), Err(refused)) if is_due(slot) => {
                self.not_made(context, id, slot, refused);
            }
            (next, made) => {
                if let Some(next) = next {
                    self.wait_for(context.now, id, next);
                }
                let run = made.ok().map(|submission| submission.spec.run);
                self.instructions.extend(run.map(Instruction::Forget));
            }
        }
    }

    /// A slot leads to its run, where the queue takes it.
    fn fire(&mut self, id: &str, (slot, status): (Timestamp, SlotStatus), submission: Submission) {
        if let Some(scheduled) = self.resident.get(id) {
            let slot_run = SlotRun {
                schedule: Arc::clone(&scheduled.definition.id),
                cancels: scheduled.cancelled_for_another(None),
                record: SlotRecord::Due { slot, status },
            };
            let enqueue = Instruction::Enqueue(Box::new(submission), slot_run);
            self.instructions.push(enqueue);
        }
    }

    /// The run of a slot cannot be made.
    fn not_made(
        &mut self,
        context: &SchedulerContext<'_>,
        id: &str,
        slot: Timestamp,
        refused: Diagnostic,
    ) {
        let (now, why) = (context.now, refused.message);
        // A fault of ours or of the machine says nothing of the definition: it is tried again.
        if refused.kind == Kind::Internal {
            tracing::error!(schedule = id, why, "a slot waits");
            self.set_wake(id, Some(now.plus_millis(TRY_AGAIN_MS)));
            return;
        }
        tracing::warn!(schedule = id, why, "a slot does not run");
        if let Some(scheduled) = self.resident.get_mut(id) {
            let row = scheduled.state.cover(blocked(slot, now, why));
            self.instructions.push(stored(id, row));
        }
        self.write_state(context, id);
        self.set_wake(id, Some(now));
    }

    /// The run of a slot is in the queue, and what it was to cancel is cancelled.
    pub(crate) fn on_enqueued(
        &mut self,
        context: &SchedulerContext<'_>,
        run: RunId,
        slot_run: SlotRun,
    ) {
        let (id, now) = (&*slot_run.schedule, context.now);
        if let Some(scheduled) = self.resident.get_mut(id) {
            let rows = match slot_run.record {
                SlotRecord::Due { slot, status } => {
                    scheduled.held_back = None;
                    vec![scheduled.state.fired(slot, status, run, now)]
                }
                SlotRecord::Asked { state, rows } => {
                    scheduled.state = state;
                    rows
                }
            };
            scheduled.runs.insert(run);
            let rows = rows.into_iter().map(|row| stored(id, row));
            self.instructions.extend(rows);
        }
        self.write_state(context, id);
        self.set_wake(id, Some(now));
    }

    /// The queue has no room for the run of a slot that is due: it is tried again.
    pub(crate) fn on_refused(
        &mut self,
        context: &SchedulerContext<'_>,
        id: &str,
        refused: Diagnostic,
    ) {
        tracing::warn!(schedule = id, why = refused.message, "a slot waits");
        let again = context.now.plus_millis(TRY_AGAIN_MS);
        self.set_wake(id, Some(again));
        if let Some(scheduled) = self.resident.get_mut(id) {
            scheduled.held_back = Some(refused.message);
        }
    }

    /// A run has ended; its schedule may have waited for that, and others may follow it.
    pub(crate) fn on_run_ended(
        &mut self,
        context: &SchedulerContext<'_>,
        spec: &RunSpec,
        end: End<'_>,
    ) {
        self.follow(context, spec, end);
        let Some(due) = &spec.scheduled else {
            return;
        };
        let id = due.schedule.as_str();
        self.load(context, id);
        if let Some(scheduled) = self.resident.get_mut(id) {
            scheduled.runs.remove(&spec.run);
        }
        self.count_end(context, (due, spec.run), end.0);
        if self.resident.contains_key(id) {
            self.set_wake(id, Some(context.now));
            self.maintain_own_run(context, id);
        }
    }

    /// Pauses a schedule, or lets it go on.
    pub(crate) fn pause(
        &mut self,
        context: &SchedulerContext<'_>,
        id: &str,
        pause: Option<Pause>,
    ) -> Result<(), Diagnostic> {
        self.refuse_unreadable(context, id)?;
        // What was due until now has its status by what held until now.
        self.evaluate(context, id);
        let Some(scheduled) = self.resident.get_mut(id) else {
            return Err(crate::schedules::unknown(id));
        };
        scheduled.state.set_pause(pause, context.now);
        self.write_state(context, id);
        self.set_wake(id, Some(context.now));
        Ok(())
    }
}
