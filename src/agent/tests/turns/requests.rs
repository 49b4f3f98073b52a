//! What the server gets to see, in each dialect.

use serde_json::{Value, json};
use workerctl_agent::{
    CacheMark, Call, Dialect, Message, Model, ModelLimits, Request, Stop, ToolResult, ToolSpec,
    Turn,
};

use crate::rig::{DIALECTS, KEY, StillPace, client, model};
use crate::server::script::{End, Reply, Say};
use crate::server::{ModelServer, Seen};

fn ask(dialect: Dialect, change: impl Fn(&mut Model), request: &Request) -> Seen {
    let server = ModelServer::start(vec![Say::text("x").into()]);
    let mut model = model(dialect, &server);
    change(&mut model);
    client(&StillPace::new())
        .turn(&model, request, &mut |_| {}, &Stop::new())
        .unwrap();
    server.requests().remove(0)
}

fn conversation() -> Request {
    let call = |id: &str, arguments| Call {
        id: id.into(),
        name: "read".into(),
        arguments,
    };
    let result = |id: &str, content: &str, is_error| ToolResult {
        call_id: id.into(),
        name: "read".into(),
        content: content.into(),
        is_error,
    };
    Request {
        system: "Be brief.".into(),
        messages: vec![
            Message::user("Read a."),
            Message::Assistant {
                text: "I read.".into(),
                calls: vec![
                    call("call_0", Ok(json!({"path": "a"}))),
                    call(
                        "synthetic-1-1",
                        Err("the arguments are a list, not an object".into()),
                    ),
                ],
                continuation: None,
            },
            Message::ToolResults {
                results: vec![
                    result("call_0", "A", false),
                    result("synthetic-1-1", "no", true),
                ],
            },
            Message::user("And?"),
        ],
        tools: vec![ToolSpec {
            name: "read".into(),
            description: "Reads a file.".into(),
            schema: json!({"type": "object", "properties": {"path": {"type": "string"}}}),
        }],
        cache: vec![
            CacheMark::Tools,
            CacheMark::System,
            CacheMark::Message(0),
            CacheMark::Message(2),
        ],
    }
}

fn path(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Anthropic => "/v1/messages",
        Dialect::OpenAiChat => "/v1/chat/completions",
        Dialect::OpenAiResponses => "/v1/responses",
        Dialect::Gemini => "/v1beta/models/scripted-1:streamGenerateContent?alt=sse",
        Dialect::Ollama => "/api/chat",
    }
}

fn schema() -> Value {
    json!({"type": "object", "properties": {"path": {"type": "string"}}})
}

fn function() -> Value {
    json!({"name": "read", "description": "Reads a file.", "parameters": schema()})
}

/// The conversation above in each dialect.
fn written(dialect: Dialect) -> Value {
    match dialect {
        Dialect::Anthropic => anthropic(),
        Dialect::OpenAiChat => chat(),
        Dialect::OpenAiResponses => responses(),
        Dialect::Gemini => gemini(),
        Dialect::Ollama => ollama(),
    }
}

fn anthropic() -> Value {
    let mark = json!({"type": "ephemeral"});
    json!({
        "model": "scripted-1",
        "max_tokens": 1000,
        "temperature": 0.5,
        "stream": true,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": mark}],
        "tools": [{"name": "read", "description": "Reads a file.", "input_schema": schema(), "cache_control": mark}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Read a.", "cache_control": mark}]},
            {"role": "assistant", "content": [
                {"type": "text", "text": "I read."},
                {"type": "tool_use", "id": "call_0", "name": "read", "input": {"path": "a"}},
                {"type": "tool_use", "id": "synthetic-1-1", "name": "read", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "call_0", "content": "A"},
                {"type": "tool_result", "tool_use_id": "synthetic-1-1", "content": "no", "is_error": true,
                    "cache_control": mark},
                {"type": "text", "text": "And?"},
            ]},
        ],
    })
}

