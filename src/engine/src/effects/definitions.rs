//! Paths that a result must not change: the engine's own, and, for a sandboxed run, definitions and protected files.
//!
//! A result is compared with the definitions that are saved when it is recorded, and again with those that are saved
//! before it lands, whether the engine uses them yet or not. Nothing is frozen at submission: what names a definition is one itself, so that the set changes
//! by a person's hand only, and a path that became part of it meanwhile is found before the landing.

use std::path::{Path, PathBuf};

use workerctl_trees::{PathChange, RunResult, TreeEntry};

use super::super::restricted::{Restricted, real};
use super::super::work::Work;
use super::Performer;
use super::place::tree_spec;
use crate::catalog::definition_paths::{fold_case, names_within};
use crate::git::{self, Checkout, RepoPath};
use crate::inputs::is_git_directory;
use crate::model::outcome::{Failure, Step};
use crate::model::spec::Gate;
use crate::store::lock::WORKSPACE_FOLDER;

/// Refuses a change at a path, relative to the repository, that needs approval; `shown` is its name in the message.
fn refuse(
    restricted: &Restricted,
    (path, shown): (&Path, &str),
    mode: u32,
    (step, remedy): (Step, &str),
) -> Result<(), Failure> {
    let Some(code) = restricted.code(path, mode) else {
        return Ok(());
    };
    let why = match code {
        "definitions_changed" => "defines what is run",
        _ => "controls what agents and later runs may do",
    };
    let message = format!(
        "`{shown}` {why}, so a sandboxed run cannot change it without approval: change it yourself, or set `{remedy}`"
    );
    Err(Failure::new(step, code, message))
}

/// Refuses a new submodule that the result does not define: git follows no file below it, so that later results would
/// silently lack theirs.
fn refuse_stray_link(
    change: &PathChange,
    defines_modules: bool,
    step: Step,
) -> Result<(), Failure> {
    let is_link = |entry: &Option<TreeEntry>| {
        entry
            .as_ref()
            .is_some_and(|entry| entry.mode == MODE_COMMIT)
    };
    if !is_link(&change.new) || is_link(&change.old) || defines_modules {
        return Ok(());
    }
    let path = change.path.to_string();
    let message = format!(
        "`{path}` is recorded as a submodule that `.gitmodules` does not define, so git would ignore all files below it; \
         let the run remove `{path}` from its index (`git rm --cached`), or add it with `git submodule add`"
    );
    Err(Failure::new(step, "submodule", message))
}

/// Git's mode of a submodule.
const MODE_COMMIT: u32 = 0o160_000;

/// Returns the key that lets a person approve the result of a run.
fn remedy(work: &Work) -> &'static str {
    match work.spec.plan.approval {
        Some(_) => "approval: {before: landing}",
        None => "approval_required: true",
    }
}

impl Performer {
    /// Refuses a result that changes a path of the engine; and one of a sandboxed run that changes a definition or a
    /// protected file, unless a person approves the result. A definition that says `sandbox: off` would let the next run
    /// out of the sandbox, and instructions of an agent would act with the rights of the user who starts it.
    pub(super) fn refuse_changes(
        &self,
        work: &Work,
        change: &RunResult,
        step: Step,
    ) -> Result<(), Failure> {
        let workdir = &tree_spec(work)?.workdir;
        let checkouts = git::checkouts(Path::new(workdir));
        let own = checkouts
            .iter()
            .flat_map(|checkout| self.own_names(work, &checkout.workdir));
        let own: Vec<PathBuf> = own.collect();
        let restricted = self.restricted(work, &checkouts);
        let is_modules = |change: &PathChange| change.path.as_path() == Path::new(".gitmodules");
        let defines_modules = change.changes.iter().any(is_modules);
        for change in &change.changes {
            let path = change.path.as_path();
            let mode = change.new.as_ref().map_or(0, |new| new.mode);
            let found = refuse_own(&own, path, change.new.is_some(), step);
            let found = found.and_then(|()| match &restricted {
                Some(restricted) => {
                    let shown = path.to_string_lossy();
                    refuse(restricted, (path, &shown), mode, (step, remedy(work)))
                }
                None => Ok(()),
            });
            let found = found.and_then(|()| refuse_stray_link(change, defines_modules, step));
            if found.is_err() && !is_checked_out(workdir, change) {
                return found;
            }
        }
        Ok(())
    }

