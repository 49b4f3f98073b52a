//! Schedules in all their shapes. Each worker's are read with its file, as [`Draft`]s; what needs the
//! other workers (skills that are named, ids, cycles) is settled once all of them are known.
//!
//! A broken schedule is left out and takes nothing with it: neither its skill nor its neighbours.

mod check;
mod cycles;
mod duplicates;
mod entry;
mod kept;
mod moment;
mod phrases;
mod policy;
mod resolve;
mod traps;
mod trigger;
mod unnamed;
mod values;

pub(crate) use policy::hours;
pub(crate) use resolve::{ResolveContext, Resolved, resolve};

use std::collections::HashSet;
use std::sync::Arc;

use super::layers::Layers;
use super::notify;
use super::open::Root;
use super::report::Report;
use super::source::whole_file;
use super::texts::{self, TextChecker};
use super::tree::Data;
use super::view::View;
use crate::model::schedule::{Policy, Trigger};
use crate::model::{Config, Place, Problem, Skill};

/// Schedules that one key may list.
const SCHEDULES_MAX: usize = 100;

/// A schedule as its file says it, before the other workers are known.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    /// Worker in whose definition it stands.
    pub(crate) worker: Arc<str>,
    /// Skill among whose keys it stands; absent at the worker's level.
    pub(crate) skill: Option<Arc<str>>,
    /// Skill that a schedule of the worker's level names, and where.
    target: Option<Box<(String, Place)>>,
    /// Its own name.
    id: Option<OwnId>,
    /// Where it stands.
    place: Place,
    /// What it says; absent when an error was reported. Its id is taken all the same, so that the ids of
    /// others do not move when it is repaired.
    read: Option<Read>,
}

impl Draft {
    /// Where its id stands, or the schedule where it has none of its own.
    fn place_of_id(&self) -> Place {
        let mut place = self.place.clone();
        if let Some(id) = &self.id {
            (place.line, place.column) = (id.line, id.column);
        }
        place
    }
}

/// A schedule's own name, and where in its file that stands. There may be very many: it is kept small.
#[derive(Debug, Clone)]
struct OwnId {
    name: Box<str>,
    line: u32,
    column: u32,
}

/// What a schedule says.
#[derive(Debug, Clone)]
struct Read {
    trigger: Arc<Trigger>,
    timezone: Arc<str>,
    inputs: Arc<Inputs>,
    policy: Arc<Policy>,
    disabled: bool,
    /// Absent where nothing stands of which it tells.
    places: Option<Box<SchedulePlaces>>,
}

/// Where what a schedule names stands.
#[derive(Debug, Clone, Default, PartialEq)]
struct SchedulePlaces {
    /// The skill of `after`.
    after: Option<Place>,
    /// `blackout` or `blocked_hours`.
    blackout: Option<Place>,
    /// Each input.
    inputs: Vec<(String, Place)>,
}

impl Read {
    fn after(&self) -> Option<&Place> {
        self.places.as_ref()?.after.as_ref()
    }

    fn input_places(&self) -> &[(String, Place)] {
        self.places.as_ref().map_or(&[], |places| &places.inputs)
    }
}

/// The directory of a workspace's lock.
const WORKSPACE_FOLDER: &str = ".workerctl";

/// Values of inputs by their names.
type Inputs = serde_json::Map<String, serde_json::Value>;

/// What the enclosing definition says for a schedule.
#[derive(Debug, Clone, Copy)]
struct Around<'a> {
    worker: &'a Arc<str>,
    skill: Option<&'a Arc<str>>,
    /// Zone where it names none; absent when that could not be read.
    timezone: Option<&'a Arc<str>>,
    /// What most schedules say of policies and inputs: nothing.
    plain: &'a Plain,
}

/// What holds where nothing is said; shared by all schedules of a worker that say nothing.
#[derive(Debug)]
struct Plain {
    policy: Arc<Policy>,
    inputs: Arc<Inputs>,
    /// Directories that the engine itself writes, relative to the workspace.
    written: Vec<String>,
}

/// Reads the schedules of one worker.
pub(crate) struct Reader<'a> {
    worker: Arc<str>,
    files: &'a Root,
    /// Files that commands of `notify` name.
    depends: Vec<String>,
    checker: Option<&'a dyn TextChecker>,
    timezone: Option<Arc<str>>,
    /// Zones that schedules name, each once.
    zones: HashSet<Arc<str>>,
    plain: Plain,
    report: Report,
    of_worker: Vec<Draft>,
    of_skills: Vec<Draft>,
    skills_have_some: bool,
}

