//! One session over HTTP: what its client sends goes in at one place, what it is told goes out on many streams.
//!
//! Each request has a stream of its own; what belongs to none goes out on the stream that the client opens for
//! it. Nothing waits for a reader here: a client that does not read loses its connection, and may ask for what
//! it missed as long as that is kept.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, GetExtensions, GetMeta, ProgressToken,
    ProtocolVersion, RequestId, ServerNotification, ServerResult,
};
use rmcp::service::{OriginatingRequestId, RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::streamable_http_server::session::ServerSseMessage;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::super::server::Disconnected;
use super::size;

/// Messages of a client that wait to be handled.
const INCOMING_MAX: usize = 64;

/// The stream of what belongs to no request.
const COMMON: u64 = 0;

/// Messages of one stream that are kept for a client that lost its connection.
const EVENTS_MAX: usize = 256;

/// Streams that have ended and are kept, and bytes of everything that is kept.
const ENDED_MAX: usize = 32;
const KEPT_BYTES_MAX: usize = 2 * 1024 * 1024;

/// When a client is to ask again whose connection was lost.
const RETRY: Duration = Duration::from_secs(1);

/// What a client reads from one stream.
pub(super) type Events = mpsc::UnboundedReceiver<ServerSseMessage>;

/// A session.
pub(super) struct Session {
    incoming: Mutex<Option<mpsc::Sender<ClientJsonRpcMessage>>>,
    streams: Mutex<Streams>,
    left: Arc<AtomicBool>,
    used: Mutex<Instant>,
}

#[derive(Default)]
struct Streams {
    all: BTreeMap<u64, Stream>,
    last: u64,
    requests: HashMap<RequestId, u64>,
    tokens: HashMap<ProgressToken, u64>,
    ended: VecDeque<u64>,
    kept_bytes: usize,
    /// What was agreed on; nothing before.
    version: Option<ProtocolVersion>,
}

#[derive(Default)]
struct Stream {
    events: VecDeque<Event>,
    last: u64,
    reader: Option<mpsc::UnboundedSender<ServerSseMessage>>,
    ended: bool,
}

struct Event {
    number: u64,
    message: Arc<TxJsonRpcMessage<RoleServer>>,
    bytes: usize,
}

/// A session as the SDK wants it.
pub(super) struct SessionWire {
    session: Arc<Session>,
    incoming: mpsc::Receiver<ClientJsonRpcMessage>,
}

impl Session {
    pub(super) fn open() -> (Arc<Session>, SessionWire) {
        let (sender, incoming) = mpsc::channel(INCOMING_MAX);
        let mut streams = Streams::default();
        streams.all.insert(COMMON, Stream::default());
        let session = Arc::new(Session {
            incoming: Mutex::new(Some(sender)),
            streams: Mutex::new(streams),
            left: Arc::default(),
            used: Mutex::new(tokio::time::Instant::now()),
        });
        let wire = SessionWire {
            session: Arc::clone(&session),
            incoming,
        };
        (session, wire)
    }

    fn streams(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sender(&self) -> Option<mpsc::Sender<ClientJsonRpcMessage>> {
        let incoming = self.incoming.lock();
        incoming.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes that the session is used.
    pub(super) fn touch(&self) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        *used = tokio::time::Instant::now();
    }

    /// Since when nobody has used it; nothing while somebody listens or a request is under way.
    pub(super) fn unused_since(&self) -> Option<Instant> {
        let streams = self.streams();
        let busy = |(number, stream): (&u64, &Stream)| {
            let heard = stream.reader.as_ref();
            let under_way = *number != COMMON && !stream.ended;
            under_way || heard.is_some_and(|reader| !reader.is_closed())
        };
        if streams.all.iter().any(busy) {
            return None;
        }
        drop(streams);
        Some(*self.used.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether a request is under way.
    pub(super) fn answers(&self) -> bool {
        !self.streams().requests.is_empty()
    }

    /// Whether a request with this id is under way.
    pub(super) fn answers_to(&self, id: &RequestId) -> bool {
        self.streams().requests.contains_key(id)
    }

    /// Whether the version that was agreed on has batches.
    pub(super) fn has_batches(&self) -> bool {
        self.streams().version == Some(ProtocolVersion::V_2025_03_26)
    }

    /// Ends it. Cancellations from then on are not attributed to the client.
    pub(super) fn close(&self) {
        self.left.store(true, Ordering::Release);
        let mut incoming = self.incoming.lock().unwrap_or_else(PoisonError::into_inner);
        *incoming = None;
        drop(incoming);
        for stream in self.streams().all.values_mut() {
            stream.reader = None;
        }
    }

    /// Hands a message of the client over; `false`: the session has ended.
    pub(super) async fn hand_over(&self, message: ClientJsonRpcMessage) -> bool {
        if let ClientJsonRpcMessage::Notification(notification) = &message
            && let ClientNotification::CancelledNotification(cancelled) = &notification.notification
            && let Some(id) = &cancelled.params.request_id
        {
            // It will not be answered.
            self.streams().end_request(id);
        }
        match self.sender() {
            Some(sender) => sender.send(message).await.is_ok(),
            None => false,
        }
    }

    /// A stream for the answer to this request, before it is handed over.
    pub(super) fn stream_of(&self, message: &mut ClientJsonRpcMessage) -> Option<Events> {
        let ClientJsonRpcMessage::Request(request) = message else {
            return None;
        };
        let left = Disconnected(Arc::clone(&self.left));
        request.request.extensions_mut().insert(left);
        let token = request.request.get_meta().get_progress_token();
        Some(self.streams().begin(request.id.clone(), token))
    }

    /// The stream of what belongs to no request. A client that opens it again leaves the former.
    pub(super) fn common(&self) -> Events {
        let mut streams = self.streams();
        let (reader, events) = mpsc::unbounded_channel();
        let Some(stream) = streams.all.get_mut(&COMMON) else {
            return events;
        };
        // What nobody has heard of yet.
        let unheard = stream.reader.is_none();
        if unheard {
            stream.replay(COMMON, 0, &reader);
        }
        stream.reader = Some(reader);
        events
    }

    /// Whether the stream of this event is kept, and has come as far.
    pub(super) fn keeps(&self, event: &str) -> bool {
        let Some((number, after)) = place_of(event) else {
            return false;
        };
        let streams = self.streams();
        let stream = streams.all.get(&number);
        stream.is_some_and(|stream| after <= stream.last)
    }

    /// Goes on with a stream after the event with this id; nothing when it is not kept any more.
    pub(super) fn resume(&self, id: &str) -> Option<Events> {
        let (number, after) = place_of(id)?;
        let mut streams = self.streams();
        let stream = streams.all.get_mut(&number)?;
        let (reader, events) = mpsc::unbounded_channel();
        stream.replay(number, after, &reader);
        if !stream.ended {
            stream.reader = Some(reader);
        }
        Some(events)
    }
}

/// The stream of an event, and its number there.
fn place_of(event: &str) -> Option<(u64, u64)> {
    let (number, after) = event.split_once('-')?;
    Some((number.parse().ok()?, after.parse().ok()?))
}

impl Streams {
    fn begin(&mut self, id: RequestId, token: Option<ProgressToken>) -> Events {
        // Two requests with one id cannot be told apart: the former is not answered.
        self.end_request(&id);
        self.last += 1;
        let number = self.last;
        let (reader, events) = mpsc::unbounded_channel();
        if self.version.as_ref() >= Some(&ProtocolVersion::V_2025_11_25) {
            // Makes it possible to go on with a stream of which nothing was read.
            let _ = reader.send(ServerSseMessage::priming(format!("{number}-0"), RETRY));
        }
        let stream = Stream {
            reader: Some(reader),
            ..Stream::default()
        };
        self.all.insert(number, stream);
        self.requests.insert(id, number);
        if let Some(token) = token {
            self.tokens.insert(token, number);
        }
        events
    }

    fn end_request(&mut self, id: &RequestId) {
        let Some(number) = self.requests.remove(id) else {
            return;
        };
        self.tokens.retain(|_, of| *of != number);
        if let Some(stream) = self.all.get_mut(&number) {
            stream.ended = true;
            stream.reader = None;
            self.ended.push_back(number);
        }
        self.tidy();
    }

    /// Forgets what ended longest ago, as far as too much is kept.
    fn tidy(&mut self) {
        while self.ended.len() > ENDED_MAX || self.kept_bytes > KEPT_BYTES_MAX {
            let Some(oldest) = self.ended.pop_front() else {
                return;
            };
            if let Some(stream) = self.all.remove(&oldest) {
                let bytes: usize = stream.events.iter().map(|event| event.bytes).sum();
                self.kept_bytes = self.kept_bytes.saturating_sub(bytes);
            }
        }
    }

    /// Tells the client something, on the stream where it belongs.
    fn tell(&mut self, message: TxJsonRpcMessage<RoleServer>) {
        let answered = match &message {
            TxJsonRpcMessage::<RoleServer>::Response(response) => {
                if let ServerResult::InitializeResult(result) = &response.result {
                    self.version = Some(result.protocol_version.clone());
                }
                Some(response.id.clone())
            }
            TxJsonRpcMessage::<RoleServer>::Error(error) => error.id.clone(),
            _ => None,
        };
        let number = match (&answered, &message) {
            (Some(id), _) => self.requests.get(id).copied(),
            // A question that belongs to a call goes where its answer will.
            (None, TxJsonRpcMessage::<RoleServer>::Request(one)) => {
                let call = one.request.extensions().get::<OriginatingRequestId>();
                let stream = call.and_then(|OriginatingRequestId(call)| self.requests.get(call));
                Some(stream.copied().unwrap_or(COMMON))
            }
            (None, TxJsonRpcMessage::<RoleServer>::Notification(one)) => match &one.notification {
                ServerNotification::ProgressNotification(progress) => {
                    self.tokens.get(&progress.params.progress_token).copied()
                }
                _ => Some(COMMON),
            },
            (None, _) => Some(COMMON),
        };
        // Nobody waits for the answer to a request that was cancelled, or for its progress.
        let Some(stream) = number.and_then(|number| self.all.get_mut(&number)) else {
            return;
        };
        let bytes = size::of(&message);
        let dropped = stream.tell(number.unwrap_or(COMMON), message, bytes);
        self.kept_bytes = (self.kept_bytes + bytes).saturating_sub(dropped);
        if let Some(id) = answered {
            self.end_request(&id);
        }
    }
}

impl Stream {
    /// Sends and keeps a message; the bytes of what is not kept for it any more.
    fn tell(&mut self, own: u64, message: TxJsonRpcMessage<RoleServer>, bytes: usize) -> usize {
        self.last += 1;
        let event = Event {
            number: self.last,
            message: Arc::new(message),
            bytes,
        };
        if let Some(reader) = &self.reader
            && reader.send(event.shown(own)).is_err()
        {
            self.reader = None;
        }
        self.events.push_back(event);
        if self.events.len() <= EVENTS_MAX {
            return 0;
        }
        self.events.pop_front().map_or(0, |event| event.bytes)
    }

    fn replay(&self, own: u64, after: u64, reader: &mpsc::UnboundedSender<ServerSseMessage>) {
        for event in self.events.iter().filter(|event| event.number > after) {
            let _ = reader.send(event.shown(own));
        }
    }
}

impl Event {
    fn shown(&self, own: u64) -> ServerSseMessage {
        let mut shown = ServerSseMessage::default();
        shown.event_id = Some(format!("{own}-{}", self.number));
        shown.message = Some(Arc::clone(&self.message));
        shown
    }
}

impl Transport<RoleServer> for SessionWire {
    type Error = Infallible;

    /// Hands the message over at once, so that answers and notifications keep their order.
    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
        self.session.touch();
        self.session.streams().tell(item);
        std::future::ready(Ok(()))
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        self.incoming.recv().await
    }

    async fn close(&mut self) -> Result<(), Infallible> {
        self.session.close();
        Ok(())
    }
}
