//! One skill by its name or its path: shown, checked, converted, trusted.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::catalog::dialect::convert::{self, ConvertError, Converted};
use crate::catalog::roots::files::{self, FileError};
use crate::catalog::roots::loaded::LoadedSkill;
use crate::catalog::roots::trust::{TrustError, TrustFiles};
use crate::catalog::roots::worker_page::WorkerPage;
use crate::catalog::roots::{self};
use crate::catalog::{Lookup, RootSkill};
use crate::model::diagnostic::chain;
use crate::model::{Diagnostic, Dialect, Kind, Problem, Skill};
use crate::protocol::{ShownSkill, SkillList, WorkerView};

use super::Definitions;

/// A skill that was found.
pub(crate) enum FoundSkill {
    /// Of a worker, with its workspace.
    OfWorker(Arc<Skill>, Workspace),
    /// Of a root, or of a path.
    OfRoot(Arc<RootSkill>),
    /// Nothing that can be used, for these reasons.
    Rejected(Vec<Problem>),
}

/// What is known of the workspace that a skill of a worker belongs to.
pub(crate) struct Workspace {
    root: PathBuf,
    /// Of all definitions.
    problems: Vec<Problem>,
}

/// How a skill can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Form {
    /// `<name>/SKILL.md` for agent programs
    Agent,
    /// `<name>/SKILL.md` with nothing but the keys of the Agent Skills specification
    Portable,
    /// `<name>/SKILL.md` under the rules of Wave
    Wave,
    /// `<name>/SKILL.md` of a workspace
    Workspace,
    /// `<name>.md` of a workspace
    WorkspacePage,
    /// `<name>.yaml` of a workspace
    WorkspaceYaml,
}

impl From<Form> for convert::Target {
    fn from(form: Form) -> convert::Target {
        match form {
            Form::Agent => convert::Target::Agent,
            Form::Portable => convert::Target::Portable,
            Form::Wave => convert::Target::Wave,
            Form::Workspace => convert::Target::Workspace,
            Form::WorkspacePage => convert::Target::WorkspacePage,
            Form::WorkspaceYaml => convert::Target::WorkspaceYaml,
        }
    }
}

/// A skill in another form, with the files that go along.
pub(crate) struct Rewritten {
    /// Its file.
    pub(crate) converted: Converted,
    /// Files beside it, relative to its directory, with what they hold.
    pub(crate) files: Vec<(String, Vec<u8>)>,
}

impl Definitions {
    /// All skills; those of workers as `workers` has them.
    pub(crate) fn skills(&self, workers: &[WorkerView], state_dir: &Path) -> SkillList {
        roots::list(workers, &self.catalog, &TrustFiles::of(state_dir))
    }

    /// Every skill of every root.
    pub(crate) fn root_skills(&self) -> Vec<FoundSkill> {
        let known = &self.catalog.root_skills;
        let found = known.skills.iter().cloned().map(FoundSkill::OfRoot);
        let refused = known.refused.iter().map(|one| {
            let problems = self.catalog.problems.iter().chain(&known.problems_outside);
            let own = problems.filter(|problem| problem.place.path == one.place.path);
            FoundSkill::Rejected(own.cloned().collect())
        });
        found.chain(refused).collect()
    }

    /// What is wrong with roots and belongs to no skill.
    pub(crate) fn problems_of_roots(&self) -> Vec<Problem> {
        let problems = roots::problems_of_roots(&self.catalog);
        problems.into_iter().cloned().collect()
    }

    /// Finds a skill by its name, its qualified name, or the path of its file or directory.
    pub(crate) fn skill(&self, name: &str, cwd: &Path) -> Result<FoundSkill, Diagnostic> {
        match self.catalog.find(name) {
            Lookup::Found(_, skill) => {
                let workspace = Workspace {
                    root: self.catalog.root.clone(),
                    problems: self.catalog.problems.clone(),
                };
                Ok(FoundSkill::OfWorker(skill, workspace))
            }
            Lookup::OfRoot(skill) => Ok(FoundSkill::OfRoot(skill)),
            Lookup::Rejected(_, problems) | Lookup::Refused(_, problems) => {
                Ok(FoundSkill::Rejected(problems))
            }
            Lookup::Ambiguous(names) => Err(Diagnostic::new(
                Kind::NotFound,
                "skill_ambiguous",
                format!("several workers have a skill `{name}`"),
            )
            .hint(format!("write one of: {}", names.join(", ")))),
            Lookup::Unknown(near) => self.at_path(name, cwd).ok_or_else(|| {
                let refused = Diagnostic::new(
                    Kind::NotFound,
                    "skill_not_found",
                    format!("no skill `{name}`"),
                );
                match near.first() {
                    Some(first) => refused.hint(format!("did you mean `{first}`?")),
                    None => refused.hint("`workerctl skills` lists them"),
                }
            }),
        }
    }

