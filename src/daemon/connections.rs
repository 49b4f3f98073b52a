//! Connections of the socket and of TCP: one request each, every bound explicit.
//!
//! When all connections are taken, the oldest one that has not sent its request yet gives way, so
//! clients that hang cannot shut out those that do not.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{Extensions, Request};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

use super::limits::Limits;
use super::stalling::Stalling;
use crate::process::open_files_cause;

/// Where connections arrive.
pub(super) trait Acceptor {
    /// A connection.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;
    /// Who is behind it, as handlers are told.
    type Peer: Introduced;

    /// The next connection.
    fn accept(&self) -> impl Future<Output = io::Result<Self::Stream>> + Send;

    /// Who is behind a connection, where that may be heard.
    fn admit(&self, stream: &Self::Stream) -> Option<Self::Peer>;

    /// Sends a client away since this many connections are taken.
    fn send_away(&self, stream: &Self::Stream, connected: usize);
}

/// Who is behind a connection.
pub(super) trait Introduced: Clone + Send + Sync + 'static {
    /// Puts it where handlers look for it.
    fn introduce(self, extensions: &mut Extensions);
}

/// Nobody is known.
impl Introduced for () {
    fn introduce(self, _extensions: &mut Extensions) {}
}

/// Accepts connections until it is told to stop; what is still under way then.
pub(super) async fn accept<A: Acceptor>(
    acceptor: A,
    router: Router,
    limits: Limits,
    mut stopped: watch::Receiver<bool>,
) -> JoinSet<()> {
    let mut connections = JoinSet::new();
    let unheard = Unheard::default();
    let (mut number, mut pause) = (0_u64, Pause::default());
    loop {
        tokio::select! {
            _ = stopped.changed() => return connections,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = acceptor.accept() => match accepted {
                Ok(stream) => {
                    pause = Pause::default();
                    number += 1;
                    let Some(peer) = acceptor.admit(&stream) else {
                        continue;
                    };
                    if connections.len() >= limits.connections && !make_place(&unheard) {
                        acceptor.send_away(&stream, connections.len());
                        continue;
                    }
                    let unheard = Arc::clone(&unheard);
                    let waiting = Waiting { number, unheard };
                    let connection = converse(stream, peer, router.clone(), waiting.clone(), limits.clone());
                    waiting.enter(connections.spawn(connection));
                }
                Err(error) => pause.take(&error).await,
            },
        }
    }
}

/// Lets requests under way end for a moment.
pub(super) async fn end(mut connections: JoinSet<()>, patience: Duration) {
    let ending = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(patience, ending).await.is_err() {
        tracing::debug!("connections were cut off at the end");
    }
}

/// Connections that have not sent their request yet, oldest first.
type Unheard = Arc<Mutex<BTreeMap<u64, AbortHandle>>>;

/// A connection's entry among those that may have to give way.
#[derive(Clone)]
pub(super) struct Waiting {
    number: u64,
    unheard: Unheard,
}

/// Ends the oldest connection that has not sent its request yet; whether there was one.
fn make_place(unheard: &Unheard) -> bool {
    let oldest = locked(unheard).pop_first();
    oldest.is_some_and(|(_, oldest)| {
        oldest.abort();
        true
    })
}

impl Waiting {
    /// From here on the connection may have to give way.
    fn enter(&self, connection: AbortHandle) {
        locked(&self.unheard).insert(self.number, connection);
    }

    /// The request has arrived whole: from here on its connection keeps its place.
    pub(super) fn answering(parts: &mut Parts) {
        if let Some(waiting) = parts.extensions.remove::<Waiting>() {
            waiting.forget();
        }
    }

    /// From here on its connection keeps its place.
    pub(super) fn forget(&self) {
        locked(&self.unheard).remove(&self.number);
    }
}

fn locked(unheard: &Unheard) -> std::sync::MutexGuard<'_, BTreeMap<u64, AbortHandle>> {
    unheard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Serves one request on one connection.
async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    peer: impl Introduced,
    router: Router,
    waiting: Waiting,
    limits: Limits,
) {
    let entry = waiting.clone();
    let service = service_fn(move |mut request: Request<Incoming>| {
        peer.clone().introduce(request.extensions_mut());
        request.extensions_mut().insert(entry.clone());
        TowerToHyperService::new(router.clone()).call(request.map(Body::new))
    });
    let ended = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.read_patience)
        .max_buf_size(limits.head_bytes_max)
        .max_headers(64)
        .keep_alive(false)
        .serve_connection(
            TokioIo::new(Stalling::new(stream, limits.write_patience)),
            service,
        )
        .await;
    waiting.forget();
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// The pause after an `accept` that failed, such as for want of file descriptors: it would fail again at once.
#[derive(Default)]
struct Pause {
    failures: u32,
}

impl Pause {
    async fn take(&mut self, error: &io::Error) {
        if self.failures == 0 {
            let cause = open_files_cause(&error.to_string()).unwrap_or_default();
            tracing::warn!(%error, cause, "no connection can be accepted at the moment");
        }
        self.failures = self.failures.saturating_add(1).min(7);
        tokio::time::sleep(Duration::from_millis(5 << self.failures)).await;
    }
}
