//! Schedules: when each is looked at, and what is written of its slots.
//!
//! A slot that is to run is made into a run off the loop, for that reads files; when it comes back, it is
//! decided anew. Its row, the schedule's state and the run are one commit.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::super::request::Submission;
use super::super::stored_schedules::{StoredSchedule, StoredSchedules};
use super::ledger::{Hindrance, blocked, stored};
use super::occurrences::Probing;
use super::resident::ActiveSchedule;
use super::{Core, Turn};
use crate::machine::CancelKind;
use crate::model::outcome::Outcome;
use crate::model::schedule::{Fate, Overlap, Pause, Schedule, ScheduleState};
use crate::model::{Diagnostic, Kind, RunId, RunSpec, Timestamp, Zone};
use crate::schedule::{LATE_AFTER_MS, Moment, Next, Others, Recurrence, settle};

/// After how long a slot is tried again that finds the queue full or meets a fault, in milliseconds.
pub(super) const TRY_AGAIN_MS: u64 = 5_000;

/// Most schedules that one turn looks at, some milliseconds; the others follow in the next. A slot takes three
/// turns until its run starts.
pub(super) const EVALUATIONS_MAX: usize = 200;

/// So many of those that something has put into force are looked at however many are due.
pub(super) const FIRST_EVALUATIONS_LEAST: usize = 20;

/// Rows of one look before others have their turn.
const ROUNDS_MAX: usize = 16;

/// An active schedule to which something happens.
pub(super) struct ResidentSchedule {
    pub(super) definition: Arc<Schedule>,
    pub(super) zone: Zone,
    pub(super) state: Box<ScheduleState>,
    /// The slot whose run is being made.
    pub(super) preparing: Option<Timestamp>,
    /// Its runs that have not ended.
    pub(super) runs: BTreeSet<RunId>,
    /// What it waits for, if that does not follow the clock.
    pub(super) probing: Probing,
    /// Why the slot that is next in turn could not run yet.
    pub(super) held_back: Option<String>,
}

impl ResidentSchedule {
    pub(super) fn new(
        definition: &Arc<Schedule>,
        zone: Zone,
        state: Box<ScheduleState>,
    ) -> ResidentSchedule {
        ResidentSchedule {
            definition: Arc::clone(definition),
            zone,
            state,
            preparing: None,
            runs: BTreeSet::new(),
            probing: Probing::default(),
            held_back: None,
        }
    }

    /// Whether nothing happens to it, so that all there is to know is in the store.
    pub(super) fn is_at_rest(&self) -> bool {
        let waits = self.preparing.is_some() || self.held_back.is_some();
        !waits && self.runs.is_empty() && self.probing.is_at_rest()
    }

    /// Its slots that follow the clock. Made anew for each look: kept, they would be the most that is held
    /// of a schedule, and hardly any is looked at often.
    pub(super) fn recurrence(&self) -> Option<Recurrence> {
        Recurrence::of(&self.definition.trigger, self.zone, self.state.anchor)
    }
}

/// All schedules.
#[derive(Default)]
pub(super) struct Schedules {
    /// All that are active.
    pub(super) active: BTreeMap<Arc<str>, ActiveSchedule>,
    /// Those of them to which something happens.
    pub(super) resident: BTreeMap<Arc<str>, Box<ResidentSchedule>>,
    /// Which schedules follow a skill; its address is in lower case.
    pub(super) followers: BTreeMap<String, Vec<String>>,
    /// What the store has of schedules whose definitions are not there.
    pub(super) known: BTreeMap<String, StoredSchedule>,
    /// While an engine starts: those that go on with the state that the store has of them, with their cursors.
    pub(super) going_on: HashMap<Arc<str>, Timestamp>,
    /// When each is looked at; of those due at once the first of every worker, then the second of every worker.
    wakes: BTreeSet<(Timestamp, u32, Arc<str>)>,
    /// Those of which it is not known when they are due, by their cursors: what was due last is likely due soon.
    /// They stand behind those whose time has come, for after a start there may be very many.
    unseen: BTreeSet<(Reverse<Timestamp>, Arc<str>)>,
    evaluated_at: Option<Timestamp>,
    /// Since when slots have been looked at without a break.
    there_since: Timestamp,
    /// Why they were not looked at before.
    absence: &'static str,
    /// How many of them were looked at since there were none.
    pub(super) first_evaluations: usize,
}

