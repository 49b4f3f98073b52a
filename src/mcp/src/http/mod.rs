//! The protocol over HTTP, in the daemon: its rules are the SDK's, its sessions, bounds and doors are ours.
//!
//! It has a thread of its own, so that calls that wait for runs take nothing from the API.

mod door;
mod extract;
mod late;
mod reply;
mod session;
mod sessions;
mod several;
mod size;
pub(super) mod token;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes};
use hyper::header::{AUTHORIZATION, HeaderMap};
use hyper::http::request::Parts;
use hyper::{Request, StatusCode};
use rmcp::transport::StreamableHttpService;
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};

use super::engines::Engines;
use super::message;
use super::refreshing::{self, Looked};
use super::server::Server;
use super::{BLOCKING_THREADS_MAX, Connect, failed};
use crate::engine::definitions::Definitions;
use crate::model::{Diagnostic, McpHttp};
use extract::Posted;
use late::Abandoned;
use reply::ErrorResponse;
use sessions::Sessions;

pub use door::{Door, bearer, names_this_machine, only};
pub use reply::Answer;
pub use token::{Token, random as random_secret};

/// The one path that is served.
pub const PATH: &str = "/mcp";

/// Requests and streams at once: half of what the socket has places for.
const REQUESTS_MAX: usize = 128;

/// After how long a silent stream sends a comment, so that whoever has gone is noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// How often it is looked, at the end, whether calls have ended.
const LOOK: Duration = Duration::from_millis(10);

/// How long the last answers may take to be handed to their connections.
const LAST_WORDS: Duration = Duration::from_millis(50);

/// What is served.
pub struct HttpOptions {
    /// The engine's definitions.
    pub definitions: Arc<Definitions>,
    /// The engine.
    pub connect: Connect,
    /// Absolute path of the state directory.
    pub state_dir: PathBuf,
    /// Who may ask, and how many.
    pub settings: McpHttp,
}

