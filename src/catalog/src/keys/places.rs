//! Where keys belong: the places of definition files that know a key, maps below other keys included.

use std::sync::LazyLock;

use super::{
    CHECK, CONFIG, EXECUTION, Form, IDENTITY, INPUT, OUTPUT, Role, SCHEDULE, SKILL, STATE_MACHINE,
    Table, WORKER_FILE, scheduled,
};
use crate::model::config::CONFIG_FILE;
use crate::tree::Data;
use crate::view::View;

/// Levels of definitions, how messages name them, and the key that leads to them if it is always the same.
const LEVELS: [(&Table, &str, Option<Step>); 6] = [
    (&SKILL, "in a skill", None),
    (&WORKER_FILE, "at the top level of worker.yaml", None),
    (
        &EXECUTION,
        "in `execution` of worker.yaml",
        Some(Step("execution", Shape::Map)),
    ),
    (
        &SCHEDULE,
        "in a schedule",
        Some(Step("schedule", Shape::Map)),
    ),
    (
        &CHECK,
        "in a check of `verification`",
        Some(Step("verification", Shape::List)),
    ),
    (&CONFIG, "in workerctl.yaml", None),
];

/// Keys of a schedule that say when it is due: with one of them it is complete.
const TRIGGERS: [&str; 7] = [
    "cron",
    "schedule",
    "every",
    "at",
    "after",
    "watch",
    "on_commit",
];

/// Keys that are common in files of other programs too. Elsewhere they say nothing about a place.
pub(crate) const COMMON: [&str; 19] = [
    "id",
    "name",
    "type",
    "version",
    "description",
    "skill",
    "skills",
    "file",
    "files",
    "path",
    "mode",
    "check",
    "command",
    "start",
    "end",
    "when",
    "at",
    "inputs",
    "mcp",
];

/// Keys of inner maps that users also use for their own data in workers, skills, checks, inputs and outputs.
pub(crate) const GENERIC: [&str; 38] = [
    "author", "default", "required", "enum", "pattern", "min", "max", "items", "value", "as",
    "level", "read", "write", "key", "args", "prompt", "output", "input", "cost", "result",
    "failure", "done", "usage", "url", "call", "link", "form", "before", "after", "users",
    "groups", "admin", "message", "commands", "provider", "schema", "roots", "tools",
];

/// Maps in which keys of [`GENERIC`] may be users' own data.
const OPEN: [&Table; 7] = [
    &SKILL,
    &WORKER_FILE,
    &IDENTITY,
    &EXECUTION,
    &CHECK,
    &INPUT,
    &OUTPUT,
];

/// A key that leads to a map, and how the map is written below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Step(&'static str, Shape);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Map,
    List,
    Named,
}

/// A map below a level.
#[derive(Debug)]
struct Inner {
    level: usize,
    steps: Vec<Step>,
    table: &'static Table,
}

static INNER: LazyLock<Vec<Inner>> = LazyLock::new(|| {
    let mut found = Vec::new();
    for (level, (table, ..)) in LEVELS.iter().enumerate() {
        collect(level, table, &[], &mut found);
    }
    found
});

/// Collects the maps below `table`, except those that are levels themselves or belong to other programs.
fn collect(level: usize, table: &'static Table, steps: &[Step], found: &mut Vec<Inner>) {
    for key in table.keys.iter().filter(|key| key.role != Role::Kept) {
        let mut maps = Vec::new();
        maps_of(key.form, Shape::Map, &mut maps);
        for (shape, inner) in maps {
            let is_level = LEVELS.iter().any(|(level, ..)| level.name == inner.name);
            if is_level || inner.name == STATE_MACHINE.name || inner.name == IDENTITY.name {
                continue;
            }
            let steps = [steps, &[Step(key.name, shape)]].concat();
            let table = inner;
            let inner = Inner {
                level,
                steps: steps.clone(),
                table,
            };
            found.push(inner);
            collect(level, table, &steps, found);
        }
    }
}

