//! `workers/registry.yaml`: which of two definitions of one worker counts.

use std::collections::{BTreeMap, HashSet};

use super::document;
use super::open::Root;
use super::report::Report;
use super::source::whole_file;
use super::tree::Data;
use super::unit::Unit;
use super::view::View;
use crate::model::{Place, Problem, WorkerPaths};

/// Entries that a registry may have.
const ENTRIES_MAX: usize = 10_000;

/// What a registry says of one worker.
#[derive(Debug)]
struct Entry {
    id: String,
    /// Directory of the worker, relative to the workspace.
    directory: String,
    place: Place,
}

/// A registry as read.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    /// By id in lower case.
    entries: BTreeMap<String, Entry>,
}

/// Reads the first registry that is there, with what is wrong in it.
pub(crate) fn read(root: &Root, paths: &WorkerPaths) -> (Registry, Vec<Problem>) {
    let mut report = Report::default();
    let files = paths.registries();
    // What is there and cannot be read is an error of that file; the next one does not stand for it.
    let is_there = |file: &&String| root.path().join(file).symlink_metadata().is_ok();
    let Some(file) = files.iter().find(is_there) else {
        return (Registry::default(), Vec::new());
    };
    let registry = read_file(root, file, &mut report).unwrap_or_default();
    (registry, report.finish(whole_file(file)))
}

fn read_file(root: &Root, file: &str, report: &mut Report) -> Option<Registry> {
    let source = root.source(file, report)?;
    let end = source.text().len();
    let document = document::read(source, 0..end, report)?;
    let map = View::root(&document.source, &document.root);
    if map.is_null() {
        return None;
    }
    let listed = map.get("workers");
    let is_known =
        |view: &View<'_>| matches!(view.data(), Data::List(_) | Data::Map(_) | Data::Null);
    let Some(listed) = listed.filter(is_known) else {
        let message = "a registry of workers is a map with a list `workers`".to_owned();
        let hint = "write `workers: [{id: my-worker, path: workers/my-worker}]`, or rename the file if it is for something else";
        report.error(
            "registry-shape",
            listed.unwrap_or(map).place(),
            message,
            hint,
        );
        return None;
    };
    let mut reading = Reading {
        registry: Registry::default(),
        ambiguous: HashSet::new(),
        without_path: None,
        report,
    };
    for item in listed.items().take(ENTRIES_MAX) {
        reading.item(item);
    }
    for (id, value) in listed.entries().take(ENTRIES_MAX) {
        match value.data() {
            Data::Map(_) => reading.entry(id.to_owned(), value.written("path"), value.key_place()),
            _ => reading.entry(id.to_owned(), Some(value), value.key_place()),
        }
    }
    Some(reading.finish())
}

struct Reading<'r> {
    registry: Registry,
    /// Ids that stand more than once, with several paths.
    ambiguous: HashSet<String>,
    /// Where the first entry stands that names no path.
    without_path: Option<Place>,
    report: &'r mut Report,
}

impl Reading<'_> {
    fn item(&mut self, item: View<'_>) {
        let Data::Map(_) = item.data() else {
            let message = format!("an entry of the registry is {}, not a map", item.kind());
            let hint = "write `- {id: my-worker, path: workers/my-worker}`";
            self.report
                .error("registry-shape", item.place(), message, hint);
            return;
        };
        let Some(id) = item.written("id") else {
            let message = "an entry of the registry has no `id`".to_owned();
            let hint = "add the `id` that the worker has in its worker.yaml";
            self.report
                .error("registry-shape", item.place(), message, hint);
            return;
        };
        if let Some(text) = id.filled_text("id", self.report) {
            self.entry(text, item.written("path"), id.place());
        }
    }

    fn entry(&mut self, id: String, path: Option<View<'_>>, place: Place) {
        let Some(path) = path.filter(|view| !view.is_null()) else {
            self.without_path.get_or_insert(place);
            return;
        };
        let Some(directory) = directory(path, self.report) else {
            return;
        };
        let key = id.to_lowercase();
        if let Some(first) = self.registry.entries.get(&key) {
            if first.directory != directory {
                let message = format!(
                    "`{id}` appears twice, with `{}` in line {} and with `{directory}` here: both entries are ignored",
                    first.directory, first.place.line
                );
                self.report
                    .error("registry-ambiguous", place, message, "keep one of them");
                self.ambiguous.insert(key);
            }
            return;
        }
        let entry = Entry {
            id,
            directory,
            place,
        };
        self.registry.entries.insert(key, entry);
    }

    fn finish(self) -> Registry {
        if let Some(place) = self.without_path {
            let message = "entries without `path` have no effect".to_owned();
            self.report.note("registry-path", place, message, "");
        }
        let mut registry = self.registry;
        registry
            .entries
            .retain(|id, _| !self.ambiguous.contains(id));
        registry
    }
}

