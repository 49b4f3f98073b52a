//! What is due next and what is overdue. That a schedule is overdue stands in its state until it has succeeded, so
//! that an episode is told of once, by whichever engine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::resident::{ActiveSchedule, Outlook};
use super::{EVALUATIONS_MAX, FIRST_EVALUATIONS_LEAST};
use super::{Instruction, Scheduler, SchedulerContext};
use crate::model::schedule::Missed;
use crate::model::{News, Notice, Timestamp};
use crate::protocol::{FailingView, NextDue, OverdueView};
use crate::schedule::{Watched, expectation};
use crate::schedules::{OVERDUE_SHOWN_MAX, next_due};
use crate::store::Write;
use crate::view::Agenda;

/// All schedules, as far as they are expected to succeed.
#[derive(Default)]
pub(super) struct Alarms {
    wakes: BTreeSet<(Timestamp, Arc<str>)>,
    next: BTreeSet<(Timestamp, Arc<str>)>,
    overdue: BTreeMap<String, OverdueView>,
    failing: BTreeMap<String, FailingView>,
    /// Those whose definitions have come, changed or gone since they were looked at.
    unseen: BTreeSet<Arc<str>>,
    /// Whether readers see something else than what holds.
    changed: bool,
}

impl Alarms {
    /// The definition of a schedule has come, changed or gone.
    pub(super) fn evaluate(&mut self, id: Arc<str>) {
        self.unseen.insert(id);
    }

    /// When one of them is to be looked at again; the beginning of time: at once.
    pub(super) fn next_wake(&self) -> Option<Timestamp> {
        if self.unseen.is_empty() {
            self.wakes.first().map(|(wake, _)| *wake)
        } else {
            Some(Timestamp::default())
        }
    }

    /// Whether it is known of each when it is expected.
    pub(super) fn are_seen(&self) -> bool {
        self.unseen.is_empty()
    }

    fn set(&mut self, id: &Arc<str>, earlier: &Outlook, outlook: &Outlook) {
        let key = |at: Timestamp| (at, Arc::clone(id));
        earlier.wake.map(|wake| self.wakes.remove(&key(wake)));
        earlier.next.map(|next| self.next.remove(&key(next)));
        self.wakes.extend(outlook.wake.map(key));
        self.next.extend(outlook.next.map(key));
    }

    /// A schedule is not active any more.
    pub(super) fn forget(&mut self, id: &Arc<str>, outlook: &Outlook) {
        self.set(id, outlook, &Outlook::default());
        self.set_overdue(id, None);
        self.failing.remove(&**id);
        self.changed = true;
    }

    fn set_overdue(&mut self, id: &str, overdue: Option<OverdueView>) {
        self.changed |= self.overdue.get(id) != overdue.as_ref();
        match overdue {
            Some(overdue) => drop(self.overdue.insert(id.to_owned(), overdue)),
            None => drop(self.overdue.remove(id)),
        }
    }

    fn agenda(&self, active: &BTreeMap<Arc<str>, ActiveSchedule>) -> Agenda {
        let timezone = |id: &str| {
            let one = active.get(id);
            one.map_or_else(String::new, |one| one.definition.timezone.to_string())
        };
        Agenda {
            schedules: active.len(),
            next: self.next.first().map(|(at, id)| NextDue {
                schedule: id.to_string(),
                at: *at,
                timezone: timezone(id),
            }),
            overdue: self
                .overdue
                .values()
                .take(OVERDUE_SHOWN_MAX)
                .cloned()
                .collect(),
            failing: self
                .failing
                .values()
                .take(OVERDUE_SHOWN_MAX)
                .cloned()
                .collect(),
        }
    }
}

impl Scheduler {
    /// Looks ahead for every schedule that this turn has changed, and for those whose time has come.
    pub(super) fn alarms_on_time(&mut self, context: &SchedulerContext<'_>) {
        let decided = self.instructions.iter().filter_map(Instruction::write);
        let written = context.uncommitted.iter().chain(decided);
        let mut changed: BTreeSet<Arc<str>> = written.filter_map(schedule_of).collect();
        let due = self.alarms.wakes.iter();
        let due = due.take_while(|(wake, _)| *wake <= context.now);
        changed.extend(due.map(|(_, id)| Arc::clone(id)));
        // Whether a schedule is overdue may be known later than when it is due.
        let most = if self.are_seen() {
            EVALUATIONS_MAX
        } else {
            FIRST_EVALUATIONS_LEAST
        };
        let unseen = std::iter::from_fn(|| self.alarms.unseen.pop_first());
        changed.extend(unseen.take(most));
        for id in changed {
            self.look_ahead(context, &id);
        }
    }

    fn look_ahead(&mut self, context: &SchedulerContext<'_>, id: &Arc<str>) {
        let now = context.now;
        self.alarms.changed = true;
        self.load(context, id);
        let Some(scheduled) = self.resident.get_mut(id) else {
            return;
        };
        let (recurrence, zone) = (scheduled.recurrence(), scheduled.zone);
        let (definition, state) = (&scheduled.definition, &mut scheduled.state);
        let slots = recurrence.as_ref();
        let expected = slots.and_then(|slots| {
            let watched = Watched {
                id,
                slots,
                policy: &definition.policy,
                zone,
            };
            expectation(watched, state)
        });
        match FailingView::of(id, state) {
            Some(failing) => drop(self.alarms.failing.insert(id.to_string(), failing)),
            None => drop(self.alarms.failing.remove(&**id)),
        }
        let timezone = definition.timezone.to_string();
        let next = slots.filter(|_| state.pause.is_none());
        let outlook = Outlook {
            wake: expected.and_then(|expected| expected.next_change(now)),
            next: next.and_then(|slots| next_due(definition, slots, state, now)),
        };
        let missed = expected.filter(|expected| expected.is_missed(now));
        let notice = missed.filter(|_| state.missed.is_none()).map(|missed| {
            let (expected_by, at) = (missed.by, now);
            state.missed = Some(Box::new(Missed { expected_by, at }));
            Notice {
                failures: state.failures,
                expected_by: Some(expected_by),
                ..Notice::of(News::Missed, now)
            }
        });
        let notify = notice.map(|notice| Instruction::Notify(Arc::clone(definition), notice));
        if let Some(active) = self.active.get_mut(id) {
            self.alarms.set(id, &active.outlook, &outlook);
            active.outlook = outlook;
        }
        let overdue = missed.map(|missed| OverdueView {
            schedule: id.to_string(),
            expected_by: missed.by,
            timezone,
        });
        self.alarms.set_overdue(id, overdue);
        if let Some(notify) = notify {
            tracing::warn!(schedule = &**id, "it has not succeeded in time");
            self.write_state(context, id);
            self.instructions.push(notify);
        }
    }

    /// What is due next and what is overdue, where that has changed since it was asked for.
    pub(crate) fn changed_agenda(&mut self) -> Option<Agenda> {
        let changed = std::mem::take(&mut self.alarms.changed);
        changed.then(|| self.alarms.agenda(&self.active))
    }
}

fn schedule_of(write: &Write) -> Option<Arc<str>> {
    match write {
        Write::Schedule { id, .. } => Some(Arc::from(id.as_str())),
        _ => None,
    }
}