impl Schedules {
    /// With what is stored.
    pub(super) fn with_stored(known: StoredSchedules) -> Schedules {
        Schedules {
            known: known.others,
            going_on: known.going_on,
            ..Schedules::default()
        }
    }

    /// The active ones.
    pub(super) fn ids(&self) -> Vec<Arc<str>> {
        self.active.keys().map(Arc::clone).collect()
    }

    /// The definition of one that is active.
    pub(super) fn definition(&self, id: &str) -> Option<&Arc<Schedule>> {
        self.active.get(id).map(|one| &one.definition)
    }

    /// The earliest wall time at which one is looked at; the beginning of time: at once.
    pub(super) fn next_wake(&self) -> Option<Timestamp> {
        if self.unseen.is_empty() {
            self.wakes.first().map(|(wake, ..)| *wake)
        } else {
            Some(Timestamp::default())
        }
    }

    /// Whether it is known of each when it is due.
    pub(super) fn are_seen(&self) -> bool {
        self.unseen.is_empty()
    }

    /// The loop looks every 30 s at least: more time has passed where it did not run, or the machine was suspended.
    fn notice_break(&mut self, before: Option<Timestamp>, now: Timestamp) {
        if before.is_none_or(|before| now.millis_since(before) > LATE_AFTER_MS) {
            self.there_since = now;
            self.absence = match before {
                None => "no daemon ran",
                Some(_) => "the machine slept, or its clock was set forward",
            };
        }
        self.there_since = self.there_since.min(now);
    }

    /// Has one looked at as soon as nothing is due.
    pub(super) fn evaluate_soon(&mut self, id: Arc<str>, cursor: Timestamp) {
        self.unseen.insert((Reverse(cursor), id));
    }

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

    /// In the order in which they are looked at.
    #[cfg(test)]
    pub(super) fn in_turn(&self) -> Vec<Arc<str>> {
        self.wakes.iter().map(|(.., id)| Arc::clone(id)).collect()
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
}

impl Core {
    /// Looks at every schedule whose time has come.
    pub(super) fn schedules_on_time(&mut self, turn: &mut Turn) {
        if !self.starts_queued || self.draining.is_some() || self.unsettled.is_some() {
            return;
        }
        let now = self.clock.now();
        let before = self.schedules.evaluated_at.replace(now);
        self.schedules.notice_break(before, now);
        if before.is_some_and(|before| before > now) {
            // Which of them are ahead of the clock now is known once each is looked at.
            for id in self.schedules.ids() {
                self.schedules.evaluate_soon(id, now);
            }
        }
        let mut left = EVALUATIONS_MAX;
        while left > 0 {
            let due = self.schedules.wakes.first();
            let Some((.., id)) = due.filter(|(wake, ..)| *wake <= now).cloned() else {
                break;
            };
            self.evaluate(turn, &id);
            left -= 1;
        }
        for _ in 0..left.max(FIRST_EVALUATIONS_LEAST) {
            let Some((_, id)) = self.schedules.unseen.pop_first() else {
                return;
            };
            self.evaluate(turn, &id);
            self.schedules.first_evaluations += 1;
        }
    }

