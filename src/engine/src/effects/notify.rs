//! `notify`: people are told how runs and schedules went, by commands, webhooks and mails.

mod context;
#[cfg(feature = "llm")]
mod forms;
mod mail;
mod message;
mod test;
mod webhook;
mod words;

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::names;
use super::super::work::{NoticeResult, Telling};
use super::Performer;
use super::command::{TAIL_BYTES_MAX, Tail};

use crate::model::definition::{HookText, Shell};
use crate::model::schedule::cut;
use crate::model::{Channel, Notice, Timestamp, Zone};
use crate::process::{self, Owner, Stdin};
use crate::thread::sgr::without_sgr;

use context::RunContext;
use message::Message;

/// Longest that `sendmail` may take to take a mail, in milliseconds.
const SENDMAIL_MS: u64 = 60_000;

/// How much of how a command ended, and of what it said, is kept in the schedule's state, in bytes each: that is
/// one small record.
const SAID_BYTES_MAX: usize = 120;

/// A notice that was not delivered.
struct Undelivered {
    /// Why, in one line without what is secret.
    why: String,
    /// How long a web server asks to wait.
    wait_ms: Option<u64>,
}

impl From<String> for Undelivered {
    fn from(why: String) -> Undelivered {
        Undelivered { why, wait_ms: None }
    }
}

/// What is told in each of the forms.
struct Told<'a> {
    telling: &'a Telling,
    notice: &'a Notice,
    message: Message,
    envelope: Value,
}

impl Performer {
    pub(super) fn run_notify(&self, telling: &Telling) -> NoticeResult {
        let Some(notice) = telling.notices.waiting.first() else {
            return NoticeResult::Unwanted;
        };
        let Some(channel) = self.channel_of(telling, notice) else {
            return NoticeResult::Unwanted;
        };
        let (subject, event) = (telling.notices.subject(), notice.news.event());
        let key = notice.news.key();
        // Another workspace may have the same.
        let owner = format!("notice of {subject} of {}", self.parts.state_dir.display());
        match self.deliver(telling, notice, &channel, owner) {
            Ok(_) => {
                tracing::info!(subject, event, "the notification was sent by `{key}`");
                NoticeResult::Delivered
            }
            Err(_) if telling.stop.requested().is_some() => NoticeResult::Stopped,
            Err(Undelivered { why, wait_ms }) => {
                let why = match &channel {
                    Channel::Command(_) => why,
                    Channel::Webhook { webhook, .. } => format!("webhook {webhook}: {why}"),
                    Channel::Mail { .. } => format!("sendmail: {why}"),
                };
                tracing::error!(
                    subject,
                    event,
                    why,
                    "the notification by `{key}` failed and is tried again"
                );
                NoticeResult::Failed { why, wait_ms }
            }
        }
    }

    /// Tells it once: what was answered, or why it does not count.
    fn deliver(
        &self,
        telling: &Telling,
        notice: &Notice,
        channel: &Channel,
        owner: String,
    ) -> Result<String, Undelivered> {
        let workspace = &self.parts.workspace;
        let timezone = &self.parts.definitions.current().config.timezone;
        let zone = timezone.parse().unwrap_or(Zone::UTC);
        let context = self.run_context(notice);
        let message = Message::of(telling, notice, &context, workspace, zone);
        let told = Told {
            envelope: envelope(telling, notice, &context, workspace, &message),
            telling,
            notice,
            message,
        };
        match channel {
            Channel::Command(hook) => {
                let input = format!("{}\n", told.envelope);
                self.run_told(&told, hook, input, owner)
            }
            Channel::Mail { sendmail } => {
                let input = mail::mail(sendmail, &told.message, self.parts.clock.now());
                let hook = HookText {
                    command: mail::SENDMAIL.to_owned(),
                    timeout_ms: SENDMAIL_MS,
                };
                self.run_told(&told, &hook, input, owner)
            }
            Channel::Webhook { webhook, form } => self.post_told(&told, webhook, *form),
        }
    }

    /// Runs a command to its end, which is 0 where it was told.
    fn run_told(
        &self,
        told: &Told<'_>,
        hook: &HookText,
        input: String,
        owner: String,
    ) -> Result<String, Undelivered> {
        let owner = Owner {
            run: owner,
            attempt: 1,
        };
        // An engine that was lost may have left one that still runs.
        let grace = Duration::from_millis(self.parts.grace_ms);
        if let Err(error) = process::find_and_end_orphans(&[], &owner, grace) {
            let subject = told.telling.notices.subject();
            tracing::warn!(subject, %error, "an earlier command of `notify` still runs");
        }
        let command = self.notify_command(told, hook, input, owner);
        let mut heard = Heard {
            tail: Tail::of(TAIL_BYTES_MAX),
        };
        let finished = process::run(&command, &told.telling.stop, &mut heard)
            .map_err(|error| said(&crate::model::diagnostic::chain(&error), ""))?;
        // It may have come by a secret of the runs that it is told of.
        let masker = self.logs.masker_of(&told.telling.notices.skill);
        let said = said(
            &super::command::ended(&finished).describe(),
            &masker.mask_text(&heard.tail.text()),
        );
        let succeeded = finished.ended == process::EndCause::ByItself
            && finished.status == process::ExitStatus::Exited(0);
        if succeeded {
            Ok(said)
        } else {
            Err(said.into())
        }
    }