/// The maps that a value of a form may be, each once.
fn maps_of(form: Form, shape: Shape, found: &mut Vec<(Shape, &'static Table)>) {
    match form {
        Form::Map(table) if !found.iter().any(|(_, known)| known.name == table.name) => {
            found.push((shape, table));
        }
        Form::List(inner) | Form::Filled(inner) => maps_of(*inner, Shape::List, found),
        Form::Named(inner) => maps_of(*inner, Shape::Named, found),
        Form::AnyOf(forms) => forms.iter().for_each(|form| maps_of(*form, shape, found)),
        _ => {}
    }
}

/// Returns true if a key says nothing about a place when it is written in `table`.
fn is_free(key: &str, table: &Table) -> bool {
    let is_open = OPEN.iter().any(|open| open.name == table.name);
    COMMON.contains(&key) || is_open && GENERIC.contains(&key)
}

/// The hint that names the nearest place of a key that `table` does not know; `None` if no place knows it either.
///
/// `same` decides which of the known keys the written one is.
pub(super) fn elsewhere(
    (written_key, value): (&str, View<'_>),
    map: View<'_>,
    table: &Table,
    same: impl Fn(&[&'static str], bool) -> Option<&'static str>,
) -> Option<String> {
    let is_config = value.key_place().path.ends_with(CONFIG_FILE);
    let is_far = |level: &Table| (level.name == CONFIG.name) != is_config;
    let levels = LEVELS.iter().filter(|(level, ..)| level.name != table.name);
    let levels = levels.filter_map(|(level, words, step)| {
        let names: Vec<&str> = level.evaluated().collect();
        let key = same(&names, true).filter(|key| !COMMON.contains(key))?;
        Some((*level, *words, *step, key))
    });
    let is_aside = |step: Option<Step>| step.is_some_and(|step| !table.has(step.0));
    let nearest = levels.min_by_key(|(level, _, step, _)| (is_far(level), is_aside(*step)));
    if let Some((level, words, _, key)) = nearest
        && level.name == SCHEDULE.name
        && !TRIGGERS.contains(&key)
    {
        let hint = scheduled::with(written_key, &format!("{key}: {}", written(value)), map);
        return Some(format!("`{key}` belongs {words}: {hint}"));
    }
    if let Some((_, words, step, key)) = nearest {
        let example = step.map(|step| format!(" (`{}`)", example(&[step], key, value)));
        return Some(format!(
            "`{key}` belongs {words}{}",
            example.unwrap_or_default()
        ));
    }
    let inner = INNER.iter().filter(|inner| inner.table.name != table.name);
    let inner = inner.filter_map(|inner| {
        let names: Vec<&str> = inner.table.evaluated().collect();
        let key = same(&names, false).filter(|key| !is_free(key, table))?;
        Some((inner, key))
    });
    let is_here = |inner: &Inner| LEVELS[inner.level].0.name == table.name;
    let (inner, key) = inner.min_by_key(|(inner, _)| {
        let (level, _, step) = LEVELS[inner.level];
        let steps = inner.steps.len() + usize::from(step.is_some());
        (!is_here(inner), is_far(level), steps)
    })?;
    let steps: Vec<_> = inner.steps.iter().map(|step| step.0).collect();
    let of = if is_here(inner) {
        String::new()
    } else {
        format!(" of {}", of_level(LEVELS[inner.level].1))
    };
    Some(format!(
        "`{key}` belongs in `{}`{of}: `{}`",
        steps.join("."),
        example(&inner.steps, key, value)
    ))
}

fn of_level(words: &'static str) -> &'static str {
    let words = words.strip_prefix("in ").unwrap_or(words);
    words.strip_prefix("at the top level of ").unwrap_or(words)
}

/// The key with its value where it belongs, such as `retry: {max_attempts: 3}`.
fn example(steps: &[Step], key: &str, value: View<'_>) -> String {
    let inner = format!("{key}: {}", written(value));
    steps
        .iter()
        .rev()
        .fold(inner, |inner, Step(key, shape)| match shape {
            Shape::Map => format!("{key}: {{{inner}}}"),
            Shape::List => format!("{key}: [{{{inner}}}]"),
            Shape::Named => format!("{key}: {{NAME: {{{inner}}}}}"),
        })
}

/// Returns a key without case, `-`, `_` and spaces.
pub(super) fn plain(text: &str) -> String {
    plain_letters(text).collect()
}

fn plain_letters(text: &str) -> impl Iterator<Item = char> {
    let letters = text.chars().filter(|letter| !"-_ ".contains(*letter));
    letters.flat_map(char::to_lowercase)
}

/// Returns true if two keys differ at most in case, `-`, `_` and spaces.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    plain_letters(one).eq(plain_letters(other))
}

/// Returns true if a word is a key of any definition file, so that it is not a value that must stay secret.
pub(crate) fn is_any(word: &str) -> bool {
    let levels = LEVELS.iter().map(|(table, ..)| *table);
    let mut tables = levels.chain(INNER.iter().map(|inner| inner.table));
    tables.any(|table| table.has(word))
}

/// A short value as it is written; of all others the form.
pub(super) fn written(value: View<'_>) -> String {
    match value.data() {
        Data::List(_) => "[…]".to_owned(),
        Data::Map(_) => "{…}".to_owned(),
        Data::Number(_) | Data::Bool(_) => value.scalar_text().unwrap_or_default(),
        Data::Text(text) => {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
            let is_short = !text.is_empty() && text.len() <= 32;
            if is_short && text.chars().all(is_plain) {
                text.clone()
            } else {
                "…".to_owned()
            }
        }
        Data::Null => "…".to_owned(),
    }
}

/// Every key that must be an error in `table`: it is known elsewhere, and says where it belongs.
#[cfg(test)]
pub(crate) fn misplaced_in(table: &Table) -> Vec<&'static str> {
    let levels = LEVELS.iter().flat_map(|(level, ..)| level.evaluated());
    let inner = INNER.iter().flat_map(|inner| inner.table.evaluated());
    let inner = inner.filter(|key| !is_free(key, table));
    let keys = levels.chain(inner).filter(|key| !COMMON.contains(key));
    let unknown = |key: &&str| !table.has(key) && !table.removed.contains(key);
    let mut keys: Vec<_> = keys.filter(unknown).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}
