//! One problem as compilers show them: what, where, the line with a caret, what to do.

use std::ops::Range;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use super::line::{is_hidden, legible};
use crate::model::{Problem, Severity};

/// Width of the source that is shown where no terminal says.
const PLAIN_WIDTH: usize = 140;

/// Characters of a source line that are shown; a longer one is shown around its caret.
const SOURCE_CHARS_MAX: usize = 1_000;

/// The problem for a person, ending in an empty line. `source` is the line that it stands on.
pub(crate) fn show(
    problem: &Problem,
    source: Option<&str>,
    color: bool,
    width: Option<usize>,
) -> String {
    let renderer = if color {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    let renderer = renderer
        .decor_style(DecorStyle::Ascii)
        .term_width(width.unwrap_or(PLAIN_WIDTH));
    let level = match problem.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let message = legible(&problem.message);
    let path = legible(&problem.place.path);
    let code = legible(&problem.code);
    let hint = problem.hint.as_deref().map(legible);
    let line = usize::try_from(problem.place.line).unwrap_or(0);
    let window = source
        .filter(|_| line > 0)
        .map(|text| Window::of(text, problem.place.column));

    let title = level.primary_title(message).id(code);
    let mut group: Group<'_> = match &window {
        Some(window) => title.element(
            Snippet::source(window.text.as_str())
                .line_start(line)
                .path(path.clone())
                .annotation(AnnotationKind::Primary.span(window.span.clone())),
        ),
        None if line > 0 => title.element(Origin::path(path.clone()).line(line)),
        None => title.element(Origin::path(path.clone())),
    };
    if let Some(hint) = hint {
        group = group.element(Level::HELP.with_name("hint").message(hint));
    }
    renderer.render(&[group]) + "\n\n"
}

/// The part of a line that is shown, and what of it is meant, in bytes.
struct Window {
    text: String,
    span: Range<usize>,
}

impl Window {
    fn of(source: &str, column: u32) -> Window {
        // One for one, so that columns stay: what the renderer does not replace itself.
        let shown = |c: char| {
            if is_hidden(c) && c != '\t' {
                '\u{fffd}'
            } else {
                c
            }
        };
        let column = usize::try_from(column).unwrap_or(usize::MAX);
        let Some(at) = column.checked_sub(1) else {
            let text: String = source
                .trim_end()
                .chars()
                .take(SOURCE_CHARS_MAX)
                .map(shown)
                .collect();
            let from = text.len() - text.trim_start().len();
            return Window {
                span: from..text.len(),
                text,
            };
        };
        // A line of megabytes is cut well before the caret; the column then counts from there.
        let skipped = at.saturating_sub(SOURCE_CHARS_MAX / 2);
        let text: String = source
            .chars()
            .skip(skipped)
            .take(SOURCE_CHARS_MAX)
            .map(shown)
            .collect();
        let mut bounds = text
            .char_indices()
            .map(|(at, _)| at)
            .chain([text.len()])
            .skip(at - skipped);
        let from = bounds.next().unwrap_or(text.len());
        let rest = text.get(from..).unwrap_or_default();
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
        let quoted = quote.and_then(|quote| Some(rest.get(1..)?.find(quote)? + 2));
        let word = quoted
            .or_else(|| rest.find(|c: char| c.is_whitespace() || ",:]}\"'`".contains(c)))
            .filter(|end| *end > 0)
            .unwrap_or_else(|| {
                rest.chars().next().map_or(0, |first| {
                    if first.is_whitespace() || ",:]}\"'`".contains(first) {
                        first.len_utf8()
                    } else {
                        rest.len()
                    }
                })
            });
        Window {
            span: from..from + word,
            text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Place;

    fn problem(line: u32, column: u32) -> Problem {
        Problem {
            code: "key-unknown".to_owned(),
            severity: Severity::Warning,
            place: Place {
                path: "workers/a/worker.yaml".into(),
                line,
                column,
            },
            message: "`descriptipn` is not a known key".to_owned(),
            hint: Some("did you mean `description`?".to_owned()),
            worker: None,
            skill: None,
        }
    }

    #[test]
    fn the_caret_stands_under_what_is_meant() {
        let shown = show(&problem(4, 3), Some("  descriptipn: \"x\""), false, None);
        xtest::assert_text!(shown, @r#"
        warning[key-unknown]: `descriptipn` is not a known key
         --> workers/a/worker.yaml:4:3
          |
        4 |   descriptipn: "x"
          |   ^^^^^^^^^^^
          |
          = hint: did you mean `description`?
        "#);
    }

    #[test]
    fn a_file_or_a_line_may_be_meant_as_a_whole() {
        xtest::assert_text!(show(&problem(0, 0), None, false, None), @r"
        warning[key-unknown]: `descriptipn` is not a known key
        --> workers/a/worker.yaml
         = hint: did you mean `description`?
        ");
        xtest::assert_text!(show(&problem(7, 0), Some("  - a b"), false, None), @r"
        warning[key-unknown]: `descriptipn` is not a known key
         --> workers/a/worker.yaml:7:3
          |
        7 |   - a b
          |   ^^^^^
          |
          = hint: did you mean `description`?
        ");
        xtest::assert_text!(show(&problem(7, 2), None, false, None), @r"
        warning[key-unknown]: `descriptipn` is not a known key
        --> workers/a/worker.yaml:7
         = hint: did you mean `description`?
        ");
    }

    #[test]
    fn no_place_and_no_text_breaks_it() {
        let hostile = "\u{1b}[2J\t日本\u{9b}x\r\u{202e}\u{200d}";
        for source in ["", " ", "x", hostile, &"ä".repeat(100_000)] {
            for column in [0, 1, 2, 5, 999, 50_000, u32::MAX] {
                let shown = show(&problem(1, column), Some(source), false, Some(60));
                let obeyed = |c: char| c.is_control() && c != '\n';
                assert!(!shown.chars().any(obeyed), "{shown:?}");
                assert!(shown.len() < 10_000, "{}", shown.len());
            }
        }
        let mut named = problem(1, 1);
        named.message = hostile.to_owned();
        named.place.path = hostile.into();
        named.hint = Some(hostile.to_owned());
        let shown = show(&named, Some("x"), false, None);
        assert!(
            !shown
                .chars()
                .any(|c| c.is_control() && c != '\n' && c != '\t'),
            "{shown:?}"
        );
    }
}
