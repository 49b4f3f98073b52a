//! Responses of OpenAI: <https://platform.openai.com/docs/api-reference/responses-streaming>.
//!
//! Nothing is stored at the server (`store: false`), so that a journal alone holds the conversation. Its
//! encrypted reasoning is not requested: models without reasoning refuse a request that does.

use reqwest::Url;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Decode, address, marked, object, parse, provider_error};
use crate::answer::{Answer, BrokenAnswer};
use crate::error::Failure;
use crate::model::Model;
use crate::request::{Message, Request};
use crate::turn::Usage;

pub(super) fn request(model: &Model, request: &Request) -> Result<(Url, Value), Failure> {
    let mut input = Vec::new();
    for message in &request.messages {
        push(message, &mut input);
    }
    let mut body = json!({
        "model": model.name,
        "max_output_tokens": model.limits.max_output_tokens,
        "stream": true,
        "store": false,
        "input": input,
    });
    if let Some(temperature) = model.limits.temperature {
        body["temperature"] = json!(temperature);
    }
    if !request.system.is_empty() {
        body["instructions"] = request.system.as_str().into();
    }
    if !request.tools.is_empty() {
        let tool = |tool: &crate::request::ToolSpec| {
            // Strict is the default here, and refuses most schemas that people write.
            json!({
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.schema,
                "strict": false,
            })
        };
        body["tools"] = request.tools.iter().map(tool).collect();
    }
    Ok((
        address(model, "https://api.openai.com/v1", &["responses"])?,
        body,
    ))
}

fn push(message: &Message, out: &mut Vec<Value>) {
    match message {
        Message::User { text } => out.push(said_by("user", "input_text", text)),
        Message::Assistant { text, calls, .. } => {
            if !text.is_empty() {
                out.push(said_by("assistant", "output_text", text));
            }
            out.extend(calls.iter().map(|call| {
                json!({
                    "type": "function_call",
                    "call_id": call.id,
                    "name": call.name,
                    "arguments": object(call).to_string(),
                })
            }));
        }
        Message::ToolResults { results } => out.extend(results.iter().map(|result| {
            json!({
                "type": "function_call_output",
                "call_id": result.call_id,
                "output": marked(result),
            })
        })),
    }
}

fn said_by(role: &str, kind: &str, text: &str) -> Value {
    json!({"role": role, "content": [{"type": kind, "text": text}]})
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Event {
    #[serde(rename = "response.output_text.delta")]
    Text { delta: String },
    #[serde(rename = "response.refusal.delta")]
    Refusal {
        #[serde(default)]
        delta: String,
    },
    #[serde(rename = "response.function_call_arguments.delta")]
    Arguments { output_index: u64, delta: String },
    #[serde(rename = "response.reasoning_summary_text.delta")]
    Summary { delta: String },
    #[serde(rename = "response.reasoning_text.delta")]
    Reasoning { delta: String },
    #[serde(rename = "response.output_item.added")]
    Added { output_index: u64, item: Item },
    #[serde(rename = "response.output_item.done")]
    Done { output_index: u64, item: Item },
    #[serde(rename = "response.completed")]
    Completed { response: Response },
    #[serde(rename = "response.incomplete")]
    Incomplete { response: Response },
    #[serde(rename = "response.failed")]
    FailedTry { response: Response },
    /// The error is in `error`, or the event itself is the error.
    #[serde(rename = "error")]
    Error {},
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item {
    FunctionCall {
        call_id: String,
        name: String,
        #[serde(default)]
        arguments: String,
    },
    Message {
        #[serde(default)]
        content: Vec<Content>,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Content {
    OutputText {
        text: String,
    },
    Refusal {},
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Response {
    #[serde(default)]
    output: Vec<Item>,
    usage: Option<Counts>,
    incomplete_details: Option<Reason>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Reason {
    reason: Option<String>,
}

#[derive(Deserialize)]
struct Counts {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    input_tokens_details: Option<Details>,
}

#[derive(Deserialize)]
struct Details {
    cached_tokens: Option<u64>,
}

pub(super) struct Decoder;

impl Decode for Decoder {
    fn frame(&mut self, data: &[u8], answer: &mut Answer) -> Result<bool, BrokenAnswer> {
        // Some servers end this dialect as the other one.
        if data.trim_ascii() == b"[DONE]" {
            return Ok(false);
        }
        match parse(data)? {
            Event::Text { delta } => answer.add_text(&delta)?,
            Event::Summary { delta } | Event::Reasoning { delta } => {
                answer.add_reasoning(&delta)?;
            }
            Event::Refusal { delta } => {
                answer.count(delta.len());
                answer.refused = true;
            }
            Event::Arguments {
                output_index,
                delta,
            } => answer.count_arguments(output_index, delta.len()),
            Event::Added {
                output_index,
                item: Item::FunctionCall { call_id, name, .. },
            } => {
                answer.open_call(output_index, &call_id, &name)?;
            }
            Event::Done {
                output_index,
                item:
                    Item::FunctionCall {
                        call_id,
                        name,
                        arguments,
                    },
            } => {
                call(output_index, &call_id, &name, arguments, answer)?;
            }
            Event::Completed { response } => {
                answer.stop = Some("completed".into());
                finish(response, answer)?;
                return Ok(true);
            }
            Event::Incomplete { mut response } => {
                let details = response.incomplete_details.take();
                answer.stop = details
                    .and_then(|it| it.reason)
                    .or_else(|| Some("incomplete".into()));
                finish(response, answer)?;
                return Ok(true);
            }
            Event::FailedTry { response } => {
                answer.report(response.usage.map(|counts| counts.usage()), true);
                return Err(provider_error(&response.error.unwrap_or_default()));
            }
            Event::Error {} => {
                let event: Value = parse(data)?;
                return Err(provider_error(event.get("error").unwrap_or(&event)));
            }
            Event::Added { .. } | Event::Done { .. } | Event::Other => {}
        }
        Ok(false)
    }
}

/// The arguments of the whole item are believed, not the pieces before it.
fn call(
    key: u64,
    id: &str,
    name: &str,
    arguments: String,
    answer: &mut Answer,
) -> Result<(), BrokenAnswer> {
    if !answer.has_call(key) {
        answer.open_call(key, id, name)?;
    }
    answer.set_arguments(key, Value::String(arguments))?;
    answer.close_call(key)
}

/// The last event repeats the whole output; it is read only where nothing came before.
fn finish(response: Response, answer: &mut Answer) -> Result<(), BrokenAnswer> {
    answer.report(response.usage.map(|counts| counts.usage()), true);
    let seen_before = !answer.text.is_empty() || !answer.calls.is_empty();
    for (index, item) in (0..).zip(response.output) {
        match item {
            Item::FunctionCall {
                call_id,
                name,
                arguments,
            } if !seen_before => {
                call(index, &call_id, &name, arguments, answer)?;
            }
            Item::Message { content } => {
                for part in content {
                    match part {
                        Content::OutputText { text } if !seen_before => answer.add_text(&text)?,
                        Content::Refusal {} => answer.refused = true,
                        Content::OutputText { .. } | Content::Other => {}
                    }
                }
            }
            Item::FunctionCall { .. } | Item::Other => {}
        }
    }
    Ok(())
}

impl Counts {
    fn usage(&self) -> Usage {
        let details = self.input_tokens_details.as_ref();
        let cache_read = details.and_then(|it| it.cached_tokens).unwrap_or_default();
        Usage {
            input: self
                .input_tokens
                .unwrap_or_default()
                .saturating_sub(cache_read),
            output: self.output_tokens.unwrap_or_default(),
            cache_read,
            cache_write: 0,
        }
    }
}
