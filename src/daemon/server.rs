//! The server of the API: a thread with its own runtime, one request per connection, every bound explicit.
//!
//! A connection is closed unheard unless its peer is the user whom the engine belongs to, root, or somebody whom the
//! configuration gives a role.
//! When all connections are taken, the oldest one that has not sent its request yet gives way, so
//! clients that hang cannot shut out those that do not.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::net::UnixListener as StdUnixListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::request::Parts;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{HttpService, Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Notify, watch};
use tokio::task::{AbortHandle, JoinSet};

use super::access_control::AccessControl;
use super::answer::{self, Desk};
use super::mcp::Mounted;
use super::peer::Peer;
use super::socket::canonical;
use super::stalling::Stalling;
use super::tcp::TcpDoor;
use crate::engine::Host;
use crate::model::{AccessRole, Diagnostic, Kind};
use crate::protocol::Control;

/// Bounds of the server.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Connections at once.
    pub connections: usize,
    /// Runs watched at once.
    pub watchers: usize,
    /// Questions to the engine at once, in each of the lanes of reading and of changing.
    pub calls: usize,
    /// How long a request waits for its lane before it is told `busy`.
    pub call_patience: Duration,
    /// Bytes of a body.
    pub body_bytes_max: usize,
    /// Bytes of a request's head.
    pub head_bytes_max: usize,
    /// How long a head may take, and how long a body.
    pub read_patience: Duration,
    /// How long a write may make no progress.
    pub write_patience: Duration,
    /// After how long a silent stream of events sends a comment.
    pub keep_alive: Duration,
    /// How long requests under way may take to end once the server stops.
    pub stop_patience: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 256,
            watchers: 64,
            calls: 32,
            call_patience: Duration::from_secs(5),
            body_bytes_max: 1024 * 1024,
            head_bytes_max: 32 * 1024,
            read_patience: Duration::from_secs(10),
            write_patience: Duration::from_secs(10),
            keep_alive: Duration::from_secs(15),
            stop_patience: Duration::from_secs(2),
        }
    }
}

/// For whom the server answers.
#[derive(Debug, Clone)]
pub struct Identity {
    /// Absolute path of the workspace.
    pub workspace: PathBuf,
    /// The user whose requests are heard, beside root's.
    pub uid: u32,
    /// What the engine runs in.
    pub host: Host,
}

impl Identity {
    /// The user of this process serves `workspace`.
    pub fn of_process(workspace: &Path, host: Host) -> Identity {
        Identity {
            host,
            workspace: canonical(workspace),
            uid: rustix::process::geteuid().as_raw(),
        }
    }
}

/// What the server tells its host. Told twice before it is heard counts once.
#[derive(Debug, Default)]
pub struct Notices {
    /// Runs or definitions may have changed.
    pub changed: Notify,
    /// Definitions were read again for a client.
    pub reloaded: Notify,
    /// The engine has ended: a client drained it, or was told so by its answer.
    pub ended: Notify,
}

/// A running server; it stops when it is dropped.
pub struct Server {
    desk: Arc<Desk>,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts to serve `listener`. Until [`Server::open`] every question is answered with `starting`.
    pub fn start(
        listener: StdUnixListener,
        identity: Identity,
        limits: Limits,
        notices: Option<Arc<Notices>>,
    ) -> Result<Server, Diagnostic> {
        let failed = |what: &str, error: io::Error| {
            Diagnostic::new(
                Kind::Internal,
                "server_not_started",
                format!("the API server could not start: {what}: {error}"),
            )
        };
        listener
            .set_nonblocking(true)
            .map_err(|error| failed("its socket", error))?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(limits.calls.saturating_mul(2).saturating_add(4))
            .thread_keep_alive(Duration::from_secs(10))
            .build()
            .map_err(|error| failed("its runtime", error))?;
        let listener = {
            let _inside = runtime.enter();
            UnixListener::from_std(listener).map_err(|error| failed("its socket", error))?
        };
        let desk = Arc::new(Desk::new(identity, limits, notices));
        let (stop, stopped) = watch::channel(false);
        let served = Arc::clone(&desk);
        let thread = std::thread::Builder::new()
            .name("api".to_owned())
            .spawn(move || {
                runtime.block_on(serve(listener, Arc::clone(&served), stopped));
                if let Some(mounted) = served.mounted.get() {
                    mounted.stop();
                }
                // Questions that the engine still works on must not hold up the end.
                runtime.shutdown_background();
            })
            .map_err(|error| failed("its thread", error))?;
        Ok(Server {
            desk,
            stop,
            thread: Some(thread),
        })
    }

