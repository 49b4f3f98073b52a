//! Everything that changes as one stream of server-sent events, with the logs of a few runs: what a page needs, for a
//! browser opens few connections to one origin.

use std::fmt::Write;
use std::ops::ControlFlow;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use serde_json::json;
use tokio::sync::mpsc;

use super::events::{Told, event_text, stream};
use crate::daemon::description::{Description, Output};
use crate::daemon::extract::{EventId, Query};
use crate::daemon::reply::HttpRefusal;
use crate::daemon::state::ApiState;
use crate::model::RunId;
use crate::protocol::{Change, Control, FollowQuery, RunLine, RunSummary, WatchEvent};

pub(crate) async fn follow(
    State(state): State<Arc<ApiState>>,
    Query(query): Query<FollowQuery>,
    EventId(after): EventId,
) -> Result<Changes, HttpRefusal> {
    let logs = query
        .logs()
        .map_err(|why| HttpRefusal::bad_request("bad_query", why))?;
    let (told, telling) = stream(&state)?;
    // Lines wait for `hello`: they do once nobody holds these.
    let mut gates = Vec::new();
    for (run, from) in logs {
        let (gate, opened) = std::sync::mpsc::channel::<()>();
        gates.push(gate);
        telling.by(move |control, events| {
            let _ = opened.recv();
            tell_log(control, run, from, events);
        })?;
    }
    let version = state.version();
    telling.by(move |control, events| {
        let hello =
            |resumed| json!({"version": version.version, "web": version.web, "resumed": resumed});
        // It ends with the engine, or when its client has left; either way nobody is left to be told.
        let _ = control.follow(after.as_deref(), &mut |id, changes| {
            if events.is_closed() {
                return ControlFlow::Break(());
            }
            if changes.is_empty() {
                return ControlFlow::Continue(());
            }
            let told = hand_over(events, changes_text(id, changes, &hello));
            gates.clear();
            told
        });
    })?;
    Ok(Changes(told))
}

/// Changes as events, of which only the last has the id behind which a client goes on: one that is cut off in between
/// is told all of them again.
fn changes_text(id: &str, changes: &[Change], hello: &dyn Fn(bool) -> serde_json::Value) -> Bytes {
    let mut text = String::new();
    for (at, change) in changes.iter().enumerate() {
        let (name, data) = match change {
            Change::Hello { resumed } => ("hello", hello(*resumed).to_string()),
            Change::Run(summary) => ("run", summary.to_string()),
            Change::Many { count } => ("many", json!({"count": count}).to_string()),
            Change::Schedules => ("schedules", "{}".to_owned()),
            Change::Definitions => ("definitions", "{}".to_owned()),
            Change::Condition(name) => ("status", json!({"condition": name}).to_string()),
        };
        if at + 1 == changes.len() {
            let _ = writeln!(text, "id: {id}");
        }
        // Writing into a string cannot fail.
        let _ = write!(text, "event: {name}\ndata: {data}\n\n");
    }
    Bytes::from(text)
}

/// Tells the log of a run from a line on. A stream that is taken up again names the line anew.
fn tell_log(control: &dyn Control, run: RunId, from: u64, events: &mpsc::Sender<Bytes>) {
    let mut tell = |event: WatchEvent| {
        if events.is_closed() {
            return ControlFlow::Break(());
        }
        let text = match event {
            WatchEvent::Line(line) => event_text("line", None, &RunLine { run, line }),
            WatchEvent::Partial(line) => event_text("partial", None, &RunLine { run, line }),
            WatchEvent::Changed(_) | WatchEvent::Lagged { lost: 0 } => {
                return ControlFlow::Continue(());
            }
            WatchEvent::Lagged { lost } => {
                event_text("lagged", None, &json!({"run": run, "lost": lost}))
            }
        };
        hand_over(events, text)
    };
    let last = match control.watch_lines_from(run, from, &mut tell) {
        Ok(()) => event_text("end", None, &json!({"run": run})),
        Err(error) => event_text("error", None, &json!({"run": run, "error": error})),
    };
    let _: ControlFlow<()> = hand_over(events, last);
}

fn hand_over(events: &mpsc::Sender<Bytes>, text: Bytes) -> ControlFlow<()> {
    match events.blocking_send(text) {
        Ok(()) => ControlFlow::Continue(()),
        Err(_) => ControlFlow::Break(()),
    }
}

/// The stream of changes.
pub(crate) struct Changes(Told);

impl axum::response::IntoResponse for Changes {
    fn into_response(self) -> axum::response::Response {
        self.0.into_response()
    }
}

impl Output for Changes {
    fn describe(operation: &mut Description<'_>) {
        // The schemas of the data of `run`, and of `line` and `partial`; the others hold one or two fields each.
        let run = operation.replies.subschema_for::<RunSummary>();
        let line = operation.replies.subschema_for::<RunLine>();
        let data = json!({"run": run, "line": line});
        let content = json!({"text/event-stream": {"schema": {"type": "string"}, "x-data": data}});
        operation.reply("200", operation.summary, &content);
    }
}
