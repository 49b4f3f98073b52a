//! Words that the documentation, the help and messages do not use.

use super::Violations;
use super::source::{files, root};

/// Private words, each with what to write instead.
const WORDS: [(&str, &str); 9] = [
    ("told", "reported, logged, shown or notified"),
    ("whoever", "the user, client or caller"),
    ("nobody", "no user"),
    ("somebody", "a user"),
    ("anew", "again"),
    ("beside", "next to, in addition to"),
    ("stands", "is"),
    ("lies", "is"),
    ("of people", "of users"),
];

/// Lines that may use such a word, by a part of them.
const EXCEPTIONS: [&str; 3] = [
    // The YAML example whose text tests quote.
    "whatever stands around it",
    "`*` stands for",
    "each stands for one policy",
];

fn word_in(text: &str) -> Option<(&'static str, &'static str)> {
    let text = text.to_lowercase();
    let is_word = |at: usize, length: usize| {
        let letter = |c: char| c.is_alphanumeric() || c == '_';
        !text[..at].ends_with(letter) && !text[at + length..].starts_with(letter)
    };
    WORDS.into_iter().find(|(word, _)| {
        let mut found = text.match_indices(word);
        found.any(|(at, _)| is_word(at, word.len()))
    })
}

/// Returns the string literals of a line that have several words, without the names in braces.
fn literals(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some((_, after)) = rest.split_once('"') {
        let mut end = after.len();
        let mut escaped = false;
        for (at, c) in after.char_indices() {
            if c == '"' && !escaped {
                end = at;
                break;
            }
            escaped = c == '\\' && !escaped;
        }
        let literal: String = after[..end]
            .split('{')
            .map(|piece| piece.split_once('}').map_or(piece, |(_, text)| text))
            .collect();
        if literal.trim().contains(' ') {
            found.push(literal);
        }
        rest = after.get(end + 1..).unwrap_or_default();
    }
    found
}

fn is_user_page(path: &str) -> bool {
    let is_page = path == "README.md" || path.starts_with("docs/");
    is_page && path.ends_with(".md") && !path.starts_with("docs/dev/")
}

fn has_messages(path: &str) -> bool {
    let is_test = ["/tests", "tests.rs", "/fake", "/bench"];
    path.starts_with("src/")
        && path.ends_with(".rs")
        && !is_test.iter().any(|part| path.contains(part))
}

#[test]
fn pages_and_messages_use_the_words_of_the_field() {
    let mut violations = Violations::default();
    for path in files() {
        if !is_user_page(&path) && !has_messages(&path) {
            continue;
        }
        let text = std::fs::read_to_string(root().join(&path)).unwrap();
        let shipped = text.split("\nmod tests {").next().unwrap_or_default();
        for (at, line) in shipped.lines().enumerate() {
            let texts = if path.ends_with(".md") {
                vec![line.to_owned()]
            } else if line.trim_start().starts_with("//") {
                // Help texts are comments of arguments, which a test of the command line holds to its page.
                Vec::new()
            } else {
                literals(line)
            };
            let is_exception = EXCEPTIONS.iter().any(|part| line.contains(part));
            let word = texts.iter().find_map(|text| word_in(text));
            if let Some((word, instead)) = word.filter(|_| !is_exception) {
                violations.add(&path, at + 1, format_args!("`{word}`: write {instead}"));
            }
        }
    }
    violations.none();
}

/// Returns the number of words outside of code: a code span is one word, and blocks of code have none.
fn word_count(page: &str) -> usize {
    let mut is_code = false;
    let prose = page.lines().filter(|line| {
        let is_fence = line.starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    });
    prose
        .map(|line| {
            let text: String = line
                .split('`')
                .enumerate()
                .map(|(at, part)| if at % 2 == 0 { part } else { "code" })
                .collect();
            text.split_whitespace()
                .filter(|word| word.chars().any(char::is_alphanumeric))
                .count()
        })
        .sum()
}

/// Users find what they need in pages of at most 2,500 words, 30,000 together. Tables of contents do not count, and
/// neither do the lists of all options and of all problems, which are looked up by name.
#[test]
fn pages_for_users_are_short() {
    const LISTS: [&str; 4] = [
        "docs/README.md",
        "docs/SUMMARY.md",
        "docs/reference/cli.md",
        "docs/reference/problems.md",
    ];
    let mut violations = Violations::default();
    let mut total = 0;
    let pages = files()
        .into_iter()
        .filter(|path| is_user_page(path) && !LISTS.contains(&path.as_str()));
    for path in pages {
        let count = word_count(&std::fs::read_to_string(root().join(&path)).unwrap());
        total += count;
        if count > 2_500 {
            violations.add(&path, 1, format_args!("{count} words are too many"));
        }
    }
    assert!((15_000..=30_000).contains(&total), "{total} words");
    violations.none();
}
