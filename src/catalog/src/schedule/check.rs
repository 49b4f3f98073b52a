//! Checks a schedule against the skills that it names, and against the present.

use std::collections::HashSet;
use std::sync::Arc;

use super::resolve::Resolver;
use super::{Draft, Read, moment};
use crate::inputs::{self, RawInputs};
use crate::instances;
use crate::model::schedule::{Dst, Fold, Gap, Policy, ScheduleState, Trigger};
use crate::model::{Severity, Skill, Timestamp, Zone};
use workerctl_core::schedule::{Recurrence, Watched, next_start};

impl Resolver<'_, '_> {
    /// The trigger with the address of the skill that it follows as that is defined.
    pub(super) fn trigger(&mut self, draft: &Draft, read: &Read) -> Option<Arc<Trigger>> {
        let (Trigger::After { skill, when }, Some(place)) = (&*read.trigger, read.after()) else {
            return Some(Arc::clone(&read.trigger));
        };
        let other = self.find(draft, skill, place)?;
        if !other.is_available() && !is_template(other) {
            let message = format!("`{}` is unavailable: nothing follows it", other.address);
            let hint = unavailable_hint(other);
            self.tell(
                draft,
                Severity::Warning,
                "schedule-unavailable",
                place,
                (message, &hint),
            );
        }
        Some(Arc::new(Trigger::After {
            skill: Box::new(other.address.clone()),
            when: *when,
        }))
    }

    /// Whether the skill takes the inputs; tells which it refuses.
    pub(super) fn inputs_fit(
        &mut self,
        draft: &Draft,
        read: &Read,
        (skill, supplied): (&Skill, &[String]),
    ) -> bool {
        // Of a skill whose file is missing the inputs are not known.
        if skill
            .unavailable
            .iter()
            .any(|why| why.code == "file-missing")
        {
            return true;
        }
        let given = RawInputs {
            pairs: Vec::new(),
            json: Some(read.inputs.as_ref().clone()),
        };
        let place_of = |name: &str| {
            let written = read.input_places().iter().find(|(known, _)| known == name);
            written.map_or(&draft.place, |(_, place)| place)
        };
        for input in skill.inputs.iter().filter(|input| input.sensitive) {
            if read.inputs.contains_key(&input.name) {
                let message = format!("the secret `{}` can be read by everyone", input.name);
                self.tell(
                    draft,
                    Severity::Warning,
                    "secret-in-definition",
                    place_of(&input.name),
                    (message, "take the value from `env`"),
                );
            }
        }
        let Err(mut found) = inputs::bind(&skill.inputs, &given) else {
            return true;
        };
        let is_given = |name: &String| read.inputs.contains_key(name);
        // What a template lacks, its instances have.
        let open = instances::placeholders(&skill.address.worker).unwrap_or_default();
        found.retain(|problem| {
            let name = &problem.input;
            is_given(name) || !(supplied.contains(name) || open.contains(&name.as_str()))
        });
        if found.is_empty() {
            return true;
        }
        for problem in found {
            let message = format!("`{}` refuses its inputs: {problem}", skill.address);
            let missing = (problem.code == inputs::Code::Missing).then(|| {
                format!(
                    "write it into the schedule: `inputs: {{{}: …}}`",
                    problem.input
                )
            });
            let hint = missing.as_deref().or(problem.hint.as_deref());
            self.tell(
                draft,
                Severity::Error,
                "schedule-inputs",
                place_of(&problem.input),
                (
                    message,
                    hint.unwrap_or("correct it in `inputs` of the schedule"),
                ),
            );
        }
        false
    }

    pub(super) fn report_unavailable(&mut self, draft: &Draft, skill: &Skill) {
        if skill.is_available() {
            return;
        }
        let severity = if is_template(skill) {
            Severity::Note
        } else {
            Severity::Warning
        };
        let message = format!(
            "`{}` is unavailable: the schedule cannot run it",
            skill.address
        );
        let place = draft.place.clone();
        let hint = unavailable_hint(skill);
        self.tell(
            draft,
            severity,
            "schedule-unavailable",
            &place,
            (message, &hint),
        );
    }

