//! What handlers take of a request: read within bounds, and refused in the one JSON form where it is wrong.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Extension, FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use http_body_util::{BodyExt, Limited};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::checks::{self, Checked};
use super::connections::Waiting;
use super::description::{Description, Input};
use super::limits::Limits;
use super::peer::{AtDoor, Caller, Groups, Peer};
use super::reply::{HttpRefusal, Json};
use super::state::ApiState;
use super::web::logins::LoggedIn;
use crate::model::{Diagnostic, Kind};
use crate::protocol::SubmitRequest;

/// Letters of a run id; a fragment of it is never longer.
const RUN_CHARS_MAX: usize = 26;

/// The run that the path names: a fragment of an id, never anything that could be more than that.
pub(super) struct RunFragment(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for RunFragment {
    type Rejection = HttpRefusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<RunFragment, HttpRefusal> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        path.ok()
            .map(|Path(fragment)| fragment)
            .filter(|fragment| is_fragment(fragment))
            .map(RunFragment)
            .ok_or_else(bad_run_id)
    }
}

impl Input for RunFragment {
    fn describe(operation: &mut Description<'_>) {
        operation.parameter(
            "path",
            "run",
            "A run's id, or a unique prefix or suffix of it.",
            &json!({"type": "string", "pattern": "^[0-9A-Za-z]{1,26}$"}),
        );
    }
}

/// A run and one of its outputs, which the path names.
pub(super) struct RunOutput {
    pub(super) run: String,
    pub(super) name: String,
}

impl<S: Send + Sync> FromRequestParts<S> for RunOutput {
    type Rejection = HttpRefusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<RunOutput, HttpRefusal> {
        let path = Path::<(String, String)>::from_request_parts(parts, state).await;
        let path = path.ok().filter(|Path((run, _))| is_fragment(run));
        let Path((run, name)) = path.ok_or_else(bad_run_id)?;
        checks::text("output", &name)?;
        Ok(RunOutput { run, name })
    }
}

impl Input for RunOutput {
    fn describe(operation: &mut Description<'_>) {
        RunFragment::describe(operation);
        let schema = json!({"type": "string"});
        operation.parameter("path", "output", "The name of a declared output.", &schema);
    }
}

fn is_fragment(text: &str) -> bool {
    (1..=RUN_CHARS_MAX).contains(&text.len()) && text.bytes().all(|c| c.is_ascii_alphanumeric())
}

fn bad_run_id() -> HttpRefusal {
    HttpRefusal::bad_request(
        "bad_run_id",
        format!("a run is named by 1 to {RUN_CHARS_MAX} letters and digits of its id"),
    )
}

/// Parameters of the query; unknown and repeated ones are refused.
pub(super) struct Query<T>(pub(super) T);

impl<S: Sync, T: DeserializeOwned + Checked> FromRequestParts<S> for Query<T> {
    type Rejection = HttpRefusal;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Query<T>, HttpRefusal> {
        let axum::extract::Query(query) = axum::extract::Query::<T>::try_from_uri(&parts.uri)
            .map_err(|refused| {
                HttpRefusal::bad_request("bad_query", clipped(&refused.body_text()))
            })?;
        query.check()?;
        Ok(Query(query))
    }
}

impl<T: JsonSchema> Input for Query<T> {
    const READS_QUERY: bool = true;

    fn describe(operation: &mut Description<'_>) {
        operation.query::<T>();
    }
}

impl<T: DeserializeOwned + Checked> FromRequest<Arc<ApiState>> for Json<T> {
    type Rejection = HttpRefusal;

    async fn from_request(request: Request, state: &Arc<ApiState>) -> Result<Json<T>, HttpRefusal> {
        let (mut parts, body) = request.into_parts();
        let bytes = read(body, &state.limits).await?;
        Waiting::answering(&mut parts);
        let mut value: T = if T::MAY_BE_EMPTY && bytes.is_empty() {
            parse(b"{}")?
        } else {
            json_expected(&parts.headers)?;
            parse(&bytes)?
        };
        value.merge(&parts.headers)?;
        value.check()?;
        Ok(Json(value))
    }
}

impl<T: JsonSchema + Checked> Input for Json<T> {
    fn describe(operation: &mut Description<'_>) {
        operation.body::<T>(!T::MAY_BE_EMPTY);
    }
}

/// A submission. A request to render may have the header too; the document names it here, where it counts.
pub(super) struct Submission(pub(super) SubmitRequest);

