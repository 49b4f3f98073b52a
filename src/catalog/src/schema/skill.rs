//! Keys of a skill.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::agent::BudgetMap;
use super::isolation::{branch, filtered, isolation, local, push};
use super::sandbox::sandbox;
use super::schedule::schedules;
use super::shared::{
    Approval, Commit, Env, Hooks, ResourceLimitsMap, Retry, anything, duration, env, text, texts,
    verification,
};
use crate::model::definition::Shell;
use crate::model::spec::OnCrash;

/// Frontmatter of a skill file: the keys below `skill:`, or at the top level.
#[derive(Debug, Clone, JsonSchema)]
pub struct SkillFile {
    /// The skill.
    #[schemars(schema_with = "skill")]
    pub skill: Option<SkillKeys>,
}

fn skill(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<SkillKeys>()
}

/// A skill.
#[derive(Debug, Clone, JsonSchema)]
pub struct SkillKeys {
    /// Id of the skill, unique within its worker: lower-case letters, digits and dashes.
    #[schemars(schema_with = "text")]
    pub id: Option<String>,
    /// Name for people.
    #[schemars(schema_with = "text")]
    pub name: Option<String>,
    /// One sentence that says what it does, at most 1,024 characters.
    #[schemars(schema_with = "text")]
    pub description: Option<String>,
    /// File of the skill, relative to worker.yaml.
    pub file: Option<String>,
    /// The same as `file`.
    pub path: Option<String>,
    /// Kept and not evaluated.
    #[schemars(schema_with = "anything")]
    pub trigger: Option<String>,
    /// What goes in and what comes out.
    pub interface: Option<Interface>,
    /// What is executed: shell text, a list of arguments, or a script. Without it the instructions are
    /// for a model.
    #[schemars(schema_with = "run")]
    pub run: Option<String>,
    /// Checks after execution.
    #[schemars(schema_with = "verification")]
    pub verification: Option<Vec<String>>,
    /// Whether it changes things: its run ends in hooks and one commit.
    pub mutating: Option<bool>,
    /// Whether its command may be repeated without harm.
    pub idempotent: Option<bool>,
    /// What happens when the engine dies while a mutating skill executes.
    pub on_crash: Option<OnCrash>,
    /// Limit of one attempt.
    #[schemars(schema_with = "duration")]
    pub timeout: Option<String>,
    /// Limit of all attempts together.
    #[schemars(schema_with = "duration")]
    pub max_runtime: Option<String>,
    /// What the processes of each command may use; of each key the innermost level counts.
    pub limits: Option<ResourceLimitsMap>,
    /// What its runs may spend; of a skill with `run` only `per_day.runs` has an effect.
    pub budget: Option<BudgetMap>,
    /// Attempts.
    pub retry: Option<Retry>,
    /// Directory of its commands, relative to the workspace, which is the default.
    pub cwd: Option<String>,
    /// Shell of its texts.
    pub shell: Option<Shell>,
    /// Names of the secret variables that it sees.
    #[schemars(schema_with = "env")]
    pub env: Option<Vec<Env>>,
    /// Commands that are told about its runs.
    pub hooks: Option<Hooks>,
    /// Its commit.
    pub commit: Option<Commit>,
    /// Instructions for a model.
    #[schemars(schema_with = "texts")]
    pub instructions: Option<String>,
    /// An agent that executes the instructions.
    #[schemars(schema_with = "anything")]
    pub agent: Option<String>,
    /// Alias of the model that executes its instructions; `preferred_model` counts before.
    #[schemars(schema_with = "text")]
    pub model: Option<String>,
    /// What its commands may touch, enforced by the kernel: `auto`, `required`, `off`, or a map.
    #[schemars(schema_with = "sandbox")]
    pub sandbox: Option<String>,
    /// Where its runs work: `worktree`, a tree of their own, the default where it is mutating; or `in_place`, the
    /// checkout, where its declared outputs and what `writes` names are their own.
    #[schemars(schema_with = "isolation")]
    pub isolation: Option<String>,
    /// The branch that its results land on.
    #[schemars(schema_with = "branch")]
    pub branch: Option<String>,
    /// With `isolation: in_place`, paths and patterns of what it writes besides its declared outputs.
    #[schemars(schema_with = "texts")]
    pub writes: Option<Vec<String>>,
    /// Ignored directories and files, such as `node_modules/`, that stay in its tree from run to run.
    #[schemars(schema_with = "texts")]
    pub keep: Option<Vec<String>>,
    /// Paths of the checkout that its tree is given, such as `.env`.
    #[schemars(schema_with = "local")]
    pub local: Option<String>,
    /// Whether its runs may go beside other mutating runs of the repository.
    pub parallel: Option<bool>,
    /// The remote that its landed results are pushed to; `true` is `origin`.
    #[schemars(schema_with = "push")]
    pub push: Option<String>,
    /// `stored`: it can work on files as git stores them, where git filters them.
    #[schemars(schema_with = "filtered")]
    pub filtered: Option<String>,
    /// Whether a person must approve.
    pub approval_required: Option<bool>,
    /// Whether its commands may ask the engine for something, by `workerctl` or over the socket; `false` where nothing
    /// is said.
    pub workerctl: Option<bool>,
    /// How they are asked.
    pub approval: Option<Approval>,
    /// What a person looks at: recorded as not run, never as passed.
    pub human_checkpoints: Option<Vec<String>>,
    /// When it is due: a cron expression, a map, or a list of them.
    #[schemars(schema_with = "schedules")]
    pub schedule: Option<String>,
    /// The same as `schedule`; both may stand.
    #[schemars(schema_with = "schedules")]
    pub cron: Option<String>,
    /// Kept and not evaluated.
    #[schemars(schema_with = "anything")]
    pub tags: Option<Vec<String>>,
    /// Version as text.
    #[schemars(schema_with = "text")]
    pub version: Option<String>,
    /// Kept and not evaluated.
    #[schemars(schema_with = "anything")]
    pub metadata: Option<String>,
    /// Kept and not evaluated.
    #[schemars(schema_with = "anything")]
    pub license: Option<String>,
    /// Kept and not evaluated.
    #[schemars(schema_with = "anything")]
    pub compatibility: Option<String>,
    /// Tools that a model may use.
    #[serde(rename = "allowed-tools")]
    #[schemars(schema_with = "texts")]
    pub allowed_tools: Option<Vec<String>>,
    /// Tools without which it does not start.
    #[schemars(schema_with = "texts")]
    pub required_tools: Option<Vec<String>>,
    /// Whether models may not start it.
    #[serde(rename = "disable-model-invocation")]
    pub disable_model_invocation: Option<bool>,
    /// Whether people may start it.
    #[serde(rename = "user-invocable")]
    pub user_invocable: Option<bool>,
    /// Kept and not evaluated.
    #[serde(rename = "argument-hint")]
    #[schemars(schema_with = "texts")]
    pub argument_hint: Option<String>,
    /// Alias of the model that executes its instructions.
    #[schemars(schema_with = "text")]
    pub preferred_model: Option<String>,
    /// Turns of a model in one attempt.
    #[schemars(schema_with = "turns")]
    pub max_iterations: Option<u32>,
    /// Kept and not evaluated.
    #[schemars(schema_with = "anything")]
    pub input_schema: Option<String>,
    /// Names of tool sets, which workerctl.yaml has.
    #[schemars(schema_with = "texts")]
    pub toolsets: Option<Vec<String>>,
    /// Kept and not evaluated.
    #[schemars(schema_with = "anything")]
    pub files: Option<Vec<String>>,
    /// Kept and not evaluated.
    #[schemars(schema_with = "anything")]
    pub context: Option<String>,
}

