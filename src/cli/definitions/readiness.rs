//! Skills that cannot run here, or not as they say, although their definitions are valid: their branch, remote, directory
//! or tools are missing, or a part of the definition has no effect. `check` and `doctor` report them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::missing;
use crate::catalog::definition_paths::without_links;
use crate::catalog::{Catalog, NO_EXECUTOR};
use crate::cli::repository;
use crate::engine::{check_tools, grant_through_link};
use crate::model::config::CONFIG_FILE;
use crate::model::tool_names::similar_tool;
use crate::model::{Diagnostic, Place, Problem, Severity, Skill};

/// Directories below a workspace in which worker files are searched, and entries that are looked at.
const DEPTH_MAX: usize = 5;
const ENTRIES_MAX: usize = 5_000;

/// Directories without workers of the workspace.
const SKIPPED: [&str; 4] = ["node_modules", "target", "vendor", "state"];

/// Code of a tool set that the configuration does not have: the catalog reports it.
const TOOLSET_UNKNOWN: &str = "toolset-unknown";

/// Code of a skill whose program does not exist.
const PROGRAM_MISSING: &str = "program-missing";

/// Codes of problems that keep skills from running.
const CODES: [&str; 26] = [
    NO_EXECUTOR,
    TOOLSET_UNKNOWN,
    "branch-missing",
    "remote-missing",
    "cwd-link",
    "cwd-missing",
    PROGRAM_MISSING,
    "file-missing",
    "script-not-executable",
    "skill-file-missing",
    "tool-missing",
    "workers-elsewhere",
    // What these do is not what they say.
    "approval-unasked",
    "cron-days-either",
    "cron-step-long",
    "destination-missing",
    "env-not-expanded",
    "quotes-curly",
    "retry-not-applied",
    "run-folded",
    "schedule-branch-missing",
    "shell-bashism",
    "test-unclosed",
    "shell-variable",
    "worker-file-unread",
    "worker-without-skills",
];

/// Returns true if a problem concerns what skills need in order to run.
pub(super) fn is_about_readiness(problem: &Problem) -> bool {
    CODES.contains(&&*problem.code)
}

/// Returns true if a valid definition cannot be used because of this problem. Instructions without a model are for
/// people and MCP clients, unless a schedule runs them.
pub(crate) fn keeps_from_running(problem: &Problem) -> bool {
    problem.severity == Severity::Warning && is_about_readiness(problem)
}

/// Raises the severity of missing models for skills with schedules: all their runs would fail.
pub(super) fn raise_scheduled(catalog: &mut Catalog) {
    let Catalog {
        problems,
        schedules,
        ..
    } = catalog;
    let missing = problems
        .iter_mut()
        .filter(|problem| problem.code == NO_EXECUTOR);
    for problem in missing {
        let is_scheduled = schedules.iter().any(|schedule| {
            Some(&schedule.skill.worker) == problem.worker.as_ref()
                && Some(&schedule.skill.skill) == problem.skill.as_ref()
        });
        if is_scheduled {
            problem.severity = Severity::Warning;
        }
    }
}

/// Branches and remotes of a repository; `None`: there is none.
type Repositories = BTreeMap<PathBuf, Option<repository::Names>>;

