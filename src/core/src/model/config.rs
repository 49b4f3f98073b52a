//! The engine's configuration, every default filled in, each value with its origin.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::access::Access;
use super::agent::{AgentProgram, Budget, DEFAULT_MODEL, DayBudget, Model, Toolset};
use super::hook::HookText;
use super::isolation::{BranchChoice, TreeLimits};
use super::limits::ResourceLimits;
use super::mcp_settings::McpSettings;
use super::notice::Notify;
use super::problem::Place;
use super::protected_files::ProtectedFiles;
use super::retention::Retention;
use super::sandbox::Sandbox;
use super::skill_roots::SkillRoots;
use super::spec::{Gate, RateLimitWait};
use super::web::WebSettings;
use super::worker_paths::WorkerPaths;

/// Name of the configuration file at the workspace's root.
pub const CONFIG_FILE: &str = "workerctl.yaml";

/// How a person is asked where a definition says that they are, and neither skill nor worker says how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalSettings {
    /// Before what; absent: before the landing where there is one, else before the command.
    pub before: Option<Gate>,
    /// How long they have to answer, in milliseconds.
    pub expires_ms: u64,
}

impl Default for ApprovalSettings {
    fn default() -> ApprovalSettings {
        ApprovalSettings {
            before: None,
            expires_ms: 7 * 24 * 3_600_000,
        }
    }
}

/// A worker that is made from a template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    /// Its id: that of the template with the values in it.
    pub id: String,
    /// What the placeholders of that id stand for.
    pub values: BTreeMap<String, String>,
    /// Where it stands.
    pub place: Place,
}

/// The engine's configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// IANA zone of dates and of displayed times.
    pub timezone: String,
    /// How many runs may be active at once; 0: the number of processors, at least 2.
    pub max_parallel: u32,
    /// How many runs may wait.
    pub queue_max: u32,
    /// `Name <mail>` of commits; absent: git's configuration.
    pub commit_author: Option<String>,
    /// Template of commit messages.
    pub commit_message: String,
    /// Directory of threads relative to the workspace.
    pub threads_dir: String,
    /// Directory of metrics relative to the workspace.
    pub metrics_dir: String,
    /// Hooks of every mutating run that may block.
    pub post_tools_hooks: Vec<HookText>,
    /// Hooks of every run's commit.
    pub post_commit_hooks: Vec<HookText>,
    /// Commands that are told how runs went.
    #[serde(default)]
    pub notify: Notify,
    /// How a person is asked for approval.
    #[serde(default)]
    pub approval: ApprovalSettings,
    /// Whether runs wait for the end of a rate limit where neither skill nor worker says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_rate_limit: Option<RateLimitWait>,
    /// What commands may touch where neither skill nor worker says.
    #[serde(default)]
    pub sandbox: Sandbox,
    /// Limit of one attempt where the skill has none, in milliseconds.
    pub timeout_ms: u64,
    /// Time between TERM and KILL in milliseconds.
    pub grace_ms: u64,
    /// How long a draining engine waits for running commands, in milliseconds.
    pub drain_grace_ms: u64,
    /// Bytes of each stream of a command that are kept, as they are in the log.
    pub output_bytes_max: u64,
    /// What the processes of one command may use where neither skill nor worker says.
    #[serde(default)]
    pub limits: ResourceLimits,
    /// How long the hidden refs of runs that did not succeed are kept, in milliseconds.
    pub keep_refs_ms: u64,
    /// How long what is recorded stays.
    #[serde(default)]
    pub retention: Retention,
    /// The branch that results land on where neither skill nor worker names one.
    #[serde(default)]
    pub branch: Option<BranchChoice>,
    /// The remote that landed results are pushed to where neither skill nor worker names one.
    #[serde(default)]
    pub push: Option<String>,
    /// Limit of one push, in milliseconds.
    #[serde(default = "push_timeout_ms")]
    pub push_timeout_ms: u64,
    /// How long a result waits for a checkout that is in the way, in milliseconds.
    #[serde(default = "land_wait_ms")]
    pub land_wait_ms: u64,
    /// Bounds of the trees that runs work in.
    #[serde(default)]
    pub trees: TreeLimits,
    /// Hours in which no schedule is due that names none of its own, 0 to 23.
    #[serde(default)]
    pub blocked_hours: Vec<u8>,
    /// Where workers are.
    #[serde(default)]
    pub workers: WorkerPaths,
    /// Where skills are that belong to no worker.
    #[serde(default)]
    pub skills: SkillRoots,
    /// Which files a result changes only with a person's approval, besides definitions.
    #[serde(default)]
    pub protected_files: ProtectedFiles,
    /// Clients of the Model Context Protocol.
    #[serde(default)]
    pub mcp: McpSettings,
    /// The web page.
    #[serde(default)]
    pub web: WebSettings,
    /// Who may ask the engine for what, beside its own user and root.
    #[serde(default)]
    pub access: Access,
    /// Models by alias.
    #[serde(default)]
    pub models: BTreeMap<String, Model>,
    /// The agent program that executes instructions where neither skill nor worker says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Box<AgentProgram>>,
    /// What one run with a model may spend where neither skill nor worker says.
    #[serde(default)]
    pub budget: Budget,
    /// What all runs may spend in a day.
    #[serde(default)]
    pub per_day: DayBudget,
    /// Tool sets by name.
    #[serde(default)]
    pub toolsets: BTreeMap<String, Toolset>,
    /// Workers that are made from templates, by the id of the template.
    #[serde(default)]
    pub instances: BTreeMap<String, Vec<Instance>>,
    /// Keys that are kept and not evaluated.
    #[serde(default)]
    pub kept: serde_json::Map<String, serde_json::Value>,
    /// Where each value comes from: `default`, `workerctl.yaml:3`.
    #[serde(default)]
    pub origins: BTreeMap<String, String>,
}

