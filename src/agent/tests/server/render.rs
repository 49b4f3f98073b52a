//! Answers in the five dialects, written from the vendors' documentation and not with the code under test.

use serde_json::{Value, json};

use super::script::{Ending, Say};

/// The dialect of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spoken {
    Anthropic,
    Chat,
    Responses,
    Gemini,
    Ollama,
}

impl Spoken {
    pub(super) fn at(path: &str) -> Self {
        match path.split('?').next().unwrap_or_default() {
            "/v1/messages" => Self::Anthropic,
            "/v1/chat/completions" => Self::Chat,
            "/v1/responses" => Self::Responses,
            "/api/chat" => Self::Ollama,
            path if path.ends_with(":streamGenerateContent") => Self::Gemini,
            path => panic!("no dialect has the path {path}"),
        }
    }

    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Ollama => "application/x-ndjson",
            _ => "text/event-stream",
        }
    }
}

/// The frames of an answer.
pub(super) fn frames(spoken: Spoken, say: &Say) -> Vec<String> {
    let mut frames = match spoken {
        Spoken::Anthropic => anthropic(say),
        Spoken::Chat => chat(say),
        Spoken::Responses => responses(say),
        Spoken::Gemini => gemini(say),
        Spoken::Ollama => ollama(say),
    };
    // The first frame stays, and so does what ends the answer.
    if say.malformed {
        let broken = match spoken {
            Spoken::Ollama => "{\"message\": {\"content\n".to_owned(),
            _ => "data: {\"type\": \"content\n\n".to_owned(),
        };
        frames.insert(1, broken);
    }
    frames
}

/// The body of a failure.
pub(super) fn error(spoken: Spoken, message: &str) -> String {
    match spoken {
        Spoken::Anthropic => {
            json!({"type": "error", "error": {"type": "api_error", "message": message}})
        }
        Spoken::Chat | Spoken::Responses => {
            json!({"error": {"message": message, "type": "some_error", "code": null}})
        }
        Spoken::Gemini => {
            json!({"error": {"code": 499, "message": message, "status": "CANCELLED"}})
        }
        Spoken::Ollama => json!({"error": message}),
    }
    .to_string()
}

fn event(value: &Value) -> String {
    let name = value["type"]
        .as_str()
        .map(|name| format!("event: {name}\n"))
        .unwrap_or_default();
    format!("{name}data: {value}\n\n")
}

fn data(value: &Value) -> String {
    format!("data: {value}\n\n")
}

/// Two halves, at a place where text may be cut.
fn halves(text: &str) -> [&str; 2] {
    let mut middle = text.len() / 2;
    while !text.is_char_boundary(middle) {
        middle -= 1;
    }
    let (left, right) = text.split_at(middle);
    [left, right]
}

fn anthropic(say: &Say) -> Vec<String> {
    let [input, output, read, write] = say.usage.unwrap_or_default();
    let mut start = json!({"type": "message_start", "message": {"id": "m", "role": "assistant", "content": []}});
    let mut last = json!({"type": "message_delta", "delta": {"stop_sequence": null}});
    if say.usage.is_some() {
        start["message"]["usage"] = json!({
            "input_tokens": input,
            "output_tokens": 1,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": write,
        });
        last["usage"] = json!({"output_tokens": output});
    }
    let mut out = vec![event(&start), event(&json!({"type": "ping"}))];
    let mut index = 0;
    let mut block = |start: Value, deltas: Vec<Value>| {
        out.push(event(
            &json!({"type": "content_block_start", "index": index, "content_block": start}),
        ));
        for delta in deltas {
            out.push(event(
                &json!({"type": "content_block_delta", "index": index, "delta": delta}),
            ));
        }
        out.push(event(
            &json!({"type": "content_block_stop", "index": index}),
        ));
        index += 1;
    };
    if !say.texts.is_empty() {
        let delta = |text: &String| json!({"type": "text_delta", "text": text});
        block(
            json!({"type": "text", "text": ""}),
            say.texts.iter().map(delta).collect(),
        );
    }
    for (at, (name, arguments)) in say.calls.iter().enumerate() {
        let start =
            json!({"type": "tool_use", "id": format!("call_{at}"), "name": name, "input": {}});
        let delta = |part| json!({"type": "input_json_delta", "partial_json": part});
        block(start, halves(arguments).into_iter().map(delta).collect());
    }
    if let Some(kind) = say.error {
        out.push(event(
            &json!({"type": "error", "error": {"type": kind, "message": "within the stream"}}),
        ));
        return out;
    }
    last["delta"]["stop_reason"] = match say.ending {
        Ending::Usual if say.calls.is_empty() => "end_turn",
        Ending::Usual => "tool_use",
        Ending::Length => "max_tokens",
        Ending::Refusal => "refusal",
    }
    .into();
    out.push(event(&last));
    out.push(event(&json!({"type": "message_stop"})));
    out
}

