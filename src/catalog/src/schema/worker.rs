//! Keys of worker.yaml.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::agent::BudgetMap;
use super::isolation::{branch, isolation, local, push};
use super::sandbox::sandbox;
use super::schedule::schedules;
use super::shared::{
    Approval, Commit, Env, Hooks, Notify, ResourceLimitsMap, Retry, anything, duration, env, text,
    texts, verification,
};
use super::skill::SkillKeys;
use crate::model::definition::Shell;

/// A worker with its skills.
#[derive(Debug, Clone, JsonSchema)]
pub struct WorkerFile {
    /// Who the worker is.
    pub worker: Option<Identity>,
    /// Id, where there is no `worker`.
    #[schemars(schema_with = "text")]
    pub id: Option<String>,
    /// Name, and the id where there is neither `worker` nor `id`.
    #[schemars(schema_with = "text")]
    pub name: Option<String>,
    /// Kind of worker, any word; below `worker` where there is one.
    #[serde(rename = "type")]
    #[schemars(schema_with = "text")]
    pub kind: Option<String>,
    /// Version; below `worker` where there is one.
    #[schemars(schema_with = "text")]
    pub version: Option<String>,
    /// Kept and not evaluated.
    #[schemars(schema_with = "anything")]
    pub company: Option<String>,
    /// What the worker is for; below `worker` where there is one.
    #[schemars(schema_with = "text")]
    pub description: Option<String>,
    /// Kept and not evaluated.
    #[schemars(schema_with = "anything")]
    pub team: Option<String>,
    /// Kept and not evaluated.
    #[schemars(schema_with = "anything")]
    pub status: Option<String>,
    /// When and how its skills run.
    pub execution: Option<Execution>,
    /// When a skill is due: a cron expression, a map, or a list of them.
    #[schemars(schema_with = "schedules")]
    pub schedule: Option<String>,
    /// The same as `schedule`; both may stand.
    #[schemars(schema_with = "schedules")]
    pub cron: Option<String>,
    /// Settings of HQ's state machine.
    pub state_machine: Option<StateMachine>,
    /// `base` and `dynamic`: lists of files that a model is given before its task.
    #[schemars(schema_with = "anything")]
    pub context: Option<String>,
    /// Checks of every skill, before the skill's own.
    #[schemars(schema_with = "verification")]
    pub verification: Option<String>,
    /// Kept as data.
    #[schemars(schema_with = "anything")]
    pub output: Option<String>,
    /// Instructions for a model.
    #[schemars(schema_with = "texts")]
    pub instructions: Option<String>,
    /// The skills; without it the files in `skills/` are taken.
    #[schemars(schema_with = "skills")]
    pub skills: Option<Vec<SkillKeys>>,
    /// Names of the secret variables that every skill sees.
    #[schemars(schema_with = "env")]
    pub env: Option<Vec<Env>>,
    /// Directory of commands, relative to the workspace, which is the default.
    pub cwd: Option<String>,
    /// Shell of texts.
    pub shell: Option<Shell>,
    /// Commands that are told about runs, before each skill's own.
    pub hooks: Option<Hooks>,
    /// Commands that are told how its runs went, instead of the configuration's.
    pub notify: Option<Notify>,
    /// Commits of its skills.
    pub commit: Option<Commit>,
    /// Attempts of its skills.
    pub retry: Option<Retry>,
    /// Limit of one attempt of its skills.
    #[schemars(schema_with = "duration")]
    pub timeout: Option<String>,
    /// Limit of all attempts of its skills.
    #[schemars(schema_with = "duration")]
    pub max_runtime: Option<String>,
    /// What the processes of each command may use; of each key the innermost level counts.
    pub limits: Option<ResourceLimitsMap>,
    /// What runs of its skills may spend: one run where the skill does not say, and all of them in a day.
    pub budget: Option<BudgetMap>,
    /// An agent that executes instructions.
    #[schemars(schema_with = "anything")]
    pub agent: Option<String>,
    /// What its commands may touch, enforced by the kernel: `auto`, `required`, `off`, or a map.
    #[schemars(schema_with = "sandbox")]
    pub sandbox: Option<String>,
    /// Where its skills work that do not say it: `worktree`, a tree of their own, or `in_place`, the checkout.
    #[schemars(schema_with = "isolation")]
    pub isolation: Option<String>,
    /// How a person is asked where `approval_required` says that one must approve.
    pub approval: Option<Approval>,
    /// The branch that results of its skills land on.
    #[schemars(schema_with = "branch")]
    pub branch: Option<String>,
    /// Ignored directories and files, such as `node_modules/`, that stay in a tree from run to run.
    #[schemars(schema_with = "texts")]
    pub keep: Option<Vec<String>>,
    /// Paths of the checkout that trees are given, such as `.env`.
    #[schemars(schema_with = "local")]
    pub local: Option<String>,
    /// The remote that landed results are pushed to; `true` is `origin`.
    #[schemars(schema_with = "push")]
    pub push: Option<String>,
    /// Kept and not evaluated.
    #[schemars(schema_with = "anything")]
    pub mcp: Option<String>,
    /// Kept and not evaluated.
    #[schemars(schema_with = "anything")]
    pub cli: Option<String>,
    /// Kept and not evaluated.
    #[schemars(schema_with = "anything")]
    pub reporting: Option<String>,
    /// Kept and not evaluated.
    #[schemars(schema_with = "anything")]
    pub tasks: Option<String>,
    /// Kept and not evaluated.
    #[schemars(schema_with = "anything")]
    pub audit: Option<String>,
    /// Kept and not evaluated.
    #[schemars(schema_with = "anything")]
    pub tags: Option<String>,
    /// Kept and not evaluated.
    #[schemars(schema_with = "anything")]
    pub external_skills: Option<String>,
    /// Kept and not evaluated.
    #[schemars(schema_with = "anything")]
    pub identity: Option<String>,
    /// Kept and not evaluated.
    #[schemars(schema_with = "anything")]
    pub knowledge: Option<String>,
    /// Kept and not evaluated.
    #[schemars(schema_with = "anything")]
    pub integrations: Option<String>,
    /// Kept and not evaluated.
    #[schemars(schema_with = "anything")]
    pub exports: Option<String>,
    /// Kept and not evaluated.
    #[schemars(schema_with = "anything")]
    pub capabilities: Option<String>,
    /// Kept and not evaluated.
    #[schemars(schema_with = "anything")]
    pub adapters: Option<String>,
    /// Kept and not evaluated.
    #[schemars(schema_with = "anything")]
    pub metadata: Option<String>,
}

