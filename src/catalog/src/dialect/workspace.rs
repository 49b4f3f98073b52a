//! What workspace skills add: a model, tools that must be there, a limit of turns.

use super::{Written, tools};
use crate::bounds::ITERATIONS_MAX;
use crate::model::{Dialect, Place};
use crate::report::Report;
use crate::tree::Data;
use crate::view::View;

/// The alias of a model with its place, under its old name or its new one.
pub(crate) fn model(
    old: Option<View<'_>>,
    new: Option<View<'_>>,
    report: &mut Report,
) -> Option<(String, Place)> {
    if let (Some(old), Some(new)) = (old, new)
        && old.scalar_text() != new.scalar_text()
    {
        report.warning(
            "two-names",
            new.key_place(),
            "`preferred_model` and `model` differ: the former is used".to_owned(),
            "keep one of them",
        );
    }
    let (key, value) = match (old, new) {
        (Some(old), _) => ("preferred_model", old),
        (None, Some(new)) => ("model", new),
        (None, None) => return None,
    };
    let text = value.scalar_text().filter(|text| !text.trim().is_empty());
    if text.is_none() {
        report.warning(
            "value-ignored",
            value.place(),
            format!("`{key}` is not a model alias: the default model is used"),
            "write the alias as text",
        );
    }
    Some((text?, value.place()))
}

/// Tools of a skill.
#[derive(Debug, Default)]
pub(crate) struct Tools {
    /// Those that must exist.
    pub(crate) required: Vec<String>,
    /// The only ones that it may use.
    pub(crate) allowed: Option<Vec<String>>,
    /// Those that it may not use.
    pub(crate) disallowed: Vec<String>,
}

/// Reads every key that restricts tools. Under its newer names, `allowed_tools` and `tools`, a workspace skill
/// says with one list which tools must exist and which alone it may use.
pub(crate) fn tools(written: &Written<'_>, dialect: Dialect, report: &mut Report) -> Tools {
    let mut found = Tools::default();
    for view in written.all("required_tools") {
        found
            .required
            .extend(tools::read(view, "required_tools", report).unwrap_or_default());
    }
    let has_sets = !written.all("toolsets").is_empty();
    for view in written.all("disallowed-tools") {
        let list = tools::read(view, "disallowed-tools", report).unwrap_or_default();
        tools::check_items(view, "disallowed-tools", (&list, has_sets), report);
        found.disallowed.extend(list);
    }
    let mut allowed = Vec::new();
    let newer: &[&str] = match dialect {
        Dialect::Workspace => &["allowed-tools", "allowed_tools", "tools"],
        Dialect::Agent | Dialect::Wave => &["allowed-tools"],
    };
    for key in newer {
        for view in written.all(key) {
            let Some(list) = tools::read_allowed(view, key, report) else {
                continue;
            };
            tools::check_items(view, key, (&list, has_sets), report);
            if *key != "allowed-tools" {
                let new = list.iter().filter(|tool| !found.required.contains(tool));
                let new: Vec<String> = new.cloned().collect();
                found.required.extend(new);
            }
            allowed.push((view, list));
        }
    }
    let mut lists = allowed.into_iter();
    let Some((_, first)) = lists.next() else {
        return found;
    };
    for (view, other) in lists {
        if other != first {
            report.error(
                "restriction-malformed",
                view.key_place(),
                "two keys say differently which tools are allowed".to_owned(),
                "keep one of them",
            );
        }
    }
    found.allowed = Some(first);
    found
}

/// How many turns a model has; `None` when an error was reported.
pub(crate) fn max_iterations(value: View<'_>, report: &mut Report) -> Option<u32> {
    let number = match value.data() {
        Data::Text(text) => match text.trim().parse::<u64>() {
            Ok(number) if (1..=ITERATIONS_MAX).contains(&number) => {
                report.warning(
                    "number-as-text",
                    value.place(),
                    format!("`max_iterations: \"{number}\"` is a text and is read as a number"),
                    &format!("write `max_iterations: {number}`"),
                );
                Some(number)
            }
            _ => value.whole("max_iterations", 1..=ITERATIONS_MAX, report),
        },
        _ => value.whole("max_iterations", 1..=ITERATIONS_MAX, report),
    };
    number.and_then(|number| u32::try_from(number).ok())
}