/// Returns a warning for each skill that would be refused, and an error for each with a grant through a link.
pub(super) fn problems(catalog: &Catalog, environment: &BTreeMap<String, String>) -> Vec<Problem> {
    let mut repositories = Repositories::new();
    let mut found = Vec::new();
    for skill in catalog.workers.iter().flat_map(|worker| &worker.skills) {
        let mut add = |code: &str, key: &str, message: String, hint: String| {
            let usual = if code == PROGRAM_MISSING {
                &skill.run_place
            } else {
                &skill.place
            };
            let place = skill.places.get(key).unwrap_or(usual);
            found.push(Problem {
                worker: Some(skill.address.worker.clone()),
                skill: Some(skill.address.skill.clone()),
                ..warning(code, place.clone(), message, hint)
            });
        };
        let cwd = catalog.root.join(&skill.cwd);
        cwd_problem(catalog, skill, &mut add);
        if !cwd.is_dir() {
            continue;
        }
        if let Some(missing::MissingProgram { program, hint }) =
            missing::program(skill, &catalog.root)
        {
            let message = format!(
                "`{}` cannot run: there is no program `{program}`",
                skill.address
            );
            add(PROGRAM_MISSING, "program", message, hint);
        }
        if skill.mutating {
            let names = repositories
                .entry(cwd)
                .or_insert_with_key(|cwd| repository::names(cwd));
            if let Some(names) = names {
                repository_problems(skill, names, &mut add);
            }
        }
        if !lacks_toolset(catalog, skill)
            && let Err(Diagnostic { message, .. }) = check_tools(skill, &catalog.config)
        {
            let is_named = |key: &&String| {
                let name = key.strip_prefix("required_tools/");
                name.is_some_and(|name| message.contains(&format!("'{name}'")))
            };
            let key = skill.places.keys().find(is_named);
            let key = key.map_or("required_tools", String::as_str);
            // The refusal of a run has the words of a contract.
            let tool = message.split('\'').nth(1).unwrap_or_default();
            let message = format!("`{}` cannot run: `{tool}` is not available", skill.address);
            let meant = similar_tool(tool).filter(|meant| !meant.eq_ignore_ascii_case(tool));
            let hint = meant.map_or_else(
                || format!("no tool set has it: add one to `toolsets` of {CONFIG_FILE} that has it, or remove it from `required_tools`"),
                |meant| format!("did you mean `{meant}`?"),
            );
            add("tool-missing", key, message, hint);
        }
    }
    found.extend(grants(catalog, environment));
    found.extend(hooks(catalog));
    found.extend(awaited(catalog));
    found.extend(workers_elsewhere(catalog));
    found
}

/// Returns an error for each skill with a grant that passes a symbolic link which a run can replace.
fn grants(catalog: &Catalog, environment: &BTreeMap<String, String>) -> Vec<Problem> {
    let skills = catalog.workers.iter().flat_map(|worker| &worker.skills);
    let found = skills.filter_map(|skill| {
        let sandbox = skill.sandbox.as_ref()?;
        let message = grant_through_link(catalog, environment, sandbox)?;
        let place = skill.places.get("sandbox").unwrap_or(&skill.place).clone();
        let hint = "grant the path that the link leads to, or replace the link by a directory";
        Some(Problem {
            severity: Severity::Error,
            worker: Some(skill.address.worker.clone()),
            skill: Some(skill.address.skill.clone()),
            ..warning("sandbox-grant", place, message, hint.to_owned())
        })
    });
    found.collect()
}

/// Returns a warning for each hook whose file does not exist; skills run without it.
fn hooks(catalog: &Catalog) -> Vec<Problem> {
    let mut found: Vec<Problem> = Vec::new();
    let config = &catalog.config;
    for skill in catalog.workers.iter().flat_map(|worker| &worker.skills) {
        for hook in missing::hooks(skill, &catalog.root) {
            let program = missing::program_of(hook);
            let is_shared =
                config.post_tools_hooks.contains(hook) || config.post_commit_hooks.contains(hook);
            let of_config = Place {
                path: Arc::from(CONFIG_FILE),
                line: 0,
                column: 0,
            };
            let place = skill.places.get("hooks").filter(|_| !is_shared);
            let message = format!("`{program}` does not exist: skills run, and this hook fails");
            let hint = "create it, or correct the path, which is relative to `cwd` of the skill";
            let problem = warning(
                "command-file-missing",
                place.cloned().unwrap_or(of_config),
                message,
                hint.to_owned(),
            );
            if !found.contains(&problem) {
                found.push(problem);
            }
        }
    }
    found
}

/// Returns a warning for each schedule that waits for a branch or a path that does not exist.
fn awaited(catalog: &Catalog) -> Vec<Problem> {
    let names = repository::names(&catalog.root);
    let branches = names.as_ref().map(|names| names.branches.as_slice());
    let enabled = catalog
        .schedules
        .iter()
        .filter(|schedule| !schedule.disabled);
    let found = enabled.filter_map(|schedule| {
        let (code, message, hint) = missing::awaited(schedule, &catalog.root, branches)?;
        Some(Problem {
            worker: Some(schedule.skill.worker.clone()),
            skill: Some(schedule.skill.skill.clone()),
            ..warning(code, schedule.place.clone(), message, hint)
        })
    });
    found.collect()
}

/// Returns true if the catalog reports that a tool set of the skill is not configured.
fn lacks_toolset(catalog: &Catalog, skill: &Skill) -> bool {
    catalog.problems.iter().any(|problem| {
        problem.code == TOOLSET_UNKNOWN
            && problem.worker.as_ref() == Some(&skill.address.worker)
            && problem.skill.as_ref() == Some(&skill.address.skill)
    })
}

