//! A model, where it is reached, and the bounds of a turn with it.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The protocol that a model's server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// `POST /v1/messages`, <https://docs.anthropic.com/en/api/messages-streaming>.
    Anthropic,
    /// `POST /chat/completions`, <https://platform.openai.com/docs/api-reference/chat-streaming>; the
    /// dialect that most other servers offer too.
    #[serde(rename = "openai_chat")]
    OpenAiChat,
    /// `POST /responses`, <https://platform.openai.com/docs/api-reference/responses-streaming>.
    #[serde(rename = "openai_responses")]
    OpenAiResponses,
    /// `POST /v1beta/models/NAME:streamGenerateContent`, <https://ai.google.dev/api/generate-content>.
    Gemini,
    /// `POST /api/chat`, <https://docs.ollama.com/api/chat>.
    Ollama,
}

/// A secret that goes into one header of a request.
///
/// Its value is not part of `Debug`, is not serialized, and is masked wherever a server repeats it in a
/// message. What people read is the reference: where the value came from, such as a variable's name.
#[derive(Clone)]
pub struct Key {
    reference: String,
    value: String,
}

impl Key {
    /// A key with the name by which people know it. Blanks around the value are dropped: files with keys
    /// end with a newline.
    pub fn new(reference: impl Into<String>, value: &str) -> Self {
        Self {
            reference: reference.into(),
            value: value.trim().to_owned(),
        }
    }

    /// Where the value came from.
    pub fn reference(&self) -> &str {
        &self.reference
    }

    pub(crate) fn value(&self) -> &str {
        &self.value
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key")
            .field("reference", &self.reference)
            .finish_non_exhaustive()
    }
}

/// A model and how it is used.
#[derive(Debug, Clone)]
pub struct Model {
    /// The name that people gave to this entry; errors name it.
    pub alias: String,
    /// The protocol of its server.
    pub dialect: Dialect,
    /// The name by which the server knows it.
    pub name: String,
    /// Where the server is, in the form of the vendor's own variable: with `/v1` for the two dialects of
    /// OpenAI, without a path for the others. `None` is the vendor's public address; for Ollama, this machine.
    pub base_url: Option<String>,
    /// The key, where the server wants one.
    pub key: Option<Key>,
    /// Bounds of one answer.
    pub limits: ModelLimits,
    /// Bounds in time.
    pub deadlines: Deadlines,
}

/// Bounds of one answer, sent with each request.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ModelLimits {
    /// Tokens that an answer may have at most, including those of reasoning.
    pub max_output_tokens: u32,
    /// Left out of the request if `None`: some models refuse any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
}

impl Default for ModelLimits {
    fn default() -> Self {
        Self {
            max_output_tokens: 8_192,
            temperature: None,
        }
    }
}

/// Bounds in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    /// Name lookup, connection and TLS handshake together.
    pub connect: Duration,
    /// From the start of a try to the head of its answer, connecting included.
    pub headers: Duration,
    /// Between two pieces of an answer; keep-alive comments count as pieces.
    pub silence: Duration,
    /// The whole turn with all its tries and waits.
    pub turn: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            headers: Duration::from_mins(2),
            silence: Duration::from_mins(2),
            turn: Duration::from_mins(10),
        }
    }
}
