//! Schedules and their slots.

use std::sync::Arc;

use axum::extract::State;

use super::Answer;
use crate::daemon::extract::Query;
use crate::daemon::reply::Json;
use crate::daemon::state::Desk;
use crate::protocol::{
    BackfillQuery, BackfillSlot, PauseRequest, ResumeRequest, ScheduleView, SchedulesQuery,
    SlotView, SlotsQuery, TriggerRequest,
};

pub(crate) async fn list(
    State(desk): State<Arc<Desk>>,
    Query(query): Query<SchedulesQuery>,
) -> Answer<Vec<ScheduleView>> {
    desk.read(move |control| control.schedules(&query))
        .await
        .map(Json)
}

pub(crate) async fn slots(
    State(desk): State<Arc<Desk>>,
    Query(query): Query<SlotsQuery>,
) -> Answer<Vec<SlotView>> {
    desk.read(move |control| control.slots(&query))
        .await
        .map(Json)
}

pub(crate) async fn backfill(
    State(desk): State<Arc<Desk>>,
    Query(query): Query<BackfillQuery>,
) -> Answer<Vec<BackfillSlot>> {
    desk.read(move |control| control.backfill(&query))
        .await
        .map(Json)
}

pub(crate) async fn pause(
    State(desk): State<Arc<Desk>>,
    Json(request): Json<PauseRequest>,
) -> Answer<ScheduleView> {
    desk.change(move |control| control.pause(&request))
        .await
        .map(Json)
}

pub(crate) async fn resume(
    State(desk): State<Arc<Desk>>,
    Json(request): Json<ResumeRequest>,
) -> Answer<ScheduleView> {
    desk.change(move |control| control.resume(&request))
        .await
        .map(Json)
}

pub(crate) async fn trigger(
    State(desk): State<Arc<Desk>>,
    Json(request): Json<TriggerRequest>,
) -> Answer<SlotView> {
    desk.change(move |control| control.trigger(&request))
        .await
        .map(Json)
}