/// Who a worker is.
#[derive(Debug, Clone, JsonSchema)]
pub struct Identity {
    /// Id, unique in the workspace: lower-case letters, digits and dashes. With a placeholder such as
    /// `{company}` the worker is a template and is never run.
    #[schemars(schema_with = "text")]
    pub id: String,
    /// Name for people.
    #[schemars(schema_with = "text")]
    pub name: Option<String>,
    /// CodeWorker, OpsWorker, ContentWorker, ResearchWorker, SocialWorker, Library or any other word.
    #[serde(rename = "type")]
    #[schemars(schema_with = "text")]
    pub kind: Option<String>,
    /// Version as text.
    #[schemars(schema_with = "text")]
    pub version: Option<String>,
    /// What the worker is for.
    #[schemars(schema_with = "text")]
    pub description: Option<String>,
    /// Kept and not evaluated.
    #[schemars(schema_with = "anything")]
    pub team: Option<String>,
    /// Kept and not evaluated.
    #[schemars(schema_with = "anything")]
    pub status: Option<String>,
    /// Kept and not evaluated.
    #[schemars(schema_with = "anything")]
    pub company: Option<String>,
    /// Kept and not evaluated.
    #[schemars(schema_with = "anything")]
    pub visibility: Option<String>,
    /// Kept and not evaluated.
    #[schemars(schema_with = "anything")]
    pub tags: Option<String>,
    /// Kept and not evaluated.
    #[schemars(schema_with = "anything")]
    pub created: Option<String>,
    /// Kept and not evaluated.
    #[schemars(schema_with = "anything")]
    pub author: Option<String>,
}

