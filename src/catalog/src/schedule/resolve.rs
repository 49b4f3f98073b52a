//! Puts the schedules of all workers together: which skill each runs, its id, its inputs, cycles.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::Draft;
use super::cycles::{self, Edge};
use super::kept::{self, BrokenSchedule, Keeping};
use crate::folded::folded;
use crate::model::schedule::{AfterWhen, Schedule, Trigger};
use crate::model::spec::OutputKind;
use crate::model::{Place, Problem, Severity, Skill, SkillRef, Timestamp, Worker};
use crate::report::Rejected;

/// Skills that are listed where one has to be named.
const LISTED_MAX: usize = 8;

/// What is known when all workers are read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResolveContext<'a> {
    pub(crate) workers: &'a [Arc<Worker>],
    pub(crate) rejected: &'a [Rejected],
    /// The present, where what lies in the past is to be told.
    pub(crate) now: Option<Timestamp>,
    /// The schedules of the last good definitions.
    pub(crate) previous: &'a [Arc<Schedule>],
    /// Drafts of workers and skills that keep their last good definition.
    pub(crate) kept: &'a HashSet<*const Draft>,
}

/// The schedules of all workers.
#[derive(Debug, Default)]
pub(crate) struct Resolved {
    /// Those that can be used, sorted by id.
    pub(crate) schedules: Vec<Arc<Schedule>>,
    /// Those of them that are as they were before an error, by id, with that error.
    pub(crate) kept: BTreeMap<String, String>,
}

/// The schedules that can be used; what is wrong with the others is added to `problems`.
pub(crate) fn resolve(
    drafts: &[Arc<Draft>],
    known: ResolveContext<'_>,
    problems: &mut Vec<Problem>,
) -> Resolved {
    if drafts.is_empty() && known.previous.is_empty() {
        return Resolved::default();
    }
    let mut resolver = Resolver {
        workers: known
            .workers
            .iter()
            .map(|worker| (worker.id.to_lowercase(), worker))
            .collect(),
        skills: known
            .workers
            .iter()
            .flat_map(|worker| &worker.skills)
            .map(|skill| (key(&skill.address), skill))
            .collect(),
        known,
        problems,
    };
    let mut broken = Vec::new();
    let mut targets: Vec<TargetedDraft<'_>> = Vec::with_capacity(drafts.len());
    for draft in drafts {
        match resolver.aim(draft) {
            Some(one) => targets.push(one),
            None => broken.push(aimless(draft, &broken)),
        }
    }
    // A worker's own schedules are counted before those that others have for its skills.
    targets.sort_by_key(|one| one.skill.address.worker != *one.draft.worker);
    resolver.name(&mut targets);
    resolver.settle(&mut targets);
    resolver.leave_out_repeated(&mut targets);
    resolver.leave_out_cycles(&mut targets);
    resolver.put_together(targets, broken)
}

/// A schedule whose skill is not there: it would have the id that it has where the skill is.
fn aimless(draft: &Draft, others: &[BrokenSchedule]) -> BrokenSchedule {
    let address = match (&draft.skill, draft.target.as_deref()) {
        (Some(own), _) => Some(format!("{}/{own}", draft.worker)),
        (None, Some((name, _))) if name.contains('/') => Some(name.clone()),
        (None, Some((name, _))) => Some(format!("{}/{name}", draft.worker)),
        (None, None) => None,
    };
    let taken = |id: &str| others.iter().any(|other| other.id.as_deref() == Some(id));
    let id = address.map(|address| match draft.id.as_ref() {
        Some(own) => format!("{address}#{}", own.name),
        None if !taken(&address) => address,
        None => {
            let mut count = 2;
            while taken(&format!("{address}#{count}")) {
                count += 1;
            }
            format!("{address}#{count}")
        }
    });
    BrokenSchedule {
        id,
        place: draft.place.clone(),
    }
}

/// A draft whose skill is found.
pub(super) struct TargetedDraft<'a> {
    pub(super) draft: &'a Draft,
    pub(super) skill: &'a Arc<Skill>,
    pub(super) id: Arc<str>,
    /// Whether others have its id, so that none of them has it.
    pub(super) is_duplicate: bool,
    /// Whether it says the same as another.
    pub(super) is_repeated: bool,
    /// Absent when it is left out.
    pub(super) schedule: Option<Arc<Schedule>>,
}