/// What goes into a skill and what comes out.
#[derive(Debug, Clone, JsonSchema)]
pub struct Interface {
    /// Values that a run is given.
    pub inputs: Option<Vec<Input>>,
    /// What a run leaves; verified without being asked.
    pub outputs: Option<Vec<Output>>,
}

/// An input.
#[derive(Debug, Clone, JsonSchema)]
pub struct Input {
    /// Its name; `{name}` stands for its value in texts.
    pub name: String,
    /// Its type; `string` where nothing is said.
    #[serde(rename = "type")]
    #[schemars(schema_with = "input_type")]
    pub kind: Option<String>,
    /// Whether a value must be given.
    pub required: Option<bool>,
    /// Value where none is given.
    #[schemars(schema_with = "anything")]
    pub default: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// The only values that are accepted.
    #[serde(rename = "enum")]
    #[schemars(schema_with = "values")]
    pub allowed: Option<Vec<String>>,
    /// Regular expression that the whole value must match.
    pub pattern: Option<String>,
    /// Least number.
    pub min: Option<f64>,
    /// Greatest number.
    pub max: Option<f64>,
    /// Whether only whole numbers are accepted.
    pub integer: Option<bool>,
    /// Least length in characters, or in items of an array.
    pub min_length: Option<u64>,
    /// Greatest length in characters, or in items of an array.
    pub max_length: Option<u64>,
    /// Type of an array's items.
    #[schemars(schema_with = "anything")]
    pub items: Option<String>,
    /// Whether the value is a secret: masked everywhere.
    pub sensitive: Option<bool>,
    /// Whether a value may begin with a dash where a command could take it for an option.
    pub allow_dash: Option<bool>,
}

/// An output.
#[derive(Debug, Clone, JsonSchema)]
pub struct Output {
    /// Its name; `{name}` stands for its path in texts. Its type where nothing is said.
    pub name: Option<String>,
    /// What it is and how it is verified.
    #[serde(rename = "type")]
    pub kind: Option<crate::model::spec::OutputKind>,
    /// Path relative to the workspace; `{date}` and other placeholders are allowed.
    pub destination: Option<String>,
    /// What it is for.
    pub description: Option<String>,
}

/// A script beside the definition.
#[derive(Debug, Clone, JsonSchema)]
pub struct RunScript {
    /// Path relative to the file that names it.
    pub script: String,
    /// Program that executes it, with its options; without one the script is executable itself.
    #[schemars(schema_with = "texts")]
    pub interpreter: Option<String>,
    /// Arguments; placeholders are allowed.
    pub args: Option<Vec<String>>,
}

fn run(generator: &mut SchemaGenerator) -> Schema {
    let script = generator.subschema_for::<RunScript>();
    json_schema!({
        "anyOf": [
            {"type": ["string", "null"], "description": "shell text"},
            {
                "type": "array",
                "items": {"type": ["string", "number", "boolean"]},
                "minItems": 1,
                "description": "a program with its arguments, no shell between",
            },
            script,
        ],
    })
}

fn turns(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "anyOf": [
            {"type": "integer", "minimum": 1, "maximum": 1_000},
            {"type": "string", "pattern": "^\\s*[0-9]+\\s*$"},
            {"type": "null"},
        ],
    })
}

fn input_type(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "enum": [
            "string", "number", "boolean", "array", "date", "path", "str", "text", "int",
            "integer", "float", "num", "bool", "list", "file", null,
        ],
    })
}

fn values(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": ["array", "null"],
        "items": {"type": ["string", "number", "boolean"]},
        "minItems": 1,
    })
}
