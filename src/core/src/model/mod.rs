//! Plain data and parse-once newtypes: the words of every other room.

pub mod access;
pub mod agent;
pub mod channel;
pub mod config;
pub mod definition;
pub mod diagnostic;
pub mod duration;
pub mod evidence;
pub mod file_size;
pub mod hook;
pub mod ids;
pub mod isolation;
pub mod legible;
pub mod limits;
pub mod mcp_settings;
pub mod notice;
pub mod outcome;
pub mod problem;
pub mod protected_files;
pub mod push;
pub mod retention;
pub mod sandbox;
pub mod schedule;
pub mod secret;
pub mod size;
pub mod skill_roots;
pub mod spec;
pub mod threshold;
pub mod time;
pub mod tool_names;
pub mod value;
pub mod web;
pub mod worker_paths;
pub mod zone;

#[cfg(test)]
mod renamed;

pub use access::{Access, AccessRole};
pub use channel::Channel;
pub use config::Config;
pub use definition::{Skill, Worker};
pub use diagnostic::{Diagnostic, Kind};
pub use ids::{RunId, SkillRef, ThreadId};
pub use isolation::{BranchChoice, LocalEntry, TreeLimits};
pub use limits::{Resource, ResourceLimits};
pub use mcp_settings::{
    MCP_TOOLS, MCP_TOOLS_NOT_SMALL, MCP_TYPED_MAX, McpHttp, McpMutating, McpSettings,
};
pub use notice::{News, Notice, Notices, Notify};
pub use outcome::{Failure, Outcome, Phase, Results, Step, StepResult};
pub use problem::{Place, Problem, Severity};
pub use push::FailedPush;
pub use retention::Retention;
pub use schedule::{Dst, Fold, Gap};
pub use secret::{SecretSource, SecretText, SecretUse, SecretUses};
pub use skill_roots::{Dialect, Scope, SkillRoots};
pub use spec::RunSpec;
pub use threshold::Threshold;
pub use time::Timestamp;
pub use value::Value;
pub use web::{WEB_GROUPS_MAX, WebSession, WebSessionChanges, WebSettings};
pub use worker_paths::WorkerPaths;
pub use zone::Zone;
