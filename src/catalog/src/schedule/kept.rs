//! Schedules that an error has left out stay as they were until it is repaired.
//!
//! Which ones an error has left out is told by their ids: a schedule that is broken keeps its id. One that no
//! broken schedule stands for is gone, unless the whole skill that it runs has gone with an error.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::cycles::{self, Edge};
use crate::folded::folded;
use crate::model::schedule::{Schedule, Trigger};
use crate::model::{Place, Problem, Severity, SkillRef};
use crate::source::REPAIR;

/// A schedule that is written and cannot be used.
#[derive(Debug)]
pub(super) struct BrokenSchedule {
    /// Its id; absent where even the skill that it runs is not known.
    pub(super) id: Option<String>,
    /// Where it stands.
    pub(super) place: Place,
}

/// What is to be put together.
pub(super) struct Keeping<'a> {
    /// The schedules of the last good definitions.
    pub(super) previous: &'a [Arc<Schedule>],
    /// Those that can be used now.
    pub(super) present: &'a [Arc<Schedule>],
    /// Those that cannot.
    pub(super) broken: &'a [BrokenSchedule],
    /// Skills that there are, in lower case.
    pub(super) skills: &'a HashSet<String>,
    /// All that was found so far.
    pub(super) problems: &'a [Problem],
}

impl Keeping<'_> {
    /// The former schedules that stay in force, each with the error for which it does.
    pub(super) fn kept(&self) -> Vec<(Arc<Schedule>, String)> {
        if self.previous.is_empty() {
            return Vec::new();
        }
        let missing = self.missing();
        let mut broken: HashMap<String, &BrokenSchedule> = HashMap::new();
        for one in self.broken {
            if let Some(id) = &one.id {
                broken.entry(lower(id)).or_insert(one);
            }
        }
        let mut kept: Vec<(Arc<Schedule>, String)> = missing
            .into_iter()
            .filter_map(|one| {
                let why = match broken.get(&lower(&one.id)) {
                    Some(broken) => self.error_at(&broken.place, one),
                    None => self.error_around(one)?,
                };
                Some((Arc::clone(one), why))
            })
            .collect();
        self.leave_out_cycles(&mut kept);
        kept
    }

    /// The former schedules that nothing says now. Present ones are compared only where their skill misses one: there
    /// may be very many schedules.
    fn missing(&self) -> Vec<&Arc<Schedule>> {
        let present: HashSet<Cow<'_, str>> =
            self.present.iter().map(|one| folded(&one.id)).collect();
        let previous = self.previous.iter();
        let mut missing: Vec<&Arc<Schedule>> = previous
            .filter(|one| !present.contains(&folded(&one.id)))
            .collect();
        let skills: HashSet<&SkillRef> = missing.iter().map(|one| &*one.skill).collect();
        let mut beside: HashMap<&SkillRef, Vec<&Schedule>> = HashMap::new();
        for one in self
            .present
            .iter()
            .filter(|one| skills.contains(&*one.skill))
        {
            beside.entry(&one.skill).or_default().push(one);
        }
        missing.retain(|one| {
            let mut beside = beside.get(&*one.skill).into_iter().flatten();
            !beside.any(|other| say_the_same(one, other))
        });
        missing
    }

    /// What is wrong with the broken schedule that stands at `place`.
    fn error_at(&self, place: &Place, schedule: &Schedule) -> String {
        let mut errors = self.errors_in(&place.path);
        let behind = errors.clone().find(|problem| problem.place >= *place);
        let found = behind.or_else(|| errors.next());
        found.map_or_else(
            || format!("{}: its definition is broken", schedule.place),
            in_words,
        )
    }

    /// The error that may have swallowed a schedule for which nothing stands any more.
    fn error_around(&self, schedule: &Schedule) -> Option<String> {
        let nameless = self
            .broken
            .iter()
            .find(|one| one.id.is_none() && one.place.path == schedule.place.path);
        if let Some(nameless) = nameless {
            return Some(self.error_at(&nameless.place, schedule));
        }
        if self.skills.contains(&lower(&schedule.skill.to_string())) {
            return None;
        }
        let own = &schedule.skill.skill;
        let mut around = self.errors_in(&schedule.place.path);
        let found = around.find(|problem| {
            let skill = problem.skill.as_ref();
            skill.is_none_or(|skill| skill.eq_ignore_ascii_case(own))
        });
        found.map(in_words)
    }

    /// Errors of a file, or of a directory that it lies in.
    fn errors_in<'p>(&'p self, path: &'p str) -> impl Iterator<Item = &'p Problem> + Clone {
        let errors = self.problems.iter();
        let errors = errors.filter(|problem| problem.severity == Severity::Error);
        errors.filter(move |problem| {
            let rest = path.strip_prefix(&*problem.place.path);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    /// A former schedule is not kept where it and the present ones would start each other for ever.
    fn leave_out_cycles(&self, kept: &mut Vec<(Arc<Schedule>, String)>) {
        let present = self.present.iter().filter_map(|one| edge(one));
        let mut edges: Vec<Edge<'_>> = present.collect();
        let first = edges.len();
        let followers: Vec<(usize, Edge<'_>)> = kept
            .iter()
            .enumerate()
            .filter_map(|(index, (one, _))| Some((index, edge(one)?)))
            .collect();
        edges.extend(followers.iter().map(|(_, edge)| *edge));
        let out: HashSet<usize> = cycles::on_cycles(&edges)
            .into_keys()
            .filter_map(|index| Some(followers.get(index.checked_sub(first)?)?.0))
            .collect();
        let mut index = 0;
        kept.retain(|_| {
            index += 1;
            !out.contains(&(index - 1))
        });
    }
}

fn edge(schedule: &Schedule) -> Option<Edge<'_>> {
    match &*schedule.trigger {
        Trigger::After { skill, .. } if !schedule.disabled => Some(Edge {
            from: skill,
            to: &schedule.skill,
        }),
        _ => None,
    }
}

/// Whether nothing but ids and places tells two schedules apart.
pub(super) fn say_the_same(one: &Schedule, other: &Schedule) -> bool {
    one.trigger == other.trigger
        && one.timezone == other.timezone
        && one.skill == other.skill
        && one.inputs == other.inputs
        && one.policy == other.policy
        && one.disabled == other.disabled
}

fn in_words(problem: &Problem) -> String {
    format!("{}: {}", problem.place, problem.message)
}

/// Case does not tell ids apart.
fn lower(id: &str) -> String {
    id.to_lowercase()
}

/// Says that a former schedule stays in force.
pub(super) fn problem(schedule: &Schedule) -> Problem {
    Problem {
        code: "kept-last-good".to_owned(),
        severity: Severity::Warning,
        place: schedule.place.clone(),
        message: format!(
            "the last good definition of the schedule `{}` stays in force",
            schedule.id
        ),
        hint: Some(REPAIR.to_owned()),
        worker: Some(schedule.skill.worker.clone()),
        skill: Some(schedule.skill.skill.clone()),
    }
}