fn chat(say: &Say) -> Vec<String> {
    let chunk = |delta: Value, reason: Value| {
        data(&json!({
            "id": "c",
            "object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
            "usage": null,
        }))
    };
    let mut out = vec![chunk(
        json!({"role": "assistant", "content": ""}),
        Value::Null,
    )];
    for text in &say.texts {
        out.push(chunk(json!({"content": text}), Value::Null));
    }
    for (at, (name, arguments)) in say.calls.iter().enumerate() {
        let begin = json!({"index": at, "id": format!("call_{at}"), "type": "function",
            "function": {"name": name, "arguments": ""}});
        out.push(chunk(json!({"tool_calls": [begin]}), Value::Null));
        for part in halves(arguments) {
            let part = json!({"index": at, "function": {"arguments": part}});
            out.push(chunk(json!({"tool_calls": [part]}), Value::Null));
        }
    }
    if let Some(kind) = say.error {
        out.push(data(
            &json!({"error": {"type": kind, "message": "within the stream"}}),
        ));
        return out;
    }
    let reason = match say.ending {
        Ending::Usual if say.calls.is_empty() => "stop",
        Ending::Usual => "tool_calls",
        Ending::Length => "length",
        Ending::Refusal => "content_filter",
    };
    out.push(chunk(json!({}), reason.into()));
    if let Some([input, output, read, write]) = say.usage {
        out.push(data(&json!({"id": "c", "choices": [], "usage": {
            "prompt_tokens": input + read + write,
            "completion_tokens": output,
            "prompt_tokens_details": {"cached_tokens": read, "cache_write_tokens": write},
        }})));
    }
    out.push("data: [DONE]\n\n".into());
    out
}

fn responses(say: &Say) -> Vec<String> {
    let mut out = vec![event(
        &json!({"type": "response.created", "response": {"id": "r", "output": []}}),
    )];
    let mut output = Vec::new();
    if !say.texts.is_empty() {
        let added = json!({"type": "message", "role": "assistant", "content": []});
        out.push(event(
            &json!({"type": "response.output_item.added", "output_index": 0, "item": added}),
        ));
        for text in &say.texts {
            out.push(event(
                &json!({"type": "response.output_text.delta", "output_index": 0, "delta": text}),
            ));
        }
        let item = json!({"type": "message", "role": "assistant",
            "content": [{"type": "output_text", "text": say.texts.concat()}]});
        out.push(event(
            &json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        ));
        output.push(item);
    }
    for (at, (name, arguments)) in say.calls.iter().enumerate() {
        let index = output.len();
        let item = |arguments: &str| {
            json!({"type": "function_call", "id": format!("fc_{at}"), "call_id": format!("call_{at}"),
                "name": name, "arguments": arguments})
        };
        out.push(event(
            &json!({"type": "response.output_item.added", "output_index": index, "item": item("")}),
        ));
        for part in halves(arguments) {
            out.push(event(
                &json!({"type": "response.function_call_arguments.delta",
                "output_index": index, "delta": part}),
            ));
        }
        let item = item(arguments);
        out.push(event(
            &json!({"type": "response.output_item.done", "output_index": index, "item": item}),
        ));
        output.push(item);
    }
    let mut response = json!({"id": "r", "status": "completed", "output": output});
    if let Some([input, output, read, _]) = say.usage {
        response["usage"] = json!({
            "input_tokens": input + read,
            "output_tokens": output,
            "input_tokens_details": {"cached_tokens": read},
        });
    }
    let kind = match (say.error, say.ending) {
        (Some(kind), _) => {
            response["error"] = json!({"code": kind, "message": "within the stream"});
            "response.failed"
        }
        (None, Ending::Usual) => "response.completed",
        (None, Ending::Length) => {
            response["incomplete_details"] = json!({"reason": "max_output_tokens"});
            "response.incomplete"
        }
        (None, Ending::Refusal) => {
            response["incomplete_details"] = json!({"reason": "content_filter"});
            "response.incomplete"
        }
    };
    out.push(event(&json!({"type": kind, "response": response})));
    out
}

