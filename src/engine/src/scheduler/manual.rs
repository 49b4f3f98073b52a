//! Runs of a schedule that a person asks for.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::resident::ResidentSchedule;
use super::{Scheduler, SchedulerContext, SlotRecord, SlotRun};
use crate::model::schedule::{Overlap, SlotRow};
use crate::model::{Diagnostic, Kind, Timestamp};
use crate::protocol::SlotView;
use crate::request::ManualTrigger;
use crate::schedule::{ManualRefused, finds_room, permitted};
use crate::schedules::unknown;
use crate::store::{Unreadable, Write};

/// Most runs of another definition that are looked through for the row of a slot: the loop waits for it.
const RUNS_LOOKED_AT: usize = 500;

impl Scheduler {
    /// Permits a run for now, or for a past slot; answers what is told once it is in the queue.
    pub(crate) fn trigger(
        &mut self,
        context: &SchedulerContext<'_>,
        trigger: &ManualTrigger,
    ) -> Result<(SlotRun, SlotView), Diagnostic> {
        let id = trigger.schedule.as_str();
        self.refuse_unreadable(context, id)?;
        if context.uncommitted.iter().any(|write| tells_of(write, id)) {
            return Err(busy("its slots are just being decided"));
        }
        let scheduled = self.resident.get(id).ok_or_else(|| unknown(id))?;
        let (run, at) = (trigger.submission.spec.run, trigger.slot);
        if !trigger.is_past && is_taken(context, scheduled, at)? {
            return Err(busy("something else is due at this instant"));
        }
        permit(context, scheduled, trigger).map_err(|refused| refusal(id, &refused))?;
        // Decided on a copy: a full queue is to leave the record as it is.
        let mut state = scheduled.state.clone();
        let rows = if trigger.is_past {
            let covering = covering(context, scheduled, at)?;
            let recurrence = scheduled.recurrence();
            let slots = recurrence.ok_or_else(|| refusal(id, &ManualRefused::NoDueTime))?;
            state
                .backfilled(&slots, covering, at, (run, context.now))
                .map_err(|refused| refusal(id, &refused))?
        } else {
            vec![state.triggered(at, run, context.now)]
        };
        let row = rows.iter().find(|row| row.run == Some(run));
        let shown = row.map(|row| SlotView::of(id, row));
        let slot_run = SlotRun {
            schedule: Arc::clone(&scheduled.definition.id),
            cancels: scheduled.cancelled_for_another(trigger.overlap),
            record: SlotRecord::Asked { state, rows },
        };
        Ok((slot_run, shown.ok_or_else(|| unknown(id))?))
    }
}

fn busy(why: &str) -> Diagnostic {
    Diagnostic::new(Kind::Conflict, "busy", why).hint("ask again")
}

/// Whether a row of the schedule, or an occurrence, stands at this instant already.
fn is_taken(
    context: &SchedulerContext<'_>,
    scheduled: &ResidentSchedule,
    at: Timestamp,
) -> Result<bool, Diagnostic> {
    if scheduled.state.pending.iter().any(|one| one.at == at) {
        return Ok(true);
    }
    let mut taken = false;
    let mut take = |row: Result<SlotRow, Unreadable>| {
        let from = row.map_or_else(|damaged| damaged.from, |row| Some(row.from));
        taken = from == Some(at);
        ControlFlow::Break(())
    };
    let id = &scheduled.definition.id;
    context
        .store
        .slots(id, Some(at.plus_millis(1)), &mut take)?;
    Ok(taken)
}

fn permit(
    context: &SchedulerContext<'_>,
    scheduled: &ResidentSchedule,
    trigger: &ManualTrigger,
) -> Result<(), ManualRefused> {
    let policy = &scheduled.definition.policy;
    let when = (trigger.slot, scheduled.zone);
    permitted(policy, &scheduled.state, when, trigger.overrides)?;
    let own = if trigger.is_past {
        Overlap::BufferAll
    } else {
        policy.overlap
    };
    let others = scheduled.others(context.runs);
    finds_room(trigger.overlap.unwrap_or(own), others)
}

