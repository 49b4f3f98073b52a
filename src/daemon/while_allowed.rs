//! Streams on the socket end when their reader loses the role.
//!
//! A connection is checked when it is accepted, and a stream may stay open for days after that.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{Extensions, header};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};

use super::access_control::AccessControl;
use super::peer::{AtDoor, Groups, Peer};
use super::state::ApiState;
use crate::model::AccessRole;

/// The reader of a stream whose role the configuration gives.
#[derive(Clone)]
pub(super) struct Reader {
    uid: u32,
    groups: Groups,
    needed: AccessRole,
    access: Arc<AccessControl>,
}

impl Reader {
    /// Returns the sender of a request, or `None` for the engine's own user and root, who always have their role, and
    /// for the web page, whose streams end with their session.
    pub(super) fn from_request(
        extensions: &Extensions,
        state: &ApiState,
        needed: AccessRole,
    ) -> Option<Reader> {
        let uid = extensions.get::<Peer>()?.uid;
        let keeps_role = [0, state.identity.uid].contains(&uid);
        if keeps_role || extensions.get::<AtDoor>().is_some() {
            return None;
        }
        Some(Reader {
            uid,
            groups: extensions.get::<Groups>()?.clone(),
            needed,
            access: Arc::clone(&state.access),
        })
    }

    fn may_read(&self) -> bool {
        let role = self.access.role_of(self.uid, &self.groups.0);
        role.is_some_and(|role| role >= self.needed)
    }
}

/// Wraps a response so that it ends before the next chunk once its reader has lost the role.
pub(super) fn while_allowed(response: Response, reader: Option<Reader>) -> Response {
    let Some(reader) = reader else {
        return response;
    };
    let kind = response.headers().get(header::CONTENT_TYPE);
    let is_stream = kind.is_some_and(|kind| kind == "text/event-stream");
    if !is_stream && response.body().size_hint().exact().is_some() {
        return response;
    }
    response.map(|body| {
        Body::new(WhileAllowed {
            body,
            reader,
            is_stream,
        })
    })
}

struct WhileAllowed {
    body: Body,
    reader: Reader,
    /// Events end in order; anything else would look complete, so it is cut off.
    is_stream: bool,
}

impl HttpBody for WhileAllowed {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Ready(Some(_)) if !self.reader.may_read() => {
                let lost = || axum::Error::new(std::io::Error::other("the role was revoked"));
                Poll::Ready((!self.is_stream).then(|| Err(lost())))
            }
            polled => polled,
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
