//! Connections of either door: one request each, every bound explicit.
//!
//! When all connections are taken, the oldest one that has not sent its request yet gives way, so
//! clients that hang cannot shut out those that do not.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::request::Parts;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::HttpService;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::AbortHandle;

use super::limits::Limits;
use super::stalling::Stalling;

/// Connections that have not sent their request yet, oldest first.
pub(super) type Unheard = Arc<Mutex<BTreeMap<u64, AbortHandle>>>;

/// A connection's entry among those that may have to give way.
#[derive(Clone)]
pub(super) struct Waiting {
    number: u64,
    unheard: Unheard,
}

/// Ends the oldest connection that has not sent its request yet; whether there was one.
pub(super) fn make_place(unheard: &Unheard) -> bool {
    let oldest = locked(unheard).pop_first();
    oldest.is_some_and(|(_, oldest)| {
        oldest.abort();
        true
    })
}

impl Waiting {
    /// An entry of its own for a connection.
    pub(super) fn new(number: u64, unheard: &Unheard) -> Waiting {
        let unheard = Arc::clone(unheard);
        Waiting { number, unheard }
    }

    /// From here on the connection may have to give way.
    pub(super) fn enter(&self, connection: AbortHandle) {
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
pub(super) async fn serve_one<S, B>(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    service: S,
    waiting: &Waiting,
    limits: &Limits,
) where
    S: HttpService<Incoming, ResBody = B>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    B: hyper::body::Body + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
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
pub(super) struct Pause {
    failures: u32,
}

impl Pause {
    pub(super) async fn take(&mut self, error: &io::Error) {
        if self.failures == 0 {
            tracing::warn!(%error, "no connection can be accepted at the moment");
        }
        self.failures = self.failures.saturating_add(1).min(7);
        tokio::time::sleep(Duration::from_millis(5 << self.failures)).await;
    }
}
