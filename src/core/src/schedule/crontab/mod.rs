//! Crontabs, read as cron reads them, and the worker that does the same.

mod command;
mod environment;
mod line;
mod name;
mod worker;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use environment::Environment;
use line::{Line, Parsed};

pub use worker::worker_yaml;

/// Most jobs of one crontab.
pub const JOBS_MAX: usize = 2_000;

/// Most bytes of one crontab.
pub const CRONTAB_BYTES_MAX: usize = 256 * 1_024;

/// Longest description, in characters.
const DESCRIPTION_MAX: usize = 500;

/// Which crontab it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A user's: `minute hour day month weekday command`.
    User,
    /// The system's, as `/etc/crontab` and `/etc/cron.d` have them: with a user before the command.
    System,
}

/// Which shell runs a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shell {
    /// `/bin/sh`
    Sh,
    /// `bash`
    Bash,
}

/// A job, as a skill with a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CronJob {
    /// The line that it stands in, from 1.
    pub line: usize,
    /// The line as it stands there.
    pub text: String,
    /// Id of its skill, unique in the crontab.
    pub id: String,
    /// Its expression, or a nickname such as `@reboot`.
    pub expression: String,
    /// The comment directly above it, else its command.
    pub description: String,
    /// What its skill runs: the environment, the directory and the input that cron gives it, and the command.
    pub run: String,
    /// What runs it.
    pub shell: Shell,
    /// IANA zone of its times, where the crontab names one.
    pub timezone: Option<String>,
    /// Most minutes by which it starts later (`RANDOM_DELAY`).
    pub jitter_minutes: u32,
    /// Whose job it was, where the crontab says it.
    pub user: Option<String>,
}

/// Something to be said about a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The line, from 1.
    pub line: usize,
    /// Whether it is left out for this.
    pub refused: bool,
    /// What, for people.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// A crontab that was read: every line is a job, has had its effect on jobs, or has a note.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Crontab {
    /// Its jobs, in their order.
    pub jobs: Vec<CronJob>,
    /// What is to be said, in the order of lines.
    pub notes: Vec<Note>,
}

impl Crontab {
    fn note(&mut self, line: usize, message: impl Into<String>, hint: Option<String>) {
        self.notes.push(Note {
            line,
            refused: false,
            message: message.into(),
            hint,
        });
    }

    fn refuse(&mut self, line: usize, message: impl Into<String>, hint: Option<String>) {
        self.notes.push(Note {
            line,
            refused: true,
            message: message.into(),
            hint,
        });
    }
}

/// The words that stand where the system's crontab has a user before the command; empty where a job lacks one.
pub fn users(bytes: &[u8]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (_, text) in lines(bytes) {
        let Ok(text) = text else { continue };
        match line::read(text, Form::System) {
            Line::Job(Ok(Parsed {
                user: Some(user), ..
            })) => {
                found.insert(account(&user).to_owned());
            }
            Line::Job(Err(refused)) if refused.lacks_command => return BTreeSet::new(),
            Line::Job(_) | Line::Blank | Line::Comment(_) | Line::Variable(..) => {}
        }
    }
    found
}

/// The name in `name:group/class`.
fn account(user: &str) -> &str {
    user.split([':', '/']).next().unwrap_or(user)
}

/// Lines with their numbers, without their ends.
fn lines(bytes: &[u8]) -> impl Iterator<Item = (usize, Result<&str, std::str::Utf8Error>)> {
    let all = bytes.split(|byte| *byte == b'\n').enumerate();
    all.map(|(index, line)| {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        (index + 1, std::str::from_utf8(line))
    })
}

/// Reads a crontab; what cannot be read is among the notes.
pub fn read(bytes: &[u8], form: Form) -> Crontab {
    let mut crontab = Crontab::default();
    let mut environment = Environment::default();
    let mut comments: Vec<&str> = Vec::new();
    let mut taken = BTreeMap::new();
    for (number, text) in lines(bytes) {
        let text = match text {
            Ok(text) if !text.chars().any(|c| c.is_control() && c != '\t') => text,
            Ok(_) => {
                comments.clear();
                let hint = Some("remove it".to_owned());
                crontab.refuse(number, "it holds a control character", hint);
                continue;
            }
            Err(_) => {
                comments.clear();
                let hint = Some("save the file as UTF-8".to_owned());
                crontab.refuse(number, "it is not UTF-8", hint);
                continue;
            }
        };
        match line::read(text, form) {
            Line::Blank => comments.clear(),
            Line::Comment(comment) => {
                // A job that is switched off, and the names of the columns, describe nothing.
                if line::is_prose(text, comment, form) {
                    comments.push(comment);
                } else {
                    comments.clear();
                }
            }
            Line::Variable(name, value) => {
                comments.clear();
                environment.set(&mut crontab, number, name, value);
            }
            Line::Job(Err(refused)) => {
                comments.clear();
                crontab.refuse(number, refused.message, Some(refused.hint));
            }
            Line::Job(Ok(parsed)) => {
                let description = described(&std::mem::take(&mut comments), &parsed);
                job(
                    &mut crontab,
                    &environment,
                    &mut taken,
                    (number, text),
                    parsed,
                    description,
                );
            }
        }
    }
    crontab
}

fn described(comments: &[&str], parsed: &Parsed) -> String {
    let words: Vec<&str> = comments
        .iter()
        .flat_map(|line| line.split_whitespace())
        .collect();
    let text = if words.is_empty() {
        parsed
            .command
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    } else {
        words.join(" ")
    };
    if text.chars().count() <= DESCRIPTION_MAX {
        return text;
    }
    text.chars()
        .take(DESCRIPTION_MAX - 1)
        .chain(['…'])
        .collect()
}

fn job(
    crontab: &mut Crontab,
    environment: &Environment,
    taken: &mut BTreeMap<String, u32>,
    (line, text): (usize, &str),
    parsed: Parsed,
    description: String,
) {
    if crontab.jobs.len() >= JOBS_MAX {
        let hint = Some("import the rest as another worker".to_owned());
        crontab.refuse(
            line,
            format!("a worker has at most {JOBS_MAX} skills"),
            hint,
        );
        return;
    }
    if let Some(user) = &parsed.user {
        crontab.note(
            line,
            format!("it ran as `{user}`; it will run as the user of the daemon"),
            None,
        );
    }
    if let Some(word) = command::leaves_behind(&parsed.command) {
        let message = format!(
            "`{word}` leaves a process running after the job: a run ends with its command, and remaining processes are ended too"
        );
        let hint = "remove it: a run may last up to its `timeout`";
        crontab.note(line, message, Some(hint.to_owned()));
    }
    crontab.jobs.push(CronJob {
        line,
        text: text.trim().to_owned(),
        id: name::unique(&name::of(&parsed.command), taken),
        expression: parsed.expression,
        description,
        run: command::shell_text(environment.exports(), &parsed.command),
        shell: environment.shell,
        timezone: environment.timezone(),
        jitter_minutes: environment.jitter_minutes,
        user: parsed.user,
    });
}
