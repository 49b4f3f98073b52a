//! The `on_missed` command of a schedule: told on standard input that it has not succeeded in time.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::names;
use super::super::work::Alarm;
use super::Performer;
use super::command::Tail;

use crate::model::Timestamp;
use crate::model::definition::{HookText, Shell};
use crate::model::schedule::{Told, cut};
use crate::process::{self, Owner, Stdin};
use crate::thread::sgr::without_sgr;

/// How much of how a command ended, and of what it said, is kept in the schedule's state, in bytes each: that is
/// one small record.
const SAID_BYTES_MAX: usize = 120;

impl Performer {
    pub(super) fn run_on_missed(&self, alarm: &Alarm) -> Option<Told> {
        let hook = alarm.schedule.policy.on_missed.as_ref()?;
        // Another workspace may have a schedule of the same id.
        let state_dir = self.parts.state_dir.display();
        let owner = Owner {
            run: format!("on_missed {} of {state_dir}", alarm.schedule.id),
            attempt: 1,
        };
        // An engine that was lost may have left one that still runs.
        let grace = Duration::from_millis(self.parts.grace_ms);
        if let Err(error) = process::find_and_end_orphans(&[], &owner, grace) {
            tracing::warn!(schedule = &*alarm.schedule.id, %error, "an earlier `on_missed` still runs");
        }
        let mut heard = Heard::default();
        let ran = process::run(
            &self.on_missed_command(alarm, hook, owner),
            &alarm.stop,
            &mut heard,
        );
        let ended = match &ran {
            Ok(finished) => super::command::ended(finished).describe(),
            Err(error) => crate::model::diagnostic::chain(error),
        };
        let succeeded = ran.as_ref().is_ok_and(|finished| {
            finished.ended == process::Ended::ByItself
                && finished.status == process::ExitStatus::Exited(0)
        });
        if !succeeded && alarm.stop.requested().is_some() {
            return None;
        }
        let output = heard.tail.text();
        let schedule = &*alarm.schedule.id;
        if succeeded {
            tracing::info!(schedule, "`on_missed` was told");
        } else {
            tracing::error!(schedule, ended, output, "`on_missed` failed");
        }
        Some(Told {
            at: self.parts.clock.now(),
            succeeded,
            message: (!succeeded).then(|| said(&ended, &output)),
        })
    }

    fn on_missed_command(&self, alarm: &Alarm, hook: &HookText, owner: Owner) -> process::Command {
        let workspace = &self.parts.workspace;
        let scratch = self.parts.state_dir.join("scratch");
        let mut stdin = envelope(alarm, workspace).to_string().into_bytes();
        stdin.push(b'\n');
        let mut env = process::base_environment(&self.parts.environment, &scratch);
        env.extend(variables(alarm, workspace));
        process::Command {
            program: process::Program::Shell {
                shell: names::shell_program(Shell::Sh).into(),
                text: hook.command.clone(),
            },
            cwd: workspace.clone(),
            env,
            stdin: Stdin::Bytes(stdin),
            stdout_file: None,
            scratch: Some(scratch),
            limits: process::Limits {
                timeout: Some(Duration::from_millis(hook.timeout_ms)),
                grace: Duration::from_millis(self.parts.grace_ms),
                output_bytes_max: self.parts.output_bytes_max,
                ..process::Limits::default()
            },
            owner,
        }
    }
}

/// The event; times are RFC 3339 in UTC.
fn envelope(alarm: &Alarm, workspace: &std::path::Path) -> Value {
    let schedule = &alarm.schedule;
    json!({
        "hook_event_name": "ScheduleMissed",
        "cwd": workspace,
        "schedule": schedule.id,
        "worker": schedule.skill.worker,
        "skill": schedule.skill.skill,
        "timezone": schedule.timezone,
        "expected_by": alarm.missed.expected_by.rfc3339(),
        "noticed_at": alarm.missed.at.rfc3339(),
        "last_success": alarm.succeeded_at.map(Timestamp::rfc3339),
        "failures": alarm.failures,
        "last_slot": alarm.newest.as_ref().map(|row| json!({
            "from": row.from.rfc3339(),
            "to": row.to.rfc3339(),
            "count": row.count,
            "fate": row.fate,
            "run": row.run,
            "at": row.at.rfc3339(),
            "reason": row.reason,
        })),
        "paused": alarm.pause.as_ref().map(|pause| json!({
            "reason": pause.reason,
            "by": pause.by,
            "at": pause.at.rfc3339(),
        })),
    })
}

fn variables(alarm: &Alarm, workspace: &std::path::Path) -> Vec<(String, String)> {
    let last_success = alarm.succeeded_at.map(Timestamp::rfc3339);
    let pairs = [
        ("WORKERCTL_WORKSPACE", workspace.display().to_string()),
        ("WORKERCTL_SCHEDULE", alarm.schedule.id.to_string()),
        ("WORKERCTL_SKILL", alarm.schedule.skill.to_string()),
        ("WORKERCTL_EXPECTED_BY", alarm.missed.expected_by.rfc3339()),
        ("WORKERCTL_LAST_SUCCESS", last_success.unwrap_or_default()),
    ];
    pairs.map(|(name, value)| (name.to_owned(), value)).into()
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
#[derive(Default)]
struct Heard {
    tail: Tail,
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
