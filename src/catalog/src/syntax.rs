//! What the YAML parser refuses, in the words of whoever wrote the file.

use super::source::Source;

/// Words of the parser, what is wrong where it says one of them, and what to do. The first that fits counts.
const KNOWN: &[(&[&str], &str, &str)] = &[
    (
        &["mapping values are not allowed"],
        "a value without quotes holds a colon and a space, or the line is indented too far",
        "put the value in double quotes, or begin the line where the one before begins",
    ),
    (
        &["anchor", "alias", "alphabetic"],
        "a value without quotes begins with `*` or `&`, which refer to other values",
        "quote values that begin with `*` or `&`: put the value in double quotes",
    ),
    (
        &["cannot start any token"],
        "a value without quotes begins with a sign that needs them, such as `@`, `%` or a backtick",
        "quote values that begin with `@`, `%` or a backtick: put the value in double quotes",
    ),
    (
        &["control characters"],
        "an invisible control character stands in the text",
        "remove the control character, or type the line anew",
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
        "a line begins in another column than the keys around it, or text follows a closing quote",
        "begin each key in the same column, and write `\\\"` for a quote within double quotes",
    ),
];

const TAB: (&str, &str) = ("a tab stands where only spaces may", "indent with spaces");

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
