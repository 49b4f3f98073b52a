//! Reads one worker with all its skills.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::document;
use super::frontmatter::of_worker_file;
use super::keys::{IDENTITY, WORKER_FILE, report_unknown, suggest};
use super::layers::Layers;
use super::listing::{Files, Item, collect};
use super::open::{DefinitionStamp, Root};
use super::report::{Rejected, Report};
use super::schedule::{Draft, Reader};
use super::source::whole_file;
use super::tree::Data;
use super::view::View;
use super::walk::UnitFiles;
use super::worker::{WorkerContext, WorkerPart};
use super::{Options, identity, skill, worker};
use crate::model::config::{CONFIG_FILE, Instance};
use crate::model::{Config, Place, Problem, Severity, Worker};

/// One worker as read.
#[derive(Debug)]
pub(crate) struct Unit {
    /// What it was read from.
    pub(crate) files: UnitFiles,
    /// The worker, when nothing rejects it.
    pub(crate) worker: Option<Arc<Worker>>,
    /// Its schedules, whose skills are not looked for yet.
    pub(crate) schedules: Vec<Arc<Draft>>,
    /// Everything found.
    pub(crate) problems: Vec<Problem>,
    /// What was rejected.
    pub(crate) rejected: Vec<Rejected>,
    /// Other files that it depends on, with what they were then.
    pub(crate) depends: Vec<(String, Option<DefinitionStamp>)>,
    /// Its id with placeholders, where it is known and has some.
    pub(crate) template: Option<String>,
    /// The instance of a template that it is.
    pub(crate) instance: Option<Instance>,
    /// Those that are made from it.
    pub(crate) instances: Vec<Unit>,
}

impl Unit {
    fn unread(files: UnitFiles, instance: Option<&Instance>) -> Unit {
        Unit {
            files,
            worker: None,
            schedules: Vec::new(),
            problems: Vec::new(),
            rejected: Vec::new(),
            depends: Vec::new(),
            template: None,
            instance: instance.cloned(),
            instances: Vec::new(),
        }
    }

    /// Where the worker is defined: an instance, in the configuration.
    pub(crate) fn place<'u>(&'u self, worker: &'u Worker) -> &'u Place {
        let instance = self.instance.as_ref();
        instance.map_or(&worker.place, |instance| &instance.place)
    }

    /// A unit that could not be read at all.
    pub(crate) fn failed(files: UnitFiles) -> Unit {
        let mut report = Report::default();
        report.error(
            "loader-failed",
            whole_file(&files.definition),
            "reading the definition failed because of an internal error".to_owned(),
            "report this file as a defect of workerctl",
        );
        let whole = whole_file(&files.definition);
        Unit {
            rejected: vec![Rejected {
                worker: files.directory.clone(),
                skill: None,
                place: whole.clone(),
            }],
            problems: report.finish(whole),
            ..Unit::unread(files, None)
        }
    }

    /// Whether nothing that it was read from has changed.
    pub(crate) fn is_current(&self, files: &UnitFiles, root: &Root) -> bool {
        self.files == *files
            && self
                .depends
                .iter()
                .all(|(path, stamp)| root.stamp(path) == *stamp)
    }
}

/// Reads one worker, and what is made from it where it is a template.
pub(crate) fn read(files: &UnitFiles, root: &Root, options: Options<'_>, config: &Config) -> Unit {
    let read = |instance| read_as(instance, files, root, options, config);
    let mut unit = read(None);
    let template = unit.template.as_ref();
    let made = template.and_then(|id| config.instances.get(id));
    unit.instances = made
        .into_iter()
        .flatten()
        .map(|one| read(Some(one)))
        .collect();
    unit
}

fn read_as(
    instance: Option<&Instance>,
    files: &UnitFiles,
    root: &Root,
    options: Options<'_>,
    config: &Config,
) -> Unit {
    let mut report = Report::default();
    let mut unit = Unit::unread(files.clone(), instance);
    let mut reading = Reading {
        files,
        instance,
        root,
        options,
        config,
        unit: &mut unit,
        report: &mut report,
    };
    let worker = reading.worker();
    unit.worker = worker.map(Arc::new);
    unit.problems
        .extend(report.finish(whole_file(&files.definition)));
    unit
}