/// When and how skills run.
#[derive(Debug, Clone, JsonSchema)]
pub struct Execution {
    /// When somebody asks, at slots, or when something happens.
    #[schemars(schema_with = "mode")]
    pub mode: Option<String>,
    /// When a skill is due: a cron expression, a map, or a list of them.
    #[schemars(schema_with = "schedules")]
    pub schedule: Option<String>,
    /// IANA zone of the worker's schedules that name none; that of the configuration where nothing is said.
    #[schemars(schema_with = "text")]
    pub timezone: Option<String>,
    /// Limit of all attempts of a skill.
    #[schemars(schema_with = "duration")]
    pub max_runtime: Option<String>,
    /// Limit of one attempt of a skill.
    #[schemars(schema_with = "duration")]
    pub timeout: Option<String>,
    /// Further attempts after the first; for mutating skills only where they are idempotent.
    #[schemars(range(min = 0, max = 99))]
    pub retry_attempts: Option<u32>,
    /// Attempts of its skills.
    pub retry: Option<Retry>,
    /// Alias of the model for its skills that name none.
    #[schemars(schema_with = "text")]
    pub model: Option<String>,
    /// What its commands may touch, enforced by the kernel: `auto`, `required`, `off`, or a map.
    #[schemars(schema_with = "sandbox")]
    pub sandbox: Option<String>,
    /// The same as `isolation` of the worker, which wins.
    #[schemars(schema_with = "isolation")]
    pub isolation: Option<String>,
    /// Kept and not evaluated.
    #[schemars(schema_with = "anything")]
    pub spawn_method: Option<String>,
    /// Kept and not evaluated.
    #[schemars(schema_with = "anything")]
    pub codex_model: Option<String>,
    /// Kept and not evaluated.
    #[schemars(schema_with = "anything")]
    pub codex_flags: Option<String>,
}

/// Settings of HQ's state machine; it cannot be switched off.
#[derive(Debug, Clone, JsonSchema)]
pub struct StateMachine {
    /// Always true.
    pub enabled: Option<bool>,
    /// Further attempts after the first, where `execution.retry_attempts` is absent.
    #[schemars(range(min = 0, max = 99))]
    pub max_retries: Option<u32>,
    /// Names of what always happens.
    #[schemars(schema_with = "hook_names")]
    pub hooks: Option<String>,
    /// Kept and not evaluated.
    #[schemars(schema_with = "anything")]
    pub states: Option<String>,
}

fn mode(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "enum": [
            "on_demand", "on-demand", "scheduled", "event_triggered", "event-triggered", null,
        ],
    })
}

fn hook_names(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": ["object", "null"],
        "properties": {
            "post_execute": {
                "type": ["array", "null"],
                "items": {"enum": ["auto_checkpoint", "log_metrics"]},
            },
            "on_error": {
                "type": ["array", "null"],
                "items": {"enum": ["log_error", "checkpoint_error_state"]},
            },
        },
    })
}

fn skills(generator: &mut SchemaGenerator) -> Schema {
    let skill = generator.subschema_for::<SkillKeys>();
    let item = json_schema!({
        "anyOf": [skill, {"type": "string", "description": "id of a skill in `skills/`"}],
    });
    json_schema!({
        "anyOf": [
            {"type": ["array", "null"], "items": item},
            {"type": "object", "properties": {"installed": {"type": "array", "items": item}}},
        ],
    })
}
