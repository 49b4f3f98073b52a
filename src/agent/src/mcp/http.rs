//! A server behind an address: every message is a request of its own, answered by JSON or by events.
//!
//! The stream that a server may offer for messages of its own is not opened: nothing in it would be heard.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Response, Url};
use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, RequestId, ServerJsonRpcMessage, ServerResult,
};
use rmcp::transport::Transport;
use tokio::sync::{mpsc, oneshot};

use super::error::McpFailure;
use super::inbound::Inbound;
use crate::attempt::{drain, read_some, redirected_to, why_not_connected};
use crate::clean;
use crate::client;
use crate::dialect::host;
use crate::frames::{Frames, Framing};
use crate::model::Key;
use crate::status::message_in;

/// Name lookup, connection and TLS handshake together.
const CONNECT: Duration = Duration::from_secs(10);
const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// The client's side of the connection.
pub(super) struct Http {
    endpoint: Arc<Endpoint>,
    inbox: mpsc::Receiver<ServerJsonRpcMessage>,
}

struct Endpoint {
    http: reqwest::Client,
    url: Url,
    /// With the values that must not be shown.
    keys: Vec<Key>,
    limit_bytes: usize,
    /// Sent with each request; those of the session are added by its first answer.
    headers: Mutex<HeaderMap>,
    /// Requests without an answer. Dropping the sender ends the exchange.
    open: Mutex<HashMap<RequestId, oneshot::Sender<()>>>,
    answers: mpsc::Sender<ServerJsonRpcMessage>,
}

impl Http {
    pub(super) fn new(
        url: &str,
        headers: &[(String, Key)],
        proxy_from_environment: bool,
        limit_bytes: usize,
    ) -> Result<Self, McpFailure> {
        let settings = |why: String| McpFailure::Settings(why);
        let url = Url::parse(url)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
            .ok_or_else(|| settings("its `url` is neither `http://` nor `https://`".into()))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(settings(
                "its `url` holds a password; give it as a header".into(),
            ));
        }
        let mut map = HeaderMap::new();
        for (name, key) in headers {
            let unfit = || settings(format!("its header `{name}` cannot be sent"));
            let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unfit())?;
            let mut value = HeaderValue::from_str(key.value()).map_err(|_| unfit())?;
            value.set_sensitive(true);
            map.insert(header, value);
        }
        map.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let accept = HeaderValue::from_static("application/json, text/event-stream");
        map.insert(ACCEPT, accept);
        // Large answers do not pile up. One fits in: `rmcp` receives the first only when its exchange is over.
        let (answers, inbox) = mpsc::channel(1);
        let endpoint = Endpoint {
            http: client::http(CONNECT, proxy_from_environment, url.scheme() == "https")
                .map_err(|_| settings(client::NO_TLS.into()))?,
            url,
            keys: headers.iter().map(|(_, key)| key.clone()).collect(),
            limit_bytes,
            headers: Mutex::new(map),
            open: Mutex::default(),
            answers,
        };
        Ok(Self {
            endpoint: Arc::new(endpoint),
            inbox,
        })
    }
}

impl Transport<RoleClient> for Http {
    type Error = McpFailure;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), McpFailure>> + Send + 'static {
        let endpoint = Arc::clone(&self.endpoint);
        let mut request = None;
        match &message {
            ClientJsonRpcMessage::Request(asked) => {
                request = Some((asked.id.clone(), endpoint.opened(&asked.id)));
            }
            ClientJsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                {
                    endpoint.closed(cancelled.params.request_id.as_ref());
                }
            }
            ClientJsonRpcMessage::Response(_) | ClientJsonRpcMessage::Error(_) => {}
        }
        async move {
            let body = serde_json::to_vec(&message)
                .map_err(|_| McpFailure::Settings("a message cannot be written".into()))?;
            let Some((id, given_up)) = request else {
                return endpoint.post(body).await.map(drop);
            };
            let exchanged = tokio::select! {
                exchanged = endpoint.exchange(body, &id) => exchanged,
                _ = given_up => Ok(()),
            };
            endpoint.closed(Some(&id));
            exchanged
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        self.inbox.recv().await
    }

    /// Ends the session, if the server keeps one.
    async fn close(&mut self) -> Result<(), McpFailure> {
        let headers = self.endpoint.headers();
        if headers.contains_key(SESSION_ID) {
            let delete = self.endpoint.http.delete(self.endpoint.url.clone());
            // The server ends it in time anyway.
            _ = delete.headers(headers).send().await;
        }
        Ok(())
    }
}

impl Endpoint {
    fn headers(&self) -> HeaderMap {
        self.headers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn set_header(&self, name: HeaderName, value: HeaderValue) {
        let mut headers = self.headers.lock().unwrap_or_else(PoisonError::into_inner);
        headers.insert(name, value);
    }

    fn opened(&self, id: &RequestId) -> oneshot::Receiver<()> {
        let (sender, given_up) = oneshot::channel();
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.insert(id.clone(), sender);
        given_up
    }

    fn closed(&self, id: Option<&RequestId>) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        id.map(|id| open.remove(id));
    }

