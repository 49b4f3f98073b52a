//! Triggers that do not follow the clock: what happened becomes a slot, and that is decided like any other.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::super::pool::ProbeRequest;
use super::super::run_factory::ProbeResult;
use super::ledger::stored;
use super::{Core, Turn};
use crate::model::outcome::Outcome;
use crate::model::schedule::{Fate, Overlap, Policy, Schedule, ScheduleState, SlotRow, Trigger};
use crate::model::{RunId, RunSpec, Timestamp};
use crate::protocol::RunSummary;

/// How long before the last slot a run may have been accepted whose end is still to be followed, in
/// milliseconds: a day.
const FOLLOWED_MS: u64 = 24 * 3_600_000;

/// Most ended runs that are looked through for some that are to be followed.
const FOLLOWED_MAX: usize = 10_000;

/// How many are looked through in any case: a run may have been accepted long before its time.
const FOLLOWED_AT_LEAST: usize = 500;

/// For how many times its time to settle what is watched may go on changing.
const SETTLES_MAX: u64 = 30;

/// Looks at what a schedule waits for.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Probing {
    /// When it is looked at.
    pub(super) due: Option<Timestamp>,
    /// When the first change of a stretch was hinted at.
    since: Option<Timestamp>,
    /// Whether somebody looks.
    in_flight: bool,
    /// Whether a run of its own has ended meanwhile.
    own: bool,
}

impl Probing {
    pub(super) const fn is_at_rest(&self) -> bool {
        self.due.is_none() && self.since.is_none() && !self.in_flight
    }

    #[cfg(test)]
    pub(super) const fn is_in_flight(&self) -> bool {
        self.in_flight
    }
}

/// Which schedules follow which skill.
pub(super) fn followers(definitions: &[Arc<Schedule>]) -> BTreeMap<String, Vec<String>> {
    let mut followers: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for one in definitions.iter().filter(|one| !one.disabled) {
        if let Trigger::After { skill, .. } = &*one.trigger {
            let skill = skill.to_string().to_lowercase();
            followers.entry(skill).or_default().push(one.id.to_string());
        }
    }
    followers
}

/// Whether changes while a run of the schedule is under way wait for its end.
fn waits_for_own(overlap: Overlap) -> bool {
    match overlap {
        Overlap::Skip | Overlap::BufferOne | Overlap::BufferAll => true,
        Overlap::CancelOther | Overlap::AllowAll => false,
    }
}

/// Whether something that happens then is due at all: within the schedule's start, end and number of runs.
fn is_open(policy: &Policy, state: &ScheduleState, at: Timestamp) -> bool {
    policy.start.is_none_or(|start| at >= start)
        && policy.end.is_none_or(|end| at <= end)
        && policy.max_actions.is_none_or(|most| state.actions < most)
}

impl Core {
    /// What a schedule that comes into force has to look at.
    pub(super) fn look_around(&mut self, turn: &mut Turn, id: &str) {
        let Some(definition) = self.schedules.definition(id) else {
            return;
        };
        match &*definition.trigger {
            Trigger::After { .. } => self.follow_earlier(turn, id),
            Trigger::Reboot | Trigger::Watch { .. } | Trigger::OnCommit { .. } => {
                self.probe(id, false);
            }
            Trigger::Cron { .. } | Trigger::Every { .. } | Trigger::At { .. } => {}
        }
    }

    /// Somebody has a hint that what a schedule waits for has changed; `None`: every one is looked at.
    pub(super) fn hinted(&mut self, id: Option<&str>) {
        let now = self.clock.now();
        let Some(id) = id else {
            for id in self.schedules.ids() {
                let definition = self.schedules.definition(&id);
                if definition.is_some_and(|one| one.trigger.is_seen()) {
                    self.probe(&id, false);
                }
            }
            return;
        };
        self.load(id);
        let Some(scheduled) = self.schedules.resident.get_mut(id) else {
            return;
        };
        let settle = match *scheduled.definition.trigger {
            Trigger::Watch { settle_ms, .. } => settle_ms,
            _ => 0,
        };
        let since = *scheduled.probing.since.get_or_insert(now);
        let last = since.plus_millis(settle.saturating_mul(SETTLES_MAX));
        scheduled.probing.due = Some(now.plus_millis(settle).min(last.max(now)));
        self.schedules.set_wake(id, Some(now));
    }

    /// Looks, if the time for it has come.
    pub(super) fn probe_if_due(&mut self, id: &str) {
        let now = self.clock.now();
        let probing = self
            .schedules
            .resident
            .get_mut(id)
            .map(|one| &mut one.probing);
        let Some(probing) = probing.filter(|one| one.due.is_some_and(|due| due <= now)) else {
            return;
        };
        probing.due = None;
        self.probe(id, false);
    }

    /// A run of the schedule's own has ended: what it changed starts no other.
    pub(super) fn maintain_own_run(&mut self, id: &str) {
        let scheduled = self.schedules.resident.get(id);
        if scheduled.is_some_and(|one| one.definition.trigger.is_seen()) {
            self.probe(id, true);
        }
    }

    fn probe(&mut self, id: &str, own: bool) {
        self.load(id);
        let Some(scheduled) = self.schedules.resident.get_mut(id) else {
            return;
        };
        if scheduled.probing.in_flight {
            scheduled.probing.own |= own;
            return;
        }
        let waits = waits_for_own(scheduled.definition.policy.overlap);
        if !own && waits && !scheduled.runs.is_empty() {
            return;
        }
        scheduled.probing.in_flight = true;
        let seen = scheduled.state.seen.clone();
        self.pool
            .probe(&scheduled.definition, ProbeRequest { seen, own });
    }

