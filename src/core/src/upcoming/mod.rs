//! What schedules do next, and what their policies will do: the same for the API and for commands.

use crate::model::schedule::{DstWarning, Pause, Sentence, SlotRow};
use crate::model::{Timestamp, Zone};
use crate::protocol::{
    BlockedSchedule, ExplainedSchedule, NextSlot, NextSlots, OmittedSlots, ScheduleView,
    SearchedUntil,
};
use crate::schedule::{
    Facts, Fire, Planned, Preview, PreviewQuery, Recurrence, dst_warnings, preview, sentences,
};

/// How far ahead changes of the clock are told, in milliseconds: two years.
const WARNED_MS: u64 = 2 * 366 * 24 * 3_600_000;

/// Which slots are wanted.
pub struct Wanted<'a> {
    /// The present.
    pub now: Timestamp,
    /// The instant after which slots are wanted, in a zone; absent: now.
    pub after: &'a dyn Fn(Zone) -> Option<Timestamp>,
    /// How many.
    pub most: usize,
    /// Whether one schedule is named: it is told as if it were not paused.
    pub is_one: bool,
}

/// What schedules do next.
#[derive(Default)]
pub struct Upcoming<'a> {
    /// Runs that are to start.
    pub fires: Vec<(&'a ScheduleView, Fire)>,
    /// Slots that do not run.
    pub omitted: Vec<(&'a ScheduleView, SlotRow)>,
    /// Up to where it was looked, where too many slots do not run.
    pub given_up: Vec<(&'a ScheduleView, Timestamp)>,
    /// Those that are paused.
    pub paused: Vec<&'a ScheduleView>,
    /// Those whose skill cannot run.
    pub blocked: Vec<&'a ScheduleView>,
    /// Why none of them is fired.
    pub held: Option<&'a str>,
    /// Those that no clock makes due.
    pub by_events: Vec<&'a ScheduleView>,
}

impl<'a> Upcoming<'a> {
    /// Of these schedules.
    pub fn of(views: &'a [ScheduleView], wanted: &Wanted<'_>) -> Upcoming<'a> {
        let (mut next, mut until) = (Upcoming::default(), None);
        for view in views {
            if !next.takes(view, wanted) {
                continue;
            }
            let preview = preview_of(view, wanted, until);
            let given_up = preview.given_up.map(|at| (view, at));
            next.given_up.extend(given_up);
            let fires = preview.fires.into_iter();
            next.fires.extend(fires.map(|fire| (view, fire)));
            next.fires
                .sort_by(|(one, a), (other, b)| (a.starts, &one.id).cmp(&(b.starts, &other.id)));
            next.fires.truncate(wanted.most);
            // Nothing behind the last that is shown is of interest.
            if next.fires.len() >= wanted.most {
                until = next.fires.last().map(|(_, fire)| fire.starts);
            }
            let rows = preview.omitted.into_iter();
            next.omitted.extend(rows.map(|row| (view, row)));
        }
        // What lies behind the last that is shown is not of interest; where nothing runs, all of it is.
        if let Some((_, last)) = next.fires.last() {
            let last = last.starts;
            next.omitted.retain(|(_, row)| row.from <= last);
        }
        next.omitted.sort_by_key(|(_, row)| row.from);
        next
    }

    /// Notes what keeps a schedule from running; answers whether its slots are told.
    fn takes(&mut self, view: &'a ScheduleView, wanted: &Wanted<'_>) -> bool {
        let is_timed = view.plan.trigger.is_timed();
        if !is_timed {
            self.by_events.push(view);
        }
        if view.paused.is_some() {
            self.paused.push(view);
        }
        if view.plan.blocked.is_some() {
            self.blocked.push(view);
        }
        if let Some(why) = &view.inactive_reason {
            self.held = Some(why);
            return false;
        }
        // Among others they would crowd out what does run.
        let runs = view.paused.is_none() && view.plan.blocked.is_none();
        is_timed && (runs || wanted.is_one)
    }

    /// As JSON tells it.
    pub fn document(&self) -> NextSlots {
        let ids = |views: &[&ScheduleView]| views.iter().map(|view| view.id.clone()).collect();
        let fires = self.fires.iter();
        let omitted = self.omitted.iter().map(|(view, row)| OmittedSlots {
            schedule: view.id.clone(),
            from: row.from,
            to: row.to,
            count: row.count,
            status: row.status,
        });
        let searched_until = self.given_up.iter().map(|(view, until)| SearchedUntil {
            schedule: view.id.clone(),
            until: *until,
        });
        let blocked = self.blocked.iter().map(|view| BlockedSchedule {
            schedule: view.id.clone(),
            reason: view.plan.blocked.clone(),
        });
        NextSlots {
            next: fires
                .map(|(view, fire)| next_slot(Some(&view.id), zone_of(view), *fire))
                .collect(),
            omitted: omitted.collect(),
            searched_until: searched_until.collect(),
            paused: ids(&self.paused),
            inactive_reason: self.held.map(str::to_owned),
            blocked: blocked.collect(),
            by_events: ids(&self.by_events),
        }
    }
}

/// A slot as JSON tells it.
pub fn next_slot(schedule: Option<&String>, zone: Zone, fire: Fire) -> NextSlot {
    NextSlot {
        schedule: schedule.cloned(),
        due: fire.due,
        starts: fire.starts,
        local: fire.due.rfc3339_in(zone),
        timezone: zone.name().to_owned(),
    }
}

/// What is told of a schedule in words.
pub struct Explained<'a> {
    /// The schedule.
    pub view: &'a ScheduleView,
    /// Its next runs.
    pub fires: Vec<Fire>,
    /// Changes of the clocks that meet it.
    pub changes: Vec<DstWarning>,
    /// What each policy will do.
    pub sentences: Vec<Sentence>,
}

