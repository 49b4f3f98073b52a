//! Links in what a skill says: those that leave the skill, and those that lead nowhere.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use pulldown_cmark::{Event, LinkType, Parser, Tag};

use super::read::head_length;
use super::{Form, RootSkill, files};
use crate::open::Refusal;

/// Links of one skill that are looked at.
const LINKS_MAX: usize = 2_000;

/// A link that is of no use to whoever has the skill alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadLink {
    /// Line of the file, from 1.
    pub line: u32,
    /// As written.
    pub target: String,
    /// Whether it leaves the skill; otherwise it leads nowhere.
    pub leaves: bool,
}

/// Looks at every link to a file in the body of a skill: `text` is its file, `body` what it says.
pub fn bad(skill: &RootSkill, text: &str, body: &str) -> Vec<BadLink> {
    let root = match skill.form {
        Form::Directory => files::open(skill).ok(),
        Form::Page | Form::Yaml => None,
    };
    let mut found = Vec::new();
    for (line, target) in of_skill(skill.form, text, body).into_iter().take(LINKS_MAX) {
        let path = plain(&target);
        let led = root.as_ref().map(|root| root.resolve(&path));
        let leaves = leaves(&path) || matches!(led, Some(Err(Refusal::Outside { .. })));
        if leaves || led.is_none_or(|led| led.is_err()) {
            found.push(BadLink {
                line,
                target,
                leaves,
            });
        }
    }
    found
}

/// Targets in what a skill says, with their lines in its file.
fn of_skill(form: Form, text: &str, body: &str) -> Vec<(u32, String)> {
    let at = if form == Form::Yaml {
        text.len()
    } else {
        head_length(text)
    };
    let (head, below) = text.split_at(at);
    let number = |lines: usize| u32::try_from(lines).unwrap_or(u32::MAX);
    if !below.trim().is_empty() {
        let before = number(head.lines().count());
        let found = targets(below).into_iter();
        return found
            .map(|(line, target)| (line + before, target))
            .collect();
    }
    // The body is the value of a key: its lines are found by what they hold.
    let line_of = |target: &str| text.lines().position(|line| line.contains(target));
    let found = targets(body).into_iter();
    found
        .map(|(_, target)| (line_of(&target).map_or(1, |at| number(at + 1)), target))
        .collect()
}

/// Targets of links to files with their lines, code and comments left out.
fn targets(text: &str) -> Vec<(u32, String)> {
    let mut found = Vec::new();
    let parser = Parser::new(text);
    for (_, definition) in parser.reference_definitions().iter() {
        found.push((definition.span.start, definition.dest.to_string()));
    }
    for (event, range) in parser.into_offset_iter() {
        match event {
            Event::Start(
                Tag::Link {
                    link_type: LinkType::Inline,
                    dest_url,
                    ..
                }
                | Tag::Image {
                    link_type: LinkType::Inline,
                    dest_url,
                    ..
                },
            ) => found.push((range.start, dest_url.into_string())),
            Event::Start(Tag::HtmlBlock) | Event::InlineHtml(_) => {
                let elements = of_elements(&text[range.clone()]).into_iter();
                found.extend(elements.map(|(at, target)| (range.start + at, target)));
            }
            _ => {}
        }
    }
    found.sort_by_key(|(at, _)| *at);
    let (mut line, mut counted) = (1, 0);
    let mut numbered = Vec::new();
    for (at, target) in found {
        line += text[counted..at].matches('\n').count();
        counted = at;
        let number = u32::try_from(line).unwrap_or(u32::MAX);
        numbered.extend(relative(&target).map(|path| (number, path)));
    }
    numbered
}

/// Targets of HTML, `<img src="…">` and `<a href="…">`, with where each element begins.
fn of_elements(html: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(begins) = html[at..].find('<').map(|more| at + more) {
        let element = &html[begins..];
        let length = if element.starts_with("<!--") {
            element.find("-->").unwrap_or(element.len())
        } else {
            let next = element[1..]
                .find('<')
                .map_or(element.len(), |next| next + 1);
            found.extend(of_element(&element[..next]).map(|target| (begins, target)));
            next
        };
        at = begins + length;
    }
    found
}

/// The target of one element, from its `<` on.
fn of_element(element: &str) -> Option<String> {
    if !element[1..].starts_with(|c: char| c.is_ascii_alphabetic()) {
        return None;
    }
    let mut rest = element;
    while let Some(at) = rest.find('=') {
        let (before, value) = (rest[..at].trim_end(), rest[at + 1..].trim_start());
        let name = before.rsplit(char::is_whitespace).next()?;
        if ["src", "href"]
            .iter()
            .any(|key| name.eq_ignore_ascii_case(key))
        {
            let value = match value.chars().next()? {
                quote @ ('"' | '\'') => value[1..].split(quote).next(),
                _ => value.split(|c: char| c.is_whitespace() || c == '>').next(),
            };
            return value.map(str::to_owned);
        }
        rest = value;
    }
    None
}

