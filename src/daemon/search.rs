//! Answers to what is asked for by a query: lists of runs, schedules and slots.

use axum::http::{HeaderValue, Uri, header};
use axum::response::Response;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::answer::{Desk, answered};
use super::extract::{self, Checked};
use super::operation::Operation;
use super::paths;
use super::reply::HttpRefusal;
use crate::model::Diagnostic;
use crate::protocol::{BackfillQuery, Control, RunsQuery, SchedulesQuery, SlotsQuery};

/// Answers what is asked for by a query.
pub(super) async fn search(
    operation: Operation,
    desk: &Desk,
    uri: &Uri,
) -> Result<Response, HttpRefusal> {
    match operation {
        Operation::Schedules => {
            found(operation, desk, uri, |c, query: &SchedulesQuery| {
                c.schedules(query)
            })
            .await
        }
        Operation::Slots => {
            found(operation, desk, uri, |c, query: &SlotsQuery| c.slots(query)).await
        }
        Operation::Backfill => {
            found(operation, desk, uri, |c, query: &BackfillQuery| {
                c.backfill(query)
            })
            .await
        }
        _ => list_runs(desk, uri).await,
    }
}

/// Runs, newest first, and where the next list of them is.
async fn list_runs(desk: &Desk, uri: &Uri) -> Result<Response, HttpRefusal> {
    let mut query: RunsQuery = extract::query(uri)?;
    query.check()?;
    let asked = query.clone();
    let asked = desk.ask(Operation::ListRuns, move |control| control.runs(&asked));
    let runs = asked.await?;
    query.before = runs.last().map(|last| last.run);
    let mut response = answered(Ok(runs))?;
    if query.before.is_some()
        && let Ok(link) = HeaderValue::try_from(format!("<{}>; rel=\"next\"", paths::runs(&query)))
    {
        response.headers_mut().insert(header::LINK, link);
    }
    Ok(response)
}

/// Answers a search with what its query names.
async fn found<Q, T>(
    operation: Operation,
    desk: &Desk,
    uri: &Uri,
    search: fn(&dyn Control, &Q) -> Result<T, Diagnostic>,
) -> Result<Response, HttpRefusal>
where
    Q: DeserializeOwned + Checked + Send + 'static,
    T: Serialize + Send + 'static,
{
    let query: Q = extract::query(uri)?;
    query.check()?;
    let asked = desk.ask(operation, move |control| search(control, &query));
    answered(asked.await)
}
