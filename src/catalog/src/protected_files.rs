//! `protected_files` of workerctl.yaml, and skills that could never write their outputs because of it.

use std::path::Path;
use std::sync::Arc;

use super::report::Report;
use super::tree::Data;
use super::view::View;
use crate::model::config::CONFIG_FILE;
use crate::model::protected_files::{ProtectedFiles, pattern_problem};
use crate::model::skill_roots::WORKSPACE_SKILLS;
use crate::model::spec::Gate;
use crate::model::{Config, Problem, Severity, Skill, Worker};

/// Patterns of one configuration.
const PATTERNS_MAX: usize = 256;

/// Reads the patterns; `None` when an error was reported.
pub(crate) fn read(view: View<'_>, report: &mut Report) -> Option<ProtectedFiles> {
    let before = report.errors();
    if !matches!(view.data(), Data::List(_)) {
        view.wrong_type("protected_files", "a list such as `['!CLAUDE.md']`", report);
    } else if view.items().count() > PATTERNS_MAX {
        let message = format!("`protected_files` has more than {PATTERNS_MAX} patterns");
        report.error(
            "too-many",
            view.place(),
            message,
            "name directories instead",
        );
    }
    let mut patterns = Vec::new();
    for item in view.items().take(PATTERNS_MAX) {
        let Some(text) = item.filled_text("protected_files", report) else {
            continue;
        };
        match pattern_problem(&text) {
            None => patterns.push(text),
            Some(why) => {
                let message = format!("the pattern `{}` {why}", text.escape_debug());
                let hint = "write a path relative to the repository, such as `AGENTS.md`, `/ci/` or `!docs/CLAUDE.md`";
                report.error("protected-pattern", item.place(), message, hint);
            }
        }
    }
    (report.errors() == before).then(|| ProtectedFiles::new(patterns))
}

/// Returns a warning for each output that the skill can never write, because its destination is protected and nobody
/// approves the result.
pub(crate) fn unwritable(config: &Config, workers: &[Arc<Worker>]) -> Vec<Problem> {
    let matcher = config.protected_files.matcher();
    let is_refused = |path: &str| {
        let path = path.trim_end_matches('/');
        let path = path.strip_prefix("./").unwrap_or(path);
        matcher.protect(path)
            || config.workers.define(Path::new(path))
            || [CONFIG_FILE, WORKSPACE_SKILLS]
                .iter()
                .any(|name| Path::new(path).starts_with(name))
    };
    let is_checked = |skill: &&Arc<Skill>| {
        let is_approved = skill
            .approval
            .is_some_and(|approval| approval.before == Gate::Landing);
        skill.sandbox.is_some() && !is_approved
    };
    let workers = workers.iter().filter(|worker| !worker.template);
    let skills = workers.flat_map(|worker| &worker.skills).filter(is_checked);
    let mut problems = Vec::new();
    for skill in skills {
        for output in &skill.outputs {
            let Some(destination) = &output.destination else {
                continue;
            };
            if is_refused(fixed_part(destination)) {
                let place = output.place.as_ref().unwrap_or(&skill.place);
                problems.push(problem(skill, destination, place.clone()));
            }
        }
    }
    problems
}

/// A destination up to the directory in which its first placeholder stands.
fn fixed_part(destination: &str) -> &str {
    let Some(placeholder) = destination.find('{') else {
        return destination;
    };
    let before = &destination[..placeholder];
    before.rfind('/').map_or("", |slash| &before[..slash])
}

fn problem(skill: &Skill, destination: &str, place: crate::model::Place) -> Problem {
    let how = if skill.mutating {
        "add `approval_required: true`, so that a person approves each result"
    } else {
        "make the skill `mutating` with `approval_required: true`, so that a person approves each result"
    };
    Problem {
        code: "destination-protected".to_owned(),
        severity: Severity::Warning,
        place,
        message: format!(
            "every run fails: `{destination}` controls what agents or later runs may do, so runs in the sandbox cannot change it"
        ),
        hint: Some(format!(
            "{how}; or write `protected_files: ['!{destination}']` in workerctl.yaml, unless it is a definition"
        )),
        worker: Some(skill.address.worker.clone()),
        skill: Some(skill.address.skill.clone()),
    }
}
