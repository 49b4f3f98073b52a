//! Reads what was found, and says which of several skills has a name.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::order::{SkillRoot, in_order};
use super::scan::{Candidate, Scan, search};
use super::{Refused, RootSkill, RootSkills, Unit, read};
use crate::executor;
use crate::model::{Config, Place, Problem, Severity, Worker};
use crate::open::Root;
use crate::report::Rejected;
use crate::report::Report;
use crate::source::whole_file;

/// Threads that read definitions at once.
const THREADS_MAX: usize = 8;

/// Files below which threads cost more than they give.
const FILES_PER_THREAD: usize = 64;

/// What skills of roots are read with.
pub(crate) struct RootsContext<'a> {
    /// The configuration.
    pub(crate) config: &'a Config,
    /// The home directory, where its skills count.
    pub(crate) home: Option<&'a Path>,
    /// Threads to read with; 0: one for each processor.
    pub(crate) threads: usize,
    /// What was known before.
    pub(crate) previous: Option<&'a RootSkills>,
    /// Workers, whose skills come first.
    pub(crate) workers: &'a [Arc<Worker>],
    /// What of workers was rejected.
    pub(crate) rejected: &'a [Rejected],
}

/// The skills, and the problems of those that lie in the workspace.
pub(crate) struct Outcome {
    pub(crate) skills: RootSkills,
    pub(crate) problems: Vec<Problem>,
}

/// Finds and reads all skills of all roots.
pub(crate) fn load(workspace: &Root, known: &RootsContext<'_>) -> Outcome {
    let roots = in_order(workspace.path(), &known.config.skills, known.home);
    let scan = search(workspace, &roots);
    let Scan {
        candidates,
        problems,
        present,
        links,
    } = scan;
    let units = read_all(&candidates, known);
    let mut assembly = Assembly {
        problems,
        skills: Vec::with_capacity(units.len()),
        refused: Vec::new(),
        known: RootSkills {
            sources: sources(&roots, known),
            ..RootSkills::default()
        },
    };
    assembly.take(&units, known.workers);
    assembly.find_executors(known.config);
    let (inside, outside): (Vec<_>, Vec<_>) = assembly
        .problems
        .into_iter()
        .partition(|(_, problem)| !problem.place.path.starts_with('/'));
    let plain = |found: Vec<(Arc<SkillRoot>, Problem)>| -> Vec<Problem> {
        found.into_iter().map(|(_, problem)| problem).collect()
    };
    Outcome {
        skills: RootSkills {
            roots: present,
            skills: assembly.skills,
            refused: assembly.refused,
            problems_outside: plain(outside),
            links,
            units,
            ..assembly.known
        },
        problems: plain(inside),
    }
}

/// What may stand before the colon of a qualified name: labels, also of roots that are not there, and workers,
/// also those that are rejected.
fn sources(roots: &[Arc<SkillRoot>], known: &RootsContext<'_>) -> HashSet<String> {
    let labels = roots.iter().map(|root| &root.label);
    let workers = known.workers.iter().map(|worker| &worker.id);
    let rejected = known.rejected.iter().map(|one| &one.worker);
    let all = labels.chain(workers).chain(rejected);
    all.map(|source| source.to_lowercase()).collect()
}

/// Whether reading again would find anything new.
pub(crate) fn is_stale(
    workspace: &Root,
    config: &Config,
    home: Option<&Path>,
    before: &RootSkills,
) -> bool {
    let roots = in_order(workspace.path(), &config.skills, home);
    let found = search(workspace, &roots).candidates;
    found.len() != before.units.len()
        || found
            .iter()
            .zip(&before.units)
            .any(|(candidate, unit)| !is_same(candidate, unit))
}

fn is_same(candidate: &Candidate, unit: &Unit) -> bool {
    candidate.shown == unit.shown
        && candidate.stamp.is_some()
        && candidate.stamp == unit.stamp
        && candidate.root == unit.root
}

