//! One HTTP request on one connection, written and read by hand.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use crate::workspace::PATIENCE;

/// A request as a browser would send it.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    line: String,
    host: Option<String>,
    headers: Vec<String>,
    body: Option<Vec<u8>>,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Its lines, names in small letters.
    head: Vec<String>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn get(path: &str) -> Request {
        Request {
            line: format!("GET {path} HTTP/1.1"),
            host: None,
            headers: Vec::new(),
            body: None,
        }
    }

    pub(crate) fn method(method: &str, path: &str) -> Request {
        Request {
            line: format!("{method} {path} HTTP/1.1"),
            ..Request::get(path)
        }
    }

    pub(crate) fn post(path: &str, body: &str) -> Request {
        let request = Request {
            body: Some(body.as_bytes().to_vec()),
            ..Request::method("POST", path)
        };
        request.header("Content-Type: application/json")
    }

    /// Without the header that [`Request::post`] sends.
    pub(crate) fn of_kind(mut self, kind: Option<&str>) -> Request {
        self.headers
            .retain(|line| !line.starts_with("Content-Type"));
        self.headers
            .extend(kind.map(|kind| format!("Content-Type: {kind}")));
        self
    }

    pub(crate) fn header(mut self, line: &str) -> Request {
        self.headers.push(line.to_owned());
        self
    }

    pub(crate) fn token(self, token: &str) -> Request {
        self.header(&format!("Authorization: Bearer {token}"))
    }

    pub(crate) fn host(mut self, host: &str) -> Request {
        self.host = Some(host.to_owned());
        self
    }

    /// Sends it.
    pub(crate) fn send(&self, port: u16) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let own = format!("127.0.0.1:{port}");
        let host = self.host.as_deref().unwrap_or(&own);
        let mut lines = vec![self.line.clone(), format!("Host: {host}")];
        lines.extend(self.headers.iter().cloned());
        let length = self.body.as_ref().map(Vec::len);
        lines.extend(length.map(|length| format!("Content-Length: {length}")));
        let text = lines.join("\r\n") + "\r\n\r\n";
        let mut bytes = text.into_bytes();
        bytes.extend(self.body.iter().flatten());
        // Whoever refuses a head does not read the rest.
        let _ = stream.write_all(&bytes);
        stream
    }

    /// Sends it and reads the whole answer.
    pub(crate) fn ask(&self, port: u16) -> Answer {
        let mut bytes = Vec::new();
        self.send(port).read_to_end(&mut bytes).unwrap();
        Answer::of(&bytes).unwrap_or_else(|| panic!("{self:?}: {bytes:?}"))
    }
}

impl Answer {
    pub(crate) fn of(bytes: &[u8]) -> Option<Answer> {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
        let text = String::from_utf8(bytes[..end].to_vec()).ok()?;
        let head: Vec<String> = text
            .lines()
            .map(|line| match line.split_once(": ") {
                Some((name, value)) => format!("{}: {value}", name.to_lowercase()),
                None => line.to_owned(),
            })
            .collect();
        Some(Answer {
            status: head.first()?.split(' ').nth(1)?.parse().ok()?,
            head,
            body: bytes[end + 4..].to_vec(),
        })
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.iter();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn value(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The code of a refusal.
    pub(crate) fn code(&self) -> String {
        let value = self.value();
        value["code"].as_str().unwrap_or_default().to_owned()
    }

    /// Its status, and the code of a refusal.
    pub(crate) fn told(&self) -> (u16, String) {
        (self.status, self.code())
    }
}

/// A stream of events that is being read.
pub(crate) struct Events(BufReader<TcpStream>);

impl Events {
    pub(crate) fn of(stream: TcpStream) -> Events {
        Events(BufReader::new(stream))
    }

    /// Reads on to a line that holds this; false where the stream ends before.
    pub(crate) fn reach(&mut self, wanted: &str) -> bool {
        let mut line = String::new();
        while self.0.read_line(&mut line).unwrap() > 0 {
            if line.contains(wanted) {
                return true;
            }
            line.clear();
        }
        false
    }
}
