//! Requests to the API of a real engine.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use serde_json::Value;

use super::{PATIENCE, Workspace};

/// The API at the socket of a workspace's engine.
pub(crate) struct Api(PathBuf);

/// What it answers.
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub(crate) fn value(&self) -> Value {
        assert!((200..300).contains(&self.status), "{}", self.text());
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// Where the next page is.
    pub(crate) fn next(&self) -> Option<&str> {
        let link = self.header("link")?;
        link.strip_prefix('<')?.strip_suffix(">; rel=\"next\"")
    }

    /// Status and code of a refusal, which has all of its fields.
    pub(crate) fn refusal(&self) -> (u16, String) {
        let value: Value = serde_json::from_slice(&self.body).unwrap();
        let is_told = value["kind"].is_string() && value["message"].is_string();
        assert!(is_told && value["hints"].is_array(), "{value}");
        (self.status, value["code"].as_str().unwrap().to_owned())
    }
}

impl Api {
    pub(crate) fn of(workspace: &Workspace) -> Api {
        let lock = workspace.read(".workerctl/lock").unwrap();
        let lock: Value = serde_json::from_str(&lock).unwrap();
        Api(PathBuf::from(lock["socket"].as_str().unwrap()))
    }

    /// A request whose answer is for the caller to read.
    pub(crate) fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> UnixStream {
        let mut stream = UnixStream::connect(&self.0).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
        )
        .unwrap();
        stream
    }

    pub(crate) fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        let mut stream = self.send(method, path, headers, body);
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let end = bytes
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .unwrap();
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut body = bytes[end + 4..].to_vec();
        if head.contains("transfer-encoding: chunked") {
            body = unchunked(&body);
        }
        Answer { status, head, body }
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, "", "")
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> Answer {
        self.ask("POST", path, "", body)
    }

    pub(crate) fn detail(&self, run: &str) -> Value {
        self.get(&format!("/v1/runs/{run}")).value()
    }
}

/// A body without the frames of its chunks, which has to have its end.
fn unchunked(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n").unwrap();
        let length = std::str::from_utf8(&rest[..end]).unwrap();
        let length = usize::from_str_radix(length, 16).unwrap();
        body.extend_from_slice(&rest[end + 2..end + 2 + length]);
        rest = &rest[end + 2 + length + 2..];
        if length == 0 {
            return body;
        }
    }
}
