//! One request over the control socket, blocking, within a time limit.
//!
//! Each exchange has a connection and a small runtime of its own, so that calls from several threads
//! never wait for each other and nothing is left running between them.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use tokio::net::UnixStream;
use tokio::runtime::Runtime;

use super::faults::internal;
use super::paths;
use super::sse::{Assembler, SseItem};
use crate::model::diagnostic::chain;
use crate::model::{Diagnostic, Kind};

/// Code of a diagnostic that says that nobody listens at a socket.
pub(super) const NO_ENGINE: &str = "no_engine";
/// Codes of diagnostics that say that a request was sent and no answer arrived.
const UNANSWERED: [&str; 3] = [SILENT, CUT_OFF, FOREIGN];
const SILENT: &str = "no_answer";
pub(super) const CUT_OFF: &str = "answer_cut_off";
pub(super) const FOREIGN: &str = "foreign_service";
/// Code of a diagnostic that says that this user may not connect.
pub(super) const NOT_PERMITTED: &str = "not_permitted";
/// Longest answer in bytes.
const REPLY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How often a socket whose queue of connections is full is tried again, every 50 ms.
const FULL_QUEUE_TRIES: u32 = 60;

/// One request.
pub(super) struct Outgoing {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) body: Option<Vec<u8>>,
    pub(super) last_event_id: Option<String>,
}

impl Outgoing {
    pub(super) fn get(path: impl Into<String>) -> Outgoing {
        Outgoing {
            method: Method::GET,
            path: path.into(),
            body: None,
            last_event_id: None,
        }
    }

    pub(super) fn post(path: &str, body: &impl Serialize) -> Result<Outgoing, Diagnostic> {
        Ok(Outgoing {
            method: Method::POST,
            path: path.to_owned(),
            body: Some(serde_json::to_vec(body).map_err(|error| not_askable(&error))?),
            last_event_id: None,
        })
    }
}

fn not_askable(error: &dyn std::error::Error) -> Diagnostic {
    let message = format!("the request cannot be sent over the socket: {error}");
    Diagnostic::new(Kind::Usage, "bad_request", message)
}

/// An answer, read whole.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Reply {
    /// The value of a header, where it has it.
    pub(super) fn text(&self, name: &HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The same as a number.
    pub(super) fn number(&self, name: &HeaderName) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    /// The value of a parameter in the address of the next page, where there is one.
    pub(super) fn next(&self, name: &str) -> Option<String> {
        let link = self.headers.get(header::LINK)?.to_str().ok()?;
        paths::parameter_of_next(link, name)
    }
}

/// A socket at which an engine may listen.
#[derive(Debug, Clone)]
pub(super) struct Line {
    socket: PathBuf,
    /// Users whose engine is believed.
    trusted: Vec<u32>,
}

impl Line {
    /// Engines of this user, of root and of the owner of `workspace` are believed.
    pub(super) fn new(socket: &Path, workspace: &Path) -> Line {
        use std::os::unix::fs::MetadataExt;
        let mut trusted = vec![rustix::process::geteuid().as_raw(), 0];
        trusted.extend(std::fs::metadata(workspace).ok().map(|found| found.uid()));
        Line {
            socket: socket.to_path_buf(),
            trusted,
        }
    }

    pub(super) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Sends a request and reads its answer, both within `patience`.
    pub(super) fn send(&self, request: Outgoing, patience: Duration) -> Result<Reply, Diagnostic> {
        let reply = async { self.whole(self.exchange(request).await?).await };
        runtime()?.block_on(self.within(patience, reply))
    }

