//! The server of the API: a thread with its own runtime, one request per connection, every bound explicit.
//!
//! A connection is closed unheard unless its peer is the user whom the engine belongs to, root, or somebody whom the
//! configuration gives a role.
//! When all connections are taken, the oldest one that has not sent its request yet gives way, so
//! clients that hang cannot shut out those that do not.

use std::io;
use std::os::unix::net::UnixListener as StdUnixListener;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::service::{Service, service_fn};
use hyper_util::service::TowerToHyperService;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::access_control::AccessControl;
use super::connections::{Pause, Unheard, Waiting, make_place, serve_one};
use super::limits::Limits;
use super::mcp::Mounted;
use super::peer::Peer;
use super::routes;
use super::state::{Desk, Identity, Notices};
use super::tcp::TcpDoor;
use crate::model::{AccessRole, Diagnostic, Kind};
use crate::protocol::Control;

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

async fn serve(listener: UnixListener, desk: Arc<Desk>, mut stopped: watch::Receiver<bool>) {
    let router = routes::router(Arc::clone(&desk));
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
