//! An answer while it comes in, and whether it counts in the end.

use serde_json::{Map, Value};

use crate::error::Failure;
use crate::turn::{Call, Delta, RequestUsage, Usage, estimated_tokens};

/// Calls of one answer. Each piece of one is found by search.
const CALLS_MAX: usize = 1_000;

/// Characters of a stop reason that are kept.
const STOP_CHARS_MAX: usize = 64;

/// Why reading an answer ended before it was whole.
#[derive(Debug, PartialEq)]
pub(crate) enum BrokenAnswer {
    /// A frame is not what its dialect allows.
    Malformed(&'static str),
    /// More than may be kept.
    TooLarge,
    /// The server reports an error within the stream.
    Provider {
        /// The HTTP status that it stands for.
        status: u16,
        /// What it says, as it came.
        message: String,
    },
}

/// Arguments as a dialect sends them.
#[derive(Debug)]
enum Arguments {
    /// Pieces of JSON.
    Text(String),
    /// A value within the frame.
    Value(Value),
}

/// A call while it comes in.
#[derive(Debug)]
pub(crate) struct OpenCall {
    /// By which later pieces name it; found by search, since a server may send any number.
    key: u64,
    pub(crate) id: String,
    pub(crate) name: String,
    arguments: Arguments,
    /// Bytes of arguments that came.
    streamed_bytes: usize,
    /// Whether its dialect said that it is whole, where the dialect does that.
    closed: bool,
}

impl OpenCall {
    /// Its arguments, for the server's own form of the message.
    pub(crate) fn value(&self) -> Value {
        parse(&self.arguments)
            .ok()
            .and_then(Result::ok)
            .unwrap_or_default()
    }
}

/// An answer while it comes in.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) calls: Vec<OpenCall>,
    /// Tokens that the server has reported so far.
    usage: Option<Usage>,
    /// Whether they are those of the whole answer, and not only of what came before the report.
    is_measured: bool,
    /// Whether anything of an answer came: a request whose answer began is paid for.
    pub(crate) has_begun: bool,
    /// Bytes of text, reasoning, names and arguments that came.
    streamed_bytes: usize,
    pub(crate) stop: Option<String>,
    /// The model refused in words, whatever the stop reason says.
    pub(crate) refused: bool,
    /// Parts for [`crate::Continuation`].
    pub(crate) parts: Vec<Value>,
    /// Not reported yet.
    pub(crate) deltas: Vec<Delta>,
    kept_bytes: usize,
    limit_bytes: usize,
}

impl Answer {
    pub(crate) fn new(limit_bytes: usize) -> Self {
        Self {
            text: String::new(),
            calls: Vec::new(),
            usage: None,
            is_measured: false,
            has_begun: false,
            streamed_bytes: 0,
            stop: None,
            refused: false,
            parts: Vec::new(),
            deltas: Vec::new(),
            kept_bytes: 0,
            limit_bytes,
        }
    }

    /// Counts bytes that are kept or queued for the caller, which may lag behind.
    pub(crate) fn keep(&mut self, bytes: usize) -> Result<(), BrokenAnswer> {
        self.kept_bytes = self.kept_bytes.saturating_add(bytes);
        if self.kept_bytes > self.limit_bytes {
            return Err(BrokenAnswer::TooLarge);
        }
        Ok(())
    }

    /// Takes tokens that the server reports; later ones replace earlier ones. `is_final`: those of the whole answer.
    pub(crate) fn report(&mut self, usage: Option<Usage>, is_final: bool) {
        if usage.is_some() {
            self.usage = usage;
            self.is_measured = is_final;
        }
    }

    /// Tokens that the server has reported so far.
    pub(crate) const fn reported(&self) -> Option<Usage> {
        self.usage
    }

    /// Counts bytes of the answer that came and are not kept.
    pub(crate) fn count(&mut self, bytes: usize) {
        self.streamed_bytes = self.streamed_bytes.saturating_add(bytes);
    }

