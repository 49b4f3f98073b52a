//! The Model Context Protocol beside the API: mounted here, spoken in its own room.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use axum::routing::any;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::connections::Waiting;
use super::limits::Limits;
use super::tcp::{self, TcpDoor};
use crate::engine::definitions::Definitions;
use crate::mcp::{Door, HttpOptions, HttpServer, PATH};
use crate::model::{Diagnostic, Kind};
use crate::protocol::Control;

/// The protocol's server: nothing of it is there before somebody asks.
pub(super) struct Mounted {
    state: Mutex<State>,
    tcp: Mutex<Option<JoinHandle<()>>>,
    stop_tcp: watch::Sender<bool>,
}

enum State {
    Unasked(Box<HttpOptions>),
    Serves(Arc<HttpServer>),
    Ended,
}

impl Mounted {
    /// Serves this engine.
    pub(super) fn new(
        control: Arc<dyn Control>,
        definitions: Arc<Definitions>,
        state_dir: PathBuf,
    ) -> Mounted {
        let settings = definitions.current().config.mcp.http.clone();
        let options = HttpOptions {
            definitions,
            connect: Box::new(move || Ok(Arc::clone(&control))),
            state_dir,
            settings,
        };
        Mounted {
            state: Mutex::new(State::Unasked(Box::new(options))),
            tcp: Mutex::default(),
            stop_tcp: watch::Sender::new(false),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server; started where it is not.
    pub(super) fn server(&self) -> Result<Arc<HttpServer>, Diagnostic> {
        let mut state = self.state();
        let server = match std::mem::replace(&mut *state, State::Ended) {
            State::Unasked(options) => Arc::new(HttpServer::start(*options)?),
            State::Serves(server) => server,
            State::Ended => {
                let why = "the Model Context Protocol is not served any more";
                return Err(Diagnostic::new(Kind::Conflict, "busy", why));
            }
        };
        *state = State::Serves(Arc::clone(&server));
        Ok(server)
    }

    /// Serves it over TCP too.
    pub(super) fn open(&self, door: TcpDoor, limits: &Limits) -> Result<(), Diagnostic> {
        let server = self.server()?;
        let runtime = server.runtime().clone();
        let door_of_token = Door::Tcp(door.token);
        let router = Router::new().route(
            PATH,
            any(move |request| async move { answer(&server, &door_of_token, request).await }),
        );
        let serving = {
            let _inside = runtime.enter();
            let stopped = self.stop_tcp.subscribe();
            let what = "the Model Context Protocol";
            tcp::serve(door.listener, router, limits.clone(), stopped, what)
                .map_err(|error| tcp::taken("mcp.http.listen", &error))?
        };
        let mut tcp = self.tcp.lock().unwrap_or_else(PoisonError::into_inner);
        *tcp = Some(runtime.spawn(serving));
        Ok(())
    }

    /// Lets calls under way end for a moment, then ends sessions and streams.
    pub(super) async fn close(&self, limits: &Limits) {
        let server = match &*self.state() {
            State::Serves(server) => Some(Arc::clone(server)),
            State::Unasked(_) | State::Ended => None,
        };
        self.stop_tcp.send_replace(true);
        if let Some(server) = server {
            server.close(limits.stop_patience / 2).await;
        }
        let tcp = self
            .tcp
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(tcp) = tcp {
            // It ends by itself after a while; how it ended was logged.
            let _ = tokio::time::timeout(limits.stop_patience, tcp).await;
        }
    }

    /// Ends its thread.
    pub(super) fn stop(&self) {
        let state = std::mem::replace(&mut *self.state(), State::Ended);
        if let State::Serves(server) = state {
            server.stop();
        }
    }
}

/// Answers a request that came in at this door.
pub(super) async fn answer(server: &HttpServer, door: &Door, mut request: Request) -> Response {
    let waiting = request.extensions_mut().remove::<Waiting>();
    let heard = || {
        if let Some(waiting) = waiting {
            waiting.forget();
        }
    };
    server.answer(door, request, heard).await.map(Body::new)
}
