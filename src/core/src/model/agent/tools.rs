//! What models may call, as the configuration groups it.

use serde::{Deserialize, Serialize};

use super::KeySource;

/// Tools that are part of the program, with the names that other agents give them in `allowed-tools`.
pub const BUILT_IN_TOOLS: [(&str, &[&str]); 11] = [
    ("bash", &["Bash", "Shell"]),
    ("read_file", &["Read"]),
    ("write_file", &["Write"]),
    ("edit_file", &["Edit", "MultiEdit"]),
    ("list_directory", &["LS"]),
    ("glob", &["Glob"]),
    ("grep", &["Grep"]),
    ("loadSkillFile", &[]),
    ("list_skills", &[]),
    ("use_skill", &["Skill"]),
    ("submit_output", &[]),
];

/// The built-in tool of this name, in whatever way it is called.
pub fn built_in_tool(name: &str) -> Option<&'static str> {
    let named = |(own, others): &&(&'static str, &[&str])| *own == name || others.contains(&name);
    BUILT_IN_TOOLS.iter().find(named).map(|(own, _)| *own)
}

/// What a model may call beside the built-in tools, as the configuration groups it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Toolset {
    /// Its name.
    pub name: String,
    /// Names of built-in tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub builtin: Vec<String>,
    /// Commands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<CommandTool>,
    /// A server of the Model Context Protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp: Option<McpServer>,
    /// Names of those of its tools that change nothing: a skill that is not mutating gets these alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read_only: Vec<String>,
}

/// A command that a model may call. Its arguments arrive as a JSON object on its standard input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandTool {
    /// Its name.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// JSON Schema of its arguments.
    pub schema: serde_json::Value,
    /// Program first; the model has no part in it.
    pub argv: Vec<String>,
    /// Its limit in milliseconds.
    pub timeout_ms: u64,
}

/// How a server of the Model Context Protocol is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpServer {
    /// How.
    pub transport: McpTransport,
    /// Limit of its start in milliseconds.
    pub start_ms: u64,
    /// Limit of one call in milliseconds.
    pub call_ms: u64,
}

/// The way to a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum McpTransport {
    /// A program that is started for each run and speaks over its standard input and output.
    Stdio {
        /// Program first.
        argv: Vec<String>,
        /// Names of variables that it is given; they are secrets.
        env: Vec<String>,
    },
    /// A server that runs already.
    Http {
        /// Its address.
        url: String,
        /// Where its bearer token is.
        key: Option<KeySource>,
    },
}