fn read_all(candidates: &[Candidate], known: &RootsContext<'_>) -> Vec<Arc<Unit>> {
    let before: HashMap<&str, &Arc<Unit>> = known
        .previous
        .iter()
        .flat_map(|previous| &previous.units)
        .map(|unit| (unit.shown.as_str(), unit))
        .collect();
    let next = AtomicUsize::new(0);
    let read_some = || {
        let mut read = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(candidate) = candidates.get(at) else {
                return read;
            };
            let same = before
                .get(candidate.shown.as_str())
                .filter(|unit| is_same(candidate, unit));
            let unit = same.map_or_else(|| Arc::new(read_one(candidate)), |unit| Arc::clone(unit));
            read.push((at, unit));
        }
    };
    let wanted = if known.threads == 0 {
        std::thread::available_parallelism().map_or(1, usize::from)
    } else {
        known.threads
    };
    let threads = wanted
        .min(THREADS_MAX)
        .min(candidates.len() / FILES_PER_THREAD + 1);
    let mut read: Vec<(usize, Arc<Unit>)> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads)
            .map_while(|_| {
                std::thread::Builder::new()
                    .name("skills".to_owned())
                    .spawn_scoped(scope, read_some)
                    .ok()
            })
            .collect();
        let mut read = read_some();
        for other in others {
            read.extend(other.join().unwrap_or_default());
        }
        read
    });
    complete(&mut read, candidates);
    read.sort_by_key(|(at, _)| *at);
    read.into_iter().map(|(_, unit)| unit).collect()
}

/// A thread that ended without a result must not make its files vanish in silence.
fn complete(read: &mut Vec<(usize, Arc<Unit>)>, candidates: &[Candidate]) {
    if read.len() == candidates.len() {
        return;
    }
    let known: HashSet<usize> = read.iter().map(|(at, _)| *at).collect();
    for (at, candidate) in candidates.iter().enumerate() {
        if !known.contains(&at) {
            let mut report = Report::default();
            report.error(
                "loader-failed",
                whole_file(&candidate.shown),
                "reading the definition failed because of an internal error".to_owned(),
                "report this file as a defect of workerctl",
            );
            read.push((at, Arc::new(unit_of(candidate, None, report))));
        }
    }
}

fn read_one(candidate: &Candidate) -> Unit {
    let mut report = Report::default();
    let definition = read::read(candidate, &mut report);
    let skill = definition.map(|definition| {
        let keys = definition.keys;
        let place = whole_file(&candidate.shown);
        for one in &keys.violations {
            report.error("skill-invalid", place.clone(), one.error.clone(), &one.fix);
        }
        Arc::new(RootSkill {
            valid: keys.violations.is_empty(),
            name: keys.name,
            description: keys.description,
            root: Arc::clone(&candidate.root),
            place,
            form: candidate.form,
            model_invocable: keys.model_invocable,
            user_invocable: keys.user_invocable,
            mutating: keys.mutating,
            approval_required: keys.approval_required,
            named: keys.named,
            lack: None,
            shadowed_by: None,
            reads_as_qualified: false,
            base: candidate.base.path().to_owned(),
            inner: candidate.inner.clone(),
            stem: candidate.stem.clone(),
        })
    });
    unit_of(candidate, skill, report)
}

/// Reads one file that no root was searched for.
pub(super) fn read_alone(candidate: &Candidate) -> (Option<Arc<RootSkill>>, Vec<Problem>) {
    let unit = read_one(candidate);
    (unit.skill, unit.problems)
}

fn unit_of(candidate: &Candidate, skill: Option<Arc<RootSkill>>, report: Report) -> Unit {
    let place = whole_file(&candidate.shown);
    let name = skill.as_ref().map_or(&candidate.stem, |skill| &skill.name);
    let mut problems = report.finish(place.clone());
    for problem in &mut problems {
        problem.skill = Some(name.clone());
    }
    Unit {
        shown: candidate.shown.clone(),
        stamp: candidate.stamp,
        root: Arc::clone(&candidate.root),
        skill,
        problems,
        place,
        stem: candidate.stem.clone(),
    }
}

struct Assembly {
    problems: Vec<(Arc<SkillRoot>, Problem)>,
    skills: Vec<Arc<RootSkill>>,
    refused: Vec<Refused>,
    /// What is a qualified name.
    known: RootSkills,
}

