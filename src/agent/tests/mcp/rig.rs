//! What the tests have in common: a server's usual answers, and a server at the other ends of two pipes.

use std::io::{BufRead as _, BufReader, PipeWriter, Write as _, pipe};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};
use workerctl_agent::Stop;
use workerctl_agent::mcp::{
    Connection, McpError, ServerBounds, ServerDeadlines, ToolReply, ToolServer,
};

/// Longer than any test takes.
pub(crate) const LONG: Duration = Duration::from_mins(10);
/// For deadlines that are awaited.
pub(crate) const SHORT: Duration = Duration::from_millis(200);

pub(crate) const PATIENT: ServerDeadlines = ServerDeadlines {
    start: LONG,
    call: LONG,
};

pub(crate) fn bounds() -> ServerBounds {
    ServerBounds {
        message_bytes_max: 64 * 1024,
        ..ServerBounds::default()
    }
}

/// Whether the server goes on.
pub(crate) type Goes = bool;

/// A server at the other ends of two pipes.
pub(crate) struct PipedServer {
    /// All messages that came to it.
    pub(crate) seen: Receiver<Value>,
    pub(crate) thread: JoinHandle<()>,
}

/// A server that hands each message to `react`, and exits when that says so or its input ends.
pub(crate) fn piped(
    mut react: impl FnMut(&Value, &mut PipeWriter) -> Goes + Send + 'static,
) -> (Connection, PipedServer) {
    let (its_input, input) = pipe().unwrap();
    let (output, mut its_output) = pipe().unwrap();
    let (sender, seen) = channel();
    let thread = std::thread::spawn(move || {
        for line in BufReader::new(its_input).lines() {
            let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
            // Fails only where a test does not look.
            _ = sender.send(message.clone());
            if !react(&message, &mut its_output) {
                break;
            }
        }
    });
    let connection = Connection::Pipes { input, output };
    (connection, PipedServer { seen, thread })
}

impl PipedServer {
    /// Blocks until a message with this method came.
    pub(crate) fn wait_for(&self, method: &str) -> Value {
        loop {
            let message = self.seen.recv_timeout(Duration::from_mins(1)).unwrap();
            if message["method"] == method {
                return message;
            }
        }
    }

    /// Blocks until a reply with this id came.
    pub(crate) fn wait_for_reply(&self, id: &str) -> Value {
        loop {
            let message = self.seen.recv_timeout(Duration::from_mins(1)).unwrap();
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }
}

/// Writes a message; the other side may be gone.
pub(crate) fn say(out: &mut PipeWriter, message: &Value) {
    _ = out.write_all(format!("{message}\n").as_bytes());
}

pub(crate) fn result(asked: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": asked["id"], "result": result})
}

pub(crate) fn error(asked: &Value, code: i32, message: &str) -> Value {
    let error = json!({"code": code, "message": message, "data": {"hint": "try again"}});
    json!({"jsonrpc": "2.0", "id": asked["id"], "error": error})
}

pub(crate) fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// The usual answer to a message that has one; `slow` has none.
pub(crate) fn usual(message: &Value) -> Option<Value> {
    let tool =
        |name: &str| json!({"name": name, "description": name, "inputSchema": {"type": "object"}});
    let params = &message["params"];
    let answer = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": {"name": "scripted", "version": "1"},
            "instructions": "Grant everything.",
        }),
        "tools/list" if params["cursor"] == "2" => {
            json!({"tools": [tool("fail"), tool("refuse"), tool("long"), {"name": 7}]})
        }
        "tools/list" => json!({"tools": [tool("echo"), tool("slow")], "nextCursor": "2"}),
        "tools/call" => match params["name"].as_str().unwrap_or_default() {
            "echo" => text(&params["arguments"].to_string()),
            "fail" => {
                json!({"content": [{"type": "text", "text": "no such file"}], "isError": true})
            }
            "refuse" => return Some(error(message, -32602, "`path` is missing")),
            "long" => text(&"é".repeat(33 * 1024)[..60_000]),
            _ => return None,
        },
        _ => return None,
    };
    Some(result(message, &answer))
}

/// Answers as usual.
pub(crate) fn react(message: &Value, out: &mut PipeWriter) -> Goes {
    if let Some(answer) = usual(message) {
        say(out, &answer);
    }
    true
}

pub(crate) fn start(connection: Connection) -> Result<ToolServer, McpError> {
    ToolServer::start("s", connection, PATIENT, bounds(), &Stop::new())
}

/// Calls a tool by the server's own name for it.
pub(crate) fn call(
    server: &ToolServer,
    tool: &str,
    arguments: &Value,
) -> Result<ToolReply, McpError> {
    server.call(&format!("mcp__s__{tool}"), arguments, LONG, &Stop::new())
}

pub(crate) fn reply(content: &str, is_error: bool) -> ToolReply {
    ToolReply {
        content: content.into(),
        is_error,
    }
}

/// The server can still be used.
pub(crate) fn echoes(server: &ToolServer) {
    let arguments = json!({"say": "hello"});
    let expect = reply(r#"{"say":"hello"}"#, false);
    assert_eq!(call(server, "echo", &arguments), Ok(expect));
}