    /// Hands over the engine that answers from now on.
    pub fn open(&self, control: Arc<dyn Control>) {
        self.desk.open(control);
    }

    /// Serves the Model Context Protocol beside the API from now on, and over TCP where a door is given.
    pub(super) fn mount(&self, mounted: Mounted, tcp: Option<TcpDoor>) -> Result<(), Diagnostic> {
        if let Some(door) = tcp {
            mounted.open(door, &self.desk.limits)?;
        }
        if self.desk.mounted.set(mounted).is_err() {
            tracing::error!("the Model Context Protocol was mounted twice");
        }
        Ok(())
    }

    /// Who is heard beside the engine's own user and root: at first nobody.
    pub(super) fn access(&self) -> Arc<AccessControl> {
        Arc::clone(&self.desk.access)
    }

    /// Accepts no more, lets requests under way end for a moment, ends.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let _ = self.stop.send(true);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the API server ended in disorder");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

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

async fn serve(listener: UnixListener, desk: Arc<Desk>, mut stopped: watch::Receiver<bool>) {
    let router = answer::router(&desk);
    let mut connections = JoinSet::new();
    let unheard = Unheard::default();
    let mut number = 0_u64;
    let mut pause = Pause::default();
    loop {
        tokio::select! {
            _ = stopped.changed() => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    pause = Pause::default();
                    number += 1;
                    if let Some(peer) = admitted(&stream, &desk, connections.len(), &unheard) {
                        let waiting = Waiting::new(number, &unheard);
                        let connection = converse(stream, peer, router.clone(), waiting.clone(), desk.limits.clone());
                        waiting.enter(connections.spawn(connection));
                    }
                }
                Err(error) => pause.take(&error).await,
            },
        }
    }
    drop(listener);
    if let Some(mounted) = desk.mounted.get() {
        mounted.close(&desk.limits).await;
    }
    let patience = tokio::time::sleep(desk.limits.stop_patience);
    tokio::pin!(patience);
    while !connections.is_empty() {
        tokio::select! {
            () = &mut patience => break,
            _ = connections.join_next() => {}
        }
    }
}

/// The peer, where it is heard and a place is left or can be made for it.
fn admitted(stream: &UnixStream, desk: &Desk, connected: usize, unheard: &Unheard) -> Option<Peer> {
    let peer = stream.peer_cred();
    let process = peer.as_ref().ok().and_then(tokio::net::unix::UCred::pid);
    let known = peer.as_ref().ok().and_then(|peer| {
        let is_own = [0, desk.identity.uid].contains(&peer.uid());
        let own = is_own.then_some(AccessRole::Admin);
        let role = own.or_else(|| desk.access.role_of(stream, *peer))?;
        Some((peer.uid(), role))
    });
    let Some((uid, role)) = known else {
        tracing::warn!(?peer, "a connection of another user was refused");
        refuse(
            stream,
            "403 Forbidden",
            r#"{"kind":"usage","code":"not_your_engine","message":"this engine belongs to another user","hints":["`access` in its `workerctl.yaml` names who else may ask"]}"#,
        );
        return None;
    };
    let pid = process.and_then(|pid| u32::try_from(pid).ok());
    let peer = match Peer::of(uid, pid, role) {
        Ok(peer) => peer,
        Err(refused) => {
            tracing::warn!(?pid, why = refused.message, "a connection was refused");
            let body = serde_json::to_string(&refused).unwrap_or_default();
            refuse(stream, "403 Forbidden", &body);
            return None;
        }
    };
    if connected < desk.limits.connections || make_place(unheard) {
        return Some(peer);
    }
    tracing::warn!(
        connected,
        "every connection is in use; a client was sent away"
    );
    refuse(
        stream,
        "503 Service Unavailable\r\nretry-after: 1",
        r#"{"kind":"conflict","code":"busy","message":"every connection is in use","hints":["try again in a second"]}"#,
    );
    None
}

/// Tells a peer why it is not heard, as far as that is possible without waiting for it.
fn refuse(stream: &UnixStream, status: &str, body: &str) {
    let text = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    // It is about to be closed either way.
    let _ = stream.try_write(text.as_bytes());
}

async fn converse(
    stream: UnixStream,
    peer: Peer,
    router: Router,
    waiting: Waiting,
    limits: Limits,
) {
    let entry = waiting.clone();
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(peer);
        request.extensions_mut().insert(entry.clone());
        TowerToHyperService::new(router.clone()).call(request.map(Body::new))
    });
    serve_one(stream, service, &waiting, &limits).await;
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