impl<'a> Explained<'a> {
    /// Of this schedule.
    pub fn of(view: &'a ScheduleView, wanted: &Wanted<'_>) -> Explained<'a> {
        let planned = planned(view, wanted.now);
        let facts = Facts {
            attempts: view.plan.attempts,
            failures: view.failures,
        };
        let mut fires = preview_of(view, wanted, None).fires;
        fires.retain(|_| view.inactive_reason.is_none());
        let changes = planned
            .recurrence()
            .map(|slots| changes(&slots, wanted.now));
        Explained {
            view,
            fires,
            changes: changes.unwrap_or_default(),
            sentences: sentences(&planned, facts),
        }
    }

    /// As JSON tells it.
    pub fn document(&self) -> ExplainedSchedule {
        ExplainedSchedule {
            schedule: Some(self.view.id.clone()),
            skill: Some(self.view.skill.clone()),
            description: self.view.when.clone(),
            next: self.fires.iter().map(|fire| fire.due).collect(),
            clock_changes: self.changes.clone(),
            policies: Some(self.sentences.clone()),
        }
    }
}

/// Changes of the clocks that meet these slots within two years.
pub fn changes(slots: &Recurrence, now: Timestamp) -> Vec<DstWarning> {
    dst_warnings(slots, now, now.plus_millis(WARNED_MS))
}

/// The zone of a schedule's slots.
pub fn zone_of(view: &ScheduleView) -> Zone {
    view.timezone.parse().unwrap_or(Zone::UTC)
}

/// The next runs of a schedule that start up to an instant.
fn preview_of(view: &ScheduleView, wanted: &Wanted<'_>, until: Option<Timestamp>) -> Preview {
    let (planned, now) = (planned(view, wanted.now), wanted.now);
    let (after, seen) = match (wanted.after)(planned.zone) {
        Some(after) => (after, after),
        None => (undecided_since(view, now), now),
    };
    let query = PreviewQuery {
        after,
        seen,
        until,
        most: wanted.most,
    };
    preview(&planned, query)
}

/// A slot of before now may be put off by its jitter, and its run is still to come.
fn undecided_since(view: &ScheduleView, now: Timestamp) -> Timestamp {
    let earliest = now.minus_millis(view.plan.policy.jitter_ms);
    view.plan.cursor.unwrap_or(now).max(earliest).min(now)
}

/// What the future of a schedule follows from.
pub fn planned(view: &ScheduleView, now: Timestamp) -> Planned {
    Planned {
        id: view.id.clone(),
        skill: view.skill.clone(),
        trigger: view.plan.trigger.clone(),
        policy: view.plan.policy.clone(),
        zone: zone_of(view),
        anchor: view.plan.anchor.unwrap_or(now),
        actions: view.actions,
        pause: view.paused.as_ref().map(|pause| Pause {
            reason: pause.reason.clone(),
            by: pause.by.clone(),
            at: pause.at,
        }),
        blocked: view.plan.blocked.clone(),
    }
}
