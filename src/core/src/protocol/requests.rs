//! Requests and their replies.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::runs::RunSummary;
use super::schedules::{FailingView, NextDue, OverdueView, UndeliveredView};
use crate::model::problem::Problem;
use crate::model::{FailedPush, RunId, ThreadId, Timestamp};

/// Asks for a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SubmitRequest {
    /// `worker/skill`, or the bare skill where that is unique.
    pub skill: String,
    /// Inputs as text, `name` and `value`; a repeated name makes a list.
    #[serde(default)]
    pub input: Vec<(String, String)>,
    /// Inputs as JSON; a name must not stand twice.
    #[serde(default, deserialize_with = "super::unique::object")]
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub inputs: Option<serde_json::Map<String, serde_json::Value>>,
    /// What the person wants, as a text: for skills without inputs that a model executes, at most 64 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Idempotency key: the same key within 24 h answers the same run.
    #[serde(default)]
    pub key: Option<String>,
    /// Who asks. Read only from the engine's own user and root; of others the name of their user is recorded.
    #[serde(default)]
    pub by: Option<String>,
    /// The user behind the connection, as the kernel knows them: nothing that a request can say.
    #[serde(skip)]
    pub user_id: Option<u32>,
    /// The run whose command asks: nothing that a request can say.
    #[serde(skip)]
    pub caller_run: Option<RunId>,
    /// The conversation that asks: several requests of one client have the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat_id: Option<String>,
    /// Not to be started before this instant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// Only what was rendered with this digest: refused with `changed` where skill, inputs or branch are others now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Whether the client follows the run to its end and shows it to a person, who then needs no notification.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub foreground: bool,
}

/// The run is durable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Submitted {
    /// The run.
    pub run: RunId,
    /// Its thread.
    pub thread: ThreadId,
    /// Whether an earlier request with the same key had made it.
    pub existing: bool,
}

/// How many runs a list has where the query says nothing.
const RUNS_DEFAULT: usize = 20;

/// Most runs of one list.
const RUNS_MAX: usize = 10_000;

/// Which runs to list, newest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunsQuery {
    /// Only of this worker.
    #[serde(default)]
    pub worker: Option<String>,
    /// Only of this skill: its id or `worker/skill`.
    #[serde(default)]
    pub skill: Option<String>,
    /// Only with this outcome or in this phase, or one of several with commas between them; `active`: not ended;
    /// `unverified`: ended so.
    #[serde(default)]
    pub outcome: Option<String>,
    /// Only of this schedule.
    #[serde(default)]
    pub schedule: Option<String>,
    /// Only of whoever has this in their name, as `by` tells it; case does not count.
    #[serde(default)]
    pub by: Option<String>,
    /// Only with this text in id, skill, title, schedule, failure or commit; case does not count.
    #[serde(default)]
    pub text: Option<String>,
    /// Only submitted at or after this instant, milliseconds since the epoch.
    #[serde(default)]
    pub since_ms: Option<i64>,
    /// Only submitted before this instant, milliseconds since the epoch.
    #[serde(default)]
    pub until_ms: Option<i64>,
    /// Only older than this run: the last one of a list, for the next.
    #[serde(default)]
    pub before: Option<RunId>,
    /// At most this many; 0: 20; at most 10,000.
    #[serde(default)]
    #[schemars(range(max = 10_000))]
    pub limit: u32,
}

impl RunsQuery {
    /// How many runs an answer holds at most.
    pub fn most(&self) -> usize {
        match self.limit {
            0 => RUNS_DEFAULT,
            some => (some as usize).min(RUNS_MAX),
        }
    }

    /// Each outcome and phase that is asked for.
    pub fn outcomes(&self) -> impl Iterator<Item = &str> {
        self.outcome.iter().flat_map(|outcomes| outcomes.split(','))
    }
}

/// Asks to end a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CancelRequest {
    /// End its processes at once instead of asking them first.
    #[serde(default)]
    pub now: bool,
    /// Who asks. Read only from the engine's own user and root; of others the name of their user is recorded.
    #[serde(default)]
    pub by: Option<String>,
    /// The run whose command asks, which may end only what it submitted: nothing that a request can say.
    #[serde(skip)]
    pub caller_run: Option<RunId>,
}

/// Approves what a run waits with.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApproveRequest {
    /// The digest that the run was shown with: what has changed since is not approved.
    pub digest: String,
    /// What to add, for people.
    #[serde(default)]
    pub note: Option<String>,
    /// Who asks; the engine puts in whom the system knows behind the connection.
    #[serde(default)]
    pub by: Option<String>,
}

