//! What a client posted: read within bounds, and told apart before the SDK sees it.

use std::fmt::Display;
use std::time::Duration;

use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::StatusCode;
use hyper::body::{Body, Bytes};
use hyper::header::{CONTENT_TYPE, HeaderMap};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, RequestId};
use serde_json::Value;
use tokio::sync::Semaphore;

use super::super::batch::MESSAGES_MAX;
use super::super::message::{self, INVALID_REQUEST};
use super::super::wire::MESSAGE_BYTES_MAX;
use super::reply::{self, Answer, ErrorResponse};

/// How long a body may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// KiB of a body that waits for no room: there are not many requests at once.
const SMALL: u32 = 64;

/// Bytes of all large bodies that are read at once.
const BODIES_BYTES_MAX: usize = 8 * MESSAGE_BYTES_MAX;

const KIB: usize = 1024;

/// What was posted.
pub(super) enum Posted {
    /// The first message of a session.
    Begin,
    /// One message, with its id if it is a request; or what is none and is refused for its type.
    One(Option<RequestId>),
    /// Several messages.
    Batch(Vec<Value>),
}

/// Room for the large bodies that are read at once, in KiB.
pub(super) fn room() -> Semaphore {
    Semaphore::new(BODIES_BYTES_MAX / KIB)
}

/// Reads a body whole, or says why not. It waits for room where others take too much of it.
pub(super) async fn read<B>(body: B, room: &Semaphore) -> Result<Bytes, ErrorResponse>
where
    B: Body,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let announced = body.size_hint().upper();
    let most = announced.map_or(MESSAGE_BYTES_MAX, |bytes| {
        usize::try_from(bytes).unwrap_or(usize::MAX)
    });
    if most > MESSAGE_BYTES_MAX {
        return Err(too_large().into());
    }
    let wanted = match u32::try_from(most.div_ceil(KIB)) {
        Ok(wanted) if wanted > SMALL => wanted,
        _ => 0,
    };
    let reading = async {
        let _room = room.acquire_many(wanted).await;
        Limited::new(body, MESSAGE_BYTES_MAX).collect().await
    };
    let Ok(read) = tokio::time::timeout(PATIENCE, reading).await else {
        let why = format!(
            "Request Timeout: the body took more than {} s",
            PATIENCE.as_secs()
        );
        return Err(reply::refusal(StatusCode::REQUEST_TIMEOUT, &why).into());
    };
    read.map(http_body_util::Collected::to_bytes)
        .map_err(|error| {
            let refused = if error.is::<LengthLimitError>() {
                too_large()
            } else {
                invalid("the body is cut off or not framed as HTTP/1.1")
            };
            refused.into()
        })
}

fn too_large() -> Answer {
    let why = format!("Payload Too Large: more than {MESSAGE_BYTES_MAX} bytes");
    let refusal = message::refusal(&Value::Null, INVALID_REQUEST, &why);
    reply::json(StatusCode::PAYLOAD_TOO_LARGE, &refusal)
}

/// Tells what was posted, or refuses it as the protocol does: what is no JSON, and what is no message.
pub(super) fn posted(headers: &HeaderMap, body: &Bytes) -> Result<Posted, ErrorResponse> {
    if !is_json(headers) {
        return Ok(Posted::One(None));
    }
    let value = message::read(body).map_err(|refusal| refused(&refusal))?;
    match value {
        Value::Array(items) if items.is_empty() || items.len() > MESSAGES_MAX => {
            let why = format!("a batch holds 1 to {MESSAGES_MAX} messages");
            Err(invalid(why).into())
        }
        Value::Array(items) => Ok(Posted::Batch(items)),
        value => {
            let message = message::of(value).map_err(|refusal| refused(&refusal))?;
            if begins(&message) {
                return Ok(Posted::Begin);
            }
            if let Some(refusal) = misread_begin(headers, &message) {
                return Err(refused(&refusal).into());
            }
            // A key that stands twice is seen here only.
            match serde_json::from_slice::<ClientJsonRpcMessage>(body) {
                Ok(_) => Ok(Posted::One(id_of(&message))),
                Err(error) => Err(invalid(error).into()),
            }
        }
    }
}

fn refused(refusal: &Value) -> Answer {
    reply::json(StatusCode::BAD_REQUEST, refusal)
}

/// The id of a request.
pub(super) fn id_of(message: &ClientJsonRpcMessage) -> Option<RequestId> {
    match message {
        ClientJsonRpcMessage::Request(request) => Some(request.id.clone()),
        _ => None,
    }
}

/// Whether a session begins with this message.
pub(super) fn begins(message: &ClientJsonRpcMessage) -> bool {
    matches!(
        message,
        ClientJsonRpcMessage::Request(request)
            if matches!(request.request, ClientRequest::InitializeRequest(_))
    )
}

/// Refuses what is to begin a session and does not say what that takes. Who has a session, or speaks a version that
/// has none, is answered by the SDK.
fn misread_begin(headers: &HeaderMap, message: &ClientJsonRpcMessage) -> Option<Value> {
    let known = ["mcp-session-id", "mcp-protocol-version"];
    if known.iter().any(|name| headers.contains_key(*name)) {
        return None;
    }
    message::misread_beginning(message)
}

/// Refuses what is no message where one is expected.
pub(super) fn invalid(why: impl Display) -> Answer {
    let why = format!("Invalid Request: {why}");
    let refusal = message::refusal(&Value::Null, INVALID_REQUEST, &why);
    reply::json(StatusCode::BAD_REQUEST, &refusal)
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    kind.and_then(|kind| kind.split(';').next())
        .is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}