impl Assembly {
    fn take(&mut self, units: &[Arc<Unit>], workers: &[Arc<Worker>]) {
        for unit in units {
            let own = unit.problems.iter().cloned();
            self.problems
                .extend(own.map(|one| (Arc::clone(&unit.root), one)));
            if unit.skill.is_none() {
                self.refused.push(Refused {
                    stem: unit.stem.clone(),
                    root: Arc::clone(&unit.root),
                    place: unit.place.clone(),
                });
            }
        }
        let found: Vec<&Arc<RootSkill>> = units
            .iter()
            .filter_map(|unit| unit.skill.as_ref())
            .collect();
        let mut owners = of_workers(workers);
        let reserved = |skill: &RootSkill| {
            skill.name.contains(':') && self.known.is_qualified(&skill.name.to_lowercase())
        };
        // A qualified name is that of the first in its root.
        let mut first = HashMap::new();
        for skill in by_right(&found) {
            let name = skill.name.to_lowercase();
            first
                .entry((Arc::as_ptr(&skill.root), name.clone()))
                .or_insert(&skill.place);
            if !reserved(skill) {
                owners.entry(name).or_insert_with(|| skill.place.clone());
            }
        }
        let named = |skill: &RootSkill, name: String| {
            first.get(&(Arc::as_ptr(&skill.root), name)) == Some(&&skill.place)
        };
        for skill in found {
            let name = skill.name.to_lowercase();
            if reserved(skill) {
                let problem = qualified(skill, named(skill, name));
                self.problems.push((Arc::clone(&skill.root), problem));
                let mut reserved = RootSkill::clone(skill);
                reserved.reads_as_qualified = true;
                self.skills.push(Arc::new(reserved));
                continue;
            }
            let owner = &owners[&name];
            if *owner == skill.place {
                self.skills.push(Arc::clone(skill));
                continue;
            }
            let problem = shadowed(skill, owner, named(skill, name));
            self.problems.push((Arc::clone(&skill.root), problem));
            let mut shadowed = RootSkill::clone(skill);
            shadowed.shadowed_by = Some(owner.clone());
            self.skills.push(Arc::new(shadowed));
        }
    }

    /// Says of skills that are executed what they lack; the configuration may have changed where they have not.
    fn find_executors(&mut self, config: &Config) {
        let executed = |skill: &&mut Arc<RootSkill>| skill.is_executed();
        for skill in self.skills.iter_mut().filter(executed) {
            let mut report = Report::default();
            report.set_skill(Some(&skill.name));
            if config.program.is_none() {
                skill.named.report_missing(config, &mut report);
            }
            let found = report.finish(skill.place.clone());
            let root = &skill.root;
            self.problems
                .extend(found.into_iter().map(|one| (Arc::clone(root), one)));
            let alias = skill.named.model.as_ref().map(|(alias, _)| alias.as_str());
            if let Some(lack) = executor::lack(config, alias, config.program.is_some()) {
                Arc::make_mut(skill).lack = Some(lack.reason);
            }
        }
    }
}

/// Skills in the order in which they take names: those that are handed out, by root; in a root first
/// those whose place has their name.
fn by_right<'s>(found: &[&'s Arc<RootSkill>]) -> Vec<&'s Arc<RootSkill>> {
    let mut rank = HashMap::new();
    for skill in found {
        let next = rank.len();
        rank.entry(Arc::as_ptr(&skill.root)).or_insert(next);
    }
    let mut order = found.to_vec();
    order.sort_by_key(|skill| {
        let root = rank.get(&Arc::as_ptr(&skill.root)).copied();
        (!skill.valid, root, skill.stem != skill.name)
    });
    order
}

/// Skills of workers that their bare name finds, or finds several of.
fn of_workers(workers: &[Arc<Worker>]) -> HashMap<String, Place> {
    let mut owners = HashMap::new();
    for skill in workers.iter().flat_map(|worker| &worker.skills) {
        owners
            .entry(skill.address.skill.to_lowercase())
            .or_insert_with(|| skill.place.clone());
    }
    owners
}

/// A name that could be taken for that of another skill must not lead whoever trusts that one here.
fn qualified(skill: &RootSkill, named: bool) -> Problem {
    Problem {
        code: "name-qualified".to_owned(),
        severity: Severity::Warning,
        place: skill.place.clone(),
        message: format!(
            "`name: {}` looks like a qualified name and does not find this skill",
            skill.name
        ),
        hint: Some(format!(
            "use a name without a colon; {}",
            names(skill, named)
        )),
        worker: None,
        skill: Some(skill.name.clone()),
    }
}

/// What finds a skill that its name does not find; `named`: its qualified name does.
fn names(skill: &RootSkill, named: bool) -> String {
    if named {
        format!("`{}` names this one", skill.qualified())
    } else {
        format!(
            "`{}` also names another skill: rename this one",
            skill.qualified()
        )
    }
}

fn shadowed(skill: &RootSkill, owner: &Place, named: bool) -> Problem {
    Problem {
        code: "skill-shadowed".to_owned(),
        severity: Severity::Note,
        place: skill.place.clone(),
        message: format!(
            "this skill is shadowed: `{}` of `{owner}` takes precedence",
            skill.name
        ),
        hint: Some(names(skill, named)),
        worker: None,
        skill: Some(skill.name.clone()),
    }
}
