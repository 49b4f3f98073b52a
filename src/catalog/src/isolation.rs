//! Where runs work and where their result lands: keys that skills, workers and the configuration share.

use super::keys::{BRANCH, LOCAL, report_unknown};
use super::report::Report;
use super::settings;
use super::tree::Data;
use super::view::View;
use crate::model::Config;
use crate::model::isolation::{BranchChoice, LocalEntry, branch_name};
use crate::model::size::parse_bytes;

/// Paths that one key may name.
const PATHS_MAX: usize = 1_000;

/// The remote of `push: true`.
const REMOTE: &str = "origin";

/// Where a landed result is pushed to.
#[derive(Debug, Clone)]
pub(crate) enum PushTo {
    Nowhere,
    Remote(String),
}

impl PushTo {
    pub(crate) fn remote(self) -> Option<String> {
        match self {
            PushTo::Nowhere => None,
            PushTo::Remote(name) => Some(name),
        }
    }
}

/// What a skill or its worker says; `None` where it does not.
#[derive(Debug, Clone)]
pub(crate) struct Placement {
    pub(crate) branch: Option<BranchChoice>,
    pub(crate) keep: Option<Vec<String>>,
    pub(crate) local: Option<Vec<LocalEntry>>,
    pub(crate) push: Option<PushTo>,
}

/// Reads what skills and workers may both say.
pub(crate) fn read<'a>(
    get: impl Fn(&str) -> Option<View<'a>>,
    config: &Config,
    report: &mut Report,
) -> Placement {
    Placement {
        branch: get("branch").and_then(|view| branch(view, report)),
        keep: get("keep").map(|view| paths(view, "keep", config, report)),
        local: get("local").map(|view| local(view, config, report)),
        push: get("push").and_then(|view| push(view, report)),
    }
}

/// Reports `isolation`, which only earlier versions evaluate.
pub(crate) fn report_isolation(view: View<'_>, report: &mut Report) {
    let Some(text) = view.filled_text("isolation", report) else {
        return;
    };
    let shown = text.escape_debug();
    let always = "every mutating run works in a worktree of its own";
    if names_worktree(view) {
        report.note(
            "isolation-not-needed",
            view.place(),
            format!("`isolation: {shown}` is not needed: {always}"),
            "remove `isolation`",
        );
    } else if matches!(plain(&text).as_str(), "in_place" | "inplace") {
        report.error(
            "isolation-removed",
            view.place(),
            format!("`isolation: {shown}` was removed: {always}"),
            "remove it; use `keep` for caches that the skill builds, `local` for files that only the checkout has, and outputs with a `destination` for results",
        );
    } else {
        report.error(
            "unknown-value",
            view.place(),
            format!("`isolation: {shown}` is not known: {always}"),
            "remove it; what its commands may access is set by `sandbox`",
        );
    }
}

/// Returns whether a value of `isolation` asks for what every mutating run has.
pub(crate) fn names_worktree(view: View<'_>) -> bool {
    let text = view.scalar_text().map(|text| plain(&text));
    text.is_some_and(|text| ["worktree", "work_tree", "git_worktree"].contains(&text.as_str()))
}

fn plain(text: &str) -> String {
    text.to_lowercase().replace(['-', ' '], "_")
}

/// Reads the branch that results land on: its name, or a map with `name` and `create`.
pub(crate) fn branch(view: View<'_>, report: &mut Report) -> Option<BranchChoice> {
    let (named, create) = match view.data() {
        Data::Map(_) if view.get("name").is_some() => {
            report_unknown(view, &BRANCH, report);
            let create = match view.written("create") {
                Some(create) => create.flag("create", report)?,
                None => false,
            };
            (view.get("name")?, create)
        }
        Data::Text(_) | Data::Number(_) => (view, false),
        Data::Null | Data::Bool(_) | Data::List(_) | Data::Map(_) => {
            view.wrong_type("branch", "a name or a map with `name`", report);
            return None;
        }
    };
    let text = named.text("branch", report)?;
    let name = match branch_name(&text) {
        Ok(name) => name.to_owned(),
        Err(why) => {
            report.error(
                "branch-name",
                named.place(),
                format!(
                    "`branch: {}` is no name for git: {why}",
                    text.escape_debug()
                ),
                "write the short name of a branch, such as `reports`",
            );
            return None;
        }
    };
    if name.contains('{') {
        report.warning(
            "branch-name",
            named.place(),
            format!("`branch: {name}` is taken literally: no placeholder is filled in"),
            "write the short name of a branch, such as `reports`",
        );
    }
    Some(BranchChoice { name, create })
}

