//! Everything that stands against one skill, links in its body included; and skills that are in no root.

use std::path::Path;
use std::sync::Arc;

use super::order::SkillRoot;
use super::scan::{Candidate, Form, SKILL_FILE};
use super::{RootSkill, links};
use crate::model::{Dialect, Place, Problem, Scope, Severity};
use crate::open::Root;

/// What stands against a skill; with `portable`, also what the Agent Skills specification does not have.
pub fn validate(skill: &RootSkill, portable: bool) -> Vec<Problem> {
    let read = if portable {
        skill.load_portable()
    } else {
        skill.load()
    };
    let loaded = match read {
        Ok(loaded) => loaded,
        Err(problems) => return problems,
    };
    let mut problems = loaded.problems;
    problems.extend(
        links::bad(skill, &loaded.text, &loaded.body)
            .into_iter()
            .map(|link| {
                let (code, message, hint) = if link.leaves {
                    (
                        "link-leaves-skill",
                        format!(
                            "`{}` leads out of the skill: a copy of the skill lacks it",
                            link.target
                        ),
                        "copy the file into the skill",
                    )
                } else {
                    (
                        "link-leads-nowhere",
                        format!("`{}` does not exist in the skill", link.target),
                        "create the file or correct the link",
                    )
                };
                Problem {
                    code: code.to_owned(),
                    severity: Severity::Warning,
                    place: Place {
                        path: skill.place.path.clone(),
                        line: link.line,
                        column: 0,
                    },
                    message,
                    hint: Some(hint.to_owned()),
                    worker: None,
                    skill: Some(skill.name.clone()),
                }
            }),
    );
    problems.sort_by(|a, b| a.place.cmp(&b.place).then_with(|| a.code.cmp(&b.code)));
    problems
}

/// The skill at a path, whether a root has it or not: a directory with `SKILL.md`, or a file. `Err`: what
/// stands against it; `None`: nothing there has the form of a skill.
pub fn at_path(path: &Path, dialect: Dialect) -> Option<Result<Arc<RootSkill>, Vec<Problem>>> {
    let (skill, problems) = super::assemble::read_alone(&candidate_at(path, dialect)?);
    Some(skill.ok_or(problems))
}

/// The file at a path that has the form of a skill.
fn candidate_at(path: &Path, dialect: Dialect) -> Option<Candidate> {
    let path = path.canonicalize().ok()?;
    let name = path.file_name()?.to_str()?;
    let is_skill_file = name.eq_ignore_ascii_case(SKILL_FILE);
    let (base, inner, stem, form) = if path.is_dir() {
        let inner = format!("{name}/{SKILL_FILE}");
        std::fs::symlink_metadata(path.join(SKILL_FILE)).ok()?;
        (path.parent()?, inner, name, Form::Directory)
    } else if is_skill_file {
        let directory = path.parent()?;
        let stem = directory.file_name()?.to_str()?;
        (
            directory.parent()?,
            format!("{stem}/{name}"),
            stem,
            Form::Directory,
        )
    } else {
        let (stem, ending) = name.rsplit_once('.')?;
        let form = match ending {
            "md" => Form::Page,
            "yaml" | "yml" => Form::Yaml,
            _ => return None,
        };
        (path.parent()?, name.to_owned(), stem, form)
    };
    let directory = base.to_string_lossy().into_owned();
    Some(Candidate {
        root: Arc::new(SkillRoot {
            label: directory.clone(),
            directory: base.to_owned(),
            shown: directory.clone(),
            scope: Scope::Extra,
            // A file of its own is a skill of a workspace, and nowhere else.
            dialect: if form == Form::Directory {
                dialect
            } else {
                Dialect::Workspace
            },
            trusted: true,
            error_line: None,
        }),
        base: Arc::new(Root::open(base).ok()?),
        shown: format!("{}/{inner}", directory.trim_end_matches('/')),
        inner,
        stem: stem.to_owned(),
        form,
        stamp: None,
    })
}
