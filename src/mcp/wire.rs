//! Messages, one a line, over a pair of streams: bounded, and nothing that is written there ends the server.

use std::collections::{HashSet, VecDeque};
use std::convert::Infallible;
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, mpsc as blocking};
use std::time::Duration;

use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, GetMeta, ProtocolVersion, RequestId,
    ServerResult,
};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};

use super::batch::{BATCHES_MAX, Batch, Batches, MESSAGES_MAX};

/// Bytes of one message that is accepted.
pub(super) const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Messages that are read ahead.
const AHEAD: usize = 16;

/// Bytes that wait to be written before no more requests are read.
const WAITING_BYTES_MAX: usize = 8 * 1024 * 1024;

/// How long the last answers may take to be read.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Refusals of the protocol that lies below.
pub(super) const PARSE_ERROR: i32 = -32_700;
pub(super) const INVALID_REQUEST: i32 = -32_600;
pub(super) const INVALID_PARAMS: i32 = -32_602;

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
    /// Whether the version of the session has batches.
    batched: bool,
    batches: Batches,
    /// Requests that are not answered yet. The SDK would lose one of two with the same id.
    under_way: HashSet<RequestId>,
    /// Messages that wait for the SDK.
    admitted: VecDeque<ClientJsonRpcMessage>,
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
            batched: false,
            batches: Batches::default(),
            under_way: HashSet::new(),
            admitted: VecDeque::new(),
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

    /// Takes a line in; what is no message is answered.
    fn take(&mut self, line: &[u8]) {
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        match serde_json::from_slice(line) {
            Ok(Value::Array(items)) => self.take_batch(items),
            Ok(value) => match message(value) {
                Ok(message) => match self.has_its_id_to_itself(&message) {
                    Ok(()) => self.admit(message),
                    Err(refusal) => self.outgoing.put(refusal.to_string()),
                },
                Err(refusal) => self.outgoing.put(refusal.to_string()),
            },
            Err(error) => {
                let why = format!("Parse error: {error}");
                self.refuse(PARSE_ERROR, &why);
            }
        }
    }

    /// Takes several messages in, whose answers go out together.
    fn take_batch(&mut self, items: Vec<Value>) {
        if !self.batched {
            return self.refuse(
                INVALID_REQUEST,
                "Invalid Request: this version of the protocol has no batches",
            );
        }
        if items.is_empty() || items.len() > MESSAGES_MAX || self.batches.is_full() {
            let why = format!(
                "Invalid Request: a batch holds 1 to {MESSAGES_MAX} messages, and {BATCHES_MAX} may be under way"
            );
            return self.refuse(INVALID_REQUEST, &why);
        }
        let mut batch = Batch::default();
        let mut messages = Vec::new();
        for item in items {
            let id = item.get("id").cloned();
            match message(item) {
                Ok(message) => match self.has_its_id_to_itself(&message) {
                    Ok(()) => {
                        if let (ClientJsonRpcMessage::Request(_), Some(id)) = (&message, id) {
                            batch.awaits(id);
                        }
                        messages.push(message);
                    }
                    Err(refusal) => batch.answered(refusal),
                },
                Err(refusal) => batch.answered(refusal),
            }
        }
        if let Some(answers) = self.batches.begin(batch) {
            self.outgoing.put(answers.to_string());
        }
        for message in messages {
            self.admit(message);
        }
    }

    /// Refuses a request with the id of one that is under way: their answers could not be told apart.
    fn has_its_id_to_itself(&mut self, message: &ClientJsonRpcMessage) -> Result<(), Value> {
        match message {
            ClientJsonRpcMessage::Request(request)
                if !self.under_way.insert(request.id.clone()) =>
            {
                let why = format!("Invalid Request: {}", is_under_way(&request.id));
                Err(refusal(&Value::Null, INVALID_REQUEST, &why))
            }
            _ => Ok(()),
        }
    }

    /// Hands a message on. Before a session has begun the SDK ends at anything but a request.
    fn admit(&mut self, message: ClientJsonRpcMessage) {
        match &message {
            ClientJsonRpcMessage::Request(request) => {
                self.begun |= match &request.request {
                    ClientRequest::InitializeRequest(_) => true,
                    ClientRequest::DiscoverRequest(_) | ClientRequest::PingRequest(_) => false,
                    other => {
                        let meta = other.get_meta();
                        meta.missing_required_keys(&ProtocolVersion::V_2026_07_28)
                            .is_empty()
                    }
                };
            }
            _ if !self.begun => {
                tracing::warn!("a message that is no request came before `initialize`");
                return;
            }
            ClientJsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                {
                    self.give_up(cancelled.params.request_id.as_ref());
                }
            }
            ClientJsonRpcMessage::Response(_) | ClientJsonRpcMessage::Error(_) => {}
        }
        self.admitted.push_back(message);
    }

    /// A request that was cancelled is not answered: its batch waits for it no longer.
    fn give_up(&mut self, id: Option<&RequestId>) {
        if let Some(id) = id {
            self.under_way.remove(id);
        }
        let id = id.and_then(|id| serde_json::to_value(id).ok());
        let answers = id.and_then(|id| self.batches.settle(&id, None));
        if let Some(answers) = answers {
            self.outgoing.put(answers.to_string());
        }
    }

    fn refuse(&self, code: i32, why: &str) {
        self.outgoing
            .put(refusal(&Value::Null, code, why).to_string());
    }

    /// Writes an answer, or keeps it for its batch.
    fn put(&mut self, item: &TxJsonRpcMessage<RoleServer>) -> serde_json::Result<()> {
        let id = match item {
            TxJsonRpcMessage::<RoleServer>::Response(response) => {
                if let ServerResult::InitializeResult(result) = &response.result {
                    self.batched = result.protocol_version == ProtocolVersion::V_2025_03_26;
                }
                Some(&response.id)
            }
            TxJsonRpcMessage::<RoleServer>::Error(error) => error.id.as_ref(),
            _ => None,
        };
        if let Some(id) = id {
            self.under_way.remove(id);
        }
        if let Some(id) = id.filter(|_| self.batched) {
            let id = serde_json::to_value(id)?;
            if self.batches.await_answer_to(&id) {
                let answer = serde_json::to_value(item)?;
                if let Some(answers) = self.batches.settle(&id, Some(answer)) {
                    self.outgoing.put(answers.to_string());
                }
                return Ok(());
            }
        }
        self.outgoing.put(serde_json::to_string(item)?);
        Ok(())
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
        if let Err(error) = self.put(&item) {
            tracing::error!(%error, "an answer cannot be written as JSON");
        }
        std::future::ready(Ok(()))
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if let Some(message) = self.admitted.pop_front() {
                return Some(message);
            }
            match self.next().await? {
                Incoming::Line(line) => self.take(&line),
                Incoming::TooLong => {
                    let why = format!("Invalid Request: more than {MESSAGE_BYTES_MAX} bytes");
                    self.refuse(INVALID_REQUEST, &why);
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

/// The message that a value is; otherwise what to answer.
pub(super) fn message(value: Value) -> Result<ClientJsonRpcMessage, Value> {
    let id = value
        .get("id")
        .filter(|id| id.is_string() || id.is_i64() || id.is_u64());
    let id = id.cloned().unwrap_or(Value::Null);
    // An id that is none makes no notification of a request.
    if value.get("id").is_some() && value.get("method").is_some() && id.is_null() {
        let why = "Invalid Request: `id` is a text or a whole number";
        return Err(refusal(&id, INVALID_REQUEST, why));
    }
    serde_json::from_value(value)
        .map_err(|error| refusal(&id, INVALID_REQUEST, &format!("Invalid Request: {error}")))
}

/// Why a request is refused whose id another has that is not answered yet.
pub(super) fn is_under_way(id: &RequestId) -> String {
    format!("a request with the id {id} is under way")
}

pub(super) fn refusal(id: &Value, code: i32, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
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
