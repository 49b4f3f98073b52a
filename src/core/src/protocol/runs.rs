//! Runs as they are shown: one line each, or one in full.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::agent::Tokens;
use crate::model::evidence::HeldResult;
use crate::model::evidence::{CheckRecord, CommitsMade, Execution, OutputState};
use crate::model::outcome::{Failure, Outcome, Phase, Results};
use crate::model::spec::Gate;
use crate::model::{RunId, SkillRef, ThreadId, Timestamp};

/// One run in one line; also what the store keeps of a finished run for lists.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RunSummary {
    /// The run.
    pub run: RunId,
    /// What was invoked.
    pub skill: SkillRef,
    /// Where it is.
    pub phase: Phase,
    /// How it ended, once it has.
    pub outcome: Option<Outcome>,
    /// Whether it ended without any check that had to pass.
    pub unverified: bool,
    /// Whether its wake gate found nothing to do: it succeeded, and nothing of it was executed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nothing_to_do: bool,
    /// Whether the result stands though the execution's end is unknown.
    pub reconciled: bool,
    /// Whether it is a mutating skill.
    pub mutating: bool,
    /// Number of the newest attempt.
    pub attempts: u32,
    /// When it was accepted.
    pub submitted_at: Timestamp,
    /// When its command first started.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// Milliseconds that it has worked since its first attempt started, without the time in which it waited: for its
    /// turn, for approval, for its next attempt or to land. Absent: it has not started, or an older version stored it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Since when it works without a wait; `duration_ms` does not include that time. Absent: it waits or has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_since: Option<Timestamp>,
    /// When its next attempt starts; absent: it is not backing off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Timestamp>,
    /// Its commit in hex.
    pub commit: Option<String>,
    /// Commits that the skill made by itself and that were not taken back.
    #[serde(default, skip_serializing_if = "CommitsMade::is_none")]
    pub commits_made: CommitsMade,
    /// A commit of it in hex that is on no branch: it can land later, or be discarded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_commit: Option<String>,
    /// Why the last push of its branch failed, as long as its commit has not been pushed. Not stored with the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub push_error: Option<String>,
    /// Its thread.
    pub thread: ThreadId,
    /// Why it waits, while it does: for its turn, for the checkout, or to land.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<String>,
    /// The run that this one repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_of: Option<RunId>,
    /// The run that started it: its model, or one of its commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<RunId>,
    /// Whether a command of `parent` submitted it: what it spends is then not part of the sums of `parent`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_command: bool,
    /// What it has spent on a model so far; absent where it has a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<SpentView>,
    /// The schedule that it ran for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// The slot of that schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<Timestamp>,
    /// The skill's name for people; empty where an older version stored the run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// Who asked for it; empty where an older version stored the run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// Whether a person, or the end of their time, has decided on it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub decided: bool,
    /// The day, in the workspace's zone, on which it ended: `2026-11-25`. Statistics count it there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day: Option<String>,
}

/// What a run has spent on a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SpentView {
    /// Turns of all attempts.
    pub turns: u32,
    /// Tokens of all requests, parts apart; those whose answers did not count are included.
    pub tokens: Tokens,
    /// Money in the currency of the prices, where the model has prices: `0.25`.
    pub money: Option<String>,
    /// Number of requests whose tokens or money are estimated, at least in part: the server did not report them, the
    /// answer broke off, the program was ended, or the engine was lost while they were in flight.
    pub unmeasured: u32,
    /// How many of `tokens` are estimates.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub estimated_tokens: u64,
    /// How much of `money` is an estimate: `0.25`; absent: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_money: Option<String>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands in a reference"
)]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl SpentView {
    /// One line for people.
    pub fn show(&self) -> String {
        use std::fmt::Write;
        let turns = if self.turns == 1 { "turn" } else { "turns" };
        let mut text = format!("{} {turns}, {} tokens", self.turns, self.tokens.sum());
        if self.tokens.cache_read > 0 {
            let _ = write!(text, " ({} from a cache)", self.tokens.cache_read);
        }
        if let Some(money) = &self.money {
            let _ = write!(text, ", money {money}");
        }
        if self.unmeasured > 0 {
            let requests = if self.unmeasured == 1 {
                "request"
            } else {
                "requests"
            };
            let _ = write!(text, "; estimated: {} {requests}", self.unmeasured);
            // Runs of older versions have only their number.
            if self.estimated_tokens > 0 {
                let _ = write!(text, ", {} tokens", self.estimated_tokens);
            }
            if let Some(money) = &self.estimated_money {
                let _ = write!(text, ", money {money}");
            }
        }
        text
    }
}

