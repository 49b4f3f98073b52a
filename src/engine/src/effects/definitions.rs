//! Paths that a result must not change: the engine's own, and, for a sandboxed run, definitions.

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
        let mut definitions = change.changes.iter().filter(is_definition);
        match definitions.find(|change| !is_checked_out(&spec.workdir, change)) {
            None => Ok(()),
            Some(PathChange { path, .. }) => {
                let message = format!(
                    "`{path}` defines what is run, and a run in the sandbox does not change that unseen; a person can make the change, or have such results wait for approval"
                );
                Err(Failure::new(Step::Record, "definitions_changed", message))
            }
        }
    }

    /// Refuses a result with a path of the engine itself, such as a journal of a landing: landed in the checkout, it
    /// would be taken for the engine's own and make it act outside the sandbox. Names that differ in case only are
    /// refused too, because they are one file where the file system ignores case.
    pub(super) fn refuse_protected(
        &self,
        work: &Work,
        change: &RunResult,
        step: Step,
    ) -> Result<(), Failure> {
        let workdir = &tree_spec(work)?.workdir;
        let mut own = self.own_places(work);
        own.extend(self.parts.trees.as_ref().ok().cloned());
        let own = own.iter().filter_map(|path| {
            let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
            let inside = path.strip_prefix(workdir).ok()?;
            Some(inside.to_string_lossy().to_lowercase())
        });
        let own: Vec<String> = own.collect();
        let is_own = |change: &&PathChange| {
            let path = change.path.to_string().to_lowercase();
            // A file or link in the place of a directory on the way leads the engine elsewhere.
            let meets = |own: &String| is_within(&path, own) || is_within(own, &path);
            own.iter().any(meets)
        };
        let mut changes = change.changes.iter().filter(is_own);
        match changes.find(|change| !is_checked_out(workdir, change)) {
            None => Ok(()),
            Some(PathChange { path, .. }) => {
                let message = format!(
                    "`{path}` lies in a directory of the engine (state, threads, metrics or worktrees), which no run changes; \
                     let the run leave it out of its commits"
                );
                Err(Failure::new(step, "protected_path", message))
            }
        }
    }

    /// Refuses to land such a result that an earlier version recorded without this check.
    pub(super) fn refuse_recorded(&self, work: &Work) -> Result<(), Failure> {
        match work.kept_result() {
            Some(kept) => self.refuse_protected(work, &kept.change, Step::Land),
            None => Ok(()),
        }
    }
}

/// Returns true if the commit that is checked out has the same at a path: a merge may bring it, and it changes nothing.
fn is_checked_out(workdir: &str, change: &PathChange) -> bool {
    let entry = git::head_entry(Path::new(workdir), &change.path).ok();
    let new = change.new.as_ref();
    entry.is_some_and(|entry| entry == new.map(|new| (new.oid.clone(), new.mode)))
}

fn is_within(path: &str, directory: &str) -> bool {
    let rest = path.strip_prefix(directory);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
