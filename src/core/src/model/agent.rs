//! What executes instructions: models, and what a run with one may spend.

mod program;
mod spending;
mod tools;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use program::{
    AgentProgram, Answers, DESCRIBED, Described, Executor, PROGRAM_ITERATIONS, PROGRAM_SILENCE_MS,
    PROGRAMS, PromptBy,
};
pub use spending::{Budget, DayBudget, Money, Prices, Spent, Tokens};
pub use tools::{BUILT_IN_TOOLS, CommandTool, McpServer, McpTransport, Toolset, built_in_tool};

/// The alias that counts where a skill names none, or one that is not there.
pub const DEFAULT_MODEL: &str = "default";

/// What to do where no model is configured.
pub const CONFIGURE_A_MODEL: &str = "name one in workerctl.yaml: `models: {default: {provider: anthropic, model: NAME, key: env:ANTHROPIC_API_KEY}}`";

/// Turns of one attempt where a skill says nothing, as the contract of workspace skills has it.
pub const ITERATIONS_DEFAULT: u32 = 5;

/// Whether this build can ask models.
pub const fn has_model_client() -> bool {
    cfg!(feature = "llm")
}

/// The protocol that a model's server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Provider {
    /// Anthropic's messages.
    Anthropic,
    /// OpenAI's chat completions, which most other servers offer too.
    Openai,
    /// OpenAI's responses.
    OpenaiResponses,
    /// Google's generative language.
    Gemini,
    /// Ollama's own.
    Ollama,
}

impl Provider {
    /// All of them, in the order of documentation.
    pub const ALL: [Provider; 5] = [
        Provider::Anthropic,
        Provider::Openai,
        Provider::OpenaiResponses,
        Provider::Gemini,
        Provider::Ollama,
    ];

    /// Its name in configurations.
    pub const fn name(self) -> &'static str {
        match self {
            Provider::Anthropic => "anthropic",
            Provider::Openai => "openai",
            Provider::OpenaiResponses => "openai_responses",
            Provider::Gemini => "gemini",
            Provider::Ollama => "ollama",
        }
    }

    /// Whether its public address wants a key.
    pub const fn wants_key(self) -> bool {
        !matches!(self, Provider::Ollama)
    }
}

/// Where the value of a key is; never the value itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum KeySource {
    /// A variable of the engine's environment.
    Env(String),
    /// A credential of the service manager: a file in `$CREDENTIALS_DIRECTORY`.
    Credential(String),
    /// A file: absolute, or below `~/`.
    File(String),
}

/// Why a text does not say where a key is. It does not repeat the text, which may be the key itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a key is named, never written: `env:NAME`, `credential:NAME` or `file:/path`")]
pub struct KeySourceError;

impl FromStr for KeySource {
    type Err = KeySourceError;

    fn from_str(text: &str) -> Result<KeySource, KeySourceError> {
        let (kind, name) = text.split_once(':').ok_or(KeySourceError)?;
        let is_name = |name: &str| {
            let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
            !name.is_empty() && name.chars().all(fits) && !name.starts_with('.')
        };
        match kind {
            "env" if is_name(name) => Ok(KeySource::Env(name.to_owned())),
            "credential" if is_name(name) => Ok(KeySource::Credential(name.to_owned())),
            "file" if name.starts_with('/') || name.starts_with("~/") => {
                Ok(KeySource::File(name.to_owned()))
            }
            _ => Err(KeySourceError),
        }
    }
}

impl fmt::Display for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeySource::Env(name) => write!(f, "env:{name}"),
            KeySource::Credential(name) => write!(f, "credential:{name}"),
            KeySource::File(path) => write!(f, "file:{path}"),
        }
    }
}

impl TryFrom<String> for KeySource {
    type Error = KeySourceError;

    fn try_from(text: String) -> Result<KeySource, KeySourceError> {
        text.parse()
    }
}

impl From<KeySource> for String {
    fn from(source: KeySource) -> String {
        source.to_string()
    }
}

/// One turn with a model, as it is kept: its answer counts, for its end was seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnRecord {
    /// From 1 within a conversation, which may go on in a later attempt.
    pub number: u32,
    /// SHA-256 of the request in hex.
    pub request: String,
    /// The model's text, its calls and what its server wants to get back; opaque here.
    pub answer: serde_json::Value,
    /// What it cost, tries that did not count included.
    pub spent: Spent,
}