/// One turn of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TurnView {
    /// In which attempt.
    pub attempt: u32,
    /// From 1 within a conversation.
    pub turn: u32,
    /// Tokens that the server reported, or an estimate.
    pub tokens: Tokens,
    /// Money, where it is known: `0.25`.
    pub money: Option<String>,
    /// Whether tokens or money are an estimate, at least in part.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// The tools that were called.
    pub calls: Vec<String>,
}

impl RunSummary {
    /// Returns the milliseconds that it worked, without its waits; `None` until it ends, and if it never started.
    ///
    /// Of runs that older versions stored only the start and the end are known.
    pub fn worked_ms(&self) -> Option<u64> {
        let finished = self.finished_at?;
        self.duration_ms
            .or_else(|| Some(finished.millis_since(self.started_at?)))
    }

    /// Returns true if what it spent is in the sums of the run that started it.
    pub fn is_part_of_parent(&self) -> bool {
        self.parent.is_some() && !self.by_command
    }

    /// Returns its phase until it has ended.
    pub fn open_phase(&self) -> Option<Phase> {
        self.outcome.is_none().then_some(self.phase)
    }

    /// The newest commit that came of it: its own, else the last that the skill made.
    pub fn newest_commit(&self) -> Option<&String> {
        self.commit
            .as_ref()
            .or_else(|| self.commits_made.newest.last())
    }
}

/// Runs of one answer, newest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunsPage {
    /// Those that were asked for; an answer may hold fewer than there are, even none.
    pub runs: Vec<RunSummary>,
    /// What `before` goes on with; absent: there are no more.
    pub next: Option<RunId>,
}

/// One attempt with its evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AttemptView {
    /// Its number from 1.
    pub attempt: u32,
    /// When its command started.
    pub started_at: Timestamp,
    /// How its command ended; absent while it runs or when nobody saw it.
    pub execution: Option<Execution>,
    /// Its checks, those of outputs first.
    pub checks: Vec<CheckRecord>,
    /// Why it failed, if it did.
    pub failure: Option<Failure>,
}

/// A phase of a run, from its begin to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PhaseView {
    /// The newest attempt that had begun by then; 0: none had.
    pub attempt: u32,
    /// The phase.
    pub phase: Phase,
    /// Whether nothing was done in it: the run waited for its turn, a person, the next attempt, or to land.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waiting: bool,
    /// What was in the way of the landing, or until when a rate limit was waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<String>,
    /// When it began.
    pub begin: Timestamp,
    /// When it ended; null while it lasts.
    pub end: Option<Timestamp>,
    /// Whether the engine was lost in it: it ended at some time before `end`, when that was noticed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub owner_lost: bool,
}

/// What somebody did about a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AuditEntry {
    /// When.
    pub at: Timestamp,
    /// `submitted`, `cancelled`, `approved`, `denied`, `resolved`, `landed`, `discarded` or `retried`.
    pub action: String,
    /// Who; null where an older version recorded it.
    pub by: Option<String>,
    /// What they added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The run that was made of it, if it was retried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
}

