//! A client of the Model Context Protocol that measures `workerctl mcp`.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::workspace::Workspace;

/// The server, after the handshake.
pub(crate) struct Spoken {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next_id: u64,
    /// From before its process was started until `initialize` was answered.
    pub answered_after: Duration,
}

impl Spoken {
    /// Starts a server and shakes hands.
    pub(crate) fn start(workspace: &Workspace) -> Spoken {
        let log = std::fs::File::create(workspace.directory().join("mcp.log")).unwrap();
        let mut command = workspace.command(&["mcp"]);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log);
        let begun = Instant::now();
        let mut child = command.spawn().unwrap();
        let mut this = Spoken {
            input: child.stdin.take().unwrap(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
            next_id: 0,
            answered_after: Duration::ZERO,
        };
        let client = json!({"name": "bench", "version": "1"});
        let params =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        this.ask("initialize", &params);
        this.answered_after = begun.elapsed();
        this.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        this
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    fn write(&mut self, message: &Value) {
        let line = format!("{message}\n");
        self.input.write_all(line.as_bytes()).unwrap();
    }

    /// Sends a request; its id.
    pub(crate) fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// The next message.
    pub(crate) fn receive(&mut self) -> Value {
        let mut line = String::new();
        let length = self.output.read_line(&mut line).unwrap();
        assert!(length > 0, "the server has ended");
        serde_json::from_str(&line).unwrap()
    }

    /// Waits for the answer to a request.
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.receive();
            if message["id"] == id {
                assert!(message.get("error").is_none(), "{message}");
                return message["result"].clone();
            }
        }
    }

    /// Sends a request and waits for its answer.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params);
        self.answer(id)
    }

    /// The text that the tool `skill` gives for a name.
    pub(crate) fn load(&mut self, name: &str) -> String {
        let result = self.ask("tools/call", &call_of(name));
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Waits until it is told that tools have changed.
    pub(crate) fn hear_of_change(&mut self) {
        while self.receive()["method"] != "notifications/tools/list_changed" {}
    }

    /// Leaves, which ends the server.
    pub(crate) fn leave(mut self) {
        drop(self.input);
        let status = self.child.wait().unwrap();
        assert!(status.success(), "the server ended with {status}");
    }
}

/// Parameters of a call of the tool `skill`.
pub(crate) fn call_of(name: &str) -> Value {
    json!({"name": "skill", "arguments": {"name": name}})
}
