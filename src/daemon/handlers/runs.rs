//! Runs: what is asked of them, and what people decide about them.

use std::sync::Arc;

use axum::extract::{Extension, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::Answer;
use crate::daemon::description::{Description, Output};
use crate::daemon::extract::{Query, RunFragment, Signed, Submission};
use crate::daemon::paths;
use crate::daemon::peer::Peer;
use crate::daemon::reply::{self, HttpRefusal, Json};
use crate::daemon::state::ApiState;
use crate::protocol::{
    API_VERSION, ApproveRequest, CancelRequest, Control, DenyRequest, Discarded, Landed,
    ResolveRequest, RunDetail, RunSummary, RunsQuery, SignedRequest, Submitted,
};

/// Runs, newest first, and where the next list of them is.
pub(crate) async fn list(
    State(state): State<Arc<ApiState>>,
    Query(mut query): Query<RunsQuery>,
) -> Result<(HeaderMap, Json<Vec<RunSummary>>), HttpRefusal> {
    let asked = query.clone();
    let page = state.read(move |control| control.runs_page(&asked)).await?;
    query.before = page.next;
    let next = page.next.map(|_| paths::link_to_next("/v1/runs", &query));
    Ok((reply::linked(next), Json(page.runs)))
}

pub(crate) async fn submit(
    State(state): State<Arc<ApiState>>,
    signed: Signed,
    Submission(mut request): Submission,
) -> Result<Accepted, HttpRefusal> {
    request.user_id = Some(signed.peer.uid);
    request.caller_run = signed.peer.run();
    request.by = signed.by(request.by.take());
    Ok(Accepted(state.change(move |c| c.submit(&request)).await?))
}

pub(crate) async fn retry(
    State(state): State<Arc<ApiState>>,
    RunFragment(run): RunFragment,
    Extension(peer): Extension<Peer>,
    Json(mut request): Json<SignedRequest>,
) -> Result<Accepted, HttpRefusal> {
    request.by = Some(peer.name());
    let retry = move |control: &dyn Control| control.retry(&run, &request);
    Ok(Accepted(state.change(retry).await?))
}

/// A run that was accepted, now or by an earlier request with the same key.
pub(crate) struct Accepted(Submitted);

impl IntoResponse for Accepted {
    fn into_response(self) -> Response {
        let status = if self.0.existing {
            StatusCode::OK
        } else {
            StatusCode::CREATED
        };
        let mut response = reply::json(status, &self.0);
        if let Ok(location) = HeaderValue::try_from(format!("/{API_VERSION}/runs/{}", self.0.run)) {
            response.headers_mut().insert(header::LOCATION, location);
        }
        response
    }
}

impl Output for Accepted {
    fn describe(operation: &mut Description<'_>) {
        let content = operation.json::<Submitted>();
        operation.reply(
            "200",
            "An earlier request with the same key had made the run",
            &content,
        );
        operation.reply("201", operation.summary, &content);
    }
}

pub(crate) async fn show(
    State(state): State<Arc<ApiState>>,
    RunFragment(run): RunFragment,
) -> Answer<RunDetail> {
    Ok(Json(state.read(move |c| c.run(&run)).await?))
}

pub(crate) async fn cancel(
    State(state): State<Arc<ApiState>>,
    RunFragment(run): RunFragment,
    signed: Signed,
    Json(mut request): Json<CancelRequest>,
) -> Answer<RunSummary> {
    request.caller_run = signed.peer.run();
    if request.caller_run.is_none() {
        signed.peer.needs_person("cancel_run", "workerctl cancel")?;
    }
    request.by = signed.by(request.by.take());
    Ok(Json(state.change(move |c| c.cancel(&run, &request)).await?))
}

pub(crate) async fn approve(
    State(state): State<Arc<ApiState>>,
    RunFragment(run): RunFragment,
    Extension(peer): Extension<Peer>,
    Json(mut request): Json<ApproveRequest>,
) -> Answer<RunSummary> {
    request.by = Some(peer.name());
    Ok(Json(
        state.change(move |c| c.approve(&run, &request)).await?,
    ))
}

pub(crate) async fn deny(
    State(state): State<Arc<ApiState>>,
    RunFragment(run): RunFragment,
    Extension(peer): Extension<Peer>,
    Json(mut request): Json<DenyRequest>,
) -> Answer<RunSummary> {
    request.by = Some(peer.name());
    Ok(Json(state.change(move |c| c.deny(&run, &request)).await?))
}

pub(crate) async fn resolve(
    State(state): State<Arc<ApiState>>,
    RunFragment(run): RunFragment,
    Extension(peer): Extension<Peer>,
    Json(mut request): Json<ResolveRequest>,
) -> Answer<RunSummary> {
    request.by = Some(peer.name());
    Ok(Json(
        state.change(move |c| c.resolve(&run, &request)).await?,
    ))
}

pub(crate) async fn land(
    State(state): State<Arc<ApiState>>,
    RunFragment(run): RunFragment,
    Extension(peer): Extension<Peer>,
    Json(mut request): Json<SignedRequest>,
) -> Answer<Landed> {
    request.by = Some(peer.name());
    Ok(Json(state.change(move |c| c.land(&run, &request)).await?))
}

pub(crate) async fn discard(
    State(state): State<Arc<ApiState>>,
    RunFragment(run): RunFragment,
    Extension(peer): Extension<Peer>,
    Json(mut request): Json<SignedRequest>,
) -> Answer<Discarded> {
    request.by = Some(peer.name());
    Ok(Json(
        state.change(move |c| c.discard(&run, &request)).await?,
    ))
}
