//! The Agent Skills specification, exactly: what every program that reads skills understands.

use crate::frontmatter::of_markdown;
use crate::model::{Dialect, Place};
use crate::report::Report;
use crate::roots::Form;
use crate::source::Source;
use crate::tree::{self, Data, Tree};
use crate::view::View;

/// The only keys that the specification has.
pub(crate) const KEYS: [&str; 6] = [
    "name",
    "description",
    "license",
    "compatibility",
    "metadata",
    "allowed-tools",
];

/// Longest `description` and `compatibility` in characters.
pub(crate) const DESCRIPTION_CHARS: usize = 1_024;
pub(crate) const COMPATIBILITY_CHARS: usize = 500;

/// Where a definition stands.
#[derive(Clone, Copy)]
pub(crate) struct Placed<'a> {
    /// Name of its directory.
    pub(crate) stem: &'a str,
    /// Name of its file.
    pub(crate) file: &'a str,
    /// Its form.
    pub(crate) form: Form,
    /// The whole file.
    pub(crate) text: &'a str,
}

/// Reports everything in which a skill differs from the specification.
pub(crate) fn check(view: View<'_>, placed: Placed<'_>, repaired: bool, report: &mut Report) {
    let mut refuse = |place: Place, message: String, hint: &str| {
        report.error("not-portable", place, message, hint);
    };
    let start = view.place();
    if placed.form != Form::Directory || placed.file != "SKILL.md" {
        let message = format!("the file is `{}`", placed.file);
        refuse(start.clone(), message, "name it `<name>/SKILL.md`");
    }
    if !placed.text.starts_with("---") {
        let message = "something precedes the frontmatter".to_owned();
        refuse(start.clone(), message, "begin the file with `---`");
    }
    if repaired {
        let message = "the frontmatter is no YAML without a repair".to_owned();
        refuse(start, message, "quote the value that is named");
    }
    for (key, value) in view.entries() {
        if !KEYS.contains(&key) {
            let message = format!("`{key}` is no key of the specification");
            let hint = if super::agent::restriction(key, Dialect::Agent).is_some() {
                "it restricts the skill, so it cannot be removed, and the skill has no portable form"
            } else {
                "put it under `metadata`"
            };
            refuse(value.key_place(), message, hint);
        }
    }
    for (key, value) in view.entries() {
        if let Some((message, hint)) = fault(key, value, placed) {
            refuse(value.place(), message, hint);
        }
    }
}

/// What is wrong with one key, and what to do.
fn fault(key: &str, value: View<'_>, placed: Placed<'_>) -> Option<(String, &'static str)> {
    let text = match value.data() {
        Data::Text(text) => Some(text.as_str()),
        _ => None,
    };
    let no_text = || Some((format!("`{key}` is {}", value.kind()), "write a text"));
    match key {
        "name" => {
            let Some(name) = text else { return no_text() };
            if !super::agent::is_usual(name) {
                let hint = "use at most 64 lower-case letters, digits and single dashes within";
                return Some((format!("`name: {}`", name.escape_debug()), hint));
            }
            let stem = placed.stem;
            (name != stem).then(|| {
                let message = format!("`name: {name}` is not its directory, `{stem}`");
                (message, "give both the same name")
            })
        }
        "description" => {
            let Some(text) = text else { return no_text() };
            let characters = text.chars().count();
            (text.trim().is_empty() || characters > DESCRIPTION_CHARS).then(|| {
                let message = format!("the description has {characters} characters");
                (message, "write 1 to 1024 characters")
            })
        }
        "compatibility" => {
            let Some(text) = text else { return no_text() };
            let characters = text.chars().count();
            (characters == 0 || characters > COMPATIBILITY_CHARS).then(|| {
                let message = format!("`compatibility` has {characters} characters");
                (message, "write 1 to 500 characters")
            })
        }
        "license" if text.is_none() => no_text(),
        "allowed-tools" => {
            let Some(text) = text else {
                return Some((
                    format!("`allowed-tools` is {}", value.kind()),
                    "write the tools as one text with blanks between",
                ));
            };
            let outside: String = outside_of_brackets(text);
            outside.contains(',').then(|| {
                let message = "`allowed-tools` has commas between tools".to_owned();
                (message, "write blanks between")
            })
        }
        "metadata" => {
            let texts = matches!(value.data(), Data::Map(_))
                && value
                    .entries()
                    .all(|(_, one)| matches!(one.data(), Data::Text(_)));
            (!texts || !has_text_keys(placed.text)).then(|| {
                let message = "`metadata` is no map from texts to texts".to_owned();
                (message, "quote each key and value")
            })
        }
        _ => None,
    }
}

/// Whether every key of `metadata` is a text. Where values have places, their keys are texts already, so it is
/// parsed once more.
fn has_text_keys(text: &str) -> bool {
    let source = Source::new("", text.to_owned());
    let front = of_markdown(&source, &mut Report::default()).ok().flatten();
    let parsed = front.and_then(|(yaml, _)| tree::parse(text.get(yaml)?).ok());
    // What is no YAML without a repair is told already.
    let Some(Tree::Map(entries)) = parsed else {
        return true;
    };
    let is_text = |tree: &Tree| matches!(tree, Tree::Text(_));
    let named = |key: &Tree| matches!(key, Tree::Text(key) if key == "metadata");
    entries
        .iter()
        .filter(|(key, _)| named(key))
        .all(|(_, value)| match value {
            Tree::Map(own) => own.iter().all(|(key, _)| is_text(key)),
            _ => true,
        })
}

fn outside_of_brackets(text: &str) -> String {
    let mut depth = 0_usize;
    text.chars()
        .filter(|character| {
            match character {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0
        })
        .collect()
}
