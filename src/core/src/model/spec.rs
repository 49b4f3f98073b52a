//! A run's specification, frozen at its submission: everything that later steps need, and no values of secrets.

mod parent;
mod rate_limit;
mod tree;
mod wake;

pub use parent::Parent;
pub use rate_limit::RateLimitWait;
pub use tree::{LaidOver, TreeSpec};
pub use wake::WakeSpec;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::agent::{AgentSpec, Executor};
use super::ids::{RunId, SkillRef, ThreadId};
use super::limits::ResourceLimits;
use super::sandbox::Sandbox;
use super::secret::SecretUses;
use super::threshold::Threshold;
use super::time::Timestamp;
use super::value::Value;

/// Version of the stored specification.
pub const SPEC_VERSION: u32 = 1;

/// What to start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Program {
    /// Text for a shell, placeholders already replaced by references.
    Shell {
        /// Absolute path of the shell.
        shell: String,
        /// The text.
        text: String,
    },
    /// A program with its arguments, no shell between.
    Argv {
        /// Program first, as in the first attempt.
        argv: Vec<String>,
        /// Where the number of the attempt stands in them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attempt_at: Vec<AttemptPlace>,
    },
    /// Instructions for a model.
    Agent(Box<AgentSpec>),
}

/// Where the number of the attempt stands in an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptPlace {
    /// Which argument, the program being 0.
    pub argument: usize,
    /// From which byte on; that of the first attempt has one.
    pub offset: usize,
}

/// The arguments of an attempt, from those of the first.
pub fn arguments_in(argv: &[String], attempt_at: &[AttemptPlace], attempt: u32) -> Vec<String> {
    let mut arguments = argv.to_vec();
    let number = attempt.to_string();
    // From the last on, so that no place moves before its turn.
    for place in attempt_at.iter().rev() {
        if let Some(argument) = arguments.get_mut(place.argument)
            && argument
                .get(place.offset..)
                .is_some_and(|rest| rest.starts_with('1'))
        {
            argument.replace_range(place.offset..=place.offset, &number);
        }
    }
    arguments
}

impl Program {
    /// One line for people.
    pub fn show(&self) -> String {
        match self {
            Program::Shell { text, .. } => text.clone(),
            Program::Argv { argv, .. } => argv.join(" "),
            Program::Agent(agent) => {
                let executor = match &agent.executor {
                    Executor::Model(model) => format!("the model `{}`", model.alias),
                    Executor::Program(program) => format!("`{}`", program.cli),
                };
                format!("instructions for {executor}:\n{}", agent.instructions)
            }
        }
    }
}

/// A check, frozen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckSpec {
    /// What it verifies.
    pub description: String,
    /// What runs; absent for a manual check.
    pub program: Option<Program>,
    /// Whether its failure fails the run.
    pub must_pass: bool,
    /// Its limit in milliseconds.
    pub timeout_ms: u64,
}

/// A hook's command, frozen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookSpec {
    /// What runs; the event arrives as JSON on its standard input.
    pub program: Program,
    /// Its limit in milliseconds.
    pub timeout_ms: u64,
}

/// Kind of a declared output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputKind {
    /// A Markdown file: UTF-8 and not blank.
    Markdown,
    /// A JSON file: parses.
    Json,
    /// Any file.
    File,
    /// A commit, the skill's own or the run's.
    GitCommit,
    /// Text for the person who looks.
    Console,
}

impl OutputKind {
    /// The kind's name in definitions.
    pub const fn name(self) -> &'static str {
        match self {
            OutputKind::Markdown => "markdown",
            OutputKind::Json => "json",
            OutputKind::File => "file",
            OutputKind::GitCommit => "git_commit",
            OutputKind::Console => "console",
        }
    }

    /// Extension of a file of this kind, without the dot.
    pub const fn extension(self) -> &'static str {
        match self {
            OutputKind::Markdown => "md",
            OutputKind::Json => "json",
            OutputKind::File | OutputKind::GitCommit | OutputKind::Console => "txt",
        }
    }
}

/// A declared output, frozen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputSpec {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: OutputKind,
    /// Path relative to the workspace; absent for console and commit.
    pub path: Option<String>,
}

/// What to do with a mutating run whose owner was lost while it executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnCrash {
    /// Go on when a declared output is new and every check passes, restore otherwise.
    #[default]
    Verify,
    /// Restore and leave the outcome unknown.
    Restore,
}

