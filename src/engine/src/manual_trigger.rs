//! Runs of schedules that a person asks for: now, or for slots that are past.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::prepares::Prepares;
use super::request::{Answer, ManualTrigger};
use super::run_factory::{RunFactory, TriggerOptions, refuse_unknown_config};
use super::schedules::switched_on;
use crate::model::schedule::{Occurrence, Overlap, Schedule, ScheduleState, SlotRow};
use crate::model::{Diagnostic, Kind, Timestamp, Zone};
use crate::protocol::{BackfillQuery, BackfillSlot, PolicyName, SlotView, TriggerRequest};
use crate::schedule::{Overrides, Recurrence, permitted};
use crate::store::{Store, Unreadable};

/// How often a trigger request is repeated that met another decision about the same schedule.
const TRIES_MAX: usize = 16;

/// Most slots of one answer.
const PAST_MAX: usize = 10_000;

/// Makes the run and has it accepted.
pub(super) fn trigger(
    factory: &RunFactory,
    request: &TriggerRequest,
    ask: impl Fn(ManualTrigger) -> Result<Answer, Diagnostic>,
) -> Result<SlotView, Diagnostic> {
    let schedule = switched_on(factory, &request.schedule)?;
    refuse_unknown_config(&factory.definitions.current())?;
    if request.slot.is_some() && !schedule.trigger.is_timed() {
        return Err(no_slots(&schedule));
    }
    let overrides = overrides(&request.despite);
    let overlap = match request.slot {
        Some(_) => Some(request.overlap.unwrap_or(Overlap::BufferAll)),
        None => request.overlap,
    };
    let options = TriggerOptions {
        by: request.by.clone(),
        overlap,
        uncounted: request.despite.contains(&PolicyName::PauseOnFailure),
    };
    let mut tries = 0;
    loop {
        tries += 1;
        let slot = match request.slot {
            Some(slot) => slot,
            None => unused(factory, &schedule)?,
        };
        let due = Occurrence {
            at: slot,
            after: None,
        };
        let submission = factory.due(&schedule, due, &options)?;
        let run = submission.spec.run;
        let trigger = ManualTrigger {
            schedule: schedule.id.to_string(),
            submission,
            slot,
            is_past: request.slot.is_some(),
            overlap,
            overrides,
        };
        match ask(trigger) {
            Ok(Answer::Slot(row)) => return Ok(row),
            Ok(_) => {
                return Err(Diagnostic::new(
                    Kind::Internal,
                    "unexpected",
                    "another answer than asked for",
                ));
            }
            Err(refused) => {
                if refused.kind != Kind::Open {
                    factory.forget(run);
                }
                if refused.code != "busy" || tries == TRIES_MAX {
                    return Err(refused);
                }
            }
        }
    }
}

fn overrides(named: &[PolicyName]) -> Overrides {
    Overrides {
        pause: named.contains(&PolicyName::Pause),
        blackout: named.contains(&PolicyName::Blackout),
        start: named.contains(&PolicyName::Start),
        end: named.contains(&PolicyName::End),
        max_actions: named.contains(&PolicyName::MaxActions),
    }
}

/// Reads names that commas separate.
fn named_policies(text: &str) -> Result<Vec<PolicyName>, Diagnostic> {
    let names = text.split(',').filter(|name| !name.is_empty());
    names
        .map(|name| {
            let mut all = PolicyName::ALL.into_iter();
            all.find(|one| one.name() == name).ok_or_else(|| {
                let names = PolicyName::ALL.map(PolicyName::name).join(", ");
                let why = format!("`despite` names no policy: `{}`", name.escape_debug());
                Diagnostic::new(Kind::Usage, "bad_policy", why).hint(format!("one of {names}"))
            })
        })
        .collect()
}

fn no_slots(schedule: &Schedule) -> Diagnostic {
    Diagnostic::new(
        Kind::Usage,
        "no_due_times",
        format!(
            "`{}` does not follow the clock, so no slot of it is past",
            schedule.id
        ),
    )
    .hint("`workerctl schedule trigger` runs it now")
}

fn state_of(factory: &RunFactory, id: &str) -> Result<Option<ScheduleState>, Diagnostic> {
    factory.store.schedule(id).map_err(Diagnostic::from)
}

fn recurrence(
    schedule: &Schedule,
    state: Option<&ScheduleState>,
    now: Timestamp,
) -> Option<Recurrence> {
    let zone: Zone = schedule.timezone.parse().unwrap_or(Zone::UTC);
    let anchor = state.map_or(now, |state| state.anchor);
    Recurrence::of(&schedule.trigger, zone, anchor)
}