/// The protocol over HTTP, until it is stopped.
pub struct HttpServer {
    service: StreamableHttpService<Server, Sessions>,
    sessions: Arc<Sessions>,
    ended: Arc<AtomicBool>,
    calls: Arc<AtomicUsize>,
    origins: Vec<String>,
    places: Arc<Semaphore>,
    bodies: Semaphore,
    runtime: Handle,
    stop: watch::Sender<bool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl HttpServer {
    /// Starts its thread.
    pub fn start(options: HttpOptions) -> Result<HttpServer, Diagnostic> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(BLOCKING_THREADS_MAX)
            .build()
            .map_err(|error| failed(&error))?;
        let handle = runtime.handle().clone();
        let (sender, catalogs) = watch::channel(None);
        let sender = Arc::new(sender);
        let looked = Looked::first(Arc::clone(&options.definitions), &options.state_dir);
        handle.spawn(refreshing::report_offers(looked, Arc::clone(&sender)));
        options.definitions.on_change(Box::new(move |catalog| {
            sender.send_replace(Some(Arc::clone(catalog)));
        }));
        let ended = Arc::new(AtomicBool::new(false));
        let server = Server::new(
            catalogs,
            Arc::new(Engines::new(options.connect)),
            &options.state_dir,
            Arc::clone(&ended),
        );
        let calls = server.calls();
        let settings = options.settings;
        let sessions = Arc::new(Sessions::new(
            usize::try_from(settings.sessions).unwrap_or(usize::MAX),
            Duration::from_millis(settings.idle_ms),
        ));
        // Host and Origin are looked at by the door, which tells the two ways in apart.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .with_sse_keep_alive(Some(KEEP_ALIVE))
            .with_sse_retry(None)
            .with_max_request_body_bytes(super::wire::MESSAGE_BYTES_MAX);
        let another = move || Ok(server.another());
        let service = StreamableHttpService::new(another, Arc::clone(&sessions), config);
        let (stop, mut stopped) = watch::channel(false);
        let thread = std::thread::Builder::new()
            .name("mcp".to_owned())
            .spawn(move || {
                // An error says that nobody can stop it any more.
                let _ = runtime.block_on(stopped.wait_for(|stopped| *stopped));
                runtime.shutdown_background();
            })
            .map_err(|error| failed(&error))?;
        Ok(HttpServer {
            service,
            sessions,
            ended,
            calls,
            origins: settings.origins,
            places: Arc::new(Semaphore::new(REQUESTS_MAX)),
            bodies: extract::room(),
            runtime: handle,
            stop,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Where its tasks run.
    pub fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Answers one request to [`PATH`]; `heard` is called once it has been read whole.
    pub async fn answer<B>(&self, door: &Door, request: Request<B>, heard: impl FnOnce()) -> Answer
    where
        B: Body,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (mut parts, body) = request.into_parts();
        let asked = parts.headers.clone();
        let answered = async {
            door::admit(door, &parts, &self.origins)?;
            // What follows may be logged in detail.
            parts.headers.remove(AUTHORIZATION);
            let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
                return Err(
                    reply::busy("Service Unavailable: too many requests are under way").into(),
                );
            };
            let body = extract::read(body, &self.bodies).await?;
            heard();
            let answer = self.lead(parts, body).await?;
            // The place is taken for as long as the answer is read.
            Ok(answer.map(|body| {
                let held = move |frame| {
                    let _ = &place;
                    frame
                };
                body.map_frame(held).boxed()
            }))
        };
        let mut answer = answered
            .await
            .unwrap_or_else(|refused: ErrorResponse| *refused);
        door::let_read(&asked, &self.origins, &mut answer);
        answer
    }

    /// Leads a request to the SDK, on the thread that is made for it.
    async fn lead(&self, parts: Parts, body: Bytes) -> Result<Answer, ErrorResponse> {
        let posted = if parts.method == hyper::Method::POST {
            extract::posted(&parts.headers, &body)?
        } else {
            Posted::One(None)
        };
        if parts.method == hyper::Method::DELETE {
            return Ok(self.end_session(parts, body).await);
        }
        let session = self.session_of(&parts.headers);
        if let Some(session) = session
            .as_ref()
            .filter(|_| parts.method == hyper::Method::GET)
        {
            known_stream(session, &parts.headers)?;
        }
        let service = self.service.clone();
        // Without a session the SDK says nothing before there is something to say.
        let may_be_late = matches!(posted, Posted::One(Some(_))) && session.is_none();
        let mut work = match posted {
            Posted::One(Some(id)) if session.as_ref().is_some_and(|one| one.answers_to(&id)) => {
                return Err(extract::invalid(message::is_under_way(&id)).into());
            }
            Posted::Begin if !self.sessions.make_room() => {
                return Err(reply::busy("Service Unavailable: every session is in use").into());
            }
            Posted::Batch(items) => {
                let Some(session) = session.filter(|session| session.has_batches()) else {
                    return Err(
                        extract::invalid("this version of the protocol has no batches").into(),
                    );
                };
                let answered = several::answer(service, session, parts, items);
                self.runtime.spawn(answered)
            }
            Posted::Begin | Posted::One(_) => self.runtime.spawn(async move {
                let request = Request::from_parts(parts, Full::new(body));
                service.handle(request).await
            }),
        };
        // A request that nobody waits for any more is given up.
        let given_up = Abandoned::of(&work);
        let answered = if may_be_late {
            match tokio::time::timeout(late::PATIENCE, &mut work).await {
                Ok(answered) => answered,
                Err(_) => return Ok(late::answer(work, given_up)),
            }
        } else {
            work.await
        };
        answered.map_err(|error| late::lost(&error).into())
    }

    /// Ends a session at once, which the SDK answers as if it were to come.
    async fn end_session(&self, parts: Parts, body: Bytes) -> Answer {
        let request = Request::from_parts(parts, Full::new(body));
        let answer = self.service.handle(request).await;
        if answer.status() == StatusCode::ACCEPTED {
            return reply::empty(StatusCode::NO_CONTENT);
        }
        answer
    }

    fn session_of(&self, headers: &HeaderMap) -> Option<Arc<session::Session>> {
        let id = headers.get("mcp-session-id")?.to_str().ok()?;
        self.sessions.find(id)
    }

    /// Lets calls under way end for as long as `patience`, then ends every session and stream. Runs go on as the
    /// engine lets them.
    pub async fn close(&self, patience: Duration) {
        let calls_ended = async {
            while self.calls.load(Ordering::Acquire) > 0 || self.sessions.answer_somebody() {
                tokio::time::sleep(LOOK).await;
            }
        };
        if tokio::time::timeout(patience, calls_ended).await.is_err() {
            tracing::warn!("calls over HTTP were cut off at the end");
        }
        self.ended.store(true, Ordering::Release);
        self.sessions.close();
        // What was answered last is still on its way out.
        tokio::time::sleep(LAST_WORDS).await;
        self.end();
    }

    fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.sessions.close();
        self.service.config.cancellation_token.cancel();
    }

    /// Ends everything and its thread.
    pub fn stop(&self) {
        self.end();
        self.stop.send_replace(true);
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the HTTP server of the Model Context Protocol panicked");
        }
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Refuses to go on with a stream that is not there: the SDK would give an empty one, and nobody would learn that an
/// answer is lost.
fn known_stream(session: &session::Session, headers: &HeaderMap) -> Result<(), ErrorResponse> {
    let Some(event) = headers.get("last-event-id") else {
        return Ok(());
    };
    let event = event.to_str().unwrap_or_default();
    if session.keeps(event) {
        return Ok(());
    }
    Err(extract::invalid(
        "the stream of this `Last-Event-ID` is unknown or no longer stored: send the request again",
    )
    .into())
}