fn chat() -> Value {
    json!({
        "model": "scripted-1",
        "max_tokens": 1000,
        "temperature": 0.5,
        "stream": true,
        "stream_options": {"include_usage": true},
        "tools": [{"type": "function", "function": function()}],
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Read a."},
            {"role": "assistant", "content": "I read.", "tool_calls": [
                {"id": "call_0", "type": "function", "function": {"name": "read", "arguments": "{\"path\":\"a\"}"}},
                {"id": "synthetic-1-1", "type": "function", "function": {"name": "read", "arguments": "{}"}},
            ]},
            {"role": "tool", "tool_call_id": "call_0", "content": "A"},
            {"role": "tool", "tool_call_id": "synthetic-1-1", "content": "error: no"},
            {"role": "user", "content": "And?"},
        ],
    })
}

fn responses() -> Value {
    json!({
        "model": "scripted-1",
        "max_output_tokens": 1000,
        "temperature": 0.5,
        "stream": true,
        "store": false,
        "instructions": "Be brief.",
        "tools": [{"type": "function", "name": "read", "description": "Reads a file.", "parameters": schema(),
            "strict": false}],
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "Read a."}]},
            {"role": "assistant", "content": [{"type": "output_text", "text": "I read."}]},
            {"type": "function_call", "call_id": "call_0", "name": "read", "arguments": "{\"path\":\"a\"}"},
            {"type": "function_call", "call_id": "synthetic-1-1", "name": "read", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_0", "output": "A"},
            {"type": "function_call_output", "call_id": "synthetic-1-1", "output": "error: no"},
            {"role": "user", "content": [{"type": "input_text", "text": "And?"}]},
        ],
    })
}

fn gemini() -> Value {
    json!({
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "generationConfig": {"maxOutputTokens": 1000, "temperature": 0.5},
        "tools": [{"functionDeclarations": [
            {"name": "read", "description": "Reads a file.", "parametersJsonSchema": schema()},
        ]}],
        "contents": [
            {"role": "user", "parts": [{"text": "Read a."}]},
            {"role": "model", "parts": [
                {"text": "I read."},
                {"functionCall": {"id": "call_0", "name": "read", "args": {"path": "a"}}},
                {"functionCall": {"name": "read", "args": {}}},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"id": "call_0", "name": "read", "response": {"output": "A"}}},
                {"functionResponse": {"name": "read", "response": {"error": "no"}}},
                {"text": "And?"},
            ]},
        ],
    })
}

fn ollama() -> Value {
    json!({
        "model": "scripted-1",
        "stream": true,
        "options": {"num_predict": 1000, "temperature": 0.5},
        "tools": [{"type": "function", "function": function()}],
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Read a."},
            {"role": "assistant", "content": "I read.", "tool_calls": [
                {"function": {"name": "read", "arguments": {"path": "a"}}},
                {"function": {"name": "read", "arguments": {}}},
            ]},
            {"role": "tool", "tool_name": "read", "content": "A"},
            {"role": "tool", "tool_name": "read", "content": "error: no"},
            {"role": "user", "content": "And?"},
        ],
    })
}

#[test]
fn a_conversation_is_written_in_every_dialect() {
    for dialect in DIALECTS {
        let warm = |model: &mut Model| {
            model.limits = ModelLimits {
                temperature: Some(0.5),
                ..model.limits
            };
        };
        let seen = ask(dialect, warm, &conversation());
        assert_eq!(seen.path, path(dialect));
        assert_eq!(seen.body, written(dialect), "{dialect:?}");
        let (name, value) = match dialect {
            Dialect::Anthropic => ("x-api-key", KEY.to_owned()),
            Dialect::Gemini => ("x-goog-api-key", KEY.to_owned()),
            Dialect::OpenAiChat | Dialect::OpenAiResponses | Dialect::Ollama => {
                ("authorization", format!("Bearer {KEY}"))
            }
        };
        assert_eq!(seen.headers[name], value, "{dialect:?}");
        assert_eq!(seen.headers["content-type"], "application/json");
        let others = [
            "x-api-key",
            "x-goog-api-key",
            "authorization",
            "cookie",
            "referer",
        ];
        assert_eq!(
            others
                .iter()
                .filter(|name| seen.headers.contains_key(**name))
                .count(),
            1
        );
    }
}