/// The stored row that covers a slot. Rows of runs that a person asked for lie between the others.
fn covering(
    context: &SchedulerContext<'_>,
    scheduled: &ResidentSchedule,
    at: Timestamp,
) -> Result<Option<SlotRow>, Diagnostic> {
    let (id, anchor) = (&scheduled.definition.id, scheduled.state.anchor);
    let recurrence = scheduled.recurrence();
    let is_earlier = |row: &SlotRow| row.from <= anchor;
    let is_due = |row: &SlotRow| {
        recurrence
            .as_ref()
            .is_some_and(|slots| slots.last_at_or_before(row.from, row.from).is_some())
    };
    let (mut found, mut looked, mut too_many) = (Ok(None), 0, false);
    let mut take = |row: Result<SlotRow, Unreadable>| match row {
        Ok(row) if row.to >= at => {
            found = Ok(Some(row));
            ControlFlow::Break(())
        }
        // Rows of another definition end where this one begins.
        Ok(row) if is_earlier(&row) && at > anchor => ControlFlow::Break(()),
        // Only runs that a person asked for lie within what a row covers.
        Ok(row) if row.run.is_none() || is_due(&row) => ControlFlow::Break(()),
        Ok(row) => {
            looked += 1;
            too_many = looked > RUNS_LOOKED_AT && is_earlier(&row);
            if too_many {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        }
        Err(damaged) => {
            found = Err(damaged);
            ControlFlow::Break(())
        }
    };
    context
        .store
        .slots(id, Some(at.plus_millis(1)), &mut take)?;
    if too_many {
        return Err(refusal(id, &ManualRefused::OtherDefinition));
    }
    found.map_err(|damaged| {
        let why = format!("the row before it cannot be read: {damaged}");
        Diagnostic::new(Kind::Conflict, "row_unreadable", why)
            .hint("`workerctl store verify` tells more; `workerctl run` starts the skill itself")
    })
}

/// Whether a write is about the rows of a schedule.
fn tells_of(write: &Write, id: &str) -> bool {
    match write {
        Write::Slot { schedule, .. }
        | Write::DropSlot { schedule, .. }
        | Write::UndoSlot { schedule, .. } => schedule == id,
        _ => false,
    }
}

fn refusal(id: &str, refused: &ManualRefused) -> Diagnostic {
    let other = |kind, code, hint: &str| {
        Diagnostic::new(kind, code, format!("`{id}`: {refused}")).hint(hint)
    };
    let overridable = |code, policy| {
        let hint = format!("`--despite {policy}` runs it all the same");
        other(Kind::Blocked, code, &hint)
    };
    let run_itself = "`workerctl run` starts the skill itself";
    match refused {
        ManualRefused::Paused(_) => overridable("paused", "pause"),
        ManualRefused::Blackout => overridable("blackout", "blackout"),
        ManualRefused::NotBegun => overridable("not_begun", "start"),
        ManualRefused::Ended => overridable("schedule_ended", "end"),
        ManualRefused::UsedUp(_) => overridable("used_up", "max_actions"),
        ManualRefused::Overlap => {
            let hint = "wait for it, or say `--overlap buffer_one`, `allow_all` or `cancel_other`";
            other(Kind::Blocked, "overlap", hint)
        }
        ManualRefused::HasRun(_) => {
            other(Kind::Conflict, "has_run", "`workerctl retry` runs it again")
        }
        ManualRefused::NoDueTime => {
            let hint = "`workerctl schedule slots` lists slots";
            other(Kind::Usage, "no_due_time", hint)
        }
        ManualRefused::NotDecided => {
            let hint = "`workerctl schedule trigger` runs it now";
            other(Kind::Conflict, "not_decided", hint)
        }
        ManualRefused::OtherDefinition => other(Kind::Conflict, "other_definition", run_itself),
        ManualRefused::NotKept => other(Kind::Conflict, "not_kept", run_itself),
    }
}
