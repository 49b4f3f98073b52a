//! Messages, one a line, over a pair of streams: bounded, and nothing that is written there ends the server.

use std::convert::Infallible;
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, mpsc as blocking};
use std::time::Duration;

use rmcp::model::{ClientJsonRpcMessage, ClientRequest, GetMeta, ProtocolVersion};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};

/// Bytes of one message that is accepted.
pub(super) const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Messages that are read ahead.
const AHEAD: usize = 16;

/// Bytes that wait to be written before no more requests are read.
const WAITING_BYTES_MAX: usize = 8 * 1024 * 1024;

/// How long the last answers may take to be read.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Refusals of the protocol that lies below.
const PARSE_ERROR: i32 = -32_700;
const INVALID_REQUEST: i32 = -32_600;

enum Incoming {
    Line(Vec<u8>),
    TooLong,
}

/// The two streams as the SDK wants them.
pub(super) struct Wire {
    incoming: mpsc::Receiver<Incoming>,
    outgoing: Arc<Outgoing>,
    ended: Arc<AtomicBool>,
    /// Whether a session has begun: before, the SDK takes requests only.
    begun: bool,
}

/// The stream of answers.
pub(super) struct Outgoing {
    sender: blocking::Sender<String>,
    waiting: Arc<Waiting>,
}

/// What has been handed over and not been written.
#[derive(Default)]
struct Waiting {
    bytes: AtomicUsize,
    /// Told whenever something was written.
    written: Notify,
    /// Whether the reader of the answers has left.
    gone: AtomicBool,
    empty: (Mutex<()>, Condvar),
}

impl Wire {
    /// Starts a thread for each stream.
    pub(super) fn open(
        input: Box<dyn Read + Send>,
        output: Box<dyn Write + Send>,
    ) -> std::io::Result<Wire> {
        let ended = Arc::new(AtomicBool::new(false));
        let (lines, incoming) = mpsc::channel(AHEAD);
        let over = Arc::clone(&ended);
        std::thread::Builder::new()
            .name("mcp-in".to_owned())
            .spawn(move || {
                read_lines(input, &lines);
                over.store(true, Ordering::Release);
            })?;
        let waiting = Arc::new(Waiting::default());
        let (sender, messages) = blocking::channel();
        let shared = Arc::clone(&waiting);
        std::thread::Builder::new()
            .name("mcp-out".to_owned())
            .spawn(move || write_messages(output, &messages, &shared))?;
        Ok(Wire {
            incoming,
            outgoing: Arc::new(Outgoing { sender, waiting }),
            ended,
            begun: false,
        })
    }

    /// The stream of answers.
    pub(super) fn outgoing(&self) -> Arc<Outgoing> {
        Arc::clone(&self.outgoing)
    }

    /// Whether the input has ended: what is cancelled from then on was not cancelled by the client.
    pub(super) fn ended(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.ended)
    }

    /// The message that a line holds; what is none is answered.
    fn message(&mut self, line: &[u8]) -> Option<ClientJsonRpcMessage> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return None;
        }
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        let value: Value = match serde_json::from_slice(line) {
            Ok(value) => value,
            Err(error) => {
                self.refuse(&Value::Null, PARSE_ERROR, &format!("Parse error: {error}"));
                return None;
            }
        };
        let Value::Object(fields) = &value else {
            let why = "Invalid Request: write one message a line; there are no batches";
            self.refuse(&Value::Null, INVALID_REQUEST, why);
            return None;
        };
        let id = fields
            .get("id")
            .filter(|id| id.is_string() || id.is_i64() || id.is_u64());
        let id = id.cloned().unwrap_or(Value::Null);
        let is_request = fields.contains_key("method") && fields.contains_key("id");
        match serde_json::from_value::<ClientJsonRpcMessage>(value) {
            // An id that is none makes no notification of a request.
            Ok(_) if is_request && id.is_null() => {
                let why = "Invalid Request: `id` is a text or a whole number";
                self.refuse(&id, INVALID_REQUEST, why);
                None
            }
            Ok(message) => self.admitted(message),
            Err(error) => {
                self.refuse(&id, INVALID_REQUEST, &format!("Invalid Request: {error}"));
                None
            }
        }
    }

    /// Before a session has begun the SDK ends at anything but a request.
    fn admitted(&mut self, message: ClientJsonRpcMessage) -> Option<ClientJsonRpcMessage> {
        if let ClientJsonRpcMessage::Request(request) = &message {
            let opens = match &request.request {
                ClientRequest::InitializeRequest(_) => true,
                ClientRequest::DiscoverRequest(_) | ClientRequest::PingRequest(_) => false,
                other => {
                    let meta = other.get_meta();
                    meta.missing_required_keys(&ProtocolVersion::V_2026_07_28)
                        .is_empty()
                }
            };
            self.begun |= opens;
            return Some(message);
        }
        if !self.begun {
            tracing::warn!(
                "a message that is no request came before `initialize` and was left out"
            );
        }
        self.begun.then_some(message)
    }

    fn refuse(&self, id: &Value, code: i32, message: &str) {
        let error = json!({"code": code, "message": message});
        let refusal = json!({"jsonrpc": "2.0", "id": id, "error": error});
        self.outgoing.put(refusal.to_string());
    }

    async fn next(&mut self) -> Option<Incoming> {
        loop {
            if self.outgoing.waiting.gone.load(Ordering::Acquire) {
                return None;
            }
            let written = self.outgoing.waiting.written.notified();
            if self.outgoing.waiting.bytes.load(Ordering::Acquire) > WAITING_BYTES_MAX {
                written.await;
                continue;
            }
            tokio::select! {
                line = self.incoming.recv() => return line,
                () = written => {}
            }
        }
    }
}

