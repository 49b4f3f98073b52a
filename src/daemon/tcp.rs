//! The Model Context Protocol over TCP on this machine, where the configuration asks for it. Nothing else is
//! served there.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::TcpListener as StdTcpListener;
use std::path::Path;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, StatusCode};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::connections::{Pause, Unheard, Waiting, make_place, serve_one};
use super::limits::Limits;
use crate::catalog;
use crate::mcp::{Answer, Door, HttpServer, PATH, Token};
use crate::model::{Diagnostic, Kind, Severity};

/// An address that is listened at, and the token that is asked for there.
#[derive(Debug)]
pub(super) struct TcpDoor {
    listener: StdTcpListener,
    token: Token,
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
        let listener = StdTcpListener::bind(&listen).map_err(|error| taken(&listen, &error))?;
        Ok(Some(TcpDoor { listener, token }))
    }
}

fn taken(listen: &str, error: &io::Error) -> Diagnostic {
    let why = format!("`{listen}` cannot be listened at: {error}");
    let kind = match error.kind() {
        // Who may listen there does not change while it is tried again.
        io::ErrorKind::PermissionDenied => Kind::Blocked,
        _ => Kind::Conflict,
    };
    Diagnostic::new(kind, "address", why).hint(
        "`mcp: {http: {listen: …}}` in workerctl.yaml names another port; `ss -ltnp` tells who has this one",
    )
}

/// Serves until it is told to stop, then lets connections end. Called inside of the runtime where it is to run.
pub(super) fn serve(
    door: TcpDoor,
    server: Arc<HttpServer>,
    limits: Limits,
    stopped: watch::Receiver<bool>,
) -> Result<impl Future<Output = ()> + Send + 'static, Diagnostic> {
    let TcpDoor { listener, token } = door;
    let address = listener.local_addr();
    let shown = address.map_or_else(|_| "?".to_owned(), |address| address.to_string());
    let listening = listener
        .set_nonblocking(true)
        .and_then(|()| TcpListener::from_std(listener));
    let listener = listening.map_err(|error| taken(&shown, &error))?;
    tracing::info!(
        address = shown,
        path = PATH,
        "the Model Context Protocol is served over TCP"
    );
    Ok(accept(listener, server, Door::Tcp(token), limits, stopped))
}

async fn accept(
    listener: TcpListener,
    server: Arc<HttpServer>,
    door: Door,
    limits: Limits,
    mut stopped: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    let unheard = Unheard::default();
    let (mut number, mut pause) = (0_u64, Pause::default());
    loop {
        tokio::select! {
            _ = stopped.changed() => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    pause = Pause::default();
                    number += 1;
                    if connections.len() >= limits.connections && !make_place(&unheard) {
                        tracing::warn!("every connection of TCP is in use; a client was sent away");
                        continue;
                    }
                    let waiting = Waiting::new(number, &unheard);
                    let connection = converse(
                        stream,
                        Arc::clone(&server),
                        door.clone(),
                        waiting.clone(),
                        limits.clone(),
                    );
                    waiting.enter(connections.spawn(connection));
                }
                Err(error) => pause.take(&error).await,
            },
        }
    }
    drop(listener);
    let ending = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(limits.stop_patience, ending)
        .await
        .is_err()
    {
        tracing::debug!("connections of TCP were cut off at the end");
    }
}

async fn converse(
    stream: TcpStream,
    server: Arc<HttpServer>,
    door: Door,
    waiting: Waiting,
    limits: Limits,
) {
    let service = service_fn(|request: Request<Incoming>| {
        let (server, door, waiting) = (&server, &door, &waiting);
        async move { Ok::<Answer, Infallible>(answer(server, door, waiting, request).await) }
    });
    serve_one(stream, service, &waiting, &limits).await;
}

async fn answer(
    server: &HttpServer,
    door: &Door,
    waiting: &Waiting,
    request: Request<Incoming>,
) -> Answer {
    if request.uri().path() != PATH {
        let mut nothing = Answer::default();
        *nothing.status_mut() = StatusCode::NOT_FOUND;
        return nothing;
    }
    server.answer(door, request, || waiting.forget()).await
}
