//! `instances` of workerctl.yaml: a worker whose id holds placeholders becomes one worker for each item.
//!
//! In the texts of such a worker a placeholder of its id is an input with one possible value, so it is quoted, exported
//! and shown like any other.

use std::collections::BTreeMap;

use super::ids::check_id;
use super::report::Report;
use super::tree::Data;
use super::view::View;
use crate::model::config::Instance;
use crate::model::definition::{Input, InputKind};

/// Workers that may be made from one template.
const INSTANCES_MAX: usize = 100;

/// Longest name of an input.
const NAME_CHARS_MAX: usize = 64;

/// What is written where a template has no instances yet.
const EXAMPLE: &str = "instances: {\"cfo-{company}\": [{company: acme}, {company: globex}]}";

/// The names of the placeholders in an id, in order and each once; `None`: what stands in braces is no name.
pub(crate) fn placeholders(id: &str) -> Option<Vec<&str>> {
    let mut found = Vec::new();
    let mut rest = id;
    while let Some((_, after)) = rest.split_once('{') {
        let (name, behind) = after.split_once('}')?;
        let first = name.bytes().next()?;
        let goes_on = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        let is_name = (first.is_ascii_alphabetic() || first == b'_')
            && name.len() <= NAME_CHARS_MAX
            && name.bytes().all(goes_on);
        if !is_name {
            return None;
        }
        if !found.contains(&name) {
            found.push(name);
        }
        rest = behind;
    }
    Some(found)
}

/// The text with values in place of the placeholders that have one.
pub(crate) fn filled<'v>(text: &str, value_of: impl Fn(&str) -> Option<&'v str>) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        let known = after
            .split_once('}')
            .and_then(|(name, behind)| Some((value_of(name)?, behind)));
        if let Some((value, behind)) = known {
            filled.push_str(value);
            rest = behind;
        } else {
            filled.push('{');
            rest = after;
        }
    }
    filled + rest
}

/// The text for people, with the values of an instance in it.
pub(crate) fn told(text: &str, placeholders: &[Input]) -> String {
    filled(text, |name| {
        let found = placeholders.iter().find(|input| input.name == name)?;
        found.default.as_ref()?.as_str()
    })
}

/// The placeholders of a worker's id as inputs of its skills; those of an instance have their one value.
pub(crate) fn inputs(template: &str, instance: Option<&Instance>) -> Vec<Input> {
    let names = placeholders(template).unwrap_or_default();
    names
        .into_iter()
        .map(|name| {
            let value = instance.and_then(|instance| instance.values.get(name));
            Input {
                name: name.to_owned(),
                kind: InputKind::String,
                required: value.is_none(),
                default: value.map(|value| value.as_str().into()),
                description: Some(format!("`{name}` of the worker `{template}`")),
                allowed: value.cloned().into_iter().collect(),
                pattern: None,
                min: None,
                max: None,
                integer: false,
                min_length: None,
                max_length: None,
                items: None,
                sensitive: false,
                allow_dash: false,
            }
        })
        .collect()
}

/// Reads `instances`: by template, with the place of its key.
pub(crate) fn read<'a>(
    view: View<'a>,
    report: &mut Report,
) -> Vec<(View<'a>, &'a str, Vec<Instance>)> {
    if !matches!(view.data(), Data::Map(_)) {
        view.wrong_type(
            "instances",
            "a map from ids of templates to lists of values",
            report,
        );
        return Vec::new();
    }
    let of_template = |(id, list): (&'a str, View<'a>)| {
        let Some(names) = placeholders(id).filter(|names| !names.is_empty()) else {
            report.error(
                "instances-template",
                list.key_place(),
                format!("`{}` is no id with placeholders", id.escape_debug()),
                &format!("name a worker such as `cfo-{{company}}`: `{EXAMPLE}`"),
            );
            return None;
        };
        let Data::List(items) = list.data() else {
            let expected = format!("a list of maps with {}", listed(&names));
            list.wrong_type(id, &expected, report);
            return None;
        };
        if items.len() > INSTANCES_MAX {
            report.error(
                "too-many",
                list.place(),
                format!("more than {INSTANCES_MAX} instances of `{id}`"),
                "keep fewer, or write a second template",
            );
            return None;
        }
        let found = list.items();
        let found = found.filter_map(|item| instance(id, &names, item, report));
        Some((list, id, found.collect()))
    };
    view.entries().filter_map(of_template).collect()
}

fn listed(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(" and ")
}

fn instance(
    template: &str,
    names: &[&str],
    item: View<'_>,
    report: &mut Report,
) -> Option<Instance> {
    if !matches!(item.data(), Data::Map(_)) {
        item.wrong_type(template, &format!("a map with {}", listed(names)), report);
        return None;
    }
    let before = report.errors();
    let mut values = BTreeMap::new();
    for (name, value) in item.entries() {
        if !names.contains(&name) {
            report.error(
                "instances-placeholder",
                value.key_place(),
                format!(
                    "`{}` is no placeholder of `{template}`",
                    name.escape_debug()
                ),
                &format!("its placeholders are {}", listed(names)),
            );
        } else if let Some(text) = value.filled_text(name, report) {
            values.insert(name.to_owned(), text);
        }
    }
    let written = |name: &&&str| item.entries().any(|(key, _)| key == **name);
    for name in names.iter().filter(|name| !written(name)) {
        report.error(
            "instances-placeholder",
            item.place(),
            format!("`{name}` of `{template}` has no value"),
            &format!("add `{name}: …`"),
        );
    }
    let id = filled(template, |name| values.get(name).map(String::as_str));
    if report.errors() == before {
        if values.values().any(|value| value.contains(['{', '}'])) {
            report.error(
                "id-invalid",
                item.place(),
                format!("`{}` still holds a placeholder", id.escape_debug()),
                "write values without braces",
            );
        } else {
            check_id(&id, "worker", &item.place(), report);
        }
    }
    (report.errors() == before).then(|| Instance {
        id,
        values,
        place: item.place(),
    })
}
