//! One line of a crontab.

use super::Form;
use crate::schedule::Expression;

/// What a line is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// Nothing.
    Blank,
    /// Its text without the `#`.
    Comment(&'a str),
    /// `NAME=value`, quotes removed.
    Variable(&'a str, &'a str),
    /// A job, or why it is none.
    Job(Result<Parsed, LineRefused>),
}

/// A job as it is written.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Parsed {
    pub(super) expression: String,
    pub(super) user: Option<String>,
    /// With every `%` as it is written.
    pub(super) command: String,
}

/// Why a line is no job.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LineRefused {
    /// Whether its times can be read, and nothing follows them.
    pub(super) lacks_command: bool,
    pub(super) message: String,
    pub(super) hint: String,
}

const BLANKS: [char; 2] = [' ', '\t'];

/// Reads a line in the order in which cron tries: comment, variable, job.
pub(super) fn read(text: &str, form: Form) -> Line<'_> {
    let text = text.trim_start_matches(BLANKS);
    if text.trim().is_empty() {
        return Line::Blank;
    }
    if let Some(comment) = text.strip_prefix('#') {
        return Line::Comment(comment.trim());
    }
    match variable(text) {
        Some((name, value)) => Line::Variable(name, value),
        None => Line::Job(job(text, form)),
    }
}

/// Whether a comment is a sentence for people: no job that is switched off, no heading of columns.
pub(super) fn is_prose(line: &str, comment: &str, form: Form) -> bool {
    let lower = comment.to_ascii_lowercase();
    let words: Vec<&str> = lower.split_whitespace().collect();
    let is_heading = words.starts_with(&["m", "h"]) || words.starts_with(&["minute", "hour"]);
    let is_drawing = !comment.chars().any(char::is_alphanumeric);
    let switched_off = line.trim_start().trim_start_matches('#');
    let is_job = matches!(read(switched_off, form), Line::Job(Ok(_)));
    !is_heading && !is_drawing && !is_job
}

/// `NAME = value`; name and value may be quoted.
fn variable(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''));
    let (name, rest) = if let Some(quote) = quote {
        text.get(1..)?.split_once(quote)?
    } else {
        let end = text.find(|c: char| c == '=' || c.is_whitespace())?;
        text.split_at_checked(end)?
    };
    let value = rest.trim_start_matches(BLANKS).strip_prefix('=')?.trim();
    let quoted = ['"', '\''].iter().find_map(|quote| {
        let inside = value.strip_prefix(*quote)?.strip_suffix(*quote)?;
        Some(inside)
    });
    Some((name, quoted.unwrap_or(value)))
}

fn job(text: &str, form: Form) -> Result<Parsed, LineRefused> {
    // A leading dash tells some crons to keep silent in the log.
    let text = text.strip_prefix('-').unwrap_or(text);
    let fields = if text.starts_with('@') { 1 } else { 5 };
    let mut rest = text;
    let mut words = Vec::new();
    for _ in 0..fields {
        let (word, behind) = word(rest);
        if word.is_empty() {
            break;
        }
        words.push(word);
        rest = behind;
    }
    let expression = words.join(" ");
    if let Some(refused) = anacron(text) {
        return Err(refused);
    }
    match Expression::parse(&expression, false) {
        Ok(_) => {}
        Err(error) if error.is_reboot() => {}
        Err(error) => {
            let column = error.at.start + 1;
            return Err(LineRefused {
                lacks_command: false,
                message: format!("`{expression}`, column {column}: {}", error.message),
                hint: error.hint,
            });
        }
    }
    let user = match form {
        Form::User => None,
        Form::System => {
            let (user, behind) = word(rest);
            rest = behind;
            Some(user.to_owned())
        }
    };
    let command = rest.trim_matches(BLANKS);
    if command.is_empty() {
        return Err(LineRefused {
            lacks_command: true,
            message: "it has no command".to_owned(),
            hint: match form {
                Form::User => "write a command behind the times".to_owned(),
                Form::System => {
                    "in a system crontab, a user name precedes the command; use `--user` if this file has no user names".to_owned()
                }
            },
        });
    }
    Ok(Parsed {
        expression,
        user,
        command: command.to_owned(),
    })
}

/// A line of an anacrontab: a period in days, a delay in minutes, a name, a command.
fn anacron(text: &str) -> Option<LineRefused> {
    let mut words = text.split(BLANKS).filter(|word| !word.is_empty());
    let (period, delay, name) = (words.next()?, words.next()?, words.next()?);
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    let letters = name.chars().filter(char::is_ascii_alphabetic).count();
    let is_one = (is_number(period) || period.starts_with('@')) && is_number(delay) && letters > 2;
    let expression = match period {
        "1" => "@daily",
        "7" => "@weekly",
        "28" | "30" | "31" => "@monthly",
        nickname if nickname.starts_with('@') => nickname,
        _ => "@daily",
    };
    is_one.then(|| LineRefused {
        lacks_command: false,
        message: format!("`{name}` is a job of an anacrontab: every {period} days, {delay} minutes late"),
        hint: format!(
            "write a skill with `schedule: {{cron: \"{expression}\", catch_up: {{mode: last}}}}`: a slot that found no daemon is caught up once"
        ),
    })
}

/// The first word, and what follows it.
fn word(text: &str) -> (&str, &str) {
    let text = text.trim_start_matches(BLANKS);
    let end = text.find(BLANKS).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    (word, rest.trim_start_matches(BLANKS))
}
