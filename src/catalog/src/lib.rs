//! Reads the definition dialects into one model; partial on errors: one bad file hides nothing.
//!
//! [`load()`] reads `workerctl.yaml`, finds `workers/**/worker.yaml` or what else it names with the skills beside it, and gives a
//! [`Catalog`]: what can be used, what was rejected, and every [`Problem`] with its place and remedy.
//! [`reload`] reads only what changed and keeps the last good definition of what broke.

use workerctl_core::{inputs, model, protocol};

mod access;
mod agent_program;
mod align;
mod amounts;
mod approval;
mod bounds;
mod budgets;
mod checks;
mod commands;
mod conditions;
mod config_acceptance;
mod config_file;
mod context;
pub mod definition_paths;
pub mod dialect;
mod document;
mod entries;
mod env;
mod examples;
mod executor;
mod folded;
mod folded_text;
mod frontmatter;
mod http_settings;
mod identity;
mod ids;
pub mod input_schema;
mod instances;
mod interface;
mod isolation;
mod keys;
mod last_good;
mod layers;
mod limits;
mod listing;
mod load;
mod lookup;
mod models;
mod notify;
mod open;
mod protected_files;
mod rate_limit;
mod registry;
mod repair;
mod report;
mod restrict;
pub mod roots;
mod run;
mod sandbox;
mod schedule;
pub mod schema;
mod settings;
mod skill;
mod skill_file;
mod source;
mod syntax;
mod texts;
mod toolsets;
mod tree;
mod unit;
mod unread;
mod view;
mod walk;
pub mod watch;
mod worker;
mod worker_paths;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use commands::interpreters;
pub use conditions::Conditions;
pub use executor::NO_EXECUTOR;
pub use lookup::{ALTERNATIVES_MAX, Lookup};
pub use open::FILE_BYTES_MAX;
pub use report::Rejected;
pub use roots::{RootSkill, RootSkills};
pub use texts::{TextChecker, TextFinding, TextKind};
pub use walk::DEPTH_MAX;

use crate::model::{Config, Problem, Severity, Timestamp, Worker, schedule::Schedule, zone};

/// How definitions are read.
#[derive(Clone, Copy, Default)]
pub struct Options<'a> {
    /// Looks at placeholders and shell texts; without it texts are taken as they are.
    pub text_checker: Option<&'a dyn TextChecker>,
    /// The present; without it nothing is said of schedules that lie in the past.
    pub now: Option<Timestamp>,
    /// Threads to read with; 0: one for each processor, at most 8.
    pub threads: usize,
    /// The home directory, whose skills count where the configuration says so.
    pub home: Option<&'a Path>,
    /// Whether the configuration that is read again may be put in force; without it every one is.
    pub accepts_config: Option<AcceptsConfig<'a>>,
}

/// Decides by the text of a configuration, `None` if there is no file, and by whether it changes what runs, models or
/// other users may do.
pub type AcceptsConfig<'a> = &'a (dyn Fn(Option<&str>, bool) -> bool + Sync);

impl fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("text_checker", &self.text_checker.is_some())
            .field("now", &self.now)
            .field("threads", &self.threads)
            .field("home", &self.home)
            .field("accepts_config", &self.accepts_config.is_some())
            .finish()
    }
}

/// Everything that was loaded from one workspace.
#[derive(Debug)]
pub struct Catalog {
    /// The workspace, absolute and without links.
    pub root: PathBuf,
    /// Workers that can be used, sorted by id.
    pub workers: Vec<Arc<Worker>>,
    /// Schedules that can be used, those that are switched off included, sorted by id.
    pub schedules: Vec<Arc<Schedule>>,
    /// Those of them that are as they were before an error, by id, with that error.
    pub fallback_schedules: BTreeMap<String, String>,
    /// Everything that was found, sorted by place.
    pub problems: Vec<Problem>,
    /// Workers and skills that were rejected.
    pub rejected: Vec<Rejected>,
    /// The configuration; values that were rejected have their default.
    pub config: Config,
    /// Whether it is one that could be read, now or before.
    pub config_is_known: bool,
    /// Skills that belong to no worker.
    pub root_skills: RootSkills,
    fingerprint: Fingerprint,
    home: Option<PathBuf>,
    /// By which rules of zones its moments were read.
    zones: u64,
    units: Vec<Arc<unit::Unit>>,
    /// What the schedules were made from, for workers and skills that keep their last good definition.
    drafts: Vec<Arc<schedule::Draft>>,
    /// Links in directories of workers and of their skills; `true`: everything in what one leads to belongs to a skill.
    links: Vec<(String, bool)>,
    /// Skills of workers by id and by address: the place of the worker, and that of the skill.
    names: folded::Folded<(usize, usize)>,
}

