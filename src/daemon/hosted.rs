//! The engine inside a command: it serves the same socket while it lives, so that others find it.

use std::sync::Arc;

use super::connect_options::ConnectOptions;
use super::limits::Limits;
use super::server::Server;
use super::socket::{Endpoint, SocketPlaces};
use super::state::Identity;
use crate::engine::{self, Engine, EngineOptions, Host};
use crate::model::Diagnostic;
use crate::protocol::Control;

/// An engine that lives in this process. Dropping it drains the engine and gives its locks back.
pub(super) struct Hosted {
    control: Arc<dyn Control>,
    server: Option<Server>,
    engine: Option<Engine>,
    _endpoint: Endpoint,
}

impl Hosted {
    /// Takes the socket, starts the engine, serves.
    pub(super) fn start(options: &ConnectOptions) -> Result<Hosted, Diagnostic> {
        let path = SocketPlaces {
            workspace: &options.workspace,
            state_dir: &options.state_dir,
            explicit: options.socket.as_deref(),
            environment: &options.environment,
        }
        .of_engine()?;
        // Refused before anything is made in a state directory that is not the other's.
        engine::refuse_unfit(&options.workspace, &options.state_dir)?;
        let endpoint = Endpoint::bind_as(&path, Host::InProcess)?;
        let server = Server::start(
            endpoint.listener()?,
            Identity::of_process(&options.workspace, Host::InProcess),
            Limits::default(),
            None,
        )?;
        let engine = Engine::start(EngineOptions {
            workspace: options.workspace.clone(),
            state_dir: options.state_dir.clone(),
            socket: Some(path),
            host: Host::InProcess,
            environment: options.environment.clone(),
        })?;
        let control = engine.control();
        server.open(Arc::clone(&control));
        Ok(Hosted {
            control,
            server: Some(server),
            engine: Some(engine),
            _endpoint: endpoint,
        })
    }
}

impl Hosted {
    /// The interface to it.
    pub(super) fn control(&self) -> Arc<dyn Control> {
        Arc::clone(&self.control)
    }
}

impl Drop for Hosted {
    fn drop(&mut self) {
        // The server stays until the engine has ended: others are told `draining` and see their runs end.
        // An engine that was drained on request refuses a second drain; either way it has ended then.
        if let Err(error) = self.control.drain() {
            tracing::debug!(%error, "the engine in this process was not drained");
        }
        drop(self.server.take());
        if let Some(engine) = self.engine.take()
            && let Err(error) = engine.join()
        {
            tracing::error!(%error, "the engine in this process ended in disorder");
        }
    }
}