impl Transport<RoleServer> for Wire {
    type Error = Infallible;

    /// Hands the message over at once, so that answers and notifications keep their order.
    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
        match serde_json::to_string(&item) {
            Ok(text) => self.outgoing.put(text),
            Err(error) => tracing::error!(%error, "an answer cannot be written as JSON"),
        }
        std::future::ready(Ok(()))
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            match self.next().await? {
                Incoming::Line(line) => {
                    if let Some(message) = self.message(&line) {
                        return Some(message);
                    }
                }
                Incoming::TooLong => {
                    let why = format!("Invalid Request: more than {MESSAGE_BYTES_MAX} bytes");
                    self.refuse(&Value::Null, INVALID_REQUEST, &why);
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

impl Outgoing {
    fn put(&self, text: String) {
        let length = text.len();
        self.waiting.bytes.fetch_add(length, Ordering::AcqRel);
        if self.sender.send(text).is_err() {
            self.waiting.bytes.fetch_sub(length, Ordering::AcqRel);
        }
    }

    /// Waits until everything is written, as long as somebody reads it.
    pub(super) fn flush(&self) {
        let (lock, told) = &self.waiting.empty;
        let guard = lock.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = |(): &mut ()| {
            !self.waiting.gone.load(Ordering::Acquire)
                && self.waiting.bytes.load(Ordering::Acquire) > 0
        };
        let waited = told.wait_timeout_while(guard, LAST_WORDS, waits);
        if waited.is_ok_and(|(_, timeout)| timeout.timed_out()) {
            tracing::warn!("the client did not read its last answers");
        }
    }
}

/// Cuts the input into lines of bounded length.
fn read_lines(input: Box<dyn Read + Send>, lines: &mpsc::Sender<Incoming>) {
    let mut input = BufReader::new(input);
    let mut line = Vec::new();
    let mut passing_over = false;
    loop {
        let available = match input.fill_buf() {
            Ok([]) => return,
            Ok(available) => available,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => {
                tracing::error!(%error, "the input cannot be read");
                return;
            }
        };
        let end = available.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(available.len(), |end| end + 1);
        let fits = line.len() + taken <= MESSAGE_BYTES_MAX;
        if !passing_over && fits {
            line.extend_from_slice(&available[..end.unwrap_or(taken)]);
        }
        input.consume(taken);
        let told = match (passing_over, fits, end) {
            (false, false, _) => Some(Incoming::TooLong),
            (false, true, Some(_)) => Some(Incoming::Line(std::mem::take(&mut line))),
            _ => None,
        };
        passing_over = end.is_none() && (passing_over || !fits);
        if !fits {
            line = Vec::new();
        }
        if told.is_some_and(|told| lines.blocking_send(told).is_err()) {
            return;
        }
    }
}

fn write_messages(
    mut output: Box<dyn Write + Send>,
    messages: &blocking::Receiver<String>,
    waiting: &Waiting,
) {
    while let Ok(mut text) = messages.recv() {
        let length = text.len();
        text.push('\n');
        let written = output
            .write_all(text.as_bytes())
            .and_then(|()| output.flush());
        waiting.bytes.fetch_sub(length, Ordering::AcqRel);
        waiting.gone.store(written.is_err(), Ordering::Release);
        waiting.written.notify_one();
        drop(waiting.empty.0.lock());
        waiting.empty.1.notify_all();
        if let Err(error) = written {
            tracing::warn!(%error, "answers cannot be written any more");
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_and_those_that_are_too_long_are_passed_over() {
        let long = vec![b'x'; MESSAGE_BYTES_MAX + 10];
        let input = [b"one\n", long.as_slice(), b"\ntwo\nhalf"].concat();
        let (sender, mut lines) = mpsc::channel(10);
        read_lines(Box::new(std::io::Cursor::new(input)), &sender);
        drop(sender);
        let mut found = Vec::new();
        while let Some(line) = lines.blocking_recv() {
            found.push(match line {
                Incoming::Line(line) => String::from_utf8(line).unwrap(),
                Incoming::TooLong => "too long".to_owned(),
            });
        }
        // What no end of line follows is no message.
        assert_eq!(found, ["one", "too long", "two"]);
    }
}