/// Refuses what a run waits with.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DenyRequest {
    /// Why.
    pub note: String,
    /// Who asks; the engine puts in whom the system knows behind the connection.
    #[serde(default)]
    pub by: Option<String>,
}

/// Settles an unknown outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResolveRequest {
    /// `succeeded` or `failed`.
    #[serde(rename = "as")]
    pub resolution: String,
    /// Why.
    pub note: String,
    /// Who asks; the engine puts in whom the system knows behind the connection.
    #[serde(default)]
    pub by: Option<String>,
}

/// A request that says nothing but who asks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SignedRequest {
    /// Who asks; the engine puts in whom the system knows behind the connection.
    #[serde(default)]
    pub by: Option<String>,
}

/// What the engine does at the moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Status {
    /// Version of the program.
    pub version: String,
    /// Process id of the engine.
    pub pid: u32,
    /// `daemon` or `in_process`.
    pub host: String,
    /// Absolute path of the workspace.
    pub workspace: String,
    /// Absolute path of the state directory.
    pub state_dir: String,
    /// `ready`, `draining`, `disk_full` or `file_size_limit`.
    pub condition: String,
    /// How many runs have been admitted and not ended; those that wait for approval or for their next attempt are not
    /// included.
    pub running: u32,
    /// How many runs wait.
    pub queued: u32,
    /// How many runs wait for a person's approval.
    #[serde(rename = "awaiting_approval_count", default)]
    pub awaiting: u32,
    /// How many runs wait for their next attempt.
    #[serde(rename = "backing_off_count", default)]
    pub backing_off: u32,
    /// Runs that have not ended, oldest first, bounded.
    pub active: Vec<RunSummary>,
    /// How many runs may be active at once.
    pub max_parallel: u32,
    /// Workers in the catalog.
    #[serde(rename = "worker_count")]
    pub workers: u32,
    /// Skills in the catalog.
    #[serde(rename = "skill_count")]
    pub skills: u32,
    /// Errors in definitions.
    #[serde(rename = "error_count")]
    pub errors: u32,
    /// Warnings in definitions.
    #[serde(rename = "warning_count")]
    pub warnings: u32,
    /// Schedules that are not switched off.
    #[serde(rename = "schedule_count", default)]
    pub schedules: u32,
    /// How many of them are kept as they were before an error.
    #[serde(rename = "fallback_schedule_count", default)]
    pub fallback_schedules: u32,
    /// Why the configuration is the former one, if the file is not accepted yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_fallback_reason: Option<String>,
    /// Why none of them is fired; absent: they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inactive_reason: Option<String>,
    /// What is due next; absent where nothing is.
    #[serde(default)]
    pub next_due: Option<NextDue>,
    /// Schedules that have not succeeded in time, by id, bounded.
    #[serde(default)]
    pub overdue: Vec<OverdueView>,
    /// Schedules whose last run did not succeed, by id, bounded.
    #[serde(default)]
    pub failing: Vec<FailingView>,
    /// Notices that could not be delivered yet, bounded.
    #[serde(default)]
    pub undelivered: Vec<UndeliveredView>,
    /// Why no result can be committed: the engine cannot write to the repository. Absent: it can, or no skill is
    /// mutating.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_problem: Option<String>,
    /// Branches whose last push failed, bounded.
    #[serde(default)]
    pub failed_pushes: Vec<FailedPush>,
    /// How many of the newest 2,000 runs have a commit that is kept and on no branch.
    #[serde(rename = "kept_commit_count", default)]
    pub kept_commits: u32,
    /// The newest of them.
    #[serde(default)]
    pub kept_runs: Vec<RunSummary>,
    /// How many of the newest 2,000 runs ended as `unknown` and await a decision.
    #[serde(rename = "unresolved_count", default)]
    pub unresolved: u32,
    /// The newest of them.
    #[serde(default)]
    pub unresolved_runs: Vec<RunSummary>,
    /// The trees that mutating runs work in.
    #[serde(default)]
    pub trees: Option<TreesView>,
    /// IANA zone of displayed times.
    pub timezone: String,
    /// Milliseconds since the engine became ready.
    pub uptime_ms: u64,
    /// Syncs to disk since the engine started.
    #[serde(rename = "sync_count")]
    pub syncs: u64,
    /// Commits to the store since the engine started.
    #[serde(rename = "commit_count")]
    pub commits: u64,
}

