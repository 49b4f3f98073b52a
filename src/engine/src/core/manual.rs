//! Runs of a schedule that a person asks for.

use std::ops::ControlFlow;

use super::super::request::{Answer, ManualTrigger};
use super::ledger::stored;
use super::{Core, Reply, Turn};
use crate::model::schedule::{Overlap, SlotRow};
use crate::model::{Diagnostic, Kind, Timestamp};
use crate::protocol::SlotView;
use crate::schedule::{ManualRefused, finds_room, permitted};
use crate::store::Write;

/// Most runs of another definition that are looked through for the row of a slot: the loop waits for it.
const RUNS_LOOKED_AT: usize = 500;

impl Core {
    /// Accepts a run for now, or for a past slot, and gives it its row.
    pub(super) fn trigger(
        &mut self,
        turn: &mut Turn,
        trigger: &ManualTrigger,
    ) -> Result<Reply, Diagnostic> {
        let id = trigger.schedule.as_str();
        if self.draining.is_some() {
            return Err(
                Diagnostic::new(Kind::Conflict, "draining", "the engine is ending")
                    .hint("ask again once it has been started again"),
            );
        }
        self.refuse_unreadable(id)?;
        if turn.before.iter().any(|write| tells_of(write, id)) {
            return Err(Diagnostic::new(
                Kind::Conflict,
                "busy",
                "its slots are just being decided",
            )
            .hint("ask again"));
        }
        if !trigger.is_past && self.is_taken(id, trigger.slot)? {
            return Err(Diagnostic::new(
                Kind::Conflict,
                "busy",
                "something else is due at this instant",
            )
            .hint("ask again"));
        }
        self.permit(trigger)
            .map_err(|refused| refusal(id, &refused))?;
        let (submission, at) = (&trigger.submission, trigger.slot);
        let run = submission.spec.run;
        let now = self.clock.now();
        let covering = if trigger.is_past {
            self.covering(id, at)?
        } else {
            None
        };
        // Tried on a copy first: a full queue is to leave the record as it is.
        let Some(mut state) = self.schedules.resident.get(id).map(|one| one.state.clone()) else {
            return Err(super::super::schedules::unknown(id));
        };
        let rows = if trigger.is_past {
            let recurrence = self
                .schedules
                .resident
                .get(id)
                .and_then(|one| one.recurrence());
            let slots = recurrence.ok_or_else(|| refusal(id, &ManualRefused::NoDueTime))?;
            state
                .backfilled(&slots, covering, at, (run, now))
                .map_err(|refused| refusal(id, &refused))?
        } else {
            vec![state.triggered(at, run, now)]
        };
        self.enqueue(turn, submission)?;
        self.end_others(turn, id, trigger.overlap);
        if let Some(scheduled) = self.schedules.resident.get_mut(id) {
            scheduled.state = state;
            scheduled.runs.insert(run);
        }
        let shown = rows
            .iter()
            .find(|row| row.run == Some(run))
            .map(|row| SlotView::of(id, row));
        turn.before
            .extend(rows.into_iter().map(|row| stored(id, row)));
        self.write_state(turn, id);
        self.schedules.set_wake(id, Some(now));
        let shown = shown.ok_or_else(|| super::super::schedules::unknown(id))?;
        Ok(Reply::Now(Box::new(Answer::Slot(shown))))
    }

    /// Whether a row of the schedule, or an occurrence, stands at this instant already.
    fn is_taken(&self, id: &str, at: Timestamp) -> Result<bool, Diagnostic> {
        let pending = self.schedules.resident.get(id);
        if pending.is_some_and(|one| one.state.pending.iter().any(|one| one.at == at)) {
            return Ok(true);
        }
        let mut taken = false;
        let mut take = |row: Result<SlotRow, crate::store::Unreadable>| {
            let from = row.map_or_else(|damaged| damaged.from, |row| Some(row.from));
            taken = from == Some(at);
            ControlFlow::Break(())
        };
        self.store
            .slots(id, Some(at.plus_millis(1)), &mut take)
            .map_err(|error| super::super::reading::unreadable(&error))?;
        Ok(taken)
    }

