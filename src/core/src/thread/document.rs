//! A run's summary file, after the thread schema of HQ, version 1, plus `run`.

use serde_json::{Value, json};

use super::line::LogEnd;
use super::mask::Masker;
use super::project::Story;
use super::safe::{inert, masked};
use super::telling::{next_steps, sentence};
use crate::machine::{AfterRestore, AfterSave, Entry, Goal, State};
use crate::model::evidence::CheckRecord;
use crate::model::outcome::{Outcome, Phase};
use crate::model::{RunSpec, Timestamp};

/// Version of HQ's thread schema that the file follows.
pub const HQ_THREAD_VERSION: u32 = 1;

/// Version of the part under `run`.
pub const RUN_VERSION: u32 = 1;

/// What the repository looked like when the file was written; absent facts become `null`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitFacts {
    /// Short name of the branch.
    pub branch: Option<String>,
    /// Where `origin` lies; a name and password in it are left out of the file.
    pub remote_url: Option<String>,
    /// HEAD before the first attempt, in hex.
    pub initial_commit: Option<String>,
    /// HEAD now, in hex.
    pub current_commit: Option<String>,
    /// Ids of the newest commits of the skill and of the run's, the oldest first.
    pub commits_made: Vec<String>,
    /// Whether there are changes that are not committed.
    pub dirty: Option<bool>,
}

/// HQ's word for where a run is. This is the only place that knows these words.
pub fn hq_state(state: &State) -> &'static str {
    match state {
        State::Queued | State::AwaitingApproval { .. } => "idle",
        State::Validating { .. } => "loading",
        State::Preparing { .. } | State::BackingOff { .. } => "planning",
        State::Executing { .. } => "executing",
        State::Verifying { .. } => "verifying",
        State::Recording { goal, .. } => match goal {
            Goal::Verify { .. } => "verifying",
            Goal::Restore(then) => hq_after(then),
        },
        State::Restoring { then } => hq_after(then),
        State::PostHook { .. }
        | State::Committing { .. }
        | State::Publishing { .. }
        | State::Announcing { .. } => "post_hook",
        State::Saving { next, .. } => match next {
            AfterSave::Commit | AfterSave::Finish(Outcome::Succeeded) => "post_hook",
            AfterSave::Finish(outcome) => hq_outcome(outcome),
        },
        State::Finished { outcome, .. } => hq_outcome(outcome),
    }
}

fn hq_after(then: &AfterRestore) -> &'static str {
    match then {
        AfterRestore::Retry { .. } => "planning",
        AfterRestore::Requeue => "idle",
        AfterRestore::Finish(outcome) => hq_outcome(outcome),
    }
}

fn hq_outcome(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Succeeded => "completed",
        Outcome::Failed { .. }
        | Outcome::Cancelled
        | Outcome::TimedOut { .. }
        | Outcome::Denied { .. }
        | Outcome::Unknown { .. } => "error",
    }
}

/// The summary as JSON, secrets masked. `end`: where the log ends, when nothing more will be written to it.
pub fn document(
    spec: &RunSpec,
    entries: &[Entry],
    git: &GitFacts,
    end: Option<&LogEnd>,
    masker: &Masker,
) -> Value {
    let story = Story::of(spec, entries);
    let outcome = story.coming_outcome();
    let error = outcome
        .filter(|outcome| **outcome != Outcome::Succeeded)
        .map(|outcome| {
            outcome
                .detail()
                .unwrap_or_else(|| outcome.name().to_owned())
        });
    let summary = story.summary.build(spec, &story.run, None);
    let value = json!({
        "thread_id": spec.thread.as_str(),
        "version": HQ_THREAD_VERSION,
        "type": "checkpoint",
        "created_at": spec.submitted_at.rfc3339(),
        "updated_at": story.updated_at.rfc3339(),
        "workspace_root": spec.workspace,
        "cwd": relative(&spec.cwd, &spec.workspace),
        "git": {
            "branch": git.branch,
            "remote_url": git.remote_url.as_deref().map(without_credentials),
            "initial_commit": git.initial_commit,
            "current_commit": git.current_commit,
            "commits_made": git.commits_made,
            "dirty": git.dirty,
        },
        "worker": {
            "id": spec.skill.worker,
            "skill": spec.skill.skill,
            "state": hq_state(&story.run.state),
            "started_at": summary.started_at.map(Timestamp::rfc3339),
            "completed_at": summary.finished_at.map(Timestamp::rfc3339),
            "error": error,
        },
        "conversation_summary": sentence(&story),
        "files_touched": files_touched(&story),
        "next_steps": next_steps(&story),
        "metadata": {
            "title": spec.title,
            "tags": tags(&story),
        },
        "run": run(&story),
    });
    let mut value = masked(value, masker);
    // A secret of a few hexadecimal digits must not spoil the hash.
    value["run"]["log"] = json!(end);
    value
}

/// The text of the summary file: indented, no control characters, a newline at its end.
pub fn document_text(document: &Value) -> String {
    // Serialising a JSON value to a string cannot fail; the compact form is the honest way out.
    let text = serde_json::to_string_pretty(document).unwrap_or_else(|_| document.to_string());
    let mut text = inert_pretty(&text);
    text.push('\n');
    text
}

fn inert_pretty(text: &str) -> String {
    text.split('\n')
        .map(|line| inert(line.to_owned()))
        .collect::<Vec<_>>()
        .join("\n")
}

