//! One HTTP request on one connection, written and read by hand.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::workspace::PATIENCE;

/// Where a daemon is spoken to.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    Socket(PathBuf),
    Tcp(u16),
}

/// Both kinds of connection.
pub(crate) trait Stream: Read + Write + Send {}
impl<S: Read + Write + Send> Stream for S {}

/// An answer whose body is still to be read.
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Its lines in small letters, the status first.
    pub(crate) head: String,
    reader: BufReader<Box<dyn Stream>>,
    /// What is left of the body, where its length is known.
    left: Option<usize>,
}

impl Place {
    fn connect(&self) -> Box<dyn Stream> {
        match self {
            Place::Socket(path) => {
                let stream = UnixStream::connect(path).unwrap();
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                Box::new(stream)
            }
            Place::Tcp(port) => {
                let stream = TcpStream::connect(("127.0.0.1", *port)).unwrap();
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                Box::new(stream)
            }
        }
    }

    /// Sends a head as it is written, and a body.
    pub(crate) fn send(&self, head: &str, body: &[u8]) -> Box<dyn Stream> {
        self.begin(head, body.len(), body)
    }

    /// Sends a head and the beginning of a body of so many bytes.
    pub(crate) fn begin(&self, head: &str, length: usize, body: &[u8]) -> Box<dyn Stream> {
        let mut stream = self.connect();
        let head = head.trim_end().replace('\n', "\r\n");
        let sent = format!("{head}\r\nContent-Length: {length}\r\n\r\n");
        stream.write_all(sent.as_bytes()).unwrap();
        // Whoever refuses a body does not read it.
        let _ = stream.write_all(body);
        stream
    }

    /// Sends a request and reads the head of its answer.
    pub(crate) fn open(&self, method: &str, headers: &str, body: &[u8]) -> Answer {
        let named = headers
            .to_lowercase()
            .lines()
            .any(|line| line.starts_with("host:"));
        let host = if named { "" } else { "\nHost: localhost" };
        let head = format!("{method} /mcp HTTP/1.1{host}\n{headers}");
        Answer::read(self.send(&head, body))
    }
}

impl Answer {
    /// Reads the head.
    pub(crate) fn read(stream: Box<dyn Stream>) -> Answer {
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        loop {
            let mut line = String::new();
            let count = reader.read_line(&mut line).unwrap();
            assert!(count > 0, "no answer: {head}");
            if line.trim().is_empty() {
                break;
            }
            head.push_str(&line.to_lowercase());
        }
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .map(|length| length.trim().parse().unwrap());
        let chunked = head.contains("transfer-encoding: chunked");
        Answer {
            status,
            head,
            reader,
            left: length.or(if chunked { None } else { Some(0) }),
        }
    }

    /// A header of it.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// A part of the body; nothing at its end, or where the connection ends.
    fn part(&mut self) -> Option<Vec<u8>> {
        if let Some(left) = self.left.take() {
            self.left = Some(0);
            let mut bytes = vec![0; left];
            self.reader.read_exact(&mut bytes).ok()?;
            return (left > 0).then_some(bytes);
        }
        let mut line = String::new();
        self.reader.read_line(&mut line).ok()?;
        let length = usize::from_str_radix(line.trim(), 16).ok()?;
        let mut bytes = vec![0; length + 2];
        self.reader.read_exact(&mut bytes).ok()?;
        bytes.truncate(length);
        (length > 0).then_some(bytes)
    }

    /// The whole body.
    pub(crate) fn text(mut self) -> String {
        let mut all = Vec::new();
        while let Some(part) = self.part() {
            all.extend(part);
        }
        String::from_utf8(all).unwrap()
    }

    /// The body as JSON.
    pub(crate) fn value(self) -> Value {
        let text = self.text();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// The body as events.
    pub(crate) fn events(self) -> Events {
        assert!(
            self.head.contains("content-type: text/event-stream"),
            "{}",
            self.head
        );
        Events {
            answer: self,
            text: String::new(),
        }
    }
}

/// A stream of events.
pub(crate) struct Events {
    answer: Answer,
    text: String,
}

/// One event.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) id: String,
    /// Null where there is none.
    pub(crate) message: Value,
}

impl Events {
    /// The next event; nothing at the end of the stream.
    pub(crate) fn next(&mut self) -> Option<Event> {
        loop {
            while let Some((event, rest)) = self.text.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.text = rest;
                let field = |name: &str| {
                    let found = event.lines().find_map(|line| line.strip_prefix(name));
                    found.map(|value| value.trim().to_owned())
                };
                // Comments keep the connection.
                let Some(data) = field("data:") else { continue };
                return Some(Event {
                    id: field("id:").unwrap_or_default(),
                    message: serde_json::from_str(&data).unwrap_or_default(),
                });
            }
            let part = self.answer.part()?;
            self.text.push_str(std::str::from_utf8(&part).unwrap());
        }
    }

    /// The next message.
    pub(crate) fn message(&mut self) -> Value {
        loop {
            let event = self
                .next()
                .unwrap_or_else(|| panic!("the stream has ended"));
            if !event.message.is_null() {
                return event.message;
            }
        }
    }
}

/// How long a stream may take to end that ends at once.
pub(crate) const SOON: Duration = Duration::from_secs(20);
