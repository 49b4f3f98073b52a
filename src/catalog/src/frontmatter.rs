//! Finds the YAML of a file: between `---` lines, or the whole of it.

use std::ops::Range;

use super::report::Report;
use super::source::Source;

/// Most bytes between the `---` lines of a Markdown file.
pub(crate) const FRONTMATTER_BYTES_MAX: usize = 64 * 1024;

/// How a file is divided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Division {
    /// No `---` opens it.
    Plain,
    /// YAML between two `---` lines and what follows.
    Front {
        /// The YAML.
        yaml: Range<usize>,
        /// First byte after the closing line.
        body: usize,
        /// Whether something other than blank lines stands before the opening line.
        comment: Option<usize>,
    },
    /// `---` opens it and nothing closes it; offset of the opening line.
    Unterminated(usize),
}

/// Divides a text; only the first line that is exactly `---` closes.
pub(crate) fn divide(source: &Source) -> Division {
    let lines = source.text().lines().count();
    let mut comment = None;
    let mut comment_end = 0;
    let mut opening = None;
    for line in 0..lines {
        let text = source.line(line).trim_start_matches('\u{feff}');
        let at = source.line_range(line).start;
        if at < comment_end {
            continue;
        }
        if is_mark(text) {
            opening = Some(line);
            break;
        }
        let trimmed = text.trim();
        let is_comment = trimmed.starts_with('#') || trimmed.starts_with("<!--");
        if is_comment {
            comment = comment.or(Some(at));
            // One that nothing closes is a comment of one line, so that the frontmatter is found all the same.
            if trimmed.starts_with("<!--") {
                let closing = source.text()[at..].find("-->");
                comment_end = closing.map_or(0, |before| at + before + "-->".len());
            }
        } else if !(trimmed.is_empty() || text.starts_with('%')) {
            break;
        }
    }
    let Some(opening) = opening else {
        return Division::Plain;
    };
    let start = source.line_range(opening + 1).start;
    for line in opening + 1..lines {
        if is_mark(source.line(line)) {
            let closing = source.line_range(line);
            let body = source.line_range(line + 1).start;
            return Division::Front {
                yaml: start..closing.start,
                body,
                comment,
            };
        }
    }
    Division::Unterminated(source.line_range(opening).start)
}

fn is_mark(line: &str) -> bool {
    line.trim_end() == "---"
}

/// The YAML of a Markdown file and where its body begins; `Err` when an error was reported.
pub(crate) fn of_markdown(
    source: &Source,
    report: &mut Report,
) -> Result<Option<(Range<usize>, usize)>, ()> {
    match divide(source) {
        Division::Plain => Ok(None),
        Division::Unterminated(at) => {
            // A rule under a heading is Markdown; only a file that begins with it is frontmatter.
            if source.text()[..at].contains('#') {
                return Ok(None);
            }
            report.error(
                "frontmatter-unterminated",
                source.place(at),
                "`---` opens a frontmatter that nothing closes".to_owned(),
                "write a line `---` after the last key",
            );
            Err(())
        }
        Division::Front {
            yaml,
            body,
            comment,
        } => {
            if yaml.len() > FRONTMATTER_BYTES_MAX {
                report.error(
                    "frontmatter-too-large",
                    source.place(yaml.start),
                    format!("the frontmatter has more than {FRONTMATTER_BYTES_MAX} bytes"),
                    "move long texts into the body",
                );
                return Err(());
            }
            if let Some(at) = comment {
                if !looks_like_keys(&source.text()[yaml.clone()]) {
                    return Ok(None);
                }
                report.warning(
                    "comment-before-frontmatter",
                    source.place(at),
                    "a comment precedes the frontmatter".to_owned(),
                    "begin the file with `---`",
                );
            }
            Ok(Some((yaml, body)))
        }
    }
}

/// A body without the blank lines around it. The indentation of its first line stays: it may make code of it.
pub(crate) fn without_blank_lines(body: &str) -> &str {
    let body = body.trim_end();
    let blank = body
        .split_inclusive('\n')
        .take_while(|line| line.trim().is_empty());
    let before: usize = blank.map(str::len).sum();
    &body[before..]
}

/// Whether a text between two rules is a frontmatter and not a part of a Markdown page.
pub(crate) fn looks_like_keys(yaml: &str) -> bool {
    yaml.lines().any(|line| {
        ["skill:", "id:", "name:", "description:"]
            .iter()
            .any(|key| line.starts_with(key))
    })
}

/// The YAML of a worker.yaml and the Markdown after it; `Err` when an error was reported.
pub(crate) fn of_worker_file(
    source: &Source,
    report: &mut Report,
) -> Result<(Range<usize>, Option<String>), ()> {
    let text = source.text();
    let start = if text.starts_with('\u{feff}') { 3 } else { 0 };
    let (yaml, body) = match divide(source) {
        Division::Front { yaml, body, .. } => (yaml, body),
        Division::Unterminated(_) => return Ok((start..text.len(), None)),
        Division::Plain => {
            let lines = text.lines().count();
            let Some(line) = (0..lines).find(|line| is_mark(source.line(*line))) else {
                return Ok((start..text.len(), None));
            };
            let mark = source.line_range(line);
            if text[mark.end..].trim().is_empty() {
                return Ok((start..mark.start, None));
            }
            report_second(source, mark.start, report);
            return Err(());
        }
    };
    let rest = &text[body..];
    if rest.trim().is_empty() {
        return Ok((yaml, None));
    }
    if is_definition(rest) {
        report_second(source, yaml.end, report);
        return Err(());
    }
    report.warning(
        "body-after-definition",
        source.place(body),
        "the text after `---` is taken as instructions".to_owned(),
        "move it into `instructions: |`",
    );
    Ok((yaml, Some(without_blank_lines(rest).to_owned())))
}

/// Whether what follows is YAML with keys of its own and not prose. A page may hold rules, so only
/// the part before the next `---` counts.
fn is_definition(rest: &str) -> bool {
    let length = rest
        .split_inclusive('\n')
        .take_while(|line| !is_mark(line))
        .map(str::len)
        .sum::<usize>();
    let first = rest.get(..length).unwrap_or(rest);
    matches!(super::tree::parse(first), Ok(super::tree::Tree::Map(pairs)) if pairs
        .iter()
        .all(|(key, _)| matches!(key, super::tree::Tree::Text(key) if !key.contains(' '))))
}

fn report_second(source: &Source, at: usize, report: &mut Report) {
    report.error(
        "multiple-documents",
        source.place(at),
        "a second document begins here".to_owned(),
        "keep one worker in a file",
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn front(text: &str) -> Division {
        divide(&Source::new("a.md", text.to_owned()))
    }

    #[test]
    fn the_first_closing_line_ends_it() {
        assert_eq!(
            front("---\r\na: 1\r\n---\r\nbody\n---\n"),
            Division::Front {
                yaml: 5..11,
                body: 16,
                comment: None
            }
        );
        assert_eq!(front("\n\n---\na: 1\n"), Division::Unterminated(2));
        assert_eq!(front("# title\n\ntext\n---\nx\n---\n"), Division::Plain);
        assert_eq!(front(""), Division::Plain);
        let directive = front("%YAML 1.2\n---\na: 1\n---\n");
        assert!(matches!(directive, Division::Front { comment: None, .. }));
    }
}
