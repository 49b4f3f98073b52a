//! Refusals and failures: `error: …`, details, `hint: …`; with `--json` one object.

use serde_json::json;

use super::json::{JSON_VERSION, escaped};
use super::line::{ACTIVE, BAD, CARE, DIM, Line};
use crate::cli::exit::{Ending, Exit};
use crate::cli::io::Stream;
use crate::model::Diagnostic;

/// Details that are listed before the rest is only counted.
const DETAILS_SHOWN_MAX: usize = 50;

/// Writes a diagnostic for a person.
pub(crate) fn print(err: &mut Stream<'_>, diagnostic: &Diagnostic) {
    let mut lines = diagnostic.message.lines();
    let first = lines.next().unwrap_or_default();
    err.prose(Line::of(BAD, "error:").text(" ").text(first), 2);
    for line in lines {
        err.prose(Line::from("  ").text(line), 2);
    }
    for detail in diagnostic.details.iter().take(DETAILS_SHOWN_MAX) {
        err.prose(Line::of(DIM, "  - ").text(detail), 4);
    }
    let more = diagnostic.details.len().saturating_sub(DETAILS_SHOWN_MAX);
    if more > 0 {
        err.line(Line::of(DIM, format!("  and {more} more")));
    }
    for line in diagnostic.hints.iter().flat_map(|hint| hint.lines()) {
        hint(err, line);
    }
}

/// Writes one hint.
pub(crate) fn hint(err: &mut Stream<'_>, text: &str) {
    err.prose(Line::of(ACTIVE, "hint:").text(" ").text(text), 2);
}

/// Writes one warning.
pub(crate) fn warning(err: &mut Stream<'_>, text: &str) {
    err.prose(Line::of(CARE, "warning:").text(" ").text(text), 2);
}

/// Writes a diagnostic for a program.
pub(crate) fn print_json(err: &mut Stream<'_>, diagnostic: &Diagnostic) {
    let exit = Exit::of(Ending::Refused(diagnostic.kind));
    let object = json!({
        "json_version": JSON_VERSION,
        "error": {
            "kind": diagnostic.kind,
            "code": diagnostic.code,
            "message": diagnostic.message,
            "hints": diagnostic.hints,
            "details": diagnostic.details,
            "exit_code": exit.code(),
        }
    });
    err.raw(&(escaped(&object.to_string()) + "\n"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Kind;

    fn sample() -> Diagnostic {
        let mut diagnostic = Diagnostic::new(
            Kind::NotFound,
            "skill_unknown",
            "no skill `week\u{1b}[2Jly`\nin this workspace",
        )
        .hint("did you mean `repo-steward/weekly-changes`?")
        .hint("first\nsecond");
        diagnostic.details = (0..52).map(|n| format!("detail {n}")).collect();
        diagnostic
    }

    #[test]
    fn a_diagnostic_says_what_and_what_to_do() {
        let mut text = Vec::new();
        print(&mut Stream::new(&mut text, false, false), &sample());
        let text = String::from_utf8(text).unwrap();
        assert!(
            text.starts_with(
                "error: no skill `week\\x1b[2Jly`\n  in this workspace\n  - detail 0\n"
            )
        );
        assert!(text.ends_with(
            "  and 2 more\nhint: did you mean `repo-steward/weekly-changes`?\nhint: first\nhint: second\n"
        ));
    }

    #[test]
    fn a_diagnostic_is_one_object_for_programs() {
        let mut text = Vec::new();
        print_json(&mut Stream::new(&mut text, false, false), &sample());
        let value: serde_json::Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(value["error"]["exit_code"], 3);
        assert_eq!(value["error"]["kind"], "not_found");
        assert_eq!(String::from_utf8_lossy(&text).lines().count(), 1);
        assert!(!text.contains(&0x1b));
    }
}
