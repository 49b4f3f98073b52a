//! What the YAML parser refuses, in the words of whoever wrote the file.

pub(crate) mod lines;

use super::source::Source;

/// Words of the parser, what is wrong where it says one of them, and what to do. The first that fits counts.
const KNOWN: &[(&[&str], &str, &str)] = &[
    (
        &["mapping values are not allowed"],
        "a value without quotes contains a colon followed by a space",
        "put the value in double quotes; if the line is a key of its own, begin it in the column of the other keys",
    ),
    (
        &["anchor", "alias", "alphabetic"],
        "a value without quotes begins with `*` or `&`, which YAML reads as an alias or an anchor",
        "quote values that begin with `*` or `&`: put the value in double quotes",
    ),
    (
        &["cannot start any token"],
        "a value without quotes begins with a sign that needs them, such as `@`, `%` or a backtick",
        "quote values that begin with `@`, `%` or a backtick: put the value in double quotes",
    ),
    (
        &["control characters"],
        "an invisible control character is in the text",
        "remove the control character, or type the line again",
    ),
    (
        &["end of stream", "document indicator"],
        "a quote is opened above and never closed",
        "close it at the end of the value",
    ),
    (
        &["escape", "hexdecimal", "hexadecimal"],
        "a backslash in double quotes begins a code that is unknown",
        "write two backslashes, or single quotes around the value",
    ),
    (
        &["expected ',' or ']'"],
        "a list that `[` opens has no `]`, or lacks a comma",
        "write `[one, two]`, or put the value in double quotes when it is text",
    ),
    (
        &["expected ',' or '}'"],
        "a value that begins with `{` has no `}`, or lacks a comma",
        "write `{one: 1, two: 2}`, or put the value in double quotes when it is text",
    ),
    (
        &["expected ':'"],
        "a line is neither `key: value` nor the rest of a value",
        "add the colon and a space after the key, or indent the line below its key",
    ),
    (
        &["expected '-' indicator", "block sequence entries"],
        "a list and other lines are mixed",
        "begin each item of the list with `- `, all in the same column below its key",
    ),
    (
        &["expected key", "more than one document"],
        "this line does not begin in the column of the lines around it",
        "begin each key of a map in the same column",
    ),
];

/// What an unclosed quote is called at its own place, and what to do.
pub(crate) const UNCLOSED_QUOTE: (&str, &str) = (
    "a quote is opened here and never closed",
    "close it at the end of the value",
);

/// Returns the offset of a quote that begins a value and is not closed in its line, although the text that it encloses
/// ends nowhere, or ends in front of other text. The parser only reports the place where it noticed.
pub(crate) fn unclosed_quote(yaml: &str) -> Option<usize> {
    let mut rest = 0;
    // The indentation of a key whose value is a block of literal text.
    let mut literal = None;
    while let Some(line) = yaml[rest..].split_inclusive('\n').next() {
        let (start, text) = (rest, line.trim_end());
        rest += line.len();
        let indentation = text.len() - text.trim_start().len();
        if text.is_empty() || literal.is_some_and(|of| indentation > of) {
            continue;
        }
        literal = None;
        if text.trim_start().starts_with('#') {
            continue;
        }
        let Some(at) = value_at(text) else { continue };
        let value = &text[at..];
        if value.starts_with(['|', '>']) {
            literal = Some(indentation);
        } else if value.starts_with(['"', '\'']) {
            let opened = start + at;
            let Some(closed) = closing_quote(&yaml[opened..]).map(|length| opened + length) else {
                return Some(opened);
            };
            let after = yaml[closed..].lines().next().unwrap_or_default().trim();
            let ends = after.is_empty() || after.starts_with(['#', ':']);
            if closed > start + text.len() {
                if !ends {
                    return Some(opened);
                }
                // The next line that is looked at is the one after the end of this value.
                let line_end = yaml[closed..]
                    .find('\n')
                    .map_or(yaml.len(), |at| closed + at + 1);
                rest = line_end;
            }
        }
    }
    None
}

/// Returns where the value begins in a line of the form `key: value` or `- value`.
fn value_at(line: &str) -> Option<usize> {
    let mut at = line.len() - line.trim_start().len();
    while let Some(item) = line[at..].strip_prefix("- ") {
        at = line.len() - item.trim_start().len();
    }
    let is_quoted = line[at..].starts_with(['"', '\'']);
    let value = match line[at..].find(": ") {
        Some(colon) if !is_quoted => at + colon + 2,
        _ => at,
    };
    let value = line.len() - line[value..].trim_start().len();
    (value < line.len()).then_some(value)
}

/// Returns the length of the quoted text that `text` begins with, with both quotes; `None` if it is not closed.
fn closing_quote(text: &str) -> Option<usize> {
    let quote = text.chars().next()?;
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' if quote == '"' => drop(characters.next()),
            '\'' if quote == '\'' && characters.peek().is_some_and(|(_, next)| *next == '\'') => {
                characters.next();
            }
            _ if character == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

const TAB: (&str, &str) = (
    "a tab is used where only spaces are allowed",
    "indent with spaces",
);

const UNKNOWN: (&str, &str) = (
    "the line is not written as `key: value`",
    "check indentation, brackets and quotes in this line and the one before",
);

/// Which of [`KNOWN`] the sign at the place tells too, where nothing before it fits.
const SIGN: usize = 2;

/// What is wrong and what to do, from what the parser says and where it stands. Neither repeats a value: it may be
/// a secret.
pub(crate) fn explain(
    source: &Source,
    offset: Option<usize>,
    message: &str,
) -> (&'static str, String) {
    let character = offset.and_then(|at| source.text().get(at..)?.chars().next());
    let line = offset.map_or("", |at| source.line(source.line_index(at)));
    let indentation = &line[..line.len() - line.trim_start().len()];
    let signed = matches!(character, Some('@' | '`' | '%'));
    let fits = |(at, (words, ..)): &(usize, &(&[&str], &str, &str))| {
        words.iter().any(|word| message.contains(word)) || (*at == SIGN && signed)
    };
    let (plain, hint) = if indentation.contains('\t') || character == Some('\t') {
        TAB
    } else {
        let known = KNOWN.iter().enumerate().find(fits);
        known.map_or(UNKNOWN, |(_, (_, plain, hint))| (*plain, *hint))
    };
    let key = line
        .split_once(": ")
        .map(|(key, _)| key.trim().trim_start_matches("- "));
    let plain_key = |key: &&str| {
        !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || "_-".contains(c))
    };
    let named = key
        .filter(plain_key)
        .map(|key| hint.replacen("put the value", &format!("put the value of `{key}`"), 1));
    (plain, named.unwrap_or_else(|| hint.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::unclosed_quote;

    #[test]
    fn an_unclosed_quote_is_found_where_it_is_opened() {
        let table = [
            ("a: \"b\nc: d\n", Some(3)),
            ("a: 'b\nc: 'd'\n", Some(3)),
            ("- a: 1\n  b: \"c\n  d: \"e f\"\n", Some(12)),
            ("- \"a\n- b\n", Some(2)),
            ("a: \"b \\\" c\"\nd: 'e''f'\n", None),
            ("a: \"b\n  c\"\nd: \"e\n", Some(14)),
            ("a: |\n  b: \"c\n# d: \"e\nf: 'g\n", Some(24)),
            ("\"a\": b\n", None),
            ("a: b \"c\n", None),
            ("", None),
        ];
        for (yaml, expected) in table {
            assert_eq!(unclosed_quote(yaml), expected, "{yaml:?}");
        }
    }
}
