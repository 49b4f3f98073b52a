//! Answers that are no answers of the protocol's methods.

use std::convert::Infallible;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Bytes;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};
use serde_json::Value;

use super::super::message;
use super::super::server::BUSY;

/// What goes out.
pub type Answer = Response<BoxBody<Bytes, Infallible>>;

/// Why a request is not answered.
pub(super) type ErrorResponse = Box<Answer>;

/// Nothing but a status.
pub(super) fn empty(status: StatusCode) -> Answer {
    with(status, Empty::new().boxed())
}

/// An error of the protocol for no request in particular.
pub(super) fn refusal(status: StatusCode, why: &str) -> Answer {
    json(status, &message::refusal(&Value::Null, BUSY, why))
}

/// The same, for a while only.
pub(super) fn busy(why: &str) -> Answer {
    let mut answer = refusal(StatusCode::SERVICE_UNAVAILABLE, why);
    let headers = answer.headers_mut();
    headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    answer
}

/// A value as JSON.
pub(super) fn json(status: StatusCode, value: &Value) -> Answer {
    let mut answer = with(status, Full::from(value.to_string()).boxed());
    let headers = answer.headers_mut();
    let kind = HeaderValue::from_static("application/json");
    headers.insert(CONTENT_TYPE, kind);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// A body with a status.
pub(super) fn with(status: StatusCode, body: BoxBody<Bytes, Infallible>) -> Answer {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    answer
}
