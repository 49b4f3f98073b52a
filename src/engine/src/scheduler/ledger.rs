//! The record of slots in the store: what is written of a schedule, shortened, and taken back.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::{Instruction, Scheduler, SchedulerContext};
use crate::model::outcome::Outcome;
use crate::model::schedule::{Policy, ScheduleState, SlotRow, SlotStatus};
use crate::model::spec::ScheduledSlot;
use crate::model::{Diagnostic, News, Notice, RunId, RunSpec, Timestamp};
use crate::schedule::OVERTAKEN;
use crate::store::{Unreadable, Write};
use crate::stored_schedules::{StoredSchedule, stored_state};

/// Rows that a schedule's ledger keeps; older ones go, and stay counted.
const ROWS_KEPT: u64 = 10_000;

/// Rows that go at once, when there are more.
const ROWS_TRIMMED: usize = 100;

/// The row of a slot whose definition cannot be run as it is.
pub(crate) fn blocked(slot: Timestamp, now: Timestamp, why: String) -> SlotRow {
    SlotRow::one(slot, SlotStatus::BlockedConfig, now).because(why)
}

/// What keeps slots from their runs.
pub(super) struct Hindrance<'a> {
    pub(super) held_back: Option<&'a str>,
    /// Why no daemon ran, and until when.
    pub(super) absence: (&'static str, Timestamp),
    /// The first run of the schedule that has not ended.
    pub(super) blocking: Option<RunId>,
}

impl Hindrance<'_> {
    /// Says of a slot that did not run what kept it from its run, where that is known.
    pub(super) fn explain(&self, row: SlotRow) -> SlotRow {
        let (absence, until) = self.absence;
        let was_absent = row.from < until;
        match (row.status, self.held_back) {
            _ if row.reason.as_deref() == Some(OVERTAKEN) && was_absent => {
                row.because(format!("{absence}; {OVERTAKEN}"))
            }
            _ if row.reason.is_some() => row,
            (SlotStatus::Missed, Some(why)) => row.because(why),
            (SlotStatus::Missed, None) if was_absent => row.because(absence),
            (SlotStatus::SkippedOverlap, _) => match self.blocking {
                Some(run) => row.because(format!("run {} had not ended", run.short())),
                None => row,
            },
            _ => row,
        }
    }
}

impl Scheduler {
    /// The clock was stepped back: slots that have not run come again.
    pub(super) fn rewind(&mut self, context: &SchedulerContext<'_>, id: &str) {
        let now = context.now;
        let Some(scheduled) = self.resident.get_mut(id) else {
            return;
        };
        let is_disarmed = scheduled.state.forget_the_future(now);
        if !scheduled.state.is_behind(now) {
            if is_disarmed {
                self.write_state(context, id);
            }
            return;
        }
        let Some(slots) = scheduled.recurrence() else {
            scheduled.state.bring_forward(now);
            self.write_state(context, id);
            return;
        };
        let mut after = Vec::new();
        let mut take = |row: Result<SlotRow, Unreadable>| match row {
            Ok(row) if row.to <= now => ControlFlow::Break(()),
            Ok(row) => {
                after.push(row);
                ControlFlow::Continue(())
            }
            // It may have run: better not again.
            Err(damaged) => {
                let ran = |from| SlotRow::one(from, SlotStatus::Ran, from);
                after.extend(damaged.from.map(ran).filter(|row| row.from > now));
                ControlFlow::Continue(())
            }
        };
        if let Err(error) = context.store.slots(id, None, &mut take) {
            tracing::error!(schedule = id, %error, "the ledger cannot be read");
            return;
        }
        let (gone, shortened) = scheduled.state.rewind(&slots, after, now);
        tracing::warn!(
            schedule = id,
            "the clock was stepped back: slots come again"
        );
        self.instructions
            .extend(gone.into_iter().map(|from| undone(id, from)));
        self.instructions
            .extend(shortened.map(|row| stored(id, row)));
        self.write_state(context, id);
    }

    pub(super) fn write_state(&mut self, context: &SchedulerContext<'_>, id: &str) {
        self.trim(context, id);
        if let Some(scheduled) = self.resident.get(id) {
            self.instructions.push(written(id, &scheduled.state));
        }
    }

    /// Old rows go; how many slots they covered stays counted.
    fn trim(&mut self, context: &SchedulerContext<'_>, id: &str) {
        self.trim_by_age(context, id);
        let Some(scheduled) = self.resident.get_mut(id) else {
            return;
        };
        if scheduled.state.rows <= ROWS_KEPT + ROWS_TRIMMED as u64 {
            return;
        }
        let (mut kept, mut old, mut until) = (0, Vec::new(), None);
        let mut take = |row: Result<SlotRow, Unreadable>| {
            kept += 1;
            if kept > ROWS_KEPT {
                let to = row.as_ref().ok().map(|row| row.to);
                until = until.max(to);
                old.extend(row.map_or_else(|damaged| damaged.from, |row| Some(row.from)));
            }
            ControlFlow::Continue(())
        };
        if let Err(error) = context.store.slots(id, None, &mut take) {
            tracing::warn!(schedule = id, %error, "the ledger cannot be read");
            return;
        }
        scheduled.state.rows = scheduled.state.rows.saturating_sub(old.len() as u64);
        scheduled.state.trimmed_until = scheduled.state.trimmed_until.max(until);
        self.instructions
            .extend(old.into_iter().map(|from| dropped(id, from)));
    }