    fn at_path(&self, name: &str, cwd: &Path) -> Option<FoundSkill> {
        let path = cwd.join(name);
        let real = path.canonicalize().ok()?;
        let known = self.catalog.root_skills.skills.iter();
        let of_root = known
            .filter(|skill| skill.form == roots::Form::Directory)
            .find(|skill| {
                skill.directory() == real || Some(skill.directory().as_path()) == real.parent()
            });
        if let Some(skill) = of_root {
            return Some(FoundSkill::OfRoot(Arc::clone(skill)));
        }
        Some(match roots::at_path(&path, Dialect::Agent)? {
            Ok(skill) => FoundSkill::OfRoot(skill),
            Err(problems) => FoundSkill::Rejected(problems),
        })
    }
}

impl FoundSkill {
    /// The skill in full.
    pub(crate) fn show(&self, state_dir: &Path) -> Result<ShownSkill, Diagnostic> {
        match self {
            FoundSkill::OfWorker(skill, workspace) => {
                let Workspace { root, problems } = workspace;
                Ok(roots::show_of_worker(root, skill, problems))
            }
            FoundSkill::OfRoot(skill) => {
                let loaded = load(skill)?;
                Ok(roots::show(skill, &loaded, &TrustFiles::of(state_dir)))
            }
            FoundSkill::Rejected(problems) => Err(rejected(problems)),
        }
    }

    /// What stands against it.
    pub(crate) fn problems(&self, portable: bool) -> Vec<Problem> {
        match self {
            FoundSkill::OfWorker(skill, workspace) => {
                let own = |problem: &&Problem| {
                    problem.worker.as_ref() == Some(&skill.address.worker)
                        && problem.skill.as_ref() == Some(&skill.address.skill)
                };
                workspace.problems.iter().filter(own).cloned().collect()
            }
            FoundSkill::OfRoot(skill) => roots::validate(skill, portable),
            FoundSkill::Rejected(problems) => problems.clone(),
        }
    }

    /// What one file beside it holds.
    pub(crate) fn file(&self, path: &str) -> Result<Vec<u8>, Diagnostic> {
        let (name, read) = match self {
            FoundSkill::OfWorker(skill, workspace) => {
                let page = WorkerPage::of(&workspace.root, skill);
                let read = page.map_or(Err(FileError::NoDirectory), |page| page.file(path));
                (skill.address.to_string(), read)
            }
            FoundSkill::OfRoot(_) | FoundSkill::Rejected(_) => {
                let skill = self.of_root()?;
                let loaded = load(skill)?;
                (skill.name.clone(), files::read(skill, &loaded.keys, path))
            }
        };
        read.map_err(|error| {
            let kind = match error {
                FileError::Path { .. } => Kind::Usage,
                _ => Kind::NotFound,
            };
            Diagnostic::new(kind, "skill_file", chain(&error))
                .hint(format!("`workerctl skill files {name}` lists them"))
        })
    }

    /// The skill in another form.
    pub(crate) fn convert(&self, form: Form) -> Result<Rewritten, Diagnostic> {
        let skill = self.of_root()?;
        let loaded = load(skill)?;
        let refused = |error: ConvertError| {
            Diagnostic::new(Kind::Definition, "not_convertible", error.to_string())
        };
        let target = convert::Target::from(form);
        let converted = convert::convert(&loaded.keys, &loaded.body, target).map_err(refused)?;
        let found = files::found(skill).map_err(|error| unreadable(&error))?;
        if found.cut {
            let message = format!("more than {} files are next to it", files::ENTRIES_MAX);
            return Err(Diagnostic::new(
                Kind::Definition,
                "not_convertible",
                message,
            ));
        }
        if !target.is_directory() && !found.files.is_empty() {
            let message = "the skill has additional files, which a single-file form cannot contain";
            return Err(
                Diagnostic::new(Kind::Definition, "not_convertible", message)
                    .hint("choose a form that is a directory"),
            );
        }
        let mut files = Vec::with_capacity(found.files.len());
        let directory = files::directory(skill).map_err(|error| unreadable(&error))?;
        for file in found.files {
            let bytes = directory
                .read(&file.path)
                .map_err(|error| unreadable(&error))?;
            files.push((file.path, bytes));
        }
        Ok(Rewritten { converted, files })
    }

