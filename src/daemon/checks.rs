//! Texts of requests that are checked before an engine sees them.

use axum::http::HeaderMap;

use super::reply::HttpRefusal;
use crate::protocol::{
    ApproveRequest, BackfillQuery, CalendarQuery, CancelRequest, DenyRequest, DiffQuery,
    ExplainQuery, FollowQuery, ForgetRequest, LogsQuery, NextQuery, PauseRequest, ProbeRequest,
    ResolveRequest, ResumeRequest, RunsQuery, SchedulesQuery, SignedRequest, SkillsQuery,
    SlotsQuery, StatsQuery, SubmitRequest, TriggerRequest, WebCodeRequest, WebLoginRequest,
    WebOpenRequest,
};

/// Longest name, key or filter that is accepted, in bytes.
const TEXT_BYTES_MAX: usize = 255;
/// Longest place in a list that is accepted, in bytes.
const CURSOR_BYTES_MAX: usize = 512;
/// Longest path that is accepted, in bytes.
const PATH_BYTES_MAX: usize = 4_096;
/// Longest note that is accepted, in bytes.
const NOTE_BYTES_MAX: usize = 4_096;

/// What a client sent, as a body or as parameters.
pub(super) trait Checked {
    /// Whether an empty body stands for `{}`.
    const MAY_BE_EMPTY: bool = false;

    /// Takes over what stands in headers instead.
    fn merge(&mut self, _headers: &HeaderMap) -> Result<(), HttpRefusal> {
        Ok(())
    }

    /// Refuses what no engine could accept.
    fn check(&self) -> Result<(), HttpRefusal> {
        Ok(())
    }
}

/// A body that holds nothing; anything in it is refused.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

impl Checked for Nothing {
    const MAY_BE_EMPTY: bool = true;
}

impl Checked for ProbeRequest {
    const MAY_BE_EMPTY: bool = true;
}

/// Which part of a log as text.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LogTextQuery {
    /// Only of this stream, or one of several with commas between them; of one alone the text as its command wrote it.
    #[serde(default)]
    pub(super) stream: Option<String>,
}

impl Checked for LogTextQuery {
    fn check(&self) -> Result<(), HttpRefusal> {
        optional("stream", self.stream.as_deref())
    }
}

/// From where a run is followed.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EventsQuery {
    /// First line of its log that is told; `Last-Event-ID` goes before it.
    #[serde(default)]
    pub(super) from: u64,
}

impl Checked for EventsQuery {}

impl Checked for LogsQuery {
    fn check(&self) -> Result<(), HttpRefusal> {
        optional("stream", self.stream.as_deref())?;
        optional("search", self.search.as_deref())
    }
}

impl Checked for DiffQuery {
    fn check(&self) -> Result<(), HttpRefusal> {
        let fits = |path: &String| {
            let is_within = !path.starts_with('/') && path.split('/').all(|part| part != "..");
            (1..=PATH_BYTES_MAX).contains(&path.len()) && is_within && !path.contains('\0')
        };
        if self.path.as_ref().is_none_or(fits) {
            return Ok(());
        }
        Err(HttpRefusal::bad_request(
            "bad_path",
            format!(
                "`path` is relative to the root of the repository, has no `..` and at most {PATH_BYTES_MAX} bytes"
            ),
        ))
    }
}

impl Checked for SignedRequest {
    const MAY_BE_EMPTY: bool = true;

    fn check(&self) -> Result<(), HttpRefusal> {
        optional("by", self.by.as_deref())
    }
}

impl Checked for FollowQuery {}

impl Checked for SubmitRequest {
    /// The idempotency key of the header.
    fn merge(&mut self, headers: &HeaderMap) -> Result<(), HttpRefusal> {
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
        if self.key.as_ref().is_some_and(|other| other != key) {
            return Err(HttpRefusal::bad_request(
                "bad_key",
                "`Idempotency-Key` and `key` of the body differ",
            ));
        }
        self.key = Some(key.to_owned());
        Ok(())
    }

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
        optional("schedule", self.schedule.as_deref())?;
        optional("by", self.by.as_deref())?;
        optional("text", self.text.as_deref())?;
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
    const MAY_BE_EMPTY: bool = true;

    fn check(&self) -> Result<(), HttpRefusal> {
        optional("by", self.by.as_deref())
    }
}

impl Checked for ResolveRequest {
    fn check(&self) -> Result<(), HttpRefusal> {
        text("as", &self.resolution)?;
        optional("by", self.by.as_deref())?;
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

impl Checked for ForgetRequest {
    const MAY_BE_EMPTY: bool = true;
}

impl Checked for WebOpenRequest {
    const MAY_BE_EMPTY: bool = true;

    /// An engine of root's may listen where its clients may not.
    fn check(&self) -> Result<(), HttpRefusal> {
        if self.port.is_some_and(|port| (1..1_024).contains(&port)) {
            let why = "a port below 1024 can only be set with `web.listen` in the configuration";
            return Err(HttpRefusal::bad_request("bad_port", why));
        }
        Ok(())
    }
}

impl Checked for WebCodeRequest {
    const MAY_BE_EMPTY: bool = true;
}

impl Checked for WebLoginRequest {
    fn check(&self) -> Result<(), HttpRefusal> {
        text("code", &self.code)
    }
}

impl Checked for StatsQuery {
    fn check(&self) -> Result<(), HttpRefusal> {
        for (name, value) in [
            ("from", &self.from),
            ("to", &self.to),
            ("worker", &self.worker),
            ("skill", &self.skill),
            ("schedule", &self.schedule),
        ] {
            optional(name, value.as_deref())?;
        }
        Ok(())
    }
}

impl Checked for SlotsQuery {
    fn check(&self) -> Result<(), HttpRefusal> {
        optional("schedule", self.schedule.as_deref())?;
        optional("status", self.status.as_deref())?;
        // It holds the id of a schedule, and more.
        let before = self.before.as_deref().unwrap_or_default();
        if before.len() > CURSOR_BYTES_MAX || before.chars().any(char::is_control) {
            return Err(HttpRefusal::bad_request(
                "bad_text",
                "`before` is not a cursor from an earlier response",
            ));
        }
        Ok(())
    }
}

impl Checked for CalendarQuery {
    fn check(&self) -> Result<(), HttpRefusal> {
        optional("schedule", self.schedule.as_deref())?;
        optional("worker", self.worker.as_deref())
    }
}

impl Checked for NextQuery {
    fn check(&self) -> Result<(), HttpRefusal> {
        optional("schedule", self.schedule.as_deref())
    }
}

impl Checked for ExplainQuery {
    fn check(&self) -> Result<(), HttpRefusal> {
        text("schedule", &self.schedule)
    }
}

impl Checked for SkillsQuery {
    fn check(&self) -> Result<(), HttpRefusal> {
        optional("worker", self.worker.as_deref())?;
        optional("text", self.text.as_deref())?;
        optional("after", self.after.as_deref())
    }
}

fn optional(name: &str, value: Option<&str>) -> Result<(), HttpRefusal> {
    value.map_or(Ok(()), |value| text(name, value))
}

pub(super) fn text(name: &str, value: &str) -> Result<(), HttpRefusal> {
    if value.len() > TEXT_BYTES_MAX || value.chars().any(char::is_control) {
        return Err(HttpRefusal::bad_request(
            "bad_text",
            format!("`{name}` must not hold control characters or exceed {TEXT_BYTES_MAX} bytes"),
        ));
    }
    Ok(())
}
