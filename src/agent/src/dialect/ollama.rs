//! Ollama: <https://docs.ollama.com/api/chat>.

use reqwest::Url;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Decode, address, continued, function_tools, marked, object, parse, provider_error};
use crate::answer::{Answer, BrokenAnswer};
use crate::error::Failure;
use crate::model::Model;
use crate::request::{Message, Request};
use crate::turn::Usage;

pub(super) fn request(model: &Model, request: &Request) -> Result<(Url, Value), Failure> {
    let mut messages = Vec::new();
    if !request.system.is_empty() {
        messages.push(json!({"role": "system", "content": request.system}));
    }
    for message in &request.messages {
        push(model, message, &mut messages);
    }
    let mut options = json!({"num_predict": model.limits.max_output_tokens});
    if let Some(temperature) = model.limits.temperature {
        options["temperature"] = json!(temperature);
    }
    let mut body = json!({
        "model": model.name,
        "stream": true,
        "options": options,
        "messages": messages,
    });
    if !request.tools.is_empty() {
        body["tools"] = function_tools(request);
    }
    Ok((
        address(model, "http://127.0.0.1:11434", &["api", "chat"])?,
        body,
    ))
}

fn push(model: &Model, message: &Message, out: &mut Vec<Value>) {
    match message {
        Message::User { text } => out.push(json!({"role": "user", "content": text})),
        Message::Assistant {
            text,
            calls,
            continuation,
        } => {
            let mut said = json!({"role": "assistant", "content": text});
            if !calls.is_empty() {
                let call = |call: &crate::turn::Call| json!({"function": {"name": call.name, "arguments": object(call)}});
                said["tool_calls"] = calls.iter().map(call).collect();
            }
            for part in continued(model, continuation.as_ref())
                .into_iter()
                .flatten()
            {
                said["thinking"] = part["thinking"].clone();
            }
            out.push(said);
        }
        Message::ToolResults { results } => out.extend(results.iter().map(
            |result| json!({"role": "tool", "tool_name": result.name, "content": marked(result)}),
        )),
    }
}

#[derive(Deserialize)]
struct Line {
    message: Option<Part>,
    #[serde(default)]
    done: bool,
    done_reason: Option<String>,
    prompt_eval_count: Option<u64>,
    prompt_eval_cached_count: Option<u64>,
    eval_count: Option<u64>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Part {
    content: Option<String>,
    thinking: Option<String>,
    tool_calls: Option<Vec<CallPart>>,
}

#[derive(Deserialize)]
struct CallPart {
    id: Option<String>,
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    arguments: Option<Value>,
}

#[derive(Default)]
pub(super) struct Decoder {
    /// Wanted back where calls follow.
    thinking: String,
}

impl Decode for Decoder {
    fn frame(&mut self, data: &[u8], answer: &mut Answer) -> Result<bool, BrokenAnswer> {
        let line: Line = parse(data)?;
        if let Some(error) = &line.error {
            return Err(provider_error(error));
        }
        let done = line.done;
        if done {
            answer.report(line.usage(), true);
        }
        if let Some(part) = line.message {
            let thinking = part.thinking.unwrap_or_default();
            answer.add_reasoning(&thinking)?;
            self.thinking.push_str(&thinking);
            answer.add_text(&part.content.unwrap_or_default())?;
            for call in part.tool_calls.unwrap_or_default() {
                let key = answer.calls.len() as u64;
                answer.open_call(key, &call.id.unwrap_or_default(), &call.function.name)?;
                let arguments = call.function.arguments.unwrap_or_else(|| json!({}));
                answer.set_arguments(key, arguments)?;
            }
        }
        if done {
            // Versions before the field existed stopped without a reason.
            answer.stop = Some(line.done_reason.unwrap_or_else(|| "done".into()));
            answer.close_calls();
            if !self.thinking.is_empty() && !answer.calls.is_empty() {
                answer.parts.push(json!({"thinking": self.thinking}));
            }
        }
        Ok(done)
    }
}

impl Line {
    fn usage(&self) -> Option<Usage> {
        let cache_read = self.prompt_eval_cached_count.unwrap_or_default();
        (self.prompt_eval_count.is_some() || self.eval_count.is_some()).then(|| Usage {
            input: self
                .prompt_eval_count
                .unwrap_or_default()
                .saturating_sub(cache_read),
            output: self.eval_count.unwrap_or_default(),
            cache_read,
            cache_write: 0,
        })
    }
}
