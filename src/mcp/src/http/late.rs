//! Answers that take a while: their head goes out before there is anything to say, so that the client knows that it
//! was heard.

use std::convert::Infallible;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, BodyStream, Full, StreamBody};
use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use tokio::task::{AbortHandle, JoinError, JoinHandle};

use super::reply::{self, Answer};

/// How long an answer may take whose status says how it went.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

const EVENTS: &str = "text/event-stream";

/// Work that ends with whoever waits for it.
pub(super) struct Abandoned(AbortHandle);

impl Abandoned {
    pub(super) fn of(work: &JoinHandle<Answer>) -> Abandoned {
        Abandoned(work.abort_handle())
    }
}

impl Drop for Abandoned {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A stream on which the answer comes once it is there. Whoever reads no further gives the work up.
pub(super) fn answer(work: JoinHandle<Answer>, given_up: Abandoned) -> Answer {
    let coming = async move {
        let _given_up = given_up;
        as_events(work.await).await
    };
    let frames = stream::once(coming).flat_map(BodyStream::new);
    events(BodyExt::boxed(StreamBody::new(frames)))
}

/// A stream of events.
pub(super) fn events(body: BoxBody<Bytes, Infallible>) -> Answer {
    let mut answer = reply::with(StatusCode::OK, body);
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(EVENTS));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    answer
}

async fn as_events(worked: Result<Answer, JoinError>) -> BoxBody<Bytes, Infallible> {
    let answer = worked.unwrap_or_else(|error| lost(&error));
    let kind = answer.headers().get(CONTENT_TYPE);
    if kind.is_some_and(|kind| kind == EVENTS) {
        return answer.into_body();
    }
    // What would have had a status of its own; what is no JSON says that the server ends.
    let answer = match kind {
        Some(kind) if kind == "application/json" => answer,
        _ => ending(),
    };
    let Ok(body) = answer.into_body().collect().await;
    let event = [b"data: ", body.to_bytes().as_ref(), b"\n\n"].concat();
    Full::from(event).boxed()
}

fn ending() -> Answer {
    reply::busy("Service Unavailable: the server ends")
}

/// What is said where the work has ended without an answer.
pub(super) fn lost(error: &JoinError) -> Answer {
    tracing::warn!(%error, "a request over HTTP was not answered");
    ending()
}