    fn evaluate(&mut self, turn: &mut Turn, id: &str) {
        self.schedules.set_wake(id, None);
        self.load(id);
        self.probe_if_due(id);
        let scheduled = self.schedules.resident.get(id);
        if scheduled.is_none_or(|one| one.preparing.is_some()) {
            return;
        }
        self.rewind(turn, id);
        match self.decide(turn, id) {
            Some(Next::Fire { slot, .. }) => {
                if let Some(scheduled) = self.schedules.resident.get_mut(id) {
                    scheduled.preparing = Some(slot);
                    let occurrence = scheduled.state.occurrence(slot);
                    let definition = Arc::clone(&scheduled.definition);
                    turn.due.push((definition, occurrence));
                    self.preparing += 1;
                }
            }
            Some(next) => self.wait_for(id, next),
            None => {}
        }
    }

    fn wait_for(&mut self, id: &str, next: Next) {
        let probe = self
            .schedules
            .resident
            .get(id)
            .and_then(|one| one.probing.due);
        let wake = match next {
            Next::Wait(wake) => wake,
            Next::Hold(until) => Some(until),
            Next::Again | Next::Fire { .. } => Some(self.clock.now()),
        };
        let wake = wake.into_iter().chain(probe).min();
        self.schedules.set_wake(id, wake);
    }

