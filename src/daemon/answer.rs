//! Answers each operation by asking the engine, off the server's thread and within bounds.

use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, any, on};
use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::access_control::AccessControl;
use super::events;
use super::extract::{self, BodyLimits, Checked};
use super::mcp::{self, Mounted};
use super::metrics;
use super::operation::Operation;
use super::reply::{self, HttpRefusal};
use super::search;
use super::server::{Identity, Limits, Notices, Waiting};
use super::settling;
use crate::engine::ENDED_OPEN;
use crate::model::{Diagnostic, Kind};
use crate::protocol::{
    API_VERSION, CancelRequest, Control, LogsQuery, PauseRequest, ProbeRequest, ResumeRequest,
    SchedulesQuery, SubmitRequest, Submitted, TriggerRequest,
};

/// Code of a refusal by an engine that is still recovering.
pub(super) const STARTING: &str = "starting";

/// Who answers at a socket. Read by clients of every version, so fields are only ever added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub(super) struct VersionReply {
    /// Always `workerctl`.
    pub(super) name: String,
    /// Version of the program.
    pub(super) version: String,
    /// Version of the API.
    pub(super) api: String,
    /// Absolute path of the workspace that is served.
    pub(super) workspace: String,
    /// Process id of the engine.
    pub(super) pid: u32,
    /// Whether it has recovered and answers more than this.
    #[serde(default)]
    pub(super) ready: bool,
    /// `daemon`, or `in_process` where it ends with the command that it is in.
    #[serde(default)]
    pub(super) host: String,
}

/// A body that holds nothing; anything in it is refused.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

/// What every request needs.
pub(super) struct Desk {
    pub(super) identity: Identity,
    pub(super) access: Arc<AccessControl>,
    pub(super) limits: Limits,
    control: OnceLock<Arc<dyn Control>>,
    reads: Arc<Semaphore>,
    writes: Arc<Semaphore>,
    drains: Arc<Semaphore>,
    pub(super) watchers: Arc<Semaphore>,
    pub(super) watch_threads: Arc<Semaphore>,
    notices: Option<Arc<Notices>>,
    /// The Model Context Protocol, where it is served.
    pub(super) mounted: OnceLock<Mounted>,
}

impl Desk {
    pub(super) fn new(identity: Identity, limits: Limits, notices: Option<Arc<Notices>>) -> Desk {
        Desk {
            identity,
            access: Arc::default(),
            control: OnceLock::new(),
            reads: Arc::new(Semaphore::new(limits.calls)),
            writes: Arc::new(Semaphore::new(limits.calls)),
            drains: Arc::new(Semaphore::new(1)),
            watchers: Arc::new(Semaphore::new(limits.watchers)),
            // A watcher that left keeps its thread until the engine asks whether it is still there.
            watch_threads: Arc::new(Semaphore::new(limits.watchers.saturating_mul(2))),
            notices,
            mounted: OnceLock::new(),
            limits,
        }
    }

    /// Hands over the engine; until then every request to it is answered with `starting`.
    pub(super) fn open(&self, control: Arc<dyn Control>) {
        if self.control.set(control).is_err() {
            tracing::error!("the API was given a second engine and keeps its first");
        }
    }

    pub(super) fn control(&self) -> Result<Arc<dyn Control>, HttpRefusal> {
        self.control
            .get()
            .cloned()
            .ok_or_else(|| HttpRefusal::from(starting()))
    }

    /// Tells the host what may be different now, and that the engine has ended where its answer says so.
    fn tell<T>(&self, operation: Operation, answer: &Result<T, Diagnostic>) {
        let Some(notices) = &self.notices else { return };
        match answer {
            Ok(_) if operation == Operation::Drain => notices.ended.notify_one(),
            Ok(_) if operation == Operation::Reload => {
                notices.changed.notify_one();
                notices.reloaded.notify_one();
            }
            Ok(_) if operation.changes() => notices.changed.notify_one(),
            Err(error) if error.kind == Kind::Unreachable || error.code == ENDED_OPEN => {
                notices.ended.notify_one();
            }
            Ok(_) | Err(_) => {}
        }
    }

