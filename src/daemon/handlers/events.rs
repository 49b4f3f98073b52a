//! A run as server-sent events: from the first line of its log until it has ended.
//!
//! Each event has an `id`: the number of the next line of the log. A client that was cut off sends
//! it back as `Last-Event-ID` and is told no line twice; one that has read lines elsewhere says so with `from`.

use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use hyper::body::Frame;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::SignOfLife;
use crate::daemon::checks::EventsQuery;
use crate::daemon::description::{Description, Output};
use crate::daemon::extract::{LastEventId, Query, RunFragment};
use crate::daemon::reply::{self, HttpRefusal};
use crate::daemon::state::ApiState;
use crate::daemon::wire::NO_LINES;
use crate::model::{Diagnostic, Kind, RunId};
use crate::protocol::{Control, WatchEvent};

/// Events that wait for a slow client before the engine's own queue begins to fill.
const PENDING_EVENTS_MAX: usize = 256;
/// Stack of a watcher's thread in bytes: it only formats and hands over.
const WATCHER_STACK_BYTES: usize = 256 * 1024;

/// Starts the stream. The run is looked up first, so that a wrong id is refused and not streamed.
pub(crate) async fn follow(
    State(state): State<Arc<ApiState>>,
    RunFragment(run): RunFragment,
    LastEventId(last): LastEventId,
    Query(query): Query<EventsQuery>,
) -> Result<Told, HttpRefusal> {
    let from = last.unwrap_or(query.from);
    let (told, telling) = stream(&state)?;
    let detail = state.read(move |control| control.run(&run)).await?;
    let run = detail.summary.run;
    telling.by(move |control, events| tell(control, run, from, events))?;
    Ok(told)
}

/// Watches the run on this thread and hands each event over; ends when the client has left.
fn tell(control: &dyn Control, run: RunId, from: u64, events: &mpsc::Sender<Bytes>) {
    let mut next = from;
    let mut hand_over = |event: WatchEvent| {
        if events.is_closed() {
            return ControlFlow::Break(());
        }
        let name = match &event {
            WatchEvent::Line(line) => {
                next = line.line.saturating_add(1);
                "line"
            }
            WatchEvent::Partial(_) => "partial",
            WatchEvent::Changed(_) => "changed",
            // Nothing was lost: the engine only lets us look whether the client is still there.
            WatchEvent::Lagged { lost: 0 } => return ControlFlow::Continue(()),
            // The id stays: a stream that is taken up again begins with the lines that were lost.
            WatchEvent::Lagged { .. } => "lagged",
        };
        match events.blocking_send(event_text(name, Some(next), &event)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    };
    let ended = if from == NO_LINES {
        control.watch_changes(run, &mut hand_over)
    } else {
        control.watch_lines_from(run, from, &mut hand_over)
    };
    let last = match ended {
        Ok(()) => event_text("end", Some(next), &json!({})),
        Err(diagnostic) => event_text("error", Some(next), &diagnostic),
    };
    // The client may have left; nobody else waits for this.
    let _ = events.blocking_send(last);
}

/// An event as text.
pub(super) fn event_text<T: serde::Serialize>(name: &str, id: Option<u64>, data: &T) -> Bytes {
    let data = serde_json::to_string(data).unwrap_or_else(|error| {
        let diagnostic = Diagnostic::new(Kind::Internal, "reply_not_json", error.to_string());
        json!(diagnostic).to_string()
    });
    let id = id.map_or_else(String::new, |id| format!("id: {id}\n"));
    Bytes::from(format!("{id}event: {name}\ndata: {data}\n\n"))
}

/// The stream: events as they come, a comment where nothing came for a while.
pub(crate) struct Told {
    events: mpsc::Receiver<Bytes>,
    quiet: SignOfLife,
    /// The client's place among the watchers; free again when it has left.
    _place: OwnedSemaphorePermit,
}

/// The other end of a stream, for those who tell something; it ends when the last of them does.
pub(super) struct Telling {
    state: Arc<ApiState>,
    events: mpsc::Sender<Bytes>,
}

/// A stream on which nobody tells anything yet.
pub(super) fn stream(state: &Arc<ApiState>) -> Result<(Told, Telling), HttpRefusal> {
    let (sender, events) = mpsc::channel(PENDING_EVENTS_MAX);
    let told = Told {
        events,
        quiet: SignOfLife::new(state.limits.keep_alive),
        _place: place_among(&state.watchers)?,
    };
    let state = Arc::clone(state);
    let telling = Telling {
        state,
        events: sender,
    };
    Ok((told, telling))
}

fn place_among(of: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, HttpRefusal> {
    let place = Arc::clone(of).try_acquire_owned();
    place.map_err(|_| HttpRefusal::busy("too many runs are being watched"))
}

impl Telling {
    /// Tells what somebody hands over on a thread of its own.
    pub(super) fn by(
        &self,
        tells: impl FnOnce(&dyn Control, &mpsc::Sender<Bytes>) + Send + 'static,
    ) -> Result<(), HttpRefusal> {
        let thread = place_among(&self.state.watch_threads)?;
        let control = self.state.control()?;
        let events = self.events.clone();
        let started = std::thread::Builder::new()
            .name("watch".to_owned())
            .stack_size(WATCHER_STACK_BYTES)
            .spawn(move || {
                let _thread = thread;
                tells(control.as_ref(), &events);
            });
        started.map(drop).map_err(|error| {
            HttpRefusal::busy(format!("no thread could be started to watch: {error}"))
        })
    }
}

impl IntoResponse for Told {
    fn into_response(self) -> Response {
        reply::answer_of(StatusCode::OK, "text/event-stream", Body::new(self))
    }
}

impl Output for Told {
    fn describe(operation: &mut Description<'_>) {
        // The schema is that of the data of the events `line`, `partial`, `changed` and `lagged`; `end` has `{}`,
        // `error` a refusal.
        let data = operation.replies.subschema_for::<WatchEvent>();
        let content = json!({"text/event-stream": {"schema": {"type": "string"}, "x-data": data}});
        operation.reply("200", operation.summary, &content);
    }
}

impl HttpBody for Told {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if let Poll::Ready(event) = self.events.poll_recv(cx) {
            self.quiet.put_off();
            return Poll::Ready(event.map(|event| Ok(Frame::data(event))));
        }
        self.quiet.poll(cx).map(|frame| Some(Ok(frame)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_a_run_cannot_forge_an_event() {
        let text = event_text("line", Some(3), &"a\n\nevent: end\r\ndata: {}");
        let text = String::from_utf8(text.to_vec()).expect("UTF-8");
        assert_eq!(text.matches('\n').count(), 4, "{text}");
        assert!(text.ends_with("\n\n"));
    }
}
