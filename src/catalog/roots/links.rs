//! Links in what a skill says: those that leave the skill, and those that lead nowhere.

use super::read::head_length;
use super::{Form, RootSkill, files};
use crate::catalog::open::Refusal;

/// Links of one skill that are looked at.
const LINKS_MAX: usize = 2_000;

/// Columns of indentation that make code of a line.
const CODE_COLUMNS: usize = 4;

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

/// Targets of links to files with their lines, code left out.
fn targets(text: &str) -> Vec<(u32, String)> {
    let mut found = Vec::new();
    let mut code = Code::default();
    for (number, line) in text.lines().enumerate() {
        if !code.holds(line) {
            let line_number = u32::try_from(number + 1).unwrap_or(u32::MAX);
            let own = of_line(&without_code(line));
            found.extend(own.into_iter().map(|target| (line_number, target)));
        }
    }
    found
}

/// Which lines of a page are code: those within fences, and those that are indented as no text is.
struct Code {
    /// Sign and length of the fence that is open.
    fence: Option<(char, usize)>,
    /// Where the text of each open item of a list begins.
    items: Vec<usize>,
    /// Whether a line that is indented would begin code: it does not go on with a paragraph.
    may_begin: bool,
    after_blank: bool,
}

impl Default for Code {
    fn default() -> Code {
        Code {
            fence: None,
            items: Vec::new(),
            may_begin: true,
            after_blank: true,
        }
    }
}

impl Code {
    /// Whether this line, the next one, is code.
    fn holds(&mut self, line: &str) -> bool {
        if let Some((sign, length)) = self.fence {
            let closes = fence_of(unquoted(line)).is_some_and(|(own, long, rest)| {
                own == sign && long >= length && rest.trim().is_empty()
            });
            if closes {
                self.fence = None;
                self.may_begin = true;
            }
            return true;
        }
        if line.trim().is_empty() {
            self.may_begin = true;
            self.after_blank = true;
            return false;
        }
        let indent = columns(line);
        if self.after_blank {
            self.items.retain(|begins| *begins <= indent);
        }
        self.after_blank = false;
        let begins = self.items.last().copied().unwrap_or(0);
        if self.may_begin && indent >= begins + CODE_COLUMNS {
            return true;
        }
        let mut rest = unquoted(line);
        self.may_begin = rest.starts_with('#');
        while let Some((width, text)) = item(rest) {
            let begins = columns(line) + line.trim_start().len() - rest.len() + width;
            self.items.retain(|open| *open < begins);
            self.items.push(begins);
            rest = text;
        }
        if let Some((sign, length, info)) = fence_of(rest)
            && !(sign == '`' && info.contains('`'))
        {
            self.fence = Some((sign, length));
            return true;
        }
        false
    }
}

/// Columns by which a line is indented.
fn columns(line: &str) -> usize {
    let mut columns = 0;
    for c in line.chars() {
        match c {
            ' ' => columns += 1,
            '\t' => columns += CODE_COLUMNS - columns % CODE_COLUMNS,
            _ => break,
        }
    }
    columns
}

/// A line without indentation and the signs of a quotation.
fn unquoted(line: &str) -> &str {
    let mut rest = line.trim_start();
    while let Some(quoted) = rest.strip_prefix('>') {
        rest = quoted.trim_start();
    }
    rest
}

/// How wide the sign of an item of a list is, and what follows it.
fn item(line: &str) -> Option<(usize, &str)> {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let sign = match line.as_bytes().get(digits)? {
        b'-' | b'*' | b'+' if digits == 0 => 1,
        b'.' | b')' if (1..=9).contains(&digits) => digits + 1,
        _ => return None,
    };
    let rest = &line[sign..];
    let text = rest.trim_start();
    if rest.starts_with([' ', '\t']) && !text.is_empty() {
        Some((line.len() - text.len(), text))
    } else {
        None
    }
}

