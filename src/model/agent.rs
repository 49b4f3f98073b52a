//! What executes instructions: models, and what a run with one may spend.

mod tools;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use tools::{CommandTool, McpServer, McpTransport, Toolset};

/// The alias that counts where a skill names none, or one that is not there.
pub const DEFAULT_MODEL: &str = "default";

/// Turns of one attempt where a skill says nothing, as the contract of workspace skills has it.
pub const ITERATIONS_DEFAULT: u32 = 5;

/// Whether this build can ask models.
pub const fn has_model_client() -> bool {
    cfg!(feature = "llm")
}

/// The protocol that a model's server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
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

/// Money in millionths of whatever currency the prices are in.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Money(pub u64);

impl Money {
    /// Reads `2.50`; at most six digits behind the point.
    pub fn parse(text: &str) -> Option<Money> {
        let (whole, part) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || part.len() > 6 || !digits(whole) || !digits(part) {
            return None;
        }
        let millionths: u64 = format!("{part:0<6}").parse().ok()?;
        let whole: u64 = whole.parse().ok()?;
        let all = whole.checked_mul(1_000_000)?.checked_add(millionths)?;
        Some(Money(all))
    }

    /// The sum, at most the largest there is.
    #[must_use]
    pub const fn plus(self, other: Money) -> Money {
        Money(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.0 / 1_000_000, self.0 % 1_000_000);
        let text = format!("{part:06}");
        let shown = text.trim_end_matches('0');
        write!(f, "{whole}.{shown:0<2}")
    }
}

/// What a million tokens cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Prices {
    /// Of a request.
    pub input: Money,
    /// Of an answer.
    pub output: Money,
    /// Of a request, read from a cache.
    pub cache_read: Money,
    /// Of a request, written to a cache.
    pub cache_write: Money,
}

impl Prices {
    /// What these tokens cost, rounded up to a millionth.
    pub fn of(&self, tokens: &Tokens) -> Money {
        let parts = [
            (tokens.input, self.input),
            (tokens.output, self.output),
            (tokens.cache_read, self.cache_read),
            (tokens.cache_write, self.cache_write),
        ];
        let product = |(tokens, price): (u64, Money)| u128::from(tokens) * u128::from(price.0);
        let sum: u128 = parts.into_iter().map(product).sum();
        Money(u64::try_from(sum.div_ceil(1_000_000)).unwrap_or(u64::MAX))
    }
}

/// Tokens in disjoint parts: their sum is what went through a model.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct Tokens {
    /// Of requests, neither read from a cache nor written to one.
    pub input: u64,
    /// Of answers, reasoning included.
    pub output: u64,
    /// Of requests, read from a cache.
    #[serde(default)]
    pub cache_read: u64,
    /// Of requests, written to a cache.
    #[serde(default)]
    pub cache_write: u64,
}

impl Tokens {
    /// All together.
    pub const fn sum(&self) -> u64 {
        self.input
            .saturating_add(self.output)
            .saturating_add(self.cache_read)
            .saturating_add(self.cache_write)
    }

    /// The sum of both, part by part.
    #[must_use]
    pub const fn plus(self, other: Tokens) -> Tokens {
        Tokens {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
        }
    }
}

/// What was spent on a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Spent {
    /// Tokens that servers reported, of answers that did not count too.
    pub tokens: Tokens,
    /// Money, where the model has prices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub money: Option<Money>,
    /// Turns of which the server reported no tokens.
    #[serde(default)]
    pub unmeasured: u32,
}

impl Spent {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Spent) -> Spent {
        let money = match (self.money, other.money) {
            (Some(one), Some(two)) => Some(one.plus(two)),
            (one, two) => one.or(two),
        };
        Spent {
            tokens: self.tokens.plus(other.tokens),
            money,
            unmeasured: self.unmeasured.saturating_add(other.unmeasured),
        }
    }
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

/// What one run may spend; what is absent has no limit of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Tokens of all turns, those read from a cache left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Money of all turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub money: Option<Money>,
    /// Turns of all attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
}

impl Default for Budget {
    /// A backstop: far more than a run should need, far less than a run that never ends.
    fn default() -> Budget {
        Budget {
            tokens: Some(5_000_000),
            money: None,
            turns: Some(200),
        }
    }
}

impl Budget {
    /// This budget where it says something, else the outer one.
    #[must_use]
    pub fn within(self, outer: Budget) -> Budget {
        Budget {
            tokens: self.tokens.or(outer.tokens),
            money: self.money.or(outer.money),
            turns: self.turns.or(outer.turns),
        }
    }

    /// Nothing said.
    pub const UNSAID: Budget = Budget {
        tokens: None,
        money: None,
        turns: None,
    };
}

/// What the runs of one day may spend, by the day in which they were accepted; absent: without limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DayBudget {
    /// Money of all runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub money: Option<Money>,
    /// Runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<u32>,
}

/// A file that a model may load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedFile {
    /// Relative to the skill's directory.
    pub path: String,
    /// When to load it.
    pub description: String,
}

/// What a definition says about how its instructions are executed; what is absent, it leaves open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentWishes {
    /// Alias of a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
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

impl Default for AgentWishes {
    fn default() -> AgentWishes {
        AgentWishes {
            model: None,
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
    fn money_is_read_and_shown_in_full() {
        for (text, shown) in [
            ("2.5", Some("2.50")),
            ("3", Some("3.00")),
            ("0.000001", Some("0.000001")),
            ("12.3456789", None),
            ("-1", None),
            (".5", None),
            ("1e3", None),
            ("", None),
            ("99999999999999999999", None),
        ] {
            let read = Money::parse(text).map(|money| money.to_string());
            assert_eq!(read.as_deref(), shown, "{text}");
        }
    }

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

    #[test]
    fn tokens_cost_what_they_cost_rounded_up() {
        let price = |text| Money::parse(text).unwrap();
        let prices = Prices {
            input: price("3"),
            output: price("15"),
            cache_read: price("0.3"),
            cache_write: price("3.75"),
        };
        let tokens = Tokens {
            input: 1_000,
            output: 200,
            cache_read: 10_000,
            cache_write: 1,
        };
        // 3,000 + 3,000 + 3,000 + 3.75 millionths.
        assert_eq!(prices.of(&tokens), Money(9_004));
        assert_eq!(tokens.sum(), 11_201);
    }
}