fn run(story: &Story<'_>) -> Value {
    let (spec, run) = (story.spec, &story.run);
    let summary = story.summary.build(spec, run, None);
    json!({
        "version": RUN_VERSION,
        "id": spec.run.to_string(),
        "phase": summary.phase,
        "outcome": summary.outcome,
        "unverified": summary.unverified,
        "nothing_to_do": summary.nothing_to_do,
        "reconciled": summary.reconciled,
        "resolution": run.facts.resolution,
        "resolution_note": story.resolution_note,
        "approval": story.approval(),
        "mutating": summary.mutating,
        "results": run.facts.results,
        "inputs": story.inputs(),
        "message": spec.message,
        "command": spec.program.show(),
        "pre_checks": checks(&story.pre_checks),
        "attempts": attempts(story),
        "outputs": story.outputs,
        "changed": story.changed,
        "changed_count": story.changed_count,
        "hooks": hooks(story),
        "commit": summary.commit,
        "commits_made": summary.commits_made,
        "commit_message": spec.commit_message,
        "put_back": story.not_restored.put_back,
        "not_restored": story.not_restored_lines(),
        "warnings": run.facts.warnings,
        "timings": timings(story),
        "timeline": story
            .timeline
            .iter()
            .map(|(at, name)| json!({"at": at.rfc3339(), "event": name}))
            .collect::<Vec<_>>(),
        "definition_digest": spec.definition_digest,
        "submitted_by": spec.submitted_by,
        "user_id": spec.user_id,
        "chat_id": spec.chat_id,
        "parent": summary.parent.map(|run| run.to_string()),
        "retry_of": spec.retry_of.map(|run| run.to_string()),
    })
}

fn checks(records: &[CheckRecord]) -> Vec<Value> {
    records
        .iter()
        .map(|check| {
            json!({
                "description": check.description,
                "command": check.command,
                "must_pass": check.must_pass,
                "verdict": check.verdict,
                "ended": check.ended,
                "message": check.message,
                "output": check.output_tail,
                "duration_ms": check.duration_ms,
                "sandbox_level": check.sandbox_level,
            })
        })
        .collect()
}

fn attempts(story: &Story<'_>) -> Vec<Value> {
    story
        .attempts
        .iter()
        .map(|attempt| {
            json!({
                "attempt": attempt.attempt,
                "started_at": attempt.started_at.rfc3339(),
                "execution": attempt.execution,
                "checks": checks(&attempt.checks),
                "failure": attempt.failure,
            })
        })
        .collect()
}

fn hooks(story: &Story<'_>) -> Vec<Value> {
    let command = |post_commit: bool, index: u32| {
        let hooks = if post_commit {
            &story.spec.post_commit
        } else {
            &story.spec.hooks
        };
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        hooks.get(index).map(|hook| hook.program.show())
    };
    story
        .hooks
        .iter()
        .map(|hook| {
            json!({
                "when": if hook.post_commit { "post_commit" } else { "post_tools" },
                "index": hook.index,
                "command": command(hook.post_commit, hook.index),
                "verdict": hook.verdict,
                "sandbox_level": hook.sandbox_level,
                "finished_at": hook.at.rfc3339(),
            })
        })
        .collect()
}

fn timings(story: &Story<'_>) -> Value {
    let summary = story.summary.build(story.spec, &story.run, None);
    let end = summary.finished_at.unwrap_or(story.updated_at);
    json!({
        "submitted_at": story.spec.submitted_at.rfc3339(),
        "admitted_at": story.admitted_at.map(Timestamp::rfc3339),
        "started_at": summary.started_at.map(Timestamp::rfc3339),
        "finished_at": summary.finished_at.map(Timestamp::rfc3339),
        "duration_ms": summary.duration_ms,
        "total_ms": end.millis_since(story.spec.submitted_at),
        "phases_ms": Phase::ALL
            .into_iter()
            .filter(|phase| story.phase_ms(*phase) > 0)
            .map(|phase| (phase.name().to_owned(), Value::from(story.phase_ms(phase))))
            .collect::<serde_json::Map<_, _>>(),
    })
}

/// Declared outputs that were written and paths that were changed, each once.
fn files_touched(story: &Story<'_>) -> Vec<String> {
    let mut files: Vec<String> = story
        .outputs
        .iter()
        .filter(|output| output.written)
        .filter_map(|output| output.path.clone())
        .chain(story.changed.iter().cloned())
        .collect();
    files.sort_unstable();
    files.dedup();
    files
}

fn tags(story: &Story<'_>) -> Vec<String> {
    let summary = story.summary.build(story.spec, &story.run, None);
    let mut tags = vec![
        story.spec.skill.worker.clone(),
        story.spec.skill.skill.clone(),
    ];
    tags.extend(
        story
            .coming_outcome()
            .map(|outcome| outcome.name().to_owned()),
    );
    for (flag, tag) in [
        (summary.unverified, "unverified"),
        (summary.nothing_to_do, "nothing_to_do"),
        (summary.reconciled, "reconciled"),
    ] {
        if flag {
            tags.push(tag.to_owned());
        }
    }
    tags.dedup();
    tags
}

/// The path relative to the workspace, `.` for the workspace itself, absolute outside it.
fn relative(path: &str, workspace: &str) -> String {
    match path.strip_prefix(workspace.trim_end_matches('/')) {
        Some("" | "/") => ".".to_owned(),
        Some(rest) if rest.starts_with('/') => rest.trim_start_matches('/').to_owned(),
        _ => path.to_owned(),
    }
}

/// The address without the name and password that may stand before its host.
fn without_credentials(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let end = rest.find('/').unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        Some(at) => format!("{scheme}://{}", &rest[at + 1..]),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests;