/// What a person is asked about a run, or has said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ApprovalView {
    /// Before what a person is asked.
    pub before: Gate,
    /// When they are asked, once they are.
    pub asked_at: Option<Timestamp>,
    /// Until when they can answer.
    pub expires_at: Option<Timestamp>,
    /// SHA-256 in hex of what is asked about: the skill, its inputs and commands, and the result.
    pub digest: Option<String>,
    /// What its commands may touch, in words; `off`: whatever their user may.
    #[serde(default)]
    pub sandbox: String,
    /// What would run, where it is asked before the execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// What would land, where it is asked before the landing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<HeldResult>,
    /// Where outputs that git ignores can be looked at until then: absolute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs_in: Option<String>,
    /// What a person has to look at: manual checks and checkpoints.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checkpoints: Vec<String>,
    /// Who approved it.
    pub approved_by: Option<String>,
    /// When.
    pub approved_at: Option<Timestamp>,
    /// Who denied it; absent where nobody did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denied_by: Option<String>,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denied_at: Option<Timestamp>,
    /// What they added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// One run in full.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RunDetail {
    /// The line that lists show.
    pub summary: RunSummary,
    /// The skill's name for people.
    pub title: String,
    /// The five results.
    pub results: Results,
    /// Inputs, secrets masked.
    pub inputs: BTreeMap<String, serde_json::Value>,
    /// What the person wanted who started it, where they said it in a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What its model said last, cut where it is very long; absent where it has a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Turns of its model, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<TurnView>,
    /// Runs that its model or its commands started, in order; those of commands are looked for among the newest 2,000.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<RunId>,
    /// The skill of the run that started it, while that run is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_skill: Option<SkillRef>,
    /// Attempts in order.
    pub attempts: Vec<AttemptView>,
    /// Checks before anything was touched.
    pub pre_checks: Vec<CheckRecord>,
    /// Declared outputs of the newest attempt.
    pub outputs: Vec<OutputState>,
    /// Paths that the newest attempt changed, bounded.
    pub changed: Vec<String>,
    /// How many paths it changed in all.
    pub changed_count: u64,
    /// Definitions and protected files among them if its result waits for approval, at most 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protected_changes: Vec<String>,
    /// Paths that could not be put back, with the reason.
    pub not_restored: Vec<String>,
    /// Things worth knowing that changed nothing.
    pub warnings: Vec<String>,
    /// Absolute path of the thread's summary.
    pub thread_path: String,
    /// Absolute path of the thread's log.
    pub log_path: String,
    /// Names and times of its events.
    pub timeline: Vec<(Timestamp, String)>,
    /// Its phases in order.
    #[serde(default)]
    pub phases: Vec<PhaseView>,
    /// Who did what about it, in order.
    #[serde(default)]
    pub audit: Vec<AuditEntry>,
    /// SHA-256 of the definition that ran, in hex.
    pub definition_digest: String,
    /// Who asked.
    pub submitted_by: String,
    /// What a person is asked, where one has to approve it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalView>,
    /// The branch on which its changes land, where it is mutating.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Remote that the branch is pushed to once its changes have landed; `None` if it is not pushed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub push: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_older_versions_stored_took_as_long_as_from_start_to_end() {
        let stored = serde_json::json!({
            "run": "01K0000000000000000000000A", "skill": {"worker": "w", "skill": "s"}, "phase": "finished",
            "outcome": {"kind": "succeeded"}, "unverified": true, "reconciled": false, "mutating": false,
            "attempts": 1, "submitted_at": "2026-11-26T05:00:00.000Z",
            "started_at": "2026-11-26T05:00:01.000Z", "finished_at": "2026-11-26T05:00:03.000Z",
            "commit": null, "thread": "T-1",
        });
        let mut run: RunSummary = serde_json::from_value(stored).unwrap();
        assert_eq!(run.worked_ms(), Some(2_000));
        run.started_at = None;
        assert_eq!(run.worked_ms(), None);
    }
}