pub(super) struct Resolver<'a, 'p> {
    workers: HashMap<String, &'a Arc<Worker>>,
    skills: HashMap<String, &'a Arc<Skill>>,
    pub(super) known: ResolveContext<'a>,
    problems: &'p mut Vec<Problem>,
}

/// Case does not tell skills apart.
fn key(skill: &SkillRef) -> String {
    skill.to_string().to_lowercase()
}

impl<'a> Resolver<'a, '_> {
    /// Adds a problem of a schedule; an empty hint is none.
    pub(super) fn tell(
        &mut self,
        draft: &Draft,
        severity: Severity,
        code: &str,
        place: &Place,
        (message, hint): (String, &str),
    ) {
        self.problems.push(Problem {
            code: code.to_owned(),
            severity,
            place: place.clone(),
            message,
            hint: (!hint.is_empty()).then(|| hint.to_owned()),
            worker: Some(draft.worker.to_string()),
            skill: draft.skill.as_ref().map(ToString::to_string),
        });
    }

    /// Finds the skill that a schedule runs.
    fn aim(&mut self, draft: &'a Draft) -> Option<TargetedDraft<'a>> {
        let skill = match (&draft.skill, draft.target.as_deref()) {
            // A skill that was rejected has told why already.
            (Some(own), _) => *self.skills.get(&key(&SkillRef {
                worker: draft.worker.to_string(),
                skill: own.to_string(),
            }))?,
            (None, Some((name, place))) => {
                let (worker, skill) = name.split_once('/').unwrap_or((&draft.worker, name));
                let wanted = SkillRef {
                    worker: worker.to_owned(),
                    skill: skill.to_owned(),
                };
                self.find(draft, &wanted, place)?
            }
            (None, None) => self.only_skill(draft)?,
        };
        Some(TargetedDraft {
            draft,
            skill,
            id: Arc::default(),
            is_duplicate: false,
            is_repeated: false,
            schedule: None,
        })
    }

    /// What can be used, and of what cannot the last good definitions.
    fn put_together(
        self,
        targets: Vec<TargetedDraft<'_>>,
        mut broken: Vec<BrokenSchedule>,
    ) -> Resolved {
        let mut resolved = Resolved::default();
        for one in targets {
            let is_kept = self.known.kept.contains(&std::ptr::from_ref(one.draft));
            match one.schedule {
                Some(schedule) => {
                    if is_kept {
                        let why = self.why_kept(&schedule);
                        resolved.kept.insert(schedule.id.to_string(), why);
                    }
                    resolved.schedules.push(schedule);
                }
                None if one.is_repeated => {}
                None => broken.push(BrokenSchedule {
                    id: Some(one.id.to_string()),
                    place: one.draft.place.clone(),
                }),
            }
        }
        let skills = self.skills.keys().cloned().collect();
        let keeping = Keeping {
            previous: self.known.previous,
            present: &resolved.schedules,
            broken: &broken,
            skills: &skills,
            problems: self.problems,
        };
        for (schedule, why) in keeping.kept() {
            self.problems.push(kept::problem(&schedule));
            resolved.kept.insert(schedule.id.to_string(), why);
            resolved.schedules.push(schedule);
        }
        resolved.schedules.shrink_to_fit();
        resolved.schedules.sort_by(|a, b| a.id.cmp(&b.id));
        resolved
    }

    /// The error for which the whole worker or skill keeps its last good definition.
    fn why_kept(&self, schedule: &Schedule) -> String {
        let mut errors = self.problems.iter().filter(|problem| {
            problem.severity == Severity::Error && problem.place.path == schedule.place.path
        });
        let found = errors.next();
        found.map_or_else(
            || format!("{}: its definition is broken", schedule.place.path),
            |problem| format!("{}: {}", problem.place, problem.message),
        )
    }

    fn only_skill(&mut self, draft: &Draft) -> Option<&'a Arc<Skill>> {
        let worker = *self.workers.get(&draft.worker.to_lowercase())?;
        if let [only] = worker.skills.as_slice() {
            return Some(only);
        }
        let message = if worker.skills.is_empty() {
            format!("the worker `{}` has no skill that could be due", worker.id)
        } else {
            format!(
                "the schedule does not say which of {} skills it runs",
                worker.skills.len()
            )
        };
        let mut names: Vec<String> = worker
            .skills
            .iter()
            .take(LISTED_MAX)
            .map(|skill| format!("`{}`", skill.address.skill))
            .collect();
        if worker.skills.len() > LISTED_MAX {
            names.push("…".to_owned());
        }
        let hint = if names.is_empty() {
            "add a skill, or name one of another worker: `skill: worker/skill`".to_owned()
        } else {
            format!(
                "write it as a map with `skill:` and one of {}",
                names.join(", ")
            )
        };
        // A template is never run: what is missing there is filled in with its copy.
        let severity = if worker.template {
            Severity::Note
        } else {
            Severity::Error
        };
        let place = draft.place.clone();
        self.tell(draft, severity, "schedule-skill", &place, (message, &hint));
        None
    }

    /// The skill of that address; tells where there is none.
    pub(super) fn find(
        &mut self,
        draft: &Draft,
        wanted: &SkillRef,
        place: &Place,
    ) -> Option<&'a Arc<Skill>> {
        if let Some(skill) = self.skills.get(&key(wanted)) {
            return Some(skill);
        }
        let rejected = self.known.rejected.iter().any(|one| {
            let skill = one.skill.as_deref().unwrap_or(&wanted.skill);
            one.worker.eq_ignore_ascii_case(&wanted.worker)
                && skill.eq_ignore_ascii_case(&wanted.skill)
        });
        let shown = wanted.to_string();
        let shown = shown.escape_debug();
        let (message, hint) = if rejected {
            (
                format!("the skill `{shown}` was rejected"),
                "repair its definition first".to_owned(),
            )
        } else {
            let own = draft
                .skill
                .as_ref()
                .map(|own| format!("{}/{own}", draft.worker));
            let nearest = self
                .nearest(wanted)
                .filter(|found| own.as_ref() != Some(found));
            let hint = nearest.map_or_else(
                || "create it, or write a skill that `workerctl skills` lists".to_owned(),
                |address| format!("did you mean `{address}`?"),
            );
            (format!("there is no skill `{shown}`"), hint)
        };
        self.tell(
            draft,
            Severity::Error,
            "schedule-skill-unknown",
            place,
            (message, &hint),
        );
        None
    }

    /// The address that looks most like the wanted one.
    fn nearest(&self, wanted: &SkillRef) -> Option<String> {
        let wanted = key(wanted);
        let bare = wanted.rsplit('/').next().unwrap_or_default();
        let allowed = wanted.chars().count() / 3;
        self.skills
            .values()
            .map(|skill| {
                let address = skill.address.to_string();
                let elsewhere = skill.address.skill.to_lowercase() == bare;
                let distance = strsim::osa_distance(&wanted, &address.to_lowercase());
                (if elsewhere { distance.min(1) } else { distance }, address)
            })
            .filter(|(distance, _)| *distance <= allowed.max(1))
            .min()
            .map(|(_, address)| address)
    }

    /// Gives every schedule its id, also those that are left out, so that repairing one moves no other.
    fn name(&mut self, targets: &mut [TargetedDraft<'_>]) {
        let mut unnamed: HashMap<&SkillRef, usize> = HashMap::new();
        for one in targets.iter_mut() {
            let address = &one.skill.address;
            let id = if let Some(own) = &one.draft.id {
                format!("{address}#{}", own.name)
            } else {
                let count = unnamed.entry(address).or_default();
                *count += 1;
                match *count {
                    1 => address.to_string(),
                    count => format!("{address}#{count}"),
                }
            };
            one.id = id.into();
        }
        self.report_unnamed(targets);
        let places = places_of_shared_ids(targets);
        for one in targets.iter_mut() {
            let Some(all) = places.get(&*folded(&one.id)) else {
                continue;
            };
            let own = one.draft.place_of_id();
            let others: Vec<String> = all
                .iter()
                .filter(|place| **place != own)
                .map(|place| format!("`{place}`"))
                .collect();
            let message = format!("the id `{}` is also taken at {}", one.id, others.join(", "));
            let hint = "give each schedule an `id` of its own";
            self.tell(
                one.draft,
                Severity::Error,
                "schedule-duplicate",
                &own,
                (message, hint),
            );
            one.is_duplicate = true;
        }
    }

    /// Checks each schedule against the skills that it names.
    fn settle(&mut self, targets: &mut [TargetedDraft<'a>]) {
        let mut addresses: HashMap<&SkillRef, Arc<SkillRef>> = HashMap::new();
        for one in targets.iter_mut().filter(|one| !one.is_duplicate) {
            let Some(read) = &one.draft.read else {
                continue;
            };
            let Some(trigger) = self.trigger(one.draft, read) else {
                continue;
            };
            let supplied = self.supplied(&trigger);
            if !self.inputs_fit(one.draft, read, (one.skill, &supplied)) {
                continue;
            }
            self.report_unavailable(one.draft, one.skill);
            self.report_past(one.draft, read);
            if self.never_runs(one.draft, read) {
                continue;
            }
            let address = addresses
                .entry(&one.skill.address)
                .or_insert_with(|| Arc::new(one.skill.address.clone()));
            let schedule = Schedule {
                id: Arc::clone(&one.id),
                skill: Arc::clone(address),
                trigger,
                timezone: Arc::clone(&read.timezone),
                inputs: Arc::clone(&read.inputs),
                policy: Arc::clone(&read.policy),
                disabled: read.disabled,
                place: one.draft.place.clone(),
            };
            one.schedule = Some(self.unchanged(schedule));
        }
    }

    /// The schedule as it was, where it says the same: there may be very many, and hardly any changes.
    fn unchanged(&self, schedule: Schedule) -> Arc<Schedule> {
        let previous = self.known.previous;
        let at = previous.binary_search_by(|one| one.id.cmp(&schedule.id));
        let former = at.ok().and_then(|at| previous.get(at));
        match former.filter(|former| ***former == schedule) {
            Some(former) => Arc::clone(former),
            None => Arc::new(schedule),
        }
    }

    /// Names that a run which follows another can take over from it.
    fn supplied(&self, trigger: &Trigger) -> Vec<String> {
        let Trigger::After {
            skill,
            when: AfterWhen::Succeeded,
        } = trigger
        else {
            return Vec::new();
        };
        let followed = self.skills.get(&key(skill));
        let outputs = followed.into_iter().flat_map(|skill| &skill.outputs);
        outputs
            .filter(|output| output.kind != OutputKind::Console)
            .map(|output| output.name.clone())
            .collect()
    }

    fn leave_out_cycles(&mut self, targets: &mut [TargetedDraft<'_>]) {
        let mut members = Vec::new();
        let mut edges = Vec::new();
        for (index, one) in targets.iter().enumerate() {
            let Some(schedule) = one.schedule.as_ref().filter(|one| !one.disabled) else {
                continue;
            };
            if let Trigger::After { skill, .. } = &*schedule.trigger {
                members.push(index);
                edges.push(Edge {
                    from: skill,
                    to: &schedule.skill,
                });
            }
        }
        let found: HashMap<usize, String> = cycles::on_cycles(&edges)
            .into_iter()
            .filter_map(|(edge, text)| Some((*members.get(edge)?, text)))
            .collect();
        for (index, one) in targets.iter_mut().enumerate() {
            let Some(cycle) = found.get(&index) else {
                continue;
            };
            let message = format!("the schedules start each other for ever: {cycle}");
            let place = one.draft.read.as_ref().and_then(|read| read.after());
            let place = place.cloned();
            let place = place.unwrap_or_else(|| one.draft.place.clone());
            self.tell(
                one.draft,
                Severity::Error,
                "schedule-cycle",
                &place,
                (message, "remove one of the schedules"),
            );
            one.schedule = None;
        }
    }
}

/// Where the ids stand that more than one has.
fn places_of_shared_ids(targets: &[TargetedDraft<'_>]) -> HashMap<String, Vec<Place>> {
    let mut known: HashSet<Cow<'_, str>> = HashSet::with_capacity(targets.len());
    let again = targets.iter().map(|one| folded(&one.id));
    let shared: HashSet<Cow<'_, str>> = again.filter(|id| !known.insert(id.clone())).collect();
    let mut places: HashMap<String, Vec<Place>> = HashMap::new();
    for one in targets.iter().filter(|_| !shared.is_empty()) {
        let id = folded(&one.id);
        if shared.contains(&id) {
            let all = places.entry(id.into_owned()).or_default();
            all.push(one.draft.place_of_id());
        }
    }
    places
}
