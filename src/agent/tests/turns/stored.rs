//! Forms that are kept in journals, and must be read for ever.

use std::time::Duration;

use serde_json::{Value, json};
use workerctl_agent::{
    CacheMark, Call, Continuation, Dialect, Message, Request, RequestDigest, ToolResult, ToolSpec,
    Turn, Usage,
};

fn request() -> Request {
    Request {
        system: "Be brief.".into(),
        messages: vec![
            Message::user("Read a."),
            Message::Assistant {
                text: String::new(),
                calls: vec![
                    Call {
                        id: "c0".into(),
                        name: "read".into(),
                        arguments: Ok(json!({"path": "a"})),
                    },
                    Call {
                        id: "c1".into(),
                        name: "read".into(),
                        arguments: Err("a list".into()),
                    },
                ],
                continuation: Some(Continuation {
                    dialect: Dialect::OpenAiChat,
                    model: "m".into(),
                    parts: vec![json!({"reasoning_content": "hm"})],
                }),
            },
            Message::ToolResults {
                results: vec![ToolResult {
                    call_id: "c0".into(),
                    name: "read".into(),
                    content: "A".into(),
                    is_error: false,
                }],
            },
        ],
        tools: vec![ToolSpec {
            name: "read".into(),
            description: "Reads.".into(),
            schema: json!({"type": "object", "b": 1, "a": 0.5}),
        }],
        cache: vec![CacheMark::Tools, CacheMark::Message(0)],
    }
}

fn stored_request() -> Value {
    json!({
        "system": "Be brief.",
        "messages": [
            {"role": "user", "text": "Read a."},
            {
                "role": "assistant",
                "calls": [
                    {"id": "c0", "name": "read", "arguments": {"valid": {"path": "a"}}},
                    {"id": "c1", "name": "read", "arguments": {"invalid": "a list"}},
                ],
                "continuation": {"dialect": "openai_chat", "model": "m", "parts": [{"reasoning_content": "hm"}]},
            },
            {"role": "tool_results", "results": [
                {"call_id": "c0", "name": "read", "content": "A", "is_error": false},
            ]},
        ],
        "tools": [{"name": "read", "description": "Reads.", "schema": {"type": "object", "b": 1, "a": 0.5}}],
        "cache": ["tools", {"message": 0}],
    })
}

#[test]
fn a_request_has_one_form() {
    assert_eq!(serde_json::to_value(request()).unwrap(), stored_request());
    assert_eq!(
        serde_json::from_value::<Request>(stored_request()).unwrap(),
        request()
    );
    let least = json!({"messages": [{"role": "assistant"}]});
    let least: Request = serde_json::from_value(least).unwrap();
    assert_eq!(least.system, "");
}

#[test]
fn a_turn_has_one_form() {
    let turn = Turn {
        text: "Done.".into(),
        calls: Vec::new(),
        usage: Some(Usage {
            input: 1,
            output: 2,
            cache_read: 3,
            cache_write: 4,
        }),
        estimated: false,
        stop: "stop".into(),
        continuation: None,
        tries: 2,
        duration: Duration::from_millis(1_234),
    };
    let stored = json!({
        "text": "Done.",
        "calls": [],
        "usage": {"input": 1, "output": 2, "cache_read": 3, "cache_write": 4},
        "stop": "stop",
        "tries": 2,
        "duration_ms": 1234,
    });
    assert_eq!(serde_json::to_value(&turn).unwrap(), stored);
    // Earlier versions kept the tokens of failed tries with the turn.
    let mut earlier = stored.clone();
    earlier["lost"] = json!({"input": 1, "output": 2});
    for stored in [stored, earlier] {
        assert_eq!(serde_json::from_value::<Turn>(stored).unwrap(), turn);
    }
    let names = [
        "anthropic",
        "openai_chat",
        "openai_responses",
        "gemini",
        "ollama",
    ];
    let dialects: Vec<Dialect> = serde_json::from_value(json!(names)).unwrap();
    assert_eq!(dialects, crate::rig::DIALECTS);
}

#[test]
fn a_digest_depends_on_what_is_asked_and_not_on_the_order_of_keys() {
    let digest = request().digest().unwrap();
    // Computed by another program from the form above.
    assert_eq!(
        digest,
        "5ea7fd5a956bc96a717b9ac69ad56dffac588f03f0cef2e33ab68cc0ed46cfd1"
    );
    let mut other = request();
    other.tools[0].schema = json!({"a": 0.5, "b": 1, "type": "object"});
    assert_eq!(other.digest().unwrap(), digest);
    other.tools[0].schema = json!({"a": 0.5, "b": 2, "type": "object"});
    assert_ne!(other.digest().unwrap(), digest);
    // One that grew message by message is the same.
    let (whole, mut growing) = (request(), request());
    growing.messages.clear();
    let mut grown = RequestDigest::default();
    for message in whole.messages {
        growing.messages.push(message);
        assert_eq!(grown.of(&growing).unwrap(), growing.digest().unwrap());
    }
    assert_eq!(growing.digest().unwrap(), digest);
}
