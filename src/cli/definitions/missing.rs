//! Programs, branches and paths that definitions name and that do not exist here.

use std::path::Path;

use crate::model::Skill;
use crate::model::definition::{HookText, RunText};
use crate::model::schedule::{Schedule, Trigger};

/// A program of a skill that does not exist.
#[derive(Debug)]
pub(super) struct MissingProgram<'s> {
    pub(super) program: &'s str,
    pub(super) hint: String,
}

/// Returns the program that a skill starts first, if it does not exist.
pub(super) fn program<'s>(skill: &'s Skill, root: &Path) -> Option<MissingProgram<'s>> {
    let program = match &skill.run {
        RunText::Argv(argv) => argv.first()?.as_str(),
        RunText::Script { interpreter, .. } => interpreter.first()?.as_str(),
        RunText::Shell(text) if text.contains('/') => text.trim(),
        RunText::Shell(_) | RunText::Instructions => return None,
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./+".contains(c);
    if !program.chars().all(is_plain) {
        return None;
    }
    if program.contains('/') {
        // Another branch may have files that the checkout lacks.
        let is_elsewhere = skill.mutating && skill.branch.is_some() && !program.starts_with('/');
        let hint = "create the file, or correct the path, which is relative to `cwd` of the skill";
        let is_missing = !is_elsewhere && !root.join(&skill.cwd).join(program).exists();
        return is_missing.then(|| MissingProgram {
            program,
            hint: hint.to_owned(),
        });
    }
    let directories = std::env::var_os("PATH")?;
    let is_found = std::env::split_paths(&directories).any(|path| path.join(program).is_file());
    let is_known = is_found || skill.variables.contains_key("PATH");
    (!is_known).then(|| MissingProgram {
        program,
        hint: format!("install `{program}`, or correct its name: no directory of `PATH` has it"),
    })
}

/// Returns the files of hooks of a skill, such as `./tell`, that do not exist. Hooks run in `cwd` of the skill.
pub(super) fn hooks<'s>(skill: &'s Skill, root: &Path) -> impl Iterator<Item = &'s HookText> {
    let directory = root.join(&skill.cwd);
    let is_checked = skill.mutating && skill.branch.is_none();
    let hooks = skill.hooks.iter().chain(&skill.post_commit);
    hooks.filter(move |hook| {
        let program = program_of(hook);
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
        is_checked
            && program.starts_with("./")
            && program.chars().all(is_plain)
            && !directory.join(program).exists()
    })
}

/// Returns the first word of a hook's command.
pub(super) fn program_of(hook: &HookText) -> &str {
    hook.command.split_whitespace().next().unwrap_or_default()
}

/// Returns code, message and hint for a branch or a path that a schedule waits for and that does not exist.
pub(super) fn awaited(
    schedule: &Schedule,
    root: &Path,
    branches: Option<&[String]>,
) -> Option<(&'static str, String, String)> {
    match &*schedule.trigger {
        Trigger::OnCommit { branch } => {
            let branches = branches.filter(|branches| !branches.contains(branch))?;
            let message = format!(
                "the schedule `{}` waits for commits of the branch `{branch}`, which does not exist",
                schedule.id
            );
            let local = branch.split_once('/').map(|(_, local)| local);
            let local = local.filter(|local| branches.iter().any(|known| known == local));
            let hint = local.map_or_else(
                || "create the branch, or correct its name".to_owned(),
                |local| format!("write `on_commit: {local}`: only local branches are watched"),
            );
            Some(("schedule-branch-missing", message, hint))
        }
        Trigger::Watch { paths, .. } => {
            let path = paths.iter().find(|path| {
                let parts = path.split('/');
                let fixed: Vec<_> = parts
                    .take_while(|part| !part.contains(['*', '?', '[']))
                    .collect();
                !root.join(fixed.join("/")).exists()
            })?;
            let message = format!(
                "the schedule `{}` watches `{path}`, which does not exist",
                schedule.id
            );
            let hint = "create it, or correct the path, which is relative to the workspace";
            Some(("schedule-path-missing", message, hint.to_owned()))
        }
        _ => None,
    }
}
