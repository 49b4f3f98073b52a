//! Links in what a skill says: those that leave the skill, and those that lead nowhere.

use super::{Form, RootSkill, files};

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

/// Looks at every relative link in the body of a skill's file.
pub fn bad(skill: &RootSkill, text: &str) -> Vec<BadLink> {
    let root = match skill.form {
        Form::Directory => files::open(skill).ok(),
        Form::Page | Form::Yaml => None,
    };
    let mut found = Vec::new();
    for (line, target) in targets(text).into_iter().take(LINKS_MAX) {
        let leaves = leaves(&target);
        let path = plain(&target);
        let there = root
            .as_ref()
            .is_some_and(|root| root.resolve(&path).is_ok());
        if leaves || !there {
            found.push(BadLink {
                line,
                target,
                leaves,
            });
        }
    }
    found
}

/// Relative targets of links with their lines, code left out.
fn targets(text: &str) -> Vec<(u32, String)> {
    let mut found = Vec::new();
    let mut fence: Option<&str> = None;
    for (number, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        let mark = ["```", "~~~"]
            .into_iter()
            .find(|mark| trimmed.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (None, None) => {
                let line_number = u32::try_from(number + 1).unwrap_or(u32::MAX);
                let own = of_line(&without_code(line));
                found.extend(own.into_iter().map(|target| (line_number, target)));
            }
            (Some(_), _) => {}
        }
    }
    found
}

/// A line with the text between backticks taken out.
fn without_code(line: &str) -> String {
    let parts: Vec<&str> = line.split('`').collect();
    // An odd number of backticks opens code that this line does not close.
    if parts.len().is_multiple_of(2) {
        return line.to_owned();
    }
    parts.into_iter().step_by(2).collect()
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
    found
}

/// The path of a target that is one: no anchor, no address with a scheme.
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
    let placeholder = path.contains(['{', '}', '$', '*', '<', '|']);
    let usual = !path.is_empty() && !scheme && !path.starts_with("//") && !placeholder;
    usual.then(|| path.to_owned())
}

/// Whether a path leaves the directory that it starts in.
fn leaves(target: &str) -> bool {
    if target.starts_with('/') || target.starts_with('~') {
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
}