/// The directory that an entry names, which may name the worker's file or end with `/`.
fn directory(view: View<'_>, report: &mut Report) -> Option<String> {
    let text = super::settings::inner_path(view, "path", report)?;
    let mut parts: Vec<&str> = text
        .split('/')
        .filter(|part| !matches!(*part, "" | "."))
        .collect();
    if matches!(parts.last(), Some(&("worker.yaml" | "worker.yml"))) {
        parts.pop();
    }
    Some(parts.join("/"))
}

impl Registry {
    /// Which units do not count: the registry names another definition of their worker. Entries that lead to nothing
    /// are told.
    pub(crate) fn passed_over<'u>(
        &self,
        units: &[&'u Unit],
        root: &Root,
        report: &mut Report,
    ) -> HashSet<*const Unit> {
        let mut by_directory: BTreeMap<&str, Vec<&'u Unit>> = BTreeMap::new();
        for unit in units {
            let all = by_directory.entry(unit.files.directory.as_str());
            all.or_default().push(unit);
        }
        let mut chosen: BTreeMap<&str, &Entry> = BTreeMap::new();
        for (id, entry) in &self.entries {
            match by_directory.get(entry.directory.as_str()) {
                None => entry.leads_nowhere(root, report),
                Some(there) if there.iter().any(|unit| may_be(unit, id)) => {
                    chosen.insert(id, entry);
                }
                Some(_) => entry.misleads(
                    "but another worker is defined there",
                    "correct the id or the path, or remove the entry",
                    report,
                ),
            }
        }
        let mut passed_over = HashSet::new();
        for unit in units {
            let worker = unit.worker.as_ref();
            let Some((worker, entry)) = worker
                .and_then(|worker| Some((worker, chosen.get(worker.id.to_lowercase().as_str())?)))
            else {
                continue;
            };
            if unit.files.directory == entry.directory {
                continue;
            }
            passed_over.insert(std::ptr::from_ref(*unit));
            let message = format!(
                "this definition of `{}` is ignored: `{}` selects the one in `{}`",
                worker.id, entry.place, entry.directory
            );
            let place = unit.place(worker).clone();
            report.note("worker-passed-over", place, message, "");
        }
        passed_over
    }
}

/// Whether a worker has this id, or is broken, so that its id is not known.
fn may_be(unit: &Unit, id: &str) -> bool {
    let worker = unit.worker.as_ref();
    worker.is_none_or(|worker| worker.id.to_lowercase() == id)
}

impl Entry {
    fn leads_nowhere(&self, root: &Root, report: &mut Report) {
        let file = format!("{}/worker.yaml", self.directory);
        let (why, hint) = match root.stamp(&file) {
            Some(_) => (
                "which is not below any of the worker paths",
                "add the directory to `workers.paths` in workerctl.yaml, or remove the entry",
            ),
            None => (
                "where no worker is",
                "correct the path, or remove the entry",
            ),
        };
        self.misleads(why, hint, report);
    }

    fn misleads(&self, why: &str, hint: &str, report: &mut Report) {
        let Entry { id, directory, .. } = self;
        let message = format!("the registry names `{directory}` for `{id}`, {why}");
        report.warning("registry-path", self.place.clone(), message, hint);
    }
}
