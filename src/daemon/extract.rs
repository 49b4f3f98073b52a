//! Reads what a client sent, within bounds, and refuses the rest in the one JSON form.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequestParts, Query, RawPathParams};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use http_body_util::{BodyExt, Limited};
use serde::de::DeserializeOwned;

use super::peer::Peer;
use super::reply::HttpRefusal;
use crate::protocol::{
    ApproveRequest, BackfillQuery, CancelRequest, DenyRequest, PauseRequest, ResolveRequest,
    ResumeRequest, RunsQuery, SchedulesQuery, SlotsQuery, SubmitRequest, TriggerRequest,
};

/// Longest name, key or filter that is accepted, in bytes.
const TEXT_BYTES_MAX: usize = 255;
/// Longest note that is accepted, in bytes.
const NOTE_BYTES_MAX: usize = 4_096;
/// Letters of a run id; a fragment of it is never longer.
const RUN_CHARS_MAX: usize = 26;

/// Texts of a request that are checked before an engine sees them.
pub(super) trait Checked {
    /// Refuses what no engine could accept.
    fn check(&self) -> Result<(), HttpRefusal>;
}

impl Checked for SubmitRequest {
    fn check(&self) -> Result<(), HttpRefusal> {
        text("skill", &self.skill)?;
        optional("key", self.key.as_deref())?;
        optional("by", self.by.as_deref())?;
        optional("chat_id", self.chat_id.as_deref())?;
        if self.key.as_deref() == Some("") {
            return Err(HttpRefusal::bad_request(
                "bad_key",
                "the idempotency key is empty",
            ));
        }
        Ok(())
    }
}

impl Checked for RunsQuery {
    fn check(&self) -> Result<(), HttpRefusal> {
        optional("worker", self.worker.as_deref())?;
        optional("skill", self.skill.as_deref())?;
        optional("outcome", self.outcome.as_deref())
    }
}

impl Checked for SchedulesQuery {
    fn check(&self) -> Result<(), HttpRefusal> {
        optional("schedule", self.schedule.as_deref())?;
        optional("worker", self.worker.as_deref())?;
        optional("skill", self.skill.as_deref())?;
        optional("after", self.after.as_deref())
    }
}

impl Checked for CancelRequest {
    fn check(&self) -> Result<(), HttpRefusal> {
        optional("by", self.by.as_deref())
    }
}

impl Checked for ResolveRequest {
    fn check(&self) -> Result<(), HttpRefusal> {
        text("as", &self.resolution)?;
        note(&self.note)
    }
}

impl Checked for ApproveRequest {
    fn check(&self) -> Result<(), HttpRefusal> {
        text("digest", &self.digest)?;
        optional("by", self.by.as_deref())?;
        self.note.as_deref().map_or(Ok(()), note)
    }
}

impl Checked for DenyRequest {
    fn check(&self) -> Result<(), HttpRefusal> {
        optional("by", self.by.as_deref())?;
        note(&self.note)
    }
}

fn note(note: &str) -> Result<(), HttpRefusal> {
    if note.len() > NOTE_BYTES_MAX || note.contains('\0') {
        return Err(HttpRefusal::bad_request(
            "bad_note",
            format!("`note` must not hold NUL or exceed {NOTE_BYTES_MAX} bytes"),
        ));
    }
    Ok(())
}

/// Who is behind the connection of a request.
pub(super) fn peer(parts: &Parts) -> Result<Peer, HttpRefusal> {
    let peer = parts.extensions.get::<Peer>().copied();
    peer.ok_or_else(|| {
        HttpRefusal::bad_request("no_peer", "nobody is known behind this connection")
    })
}

impl Checked for PauseRequest {
    fn check(&self) -> Result<(), HttpRefusal> {
        text("schedule", &self.schedule)?;
        optional("by", self.by.as_deref())
    }
}

impl Checked for ResumeRequest {
    fn check(&self) -> Result<(), HttpRefusal> {
        text("schedule", &self.schedule)
    }
}

impl Checked for TriggerRequest {
    fn check(&self) -> Result<(), HttpRefusal> {
        text("schedule", &self.schedule)?;
        optional("by", self.by.as_deref())
    }
}