    async fn lane(&self, lane: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, HttpRefusal> {
        tokio::time::timeout(self.limits.call_patience, Arc::clone(lane).acquire_owned())
            .await
            .ok()
            .and_then(Result::ok)
            .ok_or_else(|| HttpRefusal::busy("too many requests are under way"))
    }

    /// Asks the engine on a thread of its own; what it does goes on when the client has left.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        operation: Operation,
        question: impl FnOnce(&dyn Control) -> Result<T, Diagnostic> + Send + 'static,
    ) -> Result<T, HttpRefusal> {
        let control = self.control()?;
        let lane = match operation {
            // It may take as long as what runs; it must not take a place from anyone else.
            Operation::Drain => &self.drains,
            _ if operation.changes() => &self.writes,
            _ => &self.reads,
        };
        let permit = self.lane(lane).await?;
        let answer = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            question(control.as_ref())
        })
        .await;
        match answer {
            Ok(answer) => {
                self.tell(operation, &answer);
                Ok(answer?)
            }
            Err(error) => {
                tracing::error!(%error, operation = operation.id(), "a request failed inside");
                Err(HttpRefusal::from(Diagnostic::new(
                    Kind::Internal,
                    "request_failed",
                    "the engine failed on this request",
                )))
            }
        }
    }

    pub(super) fn body_limits(&self) -> BodyLimits {
        BodyLimits {
            bytes_max: self.limits.body_bytes_max,
            patience: self.limits.read_patience,
        }
    }
}

/// The router of all operations.
pub(super) fn router(desk: &Arc<Desk>) -> Router {
    let mut router = Router::new();
    for operation in Operation::ALL {
        let desk = Arc::clone(desk);
        let filter = MethodFilter::try_from(operation.method()).unwrap_or(MethodFilter::GET);
        router = router.route(
            operation.path(),
            on(filter, move |request: Request| async move {
                let answered = answer(operation, &desk, request).await;
                let response = answered.unwrap_or_else(HttpRefusal::into_response);
                tracing::debug!(
                    operation = operation.id(),
                    status = response.status().as_u16(),
                    "answered"
                );
                response
            }),
        );
    }
    let served = Arc::clone(desk);
    router
        .route(
            crate::mcp::PATH,
            any(move |request| async move {
                let answered = mcp::answer(&served, request).await;
                answered.unwrap_or_else(HttpRefusal::into_response)
            }),
        )
        .method_not_allowed_fallback(|| async {
            HttpRefusal::of_transport(
                StatusCode::METHOD_NOT_ALLOWED,
                "method_not_allowed",
                "this path does not take this method".to_owned(),
            )
        })
        .fallback(|| async { no_such_path() })
}

/// Nothing is served there.
pub(super) fn no_such_path() -> HttpRefusal {
    HttpRefusal::from(
        Diagnostic::new(
            Kind::NotFound,
            "no_such_path",
            "nothing is served at this path",
        )
        .hint("`GET /v1/openapi.json` lists every path"),
    )
}

async fn answer(
    operation: Operation,
    desk: &Desk,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let (mut parts, body) = request.into_parts();
    // What was read at once may exceed the buffer that bounds the reading.
    extract::head_within(&parts, desk.limits.head_bytes_max)?;
    extract::peer(&parts)?.may(operation.id(), operation.role())?;
    match operation {
        Operation::ListRuns
        | Operation::Logs
        | Operation::Schedules
        | Operation::Slots
        | Operation::Backfill => {}
        _ => extract::no_query(&parts.uri)?,
    }
    match operation.method() {
        axum::http::Method::GET => look(operation, desk, &mut parts).await,
        _ => change(operation, desk, &mut parts, body).await,
    }
}

