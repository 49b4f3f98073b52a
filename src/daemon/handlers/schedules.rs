//! Schedules and their slots.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;

use super::Answer;
use crate::daemon::extract::{Query, Signed};
use crate::daemon::paths;
use crate::daemon::reply::{self, HttpRefusal, Json};
use crate::daemon::state::ApiState;
use crate::protocol::{
    BackfillQuery, BackfillSlot, Calendar, CalendarQuery, ExplainQuery, ExplainedSchedule,
    NextQuery, NextSlots, PauseRequest, ResumeRequest, ScheduleView, SchedulesQuery, SlotView,
    SlotsQuery, TriggerRequest,
};

pub(crate) async fn list(
    State(state): State<Arc<ApiState>>,
    Query(query): Query<SchedulesQuery>,
) -> Answer<Vec<ScheduleView>> {
    Ok(Json(state.read(move |c| c.schedules(&query)).await?))
}

/// Rows of the ledger, newest first, and where the next list of them is.
pub(crate) async fn slots(
    State(state): State<Arc<ApiState>>,
    Query(mut query): Query<SlotsQuery>,
) -> Result<(HeaderMap, Json<Vec<SlotView>>), HttpRefusal> {
    let asked = query.clone();
    let page = state
        .read(move |control| control.slots_page(&asked))
        .await?;
    query.before = page.next;
    let next = query.before.is_some();
    let next = next.then(|| paths::link_to_next("/v1/slots", &query));
    Ok((reply::linked(next), Json(page.slots)))
}

pub(crate) async fn calendar(
    State(state): State<Arc<ApiState>>,
    Query(query): Query<CalendarQuery>,
) -> Answer<Calendar> {
    Ok(Json(state.read(move |c| c.calendar(&query)).await?))
}

pub(crate) async fn next(
    State(state): State<Arc<ApiState>>,
    Query(query): Query<NextQuery>,
) -> Answer<NextSlots> {
    Ok(Json(state.read(move |c| c.next_slots(&query)).await?))
}

pub(crate) async fn explain(
    State(state): State<Arc<ApiState>>,
    Query(query): Query<ExplainQuery>,
) -> Answer<ExplainedSchedule> {
    Ok(Json(state.read(move |c| c.explain(&query)).await?))
}

pub(crate) async fn backfill(
    State(state): State<Arc<ApiState>>,
    Query(query): Query<BackfillQuery>,
) -> Answer<Vec<BackfillSlot>> {
    Ok(Json(state.read(move |c| c.backfill(&query)).await?))
}

pub(crate) async fn pause(
    State(state): State<Arc<ApiState>>,
    signed: Signed,
    Json(mut request): Json<PauseRequest>,
) -> Answer<ScheduleView> {
    request.by = signed.by(request.by.take());
    Ok(Json(state.change(move |c| c.pause(&request)).await?))
}

pub(crate) async fn resume(
    State(state): State<Arc<ApiState>>,
    Json(request): Json<ResumeRequest>,
) -> Answer<ScheduleView> {
    Ok(Json(state.change(move |c| c.resume(&request)).await?))
}

pub(crate) async fn trigger(
    State(state): State<Arc<ApiState>>,
    signed: Signed,
    Json(mut request): Json<TriggerRequest>,
) -> Answer<SlotView> {
    request.by = signed.by(request.by.take());
    Ok(Json(state.change(move |c| c.trigger(&request)).await?))
}