fn gemini(say: &Say) -> Vec<String> {
    let parts = |parts: &str, rest: &str| {
        format!(
            "data: {{\"candidates\": [{{\"content\": {{\"role\": \"model\", \"parts\": [{parts}]}}{rest}}}]}}\n\n"
        )
    };
    let mut out = Vec::new();
    for text in &say.texts {
        out.push(parts(&json!({"text": text}).to_string(), ""));
    }
    // Arguments are spliced in as they are: half of them break the frame.
    for (name, arguments) in &say.calls {
        out.push(parts(
            &format!("{{\"functionCall\": {{\"name\": \"{name}\", \"args\": {arguments}}}}}"),
            "",
        ));
    }
    if let Some(kind) = say.error {
        out.push(data(
            &json!({"error": {"status": kind, "message": "within the stream"}}),
        ));
        return out;
    }
    let reason = match say.ending {
        Ending::Usual => "STOP",
        Ending::Length => "MAX_TOKENS",
        Ending::Refusal => "SAFETY",
    };
    let mut last = json!({"candidates": [{"content": {"parts": []}, "finishReason": reason}]});
    if let Some([input, output, read, _]) = say.usage {
        last["usageMetadata"] = json!({
            "promptTokenCount": input + read,
            "candidatesTokenCount": output - 1,
            "thoughtsTokenCount": 1,
            "cachedContentTokenCount": read,
        });
    }
    out.push(data(&last));
    out
}

fn ollama(say: &Say) -> Vec<String> {
    let mut out = Vec::new();
    for text in &say.texts {
        let message = json!({"role": "assistant", "content": text});
        out.push(format!("{}\n", json!({"message": message, "done": false})));
    }
    for (name, arguments) in &say.calls {
        let call =
            format!("{{\"function\": {{\"name\": \"{name}\", \"arguments\": {arguments}}}}}");
        out.push(format!(
            "{{\"message\": {{\"content\": \"\", \"tool_calls\": [{call}]}}, \"done\": false}}\n"
        ));
    }
    if let Some(kind) = say.error {
        out.push(format!(
            "{}\n",
            json!({"error": {"type": kind, "message": "within the stream"}})
        ));
        return out;
    }
    let reason = match say.ending {
        Ending::Usual => "stop",
        Ending::Length => "length",
        // Ollama has no filter; servers that imitate it have.
        Ending::Refusal => "content_filter",
    };
    let mut last = json!({"message": {"content": ""}, "done": true, "done_reason": reason});
    if let Some([input, output, read, _]) = say.usage {
        last["prompt_eval_count"] = json!(input + read);
        last["eval_count"] = json!(output);
        last["prompt_eval_cached_count"] = json!(read);
    }
    out.push(format!("{last}\n"));
    out
}
