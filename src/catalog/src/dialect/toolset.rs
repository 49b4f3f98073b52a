//! Tool sets, and files that a skill lists so that they can be loaded when they are needed.

use crate::model::Place;
use crate::report::Report;
use crate::tree::Data;
use crate::view::View;

/// Files that one skill may list.
const FILES_MAX: usize = 1_000;

/// A file that a skill lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedFile {
    /// Relative to the skill's directory.
    pub path: String,
    /// When it is worth loading.
    pub description: String,
    /// Where it is listed.
    pub(crate) place: Place,
}

/// Reads `toolsets` with places; `None` when an error was reported.
pub(crate) fn toolsets(view: View<'_>, report: &mut Report) -> Option<Vec<(String, Place)>> {
    let before = report.errors();
    if !matches!(view.data(), Data::List(_)) {
        view.wrong_type("toolsets", "a list of names", report);
    }
    let names = view
        .items()
        .filter_map(|item| Some((item.filled_text("toolsets", report)?, item.place())))
        .collect();
    (report.errors() == before).then_some(names)
}

/// Reads `files`. An item that may not be loaded is told and left out; the skill remains.
pub(crate) fn files(view: View<'_>, report: &mut Report) -> Vec<ListedFile> {
    if !matches!(view.data(), Data::List(_)) {
        refuse(view, "`files` is no list", report);
        return Vec::new();
    }
    if view.items().count() > FILES_MAX {
        refuse(view, &format!("more than {FILES_MAX} files"), report);
    }
    view.items()
        .take(FILES_MAX)
        .filter_map(|item| file(item, report))
        .collect()
}

fn file(item: View<'_>, report: &mut Report) -> Option<ListedFile> {
    let text = |key: &str| {
        item.get(key)
            .and_then(|view| view.scalar_text())
            .filter(|text| !text.trim().is_empty())
    };
    let (Some(path), Some(description)) = (text("path"), text("description")) else {
        refuse(item, "a listed file needs `path` and `description`", report);
        return None;
    };
    if let Err(why) = loadable(&path) {
        refuse(item, &format!("`{}` {why}", path.escape_debug()), report);
        return None;
    }
    Some(ListedFile {
        path,
        description,
        place: item.place(),
    })
}

fn refuse(view: View<'_>, message: &str, report: &mut Report) {
    report.warning(
        "skill-file-refused",
        view.place(),
        format!("{message}: it cannot be loaded"),
        "write `{path: guidelines/style.md, description: when to read it}`, relative to the skill's directory and without `./`",
    );
}

/// Whether a path may name a file of a skill: relative, inside, in its one plain form.
pub(crate) fn loadable(path: &str) -> Result<(), &'static str> {
    if path.is_empty() || path.chars().any(char::is_control) {
        return Err("is no path");
    }
    if path.starts_with('/') || path.starts_with('~') {
        return Err("is not relative to the skill's directory");
    }
    if path.starts_with("./") {
        return Err("begins with `./`");
    }
    if path.contains('\\') {
        return Err("holds a backslash");
    }
    match path
        .split('/')
        .find(|part| matches!(*part, "" | "." | ".."))
    {
        Some("..") => Err("leaves the skill's directory"),
        Some(_) => Err("is not in its plain form"),
        None => Ok(()),
    }
}
