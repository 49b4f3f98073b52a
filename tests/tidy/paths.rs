//! The paths that a file names, with the groups of its `use` declarations taken apart.

use super::source::Token;

/// One path, such as `crate::model::Kind`, as its segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) line: usize,
    pub(crate) segments: Vec<String>,
}

impl Named {
    /// Whether the path is `prefix` or lies below it.
    pub(crate) fn is_below(&self, prefix: &str) -> bool {
        let wanted: Vec<&str> = prefix.split("::").collect();
        self.segments.len() >= wanted.len()
            && self
                .segments
                .iter()
                .zip(&wanted)
                .all(|(one, other)| one == other)
    }

    /// The path as text.
    pub(crate) fn text(&self) -> String {
        self.segments.join("::")
    }
}

/// Every path of two segments or more, and every path of a `use`.
pub(crate) fn paths(tokens: &[Token]) -> Vec<Named> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at].text == "use" {
            at = tree(tokens, at + 1, &[], &mut found);
        } else if is_name(&tokens[at].text) {
            let line = tokens[at].line;
            let mut segments = vec![tokens[at].text.clone()];
            at += 1;
            while at + 1 < tokens.len() && tokens[at].text == "::" && is_name(&tokens[at + 1].text)
            {
                segments.push(tokens[at + 1].text.clone());
                at += 2;
            }
            if segments.len() > 1 {
                found.push(Named { line, segments });
            }
        } else {
            at += 1;
        }
    }
    found
}

/// Reads one tree of a `use` below `prefix`; returns the place behind it.
fn tree(tokens: &[Token], mut at: usize, prefix: &[String], found: &mut Vec<Named>) -> usize {
    let mut segments = prefix.to_vec();
    while let Some(token) = tokens.get(at) {
        match token.text.as_str() {
            "::" => at += 1,
            "{" => {
                at += 1;
                while tokens.get(at).is_some_and(|token| token.text != "}") {
                    at = tree(tokens, at, &segments, found);
                    if tokens.get(at).is_some_and(|token| token.text == ",") {
                        at += 1;
                    }
                }
                return at + 1;
            }
            "as" => at += 2,
            name if is_name(name) || name == "*" => {
                segments.push(name.to_owned());
                at += 1;
            }
            _ => break,
        }
    }
    // `use<'a>` bounds what a returned type captures and names no path.
    let last = at.checked_sub(1).and_then(|before| tokens.get(before));
    if let Some(token) = last.filter(|_| !segments.is_empty()) {
        found.push(Named {
            line: token.line,
            segments,
        });
    }
    at
}

fn is_name(text: &str) -> bool {
    text.chars()
        .next()
        .is_some_and(|c| c.is_alphabetic() || c == '_')
}
