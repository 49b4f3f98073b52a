//! Texts that a shell accepts and that do not do what they say.

use std::path::Path;

use crate::catalog::TextFinding;
use crate::model::definition::Shell;
use crate::model::{Severity, Skill};

/// Words before a command that are not the command.
const BEFORE: [&str; 10] = [
    "if", "elif", "while", "until", "then", "do", "else", "!", "{", "(",
];

/// Characters that word processors put in place of quotes.
const CURLY: [char; 4] = ['“', '”', '‘', '’'];

/// One word of a text.
struct Word<'a> {
    at: usize,
    text: &'a str,
    /// It is the first word of a command.
    is_first: bool,
}

/// Returns the first of these mistakes. `path` is the `PATH` in which the shell is found.
pub(super) fn find(
    skill: &Skill,
    shell: Shell,
    text: &str,
    path: Option<&str>,
) -> Option<TextFinding> {
    let words = words(text);
    let bashism = words
        .iter()
        .find(|word| word.is_first && word.text == "[[" && shell == Shell::Sh);
    if let Some(word) = bashism.filter(|_| path.is_some_and(is_without_double_brackets)) {
        return Some(finding(
            ("shell-bashism", word.at),
            "`sh` has no `[[`: it is taken for a command that does not exist",
            "write `[ … ]`, or `shell: bash` in the skill",
        ));
    }
    if let Some(word) = unclosed(&words) {
        return Some(finding(
            ("test-unclosed", word.at),
            "`[` needs `]` as a word of its own",
            "write a space before `]`",
        ));
    }
    if let Some(word) = words.iter().find(|word| word.text.starts_with(CURLY)) {
        return Some(finding(
            ("quotes-curly", word.at),
            "curly quotes are ordinary characters to a shell",
            "write `\"` or `'`",
        ));
    }
    let names = skill.inputs.iter().map(|input| &input.name);
    let names = names.chain(skill.outputs.iter().map(|output| &output.name));
    names.into_iter().find_map(|name| unset(skill, text, name))
}

fn finding((code, offset): (&str, usize), message: &str, hint: &str) -> TextFinding {
    TextFinding {
        code: code.to_owned(),
        severity: Severity::Warning,
        offset,
        message: message.to_owned(),
        hint: Some(hint.to_owned()),
    }
}

/// `$name` for an input or output of the skill, if nothing in the text sets that variable.
fn unset(skill: &Skill, text: &str, name: &str) -> Option<TextFinding> {
    let is_part = |found: char| found == '_' || found.is_ascii_alphanumeric();
    let is_declared =
        skill.env.iter().any(|variable| variable == name) || skill.variables.contains_key(name);
    let mut mentions = text.match_indices(name).filter(|(at, _)| {
        let after = text[at + name.len()..].chars().next();
        let before = text[..*at].chars().next_back();
        !after.is_some_and(is_part) && !before.is_some_and(is_part)
    });
    let is_set = |at: usize| {
        let before = text[..at].trim_end();
        let after = &text[at + name.len()..];
        after.starts_with('=')
            || ["read", "-r", "for", "export", "local", ","]
                .iter()
                .any(|word| before.ends_with(word))
    };
    let used = mentions.clone().find(|(at, _)| text[..*at].ends_with('$'));
    let (at, _) = used.filter(|_| !is_declared && !mentions.any(|(at, _)| is_set(at)))?;
    let message = format!("nothing sets the variable `${name}`");
    let hint = format!("write `{{{name}}}` for the value that the skill declares");
    Some(finding(("variable-unset", at - 1), &message, &hint))
}

/// A `[` at the begin of a command without a word `]` behind it, but one that ends with it.
fn unclosed<'a>(words: &'a [Word<'a>]) -> Option<&'a Word<'a>> {
    let mut begins =
        (words.iter().enumerate()).filter(|(_, word)| word.is_first && word.text == "[");
    begins.find_map(|(index, word)| {
        let mut command = words[index + 1..].iter().take_while(|word| !word.is_first);
        let is_open = command.clone().all(|word| word.text != "]");
        (is_open && command.any(|word| word.text.ends_with(']'))).then_some(word)
    })
}

/// The words of a text, quotes included. Comments are left out.
fn words(text: &str) -> Vec<Word<'_>> {
    let mut found: Vec<Word<'_>> = Vec::new();
    let mut is_first = true;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\n' | ';' | '&' | '|' => is_first = true,
            '#' => while chars.next_if(|(_, c)| *c != '\n').is_some() {},
            c if c.is_whitespace() => {}
            _ => {
                let mut quote = Some(c).filter(|c| matches!(c, '\'' | '"'));
                let mut end = at + c.len_utf8();
                let mut before = c;
                while let Some((at, c)) = chars.next_if(|(_, c)| {
                    quote.is_some()
                        || before == '\\'
                        || !(c.is_whitespace() || matches!(c, ';' | '&' | '|'))
                }) {
                    match quote {
                        Some(open) if c == open && before != '\\' => quote = None,
                        None if matches!(c, '\'' | '"') && before != '\\' => quote = Some(c),
                        _ => {}
                    }
                    before = if before == '\\' { ' ' } else { c };
                    end = at + c.len_utf8();
                }
                let word = &text[at..end];
                found.push(Word {
                    at,
                    text: word,
                    is_first,
                });
                is_first = is_first && BEFORE.contains(&word);
            }
        }
    }
    found
}

/// Returns true if the shell `sh` in this `PATH` is one without `[[`, such as dash.
fn is_without_double_brackets(path: &str) -> bool {
    let mut places = path
        .split(':')
        .map(|directory| Path::new(directory).join("sh"));
    let shell = places.find_map(|place| place.canonicalize().ok());
    shell.is_some_and(|shell| shell.ends_with("dash") || shell.ends_with("sh"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_words(text: &str) -> Vec<&str> {
        let words = words(text);
        words
            .iter()
            .filter(|word| word.is_first)
            .map(|word| word.text)
            .collect()
    }

    #[test]
    fn commands_begin_after_separators_and_words_of_the_grammar() {
        assert_eq!(
            first_words("a b && c 'd; e' | f # g; h\ni"),
            ["a", "c", "f", "i"]
        );
        assert_eq!(
            first_words("if [[ -d x ]]; then y; fi"),
            ["if", "[[", "then", "y", "fi"]
        );
    }

    #[test]
    fn a_bracket_that_is_part_of_a_word_closes_nothing() {
        let is_unclosed = |text: &str| unclosed(&words(text)).is_some();
        for text in ["[ -s {report}]", "true && [ \"$a\" = b]", "! [ -f x]"] {
            assert!(is_unclosed(text), "{text}");
        }
        for text in [
            "[ -s x ]",
            "[ -s x ] && [ a = b ]",
            "echo [a]",
            "ls [a-z]*",
            "[ a = [b] ]",
        ] {
            assert!(!is_unclosed(text), "{text}");
        }
    }
}