/// When and how often a failed attempt is followed by another.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Retry {
    /// All attempts together, at least 1.
    pub max_attempts: u32,
    /// Wait before the second attempt, in milliseconds.
    pub initial_ms: u64,
    /// Factor from wait to wait, in hundredths: 200 doubles.
    pub factor_percent: u32,
    /// Longest wait in milliseconds.
    pub max_ms: u64,
    /// Whether a failed execution is retried.
    pub on_execution: bool,
    /// Whether a failed verification is retried.
    pub on_verification: bool,
}

impl Retry {
    /// One attempt and no other.
    pub const ONCE: Retry = Retry {
        max_attempts: 1,
        initial_ms: 0,
        factor_percent: 200,
        max_ms: 300_000,
        on_execution: true,
        on_verification: true,
    };

    /// The wait before attempt number `failed + 1`, after `failed` failed ones, in milliseconds.
    pub fn wait_ms(&self, failed: u32) -> u64 {
        let mut wait = self.initial_ms;
        for _ in 1..failed.min(64) {
            wait = wait.saturating_mul(u64::from(self.factor_percent)) / 100;
            if wait >= self.max_ms {
                break;
            }
        }
        wait.min(self.max_ms)
    }
}

/// What a person has to approve before it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    /// The skill's command.
    Execution,
    /// The landing of what it changed.
    Landing,
}

impl Gate {
    /// Its name in definitions and views.
    pub const fn name(self) -> &'static str {
        match self {
            Gate::Execution => "execution",
            Gate::Landing => "landing",
        }
    }
}

/// How a run asks for a person's approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Approving {
    /// Before what.
    pub before: Gate,
    /// How long it waits for an answer, in milliseconds; then it is denied.
    pub expires_ms: u64,
}

/// The part of a specification that the machine decides by.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an independent promise of the definition"
)]
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Plan {
    /// Whether the run changes the repository and ends in a commit.
    pub mutating: bool,
    /// Whether a command may be repeated without harm.
    pub idempotent: bool,
    /// Whether the definition says `idempotent: false`; no machine before version 2 was told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub once: bool,
    /// Whether there is anything to look at before preparing.
    pub validates: bool,
    /// Whether there is anything to record before executing.
    pub prepares: bool,
    /// Whether there is anything to verify.
    pub verifies: bool,
    /// Whether a command verifies it that has to pass; unknown for machines before version 2, to which
    /// declared outputs proved as much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proves: Option<bool>,
    /// What to do with a run that may not be repeated and whose owner was lost while it executed.
    pub on_crash: OnCrash,
    /// Attempts.
    pub retry: Retry,
    /// How many hooks may block.
    pub hooks: u32,
    /// How many hooks follow the commit.
    pub post_commit_hooks: u32,
    /// Whether each attempt begins its conversation anew, as those of agent programs do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub begins_anew: bool,
    /// Whether the run writes its outputs in a directory of its own, and starts each new attempt with that
    /// directory as it was before the first. No machine before version 7 did.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restores_outputs: bool,
    /// Limit from the first executing to the end of verifying, in milliseconds.
    pub max_runtime_ms: Option<u64>,
    /// How a person is asked; no machine before version 4 asked anybody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approving>,
    /// Whether it waits for the end of a rate limit; no machine before version 6 did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_rate_limit: Option<RateLimitWait>,
}

impl Plan {
    /// Whether a person has to approve what this gate stands before.
    pub fn asks_before(&self, gate: Gate) -> bool {
        self.approval.is_some_and(|asked| asked.before == gate)
    }

    /// Whether a command that may have run may run again: without a word of the definition, where it
    /// changes nothing.
    pub const fn is_repeatable(&self) -> bool {
        self.idempotent || !(self.mutating || self.once)
    }

    /// Whether an attempt goes on with the turns of one that was lost: what tools did is undone with a tree, and only a
    /// conversation of ours can be taken up again.
    pub const fn keeps_turns(&self) -> bool {
        !self.mutating && !self.begins_anew
    }

    /// Whether it can be found out what became of a run whose owner was lost while it executed: its
    /// outputs tell whether it wrote anything, and a check whether that is right.
    pub fn can_reconcile(&self) -> bool {
        let records = self.mutating || self.prepares;
        self.on_crash == OnCrash::Verify && records && self.proves != Some(false)
    }
}

/// The slot of a schedule, as its run knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduledSlot {
    /// Id of the schedule.
    pub schedule: String,
    /// The nominal time; the run may start later.
    pub slot: Timestamp,
    /// Whether it may run beside other runs of the schedule.
    pub beside: bool,
    /// The run after which it comes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<RunId>,
    /// Whether its end counts neither as a success of the schedule nor as a failure.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub uncounted: bool,
}

/// What stands in a specification for the place of a run's tree, which is known only when it starts.
pub fn tree_placeholder(run: RunId) -> String {
    format!("/workerctl-tree-{run}")
}

