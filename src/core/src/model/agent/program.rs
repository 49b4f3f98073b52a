//! Agent programs that execute instructions, as definitions name them.

use serde::{Deserialize, Serialize};

use super::{KeySource, Model};

/// Turns of one attempt of a program whose skill says nothing: its turns are smaller than those of a conversation of ours.
pub const PROGRAM_ITERATIONS: u32 = 50;

/// Longest silence of a program that says nothing of it, in milliseconds.
pub const PROGRAM_SILENCE_MS: u64 = 600_000;

/// The name of a program that is described.
pub const DESCRIBED: &str = "generic";

/// Programs whose options and streams are known, by the names of definitions.
pub const PROGRAMS: [&str; 5] = ["claude", "codex", "opencode", "gemini", "qwen"];

/// What executes instructions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Executor {
    /// A model, in a conversation that the engine holds.
    Model(Model),
    /// An agent program with a loop of its own.
    Program(Box<AgentProgram>),
}

impl Executor {
    /// The model that the engine talks to itself.
    pub fn model(&self) -> Option<&Model> {
        match self {
            Executor::Model(model) => Some(model),
            Executor::Program(_) => None,
        }
    }

    /// The program.
    pub fn program(&self) -> Option<&AgentProgram> {
        match self {
            Executor::Program(program) => Some(program),
            Executor::Model(_) => None,
        }
    }

    /// Where its key is.
    pub fn key(&self) -> Option<&KeySource> {
        match self {
            Executor::Model(model) => model.key.as_ref(),
            Executor::Program(program) => program.key.as_ref(),
        }
    }
}

/// An agent program, and how it is used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentProgram {
    /// One of [`PROGRAMS`], or [`DESCRIBED`].
    pub cli: String,
    /// A name that is looked up on the path, or an absolute path.
    pub binary: String,
    /// The model, by the name that the program knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Another server than its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Where its key is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<KeySource>,
    /// Whether it is lent the login of the engine's user.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lends_login: bool,
    /// Further arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Further variables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<(String, String)>,
    /// Tools whose refusal does not fail the attempt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub may_be_denied: Vec<String>,
    /// Longest time without a word of it, in milliseconds.
    pub silence_ms: u64,
    /// What it prints, where that is described.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub described: Option<Described>,
}

impl AgentProgram {
    /// The file below the home of the engine's user whose login it is lent.
    pub fn lent_login(&self) -> Option<&'static str> {
        let file = match self.cli.as_str() {
            "claude" => ".claude/.credentials.json",
            "codex" => ".codex/auth.json",
            "opencode" => ".local/share/opencode/auth.json",
            "gemini" => ".gemini/oauth_creds.json",
            "qwen" => ".qwen/oauth_creds.json",
            _ => return None,
        };
        self.lends_login.then_some(file)
    }

    /// Whether it can be held to a list of tools.
    pub fn restricts_tools(&self) -> bool {
        self.cli == "claude"
    }
}

/// How a described program is given its prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptBy {
    /// On its standard input.
    #[default]
    Stdin,
    /// As the argument that is `{prompt}`.
    Argument,
    /// In a file, whose path takes the place of `{prompt}`.
    File,
}

/// In which form a described program answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answers {
    /// As text.
    #[default]
    Text,
    /// As one JSON document.
    Json,
    /// With an event in JSON on each line.
    Jsonl,
}

/// How a program is used that is not known; what stands where is told by pointers of RFC 6901.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Described {
    /// How it is given its prompt.
    #[serde(default)]
    pub prompt: PromptBy,
    /// How it answers.
    #[serde(default)]
    pub output: Answers,
    /// What the event has that ends the work: where, and what stands there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done: Option<(String, String)>,
    /// Where the answer stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Where a failure stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Where refused tools stand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denials: Option<String>,
    /// Where tokens of requests stand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<String>,
    /// Where tokens of answers stand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<String>,
    /// Where the cost stands, in dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<String>,
}
