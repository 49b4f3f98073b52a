//! Quotes prose that is not valid YAML as it stands: a colon within, a sign in front, quotes within quotes; and
//! patterns of paths, whose `*` means something else to YAML.

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

/// Keys whose values are patterns of paths, which other programs read and this one keeps.
const PATTERNS: &[&str] = &["globs", "paths"];

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

/// Quotes the `description` of the whole document if it begins with a bracket and so is a list to YAML:
/// `description: [beta]`. Gives the whole new text and the line that changed.
pub(crate) fn quote_listed(
    source: &Source,
    mut lines: RangeInclusive<usize>,
    tree: &Tree,
) -> Option<(String, usize)> {
    let Tree::Map(pairs) = tree else {
        return None;
    };
    let listed = |(key, value): &(Tree, Tree)| {
        matches!(key, Tree::Text(key) if key == "description") && matches!(value, Tree::List(_))
    };
    pairs.iter().find(|pair| listed(pair))?;
    let head = "description: [";
    // A list that goes on in the next line is one.
    let whole = |line: &usize| {
        let text = source.line(*line).trim_end();
        text.starts_with(head) && text.ends_with(']')
    };
    let line = lines.find(whole)?;
    quoted(source, line)
}

fn quoted(source: &Source, line: usize) -> Option<(String, usize)> {
    let written = source.line(line);
    let quoted = quoted_line(written).or_else(|| {
        let is_item = |line: &&str| line.trim_start().starts_with("- ");
        let mut above = (0..line).rev().map(|line| source.line(line));
        let key = above
            .find(|line| !is_item(line))?
            .trim()
            .strip_suffix(':')?;
        let (head, item) = written.split_at(written.find("- ")? + 2);
        let fits = PATTERNS.contains(&key) && is_item(&written) && item.starts_with('*');
        fits.then(|| format!("{head}{}", in_quotes(item.trim())))
    })?;
    let mut text = source.text().to_owned();
    text.replace_range(source.line_range(line), &quoted);
    Some((text, line))
}

fn quoted_line(line: &str) -> Option<String> {
    // The name of a skill decides which one runs, so it is never guessed.
    if line.starts_with("name:") {
        return None;
    }
    let colon = line.find(": ")?;
    let key = line[..colon].trim_start();
    let key = key.strip_prefix("- ").unwrap_or(key).trim_start();
    let (head, value) = (&line[..colon + 2], line[colon + 2..].trim());
    let first = value.chars().next()?;
    if PATTERNS.contains(&key) {
        let items = value
            .strip_prefix('[')
            .and_then(|all| all.strip_suffix(']'));
        return match (first, items) {
            ('*', _) => Some(format!("{head}{}", in_quotes(value))),
            (_, Some(items)) => Some(format!("{head}[{}]", quoted_patterns(items))),
            _ => None,
        };
    }
    if !PROSE.contains(&key) {
        return None;
    }
    let colon_within = value.contains(": ") || value.ends_with(':');
    let quoted = match first {
        '"' | '\'' => quoted_again(value, first)?,
        '|' | '>' | '{' => return None,
        '[' | '*' | '@' | '`' | '&' | '%' | '!' => in_quotes(value),
        _ if colon_within => in_quotes(value),
        _ => return None,
    };
    Some(format!("{head}{quoted}"))
}

fn in_quotes(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{escaped}\"")
}

/// Items between commas, each in quotes; a comma between braces belongs to its pattern.
fn quoted_patterns(items: &str) -> String {
    let mut depth = 0_usize;
    let divides = |character: char| {
        match character {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && character == ','
    };
    let quoted = items.split(divides).map(str::trim).map(|item| {
        if item.starts_with(['"', '\'']) {
            item.to_owned()
        } else {
            in_quotes(item)
        }
    });
    quoted.collect::<Vec<_>>().join(", ")
}

/// Quotes a value anew whose quotes end before it does: `"say "it" now"`, `"it" is said`.
fn quoted_again(value: &str, sign: char) -> Option<String> {
    let signs = signs_of(value, sign);
    let (&second, &last) = (signs.get(1)?, signs.last()?);
    let after = value[second + 1..].trim_start();
    if after.is_empty() || after.starts_with('#') {
        return None;
    }
    // Those around all of it are quotes where the next one opens others, or has none of its own.
    let opens = value[..second].ends_with(char::is_whitespace)
        || value[second + 1..].starts_with(char::is_alphanumeric);
    let around = last + 1 == value.len() && (opens || signs.len() % 2 == 1);
    if !around {
        return Some(in_quotes(value));
    }
    let inner = &value[1..last];
    if sign == '\'' {
        return Some(format!(
            "'{}'",
            inner.replace("''", "'").replace('\'', "''")
        ));
    }
    let mut text = inner.to_owned();
    for at in signs[1..signs.len() - 1].iter().rev() {
        text.insert(at - 1, '\\');
    }
    Some(format!("\"{text}\""))
}

/// Where a quoting sign stands that is not escaped.
fn signs_of(value: &str, sign: char) -> Vec<usize> {
    let mut signs = Vec::new();
    let mut characters = value.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        let doubled = sign == '\'' && at > 0 && character == sign;
        let escapes = character == '\\' && sign == '"';
        if escapes || (doubled && characters.peek().is_some_and(|(_, next)| *next == sign)) {
            characters.next();
        } else if character == sign {
            signs.push(at);
        }
    }
    signs
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
            ("  name: @me", Some("  name: \"@me\"")),
            ("  name: plain", None),
            ("name: @me", None),
            ("name: \"quoted\": x", None),
            ("mutating: a: b", None),
            ("command: a: b", None),
            (
                "  name: \"quoted\": x",
                Some("  name: \"\\\"quoted\\\": x\""),
            ),
            (
                "description: \"Use when asked \"do it\" now\"",
                Some("description: \"Use when asked \\\"do it\\\" now\""),
            ),
            (
                "description: \"It is 6\" or \\\"long\\\"\"",
                Some("description: \"It is 6\\\" or \\\"long\\\"\""),
            ),
            (
                "description: \"Now\" or \"then\"",
                Some("description: \"\\\"Now\\\" or \\\"then\\\"\""),
            ),
            (
                "description: 'Use when it's asked'",
                Some("description: 'Use when it''s asked'"),
            ),
            ("description: \"whole\" # comment", None),
            ("description: \"open", None),
            (
                "globs: **/*.ts,**/*.tsx",
                Some("globs: \"**/*.ts,**/*.tsx\""),
            ),
            (
                "paths: [**/*.{a,b}, \"*.c\"]",
                Some("paths: [\"**/*.{a,b}\", \"*.c\"]"),
            ),
            ("globs: src/*.ts", None),
            ("allowed-tools: \"a \"b\" c\"", None),
            ("allowed-tools: *", None),
            ("name:", None),
        ];
        for (line, expected) in table {
            assert_eq!(quoted_line(line).as_deref(), expected, "{line}");
        }
    }
}
