//! Whether a configuration that is read again is put in force.
//!
//! A model or a run that can write to the workspace could otherwise widen its own rights by editing `workerctl.yaml`.

use super::last_good::last_good_config;
use super::open::Root;
use super::source::whole_file;
use super::{Catalog, Options, config_file};
use crate::model::config::CONFIG_FILE;
use crate::model::{Config, Problem, Severity};

/// Code of the problem that says that the former configuration stays in force.
pub(crate) const NOT_ACCEPTED: &str = "config-not-accepted";

/// Whether two configurations have the same in one setting.
type Same = fn(&Config, &Config) -> bool;

/// Settings that say what runs, models and other users may do, and whether both configurations have the same.
const RIGHTS: [(&str, Same); 20] = [
    ("access", |one, other| one.access == other.access),
    ("agent", |one, other| one.program == other.program),
    ("approval", |one, other| one.approval == other.approval),
    ("branch", |one, other| one.branch == other.branch),
    ("budget", |one, other| {
        one.budget == other.budget && one.per_day == other.per_day
    }),
    ("hooks", |one, other| {
        one.post_tools_hooks == other.post_tools_hooks
            && one.post_commit_hooks == other.post_commit_hooks
    }),
    ("instances", |one, other| one.instances == other.instances),
    ("limits", |one, other| one.limits == other.limits),
    ("mcp", |one, other| {
        let (one, other) = (&one.mcp, &other.mcp);
        one.mutating == other.mutating && one.tools == other.tools && one.http == other.http
    }),
    ("metrics", |one, other| one.metrics_dir == other.metrics_dir),
    ("models", |one, other| one.models == other.models),
    ("notify", |one, other| one.notify == other.notify),
    ("protected_files", |one, other| {
        one.protected_files == other.protected_files
    }),
    ("push", |one, other| one.push == other.push),
    ("sandbox", |one, other| one.sandbox == other.sandbox),
    ("skills", |one, other| {
        let (one, other) = (&one.skills, &other.skills);
        (&one.families, one.personal, &one.extra, &one.untrusted)
            == (
                &other.families,
                other.personal,
                &other.extra,
                &other.untrusted,
            )
    }),
    ("threads", |one, other| one.threads_dir == other.threads_dir),
    ("toolsets", |one, other| one.toolsets == other.toolsets),
    ("web", |one, other| one.web == other.web),
    ("workers", |one, other| one.workers == other.workers),
];

/// The configuration that is in force, whether it is one that could be read, and what is wrong with the file.
///
/// It is the former one if the file is broken, or if it changes rights and is not accepted. A broken file is not accepted
/// either.
pub(super) fn config_in_force(
    root: &Root,
    previous: Option<&Catalog>,
    options: Options<'_>,
) -> (Config, bool, Vec<Problem>) {
    let (config, text, mut problems) = config_file::read_with_text(root);
    let is_broken = problems
        .iter()
        .any(|problem| problem.severity == Severity::Error);
    let (config, is_known) = last_good_config(config, &mut problems, previous);
    let previous = previous.filter(|previous| previous.config_is_known && !is_broken);
    let (Some(previous), Some(accepts)) = (previous, options.accepts_config) else {
        return (config, is_known, problems);
    };
    let changed = changed_rights(&previous.config, &config);
    if accepts(text.as_deref(), !changed.is_empty()) {
        return (config, is_known, problems);
    }
    problems.push(not_accepted(&changed));
    (previous.config.clone(), is_known, problems)
}

fn changed_rights(former: &Config, new: &Config) -> Vec<&'static str> {
    let differ = RIGHTS.iter().filter(|(_, same)| !same(former, new));
    differ.map(|(name, _)| *name).collect()
}

fn not_accepted(changed: &[&str]) -> Problem {
    let named: Vec<String> = changed.iter().map(|name| format!("`{name}`")).collect();
    let message = format!(
        "the former configuration stays in force: {} changed, but the change is neither committed nor accepted by a user",
        named.join(", ")
    );
    Problem {
        code: NOT_ACCEPTED.to_owned(),
        severity: Severity::Warning,
        place: whole_file(CONFIG_FILE),
        message,
        hint: Some("commit it, or run `workerctl daemon reload`".to_owned()),
        worker: None,
        skill: None,
    }
}