/// Answers what only looks.
async fn look(
    operation: Operation,
    desk: &Desk,
    parts: &mut Parts,
) -> Result<Response, HttpRefusal> {
    let run = if operation.names_run() {
        extract::run_fragment(parts).await?
    } else {
        String::new()
    };
    let query = parts.uri.clone();
    Waiting::answering(parts);
    match operation {
        Operation::Version => Ok(reply::json(StatusCode::OK, &version(desk))),
        Operation::Openapi => Ok(reply::json(StatusCode::OK, &super::openapi::document())),
        Operation::Status => answered(desk.ask(operation, |control| control.status()).await),
        Operation::Metrics => measured(desk).await,
        Operation::Workers => answered(desk.ask(operation, |control| control.workers()).await),
        Operation::Schedules | Operation::Slots | Operation::Backfill | Operation::ListRuns => {
            search::search(operation, desk, &query).await
        }
        Operation::ShowRun => answered(desk.ask(operation, move |control| control.run(&run)).await),
        Operation::Diff => {
            let patch = desk
                .ask(operation, move |control| control.diff(&run))
                .await?;
            Ok(reply::bytes_of(
                StatusCode::OK,
                "text/x-diff; charset=utf-8",
                Bytes::from(patch),
            ))
        }
        Operation::Logs => {
            let query: LogsQuery = extract::query(&query)?;
            answered(
                desk.ask(operation, move |control| control.logs(&run, &query))
                    .await,
            )
        }
        Operation::Events => {
            let from = events::resume_from(&parts.headers)?;
            events::stream(desk, run, from).await
        }
        Operation::PauseSchedule
        | Operation::ResumeSchedule
        | Operation::TriggerSchedule
        | Operation::SubmitRun
        | Operation::CancelRun
        | Operation::RetryRun
        | Operation::ApproveRun
        | Operation::DenyRun
        | Operation::ResolveRun
        | Operation::LandRun
        | Operation::DiscardRun
        | Operation::Render
        | Operation::Probe
        | Operation::Reload
        | Operation::Drain => Err(HttpRefusal::bad_request(
            "bad_method",
            "this changes something",
        )),
    }
}

/// Engine and schedules, for a monitoring system.
async fn measured(desk: &Desk) -> Result<Response, HttpRefusal> {
    let text = desk
        .ask(Operation::Metrics, |control| {
            let schedules = control.all_schedules(&SchedulesQuery::default())?;
            Ok(metrics::text(&control.status()?, &schedules))
        })
        .await?;
    let kind = metrics::CONTENT_TYPE;
    Ok(reply::bytes_of(StatusCode::OK, kind, Bytes::from(text)))
}

/// Pauses a schedule, lets it go on, or runs it.
async fn change_schedule(
    operation: Operation,
    desk: &Desk,
    parts: &mut Parts,
    body: Body,
) -> Result<Response, HttpRefusal> {
    let limits = desk.body_limits();
    if operation == Operation::TriggerSchedule {
        let request: TriggerRequest = extract::body(parts, body, limits, false).await?;
        request.check()?;
        Waiting::answering(parts);
        return answered(desk.ask(operation, move |c| c.trigger(&request)).await);
    }
    if operation == Operation::PauseSchedule {
        let request: PauseRequest = extract::body(parts, body, limits, false).await?;
        request.check()?;
        Waiting::answering(parts);
        return answered(desk.ask(operation, move |c| c.pause(&request)).await);
    }
    let request: ResumeRequest = extract::body(parts, body, limits, false).await?;
    request.check()?;
    Waiting::answering(parts);
    answered(desk.ask(operation, move |c| c.resume(&request)).await)
}

