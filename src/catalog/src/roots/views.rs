//! Skills of every source as the protocol shows them.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use super::RootSkill;
use super::files::{self, FileError, FileList};
use super::loaded::LoadedSkill;
use super::trust::{Trust, TrustFiles};
use super::worker_page::WorkerPage;
use crate::executor::NO_EXECUTOR;
use crate::model::definition::Unavailable;
use crate::model::spec::Gate;
use crate::model::{Problem, Skill};
use crate::protocol::{
    ListedSkill, OmittedFile, RootView, ShownSkill, SkillFileView, SkillList, SkillView, WorkerView,
};
use crate::{Catalog, Conditions};

/// All skills: those of `workers`, which may be an engine's, then those of roots.
pub fn list(workers: &[WorkerView], catalog: &Catalog, trust: &TrustFiles) -> SkillList {
    let known = &catalog.root_skills;
    let by_place = by_place(catalog);
    let told = |path: &str| -> Vec<Problem> {
        let own = by_place.get(path).into_iter().flatten();
        own.map(|problem| Problem::clone(problem)).collect()
    };
    let of_workers = workers.iter().flat_map(|worker| {
        worker
            .skills
            .iter()
            .map(|skill| of_worker(skill.clone(), &worker.problems))
    });
    let of_roots = known
        .skills
        .iter()
        .map(|skill| listed(skill, trust, told(&skill.place.path)));
    SkillList {
        skills: of_workers.chain(of_roots).collect(),
        omitted: known
            .refused
            .iter()
            .map(|one| OmittedFile {
                name: one.stem.clone(),
                defined_at: one.place.to_string(),
                source: one.root.label.clone(),
                problems: told(&one.place.path),
            })
            .collect(),
        roots: roots(catalog),
    }
}

fn roots(catalog: &Catalog) -> Vec<RootView> {
    let alone = problems_of_roots(catalog);
    let known = &catalog.root_skills;
    known
        .roots
        .iter()
        .map(|root| RootView {
            label: root.label.clone(),
            path: root.directory.to_string_lossy().into_owned(),
            scope: root.scope.name().to_owned(),
            dialect: root.dialect.name().to_owned(),
            trusted: root.trusted,
            problems: alone
                .iter()
                .filter(|problem| {
                    let holding = known
                        .roots
                        .iter()
                        .filter(|one| one.holds(&problem.place.path));
                    // Of roots within each other the inner one.
                    let inner = holding.max_by_key(|one| one.shown.len());
                    inner.is_some_and(|inner| Arc::ptr_eq(inner, root))
                })
                .map(|problem| Problem::clone(problem))
                .collect(),
        })
        .collect()
}

/// What is wrong with roots and with what lies in them, and belongs to no file that is known as a skill or was left out as
/// one: directories that cannot be read, links that lead out.
pub fn problems_of_roots(catalog: &Catalog) -> Vec<&Problem> {
    let known = &catalog.root_skills;
    let skills = known.skills.iter().map(|skill| &*skill.place.path);
    let refused = known.refused.iter().map(|one| &*one.place.path);
    let files: HashSet<&str> = skills.chain(refused).collect();
    let all = catalog.problems.iter().chain(&known.problems_outside);
    all.filter(|problem| {
        let path = &*problem.place.path;
        !files.contains(path) && known.roots.iter().any(|root| root.holds(path))
    })
    .collect()
}

fn by_place(catalog: &Catalog) -> HashMap<&str, Vec<&Problem>> {
    let mut by_place: HashMap<&str, Vec<&Problem>> = HashMap::new();
    let all = catalog.problems.iter();
    for problem in all.chain(&catalog.root_skills.problems_outside) {
        let own = by_place.entry(&*problem.place.path).or_default();
        own.push(problem);
    }
    by_place
}

/// A skill of a worker, with those of the worker's problems that belong to it.
pub fn of_worker(skill: SkillView, problems: &[Problem]) -> ListedSkill {
    let id = skill.address.rsplit('/').next().unwrap_or_default();
    ListedSkill {
        source: "worker".to_owned(),
        dialect: "worker".to_owned(),
        trust: Trust::Root.name().to_owned(),
        qualified: skill.address.clone(),
        shadowed_by: None,
        problems: problems
            .iter()
            .filter(|problem| problem.skill.as_deref() == Some(id))
            .cloned()
            .collect(),
        skill,
    }
}

/// A skill of a root, with the problems of its file.
pub fn of_root(skill: &RootSkill, catalog: &Catalog, trust: &TrustFiles) -> ListedSkill {
    let all = catalog.problems.iter();
    let all = all.chain(&catalog.root_skills.problems_outside);
    let own = all.filter(|problem| problem.place.path == skill.place.path);
    listed(skill, trust, own.cloned().collect())
}

