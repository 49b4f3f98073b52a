//! Hooks: the event as JSON on standard input, in the envelope that agent programs use for PostToolUse.

use std::path::Path;

use serde_json::json;

use super::super::outputs::OutputStamp;
use super::super::work::Work;
use super::Performer;
use super::command::{Invocation, TAIL_BYTES_MAX};
use crate::machine::{Event, HookVerdict};
use crate::model::FailedPush;
use crate::model::evidence::Ended;
use crate::model::outcome::Step;
use crate::model::spec::HookSpec;
use crate::process::Stdin;
use crate::protocol::LogStream;

/// Exit code by which a hook blocks the run.
const BLOCKS: i32 = 2;

/// The event of hooks that can block a run.
const BLOCKING: &str = "PostToolUse";

/// Exit codes of shells for a program that cannot be executed or does not exist.
const NOT_EXECUTED: [i32; 2] = [126, 127];

/// Returns true if a hook did not decide. A result could be made so that the hook which would refuse it does not start,
/// takes too long or crashes.
fn is_without_answer(ended: &Ended) -> bool {
    match ended {
        Ended::Exited { code } => NOT_EXECUTED.contains(code),
        // Only models end in the last three ways.
        Ended::Stopped
        | Ended::Answered { .. }
        | Ended::Unfinished { .. }
        | Ended::Failed { .. } => false,
        Ended::Signalled { .. }
        | Ended::TimedOut
        | Ended::LimitReached { .. }
        | Ended::NotStarted { .. } => true,
    }
}

/// Whether a hook is the push that a definition asks for by name: it needs keys that no skill is given.
fn is_push(work: &Work, hook: &HookSpec) -> bool {
    let first = work.spec.post_commit.first();
    pushes(work).is_some() && first.is_some_and(|first| std::ptr::eq(first, hook))
}

impl Performer {
    pub(super) fn run_hook(&self, work: &Work, index: u32) -> Event {
        let (verdict, sandbox_level) = match work.spec.hooks.get(index as usize) {
            Some(hook) => match self.stand_on_result(work) {
                Ok(()) => {
                    let before = self.output_stamps(work);
                    let (said, level) = self.hook(work, hook, BLOCKING, Vec::new());
                    (self.unless_changed(work, &before, said), level)
                }
                Err(failure) => {
                    let message = failure.message;
                    (HookVerdict::Changed { message }, None)
                }
            },
            None => (HookVerdict::Passed, None),
        };
        Event::HookFinished {
            index,
            verdict,
            sandbox_level,
        }
    }

    /// What the checks vouched for is what is committed, so a hook may look at it, not change it.
    fn unless_changed(
        &self,
        work: &Work,
        before: &[Option<OutputStamp>],
        said: HookVerdict,
    ) -> HookVerdict {
        let who @ (name, code, step) = ("a hook", "hook_changed_result", Step::Hook);
        let drift = self.drift(work, name, code, step);
        let drift = drift.or_else(|| self.outputs_changed(work, before, who));
        match (drift, said) {
            (None, said) => said,
            (Some(drift), HookVerdict::Blocked { message }) => HookVerdict::Changed {
                message: format!("{}; it blocked the run: {message}", drift.message),
            },
            (Some(drift), _) => HookVerdict::Changed {
                message: drift.message,
            },
        }
    }

    pub(super) fn run_post_commit_hook(&self, work: &Work, index: u32) -> Event {
        let (verdict, sandbox_level) = match work.spec.post_commit.get(index as usize) {
            Some(hook) => {
                let mut told = landed_as(work);
                if index == 0 && pushes(work).is_some() {
                    told.extend(self.push_variables());
                }
                self.hook(work, hook, "PostCommit", told)
            }
            None => (HookVerdict::Passed, None),
        };
        let verdict = match verdict {
            HookVerdict::Passed => HookVerdict::Passed,
            HookVerdict::Blocked { message }
            | HookVerdict::Changed { message }
            | HookVerdict::Warned { message } => HookVerdict::Warned {
                message: follower_failed(work, index, &message),
            },
        };
        Event::PostCommitHookFinished {
            index,
            verdict,
            sandbox_level,
        }
    }

    /// What a hook said, and the level of the walls that it had, where it ran.
    fn hook(
        &self,
        work: &Work,
        hook: &HookSpec,
        name: &str,
        more: Vec<(String, String)>,
    ) -> (HookVerdict, Option<u32>) {
        let cwd = match self.place(work) {
            Ok(place) => place.of(&work.spec.cwd),
            Err(failure) => {
                let message = failure.message;
                return (HookVerdict::Warned { message }, None);
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
                more,
                sees_run: true,
                ours: is_push(work, hook),
                tail_bytes: TAIL_BYTES_MAX,
            },
        );
        let said = ran.stderr_tail.trim().to_owned();
        let verdict = match ran.ended {
            Ended::Exited { code: 0 } => HookVerdict::Passed,
            Ended::Exited { code: BLOCKS } => HookVerdict::Blocked {
                message: if said.is_empty() {
                    "a hook blocked the run".to_owned()
                } else {
                    said
                },
            },
            ended => {
                let why = match &ended {
                    Ended::LimitReached { resource, .. } => {
                        format!("{} ({})", ended.describe(), resource.code())
                    }
                    other => other.describe(),
                };
                let message = match telling_line(&said) {
                    Some(line) => format!("{why}: {line}"),
                    None => why,
                };
                if name == BLOCKING && is_without_answer(&ended) {
                    HookVerdict::Blocked {
                        message: format!("a hook that can block gave no answer: {message}"),
                    }
                } else {
                    HookVerdict::Warned { message }
                }
            }
        };
        (verdict, ran.level)
    }
}

/// The remote and the branch of a run whose first hook after the landing is a push.
fn pushes(work: &Work) -> Option<(&str, &str)> {
    let tree = work.spec.tree.as_ref()?;
    Some((tree.push.as_deref()?, tree.branch()))
}

/// What is said of a failed hook that follows the landing; the first of them is the push, where there is one.
fn follower_failed(work: &Work, index: u32, why: &str) -> String {
    match pushes(work) {
        Some((remote, branch)) if index == 0 => FailedPush::describe(remote, branch, why),
        Some(_) => format!("post-commit hook {index}: {why}"),
        None => format!("post-commit hook {}: {why}", u64::from(index) + 1),
    }
}

/// The line that says why: what `git push` says of a branch that is refused, or of a remote that it cannot
/// reach, stands before its advice.
pub(super) fn telling_line(said: &str) -> Option<&str> {
    let why = |line: &&str| line.starts_with("! [") || line.starts_with("fatal: ");
    said.lines()
        .map(str::trim)
        .find(why)
        .or_else(|| said.lines().last())
}

/// What a command that follows the landing is told of it.
fn landed_as(work: &Work) -> Vec<(String, String)> {
    let Some(commit) = &work.run.facts.commit else {
        return Vec::new();
    };
    let branch = work.spec.tree.as_ref().map(|tree| tree.branch().to_owned());
    let mut told = vec![("WORKERCTL_COMMIT".to_owned(), commit.clone())];
    told.extend(branch.map(|name| ("WORKERCTL_BRANCH".to_owned(), name)));
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
        "user_id": spec.user_id,
        "chat_id": spec.chat_id,
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
