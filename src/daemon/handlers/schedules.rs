//! Schedules and their slots.

use std::sync::Arc;

use axum::extract::State;

use super::Answer;
use crate::daemon::extract::Query;
use crate::daemon::reply::Json;
use crate::daemon::state::ApiState;
use crate::protocol::{
    BackfillQuery, BackfillSlot, PauseRequest, ResumeRequest, ScheduleView, SchedulesQuery,
    SlotView, SlotsQuery, TriggerRequest,
};

pub(crate) async fn list(
    State(state): State<Arc<ApiState>>,
    Query(query): Query<SchedulesQuery>,
) -> Answer<Vec<ScheduleView>> {
    Ok(Json(state.read(move |c| c.schedules(&query)).await?))
}

pub(crate) async fn slots(
    State(state): State<Arc<ApiState>>,
    Query(query): Query<SlotsQuery>,
) -> Answer<Vec<SlotView>> {
    Ok(Json(state.read(move |c| c.slots(&query)).await?))
}

pub(crate) async fn backfill(
    State(state): State<Arc<ApiState>>,
    Query(query): Query<BackfillQuery>,
) -> Answer<Vec<BackfillSlot>> {
    Ok(Json(state.read(move |c| c.backfill(&query)).await?))
}

pub(crate) async fn pause(
    State(state): State<Arc<ApiState>>,
    Json(request): Json<PauseRequest>,
) -> Answer<ScheduleView> {
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
    Json(request): Json<TriggerRequest>,
) -> Answer<SlotView> {
    Ok(Json(state.change(move |c| c.trigger(&request)).await?))
}