impl Status {
    /// Returns the counts of runs for people: `2 running, 1 queued, 1 backing off`.
    pub fn counts(&self) -> String {
        let text = format!("{} running, {} queued", self.running, self.queued);
        match self.backing_off {
            0 => text,
            count => format!("{text}, {count} backing off"),
        }
    }
}

/// The trees that mutating runs work in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TreesView {
    /// Where they lie; absent where they can lie nowhere.
    pub place: Option<String>,
    /// How many there are.
    pub count: u32,
    /// How many runs are in.
    pub in_use: u32,
    /// Bytes of the files of their bases.
    pub bytes: u64,
    /// Why mutating runs cannot start, or soon cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A commit that was kept is on its branch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Landed {
    /// The run as it is now.
    pub run: RunSummary,
    /// The commit in hex.
    pub commit: String,
    /// The branch.
    pub branch: String,
    /// What was not done, and what is worth knowing.
    pub notes: Vec<String>,
}

/// What was kept of a run is dropped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Discarded {
    /// The run as it is now.
    pub run: RunSummary,
    /// The commit that was kept, in hex: git has it until it collects garbage.
    pub commit: String,
    /// How many references were dropped now; 0 where nothing was left of it.
    #[serde(rename = "reference_count")]
    pub references: u32,
}

/// What a reload found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ReloadReport {
    /// Workers now.
    #[serde(rename = "worker_count")]
    pub workers: u32,
    /// Skills now.
    #[serde(rename = "skill_count")]
    pub skills: u32,
    /// All problems now.
    pub problems: Vec<Problem>,
    /// Workers that were read again, new ones included.
    #[serde(rename = "reloaded_count")]
    pub reloaded: u32,
}

/// One placeholder and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Substitution {
    /// The placeholder as written.
    pub placeholder: String,
    /// What stands in its place.
    pub becomes: String,
    /// The value, secrets masked.
    pub value: String,
    /// Line of the text from 1.
    pub line: u32,
}

/// A check as it would run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RenderedCheck {
    /// What it verifies.
    pub description: String,
    /// What would run; absent for a manual check.
    pub command: Option<String>,
    /// Whether its failure fails the run.
    pub must_pass: bool,
}

/// Instructions that a model would execute.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RenderedInstructions {
    /// Alias of the model.
    pub model: String,
    /// The name by which its server knows it.
    pub model_name: String,
    /// What it would be told.
    pub text: String,
    /// Built-in tools and tool sets that it could call.
    pub tools: Vec<String>,
    /// Turns of one attempt.
    pub max_iterations: u32,
}

/// Exactly what would run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Rendered {
    /// `worker/skill`.
    pub skill: String,
    /// Absolute directory of the commands.
    pub cwd: String,
    /// The program and its arguments as they would be started; none where a model executes instructions.
    pub argv: Vec<String>,
    /// These instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<RenderedInstructions>,
    /// Variables of the substitution, secrets masked.
    pub environment: Vec<(String, String)>,
    /// Names of secret variables that would be passed on.
    pub env_names: Vec<String>,
    /// Each placeholder.
    pub substitutions: Vec<Substitution>,
    /// Destinations relative to the workspace.
    pub outputs: Vec<(String, Option<String>)>,
    /// Checks in order.
    pub checks: Vec<RenderedCheck>,
    /// Whether it would end in a commit.
    pub mutating: bool,
    /// The commit's message without trailers.
    pub commit_message: Option<String>,
    /// Bound inputs by name; of sensitive ones the mask.
    #[serde(default)]
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub inputs: BTreeMap<String, serde_json::Value>,
    /// What it may write besides its outputs: paths that its sandbox grants, patterns of the checkout.
    #[serde(default)]
    pub writes: Vec<String>,
    /// The sandbox of its commands, in a line for people; `off` if it has none.
    #[serde(default)]
    pub sandbox: String,
    /// The branch that its result lands on; none where it lands nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Remote that the branch is pushed to once the result has landed; `None` if it is not pushed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub push: Option<String>,
    /// Commands of the hooks, in order, those after the commit last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<String>,
    /// Of the skill's definition, the inputs and the branch. A request with it runs exactly these, or is refused.
    #[serde(default)]
    pub digest: String,
    /// Why a run would be refused today all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_spent: Option<String>,
    /// Things worth knowing.
    pub notes: Vec<String>,
}