    /// Decides about the slots that have come; rows and state go into the turn.
    pub(super) fn decide(&mut self, turn: &mut Turn, id: &str) -> Option<Next> {
        let now = self.clock.now();
        let others = self.others(id);
        let blocking = self.not_ended(id).next();
        let absence = (self.schedules.absence, self.schedules.there_since);
        let scheduled = self.schedules.resident.get_mut(id)?;
        let moment = Moment {
            now,
            zone: scheduled.zone,
            there_since: self.schedules.there_since,
            id,
            others,
        };
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
                absence,
                blocking,
            };
            let rows = rows.into_iter().map(|row| hindrance.explain(row));
            turn.before.extend(rows.map(|row| stored(id, row)));
            next = then;
            if next != Next::Again {
                break;
            }
        }
        if scheduled.state.cursor != cursor {
            scheduled.held_back = None;
            self.write_state(turn, id);
        }
        Some(next)
    }

    /// Runs of a schedule that have not ended.
    pub(super) fn others(&self, id: &str) -> Others {
        let mut others = Others::default();
        for run in self.not_ended(id) {
            match self.live.get(&run) {
                Some(live) if live.run.is_queued() => others.waiting += 1,
                _ => others.running += 1,
            }
        }
        others
    }

    fn not_ended(&self, id: &str) -> impl Iterator<Item = RunId> {
        let runs = self.schedules.resident.get(id).map(|one| &one.runs);
        let runs = runs.into_iter().flatten().copied();
        runs.filter(|run| self.live.contains_key(run))
    }

    /// The run of a slot has been made, or cannot be.
    pub(super) fn on_prepared(
        &mut self,
        turn: &mut Turn,
        id: &str,
        made: Result<Submission, Diagnostic>,
    ) {
        self.preparing = self.preparing.saturating_sub(1);
        let run = made.as_ref().ok().map(|submission| submission.spec.run);
        let wanted = self
            .schedules
            .resident
            .get_mut(id)
            .and_then(|scheduled| scheduled.preparing.take())
            .filter(|_| self.draining.is_none());
        let next = wanted.and_then(|_| self.decide(turn, id));
        let accepted = match (next, wanted) {
            (Some(Next::Fire { slot, fate }), Some(wanted)) if slot == wanted => {
                self.fire(turn, id, (slot, fate), made)
            }
            (Some(next), _) => {
                self.wait_for(id, next);
                false
            }
            (None, _) => false,
        };
        if let Some(run) = run.filter(|_| !accepted) {
            self.pool.forget(run);
        }
    }

    /// A slot leads to its run; false where it does not.
    fn fire(
        &mut self,
        turn: &mut Turn,
        id: &str,
        (slot, fate): (Timestamp, Fate),
        made: Result<Submission, Diagnostic>,
    ) -> bool {
        let now = self.clock.now();
        let submission = match made {
            Ok(submission) => submission,
            Err(refused) => {
                // A fault of ours or of the machine says nothing of the definition: it is tried again.
                if refused.kind == Kind::Internal {
                    tracing::error!(schedule = id, why = refused.message, "a slot waits");
                    let again = now.plus_millis(TRY_AGAIN_MS);
                    self.schedules.set_wake(id, Some(again));
                } else {
                    self.not_fired(turn, id, slot, refused.message);
                }
                return false;
            }
        };
        let run = submission.spec.run;
        if let Err(refused) = self.enqueue(turn, &submission) {
            tracing::warn!(schedule = id, why = refused.message, "a slot waits");
            let again = now.plus_millis(TRY_AGAIN_MS);
            self.schedules.set_wake(id, Some(again));
            if let Some(scheduled) = self.schedules.resident.get_mut(id) {
                scheduled.held_back = Some(refused.message);
            }
            return false;
        }
        self.end_others(turn, id, None);
        if let Some(scheduled) = self.schedules.resident.get_mut(id) {
            scheduled.held_back = None;
            let row = scheduled.state.fired(slot, fate, run, now);
            scheduled.runs.insert(run);
            turn.before.push(stored(id, row));
        }
        self.write_state(turn, id);
        self.schedules.set_wake(id, Some(now));
        true
    }

    fn not_fired(&mut self, turn: &mut Turn, id: &str, slot: Timestamp, why: String) {
        let now = self.clock.now();
        tracing::warn!(schedule = id, why, "a slot does not run");
        if let Some(scheduled) = self.schedules.resident.get_mut(id) {
            let row = scheduled.state.cover(blocked(slot, now, why));
            turn.before.push(stored(id, row));
        }
        self.write_state(turn, id);
        self.schedules.set_wake(id, Some(now));
    }

    /// Ends the other runs of a schedule where its policy says so.
    pub(super) fn end_others(&mut self, turn: &mut Turn, id: &str, overlap: Option<Overlap>) {
        let Some(scheduled) = self.schedules.resident.get(id) else {
            return;
        };
        if overlap.unwrap_or(scheduled.definition.policy.overlap) != Overlap::CancelOther {
            return;
        }
        for run in scheduled.runs.clone() {
            let by = format!("schedule {id}");
            // One that can no longer be cancelled ends by itself.
            let _ = self.cancel(turn, run, CancelKind::Graceful, &by);
        }
    }

    /// A run has ended; its schedule may have waited for that, and others may follow it.
    pub(super) fn scheduled_run_ended(
        &mut self,
        turn: &mut Turn,
        spec: &RunSpec,
        outcome: &Outcome,
    ) {
        self.follow(turn, spec, outcome);
        let Some(due) = &spec.scheduled else {
            return;
        };
        let (id, now) = (due.schedule.as_str(), self.clock.now());
        self.load(id);
        if let Some(scheduled) = self.schedules.resident.get_mut(id) {
            scheduled.runs.remove(&spec.run);
        }
        self.count_end(turn, (due, spec.run), outcome);
        if self.schedules.resident.contains_key(id) {
            self.schedules.set_wake(id, Some(now));
            self.maintain_own_run(id);
        }
    }

    /// Pauses a schedule, or lets it go on.
    pub(super) fn pause(
        &mut self,
        turn: &mut Turn,
        id: &str,
        pause: Option<Pause>,
    ) -> Result<(), Diagnostic> {
        self.refuse_unreadable(id)?;
        // What was due until now has its fate by what held until now.
        self.evaluate(turn, id);
        let Some(scheduled) = self.schedules.resident.get_mut(id) else {
            return Err(super::super::schedules::unknown(id));
        };
        let now = self.clock.now();
        scheduled.state.set_pause(pause, now);
        self.write_state(turn, id);
        self.schedules.set_wake(id, Some(now));
        Ok(())
    }
}
