//! The web page: holding its door open, logging in and out.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use hyper::body::Frame;
use serde_json::json;

use super::events::event_text;
use super::{Answer, SignOfLife};
use crate::daemon::checks::Nothing;
use crate::daemon::description::{Description, Output};
use crate::daemon::extract::{AtDoorOnly, AtSocket, Session};
use crate::daemon::reply::{self, HttpRefusal, Json};
use crate::daemon::state::ApiState;
use crate::daemon::web::doors::Hold;
use crate::daemon::web::logins::{Grant, LoggedIn, NoLogin};
use crate::model::{Diagnostic, Kind};
use crate::process::name_of_user;
use crate::protocol::{
    WebCode, WebCodeRequest, WebLoggedOut, WebLogin, WebLoginRequest, WebOpenRequest, WebOpened,
    WebSessionView,
};

/// Serves the page for as long as the answer is read.
pub(crate) async fn open(
    State(state): State<Arc<ApiState>>,
    AtSocket { peer, .. }: AtSocket,
    Json(request): Json<WebOpenRequest>,
) -> Result<HeldOpen, HttpRefusal> {
    state.logins.serves()?;
    let hold = state.doors.hold(peer.uid, request.port)?;
    let opened = WebOpened {
        address: format!("http://{}/", hold.address),
        port: hold.address.port(),
        persistent: hold.stays,
    };
    let mut closed = hold.closed.clone();
    Ok(HeldOpen {
        first: Some(event_text("open", None, &opened)),
        closed: Box::pin(async move {
            // An error says that the door is gone with its server.
            let _ = closed.wait_for(|closed| *closed).await;
        }),
        quiet: SignOfLife::new(state.limits.keep_alive),
        _hold: hold,
    })
}

pub(crate) async fn code(
    State(state): State<Arc<ApiState>>,
    AtSocket { peer, groups }: AtSocket,
    Json(request): Json<WebCodeRequest>,
) -> Answer<WebCode> {
    state.logins.serves()?;
    let address = state.doors.address()?;
    let (code, expires_at) = state.logins.code(Grant {
        uid: peer.uid,
        groups,
        read_only: request.read_only,
        door: state.logins.door(),
    })?;
    Ok(Json(WebCode {
        code,
        address: format!("http://{address}/"),
        expires_at,
    }))
}

/// Ends the sessions of whoever asks; all of them, for who may do everything by nature.
pub(crate) async fn logout_all(
    State(state): State<Arc<ApiState>>,
    AtSocket { peer, .. }: AtSocket,
    Json(Nothing {}): Json<Nothing>,
) -> Answer<WebLoggedOut> {
    let logins = Arc::clone(&state.logins);
    let ended = state.aside(move || logins.end_sessions(peer.uid)).await??;
    Ok(Json(WebLoggedOut { sessions: ended }))
}

pub(crate) async fn login(
    State(state): State<Arc<ApiState>>,
    AtDoorOnly: AtDoorOnly,
    Json(request): Json<WebLoginRequest>,
) -> Answer<WebLogin> {
    let logins = Arc::clone(&state.logins);
    let answer = state.aside(move || logins.login(&request.code)).await?;
    match answer {
        Ok((token, who)) => Ok(Json(WebLogin {
            token,
            session: view(&who),
        })),
        Err(NoLogin::Refused(refused)) => Err(HttpRefusal::from(refused)),
        Err(NoLogin::Wrong(wait)) => {
            tokio::time::sleep(wait).await;
            Err(wrong_code())
        }
    }
}

fn wrong_code() -> HttpRefusal {
    let why = "the login code is invalid: a code works once, within a minute";
    HttpRefusal {
        status: StatusCode::UNAUTHORIZED,
        diagnostic: Box::new(
            Diagnostic::new(Kind::Blocked, "login", why)
                .hint("`workerctl web` prints an address with a new one"),
        ),
    }
}

pub(crate) async fn session(Session(who): Session) -> Answer<WebSessionView> {
    Ok(Json(view(&who)))
}

pub(crate) async fn logout(
    State(state): State<Arc<ApiState>>,
    Session(who): Session,
    Json(Nothing {}): Json<Nothing>,
) -> Answer<WebLoggedOut> {
    let logins = Arc::clone(&state.logins);
    state.aside(move || logins.logout(&who)).await??;
    Ok(Json(WebLoggedOut { sessions: 1 }))
}

fn view(who: &LoggedIn) -> WebSessionView {
    WebSessionView {
        user: name_of_user(who.session.uid),
        role: who.role,
        read_only: who.session.read_only,
        expires_at: who.session.expires_at,
    }
}

/// Events for as long as the door is held open: where it is, then signs of life.
pub(crate) struct HeldOpen {
    first: Option<Bytes>,
    closed: Pin<Box<dyn Future<Output = ()> + Send>>,
    quiet: SignOfLife,
    /// The door closes with it, unless others hold it open too.
    _hold: Hold,
}

impl IntoResponse for HeldOpen {
    fn into_response(self) -> Response {
        reply::answer_of(StatusCode::OK, "text/event-stream", Body::new(self))
    }
}

impl Output for HeldOpen {
    fn describe(operation: &mut Description<'_>) {
        // The schema is that of the data of the event `open`; the stream ends when the door closes.
        let data = operation.replies.subschema_for::<WebOpened>();
        let content = json!({"text/event-stream": {"schema": {"type": "string"}, "x-data": data}});
        operation.reply("200", operation.summary, &content);
    }
}

impl HttpBody for HeldOpen {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        if self.closed.as_mut().poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        self.quiet.poll(cx).map(|frame| Some(Ok(frame)))
    }
}
