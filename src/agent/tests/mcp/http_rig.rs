//! A tool server over real HTTP on the loopback device.

use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::serve::ListenerExt as _;
use futures_util::stream;
use serde_json::Value;
use tokio::sync::oneshot;
use workerctl_agent::Key;
use workerctl_agent::mcp::Connection;

pub(crate) const KEY: &str = "Bearer sk-test-9f8e7d6c5b4a39281706";

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

/// How a stream of events ends.
#[derive(Clone, Copy)]
pub(crate) enum End {
    Whole,
    Reset,
    Silent,
}

/// What is answered to a request.
pub(crate) enum Answer {
    Accepted,
    Json(Value),
    /// Messages, each an event.
    Events(Vec<Value>, End),
    Raw {
        status: u16,
        headers: Vec<(&'static str, String)>,
        body: String,
    },
    /// Not even a head.
    Nothing,
}

impl Answer {
    pub(crate) fn raw(status: u16, kind: &str, body: impl Into<String>) -> Self {
        Self::Raw {
            status,
            headers: vec![("content-type", kind.into())],
            body: body.into(),
        }
    }
}

type Script = dyn Fn(&Seen) -> Answer + Send + Sync;

struct Shared {
    script: Box<Script>,
    seen: Mutex<Vec<Seen>>,
    came: Condvar,
}

/// A server that runs until it is dropped.
pub(crate) struct HttpServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl HttpServer {
    pub(crate) fn start(script: impl Fn(&Seen) -> Answer + Send + Sync + 'static) -> Self {
        let shared = Arc::new(Shared {
            script: Box::new(script),
            seen: Mutex::default(),
            came: Condvar::new(),
        });
        let app = Router::new()
            .fallback(answer)
            .with_state(Arc::clone(&shared));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let (end, ended) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                // Without it a reply waits 40 ms for an acknowledgement.
                let listener = listener.tap_io(|socket| socket.set_nodelay(true).unwrap());
                tokio::select! {
                    served = axum::serve(listener, app) => served.unwrap(),
                    _ = ended => {}
                }
            });
        });
        Self {
            address,
            shared,
            end: Some(end),
            thread: Some(thread),
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    pub(crate) fn connection(&self) -> Connection {
        at(self.url())
    }

    pub(crate) fn requests(&self) -> Vec<Seen> {
        self.shared.seen.lock().unwrap().clone()
    }

    /// Blocks until such a request came.
    pub(crate) fn wait_for(&self, is_such: impl Fn(&Seen) -> bool) -> Seen {
        let seen = self.shared.seen.lock().unwrap();
        let none = |seen: &mut Vec<Seen>| !seen.iter().any(&is_such);
        let limit = Duration::from_mins(1);
        let waited = self.shared.came.wait_timeout_while(seen, limit, none);
        let (seen, _) = waited.unwrap();
        seen.iter().find(|seen| is_such(seen)).cloned().unwrap()
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            _ = thread.join();
        }
    }
}

/// A connection with a key in a header.
pub(crate) fn at(url: String) -> Connection {
    Connection::Http {
        url,
        headers: vec![("Authorization".into(), Key::new("TEST_MCP_KEY", KEY))],
        proxy_from_environment: false,
    }
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    let seen = Seen {
        method: parts.method.to_string(),
        headers: parts.headers,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    };
    shared.seen.lock().unwrap().push(seen.clone());
    shared.came.notify_all();
    let response = Response::builder().header("mcp-session-id", "session-1");
    match (shared.script)(&seen) {
        Answer::Accepted => response.status(202).body(Body::empty()),
        Answer::Json(value) => response
            .header("content-type", "application/json; charset=utf-8")
            .body(value.to_string().into()),
        Answer::Events(messages, end) => response
            .header("content-type", "text/event-stream")
            .body(events(messages, end)),
        Answer::Raw {
            status,
            headers,
            body,
        } => headers
            .into_iter()
            .fold(response.status(status), |response, (name, value)| {
                response.header(name, value)
            })
            .body(body.into()),
        Answer::Nothing => std::future::pending().await,
    }
    .unwrap()
}

fn events(messages: Vec<Value>, end: End) -> Body {
    let event = |message: Value| Bytes::from(format!("id: 1\nevent: message\ndata: {message}\n\n"));
    // Some servers begin with an event that holds only an id.
    let mut events = vec![Bytes::from("id: 0\ndata: \n\n")];
    events.extend(messages.into_iter().map(event));
    let body = stream::unfold(events.into_iter(), move |mut events| async move {
        match (events.next(), end) {
            (Some(event), _) => Some((Ok(event), events)),
            (None, End::Whole) => None,
            (None, End::Reset) => Some((Err(std::io::Error::other("reset")), events)),
            (None, End::Silent) => std::future::pending().await,
        }
    });
    Body::from_stream(body)
}
