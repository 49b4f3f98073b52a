//! Keys that several files share, and the alternatives that people may write.

use crate::model::spec::Gate;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// A check: a command, or something that a person looks at.
#[derive(Debug, Clone, JsonSchema)]
pub struct Check {
    /// Short name of the check.
    pub check: Option<String>,
    /// The same as `check`.
    pub name: Option<String>,
    /// Shell text; exit 0 passes. Placeholders such as `{output}` are allowed. Without it the check is
    /// for people and is recorded as not run.
    pub command: Option<String>,
    /// What it verifies.
    pub description: Option<String>,
    /// Whether its failure fails the run; true where nothing is said.
    pub must_pass: Option<bool>,
    /// Its limit; one minute where nothing is said.
    #[schemars(schema_with = "duration")]
    pub timeout: Option<String>,
    /// `always` or `exists`; other conditions are kept and not evaluated.
    pub when: Option<String>,
    /// Kept and not evaluated.
    #[schemars(schema_with = "anything")]
    pub max: Option<f64>,
    /// Kept and not evaluated.
    #[schemars(schema_with = "anything")]
    pub min: Option<f64>,
}

/// Checks by the moment at which they run.
#[derive(Debug, Clone, JsonSchema)]
pub struct VerificationMap {
    /// Checks before anything is touched.
    #[schemars(schema_with = "checks")]
    pub pre_execute: Option<Vec<Check>>,
    /// Checks after execution.
    #[schemars(schema_with = "checks")]
    pub post_execute: Option<Vec<Check>>,
    /// Whether a person must approve each run.
    pub approval_required: Option<bool>,
    /// What a person looks at: recorded as not run, never as passed.
    #[schemars(schema_with = "checks")]
    pub human_checkpoints: Option<Vec<String>>,
}

/// How a person is asked for approval.
#[derive(Debug, Clone, JsonSchema)]
pub struct Approval {
    /// Before what: `landing` where the result lands, which is a mutating skill's in a tree of its own; else
    /// `execution`.
    pub before: Option<Gate>,
    /// How long they have to answer, `7d` where nothing is said; then it is denied.
    #[schemars(schema_with = "duration")]
    pub expires: Option<String>,
}

/// How often and when a failed attempt is followed by another.
#[derive(Debug, Clone, JsonSchema)]
pub struct Retry {
    /// All attempts together, the first included.
    #[schemars(range(min = 1, max = 100))]
    pub max_attempts: u32,
    /// Wait between attempts: a map, or one span of time.
    #[schemars(schema_with = "backoff")]
    pub backoff: Option<Backoff>,
    /// What is tried again: `execution`, `verification` or both, which is the default.
    #[schemars(schema_with = "steps")]
    pub on: Option<Vec<String>>,
}

/// Wait between attempts.
#[derive(Debug, Clone, JsonSchema)]
pub struct Backoff {
    /// Wait before the second attempt; one second where nothing is said.
    #[schemars(schema_with = "duration")]
    pub initial: Option<String>,
    /// Factor from wait to wait; 2 where nothing is said.
    #[schemars(range(min = 1, max = 100))]
    pub factor: Option<f64>,
    /// Longest wait; five minutes where nothing is said.
    #[schemars(schema_with = "duration")]
    pub max: Option<String>,
}

/// Commands that are told about a run; the event is JSON on their standard input.
#[derive(Debug, Clone, JsonSchema)]
pub struct Hooks {
    /// After a mutating run passed its checks. Exit 0 passes, 2 blocks, anything else is a warning.
    #[schemars(schema_with = "hooks")]
    pub post_tools: Option<Vec<Hook>>,
    /// After the commit is durable; a failure is a warning.
    #[schemars(schema_with = "hooks")]
    pub post_commit: Option<Vec<Hook>>,
}

/// Commands that are told how runs went; the event is JSON on their standard input.
#[derive(Debug, Clone, JsonSchema)]
#[expect(clippy::struct_field_names, reason = "keys as they are written")]
pub struct Notify {
    /// A run did not succeed, the first of a streak, or a schedule paused itself.
    #[schemars(schema_with = "hook")]
    pub on_failure: Option<Hook>,
    /// A run succeeded after such a streak.
    #[schemars(schema_with = "hook")]
    pub on_recovery: Option<Hook>,
    /// A schedule has not succeeded in time.
    #[schemars(schema_with = "hook")]
    pub on_missed: Option<Hook>,
    /// A run waits for a person's approval, or nobody gave it in time.
    #[schemars(schema_with = "hook")]
    pub on_approval: Option<Hook>,
}

