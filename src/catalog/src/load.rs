//! Puts the units together: duplicate ids, last good definitions, order.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::config_acceptance::config_in_force;
use super::folded::Folded;
use super::last_good::{LastGood, config_unknown};
use super::open::Root;
use super::registry::{self, Registry};
use super::report::Rejected;
use super::report::Report;
use super::schedule::{self, Draft};
use super::source::{REPAIR, directory_of, whole_file};
use super::unit::{self, Unit};
use super::walk::{UnitFiles, search};
use super::{Catalog, Fingerprint, Options, roots};
use crate::model::config::CONFIG_FILE;
use crate::model::{Config, Place, Problem, Severity, Worker, zone};

/// Threads that read definitions at once.
const THREADS_MAX: usize = 8;

/// Units below which threads cost more than they give.
const UNITS_PER_THREAD: usize = 16;

/// Reads everything, taking over what did not change since `previous`.
pub(crate) fn load(root: &Path, options: Options<'_>, previous: Option<&Catalog>) -> Catalog {
    let zones = zone::generation();
    let opened = match Root::open(root) {
        Ok(opened) => opened,
        Err(error) => return unreadable(root, &error, previous),
    };
    // Looked at before it is read, so that what changes in between is found by the next look.
    let stamp = opened.stamp(CONFIG_FILE);
    let (config, config_is_known, config_problems) = config_in_force(&opened, previous, options);
    let mut found = search(&opened, &config);
    found.config = stamp;
    let fingerprint = Fingerprint::of(&found);
    let (registry, registry_problems) = registry::read(&opened, &config.workers);
    let is_like = |previous: &&Catalog| previous.root == opened.path() && previous.zones == zones;
    let reusable = previous.filter(|previous| is_like(previous) && previous.config == config);
    let units = read_units(&found.units, &opened, options, &config, reusable);
    let links = found.links;
    let mut assembly = Assembly {
        problems: [config_problems, found.problems, registry_problems].concat(),
        rejected: Vec::new(),
        workers: Vec::new(),
        drafts: Vec::new(),
        kept: HashSet::new(),
    };
    assembly.take(&units, &opened, &registry, &config, previous);
    let known = schedule::ResolveContext {
        workers: &assembly.workers,
        rejected: &assembly.rejected,
        now: options.now,
        previous: previous.map_or(&[], |previous| &previous.schedules),
        kept: &assembly.kept,
    };
    let schedule::Resolved { schedules, kept } =
        schedule::resolve(&assembly.drafts, known, &mut assembly.problems);
    let known = roots::RootsContext {
        config: &config,
        home: options.home,
        threads: options.threads,
        previous: previous.map(|previous| &previous.root_skills),
        workers: &assembly.workers,
        rejected: &assembly.rejected,
    };
    let found = roots::load(&opened, &known);
    assembly.problems.extend(found.problems);
    if !config_is_known {
        let unknown = config_unknown(!schedules.is_empty(), &found.skills);
        assembly.problems.extend(unknown);
    }
    let mut catalog = Catalog {
        root: opened.path().to_path_buf(),
        root_skills: found.skills,
        home: options.home.map(Path::to_path_buf),
        zones,
        workers: assembly.workers,
        schedules,
        fallback_schedules: kept,
        problems: assembly.problems,
        rejected: assembly.rejected,
        config,
        config_is_known,
        fingerprint,
        units,
        drafts: assembly.drafts,
        links,
        names: Folded::default(),
    };
    add_problems_of_all(&mut catalog, options);
    tidy(&mut catalog.problems);
    catalog.workers.sort_by(|a, b| a.id.cmp(&b.id));
    catalog
}

/// Adds problems that take all workers, or the configuration, to be found.
fn add_problems_of_all(catalog: &mut Catalog, options: Options<'_>) {
    let checker = options.text_checker.into_iter();
    let found = checker.flat_map(|checker| checker.check_all(&catalog.workers));
    let unwritable = super::protected_files::unwritable(&catalog.config, &catalog.workers);
    catalog.problems.extend(found.chain(unwritable));
}

