//! A model server that follows a script, over real HTTP on the loopback device.
//!
//! It speaks all five dialects at once, and answers each request in the one that its path belongs to, so
//! that one script serves every dialect. Tests of other packages include this folder by `#[path]`; it needs
//! `axum`, `tokio`, `futures-util` and `serde_json` as development dependencies.
//!
//! ```ignore
//! #[path = "../../src/agent/tests/server/mod.rs"]
//! #[expect(dead_code, reason = "only a part is used here")]
//! mod server;
//! use server::ModelServer;
//! use server::script::Say;
//! let server = ModelServer::start(vec![Say::text("done").into()]);
//! ```
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "what a test cannot set up fails it at once"
)]

pub(crate) mod render;
pub(crate) mod script;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::serve::ListenerExt as _;
use futures_util::stream;
use serde_json::Value;
use tokio::sync::{Semaphore, oneshot};

use render::Spoken;
use script::{End, Reply, Say};

/// Longer than any machine needs for what a test waits for.
const LONG: Duration = Duration::from_mins(1);

/// The frames of an answer, for tests that damage them.
pub(crate) fn frames(spoken: Spoken, say: &Say) -> Vec<String> {
    render::frames(spoken, say)
}

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

struct Shared {
    /// What is left of the script; the last reply is given again and again.
    script: Mutex<VecDeque<Reply>>,
    seen: Mutex<Vec<Seen>>,
    came: Condvar,
    /// Frames of gated replies that may be sent.
    gate: Semaphore,
}

/// A server that runs until it is dropped.
pub(crate) struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ModelServer {
    pub(crate) fn start(script: Vec<Reply>) -> Self {
        let resets = script.iter().any(Reply::resets);
        let shared = Arc::new(Shared {
            script: Mutex::new(script.into()),
            seen: Mutex::default(),
            came: Condvar::new(),
            gate: Semaphore::new(0),
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
                let listener = listener.tap_io(move |socket| {
                    // Without it a reply waits 40 ms for an acknowledgement.
                    socket.set_nodelay(true).unwrap();
                    if resets {
                        socket.set_zero_linger().unwrap();
                    }
                });
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

    /// `http://HOST:PORT`
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Replaces what is left of the script.
    pub(crate) fn follow(&self, script: Vec<Reply>) {
        *self.shared.script.lock().unwrap() = script.into();
    }

    /// All requests so far.
    pub(crate) fn requests(&self) -> Vec<Seen> {
        self.shared.seen.lock().unwrap().clone()
    }

    /// Blocks until so many requests came.
    pub(crate) fn wait_for_requests(&self, count: usize) {
        let seen = self.shared.seen.lock().unwrap();
        let few = |seen: &mut Vec<Seen>| seen.len() < count;
        let (_seen, waited) = self
            .shared
            .came
            .wait_timeout_while(seen, LONG, few)
            .unwrap();
        assert!(!waited.timed_out(), "fewer than {count} requests came");
    }

    /// Lets gated replies send so many frames more.
    pub(crate) fn let_through(&self, frames: usize) {
        self.shared.gate.add_permits(frames);
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            _ = thread.join();
        }
    }
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    request: Request,
) -> Result<Response, Infallible> {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    let path = parts.uri.path_and_query().unwrap().as_str().to_owned();
    let seen = Seen {
        path: path.clone(),
        headers: parts.headers,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    };
    let reply = {
        let mut script = shared.script.lock().unwrap();
        let next = script.front().cloned().expect("the script is empty");
        if script.len() > 1 {
            script.pop_front();
        }
        next
    };
    shared.seen.lock().unwrap().push(seen.clone());
    shared.came.notify_all();
    Ok(respond(shared, reply, Spoken::at(&path), &seen).await)
}

async fn respond(shared: Arc<Shared>, reply: Reply, spoken: Spoken, seen: &Seen) -> Response {
    match reply {
        Reply::Say(say) => {
            let frames = render::frames(spoken, &say);
            stream_of(shared, spoken.content_type(), frames, say.end, say.gated)
        }
        Reply::Frames { frames, end } => {
            stream_of(shared, spoken.content_type(), frames, end, false)
        }
        Reply::Status {
            status,
            headers,
            echo,
        } => {
            let text = if echo {
                // All that a careless server could repeat.
                format!("bad: {} {:?}", seen.body, seen.headers)
            } else {
                "it went wrong".into()
            };
            let mut response = Response::builder().status(StatusCode::from_u16(status).unwrap());
            for (name, value) in headers {
                response = response.header(name, value);
            }
            response
                .header("content-type", "application/json")
                .body(render::error(spoken, &text).into())
                .unwrap()
        }
        Reply::Raw { content_type, body } => Response::builder()
            .header("content-type", content_type)
            .body(body.into())
            .unwrap(),
        Reply::Bytes { body } => Response::builder()
            .header("content-type", spoken.content_type())
            .body(body.into())
            .unwrap(),
        Reply::Nothing => std::future::pending().await,
    }
}

fn stream_of(
    shared: Arc<Shared>,
    content_type: &str,
    mut frames: Vec<String>,
    end: End,
    gated: bool,
) -> Response {
    if let Some(after) = end.after() {
        frames.truncate(after);
    }
    let frames = frames.into_iter().enumerate();
    let body = stream::unfold((frames, shared), move |(mut frames, shared)| async move {
        if let Some((index, frame)) = frames.next() {
            if gated && index > 0 {
                shared.gate.acquire().await.unwrap().forget();
            }
            return Some((Ok(Bytes::from(frame)), (frames, shared)));
        }
        match end {
            End::Whole | End::Early(_) => None,
            End::Reset(_) => {
                // What was sent before goes out first.
                tokio::task::yield_now().await;
                Some((Err(std::io::Error::other("reset")), (frames, shared)))
            }
            End::Silent(_) => std::future::pending().await,
        }
    });
    Response::builder()
        .header("content-type", content_type)
        .body(Body::from_stream(body))
        .unwrap()
}
