//! Definitions without an engine that runs: the one place of the command line that names the catalog.
//!
//! They are loaded as the engine loads them, its check of shell texts included.

mod missing;
mod readiness;
mod skill;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::catalog::roots::trust::Trust;
use crate::catalog::{self, Catalog, schema};
use crate::engine::definitions as loading;
use crate::model::config::CONFIG_FILE;
use crate::model::worker_paths::WORKERS_DIR;
use crate::model::{Config, Diagnostic, Kind, Problem, Severity};
use crate::protocol::WorkerView;
pub(crate) use readiness::{keeps_from_running, worker_file_below};
pub(crate) use skill::{Form, FoundSkill, write};

/// Everything that a workspace defines.
pub(crate) struct Definitions {
    catalog: Catalog,
}

/// How many problems of each weight there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Weights {
    /// Errors.
    pub(crate) errors: usize,
    /// Warnings.
    pub(crate) warnings: usize,
    /// Notes.
    pub(crate) notes: usize,
}

impl Weights {
    /// Counts.
    pub(crate) fn of<'a>(problems: impl IntoIterator<Item = &'a Problem>) -> Weights {
        let mut weights = Weights::default();
        for problem in problems {
            match problem.severity {
                Severity::Error => weights.errors += 1,
                Severity::Warning => weights.warnings += 1,
                Severity::Note => weights.notes += 1,
            }
        }
        weights
    }
}

impl Definitions {
    /// Reads a workspace. What cannot be read is among the problems.
    pub(crate) fn load(workspace: &Path) -> Definitions {
        Definitions {
            catalog: loading::load_workspace(workspace),
        }
    }

    /// As [`Definitions::load`], with the skills of the home directory of `environment`.
    pub(crate) fn load_with_home(
        workspace: &Path,
        environment: &BTreeMap<String, String>,
    ) -> Definitions {
        Definitions {
            catalog: loading::load(workspace, environment),
        }
    }

    /// As [`Definitions::load`], and every shell text is read by the shell that would run it, and what skills need of
    /// the repository and of tools is looked for.
    pub(crate) fn load_thoroughly(
        workspace: &Path,
        environment: &BTreeMap<String, String>,
    ) -> Definitions {
        let mut catalog = loading::load_thoroughly(workspace, environment);
        let found = readiness::problems(&catalog, environment);
        catalog.problems.extend(found);
        readiness::raise_scheduled(&mut catalog);
        catalog
            .problems
            .sort_by(|one, other| one.place.cmp(&other.place));
        Definitions { catalog }
    }

    /// Problems of valid definitions that keep skills from running here.
    pub(crate) fn unready(&self) -> impl Iterator<Item = &Problem> {
        let problems = self.catalog.problems.iter();
        problems.filter(|problem| readiness::is_about_readiness(problem))
    }

    /// All problems, sorted by place.
    pub(crate) fn problems(&self) -> &[Problem] {
        &self.catalog.problems
    }

    /// The line that a problem stands on.
    pub(crate) fn source_line(&self, problem: &Problem) -> Option<String> {
        self.catalog.source_line(problem)
    }

    /// Workers as they are listed.
    pub(crate) fn workers(&self) -> Vec<WorkerView> {
        self.catalog
            .workers
            .iter()
            .map(|worker| WorkerView::of(worker, &self.catalog.problems))
            .collect()
    }

    /// Ids of schedules.
    pub(crate) fn schedule_ids(&self) -> Vec<String> {
        let schedules = self.catalog.schedules.iter();
        schedules.map(|one| one.id.to_string()).collect()
    }

    /// Why skills are not trusted that may be; `None`: the configuration says which are.
    pub(crate) fn why_untrusted(&self) -> Option<String> {
        let line = self.catalog.config.skills.error_line?;
        Trust::Unknown { line }.reason().map(Cow::into_owned)
    }

    /// Fails where the configuration is broken: what it says of places is not known then.
    pub(crate) fn expect_known_config(&self) -> Result<(), Diagnostic> {
        if self.catalog.config_is_known {
            return Ok(());
        }
        let message =
            format!("`{CONFIG_FILE}` has an error, so the configured paths are not known");
        Err(Diagnostic::new(Kind::Definition, "config_unknown", message)
            .hint("`workerctl check` shows what is wrong with it"))
    }

    /// Where a new worker of this id is put, relative to the workspace.
    pub(crate) fn new_worker(&self, id: &str) -> Result<PathBuf, Diagnostic> {
        let directory = self.catalog.config.workers.of_new_workers();
        let directory = directory.ok_or_else(|| {
            let message =
                "`workers.paths` has only patterns, so the directory for new workers is not known";
            Diagnostic::new(Kind::Definition, "no_directory_of_workers", message).hint(format!(
                "add a path without `*` to `workers.paths` in `{CONFIG_FILE}`, such as `workers`"
            ))
        })?;
        Ok(Path::new(directory).join(id).join("worker.yaml"))
    }

    /// Zones that schedules and displayed times are in.
    pub(crate) fn zones(&self) -> BTreeSet<String> {
        let schedules = self.catalog.schedules.iter();
        let mut zones: BTreeSet<String> = schedules.map(|one| one.timezone.to_string()).collect();
        zones.insert(self.catalog.config.timezone.clone());
        zones
    }

    /// Agent programs that skills need, by the name that is looked up on the path.
    pub(crate) fn agent_programs(&self) -> BTreeSet<String> {
        let workers = self.catalog.workers.iter();
        let skills = workers.flat_map(|worker| &worker.skills);
        let programs = skills.filter_map(|skill| skill.agent.program.as_ref());
        let looked_up = programs.filter(|program| program.binary == program.cli);
        looked_up.map(|program| program.cli.clone()).collect()
    }

    /// The configuration, every default filled in.
    pub(crate) fn config(&self) -> &Config {
        &self.catalog.config
    }
}

/// Where a workspace has new workers, which may have no configuration yet.
pub(crate) fn directory_of_new_workers(workspace: &Path) -> String {
    let config = catalog::config(workspace).map(|(config, _)| config);
    let workers = config.unwrap_or_default().workers;
    workers.of_new_workers().unwrap_or(WORKERS_DIR).to_owned()
}

/// The path of a place that is written `path`, `path:line` or `path:line:column`.
pub(crate) fn path_of(place: &str) -> &str {
    let mut path = place;
    for _ in 0..2 {
        match path.rsplit_once(':') {
            Some((before, number))
                if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) =>
            {
                path = before;
            }
            _ => break,
        }
    }
    path
}

/// What people write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Written {
    /// `worker.yaml`
    Worker,
    /// The frontmatter of `skills/*.md`
    Skill,
    /// `workerctl.yaml`
    Config,
}

/// The JSON Schema of definition files.
pub(crate) fn json_schema(of: Written) -> serde_json::Value {
    match of {
        Written::Worker => schema::worker(),
        Written::Skill => schema::skill(),
        Written::Config => schema::config(),
    }
}