    /// Trusts what it holds now; gives the digest.
    pub(crate) fn trust(&self, state_dir: &Path) -> Result<String, Diagnostic> {
        let given = TrustFiles::of(state_dir).give(self.of_untrusted_root()?);
        given.map_err(|error| untrusted(&error))
    }

    /// Takes trust back; whether there was any.
    pub(crate) fn distrust(&self, state_dir: &Path) -> Result<bool, Diagnostic> {
        let taken = TrustFiles::of(state_dir).take(self.of_untrusted_root()?);
        taken.map_err(|error| untrusted(&error))
    }

    fn of_untrusted_root(&self) -> Result<&Arc<RootSkill>, Diagnostic> {
        let skill = self.of_root()?;
        if skill.root.trusted {
            let message = format!(
                "`{}` is already trusted, because its whole root `{}` is trusted",
                skill.name, skill.root.label
            );
            return Err(Diagnostic::new(Kind::Conflict, "root_trusted", message).hint(
                "to require trust for each skill of a root, set `skills.untrusted` in workerctl.yaml",
            ));
        }
        Ok(skill)
    }

    fn of_root(&self) -> Result<&Arc<RootSkill>, Diagnostic> {
        match self {
            FoundSkill::OfRoot(skill) => Ok(skill),
            FoundSkill::OfWorker(skill, _) => {
                let message = format!("`{}` belongs to a worker", skill.address);
                Err(Diagnostic::new(Kind::Usage, "skill_of_worker", message)
                    .hint("`workerctl worker show` shows it with its worker"))
            }
            FoundSkill::Rejected(problems) => Err(rejected(problems)),
        }
    }
}

fn load(skill: &RootSkill) -> Result<LoadedSkill, Diagnostic> {
    skill.load().map_err(|problems| rejected(&problems))
}

fn rejected(problems: &[Problem]) -> Diagnostic {
    let first = problems.first().map_or_else(String::new, |problem| {
        format!(": {}: {}", problem.place, problem.message)
    });
    let mut refused = Diagnostic::new(
        Kind::Definition,
        "definition",
        format!("the skill is invalid{first}"),
    )
    .hint("`workerctl skill validate` shows every problem with its line");
    refused.details = problems
        .iter()
        .map(|problem| format!("{}: {}", problem.place, problem.message))
        .collect();
    refused
}

fn unreadable(error: &FileError) -> Diagnostic {
    Diagnostic::new(Kind::Definition, "skill_file", chain(error))
}

fn untrusted(error: &TrustError) -> Diagnostic {
    let kind = match error {
        TrustError::State { .. } => Kind::Internal,
        _ => Kind::Definition,
    };
    Diagnostic::new(kind, "not_trusted", chain(error))
}

/// Writes a skill with its files below a directory; nothing that is there is replaced.
pub(crate) fn write(rewritten: &Rewritten, below: &Path) -> Result<Vec<PathBuf>, Diagnostic> {
    let file = below.join(&rewritten.converted.path);
    let goal = match rewritten.converted.path.split_once('/') {
        Some((directory, _)) => below.join(directory),
        None => file.clone(),
    };
    if std::fs::symlink_metadata(&goal).is_ok() {
        let message = format!("`{}` exists", goal.display());
        return Err(Diagnostic::new(Kind::Conflict, "exists", message)
            .hint("nothing is replaced: name another directory with `--output`"));
    }
    let mut written = Vec::new();
    let own = std::iter::once((file, rewritten.converted.text.as_bytes()));
    let others = rewritten
        .files
        .iter()
        .map(|(path, bytes)| (goal.join(path), bytes.as_slice()));
    for (path, bytes) in own.chain(others) {
        let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        made.and_then(|()| std::fs::write(&path, bytes))
            .map_err(|error| {
                let message = format!("`{}` cannot be written: {error}", path.display());
                Diagnostic::new(Kind::Internal, "not_written", message)
            })?;
        written.push(path);
    }
    Ok(written)
}