/// What changes when any definition file appears, changes or goes.
#[derive(Debug, Default, PartialEq, Eq)]
struct Fingerprint {
    files: Vec<walk::UnitFiles>,
    config: Option<open::DefinitionStamp>,
    registries: Vec<Option<open::DefinitionStamp>>,
}

impl Fingerprint {
    fn of(found: &walk::Found) -> Fingerprint {
        Fingerprint {
            files: found.units.clone(),
            config: found.config,
            registries: found.registries.clone(),
        }
    }
}

/// Reads a workspace. It never fails: what cannot be read is among the problems.
pub fn load(root: &Path, options: Options<'_>) -> Catalog {
    load::load(root, options, None)
}

/// Reads the configuration of a workspace alone, with what is wrong in it.
///
/// # Errors
/// The workspace cannot be opened.
pub fn config(root: &Path) -> std::io::Result<(Config, Vec<Problem>)> {
    Ok(config_file::read(&open::Root::open(root)?))
}

/// Reads what changed since `previous`, with the same [`TextChecker`] as then. A worker or skill that broke keeps its last good
/// definition, which a problem `kept-last-good` says; one whose file is gone goes.
pub fn reload(previous: &Catalog, options: Options<'_>) -> Catalog {
    load::load(&previous.root, options, Some(previous))
}

impl Catalog {
    /// The schedules that are fired: none while the zone of their slots is not known.
    pub fn fired(&self) -> &[Arc<Schedule>] {
        if self.config_is_known {
            &self.schedules
        } else {
            &[]
        }
    }

    /// How many skills all workers have.
    pub fn skill_count(&self) -> usize {
        self.workers.iter().map(|worker| worker.skills.len()).sum()
    }

    /// Why none of the schedules is fired, where none is.
    pub fn schedules_held(&self) -> Option<&'static str> {
        (!self.config_is_known).then_some(
            "no schedule runs until `workerctl.yaml` is fixed, because it may set their time zone",
        )
    }

    /// Which rules of zones held when it was read.
    pub fn zones(&self) -> u64 {
        self.zones
    }

    /// Whether a reload would find anything new, scripts that skills name included.
    pub fn is_stale(&self) -> bool {
        let Ok(root) = open::Root::open(&self.root) else {
            return true;
        };
        let found = walk::search(&root, &self.config);
        let depends_changed = |unit: &Arc<unit::Unit>| {
            unit.depends
                .iter()
                .any(|(path, stamp)| root.stamp(path) != *stamp)
        };
        let home = self.home.as_deref();
        Fingerprint::of(&found) != self.fingerprint
            || self.zones != zone::generation()
            || self.units.iter().any(depends_changed)
            || roots::is_stale(&root, &self.config, home, &self.root_skills)
    }

    /// Why its configuration is the former one, if the file is not accepted yet.
    pub fn config_fallback_reason(&self) -> Option<&Problem> {
        let mut problems = self.problems.iter();
        problems.find(|problem| problem.code == config_acceptance::NOT_ACCEPTED)
    }

    /// Whether anything was rejected.
    pub fn has_errors(&self) -> bool {
        self.count(Severity::Error) > 0
    }

    /// How many problems have this weight.
    pub fn count(&self, weight: Severity) -> usize {
        let problems = self.problems.iter();
        problems
            .filter(|problem| problem.severity == weight)
            .count()
    }

    /// The line that a problem is about, read again from its file.
    pub fn source_line(&self, problem: &Problem) -> Option<String> {
        let line = usize::try_from(problem.place.line).ok()?.checked_sub(1)?;
        // A key that was written where it does not belong is shown to nobody.
        let hides = |one: &Problem| {
            models::HIDDEN.contains(&&*one.code)
                && (&one.place.path, one.place.line) == (&problem.place.path, problem.place.line)
        };
        if self.problems.iter().any(hides) {
            return None;
        }
        // Skills of roots outside of the workspace have absolute paths.
        let path = Path::new(&*problem.place.path);
        let outside = path
            .is_absolute()
            .then(|| path.parent().zip(path.file_name()));
        let (root, name) = match outside.flatten() {
            Some((directory, name)) => (directory, name.to_str()?),
            None => (self.root.as_path(), &*problem.place.path),
        };
        let bytes = open::Root::open(root).ok()?.read(name).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        // Of a file that cannot be parsed nobody knows whether an address stands there.
        let text = text
            .lines()
            .nth(line)
            .filter(|text| !text.contains("webhook"))?;
        Some(text.trim_start_matches('\u{feff}').to_owned())
    }
}
