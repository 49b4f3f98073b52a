//! The rules of the source tree that no compiler holds. `docs/dev/architecture.md` says why each is there.
//!
//! Every rule looks at all files and reports every violation at once, as `file:line: what`.
#![expect(
    clippy::unwrap_used,
    clippy::case_sensitive_file_extension_comparisons,
    reason = "what cannot be read fails the rule that reads it; every name here is lower case"
)]

#[path = "tidy/circles.rs"]
mod circles;
#[path = "tidy/code.rs"]
mod code;
#[path = "tidy/paths.rs"]
mod paths;
#[path = "tidy/planted.rs"]
mod planted;
#[path = "tidy/prose.rs"]
mod prose;
#[path = "tidy/rooms.rs"]
mod rooms;
#[path = "tidy/source.rs"]
mod source;
#[path = "tidy/tree.rs"]
mod tree;

use source::Token;

/// Collects violations and fails with all of them.
#[derive(Default)]
pub(crate) struct Violations(Vec<String>);

impl Violations {
    pub(crate) fn add(&mut self, path: &str, line: usize, what: impl std::fmt::Display) {
        self.0.push(format!("{path}:{line}: {what}"));
    }

    pub(crate) fn none(self) {
        let count = self.0.len();
        assert!(count == 0, "{count} violations:\n{}\n", self.0.join("\n"));
    }
}

/// Every place where `pattern` stands in `tokens`, as its line.
pub(crate) fn places<'a>(
    tokens: &'a [Token],
    pattern: &'a [&'a str],
) -> impl Iterator<Item = usize> + 'a {
    tokens
        .windows(pattern.len())
        .filter(|window| {
            window
                .iter()
                .map(|token| token.text.as_str())
                .eq(pattern.iter().copied())
        })
        .map(|window| window[0].line)
}
