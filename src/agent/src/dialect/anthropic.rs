//! Anthropic: <https://docs.anthropic.com/en/api/messages-streaming>.

use reqwest::Url;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Decode, address, continued, object, parse, provider_error};
use crate::answer::{Answer, BrokenAnswer};
use crate::error::Failure;
use crate::model::Model;
use crate::request::{CacheMark, Message, Request, ToolResult};

pub(super) fn request(model: &Model, request: &Request) -> Result<(Url, Value), Failure> {
    let mut body = json!({
        "model": model.name,
        "max_tokens": model.limits.max_output_tokens,
        "stream": true,
        "messages": messages(model, request),
    });
    if let Some(temperature) = model.limits.temperature {
        body["temperature"] = json!(temperature);
    }
    if !request.system.is_empty() {
        let mut block = json!({"type": "text", "text": request.system});
        if request.cache.contains(&CacheMark::System) {
            mark(&mut block);
        }
        body["system"] = json!([block]);
    }
    if !request.tools.is_empty() {
        let mut tools: Vec<Value> = request
            .tools
            .iter()
            .map(|tool| {
                json!({"name": tool.name, "description": tool.description, "input_schema": tool.schema})
            })
            .collect();
        if let (Some(last), true) = (tools.last_mut(), request.cache.contains(&CacheMark::Tools)) {
            mark(last);
        }
        body["tools"] = Value::Array(tools);
    }
    Ok((
        address(model, "https://api.anthropic.com", &["v1", "messages"])?,
        body,
    ))
}

fn mark(block: &mut Value) {
    block["cache_control"] = json!({"type": "ephemeral"});
}

/// Neighbours of one role become one message, and empty texts are left out: the server refuses both.
fn messages(model: &Model, request: &Request) -> Vec<Value> {
    let mut merged: Vec<(&str, Vec<Value>)> = Vec::new();
    for (index, message) in request.messages.iter().enumerate() {
        let (role, mut blocks) = blocks(model, message);
        if request.cache.contains(&CacheMark::Message(index)) {
            // Reasoning cannot carry a mark.
            let reasoning =
                |block: &Value| block.get("text").is_none() && block.get("id").is_none();
            let markable = |block: &&mut Value| block["type"] == "tool_result" || !reasoning(block);
            blocks
                .iter_mut()
                .rev()
                .find(markable)
                .into_iter()
                .for_each(mark);
        }
        match merged.last_mut() {
            Some((last, all)) if *last == role => all.append(&mut blocks),
            _ if blocks.is_empty() => {}
            _ => merged.push((role, blocks)),
        }
    }
    merged
        .into_iter()
        .map(|(role, content)| json!({"role": role, "content": content}))
        .collect()
}

fn blocks(model: &Model, message: &Message) -> (&'static str, Vec<Value>) {
    let said = |text: &str| (!text.is_empty()).then(|| json!({"type": "text", "text": text}));
    match message {
        Message::User { text } => ("user", said(text).into_iter().collect()),
        Message::Assistant {
            text,
            calls,
            continuation,
        } => {
            if let Some(parts) = continued(model, continuation.as_ref()) {
                return ("assistant", parts.to_vec());
            }
            let calls = calls.iter().map(|call| {
                json!({"type": "tool_use", "id": call.id, "name": call.name, "input": object(call)})
            });
            ("assistant", said(text).into_iter().chain(calls).collect())
        }
        Message::ToolResults { results } => ("user", results.iter().map(result).collect()),
    }
}

