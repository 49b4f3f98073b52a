//! Hooks: the event as JSON on standard input, in the envelope that agent programs use for PostToolUse.

use std::path::Path;

use serde_json::json;

use super::super::work::Work;
use super::Performer;
use super::command::Invocation;
use super::in_place::works_in_place;
use crate::machine::{Event, HookVerdict};
use crate::model::evidence::Ended;
use crate::model::outcome::Step;
use crate::model::spec::HookSpec;
use crate::process::Stdin;
use crate::protocol::LogStream;

/// Exit code by which a hook blocks the run.
const BLOCKS: i32 = 2;

impl Performer {
    pub(super) fn run_hook(&self, work: &Work, index: u32) -> Event {
        let verdict = match work.spec.hooks.get(index as usize) {
            Some(hook) => match self.stand_on_result(work) {
                Ok(()) => {
                    let said = self.hook(work, hook, "PostToolUse");
                    self.unless_changed(work, said)
                }
                Err(failure) => HookVerdict::Changed {
                    message: failure.message,
                },
            },
            None => HookVerdict::Passed,
        };
        Event::HookFinished { index, verdict }
    }

    /// What the checks vouched for is what is committed, so a hook may look at it, not change it.
    fn unless_changed(&self, work: &Work, said: HookVerdict) -> HookVerdict {
        let drift = self.drift(work, "a hook", "hook_changed_result", Step::Hook);
        match (drift, said) {
            (None, said) => said,
            (Some(drift), _) if works_in_place(work) => HookVerdict::Blocked {
                message: drift.message,
            },
            (Some(drift), HookVerdict::Blocked { message }) => HookVerdict::Changed {
                message: format!("{}; it blocked the run: {message}", drift.message),
            },
            (Some(drift), _) => HookVerdict::Changed {
                message: drift.message,
            },
        }
    }

    pub(super) fn run_post_commit_hook(&self, work: &Work, index: u32) -> Event {
        let verdict = match work.spec.post_commit.get(index as usize) {
            Some(hook) => self.hook(work, hook, "PostCommit"),
            None => HookVerdict::Passed,
        };
        Event::PostCommitHookFinished { index, verdict }
    }

    fn hook(&self, work: &Work, hook: &HookSpec, name: &str) -> HookVerdict {
        let cwd = match self.place(work) {
            Ok(place) => place.of(&work.spec.cwd),
            Err(failure) => {
                let message = failure.message;
                return HookVerdict::Warned { message };
            }
        };
        let mut stdin = envelope(work, name, &cwd).to_string().into_bytes();
        stdin.push(b'\n');
        let ran = self.command(
            work,
            Invocation {
                program: &hook.program,
                stdin: Stdin::Bytes(stdin),
                timeout_ms: Some(hook.timeout_ms),
                attempt: work.run.facts.attempts.max(1),
                logged_as: Some(LogStream::Check),
                stdout_file: None,
                noted: true,
                more: landed_as(work),
            },
        );
        let said = ran.stderr_tail.trim().to_owned();
        match ran.ended {
            Ended::Exited { code: 0 } => HookVerdict::Passed,
            Ended::Exited { code: BLOCKS } => HookVerdict::Blocked {
                message: if said.is_empty() {
                    "a hook blocked the run".to_owned()
                } else {
                    said
                },
            },
            ended => HookVerdict::Warned {
                message: match said.lines().last() {
                    Some(line) => format!("{}: {line}", ended.describe()),
                    None => ended.describe(),
                },
            },
        }
    }
}

/// What a command that follows the landing is told of it.
fn landed_as(work: &Work) -> Vec<(String, String)> {
    let Some(commit) = &work.run.facts.commit else {
        return Vec::new();
    };
    let target = work.spec.tree.as_ref().map(|tree| tree.target.as_str());
    let branch = target.and_then(|name| name.strip_prefix("refs/heads/"));
    let mut told = vec![("WORKERCTL_COMMIT".to_owned(), commit.clone())];
    told.extend(branch.map(|name| ("WORKERCTL_BRANCH".to_owned(), name.to_owned())));
    told
}

/// The event, with the fields that agent programs give their PostToolUse hooks.
fn envelope(work: &Work, name: &str, cwd: &Path) -> serde_json::Value {
    let spec = &work.spec;
    let inputs: serde_json::Map<String, serde_json::Value> = spec
        .inputs
        .iter()
        .map(|(name, value)| (name.clone(), value.to_json()))
        .collect();
    let (outputs, changed) = work
        .entries
        .iter()
        .rev()
        .find_map(|entry| match &entry.event {
            Event::ResultRecorded { result, .. } => {
                Some((result.outputs.clone(), result.changed.clone()))
            }
            _ => None,
        })
        .unwrap_or_default();
    let mut event = json!({
        "hook_event_name": name,
        "session_id": spec.thread,
        "cwd": cwd,
        "tool_name": spec.skill.to_string(),
        "tool_input": inputs,
        "tool_response": {
            "execution": work.run.facts.results.execution,
            "verification": work.run.facts.results.verification,
        },
        "run_id": spec.run,
        "attempt": work.run.facts.attempts,
        "worker": spec.skill.worker,
        "skill": spec.skill.skill,
        "mutating": spec.plan.mutating,
        "outputs": outputs,
        "files_changed": changed,
    });
    if let (Some(commit), Some(object)) = (&work.run.facts.commit, event.as_object_mut()) {
        object.insert("commit".to_owned(), json!(commit));
    }
    event
}