/// Answers what is asked for by a path alone.
async fn ordered(operation: Operation, desk: &Desk) -> Result<Response, HttpRefusal> {
    if operation == Operation::Reload {
        return answered(desk.ask(operation, |c| c.reload()).await);
    }
    desk.ask(operation, |c| c.drain()).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Tries what skills need, or one model.
async fn probed(desk: &Desk, parts: &mut Parts, body: Body) -> Result<Response, HttpRefusal> {
    let request: ProbeRequest = extract::body(parts, body, desk.body_limits(), true).await?;
    Waiting::answering(parts);
    let of_model = request.model.is_some();
    let mut probes = desk
        .ask(Operation::Probe, move |c| c.probe(&request))
        .await?;
    if !of_model {
        probes.extend(desk.access.probe());
    }
    answered(Ok(probes))
}

/// Answers what changes something, or takes a body.
async fn change(
    operation: Operation,
    desk: &Desk,
    parts: &mut Parts,
    body: Body,
) -> Result<Response, HttpRefusal> {
    let run = if operation.names_run() {
        extract::run_fragment(parts).await?
    } else {
        String::new()
    };
    let limits = desk.body_limits();
    match operation {
        Operation::SubmitRun | Operation::Render => {
            let mut request: SubmitRequest = extract::body(parts, body, limits, false).await?;
            extract::idempotency_key(&parts.headers, &mut request)?;
            request.check()?;
            Waiting::answering(parts);
            if operation == Operation::Render {
                return answered(desk.ask(operation, move |c| c.render(&request)).await);
            }
            request.user_id = Some(extract::peer(parts)?.uid);
            Ok(submitted(
                &desk.ask(operation, move |c| c.submit(&request)).await?,
            ))
        }
        Operation::PauseSchedule | Operation::ResumeSchedule | Operation::TriggerSchedule => {
            change_schedule(operation, desk, parts, body).await
        }
        Operation::CancelRun => {
            let request: CancelRequest = extract::body(parts, body, limits, true).await?;
            request.check()?;
            Waiting::answering(parts);
            answered(desk.ask(operation, move |c| c.cancel(&run, &request)).await)
        }
        Operation::ApproveRun | Operation::DenyRun | Operation::ResolveRun => {
            settling::settle(operation, desk, run, parts, body).await
        }
        Operation::RetryRun => {
            nothing(parts, body, limits).await?;
            Ok(submitted(
                &desk.ask(operation, move |c| c.retry(&run)).await?,
            ))
        }
        Operation::LandRun => {
            nothing(parts, body, limits).await?;
            answered(desk.ask(operation, move |c| c.land(&run)).await)
        }
        Operation::DiscardRun => {
            nothing(parts, body, limits).await?;
            answered(desk.ask(operation, move |c| c.discard(&run)).await)
        }
        Operation::Probe => probed(desk, parts, body).await,
        Operation::Reload | Operation::Drain => {
            nothing(parts, body, limits).await?;
            ordered(operation, desk).await
        }
        Operation::Version
        | Operation::Openapi
        | Operation::Status
        | Operation::Metrics
        | Operation::Workers
        | Operation::Schedules
        | Operation::Slots
        | Operation::Backfill
        | Operation::ListRuns
        | Operation::ShowRun
        | Operation::Diff
        | Operation::Logs
        | Operation::Events => Err(HttpRefusal::bad_request(
            "bad_method",
            "this changes nothing",
        )),
    }
}

/// Reads the body of a request that takes none.
async fn nothing(parts: &mut Parts, body: Body, limits: BodyLimits) -> Result<(), HttpRefusal> {
    let Nothing {} = extract::body(parts, body, limits, true).await?;
    Waiting::answering(parts);
    Ok(())
}

/// An engine that does not answer yet.
pub(super) fn starting() -> Diagnostic {
    Diagnostic::new(Kind::Conflict, STARTING, "the engine is still recovering")
        .hint("try again in a second")
}

pub(super) fn answered<T: Serialize>(
    answer: Result<T, HttpRefusal>,
) -> Result<Response, HttpRefusal> {
    Ok(reply::json(StatusCode::OK, &answer?))
}

fn submitted(answer: &Submitted) -> Response {
    let status = if answer.existing {
        StatusCode::OK
    } else {
        StatusCode::CREATED
    };
    let mut response = reply::json(status, answer);
    if let Ok(location) = HeaderValue::try_from(format!("/{API_VERSION}/runs/{}", answer.run)) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

fn version(desk: &Desk) -> VersionReply {
    VersionReply {
        name: "workerctl".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        api: API_VERSION.to_owned(),
        workspace: desk.identity.workspace.to_string_lossy().into_owned(),
        pid: std::process::id(),
        ready: desk.control.get().is_some(),
        host: desk.identity.host.name().to_owned(),
    }
}
