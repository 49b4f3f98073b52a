//! Triggers that do not follow the clock: what happened becomes a slot, and that is decided like any other.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::ledger::stored;
use super::{Instruction, Scheduler, SchedulerContext};
use crate::model::outcome::Outcome;
use crate::model::schedule::{
    AfterWhen, Overlap, Policy, Schedule, ScheduleState, SlotRow, SlotStatus, Trigger,
};
use crate::model::{RunId, RunSpec, Timestamp};
use crate::pool::ProbeRequest;
use crate::protocol::RunSummary;
use crate::trigger_probe::ProbeResult;

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

/// How a run ended, and whether it had nothing to do.
pub(crate) type End<'a> = (&'a Outcome, bool);

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

impl Scheduler {
    /// What a schedule that becomes active has to look at.
    pub(super) fn look_around(&mut self, context: &SchedulerContext<'_>, id: &str) {
        let Some(definition) = self.definition(id) else {
            return;
        };
        match &*definition.trigger {
            Trigger::After { .. } => self.follow_earlier(context, id),
            Trigger::Reboot | Trigger::Watch { .. } | Trigger::OnCommit { .. } => {
                self.probe(context, id, false);
            }
            Trigger::Cron { .. } | Trigger::Every { .. } | Trigger::At { .. } => {}
        }
    }

    /// Somebody has a hint that what a schedule waits for has changed; `None`: every one is looked at.
    pub(crate) fn hinted(&mut self, context: &SchedulerContext<'_>, id: Option<&str>) {
        let now = context.now;
        let Some(id) = id else {
            for id in self.ids() {
                let definition = self.definition(&id);
                if definition.is_some_and(|one| one.trigger.is_seen()) {
                    self.probe(context, &id, false);
                }
            }
            return;
        };
        self.load(context, id);
        let Some(scheduled) = self.resident.get_mut(id) else {
            return;
        };
        let settle = match *scheduled.definition.trigger {
            Trigger::Watch { settle_ms, .. } => settle_ms,
            _ => 0,
        };
        let since = *scheduled.probing.since.get_or_insert(now);
        let last = since.plus_millis(settle.saturating_mul(SETTLES_MAX));
        scheduled.probing.due = Some(now.plus_millis(settle).min(last.max(now)));
        self.set_wake(id, Some(now));
    }

    /// Looks, if the time for it has come.
    pub(super) fn probe_if_due(&mut self, context: &SchedulerContext<'_>, id: &str) {
        let now = context.now;
        let probing = self.resident.get_mut(id).map(|one| &mut one.probing);
        let Some(probing) = probing.filter(|one| one.due.is_some_and(|due| due <= now)) else {
            return;
        };
        probing.due = None;
        self.probe(context, id, false);
    }

    /// A run of the schedule's own has ended: what it changed starts no other.
    pub(super) fn maintain_own_run(&mut self, context: &SchedulerContext<'_>, id: &str) {
        let scheduled = self.resident.get(id);
        if scheduled.is_some_and(|one| one.definition.trigger.is_seen()) {
            self.probe(context, id, true);
        }
    }

    fn probe(&mut self, context: &SchedulerContext<'_>, id: &str, own: bool) {
        self.load(context, id);
        let Some(scheduled) = self.resident.get_mut(id) else {
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
        let definition = Arc::clone(&scheduled.definition);
        let probe = Instruction::Probe(definition, ProbeRequest { seen, own });
        self.instructions.push(probe);
    }

    /// What a schedule waits for has been looked at.
    pub(crate) fn on_probed(
        &mut self,
        context: &SchedulerContext<'_>,
        id: &str,
        own: bool,
        probe: Result<ProbeResult, String>,
    ) {
        let now = context.now;
        let Some(scheduled) = self.resident.get_mut(id) else {
            return;
        };
        scheduled.probing.in_flight = false;
        let waits = waits_for_own(scheduled.definition.policy.overlap);
        if std::mem::take(&mut scheduled.probing.own) {
            // It may have been looked at before the run had ended.
            self.probe(context, id, true);
            return;
        }
        if !own && waits && !scheduled.runs.is_empty() {
            return;
        }
        match probe {
            Ok(probe) => self.has_seen(context, id, own && waits, probe),
            Err(why) => {
                tracing::warn!(schedule = id, why, "what it waits for cannot be seen");
                let at = scheduled.state.unused(now);
                let row = SlotRow::one(at, SlotStatus::BlockedConfig, now).because(why);
                let row = scheduled.state.noted(row);
                self.instructions.push(stored(id, row));
                self.write_state(context, id);
            }
        }
    }

    fn has_seen(
        &mut self,
        context: &SchedulerContext<'_>,
        id: &str,
        own: bool,
        probe: ProbeResult,
    ) {
        let now = context.now;
        let Some(scheduled) = self.resident.get_mut(id) else {
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
                self.set_wake(id, Some(now));
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
                let row = SlotRow::one(at, SlotStatus::SkippedOverlap, now).because(why);
                let row = scheduled.state.noted(row);
                self.instructions.push(stored(id, row));
            } else {
                let row = scheduled.state.occurred(now, None);
                self.instructions.extend(row.map(|row| stored(id, row)));
            }
        }
        self.write_state(context, id);
        self.set_wake(id, Some(now));
    }

    /// A run has ended: schedules that follow its skill are due.
    pub(super) fn follow(&mut self, context: &SchedulerContext<'_>, spec: &RunSpec, end: End<'_>) {
        let skill = spec.skill.to_string().to_lowercase();
        let Some(ids) = self.followers.get(&skill).cloned() else {
            return;
        };
        let now = context.now;
        for id in ids {
            self.follow_run(context, &id, (spec.run, now), end);
        }
    }

    fn follow_run(
        &mut self,
        context: &SchedulerContext<'_>,
        id: &str,
        (run, at): (RunId, Timestamp),
        (outcome, nothing_to_do): End<'_>,
    ) {
        let now = context.now;
        self.load(context, id);
        let Some(scheduled) = self.resident.get_mut(id) else {
            return;
        };
        let counts = match &*scheduled.definition.trigger {
            // Nothing has come of it that another could go on with.
            Trigger::After { when, .. } if nothing_to_do => *when == AfterWhen::Always,
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
        self.instructions.extend(row.map(|row| stored(id, row)));
        self.write_state(context, id);
        self.set_wake(id, Some(now));
    }

    /// Runs may have ended while no daemon was there: they are followed now.
    fn follow_earlier(&mut self, context: &SchedulerContext<'_>, id: &str) {
        self.load(context, id);
        let Some(scheduled) = self.resident.get(id) else {
            return;
        };
        let Trigger::After { skill, .. } = &*scheduled.definition.trigger else {
            return;
        };
        let skill = skill.to_string();
        let (cursor, now) = (scheduled.state.cursor, context.now);
        let since =
            Timestamp::from_millis(cursor.millis().saturating_sub(FOLLOWED_MS.cast_signed()));
        let mut found: Vec<(RunId, Timestamp, (Outcome, bool))> = Vec::new();
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
                found.push((ended.run, at, (outcome, ended.nothing_to_do)));
            }
            ControlFlow::Continue(())
        };
        if let Err(error) = context.store.summaries(None, &mut take) {
            tracing::error!(schedule = id, %error, "runs that it follows cannot be read");
            return;
        }
        found.sort_by_key(|(_, at, _)| *at);
        for (run, at, (outcome, nothing_to_do)) in found {
            self.follow_run(context, id, (run, at), (&outcome, nothing_to_do));
        }
    }
}