/// What stands in a specification for the place of a run's outputs, where they are written within walls.
pub fn outputs_placeholder(run: RunId) -> String {
    format!("/workerctl-outputs-{run}")
}

/// Everything that a run needs, frozen when it was accepted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSpec {
    /// [`SPEC_VERSION`] of the writer.
    pub version: u32,
    /// The run.
    pub run: RunId,
    /// Its thread.
    pub thread: ThreadId,
    /// What is invoked.
    pub skill: SkillRef,
    /// The skill's name for people.
    pub title: String,
    /// SHA-256 of the definition in hex.
    pub definition_digest: String,
    /// When it was submitted.
    pub submitted_at: Timestamp,
    /// IANA zone of `date` and `time`.
    pub zone: String,
    /// Absolute path of the workspace.
    pub workspace: String,
    /// Absolute path where commands run.
    pub cwd: String,
    /// What is leased while a mutating run is under way: the common git directory of its repository.
    #[serde(default)]
    pub repository: Option<String>,
    /// Where a mutating run works and lands; no version before 3 of the machine had it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreeSpec>,
    /// Bound inputs; those of `sensitive` hold the mask.
    pub inputs: BTreeMap<String, Value>,
    /// Names of inputs whose values are secrets.
    pub sensitive: Vec<String>,
    /// What the person wants who started it, for a model whose skill has no inputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The skill's command.
    pub program: Program,
    /// Scripts and interpreters that must be there, with the SHA-256 they had (`None`: presence only).
    pub requires: Vec<(String, Option<String>)>,
    /// Variables of the substitution; those of sensitive inputs are kept elsewhere.
    pub environment: Vec<(String, String)>,
    /// Names of secret variables.
    pub env_names: Vec<String>,
    /// By name of such a variable, where its value is; of others it is in the engine's environment.
    #[serde(
        default,
        alias = "credentials",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub secrets: SecretUses,
    /// Declared outputs.
    pub outputs: Vec<OutputSpec>,
    /// Index of the output that standard output becomes.
    pub stdout_to: Option<usize>,
    /// Paths of `path` inputs to look at, relative to the workspace or absolute.
    pub input_paths: Vec<String>,
    /// Checks before anything is touched.
    pub pre_checks: Vec<CheckSpec>,
    /// Asked after them whether there is anything to do; no version before 6 of the machine asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wake: Option<WakeSpec>,
    /// Checks after the execution, the worker's first.
    pub checks: Vec<CheckSpec>,
    /// Hooks that may block.
    pub hooks: Vec<HookSpec>,
    /// Hooks after the commit.
    pub post_commit: Vec<HookSpec>,
    /// What the machine decides by.
    pub plan: Plan,
    /// Limit of one attempt's execution in milliseconds.
    pub timeout_ms: Option<u64>,
    /// What the processes of each command may use; absent in what was accepted before there were limits: the defaults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<ResourceLimits>,
    /// The commit's message, rendered, without trailers.
    pub commit_message: String,
    /// `Name <mail>` of the commit's author where the configuration sets one.
    pub commit_author: Option<String>,
    /// Directory of threads relative to the workspace.
    pub threads_dir: String,
    /// The run that this one repeats.
    pub retry_of: Option<RunId>,
    /// The slot that it was made for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduled: Option<ScheduledSlot>,
    /// Not to be started before this instant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// What its commands may touch; absent: whatever their user may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Sandbox>,
    /// Whether its commands may ask the engine for something; no version before told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_control: bool,
    /// The run that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// Who asked, for people: `cli uid 1000`.
    pub submitted_by: String,
    /// The user who asked; absent: nobody did, or a version before did not keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<u32>,
    /// The run whose command asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submitter_run: Option<RunId>,
    /// The conversation of a client that asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat_id: Option<String>,
    /// Whether a person follows it to its end, so that its failure or success is not notified. False if `notify` says
    /// that it is notified all the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub foreground: bool,
    /// How many of the last runs must have failed before people are notified.
    #[serde(default, skip_serializing_if = "Threshold::is_each")]
    pub notify_after: Threshold,
}

impl RunSpec {
    /// Returns true if outputs are written to a directory of the run and moved to their destinations when it succeeds.
    pub fn stages_outputs(&self) -> bool {
        let has_paths = self.outputs.iter().any(|output| output.path.is_some());
        // Before version 7 only sandboxed runs did, without the flag in their plans.
        let is_staged = self.plan.restores_outputs || self.sandbox.is_some();
        !self.plan.mutating && self.tree.is_none() && is_staged && has_paths
    }
}
