//! A skill in a Markdown file of its own: `skill:` frontmatter, flat frontmatter, or none.

use super::document::{self, Document};
use super::frontmatter::{of_markdown, without_blank_lines};
use super::report::Report;
use super::source::Source;
use super::tree::Data;
use super::view::View;
use crate::model::Place;

/// A skill file as read.
#[derive(Debug)]
pub(crate) struct SkillFile {
    /// Path relative to the workspace.
    pub(crate) path: String,
    /// Its frontmatter, where it has one.
    document: Option<Document>,
    /// Whether the keys stand below `skill:`.
    wrapped: bool,
    /// Markdown after the frontmatter.
    pub(crate) body: String,
    /// First heading of a file without frontmatter.
    pub(crate) heading: Option<String>,
    /// First paragraph of the body.
    pub(crate) paragraph: Option<String>,
    /// The whole text, for the digest.
    pub(crate) text: String,
}

impl SkillFile {
    /// The keys of the skill.
    pub(crate) fn keys(&self) -> Option<View<'_>> {
        let document = self.document.as_ref()?;
        let root = View::root(&document.source, &document.root);
        if self.wrapped {
            root.get("skill")
        } else {
            Some(root)
        }
    }

    /// Keys that stand beside `skill:`.
    pub(crate) fn beside(&self) -> Option<View<'_>> {
        let document = self.document.as_ref().filter(|_| self.wrapped)?;
        Some(View::root(&document.source, &document.root))
    }

    /// Where the skill's definition stands.
    pub(crate) fn place(&self) -> Place {
        self.keys().map_or_else(
            || Place {
                path: self.path.as_str().into(),
                line: 1,
                column: 1,
            },
            |keys| keys.place(),
        )
    }

    /// The id that the path gives: the directory's name for `SKILL.md`, else the file's stem.
    pub(crate) fn stem(&self) -> &str {
        stem_of(&self.path)
    }
}

/// The id that a path gives.
pub(crate) fn stem_of(path: &str) -> &str {
    let mut parts = path.rsplit('/');
    let name = parts.next().unwrap_or(path);
    if name.eq_ignore_ascii_case("SKILL.md") {
        return parts.next().unwrap_or(name);
    }
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// Reads a skill file; `None` when an error was reported.
pub(crate) fn read(source: Source, report: &mut Report) -> Option<SkillFile> {
    let path = source.path().to_owned();
    let text = source.text().to_owned();
    let front = of_markdown(&source, report).ok()?;
    let Some((yaml, body_at)) = front else {
        let body = without_blank_lines(text.trim_start_matches('\u{feff}')).to_owned();
        return Some(SkillFile {
            path,
            document: None,
            wrapped: false,
            heading: heading(body.trim()),
            paragraph: paragraph(&body),
            body,
            text,
        });
    };
    let body = without_blank_lines(text.get(body_at..).unwrap_or_default()).to_owned();
    let document = document::read(source, yaml, report)?;
    let root = View::root(&document.source, &document.root);
    let Data::Map(_) = root.data() else {
        let message = format!("the frontmatter is {}, not a map of keys", root.kind());
        let hint = "write `skill:` with `id`, `name` and `description` below it";
        report.error("definition-shape", root.place(), message, hint);
        return None;
    };
    let below = root.get("skill");
    let wrapped = below.is_some();
    if let Some(skill) = below.filter(|skill| !matches!(skill.data(), Data::Map(_))) {
        skill.wrong_type("skill", "a map with `id`, `name` and `description`", report);
        return None;
    }
    Some(SkillFile {
        path,
        wrapped,
        heading: heading(body.trim()),
        paragraph: paragraph(&body),
        body,
        text,
        document: Some(document),
    })
}

/// The first `# heading`.
fn heading(body: &str) -> Option<String> {
    let line = body.lines().find(|line| !line.trim().is_empty())?;
    let text = line.strip_prefix("# ")?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// The first paragraph that is not a heading, its lines joined.
fn paragraph(body: &str) -> Option<String> {
    let mut lines = body
        .lines()
        .map(str::trim)
        .skip_while(|line| line.is_empty() || line.starts_with('#'))
        .take_while(|line| !line.is_empty() && !line.starts_with('#'))
        .peekable();
    lines.peek()?;
    Some(lines.collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_page_gives_heading_and_first_paragraph() {
        let body = "# write-test\n\nWrites tests\nfor code.\n\n## Arguments\nx\n";
        assert_eq!(heading(body).as_deref(), Some("write-test"));
        assert_eq!(paragraph(body).as_deref(), Some("Writes tests for code."));
        assert_eq!(heading("text"), None);
        assert_eq!(paragraph("# only"), None);
        assert_eq!(stem_of("workers/a/skills/x.md"), "x");
        assert_eq!(stem_of("workers/a/skills/y/SKILL.md"), "y");
    }
}
