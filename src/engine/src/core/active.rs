//! Which schedules are active: what a definition that comes, changes or goes does to its stored state.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::super::stored_schedules::{StoredSchedule, digest};
use super::alarm::Outlook;
use super::ledger::{stored, written};
use super::occurrences::followers;
use super::resident::ActiveSchedule;
use super::schedules::ResidentSchedule;
use super::{Core, Turn};
use crate::model::schedule::{Schedule, ScheduleState};
use crate::model::{Diagnostic, RunId, Timestamp, Zone};

/// States of new schedules that are stored together.
const COMMITTED_AT_ONCE: usize = 250;

fn zone_of(definition: &Schedule) -> Zone {
    definition.timezone.parse().unwrap_or(Zone::UTC)
}

/// Those that the definition does not switch off.
fn enabled(definitions: &[Arc<Schedule>]) -> impl Iterator<Item = &Arc<Schedule>> {
    definitions.iter().filter(|definition| !definition.disabled)
}

impl Core {
    /// These definitions are current from now on.
    pub(super) fn set_schedules(
        &mut self,
        turn: &mut Turn,
        definitions: &[Arc<Schedule>],
    ) -> Result<(), Diagnostic> {
        self.deactivate_others(turn, definitions);
        let mut runs = self.runs_of_schedules();
        for definition in enabled(definitions) {
            self.activate(turn, definition, &mut runs)?;
        }
        self.take_turns(definitions);
        self.schedules.followers = followers(definitions);
        self.board.try_now(self.clock.now());
        Ok(())
    }

    /// Puts active schedules before runs of earlier engines are settled. Nobody waits for an answer, so that a
    /// workspace of very many that are new is stored part by part. They are complete where no error hides one.
    pub(crate) fn begin_schedules(
        &mut self,
        definitions: &[Arc<Schedule>],
        are_complete: bool,
    ) -> Result<(), Diagnostic> {
        let mut turn = Turn::default();
        let mut runs = self.runs_of_schedules();
        for definition in enabled(definitions) {
            self.activate(&mut turn, definition, &mut runs)?;
            if turn.before.len() >= COMMITTED_AT_ONCE {
                self.commit(&mut turn)?;
                self.evict();
            }
        }
        self.schedules.followers = followers(definitions);
        self.take_turns(definitions);
        if are_complete {
            self.close_absent_schedules(&mut turn)?;
        }
        self.commit(&mut turn)?;
        self.evict();
        self.schedules.going_on = HashMap::new();
        // A tree that is filled in order is half empty; one that is made of all at once is full.
        let active = std::mem::take(&mut self.schedules.active);
        self.schedules.active = active.into_iter().collect();
        Ok(())
    }

    /// Numbers the schedules of each worker: what is due at once is shared out between workers.
    fn take_turns(&mut self, definitions: &[Arc<Schedule>]) {
        let mut counts: HashMap<&str, u32> = HashMap::new();
        for definition in enabled(definitions) {
            let rank = counts.entry(&definition.skill.worker).or_default();
            self.schedules.set_rank(&definition.id, *rank);
            *rank += 1;
        }
    }

    /// Runs of schedules that have not ended.
    fn runs_of_schedules(&self) -> BTreeMap<String, BTreeSet<RunId>> {
        let mut runs: BTreeMap<String, BTreeSet<RunId>> = BTreeMap::new();
        for (run, live) in &self.live {
            if let Some(due) = live
                .spec
                .scheduled
                .as_ref()
                .filter(|_| !live.run.is_finished())
            {
                runs.entry(due.schedule.clone()).or_default().insert(*run);
            }
        }
        runs
    }

    /// Closes schedules that are not defined any more.
    fn deactivate_others(&mut self, turn: &mut Turn, definitions: &[Arc<Schedule>]) {
        let now = self.clock.now();
        let defined: HashSet<&str> = enabled(definitions).map(|one| &*one.id).collect();
        let mut left = self.schedules.ids();
        left.retain(|id| !defined.contains(id.as_ref()));
        for id in left {
            self.load(&id);
            self.conclude(turn, &id, "the schedule was removed before it ran", true);
            self.schedules.set_wake(&id, None);
            let gone = self.schedules.resident.remove(&id);
            // One that could not be read stays until it can be.
            if let Some(mut gone) = gone
                && let Some(active) = self.schedules.active.remove(&id)
            {
                self.alarms.forget(&id, &active.outlook);
                gone.state.closed = Some(now);
                gone.state.open = None;
                turn.before.push(written(&id, &gone.state));
                let stored = StoredSchedule::of(&gone.state);
                self.schedules.known.insert(id.to_string(), stored);
            }
        }
    }

