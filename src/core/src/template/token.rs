//! What a placeholder looks like in any text, before it is known where it stands.

use super::names::{Lookup, Names, Projection, Reference, Scope, is_name};
use std::ops::Range;

/// Longest text between two braces that can be a placeholder, in bytes.
const INSIDE_BYTES_MAX: usize = 160;

/// Longest run of braces that is looked at.
const BRACES_MAX: usize = 4;

/// A placeholder, or something near it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) range: Range<usize>,
    pub(super) what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum What {
    /// A known name.
    Known(Reference),
    /// A name that stands for several things.
    Several(Vec<usize>),
    /// `{{name}}` with a known name.
    Handlebars,
    /// Not a known name, but one slip away from this one.
    Near(String),
}

/// The placeholder in braces that begins at byte `at`.
pub(super) fn braces(text: &str, at: usize, names: &Names) -> Option<Token> {
    let bytes = text.as_bytes();
    if bytes.get(at) != Some(&b'{') || (at > 0 && bytes.get(at - 1) == Some(&b'$')) {
        return None;
    }
    if bytes.get(at + 1) == Some(&b'{') {
        return handlebars(text, at, names);
    }
    let (inside, end) = enclosed(text, at + 1, b'}')?;
    let range = at..end;
    let (lookup, projection) = names.resolve(inside);
    if text[..at].ends_with("${") && lookup != Lookup::Unknown {
        // `${{x}}` is what other systems write: the value would land inside braces of the shell.
        return Some(Token {
            range,
            what: What::Handlebars,
        });
    }
    let what = match lookup {
        Lookup::One(index) => What::Known(Reference { index, projection }),
        Lookup::Several(all) => What::Several(all),
        Lookup::Unknown => {
            let (prefix, name) = match inside.split_once('.') {
                None => ("", inside),
                Some((scope, name)) if Scope::of_word(scope).is_some() => (scope, name),
                Some(_) => return None,
            };
            let near = names.near_miss(name).filter(|_| is_name(name))?;
            let dot = if prefix.is_empty() { "" } else { "." };
            What::Near(format!("{prefix}{dot}{near}"))
        }
    };
    Some(Token { range, what })
}

/// `{word}` at byte `at` of a word that no name is, unless what stands around it makes it syntax of something else:
/// `HEAD@{upstream}`, `v1^{commit}`, `%{http_code}`, `{{word}}`, `{fd}>file`.
pub(super) fn unknown(text: &str, at: usize) -> Option<Range<usize>> {
    let before = text.get(..at)?.chars().next_back();
    let is_syntax = before.is_some_and(|one| "@%^$\\{".contains(one));
    let (inside, end) = enclosed(text, at + 1, b'}').filter(|_| !is_syntax)?;
    let behind = text.get(end..)?.starts_with(['}', '<', '>']);
    let of_scope = inside.split_once('.');
    let of_scope = of_scope.filter(|(scope, _)| Scope::of_word(scope).is_some());
    let name = of_scope.map_or(inside, |(_, name)| name);
    let is_word = is_name(name) && name.len() > 1;
    (is_word && !behind).then_some(at..end)
}

/// Whether some word in braces may have been meant as a placeholder.
pub(super) fn has_unknown(text: &str) -> bool {
    let mut opening = text.match_indices('{');
    opening.any(|(at, _)| unknown(text, at).is_some())
}

/// The placeholder in angle brackets that begins at byte `at`: outputs only.
pub(super) fn angles(text: &str, at: usize, names: &Names) -> Option<Token> {
    if text.as_bytes().get(at) != Some(&b'<') {
        return None;
    }
    let (inside, end) = enclosed(text, at + 1, b'>')?;
    let outputs = |i: &usize| names.entries()[*i].scope == Scope::Output;
    let index = match names.lookup(None, inside) {
        Lookup::One(index) => Some(index).filter(outputs)?,
        Lookup::Several(all) => {
            let mut fitting = all.iter().copied().filter(outputs);
            let first = fitting.next()?;
            if all.len() > 1 {
                return Some(Token {
                    range: at..end,
                    what: What::Several(all),
                });
            }
            first
        }
        Lookup::Unknown => return None,
    };
    let what = What::Known(Reference {
        index,
        projection: Projection::Value,
    });
    Some(Token {
        range: at..end,
        what,
    })
}

/// Every placeholder in `text`, wherever it stands.
pub(super) fn mentions(text: &str, names: &Names) -> Vec<Token> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(step) = text.get(at..).and_then(|rest| rest.find(['{', '<'])) {
        at += step;
        let token = braces(text, at, names).or_else(|| angles(text, at, names));
        at = token.as_ref().map_or(at + 1, |t| t.range.end);
        found.extend(token);
    }
    found
}

fn handlebars(text: &str, at: usize, names: &Names) -> Option<Token> {
    let rest = text.get(at..)?;
    // Long runs of braces are nothing of ours, and are not counted to their end.
    let run = |from: usize, brace: u8| {
        rest.bytes()
            .skip(from)
            .take(BRACES_MAX)
            .take_while(|b| *b == brace)
            .count()
    };
    let open = run(0, b'{');
    if open == BRACES_MAX {
        return None;
    }
    let close = rest
        .bytes()
        .take(INSIDE_BYTES_MAX)
        .position(|b| b == b'}')?;
    if rest.as_bytes().get(close + 1) != Some(&b'}') {
        return None;
    }
    let inside = rest.get(open..close)?.trim_matches([' ', '\t', '~']);
    let (lookup, _) = names.resolve(inside);
    if lookup == Lookup::Unknown {
        return None;
    }
    Some(Token {
        range: at..at + close + run(close, b'}'),
        what: What::Handlebars,
    })
}

/// The text from `from` to the next `close`, if it can be the inside of a placeholder, and the
/// offset behind the closing byte.
fn enclosed(text: &str, from: usize, close: u8) -> Option<(&str, usize)> {
    let bytes = text.as_bytes().get(from..)?;
    let length = bytes
        .iter()
        .take(INSIDE_BYTES_MAX)
        .position(|&b| !(b.is_ascii_alphanumeric() || b == b'_' || b == b'-' || b == b'.'))?;
    if length == 0 || bytes[length] != close {
        return None;
    }
    Some((text.get(from..from + length)?, from + length + 1))
}