/// A workspace that cannot be opened keeps what was known of it.
fn unreadable(root: &Path, error: &std::io::Error, previous: Option<&Catalog>) -> Catalog {
    let problem = Problem {
        code: "workspace-unreadable".to_owned(),
        severity: Severity::Error,
        place: whole_file(&root.to_string_lossy()),
        message: format!("the workspace cannot be read: {error}"),
        hint: Some("check that the directory exists and its mode".to_owned()),
        worker: None,
        skill: None,
    };
    let known = previous.map_or(&[][..], |known| &known.workers);
    Catalog {
        root: root.to_path_buf(),
        root_skills: roots::RootSkills::beside(known.iter().map(|one| one.id.to_lowercase())),
        workers: previous
            .map(|known| known.workers.clone())
            .unwrap_or_default(),
        schedules: previous
            .map(|known| known.schedules.clone())
            .unwrap_or_default(),
        fallback_schedules: previous
            .map(|known| known.schedules.iter())
            .unwrap_or_default()
            .map(|schedule| (schedule.id.to_string(), problem.message.clone()))
            .collect(),
        problems: vec![problem],
        rejected: Vec::new(),
        config: previous
            .map(|known| known.config.clone())
            .unwrap_or_default(),
        config_is_known: previous.is_some_and(|known| known.config_is_known),
        home: previous.and_then(|known| known.home.clone()),
        zones: zone::generation(),
        fingerprint: Fingerprint::default(),
        units: Vec::new(),
        drafts: previous
            .map(|known| known.drafts.clone())
            .unwrap_or_default(),
        links: previous
            .map(|known| known.links.clone())
            .unwrap_or_default(),
        names: Folded::default(),
    }
}

fn read_units(
    files: &[UnitFiles],
    root: &Root,
    options: Options<'_>,
    config: &Config,
    previous: Option<&Catalog>,
) -> Vec<Arc<Unit>> {
    let known: HashMap<&str, &Arc<Unit>> = previous
        .map(|previous| previous.units.as_slice())
        .unwrap_or_default()
        .iter()
        .map(|unit| (unit.files.directory.as_str(), unit))
        .collect();
    let next = AtomicUsize::new(0);
    let read_some = || {
        let mut read = Vec::new();
        while let Some(files) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            let reused = known
                .get(files.directory.as_str())
                .filter(|unit| unit.is_current(files, root))
                .map(|unit| Arc::clone(unit));
            let unit = reused.unwrap_or_else(|| Arc::new(unit::read(files, root, options, config)));
            read.push(unit);
        }
        read
    };
    let wanted = if options.threads == 0 {
        std::thread::available_parallelism().map_or(1, usize::from)
    } else {
        options.threads
    };
    let threads = wanted
        .min(THREADS_MAX)
        .min(files.len() / UNITS_PER_THREAD + 1);
    let mut units: Vec<Arc<Unit>> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads)
            .map_while(|_| {
                std::thread::Builder::new()
                    .name("catalog".to_owned())
                    .spawn_scoped(scope, read_some)
                    .ok()
            })
            .collect();
        let mut units = read_some();
        for other in others {
            units.extend(other.join().unwrap_or_default());
        }
        units
    });
    complete(&mut units, files);
    units.sort_by(|a, b| a.files.directory.cmp(&b.files.directory));
    units
}

/// A thread that ended without a result must not make its files vanish in silence.
fn complete(units: &mut Vec<Arc<Unit>>, files: &[UnitFiles]) {
    if units.len() == files.len() {
        return;
    }
    let read: HashSet<String> = units
        .iter()
        .map(|unit| unit.files.directory.clone())
        .collect();
    for files in files
        .iter()
        .filter(|files| !read.contains(&files.directory))
    {
        units.push(Arc::new(Unit::failed(files.clone())));
    }
}

