//! Chat completions of OpenAI, and of the many servers that offer the same:
//! <https://platform.openai.com/docs/api-reference/chat-streaming>.

use reqwest::Url;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Decode, address, continued, marked, object, parse, provider_error};
use crate::answer::{Answer, BrokenAnswer, OpenCall};
use crate::error::Failure;
use crate::model::Model;
use crate::request::{Message, Request};
use crate::turn::{Call, Usage};

pub(super) fn request(model: &Model, request: &Request) -> Result<(Url, Value), Failure> {
    let url = address(model, "https://api.openai.com/v1", &["chat", "completions"])?;
    // OpenAI refuses the old name for newer models, and many other servers know no other.
    let limit = match url.host_str() {
        Some("api.openai.com") => "max_completion_tokens",
        _ => "max_tokens",
    };
    let mut messages = Vec::new();
    if !request.system.is_empty() {
        messages.push(json!({"role": "system", "content": request.system}));
    }
    for message in &request.messages {
        push(model, message, &mut messages);
    }
    let mut body = json!({
        "model": model.name,
        limit: model.limits.max_output_tokens,
        "stream": true,
        "stream_options": {"include_usage": true},
        "messages": messages,
    });
    if let Some(temperature) = model.limits.temperature {
        body["temperature"] = json!(temperature);
    }
    if !request.tools.is_empty() {
        body["tools"] = super::function_tools(request);
    }
    Ok((url, body))
}

fn push(model: &Model, message: &Message, out: &mut Vec<Value>) {
    match message {
        Message::User { text } => out.push(json!({"role": "user", "content": text})),
        Message::Assistant { text, calls, continuation } => {
            let content = if text.is_empty() { Value::Null } else { text.as_str().into() };
            let mut said = json!({"role": "assistant", "content": content});
            if !calls.is_empty() {
                said["tool_calls"] = calls.iter().map(call).collect();
            }
            for part in continued(model, continuation.as_ref()).into_iter().flatten() {
                said["reasoning_content"] = part["reasoning_content"].clone();
            }
            out.push(said);
        }
        Message::ToolResults { results } => out.extend(results.iter().map(|result| {
            json!({"role": "tool", "tool_call_id": result.call_id, "content": marked(result)})
        })),
    }
}

fn call(call: &Call) -> Value {
    json!({
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": object(call).to_string()},
    })
}

#[derive(Deserialize)]
struct Chunk {
    choices: Option<Vec<Choice>>,
    usage: Option<Counts>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    delta: Option<Part>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Part {
    content: Option<Content>,
    reasoning_content: Option<String>,
    reasoning: Option<String>,
    refusal: Option<String>,
    tool_calls: Option<Vec<CallPart>>,
}

/// Mistral sends lists.
#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Pieces(Vec<Piece>),
}

#[derive(Deserialize)]
struct Piece {
    text: Option<String>,
}

#[derive(Deserialize)]
struct CallPart {
    index: Option<u64>,
    id: Option<String>,
    function: Option<Function>,
}

#[derive(Deserialize)]
struct Function {
    name: Option<String>,
    arguments: Option<Value>,
}

#[derive(Deserialize)]
struct Counts {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<Details>,
}

#[derive(Deserialize)]
struct Details {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

#[derive(Default)]
pub(super) struct Decoder {
    /// DeepSeek wants it back where calls follow.
    reasoning: String,
    /// The index of each call.
    indexes: Vec<u64>,
}

impl Decode for Decoder {
    fn frame(&mut self, data: &[u8], answer: &mut Answer) -> Result<bool, BrokenAnswer> {
        if data.trim_ascii() == b"[DONE]" {
            self.finish(answer);
            return Ok(true);
        }
        let chunk: Chunk = parse(data)?;
        if let Some(error) = chunk.error {
            return Err(provider_error(&error));
        }
        let usage = chunk.usage.map(|counts| counts.usage());
        // Only one choice is requested.
        for choice in chunk.choices.into_iter().flatten().take(1) {
            if let Some(part) = choice.delta {
                self.add(part, answer)?;
            }
            answer.stop = choice.finish_reason.or(answer.stop.take());
        }
        // Some servers report totals so far with each chunk.
        answer.report(usage, answer.stop.is_some());
        Ok(false)
    }

    /// Some servers leave out `[DONE]`.
    fn end(&mut self, answer: &mut Answer) {
        self.finish(answer);
    }
}

impl Decoder {
    fn add(&mut self, part: Part, answer: &mut Answer) -> Result<(), BrokenAnswer> {
        match part.content {
            Some(Content::Text(text)) => answer.add_text(&text)?,
            Some(Content::Pieces(pieces)) => {
                for text in pieces.into_iter().filter_map(|piece| piece.text) {
                    answer.add_text(&text)?;
                }
            }
            None => {}
        }
        if let Some(text) = &part.reasoning_content {
            answer.add_reasoning(text)?;
            self.reasoning.push_str(text);
        } else if let Some(text) = &part.reasoning {
            answer.add_reasoning(text)?;
        }
        if let Some(text) = part.refusal.filter(|text| !text.is_empty()) {
            answer.count(text.len());
            answer.refused = true;
        }
        for call in part.tool_calls.unwrap_or_default() {
            self.add_call(call, answer)?;
        }
        Ok(())
    }

    fn add_call(&mut self, call: CallPart, answer: &mut Answer) -> Result<(), BrokenAnswer> {
        let id = call.id.unwrap_or_default();
        let (name, arguments) = call
            .function
            .map_or((None, None), |it| (it.name, it.arguments));
        // The last call with this index; without an index, the last call.
        let index = call.index;
        let same = |at: &u64| index.is_none_or(|index| index == *at);
        let known = self.indexes.iter().rposition(same);
        // Some servers give all calls the same index, or none: a name with another id begins another call.
        let begins =
            |id: &str, before: &OpenCall| !id.is_empty() && name.is_some() && before.id != id;
        let goes_on = |at: &usize| {
            answer
                .calls
                .get(*at)
                .is_some_and(|before| !begins(&id, before))
        };
        let at = known.filter(goes_on).unwrap_or(answer.calls.len());
        let key = at as u64;
        if at == answer.calls.len() {
            answer.open_call(key, &id, &name.unwrap_or_default())?;
            self.indexes.push(index.unwrap_or(key));
        }
        match arguments {
            Some(Value::String(piece)) => answer.add_arguments(key, &piece),
            Some(Value::Null) | None => Ok(()),
            Some(whole) => answer.set_arguments(key, whole),
        }
    }

    fn finish(&mut self, answer: &mut Answer) {
        answer.close_calls();
        if !self.reasoning.is_empty() && !answer.calls.is_empty() {
            answer
                .parts
                .push(json!({"reasoning_content": self.reasoning}));
        }
    }
}

impl Counts {
    fn usage(&self) -> Usage {
        let details = self.prompt_tokens_details.as_ref();
        let cache_read = details.and_then(|it| it.cached_tokens).unwrap_or_default();
        let cache_write = details
            .and_then(|it| it.cache_write_tokens)
            .unwrap_or_default();
        let prompt = self.prompt_tokens.unwrap_or_default();
        Usage {
            input: prompt
                .saturating_sub(cache_read)
                .saturating_sub(cache_write),
            output: self.completion_tokens.unwrap_or_default(),
            cache_read,
            cache_write,
        }
    }
}
