//! Several messages in one request, which version 2025-03-26 of the protocol has and no other.

use std::convert::Infallible;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, BodyStream, Full, StreamBody};
use hyper::body::Bytes;
use hyper::http::request::Parts;
use hyper::{Request, StatusCode};
use rmcp::transport::StreamableHttpService;
use serde_json::Value;

use super::super::message;
use super::super::server::Server;
use super::reply::{self, Answer};
use super::session::Session;
use super::sessions::Sessions;
use super::{extract, late};

/// Answers each message as if it had come alone; the answers follow each other on one stream.
pub(super) async fn answer(
    service: StreamableHttpService<Server, Sessions>,
    session: Arc<Session>,
    parts: Parts,
    items: Vec<Value>,
) -> Answer {
    let mut streams: Vec<BoxBody<Bytes, Infallible>> = Vec::new();
    for item in items {
        match message::of(item.clone()) {
            Err(refusal) => {
                streams.push(Full::from(format!("data: {refusal}\n\n")).boxed());
                continue;
            }
            Ok(message) if extract::begins(&message) => {
                return extract::invalid("`initialize` must be the only request");
            }
            Ok(message) => {
                if let Some(id) = extract::id_of(&message).filter(|id| session.answers_to(id)) {
                    let why = format!("Invalid Request: {}", message::is_under_way(&id));
                    let refusal = message::refusal(&Value::Null, message::INVALID_REQUEST, &why);
                    streams.push(Full::from(format!("data: {refusal}\n\n")).boxed());
                    continue;
                }
            }
        }
        let request = Request::from_parts(parts.clone(), Full::<Bytes>::from(item.to_string()));
        let answer = service.handle(request).await;
        match answer.status() {
            StatusCode::OK => streams.push(answer.into_body()),
            StatusCode::ACCEPTED => {}
            // What is wrong with the request is wrong with all of it.
            _ => return answer,
        }
    }
    if streams.is_empty() {
        return reply::empty(StatusCode::ACCEPTED);
    }
    let frames = stream::iter(streams).flat_map(BodyStream::new);
    late::events(BodyExt::boxed(StreamBody::new(frames)))
}