fn cwd_problem(catalog: &Catalog, skill: &Skill, add: &mut impl FnMut(&str, &str, String, String)) {
    let path = catalog.root.join(&skill.cwd);
    let (address, cwd) = (&skill.address, &skill.cwd);
    if !path.is_dir() {
        let message =
            format!("`{address}` cannot run: there is no directory `{cwd}`, which `cwd` names");
        let hint = "create the directory, or change `cwd`".to_owned();
        add("cwd-missing", "cwd", message, hint);
        return;
    }
    let (_, links) = without_links(&path);
    if let Some(link) = links.iter().find(|link| link.starts_with(&catalog.root)) {
        let message = format!(
            "`{address}` cannot run: `cwd: {cwd}` passes the symbolic link `{}`, which a run can replace",
            link.display()
        );
        let hint = "name the path that the link leads to, or replace the link by a directory";
        add("cwd-link", "cwd", message, hint.to_owned());
    }
}

fn repository_problems(
    skill: &Skill,
    names: &repository::Names,
    add: &mut impl FnMut(&str, &str, String, String),
) {
    let listed = |names: &[String]| match names {
        [] => "; the repository has no remotes".to_owned(),
        [name] => format!("; there is `{name}`"),
        names => format!("; there are `{}`", names.join("`, `")),
    };
    if let Some(branch) = skill.branch.as_ref().filter(|branch| !branch.create)
        && !names.branches.contains(&branch.name)
    {
        let name = &branch.name;
        let message = format!(
            "`{}` cannot run: there is no branch `{name}`",
            skill.address
        );
        let hint = format!(
            "`git branch {name}` creates it, `branch: {{name: {name}, create: true}}` lets the first run do so"
        );
        add("branch-missing", "branch", message, hint);
    }
    if let Some(remote) = skill
        .push
        .as_ref()
        .filter(|remote| !names.remotes.contains(remote))
    {
        let message = format!(
            "`{}` cannot run: there is no remote `{remote}`, which `push` names",
            skill.address
        );
        let hint = format!(
            "`git remote add {remote} URL` adds it{}",
            listed(&names.remotes)
        );
        add("remote-missing", "push", message, hint);
    }
}

/// Returns a warning if no worker is found where the configuration says, and there are worker files elsewhere.
fn workers_elsewhere(catalog: &Catalog) -> Option<Problem> {
    let is_empty = catalog.workers.is_empty() && catalog.rejected.is_empty();
    let file = is_empty
        .then(|| worker_file_below(&catalog.root))
        .flatten()?;
    let directory = file.ancestors().nth(2).unwrap_or(Path::new(""));
    let searched = catalog.config.workers.patterns().join("`, `");
    let message = format!(
        "no worker was found in `{searched}`, and there is `{}`",
        file.display()
    );
    let hint = format!(
        "write `workers: {{paths: [{}]}}` into {CONFIG_FILE}",
        directory.display()
    );
    let place = Place {
        path: Arc::from(CONFIG_FILE),
        line: 0,
        column: 0,
    };
    Some(warning("workers-elsewhere", place, message, hint))
}

fn warning(code: &str, place: Place, message: String, hint: String) -> Problem {
    Problem {
        code: code.to_owned(),
        severity: Severity::Warning,
        place,
        message,
        hint: Some(hint),
        worker: None,
        skill: None,
    }
}

/// Returns the path, relative to a directory, of the first file that defines a worker, nearest first.
pub(crate) fn worker_file_below(root: &Path) -> Option<PathBuf> {
    let mut level = vec![PathBuf::new()];
    let mut looked_at = 0;
    for _ in 0..=DEPTH_MAX {
        let mut below = Vec::new();
        for directory in &level {
            let Ok(entries) = std::fs::read_dir(root.join(directory)) else {
                continue;
            };
            let mut entries: Vec<_> = entries.flatten().collect();
            entries.sort_by_key(std::fs::DirEntry::file_name);
            for entry in entries {
                looked_at += 1;
                let name = entry.file_name().to_string_lossy().into_owned();
                let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
                if matches!(name.as_str(), "worker.yaml" | "worker.yml") && !is_directory {
                    return Some(directory.join(name));
                }
                let is_skipped = name.starts_with('.') || SKIPPED.contains(&name.as_str());
                if is_directory && !is_skipped {
                    below.push(directory.join(name));
                }
            }
            if looked_at > ENTRIES_MAX {
                return None;
            }
        }
        level = below;
    }
    None
}
