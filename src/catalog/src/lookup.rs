//! Finds skills by the names that people give.

use std::sync::Arc;

use super::roots::{Refused, RootSkill, parts};
use super::{Catalog, Rejected};
use crate::model::{Problem, Skill, Worker};

/// Names that are told where several workers have a skill of one name.
pub const ALTERNATIVES_MAX: usize = 20;

/// Names that are offered where none fits.
const CANDIDATES_MAX: usize = 5;

/// What a name leads to.
#[derive(Debug, Clone, PartialEq)]
pub enum Lookup {
    /// Exactly one skill.
    Found(Arc<Worker>, Arc<Skill>),
    /// A skill that belongs to no worker.
    OfRoot(Arc<RootSkill>),
    /// Several workers have a skill of this name; the addresses of the first ones.
    Ambiguous(Vec<String>),
    /// Its definition was rejected, for these reasons.
    Rejected(Rejected, Vec<Problem>),
    /// It belongs to no worker and was left out, for these reasons.
    Refused(Refused, Vec<Problem>),
    /// Nothing of that name; addresses that look like it, nearest first.
    Unknown(Vec<String>),
}

impl Catalog {
    /// The worker of that id; case does not matter.
    pub fn worker(&self, id: &str) -> Option<&Arc<Worker>> {
        self.workers
            .iter()
            .find(|worker| worker.id == id)
            .or_else(|| {
                self.workers
                    .iter()
                    .find(|worker| worker.id.to_lowercase() == id.to_lowercase())
            })
    }

    /// All skills with their workers, in the order of ids and definitions.
    pub fn skills(&self) -> impl Iterator<Item = (&Arc<Worker>, &Arc<Skill>)> {
        self.workers
            .iter()
            .flat_map(|worker| worker.skills.iter().map(move |skill| (worker, skill)))
    }

    /// Finds `worker/skill`, or `a:b`, skill `b` of worker or root `a`; else a skill's bare name where that is
    /// unique among workers, then a skill of a root by its name; case does not matter.
    pub fn find(&self, name: &str) -> Lookup {
        let wanted = name.trim().to_lowercase();
        self.find_exactly(&wanted)
            .unwrap_or_else(|| Lookup::Unknown(self.candidates(&wanted)))
    }

    /// As [`Catalog::find`], and looks for nothing similar, which takes as long as there are skills.
    pub fn find_exactly(&self, name: &str) -> Option<Lookup> {
        let wanted = name.trim().to_lowercase();
        // No skill may be found under the name of another one.
        if self.root_skills.is_qualified(&wanted) {
            return self.find_qualified(&wanted);
        }
        let mut found = self.of_workers(&wanted);
        // A template never runs, so its instances are meant.
        if found.iter().any(|(worker, _)| !worker.template) {
            found.retain(|(worker, _)| !worker.template);
        }
        match found.as_slice() {
            [(worker, skill)] => Some(Lookup::Found(Arc::clone(worker), Arc::clone(skill))),
            [] => self.find_otherwise(&wanted),
            several => {
                let addresses = several.iter().map(|(_, skill)| skill.address.to_string());
                let of_roots = &self.root_skills.skills;
                let named = of_roots.iter().filter(|skill| is(&skill.name, &wanted));
                let all = addresses.chain(named.map(|one| one.qualified()));
                Some(Lookup::Ambiguous(all.take(ALTERNATIVES_MAX).collect()))
            }
        }
    }

    /// What `a:b` names: a worker's skill before one of a root; a worker that was rejected as a whole hands the
    /// name on, for nobody knows what it would have had.
    fn find_qualified(&self, wanted: &str) -> Option<Lookup> {
        let of_worker = |(worker, skill): (&str, &str)| {
            let address = format!("{worker}/{skill}");
            let found = match self.of_workers(&address).as_slice() {
                [(worker, skill), ..] => Lookup::Found(Arc::clone(worker), Arc::clone(skill)),
                [] => self.rejected(self.rejected_as(&address)?),
            };
            Some(found)
        };
        // The label of a root may hold a separator, the id of a worker may not.
        let of_workers = parts(wanted)
            .filter(|(source, _)| !source.contains('/'))
            .filter_map(of_worker);
        let mut whole = None;
        for found in of_workers {
            match found {
                Lookup::Rejected(ref one, _) if one.skill.is_none() => {
                    whole.get_or_insert(found);
                }
                found => return Some(found),
            }
        }
        let of_root = self.root_skills.find_qualified(wanted);
        of_root
            .map(|skill| Lookup::OfRoot(Arc::clone(skill)))
            .or_else(|| self.refused_as(wanted))
            .or(whole)
    }

