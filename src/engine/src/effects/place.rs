//! Where a command of a run starts, and what the placeholder in its specification stands for.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::super::outputs::{OutputError, SandboxedDir};
use super::super::work::Work;
use super::Performer;
use crate::machine::Action;
use crate::model::outcome::{Failure, Step};
use crate::model::spec::{TreeSpec, outputs_placeholder, tree_placeholder};
use crate::model::{RunId, RunSpec};

/// The root that stands for the repository's work tree in one action of a run.
pub(super) struct Place {
    placeholder: String,
    /// The work tree as people see it, and what takes its place; none for runs without a tree.
    pub(super) mapped: Option<(PathBuf, PathBuf)>,
    /// What stands for the place of outputs, and that place.
    outputs: Option<(String, PathBuf)>,
}

impl Place {
    /// The checkout itself.
    pub(super) fn checkout(spec: &RunSpec) -> Place {
        Place::at(spec, None)
    }

    fn at(spec: &RunSpec, tree: Option<&Path>) -> Place {
        let mapped = spec.tree.as_ref().map(|found| {
            let workdir = PathBuf::from(&found.workdir);
            let root = tree.map_or_else(|| workdir.clone(), Path::to_owned);
            (workdir, root)
        });
        Place {
            placeholder: tree_placeholder(spec.run),
            mapped,
            outputs: None,
        }
    }

    /// The tree of its own that it works in.
    pub(super) fn tree(&self) -> Option<&Path> {
        let (workdir, root) = self.mapped.as_ref()?;
        (workdir != root).then_some(root.as_path())
    }

    /// A text with the real path in it.
    pub(super) fn fill<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if let Some((placeholder, place)) = &self.outputs
            && text.contains(placeholder)
        {
            return Cow::Owned(text.replace(placeholder, &place.to_string_lossy()));
        }
        match &self.mapped {
            Some((_, root)) if text.contains(&self.placeholder) => {
                Cow::Owned(text.replace(&self.placeholder, &root.to_string_lossy()))
            }
            _ => Cow::Borrowed(text),
        }
    }

    /// The same for each of several.
    pub(super) fn fill_all(&self, texts: &[String]) -> Vec<String> {
        let filled = texts.iter().map(|text| self.fill(text).into_owned());
        filled.collect()
    }

    /// Where a path of the checkout lies here.
    pub(super) fn of(&self, path: &str) -> PathBuf {
        let path = Path::new(path);
        let inside = self.mapped.as_ref().and_then(|(workdir, root)| {
            let rest = path.strip_prefix(workdir).ok()?;
            Some(root.join(rest))
        });
        inside.unwrap_or_else(|| path.to_owned())
    }
}

impl Performer {
    /// Where an action of a run works: its tree, once it has one.
    pub(super) fn place(&self, work: &Work) -> Result<Place, Failure> {
        let in_checkout = matches!(
            work.action,
            Action::Validate | Action::RunPostCommitHook { .. }
        );
        if work.spec.tree.is_none() || in_checkout {
            let run = work.spec.run;
            let staged = work.spec.stages_outputs();
            return Ok(Place {
                outputs: staged.then(|| (outputs_placeholder(run), self.staged_place(run))),
                ..Place::checkout(&work.spec)
            });
        }
        let tree = self.tree(work)?;
        let root = super::lock(&tree).path().to_owned();
        Ok(Place::at(&work.spec, Some(&root)))
    }

    /// The workspace of a run, below which its outputs lie.
    pub(super) fn workspace_of(&self, work: &Work) -> Result<PathBuf, Failure> {
        Ok(self.place(work)?.of(&work.spec.workspace))
    }

    pub(super) fn sandboxed_dir(&self, work: &Work) -> Result<SandboxedDir, Failure> {
        let workspace = self.outputs_root(work)?;
        let refused = |error: OutputError| {
            super::failure(crate::model::outcome::Step::Verify, "output_path", &error)
        };
        SandboxedDir::open(&workspace).map_err(refused)
    }
}

/// The destination that standard output becomes.
pub(super) fn stdout_path(spec: &RunSpec) -> Option<&String> {
    spec.outputs.get(spec.stdout_to?)?.path.as_ref()
}

/// The name under which a destination is written before it is whole.
pub(super) fn temporary_beside(path: &str, run: RunId) -> String {
    match path.rsplit_once('/') {
        Some((directory, name)) => format!("{directory}/.{name}.{}.part", run.short()),
        None => format!(".{path}.{}.part", run.short()),
    }
}

/// Of a run of this version.
pub(super) fn tree_spec(work: &Work) -> Result<&TreeSpec, Failure> {
    work.spec.tree.as_ref().ok_or_else(|| {
        let message = "it was accepted by an older version; start it again: `workerctl retry`";
        Failure::new(Step::Prepare, "older_version", message)
    })
}
