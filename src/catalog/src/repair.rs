//! Quotes prose that is not valid YAML without quotes: a colon within, or a sign in front.

use std::ops::RangeInclusive;

use super::source::Source;
use super::tree::Tree;

/// Keys whose values are prose for people. A value that decides what may run is never repaired.
const PROSE: &[&str] = &[
    "name",
    "title",
    "description",
    "summary",
    "purpose",
    "role",
    "team",
    "trigger",
    "triggers",
    "check",
    "note",
    "notes",
    "argument-hint",
    "compatibility",
    "license",
    "when_to_use",
    "when-to-use",
    "message",
];

/// Quotes the prose value in `line` or the line before it, unless that was tried already.
/// Gives the whole new text and the line that changed.
pub(crate) fn quote_prose(
    source: &Source,
    line: usize,
    tried: &[usize],
) -> Option<(String, usize)> {
    [line, line.saturating_sub(1)]
        .into_iter()
        .filter(|line| !tried.contains(line))
        .find_map(|line| quoted(source, line))
}

/// Quotes a `name` or `description` of the whole document that begins with a bracket and so is a list to YAML:
/// `description: [beta]`. Gives the whole new text and the line that changed.
pub(crate) fn quote_listed(
    source: &Source,
    mut lines: RangeInclusive<usize>,
    tree: &Tree,
) -> Option<(String, usize)> {
    let Tree::Map(pairs) = tree else {
        return None;
    };
    let listed = |text: &str| {
        let value = pairs.iter().find_map(|(key, value)| match key {
            Tree::Text(key) if key == text => Some(value),
            _ => None,
        });
        matches!(value, Some(Tree::List(_)))
    };
    let key = ["name", "description"]
        .into_iter()
        .find(|key| listed(key))?;
    let head = format!("{key}: [");
    // A list that goes on in the next line is one.
    let whole = |line: &usize| {
        let text = source.line(*line).trim_end();
        text.starts_with(&head) && text.ends_with(']')
    };
    let line = lines.find(whole)?;
    quoted(source, line)
}

fn quoted(source: &Source, line: usize) -> Option<(String, usize)> {
    let quoted = quoted_line(source.line(line))?;
    let mut text = source.text().to_owned();
    text.replace_range(source.line_range(line), &quoted);
    Some((text, line))
}

fn quoted_line(line: &str) -> Option<String> {
    let colon = line.find(": ")?;
    let key = line[..colon].trim_start();
    let key = key.strip_prefix("- ").unwrap_or(key).trim_start();
    if !PROSE.contains(&key) {
        return None;
    }
    let head = &line[..colon + 2];
    let value = line[colon + 2..].trim();
    let sign = value.starts_with(['[', '*', '@', '`', '&', '%', '!']);
    let colon_within = value.contains(": ") || value.ends_with(':');
    if value.starts_with(['"', '\'', '|', '>', '{']) || !(sign || colon_within) {
        return None;
    }
    let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
    Some(format!("{head}\"{escaped}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_quoted_and_nothing_else() {
        let table = [
            (
                "description: Use when: it \"rains\"",
                Some("description: \"Use when: it \\\"rains\\\"\""),
            ),
            (
                "  - check: `make` passes",
                Some("  - check: \"`make` passes\""),
            ),
            ("name: @me", Some("name: \"@me\"")),
            ("name: [draft] plan", Some("name: \"[draft] plan\"")),
            ("name: plain", None),
            ("mutating: a: b", None),
            ("command: a: b", None),
            ("name: \"quoted\": x", None),
            ("name:", None),
        ];
        for (line, expected) in table {
            assert_eq!(quoted_line(line).as_deref(), expected, "{line}");
        }
    }
}
