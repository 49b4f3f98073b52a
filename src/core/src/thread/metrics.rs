//! The line of metrics that a run leaves.

use serde::{Deserialize, Serialize};

use super::project::Story;
use crate::machine::Entry;
use crate::model::agent::Tokens;
use crate::model::outcome::{Outcome, Phase};
use crate::model::{RunId, RunSpec, Timestamp};

/// Version of the line.
pub const METRICS_VERSION: u32 = 1;

/// One run in one line of `metrics.jsonl`; times in RFC 3339, spans in milliseconds of wall time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetricsLine {
    /// [`METRICS_VERSION`] of the writer.
    pub version: u32,
    /// The run; at most one line stands for it.
    pub run: RunId,
    /// Its worker.
    pub worker: String,
    /// Its skill.
    pub skill: String,
    /// How it ended.
    pub outcome: String,
    /// Which step failed, if one did.
    pub failed_step: Option<String>,
    /// Stable code of the failure, if there is one.
    pub code: Option<String>,
    /// What became of its verification: `skipped` is unverified.
    pub verification: String,
    /// Whether it stands though the execution's end is unknown.
    pub reconciled: bool,
    /// Whether it is a mutating skill.
    pub mutating: bool,
    /// How many attempts were started.
    pub attempts: u32,
    /// When it was accepted.
    pub submitted_at: String,
    /// When its command first started.
    pub started_at: Option<String>,
    /// When it ended.
    pub finished_at: Option<String>,
    /// Waiting for its turn.
    pub queue_ms: u64,
    /// Its command running, over all attempts.
    pub execution_ms: u64,
    /// Recording and checking, over all attempts.
    pub verification_ms: u64,
    /// Waiting between attempts.
    pub backoff_ms: u64,
    /// From the start of its first attempt to its end, without the time in which it waited; null: it never started.
    #[serde(default)]
    pub duration_ms: Option<u64>,
    /// From acceptance to its end, waits included.
    pub total_ms: u64,
    /// Bytes that its commands wrote to standard output and error.
    pub output_bytes: u64,
    /// Turns with a model, over all attempts; none where it has a command.
    #[serde(default)]
    pub iterations: u32,
    /// What these cost in tokens, parts apart.
    #[serde(default)]
    pub tokens: Tokens,
    /// What these cost in money, where the model has prices.
    #[serde(default)]
    pub money: Option<String>,
    /// Number of requests whose tokens or money are estimated, at least in part.
    #[serde(default)]
    pub unmeasured: u32,
    /// How many paths the newest attempt changed.
    pub changed_count: u64,
    /// Its commit in hex.
    pub commit: Option<String>,
    /// The run that it repeats.
    pub retry_of: Option<RunId>,
}

/// One request that became no run, in one line of `metrics.jsonl`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RefusalLine {
    /// [`METRICS_VERSION`] of the writer.
    pub version: u32,
    /// The worker of the skill that was asked for, if there is such a skill.
    pub worker: Option<String>,
    /// The skill, else what was asked for.
    pub skill: String,
    /// Always `refused`.
    pub outcome: &'static str,
    /// Stable code of the refusal; its text may hold values that were given.
    pub code: String,
    /// When it was asked, in RFC 3339.
    pub submitted_at: String,
}

/// The line of a finished run; of one that has not ended, its outcome is `unfinished`.
pub fn metrics_line(spec: &RunSpec, entries: &[Entry]) -> MetricsLine {
    let story = Story::of(spec, entries);
    let summary = story.summary.build(spec, &story.run, None);
    let (failed_step, code) = match &summary.outcome {
        Some(Outcome::Failed { failure }) => (
            Some(failure.step.name().to_owned()),
            Some(failure.code.clone()),
        ),
        Some(Outcome::Unknown { why }) => (None, Some(why.clone())),
        _ => (None, None),
    };
    let end = summary.finished_at.unwrap_or(story.updated_at);
    MetricsLine {
        version: METRICS_VERSION,
        run: spec.run,
        worker: spec.skill.worker.clone(),
        skill: spec.skill.skill.clone(),
        outcome: summary
            .outcome
            .as_ref()
            .map_or("unfinished", Outcome::name)
            .to_owned(),
        failed_step,
        code,
        verification: story.run.facts.results.verification.name().to_owned(),
        reconciled: summary.reconciled,
        mutating: summary.mutating,
        attempts: summary.attempts,
        submitted_at: spec.submitted_at.rfc3339(),
        started_at: summary.started_at.map(Timestamp::rfc3339),
        finished_at: summary.finished_at.map(Timestamp::rfc3339),
        queue_ms: story.phase_ms(Phase::Queued),
        execution_ms: story.phase_ms(Phase::Executing),
        verification_ms: story.phase_ms(Phase::Verifying),
        backoff_ms: story.phase_ms(Phase::BackingOff),
        duration_ms: summary.duration_ms,
        total_ms: end.millis_since(spec.submitted_at),
        output_bytes: story
            .attempts
            .iter()
            .filter_map(|attempt| attempt.execution.as_ref())
            .map(|execution| {
                execution
                    .stdout_bytes
                    .saturating_add(execution.stderr_bytes)
            })
            .fold(0, u64::saturating_add),
        iterations: story.run.facts.all_turns,
        tokens: story.run.facts.spent.tokens,
        money: story.run.facts.spent.money.map(|money| money.to_string()),
        unmeasured: story.run.facts.spent.unmeasured,
        changed_count: story.changed_count,
        commit: summary.newest_commit().cloned(),
        retry_of: spec.retry_of,
    }
}
