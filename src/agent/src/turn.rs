//! What came of a turn. The serialized form is stable: turns are kept in a journal.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::Dialect;

/// One turn, whose end was seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// What the model said.
    pub text: String,
    /// What it wants to have called, in its order; found by their presence, not by `stop`.
    pub calls: Vec<Call>,
    /// Tokens of the request whose answer this is; `None` in turns of programs and older versions that reported none.
    pub usage: Option<Usage>,
    /// Whether `usage` is an estimate, at least in part, because the server did not report all of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
    /// Why the model stopped, in the server's own word.
    pub stop: String,
    /// What the server wants to get back unchanged with this message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation: Option<Continuation>,
    /// Requests sent, from 1.
    pub tries: u32,
    /// From the start of the turn to its end, waits included; kept in milliseconds.
    #[serde(rename = "duration_ms", with = "milliseconds")]
    pub duration: Duration,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Its id. Gemini and Ollama may give none; then it is made up, and differs within the conversation.
    pub id: String,
    /// The tool's name; whether there is such a tool is for the caller to say.
    pub name: String,
    /// An object, or in words why they are none. Whether it fits the tool's schema is for the caller to say.
    #[serde(with = "arguments")]
    pub arguments: Result<Value, String>,
}

/// Tokens, in disjoint parts: their sum is what went through the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Of the request, neither read from a cache nor written to one.
    pub input: u64,
    /// Of the answer, reasoning included.
    pub output: u64,
    /// Of the request, read from a cache.
    #[serde(default)]
    pub cache_read: u64,
    /// Of the request, written to a cache.
    #[serde(default)]
    pub cache_write: u64,
}

impl Usage {
    /// Tokens of the request, those of a cache included.
    pub const fn request(&self) -> u64 {
        self.input
            .saturating_add(self.cache_read)
            .saturating_add(self.cache_write)
    }

    /// All tokens.
    pub const fn sum(&self) -> u64 {
        self.request().saturating_add(self.output)
    }
}

/// Tokens of one request and its answer, as far as that came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestUsage {
    /// The tokens.
    pub tokens: Usage,
    /// Whether they are an estimate, at least in part.
    pub is_estimated: bool,
}

/// Bytes of text that are estimated as one token. Texts have three to four, so that the estimate is rather too high.
const BYTES_PER_TOKEN: u64 = 3;

/// Estimates the tokens of so many bytes of text.
pub fn estimated_tokens(bytes: usize) -> u64 {
    u64::try_from(bytes)
        .unwrap_or(u64::MAX)
        .div_ceil(BYTES_PER_TOKEN)
}

/// What a server wants to get back unchanged with the model's message: signed or encrypted reasoning.
///
/// Without it Gemini 3 refuses results of calls
/// (<https://ai.google.dev/gemini-api/docs/thought-signatures>), and so does Anthropic where thinking is on.
/// It is sent only to the dialect and model that it came from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Continuation {
    /// The dialect that it is in.
    pub dialect: Dialect,
    /// The name of the model.
    pub model: String,
    /// Parts of the message as the server sent them.
    pub parts: Vec<Value>,
}

/// Progress of a turn. A consumer that falls behind does not stall the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    /// More of the text.
    Text(String),
    /// More of the reasoning, where the server shows it. It is not kept.
    Reasoning(String),
    /// A call has begun.
    Call {
        /// The tool's name.
        name: String,
    },
    /// The try failed and is repeated after the wait: discard earlier deltas.
    Again {
        /// The code of the failure.
        code: &'static str,
        /// The wait.
        wait: Duration,
    },
}

mod milliseconds {
    use std::time::Duration;

    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(span: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_millis)
    }
}

/// `{"valid": {..}}` or `{"invalid": ".."}`: serde's own form of a result would be `Ok` and `Err`.
mod arguments {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_json::Value;

    #[derive(Serialize)]
    #[serde(rename_all = "snake_case")]
    enum Written<'a> {
        Valid(&'a Value),
        Invalid(&'a str),
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Read {
        Valid(Value),
        Invalid(String),
    }

    pub(super) fn serialize<S: Serializer>(
        arguments: &Result<Value, String>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match arguments {
            Ok(value) => Written::Valid(value).serialize(to),
            Err(problem) => Written::Invalid(problem).serialize(to),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Result<Value, String>, D::Error> {
        Ok(match Read::deserialize(from)? {
            Read::Valid(value) => Ok(value),
            Read::Invalid(problem) => Err(problem),
        })
    }
}