struct Assembly {
    problems: Vec<Problem>,
    rejected: Vec<Rejected>,
    workers: Vec<Arc<Worker>>,
    drafts: Vec<Arc<Draft>>,
    /// Those of them that are taken over from the last good definition of a worker or a skill that broke.
    kept: HashSet<*const Draft>,
}

impl Assembly {
    fn take(
        &mut self,
        units: &[Arc<Unit>],
        root: &Root,
        registry: &Registry,
        config: &Config,
        previous: Option<&Catalog>,
    ) {
        let mut units: Vec<&Unit> = units
            .iter()
            .flat_map(|unit| std::iter::once(&**unit).chain(&unit.instances))
            .collect();
        let mut report = Report::default();
        let passed_over = registry.passed_over(&units, root, &mut report);
        self.problems.extend(report.finish(whole_file(CONFIG_FILE)));
        units.retain(|unit| {
            let counts = !passed_over.contains(&std::ptr::from_ref(*unit));
            if !counts {
                self.problems.extend(unit.problems.iter().cloned());
            }
            counts
        });
        let mut places: BTreeMap<String, Vec<&Place>> = BTreeMap::new();
        for (unit, worker) in units
            .iter()
            .filter_map(|unit| Some((unit, unit.worker.as_ref()?)))
        {
            let entry = places.entry(worker.id.to_lowercase()).or_default();
            entry.push(unit.place(worker));
        }
        let last = LastGood::of(previous);
        let drafts: &[Arc<Draft>] = previous.map_or(&[], |previous| &previous.drafts);
        for unit in &units {
            self.problems.extend(unit.problems.iter().cloned());
            self.rejected.extend(unit.rejected.iter().cloned());
            let before = last.of_unit(unit);
            let Some(worker) = &unit.worker else {
                // The id may be taken by another file since.
                let is_free = |last: &&Arc<Worker>| !places.contains_key(&last.id.to_lowercase());
                self.keep_last_good(unit, before.filter(is_free), drafts);
                for one in last.instances_of_broken(unit, config).filter(is_free) {
                    self.keep_last_good(unit, Some(one), drafts);
                }
                continue;
            };
            let twice = places
                .get(&worker.id.to_lowercase())
                .filter(|places| places.len() > 1);
            if let Some(places) = twice {
                self.report_twice(unit, worker, places);
                let same = before.filter(|last| last.id.eq_ignore_ascii_case(&worker.id));
                self.keep_last_good(unit, same, drafts);
                continue;
            }
            let (worker, kept) = self.with_last_good_skills(unit, worker, before);
            self.workers.push(worker);
            // The last good definition of a skill is that of its schedules, too.
            let is_kept = |draft: &Arc<Draft>| {
                draft
                    .skill
                    .as_ref()
                    .is_some_and(|id| kept.contains(id.as_ref()))
            };
            let own = unit.schedules.iter().filter(|draft| !is_kept(draft));
            self.drafts.extend(own.cloned());
            let last = before
                .into_iter()
                .filter(|_| !kept.is_empty())
                .flat_map(|last| of_worker(drafts, &last.id));
            for draft in last.filter(|draft| is_kept(draft)) {
                self.kept.insert(Arc::as_ptr(draft));
                self.drafts.push(Arc::clone(draft));
            }
        }
        let unknown = unit::unknown_templates(config, &units, &self.workers);
        self.problems.extend(unknown);
    }

    fn report_twice(&mut self, unit: &Unit, worker: &Worker, places: &[&Place]) {
        let own = unit.place(worker);
        let others: Vec<String> = places
            .iter()
            .filter(|place| **place != own)
            .map(|place| format!("`{place}`"))
            .collect();
        self.rejected.push(Rejected {
            worker: worker.id.clone(),
            skill: None,
            place: own.clone(),
        });
        self.problems.push(Problem {
            code: "worker-duplicate".to_owned(),
            severity: Severity::Error,
            place: own.clone(),
            message: format!(
                "the worker `{}` is also defined at {}",
                worker.id,
                others.join(", ")
            ),
            hint: Some(
                "give each worker its own id, or say in `workers/registry.yaml` which path counts"
                    .to_owned(),
            ),
            worker: Some(worker.id.clone()),
            skill: None,
        });
    }