    /// Sends a request whose answer is a stream of events.
    pub(super) fn follow(
        &self,
        request: Outgoing,
        patience: Duration,
    ) -> Result<Result<Following, Reply>, Diagnostic> {
        let runtime = runtime()?;
        let response = runtime.block_on(self.within(patience, self.exchange(request)))?;
        let streamed = response
            .headers()
            .get(header::CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        if response.status() == StatusCode::OK && streamed {
            return Ok(Ok(Following {
                runtime,
                line: self.clone(),
                body: response.into_body(),
                assembler: Assembler::default(),
            }));
        }
        let reply = runtime.block_on(self.within(patience, self.whole(response)))?;
        Ok(Err(reply))
    }

    async fn within<T>(
        &self,
        patience: Duration,
        answer: impl Future<Output = Result<T, Diagnostic>>,
    ) -> Result<T, Diagnostic> {
        tokio::time::timeout(patience, answer)
            .await
            .unwrap_or_else(|_| Err(self.silent(patience)))
    }

    /// Reads an answer to its end.
    async fn whole(&self, response: Response<Incoming>) -> Result<Reply, Diagnostic> {
        let status = response.status();
        let headers = response.headers().clone();
        let body = Limited::new(response.into_body(), REPLY_BYTES_MAX)
            .collect()
            .await
            .map_err(|error| self.unreachable(CUT_OFF, "did not complete its response", &*error))?
            .to_bytes();
        Ok(Reply {
            status,
            headers,
            body,
        })
    }

    async fn exchange(&self, outgoing: Outgoing) -> Result<Response<Incoming>, Diagnostic> {
        let stream = self.connect().await?;
        let (mut sender, connection) = http1::Builder::new()
            .max_buf_size(256 * 1024)
            .handshake::<_, Full<Bytes>>(TokioIo::new(stream))
            .await
            .map_err(|error| self.unanswered(&error))?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "the connection to the engine ended early");
            }
        });
        let mut request = Request::builder()
            .method(outgoing.method)
            .uri(outgoing.path)
            .header(header::HOST, "workerctl")
            .header(header::ACCEPT, "application/json, text/event-stream");
        if let Some(id) = outgoing.last_event_id {
            request = request.header("last-event-id", id);
        }
        if outgoing.body.is_some() {
            request = request.header(
                header::CONTENT_TYPE,
                HeaderValue::from_static("application/json"),
            );
        }
        let request = request
            .body(Full::new(Bytes::from(outgoing.body.unwrap_or_default())))
            .map_err(|error| not_askable(&error))?;
        sender
            .send_request(request)
            .await
            .map_err(|error| self.unanswered(&error))
    }

    async fn connect(&self) -> Result<UnixStream, Diagnostic> {
        let mut tries = FULL_QUEUE_TRIES;
        let stream = loop {
            match UnixStream::connect(&self.socket).await {
                Ok(stream) => break stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && tries > 0 => {
                    tries -= 1;
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                Err(error) => return Err(self.refused(&error)),
            }
        };
        let peer = stream
            .peer_cred()
            .map_err(|error| self.refused(&error))?
            .uid();
        if self.trusted.contains(&peer) {
            return Ok(stream);
        }
        let what =
            format!("belongs to user {peer}, who owns neither this process nor the workspace");
        Err(self
            .diagnostic("foreign_engine", &what)
            .hint("choose your own engine's socket with `--socket`"))
    }

    fn refused(&self, error: &io::Error) -> Diagnostic {
        match error.kind() {
            io::ErrorKind::NotFound
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::NotADirectory => Diagnostic::new(
                Kind::Unreachable,
                NO_ENGINE,
                format!("no engine listens on `{}`", self.socket.display()),
            )
            .hint("`workerctl daemon` starts one"),
            io::ErrorKind::PermissionDenied if may_use_no_sockets() => Diagnostic::new(
                Kind::Blocked,
                "within_run",
                "this process may not use Unix sockets, like all commands of a run in the sandbox"
                    .to_owned(),
            )
            .hint("run the command yourself, from a process that the run did not start"),
            io::ErrorKind::PermissionDenied => self
                .unreachable(NOT_PERMITTED, "does not allow this user to connect", error)
                .hint("run the command as the user of the engine or as root; to let other users connect, set `access` in its `workerctl.yaml`"),
            // It ended between our connecting and our looking at who it is.
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
                self.unreachable(CUT_OFF, "ended the connection", error)
            }
            _ => self.unreachable("no_connection", "cannot be reached", error),
        }
    }

    /// No answer came: what listens ended before it gave one, or does not speak our language.
    fn unanswered(&self, error: &hyper::Error) -> Diagnostic {
        if !broke_off(error) {
            let what = "does not respond like a workerctl engine";
            return self.unreachable(FOREIGN, what, error);
        }
        self.unreachable(CUT_OFF, "ended the connection before it answered", error)
            .hint("the engine may have just ended; see its log with `journalctl -u workerctl`, or the output of `workerctl daemon`")
    }

    fn silent(&self, patience: Duration) -> Diagnostic {
        let what = format!("did not answer within {} s", patience.as_secs());
        self.diagnostic(SILENT, &what)
            .hint("see its log for the cause, and try again later")
    }

    pub(super) fn unreachable(
        &self,
        code: &str,
        what: &str,
        error: &(dyn std::error::Error + 'static),
    ) -> Diagnostic {
        self.diagnostic(code, &format!("{what}: {}", chain(error)))
    }

    /// What is wrong with what listens at the socket.
    pub(super) fn diagnostic(&self, code: &str, what: &str) -> Diagnostic {
        let message = format!(
            "the process that listens on `{}` {what}",
            self.socket.display()
        );
        Diagnostic::new(Kind::Unreachable, code, message)
    }
}