impl FromRequest<Arc<ApiState>> for Submission {
    type Rejection = HttpRefusal;

    async fn from_request(
        request: Request,
        state: &Arc<ApiState>,
    ) -> Result<Submission, HttpRefusal> {
        let Json(request) = Json::from_request(request, state).await?;
        Ok(Submission(request))
    }
}

impl Input for Submission {
    fn describe(operation: &mut Description<'_>) {
        operation.parameter(
            "header",
            "Idempotency-Key",
            "Within 24 h, a request with the same key returns the same run.",
            &json!({"type": "string", "pattern": "^[ -~]{1,255}$"}),
        );
        operation.body::<SubmitRequest>(true);
    }
}

/// The first line that a client which follows a run has not been told yet.
pub(super) struct LastEventId(pub(super) Option<u64>);

impl<S: Sync> FromRequestParts<S> for LastEventId {
    type Rejection = HttpRefusal;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<LastEventId, HttpRefusal> {
        let Some(id) = parts.headers.get("last-event-id") else {
            return Ok(LastEventId(None));
        };
        let line = id.to_str().ok().and_then(|id| id.parse().ok());
        line.map(|line| LastEventId(Some(line))).ok_or_else(|| {
            HttpRefusal::bad_request(
                "bad_event_id",
                "`Last-Event-ID` is not an id of this stream",
            )
        })
    }
}

impl Input for LastEventId {
    fn describe(operation: &mut Description<'_>) {
        operation.parameter(
            "header",
            "Last-Event-ID",
            "Number of the first line that was not sent yet; 18446744073709551615 for no lines.",
            &json!({"type": "integer", "minimum": 0}),
        );
    }
}

/// Behind which event a client goes on that was cut off.
pub(super) struct EventId(pub(super) Option<String>);

impl<S: Sync> FromRequestParts<S> for EventId {
    type Rejection = HttpRefusal;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<EventId, HttpRefusal> {
        let id = parts.headers.get("last-event-id");
        // An id of somebody else is one of which nothing is kept.
        Ok(EventId(
            id.and_then(|id| id.to_str().ok()).map(str::to_owned),
        ))
    }
}

impl Input for EventId {
    fn describe(operation: &mut Description<'_>) {
        operation.parameter(
            "header",
            "Last-Event-ID",
            "The last id that was received. Later changes are sent, as far as they are kept.",
            &json!({"type": "string"}),
        );
    }
}

/// What the connection says is no part of the request.
impl<T> Input for Extension<T> {}

/// Who is behind the connection of a request.
pub(super) fn peer(parts: &Parts) -> Result<Peer, HttpRefusal> {
    let peer = parts.extensions.get::<Peer>().copied();
    peer.ok_or_else(|| {
        HttpRefusal::bad_request("no_peer", "the user of this connection is unknown")
    })
}

/// Whom the kernel knows at the socket.
pub(super) struct AtSocket {
    pub(super) peer: Peer,
    pub(super) groups: Vec<u32>,
}

impl<S: Sync> FromRequestParts<S> for AtSocket {
    type Rejection = HttpRefusal;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<AtSocket, HttpRefusal> {
        let groups = parts.extensions.get::<Groups>();
        let groups = groups.filter(|_| parts.extensions.get::<AtDoor>().is_none());
        let Some(Groups(groups)) = groups else {
            return Err(elsewhere(
                "this request is available only on the engine's socket, not to web pages",
            ));
        };
        Ok(AtSocket {
            peer: peer(parts)?,
            groups: groups.to_vec(),
        })
    }
}

impl Input for AtSocket {}

/// What comes in at the door of the web page.
pub(super) struct AtDoorOnly;

impl<S: Sync> FromRequestParts<S> for AtDoorOnly {
    type Rejection = HttpRefusal;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<AtDoorOnly, HttpRefusal> {
        let door = parts.extensions.get::<AtDoor>();
        door.map(|_| AtDoorOnly).ok_or_else(of_the_page)
    }
}

impl Input for AtDoorOnly {}

/// Who is logged in to the web page.
pub(super) struct Session(pub(super) LoggedIn);

impl<S: Sync> FromRequestParts<S> for Session {
    type Rejection = HttpRefusal;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Session, HttpRefusal> {
        let who = parts.extensions.get::<LoggedIn>().cloned();
        who.map(Session).ok_or_else(of_the_page)
    }
}

impl Input for Session {}