    /// The schedule's way of telling, else the worker's, else the one for all: as the files say it now.
    fn channel_of(&self, telling: &Telling, notice: &Notice) -> Option<Channel> {
        let catalog = self.parts.definitions.current();
        let schedule = telling.schedule.as_ref();
        let schedule = schedule.map(|one| &one.definition.policy.notify);
        let id = &telling.notices.skill.worker;
        let worker = catalog.workers.iter().find(|worker| worker.id == *id);
        let worker = worker.map(|worker| &worker.notify);
        let levels = [schedule, worker, Some(&catalog.config.notify)];
        let mut named = levels.into_iter().flatten();
        named.find_map(|level| notice.news.channel(level)).cloned()
    }

    fn notify_command(
        &self,
        told: &Told<'_>,
        hook: &HookText,
        input: String,
        owner: Owner,
    ) -> process::Command {
        let workspace = &self.parts.workspace;
        let scratch = self.parts.state_dir.join("scratch");
        let more = variables(told.telling, told.notice, workspace);
        let env = process::environment(&self.parts.environment, &scratch, more, &owner);
        process::Command {
            program: process::Program::Shell {
                shell: names::shell_program(Shell::Sh).into(),
                text: hook.command.clone(),
            },
            cwd: workspace.clone(),
            env,
            stdin: Stdin::Bytes(input.into_bytes()),
            stdout_file: None,
            scratch: Some(scratch),
            limits: process::Limits {
                timeout: Some(Duration::from_millis(hook.timeout_ms)),
                resources: self.parts.definitions.current().config.limits,
                grace: Duration::from_millis(self.parts.grace_ms),
                ..process::Limits::default()
            },
            owner,
            may_control: true,
            wall: None,
        }
    }
}

/// The event; times are RFC 3339 in UTC.
fn envelope(
    telling: &Telling,
    notice: &Notice,
    context: &RunContext,
    workspace: &Path,
    message: &Message,
) -> Value {
    let (notices, schedule) = (&telling.notices, telling.schedule.as_ref());
    let newest = schedule.and_then(|one| one.newest.as_ref());
    let pause = schedule.and_then(|one| one.pause.as_ref());
    json!({
        "hook_event_name": notice.news.event(),
        "text": message.text(),
        "cwd": workspace,
        "schedule": notices.schedule,
        "worker": notices.skill.worker,
        "skill": notices.skill.skill,
        "at": notice.at.rfc3339(),
        "run": notice.run,
        "outcome": notice.outcome,
        "message": notice.message,
        "output": context.output,
        "branch": context.branch,
        "push_branch": context.push_branch,
        "commit": context.commit,
        "kept_commit": context.kept_commit,
        "url": context.url,
        "failure_count": notice.failures,
        "run_count": notice.runs.max(notice.failures),
        "failing_since": notices.failing_since.or(notice.failing_since).map(Timestamp::rfc3339),
        "expected_by": notice.expected_by.map(Timestamp::rfc3339),
        "timezone": schedule.map(|one| &one.definition.timezone),
        "last_success": last_success(telling),
        "last_slot": newest.map(|row| json!({
            "from": row.from.rfc3339(),
            "to": row.to.rfc3339(),
            "count": row.count,
            "status": row.status,
            "run": row.run,
            "at": row.at.rfc3339(),
            "reason": row.reason,
        })),
        "paused": pause.map(|pause| json!({
            "reason": pause.reason,
            "by": pause.by,
            "at": pause.at.rfc3339(),
        })),
        "attempt_count": notices.tries,
        "omitted_count": notices.omitted,
        "test": telling.is_test,
    })
}

fn last_success(telling: &Telling) -> Option<String> {
    let at = telling.schedule.as_ref()?.succeeded_at?;
    Some(at.rfc3339())
}

fn variables(telling: &Telling, notice: &Notice, workspace: &Path) -> Vec<(String, String)> {
    let expected_by = notice.expected_by.map(Timestamp::rfc3339);
    let pairs = [
        ("WORKERCTL_WORKSPACE", Some(workspace.display().to_string())),
        ("WORKERCTL_EVENT", Some(notice.news.event().to_owned())),
        ("WORKERCTL_SCHEDULE", telling.notices.schedule.clone()),
        ("WORKERCTL_SKILL", Some(telling.notices.skill.to_string())),
        ("WORKERCTL_RUN", notice.run.map(|run| run.to_string())),
        ("WORKERCTL_EXPECTED_BY", expected_by),
        ("WORKERCTL_LAST_SUCCESS", last_success(telling)),
    ];
    let given =
        |(name, value): (&str, Option<String>)| (name.to_owned(), value.unwrap_or_default());
    pairs.map(given).into()
}

/// How it ended and the last of what it said, short and in one line.
fn said(ended: &str, output: &str) -> String {
    let output = without_sgr(output.trim());
    let from = output.len().saturating_sub(SAID_BYTES_MAX);
    let last = &output[output.ceil_char_boundary(from)..];
    let mut text = match last {
        "" => ended.to_owned(),
        last => format!("{ended}: {last}"),
    };
    text = text
        .chars()
        .map(|one| if one.is_control() { ' ' } else { one })
        .collect();
    cut(&text, 2 * SAID_BYTES_MAX).to_owned()
}

/// The last of both streams.
pub(super) struct Heard {
    pub(super) tail: Tail,
}

impl process::OutputSink for Heard {
    fn line(&mut self, _stream: process::Stream, bytes: &[u8], more: bool) {
        self.tail.push(&String::from_utf8_lossy(bytes), more);
    }
}

#[cfg(test)]
mod tests {
    use super::said;

    #[test]
    fn what_a_command_said_is_kept_in_one_line_without_colours() {
        let output = "\u{1b}[31mno\u{1b}[0m route\nto\u{7} host\n";
        assert_eq!(
            said("exit code 1", output),
            "exit code 1: no route to  host"
        );
        assert_eq!(said("exit code 1", " \n"), "exit code 1");
    }
}
