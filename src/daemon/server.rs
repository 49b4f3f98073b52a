//! The server of the API: a thread with its own runtime, every bound explicit.

use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixListener as StdUnixListener;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::net::UnixListener;
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::access_control::AccessControl;
use super::connections;
use super::faults::internal;
use super::limits::Limits;
use super::mcp::Mounted;
use super::routes;
use super::state::{ApiState, Identity, Notices};
use super::tcp::TcpDoor;
use super::unix::OwnSocket;
use super::web;
use super::web::logins::Logins;
use crate::model::Diagnostic;
use crate::protocol::Control;

/// A running server; it stops when it is dropped.
pub struct Server {
    listening: Arc<Listening>,
    state: Arc<ApiState>,
    /// What the door of the web page shares with it.
    page: Arc<ApiState>,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

/// The socket that a server accepts connections on, which can be replaced.
pub(super) struct Listening {
    newest: watch::Sender<Arc<UnixListener>>,
    runtime: Handle,
}

impl Listening {
    /// Accepts connections on this socket from now on, and no more on the one before.
    pub(super) fn replace(&self, listener: StdUnixListener) -> io::Result<()> {
        let listener = registered(&self.runtime, listener)?;
        self.newest.send_replace(Arc::new(listener));
        Ok(())
    }
}

fn registered(runtime: &Handle, listener: StdUnixListener) -> io::Result<UnixListener> {
    listener.set_nonblocking(true)?;
    let _inside = runtime.enter();
    UnixListener::from_std(listener)
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
            let what = format!("the API server could not start: {what}");
            internal("server_not_started", &what, &error)
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            // The lanes of the socket, half as many of the web page, and some for files.
            .max_blocking_threads(limits.calls.saturating_mul(3).saturating_add(6))
            .thread_keep_alive(Duration::from_secs(10))
            .build()
            .map_err(|error| failed("its runtime", error))?;
        let listener =
            registered(runtime.handle(), listener).map_err(|error| failed("its socket", error))?;
        let (newest, listeners) = watch::channel(Arc::new(listener));
        let listening = Arc::new(Listening {
            newest,
            runtime: runtime.handle().clone(),
        });
        let state = Arc::new(ApiState::new(identity, limits, notices));
        let page = Arc::new(state.of_page());
        let at_door =
            web::serve::router(routes::router_of_api(Arc::clone(&page)), Arc::clone(&page));
        state.doors.serve(at_door, runtime.handle().clone());
        let (stop, stopped) = watch::channel(false);
        let served = Arc::clone(&state);
        let thread = std::thread::Builder::new()
            .name("api".to_owned())
            .spawn(move || {
                runtime.block_on(serve(listeners, Arc::clone(&served), stopped));
                if let Some(mounted) = served.mounted.get() {
                    mounted.stop();
                }
                // Questions that the engine still works on must not hold up the end.
                runtime.shutdown_background();
            })
            .map_err(|error| failed("its thread", error))?;
        Ok(Server {
            listening,
            state,
            page,
            stop,
            thread: Some(thread),
        })
    }

    /// Hands over the engine that answers from now on.
    pub fn open(&self, control: Arc<dyn Control>) {
        self.page.open(Arc::clone(&control));
        self.state.open(control);
    }

    /// The socket that it accepts connections on.
    pub(super) fn listening(&self) -> Arc<Listening> {
        Arc::clone(&self.listening)
    }

    /// Who logs in to the web page: at first nobody.
    pub(super) fn logins(&self) -> Arc<Logins> {
        Arc::clone(&self.state.logins)
    }

    /// Serves the web page there for as long as the server lives.
    pub(super) fn open_page(&self, listener: TcpListener) -> Result<(), Diagnostic> {
        self.state.doors.open_for_good(listener)
    }

    /// Serves the Model Context Protocol beside the API from now on, and over TCP where a door is given.
    pub(super) fn mount(&self, mounted: Mounted, tcp: Option<TcpDoor>) -> Result<(), Diagnostic> {
        if let Some(door) = tcp {
            mounted.open(door, &self.state.limits)?;
        }
        if self.state.mounted.set(mounted).is_err() {
            tracing::error!("the Model Context Protocol was mounted twice");
        }
        Ok(())
    }

    /// Who is heard beside the engine's own user and root: at first nobody.
    pub(super) fn access(&self) -> Arc<AccessControl> {
        Arc::clone(&self.state.access)
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
            tracing::error!("the thread of the API server panicked");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

async fn serve(
    listeners: watch::Receiver<Arc<UnixListener>>,
    state: Arc<ApiState>,
    stopped: watch::Receiver<bool>,
) {
    let router = routes::router(Arc::clone(&state));
    let socket = OwnSocket {
        listeners,
        uid: state.identity.uid,
        access: Arc::clone(&state.access),
    };
    let under_way = connections::accept(socket, router, state.limits.clone(), stopped).await;
    if let Some(mounted) = state.mounted.get() {
        mounted.close(&state.limits).await;
    }
    state.logins.let_go();
    state.doors.end(state.limits.stop_patience).await;
    connections::end(under_way, state.limits.stop_patience).await;
}