impl Config {
    /// The model of that alias, else the one that counts where an alias is not there or none is named.
    pub fn model(&self, alias: Option<&str>) -> Option<&Model> {
        let named = alias.and_then(|alias| self.models.get(alias));
        named.or_else(|| self.models.get(DEFAULT_MODEL))
    }
}

/// Ten minutes.
const fn push_timeout_ms() -> u64 {
    super::push::PUSH_TIMEOUT_MS
}

const fn land_wait_ms() -> u64 {
    600_000
}

impl Default for Config {
    fn default() -> Config {
        Config {
            timezone: "UTC".to_owned(),
            max_parallel: 0,
            queue_max: 10_000,
            commit_author: None,
            commit_message: "{{skill}}: {{title}}".to_owned(),
            threads_dir: "workspace/threads".to_owned(),
            metrics_dir: "workspace/metrics".to_owned(),
            post_tools_hooks: Vec::new(),
            post_commit_hooks: Vec::new(),
            notify: Notify::default(),
            approval: ApprovalSettings::default(),
            on_rate_limit: None,
            sandbox: Sandbox::default(),
            timeout_ms: 3_600_000,
            grace_ms: 5_000,
            drain_grace_ms: 60_000,
            output_bytes_max: 10 * 1024 * 1024,
            limits: ResourceLimits::default(),
            keep_refs_ms: 14 * 24 * 3_600_000,
            retention: Retention::default(),
            branch: None,
            push: None,
            push_timeout_ms: push_timeout_ms(),
            land_wait_ms: land_wait_ms(),
            trees: TreeLimits::default(),
            blocked_hours: Vec::new(),
            workers: WorkerPaths::default(),
            skills: SkillRoots::default(),
            protected_files: ProtectedFiles::default(),
            mcp: McpSettings::default(),
            web: WebSettings::default(),
            access: Access::default(),
            models: BTreeMap::new(),
            program: None,
            budget: Budget::default(),
            per_day: DayBudget::default(),
            toolsets: BTreeMap::new(),
            instances: BTreeMap::new(),
            kept: serde_json::Map::new(),
            origins: BTreeMap::new(),
        }
    }
}