    /// Skills of workers that have this address or this id.
    fn of_workers(&self, wanted: &str) -> Vec<(&Arc<Worker>, &Arc<Skill>)> {
        let names = || {
            let workers = self.workers.iter().enumerate();
            workers.flat_map(|(at, worker)| {
                let skills = worker.skills.iter().enumerate();
                skills.flat_map(move |(place, skill)| {
                    let names = [skill.address.to_string(), skill.address.skill.clone()];
                    names.map(|name| (name, (at, place)))
                })
            })
        };
        let found = self.names.find(wanted, names).iter();
        found
            .filter_map(|(at, place)| {
                let worker = self.workers.get(*at)?;
                Some((worker, worker.skills.get(*place)?))
            })
            .collect()
    }

    /// What no skill of a worker answers to: a skill of one that was rejected keeps its name, a worker that was
    /// rejected as a whole has the names that nothing else has.
    fn find_otherwise(&self, wanted: &str) -> Option<Lookup> {
        if let Some(found) = self.rejected_as(wanted) {
            return Some(self.rejected(found));
        }
        if let Some(skill) = self.root_skills.find(wanted) {
            return Some(Lookup::OfRoot(Arc::clone(skill)));
        }
        self.refused_as(wanted).or_else(|| {
            let mut workers = self.rejected.iter().filter(|one| one.skill.is_none());
            let found = workers.find(|one| is(&one.worker, wanted));
            found.map(|found| self.rejected(found))
        })
    }

    fn rejected(&self, found: &Rejected) -> Lookup {
        Lookup::Rejected(found.clone(), self.problems_of(found))
    }

    /// The file of a root that was left out and has this name.
    fn refused_as(&self, wanted: &str) -> Option<Lookup> {
        let refused = self.root_skills.find_refused(wanted)?;
        let all = self
            .problems
            .iter()
            .chain(&self.root_skills.problems_outside);
        let mut why: Vec<Problem> = all
            .filter(|problem| problem.place.path == refused.place.path)
            .cloned()
            .collect();
        keep_worst(&mut why);
        Some(Lookup::Refused(refused.clone(), why))
    }

    /// The rejected skill that this is the address or the bare name of, or whose worker was rejected.
    fn rejected_as(&self, wanted: &str) -> Option<&Rejected> {
        let Some((worker, skill)) = wanted.split_once('/') else {
            let ids = |one: &&Rejected| one.skill.as_ref().is_some_and(|id| is(id, wanted));
            return self.rejected.iter().find(ids);
        };
        self.rejected.iter().find(|one| {
            is(&one.worker, worker) && one.skill.as_ref().is_none_or(|id| is(id, skill))
        })
    }

    fn problems_of(&self, rejected: &Rejected) -> Vec<Problem> {
        let mut found: Vec<Problem> = self
            .problems
            .iter()
            .filter(|problem| match &rejected.skill {
                Some(id) => {
                    problem.skill.as_ref() == Some(id)
                        // What an instance has in common with its template is told of one of them.
                        && (problem.place.path == rejected.place.path
                            || problem
                                .worker
                                .as_ref()
                                .is_none_or(|worker| *worker == rejected.worker))
                }
                None => {
                    problem.place.path == rejected.place.path
                        || problem.worker.as_ref() == Some(&rejected.worker)
                }
            })
            .cloned()
            .collect();
        keep_worst(&mut found);
        found
    }

    /// Addresses that look like `wanted`, nearest first.
    fn candidates(&self, wanted: &str) -> Vec<String> {
        let mut near: Vec<(usize, String)> = self
            .skills()
            .filter_map(|(worker, skill)| {
                let address = skill.address.to_string();
                let whole = strsim::osa_distance(wanted, &address.to_lowercase());
                let bare = strsim::osa_distance(wanted, &skill.address.skill.to_lowercase());
                let same_worker = worker.id.to_lowercase() == wanted;
                let distance = if same_worker { 0 } else { whole.min(bare) };
                let allowed = wanted.chars().count() / 3 + 1;
                (distance <= allowed).then_some((distance, address))
            })
            .collect();
        near.extend(self.root_skills.visible().filter_map(|skill| {
            let distance = strsim::osa_distance(wanted, &skill.name.to_lowercase());
            (distance <= wanted.chars().count() / 3 + 1).then(|| (distance, skill.name.clone()))
        }));
        near.sort();
        near.truncate(CANDIDATES_MAX);
        near.into_iter().map(|(_, address)| address).collect()
    }
}

/// Whether a name is `wanted`, which is in lower case.
fn is(name: &str, wanted: &str) -> bool {
    if name.is_ascii() {
        name.eq_ignore_ascii_case(wanted)
    } else {
        name.to_lowercase() == wanted
    }
}

/// What was left out without an error has a warning that says why.
fn keep_worst(problems: &mut Vec<Problem>) {
    let worst = problems.iter().map(|problem| problem.severity).max();
    problems.retain(|problem| Some(problem.severity) == worst);
}
