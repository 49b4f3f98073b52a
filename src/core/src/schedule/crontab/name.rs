//! Ids of skills, after what the commands are called.

use std::collections::BTreeMap;

/// Longest id before it is made unique.
const ID_CHARS_MAX: usize = 40;

/// Programs that run another one, which says more.
const WRAPPERS: [&str; 36] = [
    "sh", "bash", "dash", "zsh", "env", "nice", "ionice", "nohup", "time", "timeout", "flock",
    "sudo", "chronic", "exec", "command", "python", "python2", "python3", "perl", "php", "ruby",
    "node", "cd", "test", "[", "[[", "(", "{", "&&", "||", ";", "!", "setsid", "chrt", "sleep",
    "true",
];

/// A name for a command, in lower-case letters, digits and dashes.
pub(super) fn of(command: &str) -> String {
    let words: Vec<&str> = command.split_whitespace().collect();
    let fitting = words.iter().filter_map(|word| fitting(word));
    let mut best: Vec<String> = fitting.take(1).collect();
    let first = words.first().map(|word| slug(base(word)));
    best.pop()
        .or_else(|| first.filter(|slug| !slug.is_empty()))
        .unwrap_or_else(|| "job".to_owned())
}

/// The name of a word that is a program or a script.
fn fitting(word: &str) -> Option<String> {
    let base = base(word.trim_matches(['(', ')', '"', '\'', ';', '&', '|']));
    let is_option = word.starts_with('-') || word.contains(['=', '$', '>', '<', '`', '%', '*']);
    let is_program = base.starts_with(|c: char| c.is_ascii_alphabetic());
    if is_option || !is_program || WRAPPERS.contains(&base) {
        return None;
    }
    let slug = slug(base);
    (!slug.is_empty()).then_some(slug)
}

fn base(word: &str) -> &str {
    let name = word.rsplit('/').find(|part| !part.is_empty());
    let name = name.unwrap_or(word);
    match name.rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() && extension.len() <= 4 => stem,
        _ => name,
    }
}

fn slug(text: &str) -> String {
    let mut slug = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            slug.push(c.to_ascii_lowercase());
        } else if !slug.ends_with('-') && !slug.is_empty() {
            slug.push('-');
        }
        if slug.len() >= ID_CHARS_MAX {
            break;
        }
    }
    slug.trim_matches('-').to_owned()
}

/// The name, with a number where it is taken.
pub(super) fn unique(name: &str, taken: &mut BTreeMap<String, u32>) -> String {
    let mut id = name.to_owned();
    let mut number = 1;
    while taken.contains_key(&id) {
        number = taken.get(name).copied().unwrap_or(1).max(number) + 1;
        taken.insert(name.to_owned(), number);
        id = format!("{name}-{number}");
    }
    taken.insert(id.clone(), 1);
    id
}
