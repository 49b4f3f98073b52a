//! The file of a worker's skill, where it has one of its own, and what lies beside it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::beside::Surrounding;
use super::files::{self, FileError, FileList};
use super::scan::{Form, SKILL_FILE};
use super::{RootSkill, SkillRoot};
use crate::dialect::toolset::{ListedFile, loadable};
use crate::executor::Named;
use crate::model::{Dialect, Scope, Skill, diagnostic};
use crate::open::Root;
use crate::report::Report;
use crate::skill_file::{self, stem_of};
use crate::source::{Source, whole_file};

/// A skill of a worker that stands in a file of its own.
#[derive(Debug)]
pub struct WorkerPage<'s> {
    workspace: &'s Path,
    skill: &'s Skill,
    /// Its file, relative to the workspace.
    path: &'s str,
}

/// What such a file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageText {
    /// The whole file.
    pub whole: String,
    /// What follows its frontmatter.
    pub body: String,
}

impl<'s> WorkerPage<'s> {
    /// The page of a skill; `None`: it stands in worker.yaml alone.
    pub fn of(workspace: &'s Path, skill: &'s Skill) -> Option<WorkerPage<'s>> {
        Some(WorkerPage {
            workspace,
            skill,
            path: skill.file.as_deref()?,
        })
    }

    /// Its file, absolute.
    pub fn path(&self) -> PathBuf {
        self.workspace.join(self.path)
    }

    /// Reads it anew.
    pub fn read(&self) -> Result<PageText, String> {
        let root = Root::open(self.workspace).map_err(|error| error.to_string())?;
        let bytes = root
            .read(self.path)
            .map_err(|refusal| diagnostic::chain(&refusal))?;
        let whole =
            String::from_utf8(bytes).map_err(|_| format!("`{}` is not UTF-8", self.path))?;
        // What stands against it was reported when the definitions were read.
        let source = Source::new(self.path, whole.clone());
        let body = skill_file::read(source, &mut Report::default()).map(|file| file.body);
        Ok(PageText {
            body: body.unwrap_or_else(|| whole.clone()),
            whole,
        })
    }

    /// The files that may be loaded: those that the skill lists, else all that lie beside it.
    pub fn files(&self) -> Result<FileList, FileError> {
        files::list_of(&self.as_of_root()?, self.listed().as_deref())
    }

    /// What stands in its directory.
    pub fn beside(&self) -> Surrounding {
        let skill = self.as_of_root();
        skill.map_or_else(
            |_| Surrounding::default(),
            |skill| Surrounding::of(&skill, false),
        )
    }

    /// Reads one of them, of at most 1 MiB.
    pub fn file(&self, path: &str) -> Result<Vec<u8>, FileError> {
        files::read_of(&self.as_of_root()?, self.listed().as_deref(), path)
    }

    /// The files that the skill lists; an item that may not be loaded is left out.
    fn listed(&self) -> Option<Vec<ListedFile>> {
        let listed = self
            .skill
            .kept
            .get("files")
            .filter(|list| !list.is_null())?;
        let file = |item: &Value| {
            let path = item.get("path")?.as_str()?.to_owned();
            loadable(&path).ok()?;
            Some(ListedFile {
                path,
                description: item.get("description")?.as_str()?.to_owned(),
                place: self.skill.place.clone(),
            })
        };
        let items = listed.as_array().map(Vec::as_slice).unwrap_or_default();
        Some(items.iter().filter_map(file).collect())
    }

    /// The skill as one of a root, whose rules hold for the files beside it.
    fn as_of_root(&self) -> Result<RootSkill, FileError> {
        let refused = |why: String| FileError::Refused(why);
        let root = Root::open(self.workspace).map_err(FileError::Directory)?;
        let (directory, name) = self.path.rsplit_once('/').unwrap_or(("", self.path));
        let directory = root
            .resolve(directory)
            .map_err(|refusal| refused(diagnostic::chain(&refusal)))?;
        let inner = directory.join(name);
        let inner = inner
            .to_str()
            .ok_or_else(|| refused("its path is not UTF-8".to_owned()))?;
        let form = if name.eq_ignore_ascii_case(SKILL_FILE) {
            Form::Directory
        } else {
            Form::Page
        };
        Ok(RootSkill {
            named: Named::default(),
            lack: None,
            name: self.skill.address.to_string(),
            description: self.skill.description.clone(),
            root: Arc::new(SkillRoot {
                label: self.skill.address.worker.clone(),
                directory: root.path().to_owned(),
                shown: self.path.to_owned(),
                scope: Scope::Workspace,
                dialect: Dialect::Agent,
                trusted: true,
                error_line: None,
            }),
            place: whole_file(self.path),
            form,
            model_invocable: true,
            user_invocable: true,
            mutating: self.skill.mutating,
            approval_required: self.skill.approval.is_some(),
            valid: true,
            shadowed_by: None,
            reads_as_qualified: false,
            base: root.path().to_owned(),
            inner: inner.to_owned(),
            stem: stem_of(self.path).to_owned(),
        })
    }
}

/// Names of the tool sets that a worker's skill declares.
pub fn toolsets(skill: &Skill) -> Vec<String> {
    let declared = skill.kept.get("toolsets").and_then(Value::as_array);
    let names = declared.into_iter().flatten().filter_map(Value::as_str);
    names.map(str::to_owned).collect()
}
