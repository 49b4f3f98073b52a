//! Reads one file that may be a skill: its keys, and whether instructions follow.

use super::scan::{Candidate, Form, bytes_of};
use crate::dialect::{self, Keys, Origin};
use crate::document::{self, Document};
use crate::frontmatter::{looks_like_keys, of_markdown, of_worker_file, without_blank_lines};
use crate::model::Dialect;
use crate::open::text_of;
use crate::report::Report;
use crate::source::{Source, whole_file};
use crate::view::View;

/// Lines after which a skill is long.
const LINES: usize = 500;

/// Code of what is told of a skill that says nothing.
pub(super) const NO_BODY: &str = "empty-instructions";

/// A definition with its text.
pub(crate) struct Definition {
    /// Its keys.
    pub(crate) keys: Keys,
    /// What it says, never a template.
    pub(crate) body: String,
    /// The whole file.
    pub(crate) text: String,
    /// Its keys with their places.
    pub(crate) document: Document,
}

/// Reads a candidate; `None` when it is no skill that can be used, which is reported.
pub(crate) fn read(candidate: &Candidate, report: &mut Report) -> Option<Definition> {
    let bytes = bytes_of(candidate, report)?;
    of_bytes(candidate, bytes, report)
}

/// Reads what a candidate holds.
pub(crate) fn of_bytes(
    candidate: &Candidate,
    bytes: Vec<u8>,
    report: &mut Report,
) -> Option<Definition> {
    let definition = parsed(candidate, bytes, report)?;
    if definition.body.is_empty() {
        let listed = candidate.root.dialect == Dialect::Agent;
        let effect = if listed {
            "tells a model nothing but its description"
        } else {
            "is left out"
        };
        report.warning(
            NO_BODY,
            whole_file(&candidate.shown),
            format!(
                "`{}` has no instructions and {effect}",
                definition.keys.name
            ),
            "write instructions below the frontmatter",
        );
        if !listed {
            return None;
        }
    }
    report_files(candidate, &definition.keys, report);
    let lines = lines_of(&definition.text);
    if lines > LINES {
        report.note(
            "skill-long",
            whole_file(&candidate.shown),
            format!("{lines} lines: all of them are given to a model each time"),
            "move details into files next to it",
        );
    }
    Some(definition)
}

/// Keys and body, which may be empty.
fn parsed(candidate: &Candidate, bytes: Vec<u8>, report: &mut Report) -> Option<Definition> {
    let text = text_of(&candidate.shown, bytes, report)?;
    let origin = Origin {
        dialect: candidate.root.dialect,
        stem: &candidate.stem,
        name_optional: candidate.root.names_by_directory(),
        yaml: candidate.form == Form::Yaml,
    };
    let (document, body) = match candidate.form {
        Form::Yaml => (yaml(&candidate.shown, &text, report)?, ""),
        Form::Directory | Form::Page => markdown(&candidate.shown, &text, report)?,
    };
    let keys = dialect::read(View::root(&document.source, &document.root), origin, report)?;
    let own = keys.instructions.as_deref().unwrap_or_default();
    let body = [body, own]
        .map(without_blank_lines)
        .into_iter()
        .find(|text| !text.is_empty())
        .unwrap_or_default()
        .to_owned();
    Some(Definition {
        keys,
        body,
        text,
        document,
    })
}

/// Ends of lines. Counted in bytes first: so the compiler takes many at once, and this is done for every skill.
fn lines_of(text: &str) -> usize {
    let pieces = text.as_bytes().chunks(usize::from(u8::MAX));
    pieces
        .map(|piece| {
            usize::from(
                piece
                    .iter()
                    .map(|byte| u8::from(*byte == b'\n'))
                    .sum::<u8>(),
            )
        })
        .sum()
}

/// Says which listed files cannot be loaded.
fn report_files(candidate: &Candidate, keys: &Keys, report: &mut Report) {
    let directory = candidate.inner.rsplit_once('/').map(|(before, _)| before);
    for file in keys.files.iter().flatten() {
        if candidate.form != Form::Directory {
            report.warning(
                "skill-file-refused",
                file.place.clone(),
                format!("`{}`: a skill of one file has no other files", file.path),
                "make it a directory with `SKILL.md`",
            );
            continue;
        }
        let path = directory.map_or_else(
            || file.path.clone(),
            |directory| format!("{directory}/{}", file.path),
        );
        let found = super::files::covered(&file.path)
            .map_err(|why| format!("`{}` {why}", file.path))
            .and_then(|()| {
                let found = candidate.base.find_file(&path);
                found.map_err(|refusal| refusal.to_string())
            });
        if let Err(why) = found {
            report.warning(
                "skill-file-missing",
                file.place.clone(),
                format!("a listed file cannot be loaded: {why}"),
                "create the file or correct the path",
            );
        }
    }
}

/// Whether all lines of a text are keys of a skill, their values, or comments.
fn is_frontmatter(text: &str) -> bool {
    let is_line = |line: &str| {
        let key = line.split_once(':').map_or("", |(key, _)| key);
        let is_key = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        line.trim().is_empty()
            || line.starts_with([' ', '-', '#'])
            || !key.is_empty() && key.chars().all(is_key)
    };
    looks_like_keys(text.lines().next().unwrap_or_default()) && text.lines().all(is_line)
}

/// Frontmatter and body of a page.
fn markdown<'t>(shown: &str, text: &'t str, report: &mut Report) -> Option<(Document, &'t str)> {
    let head = &text[..head_length(text)];
    let source = Source::new(shown, head.to_owned());
    let Some((yaml, body)) = of_markdown(&source, report).ok()? else {
        let head = text.split_once("\n---").map(|(head, _)| head);
        if head.is_some_and(is_frontmatter) {
            report.error(
                "no-frontmatter",
                source.place(0),
                "the first line `---` is missing, and the file is left out".to_owned(),
                "begin the file with a line `---`",
            );
            return None;
        }
        let late = text.split("\n---").skip(1).any(looks_like_keys);
        let (message, hint) = if late {
            (
                "text precedes the frontmatter, and the file is left out",
                "move the text above the first line `---` below the second one",
            )
        } else {
            (
                "the file has no frontmatter and is left out",
                "begin it with the lines `---`, `name: …`, `description: …` and `---`",
            )
        };
        report.warning("no-frontmatter", source.place(0), message.to_owned(), hint);
        return None;
    };
    let document = document::read(source, yaml, report)?;
    Some((document, text.get(body..).unwrap_or_default()))
}

/// Length of a text up to its body, where it begins with a frontmatter; else all of it.
pub(super) fn head_length(text: &str) -> usize {
    let mut at = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        at += line.len();
        let mark = line.trim_start_matches('\u{feff}').trim_end() == "---";
        if number == 0 && !mark {
            return text.len();
        }
        if number > 0 && mark {
            return at;
        }
    }
    text.len()
}

fn yaml(shown: &str, text: &str, report: &mut Report) -> Option<Document> {
    let source = Source::new(shown, text.to_owned());
    let (yaml, body) = of_worker_file(&source, report).ok()?;
    if body.is_some() {
        report.error(
            "multiple-documents",
            source.whole(),
            "text follows the definition".to_owned(),
            "move it into `instructions: |`",
        );
        return None;
    }
    document::read(source, yaml, report)
}
