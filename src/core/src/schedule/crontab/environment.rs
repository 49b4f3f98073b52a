//! Variables of a crontab: each holds for the lines after it.

use crate::model::Zone;

use super::{Crontab, Shell};

/// Who is told by mail, and how: there is no mail.
const MAIL: [&str; 4] = [
    "MAILTO",
    "MAILFROM",
    "CONTENT_TYPE",
    "CONTENT_TRANSFER_ENCODING",
];

/// What is in force.
#[derive(Debug)]
pub(super) struct Environment {
    exports: Vec<(String, String)>,
    pub(super) shell: Shell,
    zone: Option<String>,
    pub(super) jitter_minutes: u32,
}

impl Default for Environment {
    fn default() -> Environment {
        Environment {
            exports: Vec::new(),
            shell: Shell::Sh,
            zone: None,
            jitter_minutes: 0,
        }
    }
}

/// What mails a failure, where that is what the variable was for and no shell finds more in it.
fn mail_hint(name: &str, value: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "@._+,-".contains(c);
    let mails = name == "MAILTO" && value.chars().all(is_plain) && !value.starts_with('-');
    mails.then(|| {
        format!("at the top of worker.yaml `notify: {{on_failure: {{sendmail: [{value}]}}}}` mails what fails")
    })
}

impl Environment {
    /// Takes `NAME=value` in; what cannot be carried over becomes a note.
    pub(super) fn set(&mut self, crontab: &mut Crontab, line: usize, name: &str, value: &str) {
        match name {
            _ if MAIL.contains(&name) => {
                if !value.is_empty() {
                    let message = format!("`{name}` is not carried over: nothing is mailed");
                    crontab.note(line, message, mail_hint(name, value));
                }
            }
            "SHELL" => self.set_shell(crontab, line, value),
            "CRON_TZ" => self.zone = zone(crontab, line, name, value),
            "TZ" => {
                let message =
                    "`TZ` is only set for commands, as in cron: it does not affect the slots";
                let hint = "to change the time zone of the slots, write `CRON_TZ` instead";
                crontab.note(line, message, Some(hint.to_owned()));
                self.export(name, value);
            }
            "RANDOM_DELAY" => match value.parse() {
                Ok(minutes) if minutes <= 1_440 => self.jitter_minutes = minutes,
                _ => crontab.note(
                    line,
                    "`RANDOM_DELAY` is not a number of minutes up to 1440",
                    None,
                ),
            },
            "LOGNAME" | "USER" | "START_HOURS_RANGE" => {
                let message =
                    format!("`{name}` is not carried over: cron gives it a meaning of its own");
                crontab.note(line, message, None);
            }
            _ if !is_name(name) || name.starts_with("WORKERCTL_") => {
                let message = format!(
                    "`{name}` is not carried over: a shell, or a run, cannot have such a variable"
                );
                crontab.note(line, message, Some("use another name".to_owned()));
            }
            _ => self.export(name, value),
        }
    }

    fn export(&mut self, name: &str, value: &str) {
        self.exports.retain(|(known, _)| known != name);
        self.exports.push((name.to_owned(), value.to_owned()));
    }

    fn set_shell(&mut self, crontab: &mut Crontab, line: usize, value: &str) {
        self.shell = match value.rsplit('/').next().unwrap_or(value) {
            "bash" => Shell::Bash,
            "sh" | "dash" => Shell::Sh,
            _ => {
                let message =
                    format!("`SHELL={value}` is not carried over: `/bin/sh` runs what follows");
                let hint = "call the other shell in the command".to_owned();
                crontab.note(line, message, Some(hint));
                Shell::Sh
            }
        };
    }

    /// What commands find in their environment, in the order in which it was written.
    pub(super) fn exports(&self) -> &[(String, String)] {
        &self.exports
    }

    /// The zone of slots.
    pub(super) fn timezone(&self) -> Option<String> {
        self.zone.clone()
    }
}

fn is_name(name: &str) -> bool {
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    begins && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The zone that a value names.
fn zone(crontab: &mut Crontab, line: usize, name: &str, value: &str) -> Option<String> {
    let text = value.strip_prefix(':').unwrap_or(value);
    if text.is_empty() {
        return None;
    }
    if text.parse::<Zone>().is_ok() {
        return Some(text.to_owned());
    }
    let message = format!(
        "`{name}={value}` is not a time zone: the jobs that follow use the workspace's time zone"
    );
    let hint = "write an IANA name such as `Europe/Berlin`".to_owned();
    crontab.note(line, message, Some(hint));
    None
}