    /// What was due until now has its fate by the definition that held until now. Where its slots end with it,
    /// those that wait for something do not run.
    fn conclude(&mut self, turn: &mut Turn, id: &str, why: &str, ends: bool) {
        let now = self.clock.now();
        // The run that is being made is of the former definition.
        if self.draining.is_some() || !self.schedules.resident.contains_key(id) {
            return;
        }
        self.decide(turn, id);
        let Some(gone) = self.schedules.resident.get_mut(id).filter(|_| ends) else {
            return;
        };
        let mut rows = gone.state.let_go(now, why);
        if let Some(slots) = gone.recurrence() {
            rows.extend(
                gone.state
                    .close_gap(&slots, &gone.definition.policy, now, why),
            );
        }
        turn.before
            .extend(rows.into_iter().map(|row| stored(id, row)));
    }

    fn activate(
        &mut self,
        turn: &mut Turn,
        definition: &Arc<Schedule>,
        runs: &mut BTreeMap<String, BTreeSet<RunId>>,
    ) -> Result<(), Diagnostic> {
        let id = &definition.id;
        match self.schedules.active.get_mut(id) {
            Some(present)
                if present.definition == *definition && present.zone == zone_of(definition) =>
            {
                // The same, read again: the former one need not be kept beside it.
                present.definition = Arc::clone(definition);
                if let Some(resident) = self.schedules.resident.get_mut(id) {
                    resident.definition = Arc::clone(definition);
                }
                return Ok(());
            }
            Some(_) => {
                self.refuse_unreadable(id)?;
                if self.replace(turn, definition) {
                    return Ok(());
                }
            }
            None => self.take_up(turn, definition, runs.remove(&**id).unwrap_or_default())?,
        }
        self.alarms.evaluate(Arc::clone(id));
        self.evaluate_soon(id);
        self.look_around(turn, id);
        Ok(())
    }

    fn evaluate_soon(&mut self, id: &Arc<str>) {
        let resident = self.schedules.resident.get(id);
        let cursor = resident.map(|one| one.state.cursor);
        let cursor = cursor.or_else(|| self.schedules.going_on.get(id).copied());
        let cursor = cursor.unwrap_or_else(|| self.clock.now());
        self.schedules.evaluate_soon(Arc::clone(id), cursor);
    }

    /// Another definition takes the place of the present one; whether its slots are the same.
    fn replace(&mut self, turn: &mut Turn, definition: &Arc<Schedule>) -> bool {
        let (id, now) = (&definition.id, self.clock.now());
        let digest = digest(definition);
        let present = self.schedules.resident.get(id);
        let is_other = present.is_some_and(|one| one.state.digest != digest);
        self.alarms.evaluate(Arc::clone(id));
        self.conclude(turn, id, "the schedule was changed before it ran", is_other);
        if let Some(active) = self.schedules.active.get_mut(id) {
            active.definition = Arc::clone(definition);
            active.zone = zone_of(definition);
        }
        if let Some(present) = self.schedules.resident.get_mut(id) {
            present.definition = Arc::clone(definition);
            present.zone = zone_of(definition);
            if is_other {
                present.state.re_anchor(digest, now);
                turn.before.push(written(id, &present.state));
            }
        }
        self.evaluate_soon(id);
        !is_other
    }

    /// Whether the state that the store has of a schedule holds for this definition as it is.
    fn goes_on(&self, definition: &Schedule) -> bool {
        self.schedules.going_on.contains_key(&definition.id)
            || self
                .schedules
                .known
                .get(&*definition.id)
                .is_some_and(|known| known.goes_on(&digest(definition)))
    }

    /// Activates a schedule that was not, with its runs of earlier engines that have not ended.
    fn take_up(
        &mut self,
        turn: &mut Turn,
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
            let (known, now) = (self.known_state(id)?, self.clock.now());
            let state = taken_up(turn, (id, digest(definition)), known, now);
            let scheduled = Box::new(ResidentSchedule::new(definition, zone, state));
            self.schedules.resident.insert(Arc::clone(id), scheduled);
        }
        self.schedules.active.insert(Arc::clone(id), active);
        if !runs.is_empty() {
            self.refuse_unreadable(id)?;
        }
        if let Some(scheduled) = self.schedules.resident.get_mut(id) {
            scheduled.runs = runs;
        }
        self.schedules.known.remove(&**id);
        Ok(())
    }
}

/// The state of a schedule that was not active.
fn taken_up(
    turn: &mut Turn,
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
            turn.before
                .extend(rows.into_iter().map(|row| stored(id, row)));
            state.re_anchor(digest, now);
            state
        }
        None => Box::new(ScheduleState::new(digest, now)),
    };
    turn.before.push(written(id, &state));
    state
}