/// Sign and length of the fence that a line begins with, and what follows it.
fn fence_of(line: &str) -> Option<(char, usize, &str)> {
    let sign = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let rest = line.trim_start_matches(sign);
    let length = line.len() - rest.len();
    (length >= 3).then_some((sign, length, rest))
}

/// A line with the text between equally many backticks taken out.
fn without_code(line: &str) -> String {
    let mut kept = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find('`') {
        kept.push_str(&rest[..at]);
        rest = &rest[at..];
        let inner = rest.trim_start_matches('`');
        let opening = &rest[..rest.len() - inner.len()];
        // What nothing on this line closes is no code here.
        rest = past(inner, opening.len()).unwrap_or_else(|| {
            kept.push_str(opening);
            inner
        });
    }
    kept.push_str(rest);
    kept
}

/// What follows the next run of exactly so many backticks.
fn past(text: &str, length: usize) -> Option<&str> {
    let mut rest = text;
    while let Some(at) = rest.find('`') {
        let after = rest[at..].trim_start_matches('`');
        if rest.len() - at - after.len() == length {
            return Some(after);
        }
        rest = after;
    }
    None
}

fn of_line(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some(at) = rest.find("](") {
        rest = &rest[at + 2..];
        let mut depth = 0_usize;
        let end = rest.find(|c| match c {
            '(' => {
                depth += 1;
                false
            }
            ')' if depth == 0 => true,
            ')' => {
                depth -= 1;
                false
            }
            _ => false,
        });
        let Some(end) = end else { break };
        found.extend(relative(&rest[..end]));
        rest = &rest[end + 1..];
    }
    let definition = line
        .trim_start()
        .strip_prefix('[')
        .and_then(|line| line.split_once("]: "));
    found.extend(definition.and_then(|(_, target)| relative(target)));
    found.extend(of_elements(line));
    found
}

/// Targets of HTML: `<img src="…">`, `<a href="…">`.
fn of_elements(line: &str) -> Vec<String> {
    let elements = line.split('<').skip(1);
    let elements = elements.filter(|one| one.starts_with(|c: char| c.is_ascii_alphabetic()));
    let mut found = Vec::new();
    for element in elements {
        let lower = element.to_ascii_lowercase();
        for key in [" src=", " href="] {
            let value = lower.find(key).map(|at| &element[at + key.len()..]);
            let value = value.and_then(|value| match value.chars().next()? {
                quote @ ('"' | '\'') => value[1..].split(quote).next(),
                _ => value.split(|c: char| c.is_whitespace() || c == '>').next(),
            });
            // In brackets, since blanks may stand in it.
            found.extend(value.and_then(|value| relative(&format!("<{value}>"))));
        }
    }
    found
}

/// The path of a target that is one: no anchor, no address with a scheme but that of files.
fn relative(target: &str) -> Option<String> {
    let target = target.trim();
    let target = match target.strip_prefix('<') {
        Some(inner) => inner.split('>').next().unwrap_or(inner),
        None => target.split_whitespace().next().unwrap_or_default(),
    };
    let path = target.split(['#', '?']).next().unwrap_or_default();
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
    let bytes = target.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let code = target
            .get(at + 1..at + 3)
            .filter(|_| *byte == b'%')
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        plain.push(code.unwrap_or(*byte));
        at += if code.is_some() { 3 } else { 1 };
    }
    String::from_utf8(plain).unwrap_or_else(|_| target.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_relative_targets_outside_of_code_count() {
        let text = "[a](ref.md) [b](https://x.org/y) ![c](<img one.png> \"t\") `[d](no.md)`\n\
                    ```\n[e](no.md)\n```\n[f](#part) [g](sub/x.md#part)\n[h]: ../up.md\n[i](mailto:a@b)\n";
        let found: Vec<(u32, String)> = targets(text);
        let expected = [
            (1, "ref.md"),
            (1, "img one.png"),
            (5, "sub/x.md"),
            (6, "../up.md"),
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