    fn keep_last_good(&mut self, unit: &Unit, last: Option<&Arc<Worker>>, drafts: &[Arc<Draft>]) {
        let Some(last) = last else {
            return;
        };
        self.problems.push(kept_problem(
            Place {
                path: unit.files.definition.as_str().into(),
                line: 0,
                column: 0,
            },
            format!("the last good definition of `{}` stays in use", last.id),
            &last.id,
            None,
        ));
        self.workers.push(Arc::clone(last));
        for draft in of_worker(drafts, &last.id) {
            self.kept.insert(Arc::as_ptr(draft));
            self.drafts.push(Arc::clone(draft));
        }
    }

    /// Skills that broke keep their last good definition too; gives their ids with the worker.
    fn with_last_good_skills(
        &mut self,
        unit: &Unit,
        worker: &Arc<Worker>,
        before: Option<&Arc<Worker>>,
    ) -> (Arc<Worker>, HashSet<String>) {
        let mut kept = HashSet::new();
        let Some(before) = before.filter(|last| last.id == worker.id) else {
            return (Arc::clone(worker), kept);
        };
        let mut complete = Arc::clone(worker);
        for rejected in &unit.rejected {
            // A broken file may no longer tell its id; its path does.
            let own_file = *rejected.place.path != *unit.files.definition;
            let last = rejected.skill.as_ref().and_then(|id| {
                before.skills.iter().find(|skill| {
                    skill.address.skill == *id
                        || (own_file && skill.place.path == rejected.place.path)
                })
            });
            let Some(last) = last else {
                continue;
            };
            if complete
                .skills
                .iter()
                .any(|skill| skill.address == last.address)
            {
                continue;
            }
            self.problems.push(kept_problem(
                rejected.place.clone(),
                format!(
                    "the last good definition of `{}` stays in use",
                    last.address
                ),
                &worker.id,
                Some(&last.address.skill),
            ));
            kept.insert(last.address.skill.clone());
            Arc::make_mut(&mut complete).skills.push(Arc::clone(last));
        }
        (complete, kept)
    }
}

fn of_worker<'d>(
    drafts: &'d [Arc<Draft>],
    worker: &'d str,
) -> impl Iterator<Item = &'d Arc<Draft>> {
    drafts.iter().filter(move |draft| *draft.worker == *worker)
}

fn kept_problem(place: Place, message: String, worker: &str, skill: Option<&str>) -> Problem {
    Problem {
        code: "kept-last-good".to_owned(),
        severity: Severity::Warning,
        place,
        message,
        hint: Some(REPAIR.to_owned()),
        worker: Some(worker.to_owned()),
        skill: skill.map(ToOwned::to_owned),
    }
}

/// Orders problems by place and tells an unknown key once for each directory.
fn tidy(problems: &mut Vec<Problem>) {
    // What is said of a template and of its instances is said once, with the greater weight.
    problems.sort_by(|a, b| {
        let place = a.place.cmp(&b.place);
        let code = || a.code.cmp(&b.code);
        place
            .then_with(code)
            .then_with(|| b.severity.cmp(&a.severity))
    });
    let mut told = HashSet::new();
    let mut seen = HashSet::new();
    problems.retain(|problem| {
        let again = problem.code == "unknown-key"
            && !told.insert((
                directory_of(&problem.place.path).to_owned(),
                problem.message.clone(),
            ));
        !again
            && seen.insert((
                problem.code.clone(),
                problem.place.clone(),
                problem.message.clone(),
                problem.skill.clone(),
            ))
    });
}