fn result(result: &ToolResult) -> Value {
    let mut block = json!({
        "type": "tool_result",
        "tool_use_id": result.call_id,
        "content": result.content,
    });
    if result.is_error {
        block["is_error"] = true.into();
    }
    block
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    MessageStart {
        message: Started,
    },
    ContentBlockStart {
        index: u64,
        content_block: Block,
    },
    ContentBlockDelta {
        index: u64,
        delta: BlockDelta,
    },
    ContentBlockStop {
        index: u64,
    },
    MessageDelta {
        delta: Stopped,
        usage: Option<Counts>,
    },
    MessageStop,
    Error {
        error: Value,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Started {
    usage: Option<Counts>,
}

#[derive(Deserialize)]
struct Stopped {
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text {
        #[serde(default)]
        text: String,
    },
    ToolUse {
        id: String,
        name: String,
        #[serde(default)]
        input: Value,
    },
    Thinking {
        #[serde(default)]
        thinking: String,
        #[serde(default)]
        signature: String,
    },
    RedactedThinking {
        data: String,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum BlockDelta {
    TextDelta {
        text: String,
    },
    InputJsonDelta {
        partial_json: String,
    },
    ThinkingDelta {
        thinking: String,
    },
    SignatureDelta {
        signature: String,
    },
    #[serde(other)]
    Other,
}

/// Totals so far: later ones replace earlier ones, field by field.
#[derive(Deserialize)]
#[expect(clippy::struct_field_names, reason = "the names of the format")]
struct Counts {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
}

fn report(counts: Option<Counts>, is_final: bool, answer: &mut Answer) {
    let Some(counts) = counts else { return };
    let is_final = is_final && counts.output_tokens.is_some();
    let mut usage = answer.reported().unwrap_or_default();
    let pairs = [
        (counts.input_tokens, &mut usage.input),
        (counts.output_tokens, &mut usage.output),
        (counts.cache_read_input_tokens, &mut usage.cache_read),
        (counts.cache_creation_input_tokens, &mut usage.cache_write),
    ];
    for (count, place) in pairs {
        *place = count.unwrap_or(*place);
    }
    answer.report(Some(usage), is_final);
}

/// A block as it is sent back. Text lies in the answer already.
enum ReplayBlock {
    Text {
        from: usize,
        to: usize,
    },
    Call,
    Thinking {
        thinking: String,
        signature: String,
    },
    Redacted {
        data: String,
    },
    /// Of a kind that is not known here, and not kept.
    Other,
}

#[derive(Default)]
pub(super) struct Decoder {
    blocks: Vec<(u64, ReplayBlock)>,
}

impl Decode for Decoder {
    fn frame(&mut self, data: &[u8], answer: &mut Answer) -> Result<bool, BrokenAnswer> {
        match parse(data)? {
            Event::MessageStart { message } => {
                report(message.usage, false, answer);
            }
            Event::ContentBlockStart {
                index,
                content_block,
            } => {
                self.start(index, content_block, answer)?;
            }
            Event::ContentBlockDelta { index, delta } => self.add(index, delta, answer)?,
            Event::ContentBlockStop { index } if answer.has_call(index) => {
                answer.close_call(index)?;
            }
            Event::MessageDelta { delta, usage } => {
                report(usage, true, answer);
                answer.stop = delta.stop_reason.or(answer.stop.take());
            }
            Event::MessageStop => {
                self.keep_parts(answer);
                return Ok(true);
            }
            Event::Error { error } => return Err(provider_error(&error)),
            Event::ContentBlockStop { .. } | Event::Other => {}
        }
        Ok(false)
    }
}

impl Decoder {
    fn start(&mut self, index: u64, block: Block, answer: &mut Answer) -> Result<(), BrokenAnswer> {
        // Each block costs memory, however little it holds.
        answer.keep(size_of::<(u64, ReplayBlock)>())?;
        let kept = match block {
            Block::Text { text } => {
                let from = answer.text.len();
                answer.add_text(&text)?;
                ReplayBlock::Text {
                    from,
                    to: answer.text.len(),
                }
            }
            Block::ToolUse { id, name, input } => {
                answer.open_call(index, &id, &name)?;
                // Usually `{}`, with the pieces behind it; some servers send the whole input here.
                if input.as_object().is_some_and(|fields| !fields.is_empty()) {
                    answer.set_arguments(index, input)?;
                }
                ReplayBlock::Call
            }
            Block::Thinking {
                thinking,
                signature,
            } => {
                answer.keep(signature.len())?;
                answer.add_reasoning(&thinking)?;
                ReplayBlock::Thinking {
                    thinking,
                    signature,
                }
            }
            Block::RedactedThinking { data } => {
                answer.count(data.len());
                answer.keep(data.len())?;
                ReplayBlock::Redacted { data }
            }
            Block::Other => ReplayBlock::Other,
        };
        self.blocks.push((index, kept));
        Ok(())
    }

    fn add(
        &mut self,
        index: u64,
        delta: BlockDelta,
        answer: &mut Answer,
    ) -> Result<(), BrokenAnswer> {
        let block = self
            .blocks
            .iter_mut()
            .rev()
            .find(|(known, _)| *known == index);
        match (delta, block.map(|(_, kept)| kept)) {
            (BlockDelta::TextDelta { text }, Some(ReplayBlock::Text { to, .. })) => {
                answer.add_text(&text)?;
                *to = answer.text.len();
            }
            (BlockDelta::InputJsonDelta { partial_json }, Some(ReplayBlock::Call)) => {
                answer.add_arguments(index, &partial_json)?;
            }
            (
                BlockDelta::ThinkingDelta { thinking: more },
                Some(ReplayBlock::Thinking { thinking, .. }),
            ) => {
                answer.add_reasoning(&more)?;
                thinking.push_str(&more);
            }
            (
                BlockDelta::SignatureDelta { signature: more },
                Some(ReplayBlock::Thinking { signature, .. }),
            ) => {
                answer.keep(more.len())?;
                signature.push_str(&more);
            }
            (BlockDelta::Other, _) | (_, Some(ReplayBlock::Other)) => {}
            _ => return Err(BrokenAnswer::Malformed("a part of it is of the wrong kind")),
        }
        Ok(())
    }

    /// Only reasoning has to go back as it came, in its place among the other blocks.
    fn keep_parts(&mut self, answer: &mut Answer) {
        let reasoning = |kept: &ReplayBlock| {
            matches!(
                kept,
                ReplayBlock::Thinking { .. } | ReplayBlock::Redacted { .. }
            )
        };
        if !self.blocks.iter().any(|(_, kept)| reasoning(kept)) {
            return;
        }
        for (index, kept) in std::mem::take(&mut self.blocks) {
            let part = match kept {
                ReplayBlock::Text { from, to } if from < to => answer
                    .text
                    .get(from..to)
                    .map(|text| json!({"type": "text", "text": text})),
                ReplayBlock::Text { .. } | ReplayBlock::Other => None,
                ReplayBlock::Call => answer.call(index).map(|call| {
                    json!({"type": "tool_use", "id": call.id, "name": call.name, "input": call.value()})
                }),
                ReplayBlock::Thinking { thinking, signature } => {
                    Some(json!({"type": "thinking", "thinking": thinking, "signature": signature}))
                }
                ReplayBlock::Redacted { data } => Some(json!({"type": "redacted_thinking", "data": data})),
            };
            answer.parts.extend(part);
        }
    }
}