/// One hook: a command, or a map.
pub(super) fn hook(generator: &mut SchemaGenerator) -> Schema {
    let map = generator.subschema_for::<Hook>();
    json_schema!({"anyOf": [map, {"type": ["string", "null"]}]})
}

/// A hook with its limit.
#[derive(Debug, Clone, JsonSchema)]
pub struct Hook {
    /// Shell text without placeholders.
    pub command: String,
    /// Its limit; one minute where nothing is said.
    #[schemars(schema_with = "duration")]
    pub timeout: Option<String>,
}

/// A variable whose value is a credential.
#[derive(Debug, Clone, JsonSchema)]
pub struct Env {
    /// Name of the variable.
    pub name: String,
    /// Name of the credential as `LoadCredential=` of the service has it; without it the variable's own.
    pub credential: Option<String>,
}

/// A list of variables, each a name or a map.
pub(super) fn env(generator: &mut SchemaGenerator) -> Schema {
    let map = generator.subschema_for::<Env>();
    json_schema!({
        "type": ["array", "null"],
        "items": {"anyOf": [{"type": "string"}, map]},
    })
}

/// The commit of a mutating run.
#[derive(Debug, Clone, JsonSchema)]
pub struct Commit {
    /// Template of the message, with `{{ … }}`.
    pub message: Option<String>,
}

/// A span of time: a number with a unit, or bare seconds.
pub(super) fn duration(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "description": "a span of time such as 500ms, 30s, 15m or 1h30m",
        "anyOf": [
            {"type": "string", "pattern": "^\\s*([0-9]+\\s*[a-z]*\\s*)+$"},
            {"type": "integer", "minimum": 1},
            {"type": "null"},
        ],
    })
}

/// Any value: it is kept and not evaluated.
pub(super) fn anything(_: &mut SchemaGenerator) -> Schema {
    json_schema!({})
}

/// Text, also where YAML reads a number or a truth value.
pub(super) fn text(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["string", "number", "boolean", "null"]})
}

/// A text or a list of texts.
pub(super) fn texts(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "anyOf": [
            {"type": ["string", "null"]},
            {"type": "array", "items": {"type": "string"}},
        ],
    })
}

/// A list of checks, each a map or prose for people.
pub(super) fn checks(generator: &mut SchemaGenerator) -> Schema {
    let check = generator.subschema_for::<Check>();
    json_schema!({
        "type": ["array", "null"],
        "items": {"anyOf": [check, {"type": "string", "description": "for people: recorded as not run"}]},
    })
}

/// A list of checks, or a map of such lists.
pub(super) fn verification(generator: &mut SchemaGenerator) -> Schema {
    let list = checks(generator);
    let map = generator.subschema_for::<VerificationMap>();
    json_schema!({"anyOf": [list, map]})
}

/// A list of hooks, or one; each a command or a map.
fn hooks(generator: &mut SchemaGenerator) -> Schema {
    let hook = generator.subschema_for::<Hook>();
    let one = json_schema!({"anyOf": [{"type": "string"}, hook]});
    json_schema!({"anyOf": [one, {"type": "array", "items": one}, {"type": "null"}]})
}

fn backoff(generator: &mut SchemaGenerator) -> Schema {
    let span = duration(generator);
    let map = generator.subschema_for::<Backoff>();
    json_schema!({"anyOf": [map, span]})
}

fn steps(_: &mut SchemaGenerator) -> Schema {
    let step = json_schema!({"enum": ["execution", "verification"]});
    json_schema!({"anyOf": [step, {"type": "array", "items": step}]})
}

/// What the processes of one command may use.
#[derive(Debug, Clone, JsonSchema)]
pub struct ResourceLimitsMap {
    /// How many there may be at a time.
    #[schemars(range(min = 1, max = 4_194_304))]
    pub processes: Option<u64>,
    /// How much they may write to disks together, such as `512MiB`.
    #[schemars(schema_with = "size")]
    pub written: Option<String>,
}

pub(super) fn size(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "anyOf": [
            {"type": "string", "pattern": "^\\s*[0-9]+\\s*([KMGT]iB|[kKMGT]?B)?\\s*$"},
            {"type": "integer", "minimum": 0},
            {"type": "null"},
        ],
    })
}
