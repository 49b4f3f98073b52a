//! What clients of the Model Context Protocol may do, and how much they are told at once.

use serde::{Deserialize, Serialize};

/// The part of the configuration that is about clients of the Model Context Protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpSettings {
    /// What happens when they ask for a skill that changes things.
    #[serde(default)]
    pub mutating: McpMutating,
    /// Bytes of the list of skills in the description of one tool.
    pub list_bytes: u64,
    /// The tools that are listed, of [`MCP_TOOLS`].
    #[serde(default = "all_tools")]
    pub tools: Vec<String>,
    /// How many skills are tools of their own, at most.
    #[serde(default)]
    pub typed: u64,
    /// How long a call waits for its run, in milliseconds.
    pub wait_ms: u64,
    /// How often changed definitions are looked for, in milliseconds.
    pub refresh_ms: u64,
    /// The protocol over HTTP.
    #[serde(default)]
    pub http: McpHttp,
}

/// Every tool, in the order in which they are listed.
pub const MCP_TOOLS: [&str; 10] = [
    "skill",
    "Skill",
    "loadSkill",
    "loadSkillFile",
    "list_skills",
    "use_skill",
    "list_runs",
    "get_run",
    "read_thread",
    "cancel_run",
];

/// Those that `tools: small` leaves out, since `skill` does what they do.
pub const MCP_TOOLS_NOT_SMALL: [&str; 2] = ["Skill", "loadSkill"];

/// Skills that may be tools of their own: agents take a few hundred tools in all.
pub const MCP_TYPED_MAX: u64 = 100;

fn all_tools() -> Vec<String> {
    MCP_TOOLS.map(str::to_owned).to_vec()
}

/// What happens when a client asks for a skill that changes things.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum McpMutating {
    /// It runs.
    Allow,
    /// The person at the client is asked; where the client cannot ask them, it is refused.
    #[default]
    Ask,
    /// It is refused.
    Refuse,
}

impl McpMutating {
    /// The word that stands in workerctl.yaml.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            McpMutating::Allow => "allow",
            McpMutating::Ask => "ask",
            McpMutating::Refuse => "refuse",
        }
    }
}

/// The protocol over HTTP, on the daemon's socket and where TCP is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpHttp {
    /// `127.0.0.1:8931`: where it is served over TCP too. Always a loopback address.
    pub listen: Option<String>,
    /// The file that holds the bearer token of TCP: absolute, below `~/` or `$CREDENTIALS_DIRECTORY/`.
    pub token_file: Option<String>,
    /// Origins whose pages may ask, such as `http://localhost:6274`.
    pub origins: Vec<String>,
    /// Sessions at once.
    pub sessions: u32,
    /// After how long a session ends that nobody uses, in milliseconds.
    pub idle_ms: u64,
}

impl Default for McpHttp {
    fn default() -> McpHttp {
        McpHttp {
            listen: None,
            token_file: None,
            origins: Vec::new(),
            sessions: 64,
            idle_ms: 30 * 60_000,
        }
    }
}

impl Default for McpSettings {
    fn default() -> McpSettings {
        McpSettings {
            mutating: McpMutating::Ask,
            list_bytes: 900,
            tools: all_tools(),
            typed: 0,
            wait_ms: 45_000,
            refresh_ms: 30_000,
            http: McpHttp::default(),
        }
    }
}