#[test]
fn what_is_not_given_is_not_sent() {
    for dialect in DIALECTS {
        let request = Request {
            messages: vec![Message::user("x")],
            ..Request::default()
        };
        let seen = ask(dialect, |model| model.key = None, &request);
        assert!(!seen.headers.contains_key("authorization"), "{dialect:?}");
        for name in [
            "system",
            "instructions",
            "systemInstruction",
            "tools",
            "temperature",
        ] {
            assert!(seen.body.get(name).is_none(), "{dialect:?}: {name}");
        }
        assert!(!seen.body.to_string().contains("temperature"));
    }
}

#[test]
fn a_base_may_name_the_version_and_have_a_path() {
    for (dialect, tail, expect) in [
        (Dialect::Anthropic, "/v1/", "/v1/messages"),
        (
            Dialect::Gemini,
            "/v1beta",
            "/v1beta/models/scripted-1:streamGenerateContent?alt=sse",
        ),
        (Dialect::Ollama, "/", "/api/chat"),
    ] {
        let change = |model: &mut Model| {
            model.base_url = model.base_url.as_ref().map(|base| format!("{base}{tail}"));
        };
        assert_eq!(ask(dialect, change, &conversation()).path, expect);
    }
    let tuned = |model: &mut Model| model.name = "tunedModels/a b".into();
    let seen = ask(Dialect::Gemini, tuned, &conversation());
    assert_eq!(
        seen.path,
        "/v1beta/tunedModels/a%20b:streamGenerateContent?alt=sse"
    );
}

#[test]
fn too_many_cache_marks_are_refused() {
    let server = ModelServer::start(vec![Reply::Nothing]);
    for cache in [vec![CacheMark::Tools; 5], vec![CacheMark::Message(4)]] {
        let request = Request {
            cache,
            ..conversation()
        };
        let turn = client(&StillPace::new()).turn(
            &model(Dialect::Anthropic, &server),
            &request,
            &mut |_| {},
            &Stop::new(),
        );
        assert_eq!(turn.unwrap_err().code(), "settings");
    }
}

