//! The engine itself, and the definitions that it goes by.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, NoContent, Response};
use serde_json::json;

use super::Answer;
use crate::clock::{Clock, SystemClock};
use crate::daemon::checks::Nothing;
use crate::daemon::description::{Description, Output};
use crate::daemon::extract::Query;
use crate::daemon::paths;
use crate::daemon::peer::Peer;
use crate::daemon::reply::{self, HttpRefusal, Json};
use crate::daemon::state::ApiState;
use crate::daemon::wire::VersionReply;
use crate::model::{AccessRole, Problem};
use crate::protocol::{
    self, ForgetRequest, Forgot, METRICS_CONTENT_TYPE, Probe, ProbeRequest, ReloadReport, Rendered,
    SkillWithRuns, SkillsQuery, StatsLine, StatsQuery, Status, SubmitRequest, WorkerView,
};

/// Tells who answers, even before there is an engine. Whoever is not known learns nothing of this machine.
pub(crate) async fn version(
    State(state): State<Arc<ApiState>>,
    peer: Option<Extension<Peer>>,
) -> Json<VersionReply> {
    let mut version = state.version();
    if peer.is_none() {
        version.workspace.clear();
        version.pid = None;
    }
    Json(version)
}

pub(crate) async fn status(State(state): State<Arc<ApiState>>) -> Answer<Status> {
    Ok(Json(state.read(|c| c.status()).await?))
}

pub(crate) async fn workers(State(state): State<Arc<ApiState>>) -> Answer<Vec<WorkerView>> {
    Ok(Json(state.read(|c| c.workers()).await?))
}

/// Skills by their qualified names, and where the next list of them is.
pub(crate) async fn skills(
    State(state): State<Arc<ApiState>>,
    Query(mut query): Query<SkillsQuery>,
) -> Result<(HeaderMap, Json<Vec<SkillWithRuns>>), HttpRefusal> {
    let asked = query.clone();
    let page = state
        .read(move |control| control.skills_page(&asked))
        .await?;
    query.after = page.next;
    let next = query.after.is_some();
    let next = next.then(|| paths::link_to_next("/v1/skills", &query));
    Ok((reply::linked(next), Json(page.skills)))
}

pub(crate) async fn problems(State(state): State<Arc<ApiState>>) -> Answer<Vec<Problem>> {
    Ok(Json(state.read(|c| c.problems()).await?))
}

/// Engine and schedules, for a monitoring system.
pub(crate) async fn metrics(State(state): State<Arc<ApiState>>) -> Result<Metrics, HttpRefusal> {
    let text = state.read(|control| protocol::metrics(control, SystemClock::default().now()));
    text.await.map(Metrics)
}

/// Metrics in the text format of Prometheus.
pub(crate) struct Metrics(String);

impl IntoResponse for Metrics {
    fn into_response(self) -> Response {
        reply::answer_of(StatusCode::OK, METRICS_CONTENT_TYPE, Body::from(self.0))
    }
}

impl Output for Metrics {
    fn describe(operation: &mut Description<'_>) {
        let content = json!({"text/plain": {"schema": {"type": "string"}}});
        operation.reply("200", operation.summary, &content);
    }
}

pub(crate) async fn render(
    State(state): State<Arc<ApiState>>,
    Json(request): Json<SubmitRequest>,
) -> Answer<Rendered> {
    Ok(Json(state.read(move |c| c.render(&request)).await?))
}

pub(crate) async fn stats(
    State(state): State<Arc<ApiState>>,
    Query(query): Query<StatsQuery>,
) -> Answer<Vec<StatsLine>> {
    Ok(Json(state.read(move |c| c.stats(&query)).await?))
}

pub(crate) async fn forget(
    State(state): State<Arc<ApiState>>,
    Json(request): Json<ForgetRequest>,
) -> Answer<Forgot> {
    Ok(Json(state.change(move |c| c.forget(&request)).await?))
}

/// Tries what skills need, one model, or the ways of telling people.
pub(crate) async fn probe(
    State(state): State<Arc<ApiState>>,
    Extension(peer): Extension<Peer>,
    Json(request): Json<ProbeRequest>,
) -> Answer<Vec<Probe>> {
    if request.notify.is_some() {
        // It runs commands of the workspace and wakes people.
        peer.may("notify test", AccessRole::Admin)?;
    }
    if request.model.is_some() {
        // It runs programs and commands of secrets, and costs money.
        peer.may("model test", AccessRole::Admin)?;
    }
    let of_model = request.model.is_some() || request.notify.is_some();
    let mut probes = state.read(move |control| control.probe(&request)).await?;
    if !of_model {
        probes.extend(state.access.probe());
    }
    Ok(Json(probes))
}

/// Tries what skills need.
pub(crate) async fn doctor(State(state): State<Arc<ApiState>>) -> Answer<Vec<Probe>> {
    let all = ProbeRequest::default();
    let mut probes = state.read(move |control| control.probe(&all)).await?;
    probes.extend(state.access.probe());
    Ok(Json(probes))
}

pub(crate) async fn reload(
    State(state): State<Arc<ApiState>>,
    Json(Nothing {}): Json<Nothing>,
) -> Answer<ReloadReport> {
    let report = state.change(|control| control.reload()).await?;
    state.tell(|notices| &notices.reloaded);
    Ok(Json(report))
}

pub(crate) async fn drain(
    State(state): State<Arc<ApiState>>,
    Json(Nothing {}): Json<Nothing>,
) -> Result<NoContent, HttpRefusal> {
    state.drain().await?;
    Ok(NoContent)
}