/// Whether it is not the engine's socket alone that is refused.
fn may_use_no_sockets() -> bool {
    use rustix::net::{AddressFamily, SocketType, socket};
    socket(AddressFamily::UNIX, SocketType::STREAM, None).err() == Some(rustix::io::Errno::ACCESS)
}

/// Whether the other side ended the connection without a word.
fn broke_off(error: &hyper::Error) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        if let Some(error) = inner.downcast_ref::<io::Error>() {
            return matches!(
                error.kind(),
                io::ErrorKind::ConnectionReset
                    | io::ErrorKind::BrokenPipe
                    | io::ErrorKind::UnexpectedEof
            );
        }
        source = inner.source();
    }
    error.is_incomplete_message() || error.is_canceled() || error.is_closed()
}

/// A stream of events that is being read.
pub(super) struct Following {
    runtime: Runtime,
    line: Line,
    body: Incoming,
    assembler: Assembler,
}

impl Following {
    /// What is told next; `None` when the stream has ended. Silence beyond `patience` is an error.
    pub(super) fn next(&mut self, patience: Duration) -> Result<Option<SseItem>, Diagnostic> {
        loop {
            let told = self.assembler.next().map_err(|error| {
                self.line
                    .unreachable(FOREIGN, "does not send events", &error)
            })?;
            if told.is_some() {
                return Ok(told);
            }
            let body = &mut self.body;
            let frame = self
                .runtime
                .block_on(async { tokio::time::timeout(patience, body.frame()).await })
                .map_err(|_| self.line.silent(patience))?;
            match frame {
                // A connection that broke is the stream's end as well; the caller knows whether it was due.
                None | Some(Err(_)) => return Ok(None),
                Some(Ok(frame)) => {
                    if let Some(piece) = frame.data_ref() {
                        self.assembler.push(piece).map_err(|error| {
                            self.line
                                .unreachable(FOREIGN, "does not send events", &error)
                        })?;
                    }
                }
            }
        }
    }
}

/// What a request for a change that was sent and not answered is told.
pub(super) fn open(error: Diagnostic) -> Diagnostic {
    if !UNANSWERED.contains(&error.code.as_str()) {
        return error;
    }
    let message = format!(
        "it is unknown whether the request was carried out: {}",
        error.message
    );
    Diagnostic::new(Kind::Open, "answer_lost", message)
        .hint("check once an engine responds again: `workerctl runs`, `workerctl show`")
        .hint("a submission with an idempotency key can be repeated safely with the same key")
}

fn runtime() -> Result<Runtime, Diagnostic> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| internal("client_not_started", "the client could not start", &error))
}
