//! Gemini: <https://ai.google.dev/api/generate-content>.

use reqwest::Url;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Decode, address, continued, object, parse, provider_error};
use crate::SYNTHETIC_ID;
use crate::answer::{Answer, BrokenAnswer, json_bytes};
use crate::error::Failure;
use crate::model::Model;
use crate::request::{Message, Request};
use crate::turn::Usage;

pub(super) fn request(model: &Model, request: &Request) -> Result<(Url, Value), Failure> {
    let mut config = json!({"maxOutputTokens": model.limits.max_output_tokens});
    if let Some(temperature) = model.limits.temperature {
        config["temperature"] = json!(temperature);
    }
    let mut body = json!({
        "contents": contents(model, request),
        "generationConfig": config,
    });
    if !request.system.is_empty() {
        body["systemInstruction"] = json!({"parts": [{"text": request.system}]});
    }
    if !request.tools.is_empty() {
        let tool = |tool: &crate::request::ToolSpec| {
            // `parameters` would take a part of OpenAPI's schemas only.
            json!({
                "name": tool.name,
                "description": tool.description,
                "parametersJsonSchema": tool.schema,
            })
        };
        let tools: Value = request.tools.iter().map(tool).collect();
        body["tools"] = json!([{"functionDeclarations": tools}]);
    }
    // Names such as `tunedModels/x` bring their collection along.
    let name = format!("{}:streamGenerateContent", model.name);
    let mut path = vec!["v1beta"];
    if !name.contains('/') {
        path.push("models");
    }
    path.extend(name.split('/'));
    let mut url = address(model, "https://generativelanguage.googleapis.com", &path)?;
    url.query_pairs_mut().append_pair("alt", "sse");
    Ok((url, body))
}

/// Neighbours of one role become one.
fn contents(model: &Model, request: &Request) -> Vec<Value> {
    let mut merged: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in &request.messages {
        let (role, mut parts) = parts(model, message);
        match merged.last_mut() {
            Some((last, all)) if *last == role => all.append(&mut parts),
            _ if parts.is_empty() => {}
            _ => merged.push((role, parts)),
        }
    }
    let content = |(role, parts)| json!({"role": role, "parts": parts});
    merged.into_iter().map(content).collect()
}

fn parts(model: &Model, message: &Message) -> (&'static str, Vec<Value>) {
    let said = |text: &str| (!text.is_empty()).then(|| json!({"text": text}));
    match message {
        Message::User { text } => ("user", said(text).into_iter().collect()),
        Message::Assistant {
            text,
            calls,
            continuation,
        } => {
            if let Some(parts) = continued(model, continuation.as_ref()) {
                return ("model", parts.to_vec());
            }
            let calls = calls.iter().map(|call| {
                let mut part = json!({"name": call.name, "args": object(call)});
                put_id(&mut part, &call.id);
                json!({"functionCall": part})
            });
            ("model", said(text).into_iter().chain(calls).collect())
        }
        Message::ToolResults { results } => {
            let part = |result: &crate::request::ToolResult| {
                let key = if result.is_error { "error" } else { "output" };
                let mut part = json!({"name": result.name, "response": {key: result.content}});
                put_id(&mut part, &result.call_id);
                json!({"functionResponse": part})
            };
            ("user", results.iter().map(part).collect())
        }
    }
}

/// Ids that were made up here mean nothing there: without one, calls and results match by order.
fn put_id(part: &mut Value, id: &str) {
    if !id.starts_with(SYNTHETIC_ID) {
        part["id"] = id.into();
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk {
    #[serde(default)]
    candidates: Vec<Candidate>,
    prompt_feedback: Option<Feedback>,
    usage_metadata: Option<Counts>,
    error: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    content: Option<Content>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Content {
    /// ReplayBlock as they are until it is known whether they have to go back.
    #[serde(default)]
    parts: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part {
    text: Option<String>,
    #[serde(default)]
    thought: bool,
    thought_signature: Option<String>,
    function_call: Option<FunctionCall>,
}

#[derive(Deserialize)]
struct FunctionCall {
    id: Option<String>,
    name: String,
    args: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    block_reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "the names of the format")]
struct Counts {
    prompt_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
    cached_content_token_count: Option<u64>,
}

#[derive(Default)]
pub(super) struct Decoder {
    parts: Vec<Value>,
    signed: bool,
}

impl Decode for Decoder {
    fn frame(&mut self, data: &[u8], answer: &mut Answer) -> Result<bool, BrokenAnswer> {
        let chunk: Chunk = parse(data)?;
        if let Some(error) = chunk.error {
            return Err(provider_error(&error));
        }
        if let Some(reason) = chunk.prompt_feedback.and_then(|it| it.block_reason) {
            answer.refused = true;
            answer.stop = Some(reason);
        }
        for candidate in chunk.candidates.into_iter().take(1) {
            for raw in candidate
                .content
                .into_iter()
                .flat_map(|content| content.parts)
            {
                self.add(raw, answer)?;
            }
            answer.stop = candidate.finish_reason.or(answer.stop.take());
        }
        // Totals so far, with every chunk.
        let usage = chunk.usage_metadata.map(|counts| counts.usage());
        answer.report(usage, answer.stop.is_some());
        // Models of the first series name a reason in every chunk, so that only the end of the body counts.
        Ok(false)
    }

    fn end(&mut self, answer: &mut Answer) {
        answer.close_calls();
        if self.signed {
            answer.parts = std::mem::take(&mut self.parts);
        }
    }
}

impl Decoder {
    fn add(&mut self, raw: Value, answer: &mut Answer) -> Result<(), BrokenAnswer> {
        let malformed = BrokenAnswer::Malformed("a part of it is malformed");
        let part: Part = Part::deserialize(&raw).map_err(|_| malformed)?;
        self.signed |= part.thought_signature.is_some();
        if part.thought {
            answer.add_reasoning(part.text.as_deref().unwrap_or_default())?;
            return Ok(());
        }
        if let Some(text) = &part.text {
            answer.add_text(text)?;
        }
        if let Some(call) = part.function_call {
            let key = answer.calls.len() as u64;
            answer.open_call(key, &call.id.unwrap_or_default(), &call.name)?;
            answer.set_arguments(key, call.args.unwrap_or_else(|| json!({})))?;
        }
        self.keep(raw, answer)
    }

    /// Text without a signature is joined with the text before it: it comes in very many parts.
    fn keep(&mut self, raw: Value, answer: &mut Answer) -> Result<(), BrokenAnswer> {
        let plain = |part: &Value| part.as_object().is_some_and(|it| it.len() == 1);
        if let (Some(last), Some(more)) = (self.parts.last_mut(), raw["text"].as_str())
            && plain(last)
            && plain(&raw)
            && let Some(Value::String(text)) = last.get_mut("text")
        {
            text.push_str(more);
            return Ok(());
        }
        // Its text and its call are counted already.
        let counted = raw["text"].as_str().map_or(0, str::len) + json_bytes(&raw["functionCall"]);
        answer.keep(size_of::<Value>() + json_bytes(&raw).saturating_sub(counted))?;
        self.parts.push(raw);
        Ok(())
    }
}

impl Counts {
    fn usage(&self) -> Usage {
        let cache_read = self.cached_content_token_count.unwrap_or_default();
        let thoughts = self.thoughts_token_count.unwrap_or_default();
        Usage {
            input: self
                .prompt_token_count
                .unwrap_or_default()
                .saturating_sub(cache_read),
            output: self
                .candidates_token_count
                .unwrap_or_default()
                .saturating_add(thoughts),
            cache_read,
            cache_write: 0,
        }
    }
}
