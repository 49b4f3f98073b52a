//! Ways in over TCP on this machine: the Model Context Protocol, where the configuration asks for it, and the web page.

use std::collections::BTreeMap;
use std::io;
use std::net::TcpListener as StdTcpListener;
use std::path::Path;

use axum::Router;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::connections::{self, Acceptor};
use super::limits::Limits;
use crate::catalog;
use crate::mcp::Token;
use crate::model::{Diagnostic, Kind, Severity};

/// An address that is listened at, and the token that is asked for there.
#[derive(Debug)]
pub(super) struct TcpDoor {
    pub(super) listener: StdTcpListener,
    pub(super) token: Token,
}

impl TcpDoor {
    /// Listens where the configuration says so. What is wrong with the configuration is logged; an address that is
    /// wrong is not listened at.
    ///
    /// # Errors
    /// Somebody else listens there, or the token cannot be used.
    pub(super) fn open(
        workspace: &Path,
        state_dir: &Path,
        environment: &BTreeMap<String, String>,
    ) -> Result<Option<TcpDoor>, Diagnostic> {
        let Ok((config, problems)) = catalog::config(workspace) else {
            // The engine says what is wrong with its workspace.
            return Ok(None);
        };
        // Which of them keep it from being served cannot be told where even the keys are misread.
        let errors = problems.iter();
        for problem in errors.filter(|one| one.severity == Severity::Error) {
            tracing::error!(
                code = problem.code,
                "{}: {}",
                problem.place,
                problem.message
            );
        }
        let http = config.mcp.http;
        let Some(listen) = http.listen else {
            return Ok(None);
        };
        let token = Token::read(http.token_file.as_deref(), state_dir, environment)?;
        let listener = StdTcpListener::bind(&listen).map_err(|error| {
            taken(&listen, &error).hint(
                "set another port with `mcp: {http: {listen: …}}` in workerctl.yaml; `ss -ltnp` shows which process uses this one",
            )
        })?;
        Ok(Some(TcpDoor { listener, token }))
    }
}

/// An address that cannot be listened at.
pub(super) fn taken(listen: &str, error: &io::Error) -> Diagnostic {
    let why = format!("cannot listen on `{listen}`: {error}");
    let kind = match error.kind() {
        // Who may listen there does not change while it is tried again.
        io::ErrorKind::PermissionDenied => Kind::Blocked,
        _ => Kind::Conflict,
    };
    Diagnostic::new(kind, "address", why)
}

/// Serves until it is told to stop, then lets connections end. Called inside of the runtime where it is to run.
pub(super) fn serve(
    listener: StdTcpListener,
    router: Router,
    limits: Limits,
    stopped: watch::Receiver<bool>,
    what: &'static str,
) -> io::Result<impl Future<Output = ()> + Send + 'static> {
    let address = listener.local_addr()?.to_string();
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    tracing::info!(address, "{what} is served over TCP");
    Ok(async move {
        let patience = limits.stop_patience;
        let under_way = connections::accept(listener, router, limits, stopped).await;
        connections::end(under_way, patience).await;
    })
}

impl Acceptor for TcpListener {
    type Stream = TcpStream;
    type Peer = ();

    async fn accept(&self) -> io::Result<TcpStream> {
        TcpListener::accept(self).await.map(|(stream, _)| stream)
    }

    /// Whoever has the token is heard.
    fn admit(&self, _stream: &TcpStream) -> Option<()> {
        Some(())
    }

    fn send_away(&self, _stream: &TcpStream, _connected: usize) {
        tracing::warn!("all TCP connections are in use; a client was rejected");
    }
}
