//! What the inside of a Handlebars tag names.

use super::names::{Lookup, Name, Names};
use super::problem::TextProblem;
use std::ops::Range;

/// The same text serves all attempts: a destination is leased and a message written once for the run.
pub(super) fn attempt_in_text(range: Range<usize>) -> TextProblem {
    TextProblem::error(
        "attempt_in_text",
        range,
        "the attempt number is not available here, because this text is used for all attempts",
        "remove it; use `{run}` to distinguish runs, and `{attempt}` only in the command",
    )
}

/// Whether the inside of a tag means the number of the attempt. Helpers take a name that does not exist
/// for nothing, so leaving it out of what they see is not enough.
pub(super) fn names_the_attempt(tag: &str, names: &Names) -> bool {
    if tag.trim_start_matches(['{', '~']).starts_with('!') {
        return false;
    }
    // Every other piece between quotes is a text.
    let outside = tag.split(['"', '\'']).step_by(2);
    let mut words = outside.flat_map(|part| part.split(|c: char| " \t\n(){}~=|#^&".contains(c)));
    let alone = match names.resolve("attempt") {
        (Lookup::One(index), _) => names.entries()[index].is_attempt(),
        (Lookup::Several(_) | Lookup::Unknown, _) => false,
    };
    words.any(|word| {
        let (scope, last) = word.rsplit_once(['.', '/']).unwrap_or(("", word));
        let scope = scope.rsplit(['.', '/']).next().unwrap_or_default();
        last == "attempt"
            && (scope == "builtins" || alone && !matches!(scope, "inputs" | "outputs"))
    })
}

/// The names that the inside of a tag may mean.
pub(super) fn mentions(tag: &str, names: &Names) -> Vec<usize> {
    let words: Vec<&str> = tag
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-'))
        .filter(|w| !w.is_empty())
        .collect();
    let used = |n: &Name| words.contains(&n.name.as_str());
    let mut found: Vec<usize> = names
        .entries()
        .iter()
        .enumerate()
        .filter(|(_, n)| used(n))
        .map(|(i, _)| i)
        .collect();
    // A lookup by a computed name, or a loop over a whole scope, may reach any of them.
    if ["inputs", "outputs", "builtins", "lookup", "root"]
        .iter()
        .any(|w| words.contains(w))
    {
        found = (0..names.entries().len())
            .filter(|i| !names.entries()[*i].secret)
            .collect();
    }
    found
}