    fn permit(&self, trigger: &ManualTrigger) -> Result<(), ManualRefused> {
        let Some(scheduled) = self.schedules.resident.get(trigger.schedule.as_str()) else {
            return Ok(());
        };
        let policy = &scheduled.definition.policy;
        let when = (trigger.slot, scheduled.zone);
        permitted(policy, &scheduled.state, when, trigger.despite)?;
        let own = if trigger.is_past {
            Overlap::BufferAll
        } else {
            policy.overlap
        };
        finds_room(
            trigger.overlap.unwrap_or(own),
            self.others(&trigger.schedule),
        )
    }

    /// The stored row that covers a slot. Rows of runs that a person asked for lie between the others.
    fn covering(&self, id: &str, at: Timestamp) -> Result<Option<SlotRow>, Diagnostic> {
        let recurrence = self
            .schedules
            .resident
            .get(id)
            .and_then(|one| one.recurrence());
        let anchor = self.schedules.resident.get(id).map(|one| one.state.anchor);
        let is_earlier = |row: &SlotRow| anchor.is_some_and(|anchor| row.from <= anchor);
        let is_due = |row: &SlotRow| {
            recurrence
                .as_ref()
                .is_some_and(|slots| slots.last_at_or_before(row.from, row.from).is_some())
        };
        let (mut found, mut looked, mut too_many) = (Ok(None), 0, false);
        let mut take = |row: Result<SlotRow, crate::store::Unreadable>| match row {
            Ok(row) if row.to >= at => {
                found = Ok(Some(row));
                ControlFlow::Break(())
            }
            // Rows of another definition end where this one begins.
            Ok(row) if is_earlier(&row) && anchor.is_some_and(|anchor| at > anchor) => {
                ControlFlow::Break(())
            }
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
        self.store
            .slots(id, Some(at.plus_millis(1)), &mut take)
            .map_err(|error| super::super::reading::unreadable(&error))?;
        if too_many {
            return Err(refusal(id, &ManualRefused::OtherDefinition));
        }
        found.map_err(|damaged| {
            let why = format!("the row before it cannot be read: {damaged}");
            Diagnostic::new(Kind::Conflict, "row_unreadable", why).hint(
                "`workerctl store verify` tells more; `workerctl run` starts the skill itself",
            )
        })
    }
}

/// Whether a write is about the rows of a schedule.
fn tells_of(write: &Write, id: &str) -> bool {
    match write {
        Write::Slot { schedule, .. } | Write::DropSlot { schedule, .. } => schedule == id,
        _ => false,
    }
}

fn refusal(id: &str, refused: &ManualRefused) -> Diagnostic {
    let (kind, code, hint) = match refused {
        ManualRefused::Paused(_) => (
            Kind::Blocked,
            "paused",
            "`--despite pause` runs it all the same",
        ),
        ManualRefused::Blackout => (
            Kind::Blocked,
            "blackout",
            "`--despite blackout` runs it all the same",
        ),
        ManualRefused::NotBegun => (
            Kind::Blocked,
            "not_begun",
            "`--despite start` runs it all the same",
        ),
        ManualRefused::Ended => (
            Kind::Blocked,
            "schedule_ended",
            "`--despite end` runs it all the same",
        ),
        ManualRefused::UsedUp(_) => (
            Kind::Blocked,
            "used_up",
            "`--despite max_actions` runs it all the same",
        ),
        ManualRefused::Overlap => (
            Kind::Blocked,
            "overlap",
            "wait for it, or say `--overlap buffer_one`, `allow_all` or `cancel_other`",
        ),
        ManualRefused::HasRun(_) => (Kind::Conflict, "has_run", "`workerctl retry` runs it again"),
        ManualRefused::NoDueTime => (
            Kind::Usage,
            "no_due_time",
            "`workerctl schedule slots` lists slots",
        ),
        ManualRefused::NotDecided => (
            Kind::Conflict,
            "not_decided",
            "`workerctl schedule trigger` runs it now",
        ),
        ManualRefused::OtherDefinition => (
            Kind::Conflict,
            "other_definition",
            "`workerctl run` starts the skill itself",
        ),
        ManualRefused::NotKept => (
            Kind::Conflict,
            "not_kept",
            "`workerctl run` starts the skill itself",
        ),
    };
    Diagnostic::new(kind, code, format!("`{id}`: {refused}")).hint(hint)
}
