//! Placeholders in texts that no shell reads: arguments, paths, messages.

use super::names::{Kind, Names, Reference};
use super::problem::TextProblem;
use super::shell::{ambiguous, unknown};
use super::token::{self, Token, What};
use std::ops::Range;

/// A piece of such a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Segment {
    Text(String),
    Slot(Range<usize>, Reference),
    /// `{{ … }}`, as written.
    Handlebars(String),
}

/// What surrounds the placeholders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Setting {
    /// One argument of a command: `<output>` counts, Handlebars does not.
    Argument,
    /// A text of ours: Handlebars counts, `<output>` does not.
    Text,
}

/// Takes `text` apart. A backslash before a placeholder makes it plain text, and two of them are
/// one backslash before its value.
pub(super) fn segments(
    text: &str,
    names: &Names,
    setting: Setting,
) -> (Vec<Segment>, Vec<TextProblem>) {
    let mut cut = Cut {
        text,
        names,
        setting,
        done: Vec::new(),
        problems: Vec::new(),
    };
    let mut at = 0;
    let mut from = 0;
    while let Some(step) = text.get(at..).and_then(|rest| rest.find(['{', '<'])) {
        at += step;
        if setting == Setting::Text && text[at..].starts_with("{{") {
            let end = handlebars_end(text, at);
            cut.text(from..at);
            cut.done.push(Segment::Handlebars(text[at..end].to_owned()));
            (at, from) = (end, end);
            continue;
        }
        let Some(token) = cut.token(at) else {
            at += 1;
            continue;
        };
        let before = text[from..at].len() - text[from..at].trim_end_matches('\\').len();
        let known = matches!(token.what, What::Known(_));
        at = token.range.end;
        if !known {
            cut.unusable(&token);
            continue;
        }
        // Each pair of backslashes before a placeholder is one.
        cut.text(from..token.range.start - before);
        cut.push(&"\\".repeat(before / 2));
        if before % 2 == 1 {
            cut.text(token.range.clone());
        } else {
            cut.slot(token);
        }
        from = at;
    }
    cut.text(from..text.len());
    (cut.done, cut.problems)
}

/// The end of the Handlebars tag that begins at `at`.
fn handlebars_end(text: &str, at: usize) -> usize {
    let rest = &text[at..];
    let comment = rest.strip_prefix("{{~").or_else(|| rest.strip_prefix("{{"));
    let closing = if comment.is_some_and(|r| r.starts_with("!--")) {
        "--}}"
    } else {
        "}}"
    };
    let Some(close) = rest.find(closing).map(|i| i + closing.len()) else {
        return text.len();
    };
    let more = rest[close..].len() - rest[close..].trim_start_matches('}').len();
    at + close + more
}

struct Cut<'a> {
    text: &'a str,
    names: &'a Names,
    setting: Setting,
    done: Vec<Segment>,
    problems: Vec<TextProblem>,
}

impl Cut<'_> {
    fn token(&self, at: usize) -> Option<Token> {
        let braces = token::braces(self.text, at, self.names);
        if braces.is_some() || self.setting == Setting::Text {
            return braces;
        }
        token::angles(self.text, at, self.names)
    }

    fn push(&mut self, text: &str) {
        match self.done.last_mut() {
            _ if text.is_empty() => {}
            Some(Segment::Text(last)) => last.push_str(text),
            _ => self.done.push(Segment::Text(text.to_owned())),
        }
    }

    fn text(&mut self, range: Range<usize>) {
        self.push(self.text.get(range).unwrap_or_default());
    }

    fn slot(&mut self, token: Token) {
        let What::Known(reference) = token.what else {
            return;
        };
        let range = token.range;
        let before = range.start.checked_sub(1).map(|i| self.text.as_bytes()[i]);
        let angle = self.text.as_bytes()[range.start] == b'<';
        let fits = matches!(before, Some(b'=' | b'/')) || range == (0..self.text.len());
        if angle && !fits {
            self.problems.push(TextProblem::error(
                "ambiguous_angle_brackets",
                range.clone(),
                format!("`{}` is among other text", &self.text[range.clone()]),
                "write the name in braces, or a backslash before it for the text",
            ));
        }
        self.done.push(Segment::Slot(range, reference));
    }

    fn unusable(&mut self, token: &Token) {
        let range = token.range.clone();
        let written = &self.text[range.clone()];
        self.problems.push(match &token.what {
            What::Several(all) => {
                let scoped: Vec<_> = all.iter().map(|&i| self.names.scoped(i)).collect();
                ambiguous(range, written, &scoped)
            }
            What::Near(near) => unknown(range, written, near),
            What::Handlebars | What::Known(_) => TextProblem::error(
                "handlebars_in_argument",
                range,
                format!("`{written}` is Handlebars, which is not for commands"),
                format!(
                    "write `{{{}}}`",
                    written.trim_matches(['{', '}', ' ', '~', '\t'])
                ),
            ),
        });
    }
}

/// The problem of a list that stands among other text.
pub(super) fn list_needs_a_word(range: Range<usize>, written: &str) -> TextProblem {
    TextProblem::error(
        "list_needs_a_word",
        range,
        format!("`{written}` is a list, which is not one text"),
        "let it stand alone as an argument, or use `.json` or `.lines` for one text",
    )
}

/// Whether a reference is a list rather than one text.
pub(super) fn is_list(names: &Names, reference: Reference) -> bool {
    names.kind(reference) == Kind::List
}