    /// Rows whose time is over go, some at each writing; how many slots they covered stays counted.
    fn trim_by_age(&mut self, context: &SchedulerContext<'_>, id: &str) {
        let Some(scheduled) = self.resident.get_mut(id) else {
            return;
        };
        let over = context.expiry.minus_millis(context.slots_kept_ms);
        let (mut old, mut until) = (Vec::new(), None);
        let is_needed = |row: &SlotRow| {
            let is_there = |run| context.runs.is_waiting(run).is_some();
            row.to >= over || row.run.is_some_and(is_there)
        };
        let mut take = |row: Result<SlotRow, Unreadable>| {
            match row {
                Ok(row) if is_needed(&row) => return ControlFlow::Continue(()),
                Ok(row) => {
                    until = until.max(Some(row.to));
                    old.push(row.from);
                }
                Err(damaged) => old.extend(damaged.from),
            }
            if old.len() < ROWS_TRIMMED {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        };
        if let Err(error) = context.store.slots(id, Some(over), &mut take) {
            tracing::warn!(schedule = id, %error, "the ledger cannot be read");
            return;
        }
        scheduled.state.rows = scheduled.state.rows.saturating_sub(old.len() as u64);
        scheduled.state.trimmed_until = scheduled.state.trimmed_until.max(until);
        self.instructions
            .extend(old.into_iter().map(|from| dropped(id, from)));
    }

    /// The commit that was kept of a run has landed: its schedule has succeeded after all.
    pub(crate) fn on_run_landed(&mut self, context: &SchedulerContext<'_>, spec: &RunSpec) {
        let Some(due) = &spec.scheduled else {
            return;
        };
        let id = due.schedule.as_str();
        self.load(context, id);
        self.count_end(context, (due, spec.run), &Outcome::Succeeded);
        if self.resident.contains_key(id) {
            self.set_wake(id, Some(context.now));
        }
    }

    /// How a run of a schedule ended, or that it has landed since, counts for its schedule.
    pub(super) fn count_end(
        &mut self,
        context: &SchedulerContext<'_>,
        (due, run): (&ScheduledSlot, RunId),
        outcome: &Outcome,
    ) {
        let (id, now) = (due.schedule.as_str(), context.now);
        if due.uncounted {
            return;
        }
        let Some(scheduled) = self.resident.get_mut(id) else {
            return self.count_of_absent(context, id, outcome);
        };
        let policy = &scheduled.definition.policy;
        let (failures, ran) = (scheduled.state.failures, scheduled.state.pause.is_none());
        scheduled.state.ended(policy, outcome, now);
        let state = &scheduled.state;
        if state.failures > failures {
            let (why, paused) = (outcome.detail(), state.pause.is_some());
            tracing::warn!(
                schedule = id,
                run = run.short(),
                outcome = outcome.name(),
                why,
                failures = state.failures,
                paused,
                "a run of a schedule did not succeed"
            );
        } else if failures > 0 && state.failures == 0 {
            tracing::info!(schedule = id, failures, "a schedule succeeds again");
        }
        let pause = state.pause.as_ref().filter(|_| ran);
        let notice = pause.map(|pause| Notice {
            run: Some(run),
            failures: state.failures,
            message: Some(pause.reason.clone()),
            ..Notice::of(News::Paused, now)
        });
        let definition = Arc::clone(&scheduled.definition);
        self.write_state(context, id);
        let notify = notice.map(|notice| Instruction::Notify(definition, notice));
        self.instructions.extend(notify);
    }

    /// A run has ended whose schedule is not active: switched off, removed, or of an engine that fires none. How
    /// it went counts once the schedule is back; whether it then pauses is for its next run to say.
    fn count_of_absent(&mut self, context: &SchedulerContext<'_>, id: &str, outcome: &Outcome) {
        let known = match self.known_state(context, id) {
            Ok(None) => stored_state(context.store, id).map(Some),
            known => known,
        };
        match known {
            Ok(Some(mut state)) => {
                state.ended(&Policy::default(), outcome, context.now);
                self.instructions.push(written(id, &state));
                let held = StoredSchedule::Held(state);
                self.known.insert(id.to_owned(), held);
            }
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(
                    schedule = id,
                    why = error.message,
                    "how its run ended is not counted"
                );
            }
        }
    }

    /// Closes what is remembered of schedules without a definition. Not done while a definition has an error:
    /// after a restart nobody knows which schedules that hides, and one that comes back goes on where it was.
    pub(crate) fn close_absent_schedules(
        &mut self,
        context: &SchedulerContext<'_>,
    ) -> Result<(), Diagnostic> {
        let now = context.now;
        let known = self.known.iter();
        let open = known.filter(|(_, stored)| !stored.is_closed());
        for id in open.map(|(id, _)| id.clone()).collect::<Vec<_>>() {
            let Some(mut state) = self.known_state(context, &id)? else {
                continue;
            };
            state.closed = Some(now);
            state.open = None;
            self.instructions.push(written(&id, &state));
            self.known.insert(id, StoredSchedule::of(&state));
        }
        Ok(())
    }
}

pub(super) fn written(id: &str, state: &ScheduleState) -> Instruction {
    Instruction::Write(Write::Schedule {
        id: id.to_owned(),
        state: Box::new(state.clone()),
    })
}

pub(super) fn stored(id: &str, row: SlotRow) -> Instruction {
    Instruction::Write(Write::Slot {
        schedule: id.to_owned(),
        row,
    })
}

fn dropped(id: &str, from: Timestamp) -> Instruction {
    Instruction::Write(Write::DropSlot {
        schedule: id.to_owned(),
        from,
    })
}

fn undone(id: &str, from: Timestamp) -> Instruction {
    Instruction::Write(Write::UndoSlot {
        schedule: id.to_owned(),
        from,
    })
}
