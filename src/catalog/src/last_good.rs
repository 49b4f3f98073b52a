//! What stays as it was last when a file breaks: the workers, and the configuration.

use std::collections::HashMap;
use std::sync::Arc;

use super::source::{REPAIR, directory_of, whole_file};
use super::unit::Unit;
use super::{Catalog, roots};
use crate::model::config::CONFIG_FILE;
use crate::model::{Access, Config, Problem, Severity, Worker};

/// Workers as they were last.
pub(super) struct LastGood<'p> {
    by_directory: HashMap<&'p str, Vec<&'p Arc<Worker>>>,
}

impl<'p> LastGood<'p> {
    pub(super) fn of(previous: Option<&'p Catalog>) -> LastGood<'p> {
        let mut by_directory: HashMap<&str, Vec<&Arc<Worker>>> = HashMap::new();
        for worker in previous.map_or(&[][..], |previous| &previous.workers) {
            let directory = directory_of(&worker.place.path);
            by_directory.entry(directory).or_default().push(worker);
        }
        LastGood { by_directory }
    }

    fn in_directory(&self, unit: &Unit) -> impl Iterator<Item = &'p Arc<Worker>> + use<'p> {
        let found = self.by_directory.get(unit.files.directory.as_str());
        found.cloned().unwrap_or_default().into_iter()
    }

    /// The worker that a unit was: an instance by its id, any other by its directory.
    pub(super) fn of_unit(&self, unit: &Unit) -> Option<&'p Arc<Worker>> {
        self.in_directory(unit).find(|worker| match &unit.instance {
            Some(instance) => worker.instance_of.is_some() && worker.id == instance.id,
            None => worker.instance_of.is_none(),
        })
    }

    /// What was made from a worker whose id can no longer be read.
    pub(super) fn instances_of_broken(
        &self,
        unit: &Unit,
        config: &Config,
    ) -> impl Iterator<Item = &'p Arc<Worker>> {
        let unknown = unit.template.is_none() && unit.instance.is_none();
        let listed = |worker: &&Arc<Worker>| {
            let template = worker.instance_of.as_ref();
            let made = template.and_then(|id| config.instances.get(id));
            made.into_iter().flatten().any(|one| one.id == worker.id)
        };
        self.in_directory(unit)
            .filter(move |_| unknown)
            .filter(listed)
    }
}

/// A configuration that broke stays as it was: other zones and bounds than those that hold must not come into
/// force by a slip. False: it broke, and no good one is known.
pub(super) fn last_good_config(
    read: Config,
    problems: &mut Vec<Problem>,
    previous: Option<&Catalog>,
) -> (Config, bool) {
    let error = |problem: &Problem| problem.severity == Severity::Error;
    let Some(first) = problems.iter().find(|one| error(one)) else {
        return (read, true);
    };
    let line = first.place.line;
    let known = previous.filter(|previous| previous.config_is_known);
    if known.is_some() {
        let message = "the last good configuration stays in force";
        problems.push(of_config("kept-last-good", message));
    }
    known.map_or_else(
        || {
            // What it was to leave untrusted is not known, so nothing of the kind is trusted.
            let mut read = read;
            read.skills.trust_none(line);
            // Nor who may look, and who may only look: the engine hears its own user and root.
            read.access = Access::default();
            (read, false)
        },
        |known| (known.config.clone(), true),
    )
}

/// What does not happen while no good configuration is known.
pub(super) fn config_unknown(has_schedules: bool, known: &roots::RootSkills) -> Vec<Problem> {
    let fired = "no schedule runs until the file is fixed, because it may set their time zone";
    let roots = known.roots.iter().filter(|root| !root.trusted);
    let labels: Vec<String> = roots.map(|root| format!("`{}`", root.label)).collect();
    let trusted = format!(
        "skills of {} are not trusted until the file is fixed, because it sets which skill directories are trusted",
        labels.join(", ")
    );
    [
        has_schedules.then_some(fired),
        (!labels.is_empty()).then_some(trusted.as_str()),
    ]
    .into_iter()
    .flatten()
    .map(|message| of_config("config-unknown", message))
    .collect()
}

fn of_config(code: &str, message: &str) -> Problem {
    Problem {
        code: code.to_owned(),
        severity: Severity::Warning,
        place: whole_file(CONFIG_FILE),
        message: message.to_owned(),
        hint: Some(REPAIR.to_owned()),
        worker: None,
        skill: None,
    }
}
