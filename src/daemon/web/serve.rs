//! What is answered at the page's door: the page, its files, and the API to whoever is logged in.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::header::{self, AUTHORIZATION, HeaderName, HeaderValue};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use hyper::body::{Frame, SizeHint};
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;

use super::logins::{LoggedIn, Logins};
use super::{admission, page};
use crate::daemon::connections::Waiting;
use crate::daemon::extract::head_within;
use crate::daemon::peer::{AtDoor, Caller, Peer};
use crate::daemon::reply::HttpRefusal;
use crate::daemon::state::ApiState;
use crate::mcp::bearer;
use crate::model::{Diagnostic, Kind};

/// The path of what logs in.
pub(crate) const LOGIN: &str = "/v1/web/login";
/// What anybody may ask beside that: a page asks it to find out whether it is of the same version.
const VERSION: &str = "/v1/version";

/// What every answer says, so that the page can do nothing but show what it is given, and no other page can use it.
const HEADERS: [(HeaderName, &str); 5] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
         form-action 'none'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
];

/// Answers everything at the page's door; `api` answers what is asked of the API.
pub(crate) fn router(api: Router, state: Arc<ApiState>) -> Router {
    let api = TowerToHyperService::new(api);
    Router::new().fallback(move |request: Request| {
        let (api, state) = (api.clone(), Arc::clone(&state));
        async move {
            let answered = answer(api, &state, request).await;
            let mut response = answered.unwrap_or_else(IntoResponse::into_response);
            guard(&mut response);
            response
        }
    })
}

fn guard(response: &mut Response) {
    let is_unknown = response.status() == StatusCode::UNAUTHORIZED;
    let headers = response.headers_mut();
    if is_unknown {
        let scheme = HeaderValue::from_static("Bearer");
        headers.insert(header::WWW_AUTHENTICATE, scheme);
    }
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
}

async fn answer(
    api: TowerToHyperService<Router>,
    state: &ApiState,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let (mut parts, body) = request.into_parts();
    head_within(&parts, state.limits.head_bytes_max)?;
    admission::admit(&parts)?;
    let path = parts.uri.path();
    if path != "/v1" && !path.starts_with("/v1/") {
        return page::answer(&parts);
    }
    admission::admit_to_api(&parts)?;
    let who = identify(&mut parts, &state.logins)?;
    parts.extensions.insert(AtDoor);
    let request = Request::from_parts(parts, body);
    let response = match api.call(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    };
    Ok(match who {
        Some(who) => while_logged_in(response, who, Arc::clone(&state.logins)),
        None => response,
    })
}

/// Puts in who asks, as the socket does. Nobody has to be known for the login, and for the version where no token is sent.
fn identify(parts: &mut Parts, logins: &Logins) -> Result<Option<LoggedIn>, HttpRefusal> {
    let path = parts.uri.path();
    if path == LOGIN {
        // Who tries codes gives way to everybody else: their answers are slow.
        parts.extensions.remove::<Waiting>();
        return Ok(None);
    }
    if path == VERSION && parts.method != Method::POST && !parts.headers.contains_key(AUTHORIZATION)
    {
        return Ok(None);
    }
    let who = bearer(&parts.headers).and_then(|token| logins.who(token));
    let who = who.ok_or_else(no_session)?;
    // What follows may be logged in detail.
    parts.headers.remove(AUTHORIZATION);
    parts.extensions.insert(Peer {
        uid: who.session.uid,
        role: who.role,
        caller: Caller::Person,
    });
    parts.extensions.insert(who.clone());
    Ok(Some(who))
}

fn no_session() -> HttpRefusal {
    let why = "the request has no session";
    let diagnostic = Diagnostic::new(Kind::Blocked, "login", why)
        .hint("`workerctl web` prints an address that logs in");
    HttpRefusal {
        status: StatusCode::UNAUTHORIZED,
        diagnostic: Box::new(diagnostic),
    }
}

/// A stream of events ends with its session: at the latest when it says that it is still there.
fn while_logged_in(response: Response, who: LoggedIn, logins: Arc<Logins>) -> Response {
    let kind = response.headers().get(header::CONTENT_TYPE);
    if kind.is_none_or(|kind| kind != "text/event-stream") {
        return response;
    }
    let out = {
        let (who, logins) = (who.clone(), Arc::clone(&logins));
        Box::pin(async move { logins.are_out(&who).await })
    };
    response.map(|body| {
        Body::new(WhileLoggedIn {
            body,
            who,
            logins,
            out,
        })
    })
}

struct WhileLoggedIn {
    body: Body,
    who: LoggedIn,
    logins: Arc<Logins>,
    /// Ends once they are not logged in any more.
    out: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl HttpBody for WhileLoggedIn {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.out.as_mut().poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        match Pin::new(&mut self.body).poll_frame(cx) {
            // Asked before each piece is sent, so that nothing is told to somebody who has left.
            Poll::Ready(Some(_)) if !self.logins.are_in(&self.who) => Poll::Ready(None),
            polled => polled,
        }
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
