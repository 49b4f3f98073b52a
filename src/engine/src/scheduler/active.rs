//! Which schedules are active: what a definition that comes, changes or goes does to its stored state.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::ledger::{stored, written};
use super::occurrences::followers;
use super::resident::{ActiveSchedule, Outlook, ResidentSchedule};
use super::{Instruction, Scheduler, SchedulerContext};
use crate::model::schedule::{Schedule, ScheduleState};
use crate::model::{Diagnostic, RunId, Timestamp, Zone};
use crate::stored_schedules::{StoredSchedule, digest};

fn zone_of(definition: &Schedule) -> Zone {
    definition.timezone.parse().unwrap_or(Zone::UTC)
}

/// Those that the definition does not switch off.
pub(crate) fn enabled(definitions: &[Arc<Schedule>]) -> impl Iterator<Item = &Arc<Schedule>> {
    definitions.iter().filter(|definition| !definition.disabled)
}

impl Scheduler {
    /// These definitions are current from now on, each with its runs that have not ended.
    pub(crate) fn set_schedules(
        &mut self,
        context: &SchedulerContext<'_>,
        definitions: &[Arc<Schedule>],
        mut runs: BTreeMap<String, BTreeSet<RunId>>,
    ) -> Result<(), Diagnostic> {
        self.deactivate_others(context, definitions);
        for definition in enabled(definitions) {
            self.activate(context, definition, &mut runs)?;
        }
        self.take_turns(definitions);
        Ok(())
    }

    /// All schedules with which an engine starts are active, and committed.
    pub(crate) fn begun(&mut self) {
        self.going_on = HashMap::new();
        // A tree that is filled in order is half empty; one that is made of all at once is full.
        let active = std::mem::take(&mut self.active);
        self.active = active.into_iter().collect();
    }

    /// Numbers the schedules of each worker: what is due at once is shared out between workers. Notes which of them
    /// follow which skill.
    pub(crate) fn take_turns(&mut self, definitions: &[Arc<Schedule>]) {
        let mut counts: HashMap<&str, u32> = HashMap::new();
        for definition in enabled(definitions) {
            let rank = counts.entry(&definition.skill.worker).or_default();
            self.set_rank(&definition.id, *rank);
            *rank += 1;
        }
        self.followers = followers(definitions);
    }

    /// Closes schedules that are not defined any more.
    fn deactivate_others(&mut self, context: &SchedulerContext<'_>, definitions: &[Arc<Schedule>]) {
        let now = context.now;
        let defined: HashSet<&str> = enabled(definitions).map(|one| &*one.id).collect();
        let mut left = self.ids();
        left.retain(|id| !defined.contains(id.as_ref()));
        for id in left {
            self.load(context, &id);
            self.conclude(context, &id, "the schedule was removed before it ran", true);
            self.set_wake(&id, None);
            let gone = self.resident.remove(&id);
            // One that could not be read stays until it can be.
            if let Some(mut gone) = gone
                && let Some(active) = self.active.remove(&id)
            {
                self.alarms.forget(&id, &active.outlook);
                gone.state.closed = Some(now);
                gone.state.open = None;
                self.instructions.push(written(&id, &gone.state));
                let stored = StoredSchedule::of(&gone.state);
                self.known.insert(id.to_string(), stored);
            }
        }
    }

    /// What was due until now has its status by the definition that held until now. Where its slots end with it,
    /// those that wait for something do not run.
    fn conclude(&mut self, context: &SchedulerContext<'_>, id: &str, why: &str, ends: bool) {
        let now = context.now;
        // The run that is being made is of the former definition.
        if context.is_draining || !self.resident.contains_key(id) {
            return;
        }
        self.decide(context, id);
        let Some(gone) = self.resident.get_mut(id).filter(|_| ends) else {
            return;
        };
        let mut rows = gone.state.let_go(now, why);
        if let Some(slots) = gone.recurrence() {
            rows.extend(
                gone.state
                    .close_gap(&slots, &gone.definition.policy, now, why),
            );
        }
        let rows = rows.into_iter().map(|row| stored(id, row));
        self.instructions.extend(rows);
    }