    /// Sends a message and returns the head of a successful response.
    async fn post(&self, body: Vec<u8>) -> Result<Response, McpFailure> {
        let post = self.http.post(self.url.clone());
        let sent = post.headers(self.headers()).body(body).send().await;
        let response = sent.map_err(|error| self.not_sent(error))?;
        let status = response.status().as_u16();
        if response.status().is_redirection() {
            let to = self.clean(&redirected_to(&response));
            return Err(McpFailure::Redirected { status, to });
        }
        if response.status().is_success() {
            return Ok(response);
        }
        // What the server says is left out there: some repeat the key, in parts.
        let message = if matches!(status, 401 | 403) {
            let keys: Vec<_> = self.keys.iter().map(Key::reference).collect();
            match keys.as_slice() {
                [] => "no header was sent".into(),
                keys => format!("the values of `{}` were sent", keys.join("`, `")),
            }
        } else {
            let body = read_some(response, Vec::new()).await;
            let message = self.clean(&message_in(&body).unwrap_or_default());
            if message.is_empty() {
                "it does not say why".into()
            } else {
                message
            }
        };
        Err(McpFailure::Refused { status, message })
    }

    /// Sends a request and reads until its answer, which goes to `rmcp`.
    async fn exchange(&self, body: Vec<u8>, id: &RequestId) -> Result<(), McpFailure> {
        let mut response = self.post(body).await?;
        if let Some(session) = response.headers().get(SESSION_ID) {
            self.set_header(SESSION_ID, session.clone());
        }
        let kind = response.headers().get(CONTENT_TYPE);
        let kind = kind
            .and_then(|kind| kind.to_str().ok())
            .unwrap_or("nothing");
        let mut frames = if kind.starts_with("text/event-stream") {
            Some(Frames::new(Framing::Events, self.limit_bytes))
        } else if kind.starts_with("application/json") {
            None
        } else {
            let why = format!("its answer is `{}`", self.clean(kind));
            return Err(McpFailure::Protocol(why));
        };
        let (mut whole, mut messages) = (Vec::new(), Vec::new());
        let limit_bytes = self.limit_bytes;
        let too_large = McpFailure::TooLarge { limit_bytes };
        loop {
            let Ok(piece) = response.chunk().await else {
                return Err(McpFailure::Closed("it broke in the middle of an answer"));
            };
            match (&piece, &mut frames) {
                (Some(piece), Some(frames)) => {
                    frames
                        .push(piece, &mut messages)
                        .map_err(|_| too_large.clone())?;
                }
                (Some(piece), None) if whole.len() + piece.len() > limit_bytes => {
                    return Err(too_large);
                }
                (Some(piece), None) => whole.extend_from_slice(piece),
                (None, Some(frames)) => frames.finish(&mut messages),
                (None, None) => messages.push(std::mem::take(&mut whole)),
            }
            for message in messages.drain(..) {
                if self.take(&message, id).await? {
                    drain(response);
                    return Ok(());
                }
            }
            if piece.is_none() {
                return Err(McpFailure::Closed("an answer ended before its time"));
            }
        }
    }

    /// Takes a message; returns whether it was the answer to this request.
    async fn take(&self, message: &[u8], id: &RequestId) -> Result<bool, McpFailure> {
        match Inbound::read(message) {
            Inbound::Notice => Ok(false),
            Inbound::Asked(reply) => {
                // The answer may still come if this fails.
                _ = self.post(reply).await;
                Ok(false)
            }
            Inbound::Malformed => Err(McpFailure::Protocol("an answer cannot be read".into())),
            Inbound::Noise => Err(McpFailure::NotJson {
                said: self.clean(&String::from_utf8_lossy(message)),
            }),
            Inbound::Answer(mut answer) => {
                let is_ours = match &mut *answer {
                    ServerJsonRpcMessage::Response(response) => {
                        if let ServerResult::InitializeResult(begun) = &response.result
                            && let Ok(version) =
                                HeaderValue::from_str(begun.protocol_version.as_str())
                        {
                            self.set_header(PROTOCOL_VERSION, version);
                        }
                        // As text, because some servers write the number so.
                        response.id.to_string() == id.to_string()
                    }
                    // An error without an id answers what was sent.
                    ServerJsonRpcMessage::Error(error) => {
                        error.id.get_or_insert_with(|| id.clone()).to_string() == id.to_string()
                    }
                    ServerJsonRpcMessage::Request(_) | ServerJsonRpcMessage::Notification(_) => {
                        false
                    }
                };
                if is_ours {
                    // Fails only if nobody waits any more.
                    _ = self.answers.send(*answer).await;
                }
                Ok(is_ours)
            }
        }
    }

    fn not_sent(&self, error: reqwest::Error) -> McpFailure {
        if !error.is_connect() {
            return McpFailure::Closed("it broke before an answer began");
        }
        McpFailure::Connect {
            host: host(&self.url),
            why: self.clean(&why_not_connected(error, CONNECT)),
        }
    }

    fn clean(&self, text: &str) -> String {
        clean::text(text, &self.keys.iter().collect::<Vec<_>>())
    }
}