fn listed(skill: &RootSkill, trust: &TrustFiles, problems: Vec<Problem>) -> ListedSkill {
    let trust = trust.state(skill);
    let before = if skill.mutating {
        Gate::Landing
    } else {
        Gate::Execution
    };
    ListedSkill {
        skill: SkillView {
            address: skill.address(),
            name: skill.name.clone(),
            description: skill.description.clone(),
            mutating: skill.mutating,
            idempotent: false,
            repeatable: true,
            defined_at: skill.place.to_string(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            checks: 0,
            sandbox: String::new(),
            approval: skill.approval_required.then_some(before),
            takes_message: false,
            unavailable: unavailable(skill, trust),
        },
        source: skill.root.label.clone(),
        dialect: skill.root.dialect.name().to_owned(),
        trust: trust.name().to_owned(),
        qualified: skill.qualified(),
        shadowed_by: skill.shadowed_by.as_ref().map(ToString::to_string),
        problems,
    }
}

/// Why a skill of a root may not run.
fn unavailable(skill: &RootSkill, trust: Trust) -> Vec<Unavailable> {
    let invalid = (!skill.valid).then(|| {
        (
            "skill-invalid",
            "its definition violates the rules of its skill directory".into(),
        )
    });
    let untrusted = match trust {
        Trust::Root | Trust::Content => None,
        Trust::Missing => Some((
            "untrusted",
            "its skill directory is not trusted, and neither is the skill".into(),
        )),
        Trust::Unknown { .. } => trust.reason().map(|why| ("untrusted", why)),
        Trust::Changed => Some(("untrusted", "it has changed since it was trusted".into())),
    };
    let no_model = skill.lack().map(|reason| (NO_EXECUTOR, Cow::from(reason)));
    [invalid, untrusted, no_model]
        .into_iter()
        .flatten()
        .map(|(code, reason)| Unavailable {
            code: code.to_owned(),
            reason: reason.into_owned(),
        })
        .collect()
}

/// Files beside a skill, and whether there are more; or what stands in the way, as one of them.
fn shown_files(found: Result<FileList, FileError>) -> (Vec<SkillFileView>, bool) {
    match found {
        Ok(list) => (views(&list), list.cut),
        Err(error) => {
            let failed = SkillFileView {
                path: ".".to_owned(),
                bytes: None,
                description: None,
                refused: Some(error.to_string()),
            };
            (vec![failed], false)
        }
    }
}

/// A skill of a root in full.
pub fn show(skill: &RootSkill, loaded: &LoadedSkill, trust: &TrustFiles) -> ShownSkill {
    let (files, files_cut) = shown_files(files::list(skill, &loaded.keys));
    let keys = &loaded.keys;
    ShownSkill {
        listed: listed(skill, trust, loaded.problems.clone()),
        directory: skill.directory().to_string_lossy().into_owned(),
        model: keys.model.clone(),
        required_tools: keys.required_tools.clone(),
        allowed_tools: keys.allowed_tools.clone(),
        toolsets: keys.toolsets.clone(),
        max_iterations: Some(keys.max_iterations),
        input_schema: keys.input_schema.clone(),
        model_invocable: keys.model_invocable,
        user_invocable: keys.user_invocable,
        files,
        files_cut,
        instructions: Some(loaded.body.clone()),
        keys: keys.written.clone(),
    }
}

/// Files beside a skill as they are shown.
pub(super) fn views(list: &FileList) -> Vec<SkillFileView> {
    list.files
        .iter()
        .map(|file| SkillFileView {
            path: file.path.clone(),
            bytes: file.bytes,
            description: file.description.clone(),
            refused: file.refused.clone(),
        })
        .collect()
}

/// A skill of a worker of this workspace in full.
pub fn show_of_worker(workspace: &Path, skill: &Skill, problems: &[Problem]) -> ShownSkill {
    let page = WorkerPage::of(workspace, skill);
    let (files, files_cut) =
        shown_files(page.map_or_else(|| Ok(FileList::default()), |page| page.files()));
    let own: Vec<Problem> = problems
        .iter()
        .filter(|problem| problem.worker.as_ref() == Some(&skill.address.worker))
        .cloned()
        .collect();
    let conditions = Conditions::of(skill);
    ShownSkill {
        listed: of_worker(SkillView::from(skill), &own),
        directory: skill.directory.clone(),
        model: skill.agent.model.clone(),
        required_tools: conditions.required_tools,
        allowed_tools: conditions.allowed_tools,
        toolsets: conditions.toolsets,
        max_iterations: skill.agent.max_iterations,
        input_schema: skill.kept.get("input_schema").cloned(),
        model_invocable: conditions.model_invocable,
        user_invocable: conditions.user_invocable,
        files,
        files_cut,
        instructions: skill.instructions.clone(),
        keys: skill.kept.clone(),
    }
}
