//! Messages, one a line, over a pair of streams: bounded, and nothing that is written there ends the server.

use std::collections::{HashSet, VecDeque};
use std::convert::Infallible;
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc as blocking};

use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, GetMeta, ProtocolVersion, RequestId,
};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::sync::mpsc;

use super::batch::{BATCHES_MAX, Batch, Batches, MESSAGES_MAX};
use super::message::{self, INVALID_PARAMS, INVALID_REQUEST, is_under_way, refusal};
use super::unwritten::Unwritten;

/// Bytes of one message that is accepted.
pub(super) const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Messages that are read ahead.
const AHEAD: usize = 16;

enum Incoming {
    Line(Vec<u8>),
    TooLong,
}

/// The two streams as the SDK wants them.
pub(super) struct Wire {
    incoming: mpsc::Receiver<Incoming>,
    outgoing: Arc<Outgoing>,
    ended: Arc<AtomicBool>,
    /// Whether there was a handshake: before, each request says for itself what it takes.
    shaken: bool,
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
    waiting: Arc<Unwritten>,
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
        let waiting = Arc::new(Unwritten::new());
        let (sender, messages) = blocking::channel();
        let shared = Arc::clone(&waiting);
        std::thread::Builder::new()
            .name("mcp-out".to_owned())
            .spawn(move || write_messages(output, &messages, &shared))?;
        Ok(Wire {
            incoming,
            outgoing: Arc::new(Outgoing { sender, waiting }),
            ended,
            shaken: false,
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
        let taken = match message::read(line) {
            Ok(Value::Array(items)) => return self.take_batch(items),
            Ok(value) => message::of(value).and_then(|message| self.accepted(message)),
            Err(refusal) => Err(refusal),
        };
        match taken {
            Ok(message) => self.admit(message),
            Err(refusal) => self.outgoing.put(refusal.to_string()),
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
            match message::of(item).and_then(|message| self.accepted(message)) {
                Ok(message) => {
                    if let (ClientJsonRpcMessage::Request(_), Some(id)) = (&message, id) {
                        batch.awaits(id);
                    }
                    messages.push(message);
                }
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

    /// Refuses a request that belongs to no session and does not stand alone, and one with the id of another that
    /// is under way: their answers could not be told apart.
    fn accepted(&mut self, message: ClientJsonRpcMessage) -> Result<ClientJsonRpcMessage, Value> {
        let ClientJsonRpcMessage::Request(request) = &message else {
            return Ok(message);
        };
        if let Some(refusal) = message::misread_beginning(&message) {
            return Err(refusal);
        }
        let missing = self.missing(&request.request);
        if !missing.is_empty() {
            let id = serde_json::to_value(&request.id).unwrap_or_default();
            let why = format!(
                "no session has begun: send `initialize` first, or say in `_meta` of each request {} (2026-07-28)",
                message::quoted(&missing)
            );
            return Err(refusal(&id, INVALID_PARAMS, &why));
        }
        if !self.under_way.insert(request.id.clone()) {
            let why = format!("Invalid Request: {}", is_under_way(&request.id));
            return Err(refusal(&Value::Null, INVALID_REQUEST, &why));
        }
        Ok(message)
    }

    /// What a request does not say that it would have to say before a handshake.
    fn missing(&self, request: &ClientRequest) -> Vec<&'static str> {
        match request {
            ClientRequest::InitializeRequest(_)
            | ClientRequest::DiscoverRequest(_)
            | ClientRequest::PingRequest(_) => Vec::new(),
            _ if self.shaken => Vec::new(),
            other => other
                .get_meta()
                .missing_required_keys(&ProtocolVersion::V_2026_07_28),
        }
    }

    /// Hands a message on.
    fn admit(&mut self, message: ClientJsonRpcMessage) {
        match &message {
            ClientJsonRpcMessage::Request(request) => {
                if let ClientRequest::InitializeRequest(initialize) = &request.request {
                    self.shaken = true;
                    // A version that is known is the one that is agreed on.
                    self.batched =
                        initialize.params.protocol_version == ProtocolVersion::V_2025_03_26;
                }
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
            TxJsonRpcMessage::<RoleServer>::Response(response) => Some(&response.id),
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
            let waiting = &self.outgoing.waiting;
            // Before both are looked at: what happens from here on is told.
            let written = waiting.next();
            if waiting.is_gone() {
                return None;
            }
            if waiting.is_full() {
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

impl Outgoing {
    fn put(&self, text: String) {
        let length = text.len();
        self.waiting.add(length);
        if self.sender.send(text).is_err() {
            self.waiting.take(length);
        }
    }

    /// What waits for its reader.
    pub(super) fn unwritten(&self) -> Arc<Unwritten> {
        Arc::clone(&self.waiting)
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
    waiting: &Unwritten,
) {
    while let Ok(mut text) = messages.recv() {
        let length = text.len();
        text.push('\n');
        let written = output
            .write_all(text.as_bytes())
            .and_then(|()| output.flush());
        waiting.wrote(length, written.is_ok());
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