    /// Tokens of the request, which is expected to have `input`, and of what came of its answer. What the server has not
    /// reported is estimated.
    pub(crate) fn metered(&self, input: u64) -> RequestUsage {
        let mut tokens = self.usage.unwrap_or_default();
        let mut is_estimated = !self.is_measured;
        if tokens.request() == 0 {
            tokens.input = input;
            is_estimated = true;
        }
        let streamed = estimated_tokens(self.streamed_bytes);
        if !self.is_measured || (tokens.output == 0 && streamed > 0) {
            tokens.output = tokens.output.max(streamed);
            is_estimated = true;
        }
        RequestUsage {
            tokens,
            is_estimated,
        }
    }

    pub(crate) fn add_text(&mut self, text: &str) -> Result<(), BrokenAnswer> {
        if text.is_empty() {
            return Ok(());
        }
        self.count(text.len());
        self.keep(text.len())?;
        self.text.push_str(text);
        self.deltas.push(Delta::Text(text.to_owned()));
        Ok(())
    }

    pub(crate) fn add_reasoning(&mut self, text: &str) -> Result<(), BrokenAnswer> {
        if !text.is_empty() {
            self.count(text.len());
            self.keep(text.len())?;
            self.deltas.push(Delta::Reasoning(text.to_owned()));
        }
        Ok(())
    }

    /// Begins a call. An empty id is made up at the end.
    pub(crate) fn open_call(&mut self, key: u64, id: &str, name: &str) -> Result<(), BrokenAnswer> {
        if self.calls.iter().any(|call| call.key == key) {
            return Err(BrokenAnswer::Malformed("two tool calls in one place"));
        }
        if self.calls.len() >= CALLS_MAX {
            return Err(BrokenAnswer::Malformed(
                "there are too many tool calls in it",
            ));
        }
        self.count(name.len());
        self.keep(id.len() + name.len() + size_of::<OpenCall>())?;
        self.deltas.push(Delta::Call {
            name: name.to_owned(),
        });
        self.calls.push(OpenCall {
            key,
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: Arguments::Text(String::new()),
            streamed_bytes: 0,
            closed: false,
        });
        Ok(())
    }

    pub(crate) fn has_call(&self, key: u64) -> bool {
        self.calls.iter().any(|call| call.key == key)
    }

    pub(crate) fn call(&self, key: u64) -> Option<&OpenCall> {
        self.calls.iter().find(|call| call.key == key)
    }

    fn call_mut(&mut self, key: u64) -> Result<&mut OpenCall, BrokenAnswer> {
        let found = self.calls.iter_mut().find(|call| call.key == key);
        found.ok_or(BrokenAnswer::Malformed(
            "a piece of a tool call that has not begun",
        ))
    }

    pub(crate) fn add_arguments(&mut self, key: u64, piece: &str) -> Result<(), BrokenAnswer> {
        self.count_arguments(key, piece.len());
        self.keep(piece.len())?;
        match &mut self.call_mut(key)?.arguments {
            Arguments::Text(text) => text.push_str(piece),
            whole @ Arguments::Value(_) => *whole = Arguments::Text(piece.to_owned()),
        }
        Ok(())
    }

    /// Counts a piece of a call's arguments that is not kept, because the whole of them follows.
    pub(crate) fn count_arguments(&mut self, key: u64, bytes: usize) {
        self.count(bytes);
        if let Ok(call) = self.call_mut(key) {
            call.streamed_bytes = call.streamed_bytes.saturating_add(bytes);
        }
    }

    /// Sets arguments that came whole. A string is JSON once more.
    ///
    /// They count by their own size: a frame may hold many calls.
    pub(crate) fn set_arguments(&mut self, key: u64, value: Value) -> Result<(), BrokenAnswer> {
        let bytes = match &value {
            Value::String(text) => text.len(),
            other => json_bytes(other),
        };
        let before = self.call_mut(key)?.streamed_bytes;
        self.count_arguments(key, bytes.saturating_sub(before));
        self.keep(bytes)?;
        self.call_mut(key)?.arguments = match value {
            Value::String(text) => Arguments::Text(text),
            other => Arguments::Value(other),
        };
        Ok(())
    }

    pub(crate) fn close_call(&mut self, key: u64) -> Result<(), BrokenAnswer> {
        self.call_mut(key)?.closed = true;
        Ok(())
    }

    /// For dialects that say no end of a call: the end of the answer is theirs.
    pub(crate) fn close_calls(&mut self) {
        self.calls.iter_mut().for_each(|call| call.closed = true);
    }