    /// Reports policies that leave no slot. Returns true if that is an error: it never ran and never will.
    pub(super) fn never_runs(&mut self, draft: &Draft, read: &Read) -> bool {
        if self.is_skipped(draft, read) {
            return true;
        }
        let policy = &read.policy;
        let is_blocked = !policy.blocked_hours.is_empty() || !policy.blocked_dates.is_empty();
        let is_bounded = policy.start.is_some() && policy.end.is_some();
        let is_checked = (is_blocked || is_bounded) && !read.disabled;
        let Some(now) = self.known.now.filter(|_| is_checked) else {
            return false;
        };
        let zone = read.timezone.parse().unwrap_or(Zone::UTC);
        let recurrence = Recurrence::of(&read.trigger, zone, now);
        let Some(slots) = recurrence.filter(|_| policy.end.is_none_or(|end| end >= now)) else {
            return false;
        };
        let has_start = |policy: &Policy, from: Timestamp| {
            let watched = Watched {
                id: "",
                slots: &slots,
                policy,
                zone,
            };
            let unused = ScheduleState::new(String::new(), from);
            next_start(watched, &unused, from).is_some()
        };
        if slots.next_after(now).is_none() || has_start(policy, now) {
            return false;
        }
        let hours = Policy {
            blocked_hours: policy.blocked_hours.clone(),
            ..Policy::default()
        };
        let is_by_hours = !has_start(&hours, now);
        // Slots between `start` and now may have run: then only the rest of them is blocked.
        let never_ran = policy
            .start
            .is_some_and(|start| !has_start(policy, start.min(now)));
        let message = if is_by_hours {
            let hours = shown_hours(&policy.blocked_hours);
            format!("it never runs: all its times are in the blocked hours `{hours}`")
        } else if is_blocked {
            "it never runs: all its times are in blocked hours or dates, or not between `start` and `end`".to_owned()
        } else {
            "it never runs: no time is between `start` and `end`".to_owned()
        };
        let place = read
            .places
            .as_ref()
            .and_then(|places| places.blackout.as_ref());
        let place = place.filter(|_| is_blocked).unwrap_or(&draft.place);
        let is_error = is_by_hours || never_ran;
        let severity = if is_error {
            Severity::Error
        } else {
            Severity::Warning
        };
        let hint =
            "change its times, `blackout`, `start` or `end`, or disable it with `enabled: false`";
        self.tell(draft, severity, "schedule-never", place, (message, hint));
        is_error
    }

    /// Reports times of `at` that the clock of the zone never shows, if they are to be skipped.
    fn is_skipped(&mut self, draft: &Draft, read: &Read) -> bool {
        let Trigger::At { dst: Some(dst), .. } = &*read.trigger else {
            return false;
        };
        let zone = read.timezone.parse().unwrap_or(Zone::UTC);
        let began = Timestamp::from_millis(0);
        let slots = Recurrence::of(&read.trigger, zone, began);
        if dst.gap != Gap::Skip
            || read.disabled
            || slots.is_none_or(|slots| slots.next_after(began).is_some())
        {
            return false;
        }
        let message = "it never runs: a change of the clock skips every time of `at`, and `gap: skip` leaves them out".to_owned();
        let hint = "write a time that exists, or `dst: {gap: run_after}`";
        let place = draft.place.clone();
        self.tell(
            draft,
            Severity::Error,
            "schedule-never",
            &place,
            (message, hint),
        );
        true
    }

    pub(super) fn report_past(&mut self, draft: &Draft, read: &Read) {
        let Some(now) = self.known.now else {
            return;
        };
        let over = match &*read.trigger {
            Trigger::At { times, dst } => times
                .iter()
                .all(|time| has_passed(time, *dst, &read.timezone, now)),
            _ => false,
        };
        let what = if over {
            "every time of `at` is in the past"
        } else if read.policy.end.is_some_and(|end| end < now) {
            "`end` is in the past"
        } else {
            return;
        };
        let message = format!("{what}: this schedule will never run again");
        let place = draft.place.clone();
        let hint = "remove the schedule, or correct the year";
        self.tell(
            draft,
            Severity::Warning,
            "schedule-past",
            &place,
            (message, hint),
        );
    }
}

/// Hours as ranges, such as `0-6, 22`.
fn shown_hours(hours: &[u8]) -> String {
    let ranges = hours.chunk_by(|hour, next| hour + 1 == *next);
    let ranges: Vec<String> = ranges
        .map(|range| match range {
            [first, .., last] => format!("{first}-{last}"),
            [hour] => hour.to_string(),
            [] => String::new(),
        })
        .collect();
    ranges.join(", ")
}

fn is_template(skill: &Skill) -> bool {
    skill.unavailable.iter().any(|why| why.code == "template")
}

/// Why a skill cannot run, each reason once.
fn unavailable_hint(skill: &Skill) -> String {
    let mut told = HashSet::new();
    let reasons: Vec<&str> = skill
        .unavailable
        .iter()
        .map(|why| why.reason.as_str())
        .filter(|reason| told.insert(*reason))
        .collect();
    reasons.join("; ")
}

/// Whether a time of a zone lies before `now`, the last time that its clock shows it.
fn has_passed(time: &str, dst: Option<Dst>, zone: &str, now: Timestamp) -> bool {
    let edge = match dst {
        Some(Dst {
            fold: Fold::Second | Fold::Both,
            ..
        }) => moment::Edge::Last,
        _ => moment::Edge::First,
    };
    let instant = zone
        .parse()
        .ok()
        .and_then(|zone| moment::instant(time, zone, edge));
    instant.is_some_and(|instant| instant < now)
}