fn of_the_page() -> HttpRefusal {
    elsewhere("this request is available only to the web UI, at the address that serves it")
}

fn elsewhere(message: &str) -> HttpRefusal {
    HttpRefusal::from(Diagnostic::new(Kind::NotFound, "asked_elsewhere", message))
}

/// Who asks, for the record.
///
/// The engine's own user and root may name themselves in a request, because `workerctl mcp` adds the name of its client.
/// All other users are recorded by the name of the user that the kernel reports, so that none can act under another name.
pub(super) struct Signed {
    pub(super) peer: Peer,
    is_certain: bool,
}

impl Signed {
    /// Who asks, where a request says this of it.
    pub(super) fn by(self, said: Option<String>) -> Option<String> {
        said.filter(|_| !self.is_certain)
            .or_else(|| Some(self.peer.name()))
    }
}

impl<S: Sync> FromRequestParts<S> for Signed {
    type Rejection = HttpRefusal;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Signed, HttpRefusal> {
        let peer = peer(parts)?;
        let at_door = parts.extensions.get::<AtDoor>().is_some();
        let is_own = [0, rustix::process::geteuid().as_raw()].contains(&peer.uid);
        Ok(Signed {
            peer,
            is_certain: at_door || peer.caller != Caller::Person || !is_own,
        })
    }
}

impl Input for Signed {}

/// Refuses a head of more bytes.
pub(super) fn head_within(parts: &Parts, bytes_max: usize) -> Result<(), HttpRefusal> {
    let first = parts.method.as_str().len() + parts.uri.to_string().len();
    let fields = parts.headers.iter().map(|(name, value)| {
        // A colon, a space and the end of the line.
        name.as_str().len() + value.len() + 4
    });
    if first + fields.sum::<usize>() <= bytes_max {
        return Ok(());
    }
    Err(HttpRefusal::of_transport(
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        "head_too_large",
        format!("the head exceeds {bytes_max} bytes"),
    ))
}

/// Refuses parameters where none are known.
pub(super) fn no_query(uri: &Uri) -> Result<(), HttpRefusal> {
    match uri.query() {
        None | Some("") => Ok(()),
        Some(_) => Err(HttpRefusal::bad_request(
            "bad_query",
            "this request takes no parameters",
        )),
    }
}

async fn read(body: Body, limits: &Limits) -> Result<Bytes, HttpRefusal> {
    let collected = tokio::time::timeout(
        limits.read_patience,
        Limited::new(body, limits.body_bytes_max).collect(),
    )
    .await
    .map_err(|_| {
        HttpRefusal::of_transport(
            StatusCode::REQUEST_TIMEOUT,
            "body_too_slow",
            format!(
                "the body did not arrive within {} s",
                limits.read_patience.as_secs()
            ),
        )
    })?;
    collected
        .map(http_body_util::Collected::to_bytes)
        .map_err(|error| {
            if error.is::<http_body_util::LengthLimitError>() {
                HttpRefusal::of_transport(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    "body_too_large",
                    format!("the body exceeds {} bytes", limits.body_bytes_max),
                )
            } else {
                HttpRefusal::bad_request(
                    "bad_body",
                    "the body is cut off or not framed as HTTP/1.1",
                )
            }
        })
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, HttpRefusal> {
    let refused = |reason: &str| {
        HttpRefusal::bad_request("bad_body", clipped(reason))
            .hint("`GET /v1/openapi.json` describes every request")
    };
    // A list of values would be read as the fields in order, and `[]` as a request without any.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(refused("the body is not a JSON object"));
    }
    serde_json::from_slice(bytes).map_err(|error| refused(&error.to_string()))
}

/// Refuses a body that says it is something else than JSON; one that says nothing is taken for JSON.
fn json_expected(headers: &HeaderMap) -> Result<(), HttpRefusal> {
    let Some(kind) = headers.get(header::CONTENT_TYPE) else {
        return Ok(());
    };
    let essence = kind
        .to_str()
        .ok()
        .and_then(|text| text.split(';').next())
        .map(str::trim);
    if essence.is_some_and(|essence| essence.eq_ignore_ascii_case("application/json")) {
        return Ok(());
    }
    Err(HttpRefusal::of_transport(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "not_json",
        "a body must be `application/json`".to_owned(),
    )
    .hint("send the header `Content-Type: application/json`"))
}

/// What a parser says about hostile input, short enough to show.
fn clipped(text: &str) -> String {
    text.chars().take(400).collect()
}