/// The path of a target that is one: no anchor, no address with a scheme but that of files.
fn relative(target: &str) -> Option<String> {
    let path = target.trim().split(['#', '?']).next().unwrap_or_default();
    let scheme = path.split_once(':').is_some_and(|(scheme, _)| {
        scheme.len() > 1
            && scheme
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    });
    let scheme = scheme && !is_file_address(path);
    let placeholder = path.contains(['{', '}', '$', '*', '<', '|']);
    let usual = !path.is_empty() && !scheme && !path.starts_with("//") && !placeholder;
    usual.then(|| path.to_owned())
}

/// Whether it says where a file lies on one machine.
fn is_file_address(target: &str) -> bool {
    let scheme = target.get(..5);
    scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:"))
}

/// Whether a path leaves the directory that it starts in.
fn leaves(target: &str) -> bool {
    if target.starts_with('/') || target.starts_with('~') || is_file_address(target) {
        return true;
    }
    let mut depth = 0_i64;
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => depth -= 1,
            _ => depth += 1,
        }
        if depth < 0 {
            return true;
        }
    }
    false
}

/// The path with `%20` undone.
fn plain(target: &str) -> String {
    let decoded = percent_decode_str(target).decode_utf8();
    decoded.map_or_else(|_| target.to_owned(), Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_relative_targets_outside_of_code_count() {
        let text = "[a](ref.md) [b](https://x.org/y) ![c](<img one.png> \"t\") `[d](no.md)`\n\
                    ```\n[e](no.md)\n```\n[f](#part) [g](sub/x.md#part)\n\n[h]: ../up.md\n\n[i](mailto:a@b) <a@b>\n";
        let found: Vec<(u32, String)> = targets(text);
        let expected = [
            (1, "ref.md"),
            (1, "img one.png"),
            (5, "sub/x.md"),
            (7, "../up.md"),
        ];
        let expected: Vec<(u32, String)> = expected
            .iter()
            .map(|(n, t)| (*n, (*t).to_owned()))
            .collect();
        assert_eq!(found, expected);
        for (target, expected) in [
            ("a/../../b", true),
            ("/etc/passwd", true),
            ("~/x", true),
            ("a/../b", false),
            ("./a", false),
        ] {
            assert_eq!(leaves(target), expected, "{target}");
        }
        assert_eq!(plain("a%20b%"), "a b%");
    }

    #[test]
    fn code_of_every_form_holds_no_links() {
        for code in [
            "````\n```\n[a](no.md)\n```\n[a](no.md)\n````\n",
            "~~~sh\n```\n[a](no.md)\n~~~\n",
            "- item\n\n  ```sh\n  [a](no.md)\n  ```\n",
            "1. ```sh\n   [a](no.md)\n   ```\n",
            "> ```\n> [a](no.md)\n> ```\n",
            "Text:\n\n    [a](no.md)\n\n\t[a](no.md)\n",
            "# Head\n    [a](no.md)\n",
            "- item\n\n      [a](no.md)\n",
            "``[a](no.md)`` and `` ` [a](no.md) ``\n",
        ] {
            let found = targets(&format!("{code}\n[b](yes.md)\n"));
            let found: Vec<&str> = found.iter().map(|(_, target)| target.as_str()).collect();
            assert_eq!(found, ["yes.md"], "{code}");
        }
        for text in [
            "- item\n\n    [a](yes.md)\n",
            "text\n    [a](yes.md)\n",
            "1. a\n   - b\n\n     [a](yes.md)\n",
            "a ` b [a](yes.md)\n",
            "```[b](no.md)``` [a](yes.md)\n",
            "<img width=1 src='yes.md'>",
            "<A HREF=yes.md>a</A>",
            "[two\nlines](yes.md)",
            "[a] and [a]\n\n[a]: yes.md\n",
            "<!-- [a](no.md) <img src=no.md> -->\n\n<p>\n<img\n  alt='a' src = 'yes.md'>\n</p>\n",
        ] {
            assert_eq!(targets(text).len(), 1, "{text}");
        }
        let found = targets("<img src=\"file:///etc/x.png\"> [a](FILE:/x) <http://x.org/y>");
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found.iter().all(|(_, target)| leaves(target)));
    }

    #[test]
    fn only_what_the_skill_says_counts_with_its_line_in_the_file() {
        let page = "---\nname: a\ndescription: see [x](no.md)\n---\n\n[a](yes.md)\n";
        let expected = vec![(6, "yes.md".to_owned())];
        assert_eq!(of_skill(Form::Directory, page, "[a](yes.md)"), expected);
        let yaml = "description: see [x](no.md)\ninstructions: |\n\n    [a](yes.md)\n";
        let expected = vec![(4, "yes.md".to_owned())];
        assert_eq!(of_skill(Form::Yaml, yaml, "[a](yes.md)"), expected);
    }
}