    /// What a schedule waits for has been looked at.
    pub(super) fn on_probed(
        &mut self,
        turn: &mut Turn,
        id: &str,
        own: bool,
        probe: Result<ProbeResult, String>,
    ) {
        let now = self.clock.now();
        let Some(scheduled) = self.schedules.resident.get_mut(id) else {
            return;
        };
        scheduled.probing.in_flight = false;
        let waits = waits_for_own(scheduled.definition.policy.overlap);
        if std::mem::take(&mut scheduled.probing.own) {
            // It may have been looked at before the run had ended.
            self.probe(id, true);
            return;
        }
        if !own && waits && !scheduled.runs.is_empty() {
            return;
        }
        match probe {
            Ok(probe) => self.has_seen(turn, id, own && waits, probe),
            Err(why) => {
                tracing::warn!(schedule = id, why, "what it waits for cannot be seen");
                let at = scheduled.state.unused(now);
                let row = SlotRow::one(at, Fate::BlockedConfig, now).because(why);
                let row = scheduled.state.noted(row);
                turn.before.push(stored(id, row));
                self.write_state(turn, id);
            }
        }
    }

    fn has_seen(&mut self, turn: &mut Turn, id: &str, own: bool, probe: ProbeResult) {
        let now = self.clock.now();
        let Some(scheduled) = self.schedules.resident.get_mut(id) else {
            return;
        };
        let before = scheduled.state.seen.clone();
        if before.as_ref() == Some(&probe.seen) {
            scheduled.probing.since = None;
            return;
        }
        if before.is_some()
            && let Trigger::Watch { settle_ms, .. } = *scheduled.definition.trigger
            && let Some(settled) = probe.changed_at.map(|at| at.plus_millis(settle_ms))
            && !own
            && probe.changed_at <= Some(now)
            && settled > now
        {
            let since = *scheduled.probing.since.get_or_insert(now);
            if since.plus_millis(settle_ms.saturating_mul(SETTLES_MAX)) > now {
                scheduled.probing.due = Some(settled);
                self.schedules.set_wake(id, Some(now));
                return;
            }
        }
        scheduled.probing.since = None;
        scheduled.state.seen = Some(probe.seen);
        let policy = &scheduled.definition.policy;
        if before.is_some() && probe.counts && is_open(policy, &scheduled.state, now) {
            if own && scheduled.definition.policy.overlap == Overlap::Skip {
                let why = "it changed while a run of the schedule itself was under way";
                let at = scheduled.state.unused(now);
                let row = SlotRow::one(at, Fate::SkippedOverlap, now).because(why);
                let row = scheduled.state.noted(row);
                turn.before.push(stored(id, row));
            } else {
                let row = scheduled.state.occurred(now, None);
                turn.before.extend(row.map(|row| stored(id, row)));
            }
        }
        self.write_state(turn, id);
        self.schedules.set_wake(id, Some(now));
    }

    /// A run has ended: schedules that follow its skill are due.
    pub(super) fn follow(&mut self, turn: &mut Turn, spec: &RunSpec, outcome: &Outcome) {
        let skill = spec.skill.to_string().to_lowercase();
        let Some(ids) = self.schedules.followers.get(&skill).cloned() else {
            return;
        };
        let now = self.clock.now();
        for id in ids {
            self.follow_run(turn, &id, (spec.run, now), outcome);
        }
    }

    fn follow_run(
        &mut self,
        turn: &mut Turn,
        id: &str,
        (run, at): (RunId, Timestamp),
        outcome: &Outcome,
    ) {
        let now = self.clock.now();
        self.load(id);
        let Some(scheduled) = self.schedules.resident.get_mut(id) else {
            return;
        };
        let counts = match &*scheduled.definition.trigger {
            Trigger::After { when, .. } => when.counts(outcome),
            _ => false,
        };
        let policy = &scheduled.definition.policy;
        let pending = &scheduled.state.pending;
        if !counts
            || !is_open(policy, &scheduled.state, at)
            || pending.iter().any(|one| one.after == Some(run))
        {
            return;
        }
        let row = scheduled.state.occurred(at, Some(run));
        turn.before.extend(row.map(|row| stored(id, row)));
        self.write_state(turn, id);
        self.schedules.set_wake(id, Some(now));
    }

    /// Runs may have ended while no daemon was there: they are followed now.
    fn follow_earlier(&mut self, turn: &mut Turn, id: &str) {
        self.load(id);
        let Some(scheduled) = self.schedules.resident.get(id) else {
            return;
        };
        let Trigger::After { skill, .. } = &*scheduled.definition.trigger else {
            return;
        };
        let skill = skill.to_string();
        let (cursor, now) = (scheduled.state.cursor, self.clock.now());
        let since =
            Timestamp::from_millis(cursor.millis().saturating_sub(FOLLOWED_MS.cast_signed()));
        let mut found: Vec<(RunId, Timestamp, Outcome)> = Vec::new();
        let mut looked = 0;
        let mut take = |ended: RunSummary| {
            looked += 1;
            let is_old = looked > FOLLOWED_AT_LEAST && ended.submitted_at < since;
            if looked > FOLLOWED_MAX || is_old {
                return ControlFlow::Break(());
            }
            if ended.skill.to_string().eq_ignore_ascii_case(&skill)
                && let (Some(at), Some(outcome)) = (ended.finished_at, ended.outcome)
                && at > cursor
                && at <= now
            {
                found.push((ended.run, at, outcome));
            }
            ControlFlow::Continue(())
        };
        if let Err(error) = self.store.summaries(None, &mut take) {
            tracing::error!(schedule = id, %error, "runs that it follows cannot be read");
            return;
        }
        found.sort_by_key(|(_, at, _)| *at);
        for (run, at, outcome) in found {
            self.follow_run(turn, id, (run, at), &outcome);
        }
    }
}
