//! Keys of workerctl.yaml.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::agent::{BudgetMap, instances, models, toolsets};
use super::isolation::{Trees, branch, push};
use super::sandbox::sandbox;
use super::schedule::hours;
use super::shared::{Approval, Hooks, Notify, ResourceLimitsMap, duration};

/// The engine's configuration.
#[derive(Debug, Clone, JsonSchema)]
pub struct ConfigFile {
    /// IANA zone of dates and of displayed times; `UTC` where nothing is said.
    pub timezone: Option<String>,
    /// How many runs may be active at once; 0: the number of processors, at least 2.
    #[schemars(range(min = 0, max = 1_024))]
    pub max_parallel: Option<u32>,
    /// The queue.
    pub queue: Option<Queue>,
    /// Commits of runs.
    pub commit: Option<ConfigCommit>,
    /// Where threads lie.
    pub threads: Option<Directory>,
    /// Where metrics lie.
    pub metrics: Option<Directory>,
    /// Commands that are told about runs, before those of workers and skills.
    pub hooks: Option<Hooks>,
    /// Commands that are told how runs went.
    pub notify: Option<Notify>,
    /// How a person is asked where `approval_required` says that one must approve.
    pub approval: Option<Approval>,
    /// What commands may touch, enforced by the kernel, where neither skill nor worker says; `auto`.
    #[schemars(schema_with = "sandbox")]
    pub sandbox: Option<String>,
    /// The branch that results land on where neither skill nor worker names one.
    #[schemars(schema_with = "branch")]
    pub branch: Option<String>,
    /// The remote that landed results are pushed to where neither skill nor worker names one; `true` is `origin`.
    #[schemars(schema_with = "push")]
    pub push: Option<String>,
    /// How long a result waits to land while a lock or changed files are in its way.
    #[schemars(schema_with = "duration")]
    pub land_wait: Option<String>,
    /// Bounds of the trees that runs work in.
    pub trees: Option<Trees>,
    /// Limit of one attempt where the skill has none.
    #[schemars(schema_with = "duration")]
    pub timeout: Option<String>,
    /// Time between the request to end and the end by force.
    #[schemars(schema_with = "duration")]
    pub grace: Option<String>,
    /// How long a draining engine waits for running commands.
    #[schemars(schema_with = "duration")]
    pub drain_grace: Option<String>,
    /// Bytes of one command's output that are kept.
    #[schemars(range(min = 1_024, max = 1_073_741_824))]
    pub output_bytes_max: Option<u64>,
    /// What the processes of each command may use; of each key the innermost level counts.
    pub limits: Option<ResourceLimitsMap>,
    /// How long the hidden refs of runs that did not succeed are kept.
    #[schemars(schema_with = "duration")]
    pub keep_refs: Option<String>,
    /// Hours from 0 to 23 in which no schedule is due that names none of its own: `[2, 3]` or `"22-5"`.
    #[schemars(schema_with = "hours")]
    pub blocked_hours: Option<String>,
    /// Where skills are that belong to no worker.
    pub skills: Option<Skills>,
    /// What clients of the Model Context Protocol may do.
    pub mcp: Option<Mcp>,
    /// Who may ask the engine for what over its socket, beside its own user and root.
    pub access: Option<ConfigAccess>,
    /// Models by alias; `default` counts for skills that name none, or one that is not there.
    #[schemars(schema_with = "models")]
    pub models: Option<String>,
    /// What runs with a model may spend: one run where neither skill nor worker says, and all runs of a day.
    pub budget: Option<BudgetMap>,
    /// Tool sets by name.
    #[schemars(schema_with = "toolsets")]
    pub toolsets: Option<String>,
    /// Workers that are made from a worker whose id holds placeholders: by its id, the values for each.
    #[schemars(schema_with = "instances")]
    pub instances: Option<String>,
}

/// Who may ask the engine for what.
#[derive(Debug, Clone, JsonSchema)]
pub struct ConfigAccess {
    /// Who may do everything.
    pub admin: Option<RoleMembers>,
    /// Who may do what changes nothing.
    pub read: Option<RoleMembers>,
}

/// Those who have a role; nobody has both.
#[derive(Debug, Clone, JsonSchema)]
pub struct RoleMembers {
    /// Names or numbers of users.
    #[schemars(schema_with = "names_or_numbers")]
    pub users: Option<Vec<String>>,
    /// Names or numbers of groups, the further ones of a user included.
    #[schemars(schema_with = "names_or_numbers")]
    pub groups: Option<Vec<String>>,
}