impl<'a> Reader<'a> {
    /// For the worker of that id, whose definition is `root`.
    pub(crate) fn new(
        worker: &str,
        root: View<'_>,
        config: &Config,
        (files, checker): (&'a Root, Option<&'a dyn TextChecker>),
    ) -> Reader<'a> {
        let mut report = Report::default();
        report.set_worker(Some(worker));
        let own = root
            .get("execution")
            .and_then(|map| map.get("timezone"))
            .filter(|view| !view.is_null());
        let timezone = match own {
            Some(view) => super::settings::timezone(view, &mut report),
            None => Some(config.timezone.clone()),
        };
        Reader {
            worker: worker.into(),
            files,
            depends: Vec::new(),
            checker,
            timezone: timezone.map(Arc::from),
            zones: HashSet::new(),
            plain: Plain {
                policy: Arc::new(Policy {
                    blocked_hours: config.blocked_hours.clone(),
                    ..Policy::default()
                }),
                inputs: Arc::default(),
                written: vec![
                    config.threads_dir.clone(),
                    config.metrics_dir.clone(),
                    WORKSPACE_FOLDER.to_owned(),
                ],
            },
            report,
            of_worker: Vec::new(),
            of_skills: Vec::new(),
            skills_have_some: false,
        }
    }

    /// Reads what stands at the worker's level; `skills` are those of the worker that can be used.
    pub(crate) fn worker(&mut self, root: View<'_>, some_skill: Option<&Skill>) {
        let execution = root.get("execution").and_then(|map| map.get("schedule"));
        let values = [root.get("schedule"), root.get("cron"), execution];
        for view in values.into_iter().flatten().filter(|view| !view.is_null()) {
            let drafts = self.value(view, None, some_skill);
            self.of_worker.extend(drafts);
        }
    }

    /// Reads what stands among the keys of a skill; `built` is the skill when it can be used.
    pub(crate) fn skill(&mut self, id: &str, layers: &Layers<'_>, built: Option<&Skill>) {
        self.report.set_skill(Some(id));
        let own = Arc::from(id);
        for key in ["schedule", "cron"] {
            if let Some(view) = layers.get(key) {
                self.skills_have_some = true;
                let drafts = self.value(view, Some(&own), built);
                self.of_skills.extend(drafts);
            }
        }
        self.report.set_skill(None);
    }

    /// Whether any skill has a schedule of its own.
    pub(crate) fn skills_have_some(&self) -> bool {
        self.skills_have_some
    }

    /// Files, relative to the workspace, on which its problems depend.
    pub(crate) fn depends(&self) -> &[String] {
        &self.depends
    }

    /// The schedules, those of the worker's level first, and everything that was found.
    pub(crate) fn finish(mut self, path: &str) -> (Vec<Draft>, Vec<Problem>) {
        self.of_worker.append(&mut self.of_skills);
        (self.of_worker, self.report.finish(whole_file(path)))
    }

    /// One schedule, or a list of them.
    fn value(
        &mut self,
        view: View<'_>,
        skill: Option<&Arc<str>>,
        built: Option<&Skill>,
    ) -> Vec<Draft> {
        match view.data() {
            Data::List(items) if items.len() > SCHEDULES_MAX => {
                self.report.error(
                    "too-many",
                    view.place(),
                    format!("more than {SCHEDULES_MAX} schedules"),
                    "take an expression that covers several of them",
                );
                let mut drafts = self.all(view, skill, built);
                for draft in &mut drafts {
                    draft.read = None;
                }
                drafts
            }
            Data::List(_) => self.all(view, skill, built),
            _ => vec![self.one(view, skill, built)],
        }
    }

    fn all(
        &mut self,
        view: View<'_>,
        skill: Option<&Arc<str>>,
        built: Option<&Skill>,
    ) -> Vec<Draft> {
        view.items()
            .take(SCHEDULES_MAX)
            .map(|item| self.one(item, skill, built))
            .collect()
    }

    fn one(&mut self, view: View<'_>, skill: Option<&Arc<str>>, built: Option<&Skill>) -> Draft {
        let around = Around {
            worker: &self.worker,
            skill,
            timezone: self.timezone.as_ref(),
            plain: &self.plain,
        };
        let before = self.report.errors();
        let (mut draft, pending) = entry::read(view, around, &mut self.report);
        let paths = notify::report_missing(&pending, self.files, &mut self.report);
        self.depends.extend(paths);
        if let (Some(checker), Some(skill)) = (self.checker, built) {
            self.report
                .extend(texts::problems(checker, skill, &pending));
        }
        if self.report.errors() > before {
            draft.read = None;
        }
        if let Some(read) = &mut draft.read {
            self.share_zone(&mut read.timezone);
        }
        draft
    }

    fn share_zone(&mut self, zone: &mut Arc<str>) {
        if let Some(known) = self.zones.get(zone) {
            *zone = Arc::clone(known);
        } else {
            self.zones.insert(Arc::clone(zone));
        }
    }
}
