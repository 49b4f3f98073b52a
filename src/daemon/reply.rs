//! Answers of the API: JSON, and one form for every refusal.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, NoContent, Response};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::description::{Description, Output};
use super::paths;
use crate::model::{Diagnostic, Kind};
use crate::process::with_cause;

/// After how many seconds a request that was refused for now may be sent again.
pub(super) const RETRY_AFTER_S: &str = "1";

/// The header that names the next page of a list, where there is one.
pub(super) fn linked(next: Option<String>) -> HeaderMap {
    let link = next.and_then(|next| HeaderValue::try_from(next).ok());
    link.map(|link| (header::LINK, link)).into_iter().collect()
}

/// Has a client save an answer as a file, whatever it makes of what stands in it.
pub(super) fn as_attachment(response: &mut Response, name: &str) {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let plain: String = name
        .chars()
        .map(|c| if is_plain(&c) { c } else { '_' })
        .collect();
    let encoded = paths::encoded(name);
    let told = format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{encoded}");
    let headers = response.headers_mut();
    if let Ok(told) = HeaderValue::try_from(told) {
        headers.insert(header::CONTENT_DISPOSITION, told);
    }
    let nosniff = HeaderValue::from_static("nosniff");
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
}

/// A refusal with the status that it is answered with.
#[derive(Debug)]
pub(super) struct HttpRefusal {
    pub(super) status: StatusCode,
    pub(super) diagnostic: Box<Diagnostic>,
}

impl HttpRefusal {
    /// A refusal by the transport itself, before any engine was asked.
    pub(super) fn of_transport(status: StatusCode, code: &str, message: String) -> HttpRefusal {
        HttpRefusal {
            status,
            diagnostic: Box::new(Diagnostic::new(Kind::Usage, code, message)),
        }
    }

    /// A request that is wrong.
    pub(super) fn bad_request(code: &str, message: impl Into<String>) -> HttpRefusal {
        HttpRefusal::of_transport(StatusCode::BAD_REQUEST, code, message.into())
    }

    /// Too much is under way; the same request can succeed later.
    pub(super) fn busy(message: impl Into<String>) -> HttpRefusal {
        HttpRefusal::from(
            Diagnostic::new(Kind::Conflict, "busy", message).hint("try again in a second"),
        )
    }

    /// Nothing is served there.
    pub(super) fn no_such_path() -> HttpRefusal {
        HttpRefusal::from(
            Diagnostic::new(
                Kind::NotFound,
                "no_such_path",
                "nothing is served at this path",
            )
            .hint("`GET /v1/openapi.json` lists every path"),
        )
    }

    /// Adds a hint.
    pub(super) fn hint(mut self, hint: &str) -> HttpRefusal {
        self.diagnostic.hints.push(hint.to_owned());
        self
    }
}

/// The one map from a refusal to an HTTP status. 503 means that the same request can succeed later.
pub(super) fn status_of(diagnostic: &Diagnostic) -> StatusCode {
    match (diagnostic.kind, diagnostic.code.as_str()) {
        (Kind::Conflict, "busy" | "starting" | "draining")
        | (Kind::Blocked, "queue_full" | "draining")
        | (Kind::Unreachable, _) => StatusCode::SERVICE_UNAVAILABLE,
        (Kind::Blocked, "disk_full" | "file_size_limit") => StatusCode::INSUFFICIENT_STORAGE,
        (Kind::Usage, _) => StatusCode::BAD_REQUEST,
        (Kind::NotFound, _) => StatusCode::NOT_FOUND,
        (Kind::Definition, _) => StatusCode::UNPROCESSABLE_ENTITY,
        (Kind::Blocked, _) => StatusCode::FORBIDDEN,
        (Kind::Conflict, _) => StatusCode::CONFLICT,
        (Kind::Open, _) => StatusCode::GATEWAY_TIMEOUT,
        (Kind::Internal, _) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl From<Diagnostic> for HttpRefusal {
    fn from(diagnostic: Diagnostic) -> HttpRefusal {
        let diagnostic = with_cause(diagnostic);
        HttpRefusal {
            status: status_of(&diagnostic),
            diagnostic: Box::new(diagnostic),
        }
    }
}

impl IntoResponse for HttpRefusal {
    fn into_response(self) -> Response {
        let mut response = json(self.status, &*self.diagnostic);
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_S));
        }
        response
    }
}

/// A value as JSON: the body of a request, or an answer.
pub(super) struct Json<T>(pub(super) T);

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        json(StatusCode::OK, &self.0)
    }
}

impl<T: JsonSchema> Output for Json<T> {
    fn describe(operation: &mut Description<'_>) {
        let content = operation.json::<T>();
        operation.reply("200", operation.summary, &content);
    }
}

impl<T: Output> Output for Result<T, HttpRefusal> {
    fn describe(operation: &mut Description<'_>) {
        T::describe(operation);
    }
}

/// What the answer holds is the same.
impl<T: Output> Output for (axum::http::HeaderMap, T) {
    fn describe(operation: &mut Description<'_>) {
        T::describe(operation);
    }
}

impl Output for NoContent {
    fn describe(operation: &mut Description<'_>) {
        operation.reply("204", operation.summary, &Value::Null);
    }
}

/// A JSON answer. What cannot be written as JSON is told as our own fault.
pub(super) fn json<T: Serialize>(status: StatusCode, value: &T) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => answer_of(status, "application/json", Body::from(bytes)),
        Err(error) => {
            tracing::error!(%error, "an answer could not be written as JSON");
            answer_of(
                StatusCode::INTERNAL_SERVER_ERROR,
                "application/json",
                Body::from(
                    r#"{"kind":"internal","code":"reply_not_json","message":"the answer could not be written as JSON","hints":[]}"#,
                ),
            )
        }
    }
}

/// An answer of a given type. Nothing of it may be cached: it is true for this moment only.
pub(super) fn answer_of(status: StatusCode, kind: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_status() {
        let table = [
            (Kind::Usage, "bad_inputs", 400),
            (Kind::NotFound, "no_such_run", 404),
            (Kind::Definition, "not_loaded", 422),
            (Kind::Blocked, "unavailable", 403),
            (Kind::Blocked, "queue_full", 503),
            (Kind::Blocked, "disk_full", 507),
            (Kind::Unreachable, "gone", 503),
            (Kind::Conflict, "too_late", 409),
            (Kind::Conflict, "busy", 503),
            (Kind::Open, "disk_full_open", 504),
            (Kind::Internal, "broken", 500),
        ];
        for (kind, code, status) in table {
            let response = HttpRefusal::from(Diagnostic::new(kind, code, "x")).into_response();
            assert_eq!(response.status().as_u16(), status, "{kind:?} {code}");
            assert_eq!(
                response.headers().contains_key(header::RETRY_AFTER),
                status == 503
            );
        }
    }
}
