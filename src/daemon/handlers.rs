//! Handlers of the API, by theme. What each takes and returns is what the document says of its route.

pub(super) mod changes;
pub(super) mod engine;
pub(super) mod events;
pub(super) mod logs;
pub(super) mod mcp;
pub(super) mod results;
pub(super) mod runs;
pub(super) mod schedules;
pub(super) mod web;

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Bytes;
use hyper::body::Frame;
use tokio::time::Sleep;

use super::reply::{HttpRefusal, Json};

/// An answer in JSON.
type Answer<T> = Result<Json<T>, HttpRefusal>;

/// What a stream of events says while it has nothing to tell.
struct SignOfLife {
    every: Duration,
    next: Pin<Box<Sleep>>,
}

impl SignOfLife {
    fn new(every: Duration) -> SignOfLife {
        let next = Box::pin(tokio::time::sleep(every));
        SignOfLife { every, next }
    }

    /// Something was told: it waits anew.
    fn put_off(&mut self) {
        self.next.set(tokio::time::sleep(self.every));
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Frame<Bytes>> {
        if self.next.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        self.put_off();
        // The new timer registers itself only when it is polled.
        let _ = self.next.as_mut().poll(cx);
        Poll::Ready(Frame::data(Bytes::from_static(b": quiet\n\n")))
    }
}
