//! Definitions in a result: a sandboxed run does not change what runs next.

use std::path::Path;

use workerctl_trees::{PathChange, RunResult};

use super::super::work::Work;
use super::Performer;
use super::place::tree_spec;
use crate::catalog::worker_directories;
use crate::git;
use crate::model::config::CONFIG_FILE;
use crate::model::outcome::{Failure, Step};
use crate::model::spec::Gate;

/// Definitions of a workspace beside its workers.
const DEFINITIONS: [&str; 2] = ["workspace/skills", CONFIG_FILE];

/// Git's mode of a symbolic link.
const MODE_LINK: u32 = 0o120_000;

impl Performer {
    /// Refuses a result of a sandboxed run that changes a definition, unless a person approves the result: a definition
    /// that says `sandbox: off` would let the next run out of the sandbox.
    pub(super) fn refuse_definitions(
        &self,
        work: &Work,
        change: &RunResult,
    ) -> Result<(), Failure> {
        if work.spec.sandbox.is_none() || work.spec.plan.asks_before(Gate::Landing) {
            return Ok(());
        }
        let spec = tree_spec(work)?;
        let root = Path::new(&work.spec.workspace).strip_prefix(&spec.workdir);
        let root = root.unwrap_or(Path::new(""));
        let config = &self.parts.definitions.current().config;
        let linked = worker_directories(&self.parts.workspace, config);
        let is_definition = |change: &&PathChange| {
            let path = change.path.to_string();
            let Ok(path) = Path::new(&path).strip_prefix(root) else {
                return false;
            };
            // A new link on the way to workers makes definitions of what it leads to.
            let is_link = change.new.as_ref().is_some_and(|new| new.mode == MODE_LINK);
            DEFINITIONS.iter().any(|name| path.starts_with(name))
                || config.workers.define(path)
                || linked.iter().any(|directory| path.starts_with(directory))
                || is_link && config.workers.meet(path)
        };
        // A merge may bring what is committed in the checkout: it changes nothing of what runs.
        let is_known = |change: &PathChange| {
            let entry = git::head_entry(Path::new(&spec.workdir), &change.path).ok();
            let new = change.new.as_ref();
            entry.is_some_and(|entry| entry == new.map(|new| (new.oid.clone(), new.mode)))
        };
        let mut definitions = change.changes.iter().filter(is_definition);
        match definitions.find(|change| !is_known(change)) {
            None => Ok(()),
            Some(PathChange { path, .. }) => {
                let message = format!(
                    "`{path}` says what is run, and a run in the sandbox does not change that unseen; `approval_required: true` has a person look first, `sandbox: off` lets it"
                );
                Err(Failure::new(Step::Record, "definitions_changed", message))
            }
        }
    }
}
