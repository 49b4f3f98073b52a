//! Workers and skills as the catalog hands them out: parsed, normalised, every default filled in.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::agent::DeclaredAgent;
pub use super::hook::HookText;
use super::ids::SkillRef;
use super::isolation::{BranchChoice, LocalEntry};
use super::limits::ResourceLimits;
use super::notice::Notify;
use super::problem::Place;
use super::sandbox::Sandbox;
use super::secret::SecretUses;
use super::spec::{Approving, OnCrash, OutputKind, RateLimitWait, Retry};

/// The value of a variable that is no secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlainVariable {
    /// As the definition has it.
    Value(String),
    /// The value of the engine's own variable when the run is submitted.
    Inherited,
}

/// When a worker is meant to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// When somebody asks.
    OnDemand,
    /// At slots.
    Scheduled,
    /// When something happens.
    EventTriggered,
}

/// A worker with its skills.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Worker {
    /// Unique in the workspace.
    pub id: String,
    /// For people; the id where none is given.
    pub name: String,
    /// `CodeWorker`, `OpsWorker` and so on; any word.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Text as written: `1.10` stays `1.10`.
    pub version: Option<String>,
    /// For people.
    pub description: Option<String>,
    /// When it is meant to run.
    pub mode: Mode,
    /// Where its definition stands.
    pub place: Place,
    /// Whether the id holds a placeholder: listed and checked, never run.
    pub template: bool,
    /// Id of the template that it is made from.
    #[serde(default)]
    pub instance_of: Option<String>,
    /// Alias of a model.
    pub model: Option<String>,
    /// Instructions for a model.
    pub instructions: Option<String>,
    /// Whether a schedule is declared.
    pub scheduled: bool,
    /// Commands that are told how its runs went.
    #[serde(default)]
    pub notify: Notify,
    /// Keys that are kept and not evaluated.
    pub kept: serde_json::Map<String, serde_json::Value>,
    /// Skills in the order of the definition.
    pub skills: Vec<Arc<Skill>>,
}

/// What a skill executes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunText {
    /// Text for a shell.
    Shell(String),
    /// A program with its arguments, no shell between.
    Argv(Vec<String>),
    /// A script beside the definition.
    Script {
        /// Absolute path.
        path: String,
        /// Interpreter with its options; empty: the script is executable itself.
        interpreter: Vec<String>,
        /// Arguments, placeholders allowed.
        args: Vec<String>,
    },
    /// Nothing of its own: the instructions are for a model.
    Instructions,
}

/// The shell that a definition is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shell {
    /// `/bin/sh`.
    #[default]
    Sh,
    /// `bash`, found on the engine's PATH.
    Bash,
}

/// Type of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InputKind {
    /// Text.
    String,
    /// A number.
    Number,
    /// True or false.
    Boolean,
    /// A list.
    Array,
    /// An ISO date.
    Date,
    /// A path.
    Path,
}

impl InputKind {
    /// The type's name in definitions.
    pub const fn name(self) -> &'static str {
        match self {
            InputKind::String => "string",
            InputKind::Number => "number",
            InputKind::Boolean => "boolean",
            InputKind::Array => "array",
            InputKind::Date => "date",
            InputKind::Path => "path",
        }
    }
}

/// A declared input.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an independent key of the definition"
)]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: InputKind,
    /// Whether a value must be given.
    pub required: bool,
    /// Value where none is given, as JSON.
    pub default: Option<serde_json::Value>,
    /// For people.
    pub description: Option<String>,
    /// Allowed values in canonical text; empty: any.
    pub allowed: Vec<String>,
    /// Regular expression that the whole text must match.
    pub pattern: Option<String>,
    /// Least number.
    pub min: Option<f64>,
    /// Greatest number.
    pub max: Option<f64>,
    /// Whether only whole numbers are accepted.
    pub integer: bool,
    /// Least length in characters, or in items of a list.
    pub min_length: Option<u64>,
    /// Greatest length in characters, or in items of a list.
    pub max_length: Option<u64>,
    /// Type of a list's items.
    pub items: Option<InputKind>,
    /// Whether the value is a secret.
    pub sensitive: bool,
    /// Whether a value may begin with `-` where it could be taken for an option.
    pub allow_dash: bool,
}

/// A declared output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// Its name; its type's where none is given.
    pub name: String,
    /// Its type.
    pub kind: OutputKind,
    /// Pattern of its path relative to the workspace.
    pub destination: Option<String>,
    /// Where it is defined, if it has a destination.
    #[serde(skip)]
    pub place: Option<Place>,
    /// For people.
    pub description: Option<String>,
}

/// A check as written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckText {
    /// What it verifies.
    pub description: String,
    /// Shell text; absent for a manual check.
    pub command: Option<String>,
    /// Whether its failure fails the run.
    pub must_pass: bool,
    /// Its limit in milliseconds.
    pub timeout_ms: u64,
    /// Where it stands.
    pub place: Place,
}

/// A wake gate as written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakeText {
    /// Shell text.
    pub command: String,
    /// Its limit in milliseconds.
    pub timeout_ms: u64,
}