    /// Stop reason and calls of an answer that counts, or why it does not. `id_prefix` begins ids that the
    /// server left out.
    pub(crate) fn conclude(&self, id_prefix: &str) -> Result<(String, Vec<Call>), Failure> {
        let Some(stop) = &self.stop else {
            return Err(Failure::Incomplete("it ended without a stop reason"));
        };
        // A word of the server's that is shown and stored.
        let stop = &stop
            .chars()
            .filter(|c| !c.is_control())
            .take(STOP_CHARS_MAX)
            .collect::<String>();
        match StopKind::of(stop) {
            _ if self.refused => return Err(Failure::Refusal { stop: stop.clone() }),
            StopKind::Refusal => return Err(Failure::Refusal { stop: stop.clone() }),
            StopKind::Length => return Err(Failure::Length { stop: stop.clone() }),
            StopKind::CutOff => return Err(Failure::Incomplete("the server gave up on it")),
            StopKind::Whole => {}
        }
        let mut calls = Vec::with_capacity(self.calls.len());
        for (index, call) in self.calls.iter().enumerate() {
            if !call.closed || call.name.is_empty() {
                return Err(Failure::Incomplete("a tool call is not whole"));
            }
            let Ok(arguments) = parse(&call.arguments) else {
                return Err(Failure::Incomplete(
                    "the arguments of a tool call are no JSON",
                ));
            };
            let id = match call.id.as_str() {
                "" => format!("{id_prefix}{index}"),
                id => id.to_owned(),
            };
            let name = call.name.clone();
            calls.push(Call {
                id,
                name,
                arguments,
            });
        }
        if calls.is_empty() && self.text.trim().is_empty() {
            return Err(Failure::Empty { stop: stop.clone() });
        }
        Ok((stop.clone(), calls))
    }
}

/// Bytes of the value in JSON.
pub(crate) fn json_bytes(value: &Value) -> usize {
    struct Counted(usize);
    impl std::io::Write for Counted {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counted = Counted(0);
    // A value that cannot be written has no bytes; there is none.
    _ = serde_json::to_writer(&mut counted, value);
    counted.0
}

/// Whether values stand within values more than `levels` deep.
pub(crate) fn nests_beyond(value: &Value, levels: usize) -> bool {
    let mut inner: Box<dyn Iterator<Item = &Value>> = match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(fields) => Box::new(fields.values()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return false,
    };
    levels == 0 || inner.any(|value| nests_beyond(value, levels - 1))
}

/// The outer error is text that is no JSON; the inner one is JSON that is no object.
fn parse(arguments: &Arguments) -> Result<Result<Value, String>, serde_json::Error> {
    let value = match arguments {
        // A call without arguments has no pieces in some dialects.
        Arguments::Text(text) if text.trim().is_empty() => Value::Object(Map::new()),
        Arguments::Text(text) => serde_json::from_str(text)?,
        Arguments::Value(value) => value.clone(),
    };
    let kind = match value {
        Value::Object(_) if nests_beyond(&value, NESTING_MAX) => {
            return Ok(Err(format!(
                "the arguments nest more than {NESTING_MAX} deep"
            )));
        }
        Value::Object(_) => return Ok(Ok(value)),
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
    };
    Ok(Err(format!("the arguments are {kind}, not an object")))
}

/// Levels of what a server sends that is kept as it is: a journal has its own limit, and stands around it.
pub(crate) const NESTING_MAX: usize = 64;

/// What a stop reason of any dialect means. Unknown ones count as whole, because the stream did end.
#[derive(Debug, PartialEq, Eq)]
enum StopKind {
    Whole,
    Length,
    Refusal,
    CutOff,
}

impl StopKind {
    fn of(stop: &str) -> Self {
        match stop.to_ascii_lowercase().as_str() {
            "max_tokens" | "length" | "max_output_tokens" | "model_context_window_exceeded" => {
                Self::Length
            }
            "refusal" | "content_filter" | "safety" | "recitation" | "blocklist"
            | "prohibited_content" | "spii" | "image_safety" => Self::Refusal,
            "malformed_function_call"
            | "unexpected_tool_call"
            | "other"
            | "error"
            | "incomplete"
            | "finish_reason_unspecified" => Self::CutOff,
            _ => Self::Whole,
        }
    }
}
