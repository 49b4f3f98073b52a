//! `context` of a worker: files that a model is given before its task.

use super::dialect::toolset::loadable;
use super::report::Report;
use super::view::View;
use crate::model::Config;

/// Signs of patterns and placeholders.
const SIGNS: [char; 7] = ['*', '?', '[', '{', '}', '<', '>'];

/// Reads which files a model is given, those of `base` first. What is understood otherwise is data, and a note.
pub(crate) fn read(root: View<'_>, config: &Config, report: &mut Report) -> Vec<String> {
    let Some(map) = root.get("context") else {
        return Vec::new();
    };
    let mut paths = Vec::new();
    for key in ["base", "dynamic"] {
        let Some(list) = map.written(key) else {
            continue;
        };
        for item in list.each() {
            if !may_hold(item, report) {
                continue;
            }
            let written = item.get("pattern").unwrap_or(item);
            match path(written) {
                Some(path) if !paths.contains(&path) => paths.push(path),
                Some(_) => {}
                // Where no model is asked nobody waits for it.
                None if config.models.is_empty() => {}
                None => report.note(
                    "context-not-read",
                    written.place(),
                    format!("this item of `{key}` is not passed to the model"),
                    "only single files are passed: write paths relative to the workspace, without patterns or placeholders",
                ),
            }
        }
    }
    paths
}

/// A path of one file in the workspace, in its plain form.
fn path(view: View<'_>) -> Option<String> {
    let text = view.scalar_text()?;
    let path = text.trim().trim_start_matches("./");
    let hidden = |part: &str| {
        [".git", ".workerctl"]
            .iter()
            .any(|own| part.eq_ignore_ascii_case(own))
    };
    let plain = loadable(path).is_ok() && !path.contains(SIGNS) && !path.split('/').any(hidden);
    plain.then(|| path.to_owned())
}

/// Whether an item counts: its condition is one that is evaluated, or there is none.
fn may_hold(item: View<'_>, report: &mut Report) -> bool {
    let Some(view) = item.written("when") else {
        return true;
    };
    let text = view.scalar_text().unwrap_or_default();
    let holds = matches!(text.as_str(), "always" | "exists");
    if !holds {
        report.note(
            "when-not-evaluated",
            view.place(),
            format!("`when: {text}` has no effect"),
            "only `always` and `exists` are evaluated",
        );
    }
    holds
}