/// Deadlines of one turn, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelTimeouts {
    /// Name lookup, connection and TLS handshake together.
    pub connect_ms: u64,
    /// Until the head of the answer.
    pub headers_ms: u64,
    /// Between two pieces of the answer.
    pub silence_ms: u64,
    /// The whole turn with its retries.
    pub turn_ms: u64,
}

impl Default for ModelTimeouts {
    fn default() -> ModelTimeouts {
        ModelTimeouts {
            connect_ms: 10_000,
            headers_ms: 120_000,
            silence_ms: 120_000,
            turn_ms: 600_000,
        }
    }
}

/// A model as the configuration names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Model {
    /// The name that the configuration gives it.
    pub alias: String,
    /// The protocol of its server.
    pub provider: Provider,
    /// The name by which the server knows it.
    pub name: String,
    /// Where the server is; absent: the provider's public address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Where its key is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<KeySource>,
    /// Tokens that one answer may have.
    pub max_output_tokens: u32,
    /// In thousandths; absent: the server's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_milli: Option<u32>,
    /// Deadlines.
    pub timeouts: ModelTimeouts,
    /// Prices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<Prices>,
}

/// A file that a model may load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedFile {
    /// Relative to the skill's directory.
    pub path: String,
    /// When to load it.
    pub description: String,
}

/// Instructions with everything that their execution needs, frozen when the run was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentSpec {
    /// What executes them.
    #[serde(flatten)]
    pub executor: Executor,
    /// The alias that the skill names, where there is no such model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// What the model is told to be and to do.
    pub instructions: String,
    /// Turns of one attempt.
    pub max_iterations: u32,
    /// What the run may spend.
    pub budget: Budget,
    /// What the runs of a day may spend: of the skill, of its worker, of the workspace.
    #[serde(default)]
    pub per_day: [DayBudget; 3],
    /// Built-in tools that it may call.
    pub tools: Vec<String>,
    /// Tools without which it does not begin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<String>,
    /// The only tools and commands that it may use, as the skill lists them; absent: any of those that there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed: Option<Vec<String>>,
    /// Tools and commands that it may not use, as the skill lists them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disallowed: Vec<String>,
    /// Further tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub toolsets: Vec<Toolset>,
    /// Files that it may load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<ListedFile>,
    /// Absolute directory of these files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files_directory: Option<String>,
    /// Files whose content stands before the task, relative to the workspace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<String>,
    /// The input where a JSON Schema describes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<serde_json::Value>,
}

/// What a definition says about how its instructions are executed; what is absent, it leaves open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeclaredAgent {
    /// Alias of a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The agent program that executes the instructions instead of a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Box<AgentProgram>>,
    /// Turns of one attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_iterations: Option<u32>,
    /// What one run may spend.
    #[serde(default = "unsaid")]
    pub budget: Budget,
    /// What the runs of the skill may spend in a day.
    #[serde(default)]
    pub per_day: DayBudget,
    /// What all runs of its worker may spend in a day.
    #[serde(default)]
    pub worker_per_day: DayBudget,
    /// Files that are put before the task, relative to the workspace: those that seldom change first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<String>,
}

const fn unsaid() -> Budget {
    Budget::UNSAID
}

impl Default for DeclaredAgent {
    fn default() -> DeclaredAgent {
        DeclaredAgent {
            model: None,
            program: None,
            max_iterations: None,
            budget: Budget::UNSAID,
            per_day: DayBudget::default(),
            worker_per_day: DayBudget::default(),
            context: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_named_and_never_written() {
        for text in [
            "env:ANTHROPIC_API_KEY",
            "credential:key",
            "file:~/.key",
            "file:/k",
        ] {
            assert_eq!(text.parse::<KeySource>().unwrap().to_string(), text);
        }
        for text in [
            "sk-ant-123",
            "env:",
            "env:A B",
            "file:key",
            "vault:x",
            "credential:../x",
        ] {
            let refused = text.parse::<KeySource>().unwrap_err().to_string();
            assert!(!refused.contains("sk-ant"), "{refused}");
        }
    }
}
