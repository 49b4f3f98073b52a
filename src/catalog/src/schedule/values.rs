//! How words, flags and alternatives of a schedule are read.

use crate::keys::suggest;
use crate::report::Report;
use crate::view::View;

/// The value of the one of several keys of equal meaning that is written; two of them contradict.
pub(super) fn one_of<'a>(map: View<'a>, keys: &[&str], report: &mut Report) -> Option<View<'a>> {
    let mut found = keys
        .iter()
        .filter_map(|key| Some((*key, map.written(key)?)));
    let (first, view) = found.next()?;
    if let Some((second, other)) = found.next() {
        contradiction(
            other,
            format!("`{first}` and `{second}` mean the same"),
            &format!("keep `{first}`"),
            report,
        );
    }
    Some(view)
}

/// Says that two keys, or a key and its value, do not go together.
pub(super) fn contradiction(view: View<'_>, message: String, hint: &str, report: &mut Report) {
    report.error("schedule-policy", view.key_place(), message, hint);
}

/// A word of a fixed set; `-` and blanks count as `_`, case does not matter.
pub(super) fn word<T: Copy>(
    view: View<'_>,
    what: &str,
    words: &[(&str, T)],
    report: &mut Report,
) -> Option<T> {
    let text = view.filled_text(what, report)?;
    let wanted = text.trim().to_lowercase().replace(['-', ' '], "_");
    if let Some((_, value)) = words.iter().find(|(name, _)| *name == wanted) {
        return Some(*value);
    }
    let names: Vec<&str> = words.iter().map(|(name, _)| *name).collect();
    let hint = suggest(&wanted, &names).map_or_else(
        || format!("write {}", listed(&names)),
        |name| format!("did you mean `{name}`?"),
    );
    let message = format!("`{what}: {}` is not known", shown(&text));
    report.error("unknown-value", view.place(), message, &hint);
    None
}

/// `a`, `b` or `c`.
fn listed(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.as_slice() {
        [others @ .., last] if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => quoted.concat(),
    }
}

/// As much of a text as belongs into a message.
pub(super) fn shown(text: &str) -> String {
    text.trim()
        .chars()
        .take(64)
        .flat_map(char::escape_debug)
        .collect()
}