/// Templates that `instances` names and no worker is.
pub(crate) fn unknown_templates(
    config: &Config,
    units: &[&Unit],
    workers: &[Arc<Worker>],
) -> Vec<Problem> {
    // Those that are broken stay known by their last good definition.
    let workers = workers.iter().filter(|worker| worker.template);
    let known: HashSet<&str> = units
        .iter()
        .filter_map(|unit| unit.template.as_deref())
        .chain(workers.map(|worker| worker.id.as_str()))
        .collect();
    let listed: Vec<&str> = known.iter().copied().collect();
    // The id of a worker whose file cannot be read is not known.
    let is_broken = |id: &str| {
        let rejected = units.iter().flat_map(|unit| &unit.rejected);
        rejected
            .filter(|one| one.skill.is_none())
            .any(|one| one.worker == id)
    };
    let strange = config
        .instances
        .iter()
        .filter(|(id, _)| !known.contains(id.as_str()) && !is_broken(id));
    strange
        .map(|(id, instances)| Problem {
            code: "instances-template".to_owned(),
            severity: Severity::Error,
            place: instances
                .first()
                .map_or_else(|| whole_file(CONFIG_FILE), |first| first.place.clone()),
            message: format!("`instances` names `{id}`, and no worker has that id"),
            hint: Some(suggest(id, &listed).map_or_else(
                || {
                    format!(
                        "write `worker: {{id: \"{id}\"}}` in a worker.yaml, or remove it from `instances`"
                    )
                },
                |meant| format!("did you mean `{meant}`?"),
            )),
            worker: None,
            skill: None,
        })
        .collect()
}

struct Reading<'r> {
    files: &'r UnitFiles,
    instance: Option<&'r Instance>,
    root: &'r Root,
    options: Options<'r>,
    config: &'r Config,
    unit: &'r mut Unit,
    report: &'r mut Report,
}

impl Reading<'_> {
    fn reject(&mut self, worker: &str, skill: Option<&str>, place: Place) {
        self.unit.rejected.push(Rejected {
            worker: worker.to_owned(),
            skill: skill.map(ToOwned::to_owned),
            place,
        });
    }

    fn worker(&mut self) -> Option<Worker> {
        let directory_name = self
            .files
            .directory
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .to_owned();
        let worker = self.worker_or_error(&directory_name);
        if worker.is_none() && self.unit.rejected.iter().all(|one| one.skill.is_some()) {
            self.reject(&directory_name, None, whole_file(&self.files.definition));
        }
        worker
    }

    fn worker_or_error(&mut self, directory_name: &str) -> Option<Worker> {
        let source = self.root.source(&self.files.definition, self.report)?;
        let (yaml, body) = of_worker_file(&source, self.report).ok()?;
        let document = document::read(source, yaml, self.report)?;
        let root = View::root(&document.source, &document.root);
        if !matches!(root.data(), Data::Map(_)) {
            let message = format!("the definition is {}, not a map of keys", root.kind());
            let place = document::start_of(&document.source);
            let hint = "begin it with `worker:` and an `id` below it";
            self.report.error("definition-shape", place, message, hint);
            return None;
        }
        let before = self.report.errors();
        report_unknown(root, &WORKER_FILE, self.report);
        let identity = identity::read(root, self.instance, self.report)?;
        self.unit.template = identity.template.then(|| identity.id.clone());
        self.report.set_worker(Some(&identity.id));
        let around = WorkerContext {
            root: self.root,
            directory: &self.files.directory,
            options: self.options,
            config: self.config,
            text: document.source.text(),
        };
        let part = worker::read(root, &identity, around, self.report);
        let instructions = instructions(root, body, self.report);
        if self.report.errors() > before {
            self.reject(&identity.id, None, identity.place.clone());
        }
        let files_and_checker = (self.root, self.options.text_checker);
        let mut reader = Reader::new(&identity.id, root, self.config, files_and_checker);
        let skills = self.skills(root, &part, &mut reader);
        reader.worker(root, skills.first().map(AsRef::as_ref));
        if let Some(place) = part.schedule_missing.filter(|_| !reader.skills_have_some()) {
            worker::report_schedule_missing(place, self.report);
            self.reject(&identity.id, None, identity.place.clone());
        }
        let scheduled = part.scheduled || reader.skills_have_some();
        self.take_schedules(reader);
        let rejected = self.unit.rejected.iter().any(|one| one.skill.is_none());
        if !rejected && self.instance.is_none() && !directory_matches(&identity.id, directory_name)
        {
            self.report.note(
                "worker-directory",
                identity.place.clone(),
                format!(
                    "the worker is `{}`, its directory `{directory_name}`",
                    identity.id
                ),
                "",
            );
        }
        (!rejected).then(|| Worker {
            id: identity.id,
            name: identity.name,
            kind: identity.kind,
            version: identity.version,
            description: identity.description,
            mode: part.mode,
            place: identity.place,
            template: identity.template,
            instance_of: identity.instance_of,
            model: part.model.clone(),
            instructions,
            scheduled,
            notify: part.notify.clone(),
            kept: kept(root),
            skills,
        })
    }

    fn take_schedules(&mut self, reader: Reader<'_>) {
        self.remember(reader.depends());
        let (drafts, problems) = reader.finish(&self.files.definition);
        // Its own allocation: collected in place it would keep that of the drafts.
        self.unit.schedules = Vec::with_capacity(drafts.len());
        self.unit.schedules.extend(drafts.into_iter().map(Arc::new));
        self.unit.problems.extend(problems);
    }

    fn skills(
        &mut self,
        root: View<'_>,
        part: &WorkerPart<'_>,
        schedules: &mut Reader<'_>,
    ) -> Vec<Arc<crate::model::Skill>> {
        self.remember(&part.depends);
        let before = self.report.errors();
        let listed = root.written("skills");
        let found = &self.files.skills;
        let directory = &self.files.directory;
        let files = Files::read(listed, found, directory, self.root, self.report);
        let items = collect(listed, &files, found, directory, self.report);
        self.remember(&files.depends);
        if items.is_empty() && self.report.errors() == before {
            let tasks = root.written("tasks");
            let hint = match tasks {
                Some(_) => "rename `tasks:` to `skills:`: `tasks` is recorded and never run",
                None => "add `skills:`, or files below `skills/`",
            };
            self.report.warning(
                "worker-without-skills",
                (listed.or(tasks)).map_or_else(|| root.place(), |view| view.key_place()),
                format!("the worker `{}` has no skills", part.id),
                hint,
            );
        }
        let twice = duplicates(&items);
        let mut skills = Vec::with_capacity(items.len());
        for item in &items {
            let first = twice.get(&item.id.to_lowercase());
            if let Some(places) = first {
                self.report_twice(item, places);
            }
            let built = skill::build(item, &files, part, self.report);
            self.remember(&built.depends);
            schedules.skill(&item.id, &Layers::of(item), built.skill.as_ref());
            match built.skill.filter(|_| first.is_none()) {
                Some(skill) => skills.push(Arc::new(skill)),
                None => self.reject(&part.id, Some(&item.id), item.place.clone()),
            }
        }
        skills
    }

    fn report_twice(&mut self, item: &Item<'_>, places: &[Place]) {
        let others: Vec<String> = places
            .iter()
            .filter(|place| **place != item.place)
            .map(|place| format!("`{place}`"))
            .collect();
        self.report.set_skill(Some(&item.id));
        self.report.error(
            "skill-duplicate",
            item.place.clone(),
            format!(
                "the skill `{}` is also defined at {}",
                item.id,
                others.join(", ")
            ),
            "rename or remove all but one",
        );
        self.report.set_skill(None);
    }

    fn remember(&mut self, paths: &[String]) {
        for path in paths {
            let stamp = self.root.stamp(path);
            self.unit.depends.push((path.clone(), stamp));
        }
    }
}