/// The queue.
#[derive(Debug, Clone, JsonSchema)]
pub struct Queue {
    /// How many runs may wait.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max: Option<u32>,
}

/// Commits of runs.
#[derive(Debug, Clone, JsonSchema)]
pub struct ConfigCommit {
    /// `Name <mail>` of their author; git's configuration where nothing is said.
    pub author: Option<String>,
    /// Template of their message, with `{{ … }}`.
    pub message: Option<String>,
}

/// A directory.
#[derive(Debug, Clone, JsonSchema)]
pub struct Directory {
    /// Path relative to the workspace.
    pub directory: Option<String>,
}

/// Where skills are that belong to no worker.
#[derive(Debug, Clone, JsonSchema)]
pub struct Skills {
    /// Directories, of the workspace and of the home directory, whose `skills/` are read, in this order.
    #[schemars(schema_with = "families")]
    pub families: Option<Vec<String>>,
    /// Whether those of the home directory are read.
    pub personal: Option<bool>,
    /// Further directories of skills, after all others.
    #[schemars(schema_with = "roots")]
    pub roots: Option<Vec<SkillRoot>>,
    /// Families whose skills in the workspace are listed and not run until `workerctl skill trust`.
    #[schemars(schema_with = "families")]
    pub untrusted: Option<Vec<String>>,
}

/// What clients of the Model Context Protocol may do.
#[derive(Debug, Clone, JsonSchema)]
pub struct Mcp {
    /// Whether they may run skills that change things; `refuse` where nothing is said.
    pub mutating: Option<Permission>,
    /// Bytes of the list of skills in the description of a tool; beyond, descriptions are shortened.
    #[schemars(range(min = 1_024, max = 1_048_576))]
    pub list_bytes: Option<u64>,
    /// How long a call waits for its run before it answers with the run's id.
    #[schemars(schema_with = "duration")]
    pub wait: Option<String>,
    /// How often changed definitions are looked for; at most 30s.
    #[schemars(schema_with = "duration")]
    pub refresh: Option<String>,
    /// The protocol over HTTP, on the daemon's socket and where TCP is asked for.
    pub http: Option<McpHttp>,
}

/// The protocol over HTTP.
#[derive(Debug, Clone, JsonSchema)]
pub struct McpHttp {
    /// Where it is served over TCP too, such as `127.0.0.1:8931`; a loopback address.
    pub listen: Option<String>,
    /// The file that holds the bearer token of TCP: absolute, below `~/` or `$CREDENTIALS_DIRECTORY/`; a token
    /// in the state directory where nothing is said.
    pub token_file: Option<String>,
    /// Origins whose pages may ask, such as `http://localhost:6274`.
    pub origins: Option<Vec<String>>,
    /// Sessions at once.
    #[schemars(range(min = 1, max = 1_024))]
    pub sessions: Option<u32>,
    /// After how long a session ends that nobody uses; at most 24h.
    #[schemars(schema_with = "duration")]
    pub idle: Option<String>,
}

/// Whether something may be done.
#[derive(Debug, Clone, Copy, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Permission {
    /// It may.
    Allow,
    /// It may not.
    Refuse,
}

/// A further directory of skills.
#[derive(Debug, Clone, JsonSchema)]
pub struct SkillRoot {
    /// Relative to the workspace, absolute, or below `~/`.
    pub path: String,
    /// Which files are skills there, and what holds for them; `agent` where nothing is said.
    pub dialect: Option<SkillDialect>,
    /// `false`: its skills are listed and not run until `workerctl skill trust`.
    pub trusted: Option<bool>,
}

/// A way to write skills.
#[derive(Debug, Clone, Copy, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SkillDialect {
    /// `<name>/SKILL.md`.
    Agent,
    /// `<name>/SKILL.md`, under the rules of Wave.
    Wave,
    /// `<name>/SKILL.md`, `<name>.md`, `<name>.yaml`.
    Workspace,
}

fn families(generator: &mut SchemaGenerator) -> Schema {
    let _ = generator;
    json_schema!({"type": "array", "items": {"enum": [".agents", ".agent", ".claude", ".wave"]}})
}

fn roots(generator: &mut SchemaGenerator) -> Schema {
    let map = generator.subschema_for::<SkillRoot>();
    json_schema!({"type": "array", "items": {"anyOf": [{"type": "string"}, map]}})
}

fn names_or_numbers(generator: &mut SchemaGenerator) -> Schema {
    let _ = generator;
    json_schema!({
        "type": "array",
        "items": {"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 0, "maximum": 4_294_967_294_u32}]}
    })
}