/// An answer with reasoning that has to go back, and the message that goes back.
fn reasoning(dialect: Dialect) -> Option<(Vec<Value>, Value)> {
    let thinking = json!({"type": "thinking", "thinking": "Hm, so.", "signature": "c2ln"});
    let redacted = json!({"type": "redacted_thinking", "data": "eHl6"});
    let call = json!({"functionCall": {"name": "read", "args": {"path": "a"}}, "thoughtSignature": "c2ln"});
    Some(match dialect {
        Dialect::Anthropic => (
            vec![
                json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}}),
                json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm, "}}),
                json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "so."}}),
                json!({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2ln"}}),
                json!({"type": "content_block_stop", "index": 0}),
                json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}}),
                json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "I read."}}),
                json!({"type": "content_block_stop", "index": 1}),
                json!({"type": "content_block_start", "index": 2, "content_block": redacted}),
                json!({"type": "content_block_stop", "index": 2}),
                json!({"type": "content_block_start", "index": 3,
                    "content_block": {"type": "tool_use", "id": "call_0", "name": "read", "input": {}}}),
                json!({"type": "content_block_delta", "index": 3,
                    "delta": {"type": "input_json_delta", "partial_json": "{\"path\": \"a\"}"}}),
                json!({"type": "content_block_stop", "index": 3}),
                json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}),
                json!({"type": "message_stop"}),
            ],
            json!({"role": "assistant", "content": [
                thinking,
                {"type": "text", "text": "I read."},
                redacted,
                {"type": "tool_use", "id": "call_0", "name": "read", "input": {"path": "a"}},
            ]}),
        ),
        Dialect::OpenAiChat => (
            vec![
                json!({"choices": [{"delta": {"reasoning_content": "Hm, "}}]}),
                json!({"choices": [{"delta": {"reasoning_content": "so."}}]}),
                json!({"choices": [{"delta": {"content": "I read."}}]}),
                json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "call_0",
                    "function": {"name": "read", "arguments": "{\"path\":\"a\"}"}}]}, "finish_reason": "tool_calls"}]}),
            ],
            json!({"role": "assistant", "content": "I read.", "reasoning_content": "Hm, so.", "tool_calls": [
                {"id": "call_0", "type": "function", "function": {"name": "read", "arguments": "{\"path\":\"a\"}"}},
            ]}),
        ),
        Dialect::Gemini => (
            vec![
                json!({"candidates": [{"content": {"parts": [{"text": "Hm, so.", "thought": true}]}}]}),
                json!({"candidates": [{"content": {"parts": [{"text": "I "}]}}]}),
                json!({"candidates": [{"content": {"parts": [{"text": "read."}]}}]}),
                json!({"candidates": [{"content": {"parts": [call]}, "finishReason": "STOP"}]}),
            ],
            json!({"role": "model", "parts": [{"text": "I read."}, call]}),
        ),
        Dialect::Ollama => (
            vec![
                json!({"message": {"thinking": "Hm, so."}}),
                json!({"message": {"content": "I read."}}),
                json!({"message": {"tool_calls": [{"function": {"name": "read", "arguments": {"path": "a"}}}]}}),
                json!({"done": true, "done_reason": "stop"}),
            ],
            json!({"role": "assistant", "content": "I read.", "thinking": "Hm, so.", "tool_calls": [
                {"function": {"name": "read", "arguments": {"path": "a"}}},
            ]}),
        ),
        Dialect::OpenAiResponses => return None,
    })
}

fn frame(dialect: Dialect, value: &Value) -> String {
    match dialect {
        Dialect::Ollama => format!("{value}\n"),
        Dialect::Anthropic | Dialect::OpenAiChat | Dialect::OpenAiResponses | Dialect::Gemini => {
            format!("data: {value}\n\n")
        }
    }
}

#[test]
fn reasoning_goes_back_to_the_model_that_it_came_from() {
    for dialect in DIALECTS {
        let Some((frames, back)) = reasoning(dialect) else {
            continue;
        };
        let frames = frames.iter().map(|value| frame(dialect, value)).collect();
        let server = ModelServer::start(vec![
            Reply::Frames {
                frames,
                end: End::Whole,
            },
            Say::text("Done.").into(),
        ]);
        let model = model(dialect, &server);
        let client = client(&StillPace::new());
        let mut request = Request {
            messages: vec![Message::user("Read a.")],
            ..Request::default()
        };
        let turn = client
            .turn(&model, &request, &mut |_| {}, &Stop::new())
            .unwrap();
        assert_eq!(turn.text, "I read.", "{dialect:?}");
        let call = turn.calls[0].clone();
        // As a journal would give it back.
        let stored = serde_json::to_string(&turn).unwrap();
        let turn: Turn = serde_json::from_str(&stored).unwrap();
        let result = ToolResult {
            call_id: call.id,
            name: call.name,
            content: "A".into(),
            is_error: false,
        };
        request.messages.extend([
            turn.message(),
            Message::ToolResults {
                results: vec![result],
            },
        ]);
        client
            .turn(&model, &request, &mut |_| {}, &Stop::new())
            .unwrap();
        let other = Model {
            name: "scripted-2".into(),
            ..model
        };
        client
            .turn(&other, &request, &mut |_| {}, &Stop::new())
            .unwrap();

        let list = if dialect == Dialect::Gemini {
            "contents"
        } else {
            "messages"
        };
        let seen = server.requests();
        assert_eq!(seen[1].body[list][1], back, "{dialect:?}");
        let shown = seen[2].body.to_string();
        assert!(
            shown.contains("I read.") && !shown.contains("c2ln") && !shown.contains("so."),
            "{shown}"
        );
    }
}
