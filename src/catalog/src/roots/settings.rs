//! `skills` of workerctl.yaml: which roots are read, in which order, and which are not trusted.

use std::collections::HashSet;

use crate::keys::{CONFIG_SKILL_ROOT, report_unknown};
use crate::model::Dialect;
use crate::model::skill_roots::{ExtraRoot, FAMILIES};
use crate::report::Report;
use crate::tree::Data;
use crate::view::View;

/// Roots that a configuration may add.
const EXTRA_MAX: usize = 64;

/// Reads a list of families; `None` when an error was reported.
pub(crate) fn families(view: View<'_>, report: &mut Report) -> Option<Vec<String>> {
    let before = report.errors();
    if !matches!(view.data(), Data::List(_)) {
        view.wrong_type("skills", "a list such as `[.agents, .claude]`", report);
    }
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for item in view.items() {
        let Some(text) = item.filled_text("skills", report) else {
            continue;
        };
        let name = text.trim_start_matches("./").trim_end_matches('/');
        if !FAMILIES.contains(&name) {
            report.error(
                "unknown-value",
                item.place(),
                format!("`{}` is no family of skills", text.escape_debug()),
                &format!(
                    "write some of {}; other directories belong under `roots`",
                    FAMILIES.map(|name| format!("`{name}`")).join(", ")
                ),
            );
        } else if seen.insert(name.to_owned()) {
            found.push(name.to_owned());
        }
    }
    (report.errors() == before).then_some(found)
}

/// Reads the roots that are added; `None` when an error was reported.
pub(crate) fn extra(view: View<'_>, report: &mut Report) -> Option<Vec<ExtraRoot>> {
    let before = report.errors();
    if !matches!(view.data(), Data::List(_)) {
        view.wrong_type("roots", "a list of directories", report);
    }
    if view.items().count() > EXTRA_MAX {
        let message = format!("more than {EXTRA_MAX} roots of skills");
        report.error("too-many", view.place(), message, "put skills together");
        return None;
    }
    let found = view.items().filter_map(|item| root(item, report)).collect();
    (report.errors() == before).then_some(found)
}

fn root(item: View<'_>, report: &mut Report) -> Option<ExtraRoot> {
    let Data::Map(_) = item.data() else {
        return Some(ExtraRoot {
            path: path(item, report)?,
            dialect: Dialect::Agent,
            trusted: true,
        });
    };
    report_unknown(item, &CONFIG_SKILL_ROOT, report);
    let Some(written) = item.get("path") else {
        let message = "a root of skills has no `path`".to_owned();
        report.error("missing-key", item.place(), message, "add `path`");
        return None;
    };
    let dialect = match item.written("dialect") {
        Some(view) => dialect(view, report)?,
        None => Dialect::Agent,
    };
    let trusted = match item.get("trusted") {
        // A restriction that cannot be read is the stricter of both.
        Some(view) => crate::checks::restricting_flag(view, "trusted", report)?,
        None => true,
    };
    Some(ExtraRoot {
        path: path(written, report)?,
        dialect,
        trusted,
    })
}

fn path(view: View<'_>, report: &mut Report) -> Option<String> {
    let path = view.filled_text("path", report)?;
    let odd =
        path.chars().any(char::is_control) || path.starts_with('~') && !path.starts_with("~/");
    if odd {
        report.error(
            "path-outside",
            view.place(),
            format!("`path: {}` cannot be resolved", path.escape_debug()),
            "write a path relative to the workspace, an absolute one, or one below `~/`",
        );
        return None;
    }
    Some(path.trim_end_matches('/').to_owned()).filter(|path| !path.is_empty())
}

fn dialect(view: View<'_>, report: &mut Report) -> Option<Dialect> {
    let text = view.filled_text("dialect", report)?;
    let found = Dialect::ALL.into_iter().find(|one| one.name() == text);
    if found.is_none() {
        report.error(
            "unknown-value",
            view.place(),
            format!("`dialect: {}` is not known", text.escape_debug()),
            "write `agent`, `wave` or `workspace`",
        );
    }
    found
}
