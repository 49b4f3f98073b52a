//! What a server sends: answers for us, and requests that are declined.

use rmcp::model::ServerJsonRpcMessage;
use serde_json::{Value, json};

/// A message of the server, sorted by what becomes of it.
pub(super) enum Inbound {
    /// The answer to a request of ours.
    Answer(Box<ServerJsonRpcMessage>),
    /// A request, with the reply that it gets: only `ping` is served. Sampling, roots and elicitation are
    /// declined, as is all that later protocols add.
    Asked(Vec<u8>),
    /// A notification. The tools of a run are fixed at its start, and progress moves no deadline.
    Notice,
    /// Text, or JSON that is no message of the protocol.
    Noise,
    /// An answer that cannot be read.
    Malformed,
}

impl Inbound {
    /// Requests are answered here and not by `rmcp`, which would give each one a task and a queued reply:
    /// a server that sends them without end would fill the memory.
    pub(super) fn read(data: &[u8]) -> Self {
        let Ok(Value::Object(message)) = serde_json::from_slice(data) else {
            return Self::Noise;
        };
        let id = message.get("id").filter(|id| !id.is_null());
        match (message.get("method").and_then(Value::as_str), id) {
            (Some(method), Some(id)) => Self::Asked(reply(method, id)),
            (Some(_), None) => Self::Notice,
            (None, _) if message.contains_key("result") || message.contains_key("error") => {
                serde_json::from_value(Value::Object(message))
                    .map_or(Self::Malformed, |answer| Self::Answer(Box::new(answer)))
            }
            (None, _) => Self::Noise,
        }
    }
}

fn reply(method: &str, id: &Value) -> Vec<u8> {
    let reply = if method == "ping" {
        json!({"jsonrpc": "2.0", "id": id, "result": {}})
    } else {
        let error = json!({"code": -32601, "message": "this client does not offer it"});
        json!({"jsonrpc": "2.0", "id": id, "error": error})
    };
    reply.to_string().into_bytes()
}