impl Checked for BackfillQuery {
    fn check(&self) -> Result<(), HttpRefusal> {
        text("schedule", &self.schedule)
    }
}

impl Checked for SlotsQuery {
    fn check(&self) -> Result<(), HttpRefusal> {
        optional("schedule", self.schedule.as_deref())
    }
}

fn optional(name: &str, value: Option<&str>) -> Result<(), HttpRefusal> {
    value.map_or(Ok(()), |value| text(name, value))
}

fn text(name: &str, value: &str) -> Result<(), HttpRefusal> {
    if value.len() > TEXT_BYTES_MAX || value.chars().any(char::is_control) {
        return Err(HttpRefusal::bad_request(
            "bad_text",
            format!("`{name}` must not hold control characters or exceed {TEXT_BYTES_MAX} bytes"),
        ));
    }
    Ok(())
}

/// The run that the path names: a fragment of an id, never anything that could be more than that.
pub(super) async fn run_fragment(parts: &mut Parts) -> Result<String, HttpRefusal> {
    let params = RawPathParams::from_request_parts(parts, &())
        .await
        .map_err(|_| bad_run())?;
    let fragment = params
        .iter()
        .find(|(name, _)| *name == "run")
        .map_or("", |(_, value)| value);
    let fits = (1..=RUN_CHARS_MAX).contains(&fragment.len())
        && fragment.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if fits {
        Ok(fragment.to_owned())
    } else {
        Err(bad_run())
    }
}

fn bad_run() -> HttpRefusal {
    HttpRefusal::bad_request(
        "bad_run_id",
        format!("a run is named by 1 to {RUN_CHARS_MAX} letters and digits of its id"),
    )
}

/// The query string as `T`; unknown and repeated parameters are refused.
pub(super) fn query<T: DeserializeOwned>(uri: &Uri) -> Result<T, HttpRefusal> {
    Query::<T>::try_from_uri(uri)
        .map(|Query(value)| value)
        .map_err(|rejection| HttpRefusal::bad_request("bad_query", clipped(&rejection.body_text())))
}

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

/// The idempotency key of the header, merged with that of the body.
pub(super) fn idempotency_key(
    headers: &HeaderMap,
    request: &mut SubmitRequest,
) -> Result<(), HttpRefusal> {
    let mut given = headers.get_all("idempotency-key").iter();
    let Some(first) = given.next() else {
        return Ok(());
    };
    let key = first.to_str().ok().filter(|key| !key.is_empty());
    let (Some(key), None) = (key, given.next()) else {
        return Err(HttpRefusal::bad_request(
            "bad_key",
            "`Idempotency-Key` must be given once and hold visible ASCII",
        ));
    };
    match &request.key {
        Some(other) if other != key => Err(HttpRefusal::bad_request(
            "bad_key",
            "`Idempotency-Key` and `key` of the body differ",
        )),
        _ => {
            request.key = Some(key.to_owned());
            Ok(())
        }
    }
}

/// The body as `T`; an empty one is read as `{}` where `optional` allows it.
pub(super) async fn body<T: DeserializeOwned>(
    parts: &Parts,
    body: Body,
    limits: BodyLimits,
    optional: bool,
) -> Result<T, HttpRefusal> {
    let bytes = read(body, limits).await?;
    if bytes.is_empty() && optional {
        return parse(b"{}");
    }
    json_expected(&parts.headers)?;
    parse(&bytes)
}

/// How much of a body is read, and how long.
#[derive(Debug, Clone, Copy)]
pub(super) struct BodyLimits {
    pub(super) bytes_max: usize,
    pub(super) patience: Duration,
}

async fn read(body: Body, limits: BodyLimits) -> Result<Bytes, HttpRefusal> {
    let collected = tokio::time::timeout(
        limits.patience,
        Limited::new(body, limits.bytes_max).collect(),
    )
    .await
    .map_err(|_| {
        HttpRefusal::of_transport(
            StatusCode::REQUEST_TIMEOUT,
            "body_too_slow",
            format!(
                "the body did not arrive within {} s",
                limits.patience.as_secs()
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
                    format!("the body exceeds {} bytes", limits.bytes_max),
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