    pub(crate) fn activate(
        &mut self,
        context: &SchedulerContext<'_>,
        definition: &Arc<Schedule>,
        runs: &mut BTreeMap<String, BTreeSet<RunId>>,
    ) -> Result<(), Diagnostic> {
        let id = &definition.id;
        match self.active.get_mut(id) {
            Some(present)
                if present.definition == *definition && present.zone == zone_of(definition) =>
            {
                // The same, read again: the former one need not be kept beside it.
                present.definition = Arc::clone(definition);
                if let Some(resident) = self.resident.get_mut(id) {
                    resident.definition = Arc::clone(definition);
                }
                return Ok(());
            }
            Some(_) => {
                self.refuse_unreadable(context, id)?;
                if self.replace(context, definition) {
                    return Ok(());
                }
            }
            None => self.take_up(context, definition, runs.remove(&**id).unwrap_or_default())?,
        }
        self.alarms.evaluate(Arc::clone(id));
        self.evaluate_soon(context, id);
        self.look_around(context, id);
        Ok(())
    }

    /// Has one looked at as soon as nothing is due.
    fn evaluate_soon(&mut self, context: &SchedulerContext<'_>, id: &Arc<str>) {
        let resident = self.resident.get(id);
        let cursor = resident.map(|one| one.state.cursor);
        let cursor = cursor.or_else(|| self.going_on.get(id).copied());
        let cursor = cursor.unwrap_or(context.now);
        self.unseen.insert((Reverse(cursor), Arc::clone(id)));
    }

    /// Another definition takes the place of the present one; whether its slots are the same.
    fn replace(&mut self, context: &SchedulerContext<'_>, definition: &Arc<Schedule>) -> bool {
        let (id, now) = (&definition.id, context.now);
        let digest = digest(definition);
        let present = self.resident.get(id);
        let is_other = present.is_some_and(|one| one.state.digest != digest);
        self.alarms.evaluate(Arc::clone(id));
        self.conclude(
            context,
            id,
            "the schedule was changed before it ran",
            is_other,
        );
        if let Some(active) = self.active.get_mut(id) {
            active.definition = Arc::clone(definition);
            active.zone = zone_of(definition);
        }
        if let Some(present) = self.resident.get_mut(id) {
            present.definition = Arc::clone(definition);
            present.zone = zone_of(definition);
            if is_other {
                present.state.re_anchor(digest, now);
                self.instructions.push(written(id, &present.state));
            }
        }
        self.evaluate_soon(context, id);
        !is_other
    }

    /// Whether the state that the store has of a schedule holds for this definition as it is.
    fn goes_on(&self, definition: &Schedule) -> bool {
        self.going_on.contains_key(&definition.id)
            || self
                .known
                .get(&*definition.id)
                .is_some_and(|known| known.goes_on(&digest(definition)))
    }

    /// Activates a schedule that was not, with its runs of earlier engines that have not ended.
    fn take_up(
        &mut self,
        context: &SchedulerContext<'_>,
        definition: &Arc<Schedule>,
        runs: BTreeSet<RunId>,
    ) -> Result<(), Diagnostic> {
        let (id, zone) = (&definition.id, zone_of(definition));
        let active = ActiveSchedule {
            definition: Arc::clone(definition),
            zone,
            wake: None,
            rank: 0,
            outlook: Outlook::default(),
        };
        if !self.goes_on(definition) {
            let (known, digest) = (self.known_state(context, id)?, digest(definition));
            let state = taken_up(&mut self.instructions, (id, digest), known, context.now);
            let scheduled = Box::new(ResidentSchedule::new(definition, zone, state));
            self.resident.insert(Arc::clone(id), scheduled);
        }
        self.active.insert(Arc::clone(id), active);
        if !runs.is_empty() {
            self.refuse_unreadable(context, id)?;
        }
        if let Some(scheduled) = self.resident.get_mut(id) {
            scheduled.runs = runs;
        }
        self.known.remove(&**id);
        Ok(())
    }
}

/// The state of a schedule that was not active.
fn taken_up(
    instructions: &mut Vec<Instruction>,
    (id, digest): (&str, String),
    known: Option<Box<ScheduleState>>,
    now: Timestamp,
) -> Box<ScheduleState> {
    let state = match known {
        Some(state) if state.digest == digest && state.closed.is_none() => return state,
        // Made anew of its rows: it goes on behind the newest of them.
        Some(mut state) if state.digest.is_empty() => {
            state.digest = digest;
            state
        }
        Some(mut state) => {
            let rows = state.let_go(now, "the schedule was changed before it ran");
            instructions.extend(rows.into_iter().map(|row| stored(id, row)));
            state.re_anchor(digest, now);
            state
        }
        None => Box::new(ScheduleState::new(digest, now)),
    };
    instructions.push(written(id, &state));
    state
}