    /// The same for outputs that reach the checkout without a commit: those of a run that is not mutating, and those
    /// that git ignores. What git tracks is part of the result.
    pub(super) fn refuse_outputs(
        &self,
        work: &Work,
        outputs: &[&String],
        step: Step,
    ) -> Result<(), Failure> {
        if outputs.is_empty() {
            return Ok(());
        }
        let workspace = real(&work.spec.workspace);
        let repository = match &work.spec.tree {
            Some(tree) => real(&tree.workdir),
            None => git::locate(&workspace)
                .map_or_else(|_| workspace.clone(), |found| real(&found.workdir)),
        };
        let own = self.own_names(work, &repository);
        let checkouts = git::checkouts(&repository);
        let restricted = self.restricted(work, &checkouts);
        let is_tracked = |name: &Path| {
            let path = RepoPath::from_bytes(name.as_os_str().as_encoded_bytes());
            path.is_ok_and(|path| matches!(git::head_entry(&repository, &path), Ok(Some(_))))
        };
        for output in outputs {
            for name in names_within(&repository, [workspace.join(output)]) {
                if work.spec.tree.is_some() && is_tracked(&name) {
                    continue;
                }
                refuse_own(&own, &name, true, step)?;
                if let Some(restricted) = &restricted {
                    refuse(restricted, (&name, output), 0, (step, remedy(work)))?;
                }
            }
        }
        Ok(())
    }

    /// Refuses to land a result that was recorded without these checks, or that changes what has become a definition.
    pub(super) fn refuse_recorded(&self, work: &Work) -> Result<(), Failure> {
        match work.kept_result() {
            Some(kept) => self.refuse_changes(work, &kept.change, Step::Land),
            None => Ok(()),
        }
    }

    fn restricted(&self, work: &Work, checkouts: &[Checkout]) -> Option<Restricted> {
        if work.spec.sandbox.is_none() || work.spec.plan.asks_before(Gate::Landing) {
            return None;
        }
        let catalog = self.parts.definitions.saved();
        let environment = &self.parts.environment;
        Some(Restricted::new(&catalog, environment, checkouts))
    }

    /// Where the engine itself writes in the checkout.
    pub(super) fn own_places(&self, work: &Work) -> Vec<PathBuf> {
        let workspace = Path::new(&work.spec.workspace);
        vec![
            self.parts.state_dir.clone(),
            workspace.join(".workerctl"),
            workspace.join(&work.spec.threads_dir),
            workspace.join(&self.parts.metrics_dir),
        ]
    }

    /// The same in a repository, under every name that leads to them.
    fn own_names(&self, work: &Work, repository: &Path) -> Vec<PathBuf> {
        let mut own = self.own_places(work);
        own.extend(self.parts.trees.as_ref().ok().cloned());
        names_within(repository, own)
    }
}

/// What lies in a state directory and decides what an engine does.
const IN_STATE: [&str; 7] = [
    "accepted-config",
    "held",
    "landings",
    "live",
    "scratch",
    "secrets",
    "trusted-skills",
];

/// What is in a store. Directories of applications are called `state/store` too.
const IN_STORE: [&str; 3] = ["db", "id", "witness"];

/// Returns true if a path in lower case is in a directory that another engine would use, at the default places: that of
/// another workspace of the repository, or of a clone.
fn is_of_an_engine(path: &str) -> bool {
    let names: Vec<&str> = path.split('/').collect();
    let is_own = |pair: &[&str]| match pair {
        ["state", name] => IN_STATE.contains(name),
        pair => *pair == ["workspace", "threads"],
    };
    let is_store =
        |names: &[&str]| matches!(names, ["state", "store", name] if IN_STORE.contains(name));
    names.contains(&WORKSPACE_FOLDER)
        || names.windows(2).any(is_own)
        || names.windows(3).any(is_store)
}

/// Refuses a path of an engine, such as a journal of a landing: landed in a checkout, it would be taken for the engine's
/// own and make it act outside the sandbox. So would one that a file system takes for `.git`.
fn refuse_own(own: &[PathBuf], path: &Path, is_there: bool, step: Step) -> Result<(), Failure> {
    let text = path.to_string_lossy();
    let refused = |why: &str| {
        let message = format!("`{}` {why}", path.display());
        Err(Failure::new(step, "protected_path", message))
    };
    if is_there && text.split('/').any(is_git_directory) {
        return refused(
            "has a name that some file systems take for `.git`; let the run use another name",
        );
    }
    let folded = fold_case(path);
    // A file or link in the place of a directory on the way leads the engine elsewhere.
    if own
        .iter()
        .any(|own| folded.starts_with(own) || own.starts_with(&folded))
        || is_of_an_engine(&folded.to_string_lossy())
    {
        return refused(
            "is in a directory of an engine (state, threads, metrics or worktrees), which no run changes; \
             let the run leave it out of its commits",
        );
    }
    Ok(())
}

/// Returns true if the commit that is checked out has the same at a path: a merge may bring it, and it changes nothing.
fn is_checked_out(workdir: &str, change: &PathChange) -> bool {
    let entry = git::head_entry(Path::new(workdir), &change.path).ok();
    let new = change.new.as_ref();
    entry.is_some_and(|entry| entry == new.map(|new| (new.oid.clone(), new.mode)))
}