fn directory_matches(id: &str, directory: &str) -> bool {
    id.eq_ignore_ascii_case(directory) || id.contains('{')
}

/// Places of the skills whose ids are taken more than once; case does not tell ids apart.
fn duplicates(items: &[Item<'_>]) -> HashMap<String, Vec<Place>> {
    let mut places: HashMap<String, Vec<Place>> = HashMap::new();
    for item in items {
        let entry = places.entry(item.id.to_lowercase()).or_default();
        entry.push(item.place.clone());
    }
    places.retain(|_, places| places.len() > 1);
    places
}

fn instructions(root: View<'_>, body: Option<String>, report: &mut Report) -> Option<String> {
    let written = root
        .written("instructions")
        .and_then(|view| view.texts("instructions", report))
        .map(|texts| texts.join("\n"));
    match (written, body) {
        (Some(written), Some(body)) => Some(format!("{written}\n\n{body}")),
        (written, body) => written.or(body),
    }
}

fn kept(root: View<'_>) -> serde_json::Map<String, serde_json::Value> {
    let mut kept = serde_json::Map::new();
    for (key, value) in root.entries() {
        if WORKER_FILE.keeps(key) {
            kept.insert(key.to_owned(), value.json());
        }
    }
    if let Some(identity) = root.get("worker") {
        let rest: serde_json::Map<_, _> = identity
            .entries()
            .filter(|(key, _)| IDENTITY.keeps(key))
            .map(|(key, value)| (key.to_owned(), value.json()))
            .collect();
        if !rest.is_empty() {
            kept.insert("worker".to_owned(), serde_json::Value::Object(rest));
        }
    }
    kept
}
