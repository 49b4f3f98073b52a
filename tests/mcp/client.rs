//! A small client of the protocol.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

use crate::workspace::{PATIENCE, Workspace, pid_of, wait_for};

/// A server that runs, and the session with it.
pub(crate) struct Client {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    aside: VecDeque<Value>,
    last_id: u64,
    log: std::path::PathBuf,
}

/// A page with these keys.
pub(crate) fn page(name: &str, description: &str, body: &str) -> String {
    format!("---\nname: {name}\ndescription: {description}\n---\n\n{body}\n")
}

impl Client {
    /// A server without a session.
    pub(crate) fn start(workspace: &Workspace) -> Client {
        let log = workspace.home.join("mcp.log");
        Client::of(&mut workspace.workerctl(&["mcp"]), log)
    }

    /// A server that is started by this command, without a session.
    pub(crate) fn of(command: &mut Command, log: std::path::PathBuf) -> Client {
        let file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&log)
            .unwrap();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(file)
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Client {
            input: child.stdin.take(),
            child,
            lines,
            aside: VecDeque::new(),
            last_id: 0,
            log,
        }
    }

    /// A server with a session.
    pub(crate) fn connect(workspace: &Workspace) -> Client {
        let mut client = Client::start(workspace);
        client.initialize("2025-06-18");
        client
    }

    /// The handshake; what the server answered.
    pub(crate) fn initialize(&mut self, version: &str) -> Value {
        self.initialize_with(version, &json!({}))
    }

    /// The handshake of a client that can do this.
    pub(crate) fn initialize_with(&mut self, version: &str, capabilities: &Value) -> Value {
        let client = json!({"name": "tests", "version": "1"});
        let params =
            json!({"protocolVersion": version, "capabilities": capabilities, "clientInfo": client});
        let answer = self.ask("initialize", &params);
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        answer["result"].clone()
    }

    /// Writes one line.
    pub(crate) fn write(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_bytes()).unwrap();
        input.write_all(b"\n").unwrap();
        input.flush().unwrap();
    }

    /// Writes one message.
    pub(crate) fn send(&mut self, message: &Value) {
        self.write(&message.to_string());
    }

    /// Sends a request; its id.
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// The next message that `wanted` accepts; others are kept. Nothing but messages is ever written.
    pub(crate) fn message(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.aside.iter().position(&wanted) {
            return self.aside.remove(at).unwrap();
        }
        let deadline = Instant::now() + PATIENCE;
        loop {
            let message = self.next(deadline.saturating_duration_since(Instant::now()));
            let message = message.unwrap_or_else(|| panic!("no {what}\n{}", self.log()));
            if wanted(&message) {
                return message;
            }
            self.aside.push_back(message);
        }
    }

    fn next(&mut self, patience: Duration) -> Option<Value> {
        match self.lines.recv_timeout(patience) {
            Ok(line) => {
                let message: Value = serde_json::from_str(&line)
                    .unwrap_or_else(|error| panic!("{error}: standard output holds `{line}`"));
                let each = message
                    .as_array()
                    .map_or(std::slice::from_ref(&message), Vec::as_slice);
                assert!(each.iter().all(|one| one["jsonrpc"] == "2.0"), "{message}");
                Some(message)
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => None,
        }
    }

    /// The answers to a batch.
    pub(crate) fn batch(&mut self) -> Vec<Value> {
        self.message("batch", Value::is_array)
            .as_array()
            .unwrap()
            .clone()
    }

    /// The answer to a request.
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        // The server's own requests have ids too.
        self.message(&format!("answer to {id}"), |message| {
            message["id"] == id && message.get("method").is_none()
        })
    }

    /// Sends a request and waits for its answer.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.request(method, params);
        self.answer(id)
    }

    /// Sends a request that must succeed; its result.
    pub(crate) fn result(&mut self, method: &str, params: &Value) -> Value {
        let answer = self.ask(method, params);
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    /// Calls a tool; its result.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.result("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// Calls a tool whose arguments must be refused; the refusal.
    pub(crate) fn refusal(&mut self, tool: &str, arguments: &Value) -> String {
        let answer = self.ask("tools/call", &json!({"name": tool, "arguments": arguments}));
        assert_eq!(answer["error"]["code"], -32_602, "{answer}");
        answer["error"]["message"].as_str().unwrap().to_owned()
    }

    /// Calls a tool; the text of its result.
    pub(crate) fn text(&mut self, tool: &str, arguments: &Value) -> String {
        text_of(&self.call(tool, arguments))
    }

    /// The tool of that name, as it is listed.
    pub(crate) fn tool(&mut self, name: &str) -> Value {
        let listed = self.result("tools/list", &json!({}));
        let tools = listed["tools"].as_array().unwrap();
        tools
            .iter()
            .find(|tool| tool["name"] == name)
            .unwrap()
            .clone()
    }

    /// Waits for news of changed definitions.
    pub(crate) fn hears_of_changes(&mut self) {
        for list in ["tools", "prompts", "resources"] {
            let method = format!("notifications/{list}/list_changed");
            self.message(&method, |message| message["method"] == method);
        }
    }

    /// What the server wrote to standard error.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Whether it still answers.
    pub(crate) fn lives(&mut self) {
        let pong = self.ask("ping", &json!({}));
        assert_eq!(pong["result"], json!({}), "{pong}");
    }

    /// The process of the server.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(pid_of(&self.child), signal).unwrap();
    }

    /// Closes the input and stays to hear.
    pub(crate) fn finish(&mut self) {
        drop(self.input.take());
    }

    /// Closes the input; how the server ended.
    pub(crate) fn leave(mut self) -> ExitStatus {
        drop(self.input.take());
        self.ended()
    }

    /// How the server ended, which it does by itself.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        wait_for(&mut self.child, PATIENCE).unwrap_or_else(|| panic!("it lives on\n{}", self.log()))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.input.take());
        if wait_for(&mut self.child, Duration::from_secs(20)).is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// The text of a result that is JSON.
pub(crate) fn json_of(result: &Value) -> Value {
    let texts = result["content"].as_array().into_iter().flatten();
    let mut read = texts.filter_map(|one| serde_json::from_str(one["text"].as_str()?).ok());
    read.next().unwrap_or_else(|| panic!("{result}"))
}

/// The text of a result.
pub(crate) fn text_of(result: &Value) -> String {
    result["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("{result}"))
        .to_owned()
}
