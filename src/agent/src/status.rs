//! What a status means: which failure, and whether a repetition may help.

use serde_json::Value;

use crate::error::Failure;
use crate::wire::Wire;

/// The failure of a status that is no success, and whether the request may be repeated. `message` is the
/// server's own, as it came; `has_retry_after` is whether it named a wait.
pub(crate) fn failure(
    wire: &Wire,
    status: u16,
    message: String,
    has_retry_after: bool,
) -> (Failure, bool) {
    match status {
        401 | 403 => {
            // The message is left out: some servers repeat the key in it, in parts.
            (
                Failure::Auth {
                    status,
                    key: wire.key_reference.clone(),
                },
                false,
            )
        }
        404 => (
            Failure::ModelNotFound {
                host: wire.host.clone(),
                name: wire.name.clone(),
            },
            false,
        ),
        429 | 529 => (
            Failure::RateLimited {
                status,
                until: None,
            },
            true,
        ),
        503 if has_retry_after => (
            Failure::RateLimited {
                status,
                until: None,
            },
            true,
        ),
        408 | 500..=599 => (Failure::Server { status, message }, true),
        _ => (Failure::RequestRefused { status, message }, false),
    }
}

/// The message within the body of a failure, if the body is JSON that has one.
pub(crate) fn message_in(body: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    error_in(&body).map(message_of)
}

/// The error within a body: an object's `error`, Gemini's list of such objects, or the object itself.
pub(crate) fn error_in(body: &Value) -> Option<&Value> {
    let body = body.get(0).unwrap_or(body);
    body.get("error")
        .filter(|error| !error.is_null())
        .or_else(|| {
            body.get("message")
                .or_else(|| body.get("detail"))
                .map(|_| body)
        })
}

/// The status and the message of an error that came with success, within a stream or instead of one.
pub(crate) fn status_of(error: &Value) -> (u16, String) {
    let number = |name: &str| error[name].as_u64().and_then(|n| u16::try_from(n).ok());
    let status = [number("code"), number("status")]
        .into_iter()
        .flatten()
        .find(|status| (400..600).contains(status));
    let words = ["type", "code", "status"].map(|name| error[name].as_str().unwrap_or_default());
    let status = status.or_else(|| words.iter().find_map(|word| status_of_word(word)));
    // What is not known is taken for a failure of the server, which is repeated.
    (status.unwrap_or(500), message_of(error))
}

/// Kinds of errors: Anthropic's `type`, OpenAI's `code` and `type`, Gemini's `status`.
fn status_of_word(word: &str) -> Option<u16> {
    Some(match word {
        "invalid_request_error"
        | "INVALID_ARGUMENT"
        | "FAILED_PRECONDITION"
        | "invalid_prompt"
        | "context_length_exceeded"
        | "insufficient_quota"
        | "billing_error" => 400,
        "authentication_error" | "UNAUTHENTICATED" | "invalid_api_key" => 401,
        "permission_error" | "PERMISSION_DENIED" => 403,
        "not_found_error" | "NOT_FOUND" | "model_not_found" => 404,
        "request_too_large" => 413,
        "rate_limit_error" | "rate_limit_exceeded" | "RESOURCE_EXHAUSTED" => 429,
        "overloaded_error" => 529,
        _ => return None,
    })
}

/// Whether a body says that no wait will help: the account has no money left.
pub(crate) fn is_out_of_quota(body: &[u8]) -> bool {
    let Ok(body) = serde_json::from_slice::<Value>(body) else {
        return false;
    };
    let error = error_in(&body).unwrap_or(&Value::Null);
    ["code", "type"]
        .iter()
        .any(|name| error[*name] == "insufficient_quota")
}

fn message_of(error: &Value) -> String {
    let text = error
        .as_str()
        .or_else(|| error["message"].as_str())
        .or_else(|| error["detail"].as_str());
    text.unwrap_or_default().to_owned()
}
