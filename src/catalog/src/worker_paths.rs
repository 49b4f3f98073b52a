//! `workers.paths` of workerctl.yaml, and the directories that the paths lead to.

use std::path::{Path, PathBuf};

use super::entries::{self, Bound};
use super::open::{Refusal, Root};
use super::report::Report;
use super::settings::inner_path;
use super::tree::Data;
use super::view::View;
use crate::model::config::CONFIG_FILE;
use crate::model::worker_paths::ANY_DIRECTORY;
use crate::model::{Config, Place, WorkerPaths};

/// Paths of workers.
const PATHS_MAX: usize = 64;

/// Entries that are looked at for directories that a `*` may stand for.
const ENTRIES_MAX: usize = 100_000;

/// What no `*` stands for, besides names that begin with a dot.
const PASSED_OVER: &str = "node_modules";

/// Reads the paths; `None` when an error was reported.
pub(crate) fn read(view: View<'_>, report: &mut Report) -> Option<WorkerPaths> {
    let before = report.errors();
    let listed: Vec<View<'_>> = view.items().collect();
    if !matches!(view.data(), Data::List(_)) {
        view.wrong_type("paths", "a list such as `[workers]`", report);
    } else if listed.is_empty() || listed.len() > PATHS_MAX {
        let message = format!("`paths` must name 1 to {PATHS_MAX} directories");
        let hint = "without the key, workers are read from `workers`";
        report.error("out-of-range", view.place(), message, hint);
    }
    let mut paths: Vec<String> = Vec::new();
    for item in listed {
        let Some(path) = path(item, report) else {
            continue;
        };
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    (report.errors() == before).then(|| WorkerPaths::new(paths))
}

fn path(view: View<'_>, report: &mut Report) -> Option<String> {
    let text = inner_path(view, "paths", report)?;
    let parts: Vec<&str> = text
        .split('/')
        .filter(|part| !matches!(*part, "" | "."))
        .collect();
    let (why, hint) = match parts.as_slice() {
        [] => (
            "is the whole workspace",
            "name a directory, such as `workers`",
        ),
        [".workerctl" | "state", ..] => (
            "is where the engine keeps its own files",
            "keep workers elsewhere, such as in `workers`",
        ),
        parts if parts.contains(&"**") => (
            "has `**`, which is not known here",
            "write `*` for each directory, such as `packages/*/workers`; below a path, workers are found 6 directories deep",
        ),
        parts if parts.iter().any(|part| is_odd(part)) => (
            "has a pattern that is not known",
            "`*` matches one whole name, such as in `packages/*/workers`; no other patterns are supported",
        ),
        _ => return Some(parts.join("/")),
    };
    let message = format!("`paths: {}` {why}", text.escape_debug());
    report.error("worker-path", view.place(), message, hint);
    None
}

fn is_odd(part: &str) -> bool {
    part != ANY_DIRECTORY && part.contains(['*', '?', '[', ']', '{', '}', '\\', '$'])
}

/// The directories of workers that are there, relative to the workspace, each once, as they are written and not as
/// links lead; those that are reached by links come last.
pub(crate) fn directories(root: &Root, config: &Config, report: &mut Report) -> Vec<String> {
    let mut search = Search {
        root,
        place: place(config),
        is_default: config.workers == WorkerPaths::default(),
        entries: Bound::new(
            ENTRIES_MAX,
            "in the directories that `*` searches for workers",
            "name the directories in `workers.paths` instead",
        ),
        report,
    };
    let patterns = config.workers.patterns().iter();
    let mut found: Vec<(bool, String)> = patterns
        .flat_map(|pattern| search.pattern(pattern))
        .collect();
    found.sort();
    found.dedup();
    found.into_iter().map(|(_, path)| path).collect()
}

/// Where the configuration names the paths.
fn place(config: &Config) -> Place {
    let origin = config.origins.get("workers.paths");
    let line = origin.and_then(|origin| origin.rsplit_once(':')?.1.parse().ok());
    Place {
        path: CONFIG_FILE.into(),
        line: line.unwrap_or(0),
        column: u32::from(line.is_some()),
    }
}

struct Search<'s> {
    root: &'s Root,
    place: Place,
    is_default: bool,
    entries: Bound,
    report: &'s mut Report,
}

impl Search<'_> {
    /// What a pattern leads to, each with whether a link leads there.
    fn pattern(&mut self, pattern: &str) -> Vec<(bool, String)> {
        let mut places = vec![String::new()];
        for part in pattern.split('/') {
            let below = |above: &String, name: &str| match above.as_str() {
                "" => name.to_owned(),
                above => format!("{above}/{name}"),
            };
            places = if part == ANY_DIRECTORY {
                let listed = places.iter().flat_map(|above| {
                    let names = self.names(above);
                    names
                        .into_iter()
                        .map(|name| below(above, &name))
                        .collect::<Vec<_>>()
                });
                listed.collect()
            } else {
                places.iter().map(|above| below(above, part)).collect()
            };
        }
        let found: Vec<_> = places
            .iter()
            .filter_map(|path| self.directory(path))
            .collect();
        let told = self.report.errors();
        if found.is_empty() && !self.is_default && told == 0 {
            self.report.warning(
                "worker-path-empty",
                self.place.clone(),
                format!("`workers.paths` names `{pattern}`, and no such directory is there"),
                "make it, or correct the path",
            );
        }
        found
    }

    /// Names that a `*` may stand for.
    fn names(&mut self, above: &str) -> Vec<String> {
        let path = self.root.path().join(above);
        if !path.is_dir() || (!above.is_empty() && self.resolved(above).is_none()) {
            return Vec::new();
        }
        let listed = entries::list(&path, above, &mut self.entries, self.report);
        let may_stand = listed.into_iter().filter(|entry| {
            (entry.directory || entry.link)
                && !entry.name.starts_with('.')
                && entry.name != PASSED_OVER
        });
        may_stand.map(|entry| entry.name).collect()
    }

    fn directory(&mut self, path: &str) -> Option<(bool, String)> {
        self.root.stamp(path)?;
        let real = self.resolved(path)?;
        let is_directory = self.root.path().join(&real).is_dir();
        is_directory.then(|| (real != Path::new(path), path.to_owned()))
    }

    /// Where a path leads to inside of the workspace.
    fn resolved(&mut self, path: &str) -> Option<PathBuf> {
        match self.root.resolve(path) {
            Ok(real) => Some(real),
            Err(Refusal::Missing { .. }) => None,
            Err(refusal) => {
                let (code, hint) = refusal.code_and_hint();
                let message = format!(
                    "`workers.paths`: {}",
                    crate::model::diagnostic::chain(&refusal)
                );
                let hint = match refusal {
                    Refusal::Outside { .. } => {
                        "copy the directory into the workspace, or take the path out of `workers.paths`: links may not lead out of it"
                    }
                    _ => hint,
                };
                self.report.error(code, self.place.clone(), message, hint);
                None
            }
        }
    }
}