/// Reads the remote to push to.
pub(crate) fn push(view: View<'_>, report: &mut Report) -> Option<PushTo> {
    if let Data::Bool(wanted) = view.data() {
        return Some(if *wanted {
            PushTo::Remote(REMOTE.to_owned())
        } else {
            PushTo::Nowhere
        });
    }
    let name = view.text("push", report)?;
    // Git holds the names of remotes to the rules of references, for they are a part of some.
    let why = match branch_name(&name) {
        Ok(_) if matches!(name.as_str(), "yes" | "no" | "on" | "off") => {
            "it reads like an answer".to_owned()
        }
        Ok(_) => return Some(PushTo::Remote(name)),
        Err(why) => why.to_string(),
    };
    report.error(
        "remote-name",
        view.place(),
        format!(
            "`push: {}` is not the name of a remote: {why}",
            name.escape_debug()
        ),
        "write `true` for `origin`, or one of the names that `git remote` lists",
    );
    None
}

/// Reads a path, or a list of them.
pub(crate) fn paths(
    view: View<'_>,
    key: &str,
    config: &Config,
    report: &mut Report,
) -> Vec<String> {
    listed(view, key, report)
        .into_iter()
        .filter_map(|item| path(item, key, config, report))
        .collect()
}

fn local(view: View<'_>, config: &Config, report: &mut Report) -> Vec<LocalEntry> {
    listed(view, "local", report)
        .into_iter()
        .filter_map(|item| {
            let (named, link) = match item.data() {
                Data::Map(_) if item.get("path").is_some() => {
                    report_unknown(item, &LOCAL, report);
                    (item.get("path")?, item.get("link"))
                }
                Data::Map(_) => {
                    item.wrong_type("local", "a path or a map with `path`", report);
                    return None;
                }
                _ => (item, None),
            };
            let link = match link.filter(|link| !link.is_null()) {
                Some(link) => link.flag("link", report)?,
                None => false,
            };
            let path = path(named, "local", config, report)?;
            Some(LocalEntry { path, link })
        })
        .collect()
}

/// The items of a list, or the one value that stands in its place.
fn listed<'a>(view: View<'a>, key: &str, report: &mut Report) -> Vec<View<'a>> {
    match view.data() {
        Data::List(items) if items.len() > PATHS_MAX => {
            let message = format!("`{key}` has more than {PATHS_MAX} entries");
            report.error("too-many", view.place(), message, "name a directory");
            Vec::new()
        }
        Data::List(_) => view.items().collect(),
        _ => vec![view],
    }
}

/// Reads a path of the workspace that may be a run's own.
fn path(view: View<'_>, key: &str, config: &Config, report: &mut Report) -> Option<String> {
    let text = settings::inner_path(view, key, report)?;
    let shown = text.escape_debug();
    if text.contains(['*', '?', '[', '{', '}']) {
        report.error(
            "path-pattern",
            view.place(),
            format!("`{key}: {shown}` is no path"),
            "name each file or directory, such as `node_modules/`",
        );
        return None;
    }
    let parts: Vec<&str> = parts(&text).collect();
    let reserved = [
        ".git",
        ".workerctl",
        &config.threads_dir,
        &config.metrics_dir,
    ];
    let covered = reserved.into_iter().find(|own| {
        let own: Vec<&str> = self::parts(own).collect();
        parts.starts_with(&own) || own.starts_with(&parts)
    });
    if let Some(own) = covered {
        report.error(
            "path-reserved",
            view.place(),
            format!("`{key}: {shown}` covers `{own}`, which is reserved"),
            "name directories or files next to it",
        );
        return None;
    }
    Some(parts.join("/"))
}

fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|part| !matches!(*part, "" | "."))
}

/// Reads an amount of bytes.
pub(crate) fn bytes(view: View<'_>, key: &str, report: &mut Report) -> Option<u64> {
    let text = view.text(key, report)?;
    match parse_bytes(&text) {
        Ok(bytes) => Some(bytes),
        Err(error) => {
            report.error(
                "size-invalid",
                view.place(),
                format!("`{key}: {}`: {error}", text.escape_debug()),
                "write a number with a unit: `512MiB`, `1GiB`",
            );
            None
        }
    }
}