/// Why a skill may not run, though its definition is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Unavailable {
    /// Stable code, lower case with dashes.
    pub code: String,
    /// For people.
    pub reason: String,
}

/// A skill, normalised.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a key of its own in definitions"
)]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Skill {
    /// `worker/skill`.
    pub address: SkillRef,
    /// For people; the id where none is given.
    pub name: String,
    /// For people.
    pub description: String,
    /// Where its definition stands.
    pub place: Place,
    /// Its own file relative to the workspace, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Absolute directory of the file that names it: `script` and relative paths start here.
    pub directory: String,
    /// What it executes.
    pub run: RunText,
    /// Where `run` stands, for problems within its text.
    pub run_place: Place,
    /// Where the values of `branch`, `push`, `cwd`, `hooks`, the program of `run` (`program`) and, as
    /// `required_tools/NAME`, required tools are written, for problems that only the environment shows. Empty for a skill that was not read from its file.
    #[serde(skip)]
    pub places: BTreeMap<String, Place>,
    /// Markdown body or instructions, never a template.
    pub instructions: Option<String>,
    /// Inputs.
    pub inputs: Vec<Input>,
    /// Outputs.
    pub outputs: Vec<Output>,
    /// Checks before anything is touched.
    pub pre_checks: Vec<CheckText>,
    /// Asked after them whether there is anything to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wake: Option<WakeText>,
    /// Checks after execution, the worker's first.
    pub checks: Vec<CheckText>,
    /// Whether it changes things and ends in a commit.
    pub mutating: bool,
    /// Whether its command may be repeated without harm, where the definition says.
    pub idempotent: Option<bool>,
    /// What to do when its owner is lost while it executes.
    pub on_crash: OnCrash,
    /// Attempts.
    pub retry: Retry,
    /// Whether its runs wait for the end of a rate limit, and how long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_rate_limit: Option<RateLimitWait>,
    /// Limit of one attempt in milliseconds.
    pub timeout_ms: Option<u64>,
    /// Limit of all attempts in milliseconds.
    pub max_runtime_ms: Option<u64>,
    /// What the processes of each of its commands may use.
    #[serde(default)]
    pub limits: ResourceLimits,
    /// Directory of its commands relative to the workspace.
    pub cwd: String,
    /// Shell of its texts.
    pub shell: Shell,
    /// Names of secret variables that it sees.
    pub env: Vec<String>,
    /// By name of such a variable, where its value is; of others it is in the engine's environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: SecretUses,
    /// Variables that are no secrets, by name: they are neither masked nor hidden.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, PlainVariable>,
    /// Hooks that may block, the configuration's first.
    pub hooks: Vec<HookText>,
    /// Hooks after the commit.
    pub post_commit: Vec<HookText>,
    /// Template of the commit message, where the definition has one.
    pub commit_message: Option<String>,
    /// What its commands may touch, where walls are asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Sandbox>,
    /// How a person is asked, where one has to approve its runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approving>,
    /// How its instructions are executed, where it has no `run`.
    #[serde(default)]
    pub agent: DeclaredAgent,
    /// The branch that its results land on, where the skill, its worker or the configuration says.
    #[serde(default)]
    pub branch: Option<BranchChoice>,
    /// Ignored paths that stay in a tree from run to run.
    #[serde(default)]
    pub keep: Vec<String>,
    /// Paths of the checkout that a tree is given.
    #[serde(default)]
    pub local: Vec<LocalEntry>,
    /// Whether a run may go beside other mutating runs of the repository.
    #[serde(default)]
    pub parallel: bool,
    /// The remote that a landed result is pushed to, where the skill, its worker or the configuration names one.
    #[serde(default)]
    pub push: Option<String>,
    /// Whether it works on stored bytes where git filters files.
    #[serde(default)]
    pub filtered_stored: bool,
    /// Whether its commands may ask the engine for something.
    #[serde(default)]
    pub may_control: bool,
    /// Why it may not run; empty: it may.
    pub unavailable: Vec<Unavailable>,
    /// SHA-256 of what it was read from, in hex.
    pub digest: String,
    /// Keys that are kept and not evaluated.
    #[serde(default)]
    pub kept: serde_json::Map<String, serde_json::Value>,
}

impl Skill {
    /// Whether a command verifies its runs that has to pass.
    pub fn proves(&self) -> bool {
        let proves = |check: &CheckText| check.must_pass && check.command.is_some();
        self.checks.iter().any(proves)
    }

    /// Whether its command may run again that may have run: without a word, where it changes nothing.
    pub fn is_repeatable(&self) -> bool {
        self.idempotent.unwrap_or(!self.mutating)
    }

    /// Whether a person may say in words what they want of it: it has instructions, and nothing else to be given.
    pub fn takes_message(&self) -> bool {
        let schema = self.kept.get("input_schema");
        self.run == RunText::Instructions
            && self.inputs.is_empty()
            && schema.is_none_or(serde_json::Value::is_null)
    }

    /// Whether it may run.
    pub fn is_available(&self) -> bool {
        self.unavailable.is_empty()
    }
}
