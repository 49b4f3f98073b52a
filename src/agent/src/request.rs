//! Requests. The serialized form is stable: turns are kept in a journal.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::turn::{Call, Continuation, Turn, estimated_tokens};

/// Cache marks of one request at most, the limit of Anthropic.
pub const CACHE_MARKS_MAX: usize = 4;

/// One request, independent of dialects.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Instructions that stand before all messages; may be empty.
    #[serde(default)]
    pub system: String,
    /// The conversation so far, beginning with a user's message.
    pub messages: Vec<Message>,
    /// What the model may call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolSpec>,
    /// Where prefixes end that later requests will repeat. Sent as `cache_control` to Anthropic; the other
    /// dialects find such prefixes themselves. More than [`CACHE_MARKS_MAX`] are refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cache: Vec<CacheMark>,
}

/// The end of a prefix that later requests will repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheMark {
    /// After the tools.
    Tools,
    /// After the system text.
    System,
    /// After the message with this index.
    Message(usize),
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// What the user says.
    User {
        /// Its text.
        text: String,
    },
    /// What the model said: [`Turn::message`](crate::Turn::message).
    Assistant {
        /// Its text; may be empty where there are calls.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        text: String,
        /// Its calls.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<Call>,
        /// What its server wants to get back unchanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        continuation: Option<Continuation>,
    },
    /// What came of the calls of the message before.
    ToolResults {
        /// One for each call.
        results: Vec<ToolResult>,
    },
}

impl Turn {
    /// The message that continues the conversation.
    pub fn message(&self) -> Message {
        Message::Assistant {
            text: self.text.clone(),
            calls: self.calls.clone(),
            continuation: self.continuation.clone(),
        }
    }
}

impl Message {
    /// A user's message.
    pub fn user(text: impl Into<String>) -> Self {
        Self::User { text: text.into() }
    }
}

/// What came of one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The id of the call.
    pub call_id: String,
    /// The tool's name, by which Gemini and Ollama match results.
    pub name: String,
    /// What the model gets to read.
    pub content: String,
    /// Whether the call failed. Where a dialect has no such mark, the text says so.
    #[serde(default)]
    pub is_error: bool,
}

/// A tool that the model may call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// JSON Schema of its arguments, which are an object.
    pub schema: Value,
}

impl Request {
    /// See [`RequestDigest::of`].
    ///
    /// # Errors
    /// If the request cannot be written as JSON.
    pub fn digest(&self) -> Result<String, serde_json::Error> {
        RequestDigest::default().of(self)
    }

    /// Estimates the tokens of the messages from this one on; from the first, with everything that stands before it.
    pub fn estimated_tokens(&self, from: usize) -> u64 {
        let bytes_of = |value: Result<String, _>| value.map_or(0, |text| text.len());
        let messages = self.messages.iter().skip(from);
        let mut bytes: usize = messages
            .map(|message| bytes_of(serde_json::to_string(message)))
            .sum();
        if from == 0 {
            bytes += self.system.len();
            bytes += bytes_of(serde_json::to_string(&self.tools));
        }
        estimated_tokens(bytes)
    }

    /// Every text that a person or a tool wrote, for masking.
    pub(crate) fn texts(&self) -> Vec<&str> {
        let mut texts = vec![self.system.as_str()];
        for message in &self.messages {
            match message {
                Message::User { text } => texts.push(text),
                Message::Assistant { text, calls, .. } => {
                    texts.push(text);
                    for call in calls {
                        match &call.arguments {
                            Ok(arguments) => push_strings(arguments, &mut texts),
                            Err(problem) => texts.push(problem),
                        }
                    }
                }
                Message::ToolResults { results } => {
                    texts.extend(results.iter().map(|result| result.content.as_str()));
                }
            }
        }
        texts
    }
}

/// The digest of a request to which messages are added: what it had before is not read again.
#[derive(Debug, Clone, Default)]
pub struct RequestDigest {
    hash: Sha256,
    messages: usize,
}

impl RequestDigest {
    /// SHA-256, in lower-case hexadecimal, of lines of JSON: an array of the system text and the tools, then a line
    /// for each message; keys of all objects sorted, no blanks. Equal requests have equal digests, whatever order
    /// schemas were written in.
    ///
    /// # Errors
    /// If the request cannot be written as JSON.
    pub fn of(&mut self, request: &Request) -> Result<String, serde_json::Error> {
        if self.messages == 0 {
            self.add(&(&request.system, &request.tools))?;
        }
        for message in request.messages.iter().skip(self.messages) {
            self.add(message)?;
            self.messages += 1;
        }
        let hex = |byte: &u8| [byte >> 4, byte & 15].map(|n| char::from_digit(n.into(), 16));
        let digest = self.hash.clone().finalize();
        Ok(digest.iter().flat_map(hex).flatten().collect())
    }

    fn add(&mut self, part: &impl Serialize) -> Result<(), serde_json::Error> {
        let mut line = String::new();
        write_canonical(&serde_json::to_value(part)?, &mut line)?;
        line.push('\n');
        self.hash.update(line.as_bytes());
        Ok(())
    }
}

fn push_strings<'a>(value: &'a Value, out: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => out.push(text),
        Value::Array(items) => items.iter().for_each(|item| push_strings(item, out)),
        Value::Object(fields) => fields.values().for_each(|field| push_strings(field, out)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The order of a map's keys depends on a feature of the JSON library that any other package can turn on,
/// so they are sorted here.
fn write_canonical(value: &Value, out: &mut String) -> Result<(), serde_json::Error> {
    match value {
        Value::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_unstable_by_key(|(name, _)| name.as_str());
            out.push('{');
            for (index, (name, field)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&serde_json::to_string(name)?);
                out.push(':');
                write_canonical(field, out)?;
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_canonical(item, out)?;
            }
            out.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            out.push_str(&serde_json::to_string(value)?);
        }
    }
    Ok(())
}