/// The present, or the next millisecond that is no slot of the schedule's own.
fn unused(factory: &RunFactory, schedule: &Schedule) -> Result<Timestamp, Diagnostic> {
    let now = factory.clock.now();
    let state = state_of(factory, &schedule.id)?;
    let mut at = now;
    if let Some(slots) = recurrence(schedule, state.as_ref(), now) {
        while slots.last_at_or_before(at, at).is_some() {
            at = at.plus_millis(1);
        }
    }
    Ok(at)
}

/// Slots that are past, and whether each can be run after all.
pub(super) fn past(
    factory: &RunFactory,
    store: &dyn Store,
    query: &BackfillQuery,
) -> Result<Vec<BackfillSlot>, Diagnostic> {
    let schedule = switched_on(factory, &query.schedule)?;
    refuse_unknown_config(&factory.definitions.current())?;
    let state = state_of(factory, &schedule.id)?;
    let now = factory.clock.now();
    let slots = recurrence(&schedule, state.as_ref(), now).ok_or_else(|| no_slots(&schedule))?;
    let overrides = overrides(&named_policies(&query.despite)?);
    let from = Timestamp::from_millis(query.from_ms);
    let to = Timestamp::from_millis(query.to_ms).min(now);
    if from > to {
        let why = "the range ends before it begins, or begins in the future";
        return Err(Diagnostic::new(Kind::Usage, "bad_range", why)
            .hint("give a range of the past: `--from 2026-11-01 --to 2026-11-02`"));
    }
    let rows = rows_since(store, &schedule.id, from)?;
    let mut found = Vec::new();
    let zone: Zone = schedule.timezone.parse().unwrap_or(Zone::UTC);
    // What would run counts for those behind it.
    let mut counted = state.clone();
    let mut next = slots.first_at_or_after(from);
    while let Some(slot) = next.filter(|slot| *slot <= to) {
        if found.len() == PAST_MAX {
            let why = format!("the range has more than {PAST_MAX} slots");
            return Err(Diagnostic::new(Kind::Usage, "too_many", why).hint("divide it"));
        }
        let mut one = judged(state.as_ref(), &rows, slot);
        if let (None, Some(counted)) = (&one.skip_reason, &mut counted) {
            let permitted = permitted(&schedule.policy, counted, (slot, zone), overrides);
            counted.actions += u64::from(permitted.is_ok());
            one.skip_reason = permitted.err().map(|refused| refused.to_string());
        }
        found.push(one);
        next = slots.next_after(slot);
    }
    Ok(found)
}

/// Rows that reach `from`, by their first slot.
fn rows_since(
    store: &dyn Store,
    id: &str,
    from: Timestamp,
) -> Result<BTreeMap<Timestamp, SlotRow>, Diagnostic> {
    let mut rows = BTreeMap::new();
    let mut take = |row: Result<SlotRow, Unreadable>| {
        let Ok(row) = row else {
            return ControlFlow::Continue(());
        };
        // Runs that a person asked for lie between the others, so one that ends earlier is not the last.
        let is_before = row.to < from && row.run.is_none();
        rows.insert(row.from, row);
        if is_before {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    store.slots(id, None, &mut take)?;
    Ok(rows)
}

/// Why this slot cannot be backfilled, if it cannot.
fn judged(
    state: Option<&ScheduleState>,
    rows: &BTreeMap<Timestamp, SlotRow>,
    slot: Timestamp,
) -> BackfillSlot {
    let row = rows
        .range(..=slot)
        .rev()
        .map(|(_, row)| row)
        .find(|row| row.to >= slot || row.run.is_none());
    let row = row.filter(|row| row.to >= slot);
    let skip_reason = match row {
        Some(row) if row.run.is_some() => Some("it ran".to_owned()),
        Some(row) if state.is_some_and(|state| row.from <= state.anchor) => Some(
            "the schedule had another definition then, and its history has a row for that time"
                .to_owned(),
        ),
        None if state
            .is_some_and(|state| state.trimmed_until.is_some_and(|until| slot <= until)) =>
        {
            Some("the history of that time was deleted, so it is unknown whether it ran".to_owned())
        }
        None if state.is_none_or(|state| slot > state.cursor) => {
            Some("its status is not decided yet".to_owned())
        }
        _ => None,
    };
    BackfillSlot {
        slot,
        status: row.map(|row| row.status),
        run: row.and_then(|row| row.run),
        skip_reason,
    }
}
