//! What a line or a body says; and what is answered where nothing can be done with it.

use rmcp::ErrorData;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, GetMeta, InitializeRequestParams,
    ProtocolVersion, RequestId,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::cursor;

/// Refusals of the protocol that lies below.
pub(super) const PARSE_ERROR: i32 = -32_700;
pub(super) const INVALID_REQUEST: i32 = -32_600;
pub(super) const INVALID_PARAMS: i32 = -32_602;

/// Methods whose answers may come in pages.
const LISTS: [&str; 5] = [
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "skills/list",
];

/// Other methods that are known: what the SDK does not recognise has other parameters than they take.
const METHODS: [&str; 6] = [
    "initialize",
    "tools/call",
    "prompts/get",
    "resources/read",
    "subscriptions/listen",
    "skills/get",
];

/// What the first message of a session says.
const BEGINNING: [&str; 3] = ["protocolVersion", "capabilities", "clientInfo"];

/// What is read of a request that cannot be read whole: half of a surrogate pair, for instance, is JSON and no text.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    id: Value,
}

/// Reads JSON; otherwise what to answer.
pub(super) fn read(bytes: &[u8]) -> Result<Value, Value> {
    serde_json::from_slice(bytes).map_err(|error| {
        // Whatever is not kept is read as JSON alone, whether or not it can be told.
        match serde_json::from_slice::<Head>(bytes) {
            Ok(head) if is_id(&head.id) => {
                let why = format!("Invalid Request: {error}");
                refusal(&head.id, INVALID_REQUEST, &why)
            }
            _ => refusal(&Value::Null, PARSE_ERROR, &format!("Parse error: {error}")),
        }
    })
}

fn is_id(id: &Value) -> bool {
    id.is_string() || id.is_i64() || id.is_u64()
}

/// The message that a value is; otherwise what to answer.
pub(super) fn of(value: Value) -> Result<ClientJsonRpcMessage, Value> {
    let id = value.get("id").filter(|id| is_id(id));
    let id = id.cloned().unwrap_or(Value::Null);
    // An id that is none makes no notification of a request.
    if value.get("id").is_some() && value.get("method").is_some() && id.is_null() {
        let why = "Invalid Request: `id` is a text or a whole number";
        return Err(refusal(&id, INVALID_REQUEST, why));
    }
    // The SDK would take it for none, and answer with the first page.
    if has_odd_cursor(&value) {
        return Err(refusal(&id, INVALID_PARAMS, cursor::FOREIGN));
    }
    serde_json::from_value(value)
        .map_err(|error| refusal(&id, INVALID_REQUEST, &format!("Invalid Request: {error}")))
}

fn has_odd_cursor(message: &Value) -> bool {
    let method = message.get("method").and_then(Value::as_str);
    let cursor = message.pointer("/params/cursor");
    method.is_some_and(|method| LISTS.contains(&method))
        && cursor.is_some_and(|cursor| !cursor.is_string() && !cursor.is_null())
}

/// Refuses a request that is to begin a session and does not say what that takes. The newest version has no such
/// request, and is answered elsewhere.
pub(super) fn misread_beginning(message: &ClientJsonRpcMessage) -> Option<Value> {
    let ClientJsonRpcMessage::Request(request) = message else {
        return None;
    };
    let ClientRequest::CustomRequest(custom) = &request.request else {
        return None;
    };
    let newest = custom.get_meta().protocol_version() >= Some(ProtocolVersion::V_2026_07_28);
    if custom.method != "initialize" || newest {
        return None;
    }
    let params = custom.params.clone().unwrap_or_else(|| json!({}));
    let missing: Vec<&str> = BEGINNING
        .into_iter()
        .filter(|name| params.get(name).is_none())
        .collect();
    let why = if missing.is_empty() {
        let read = serde_json::from_value::<InitializeRequestParams>(params);
        read.err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    } else {
        let verb = if missing.len() == 1 { "is" } else { "are" };
        format!("{} {verb} missing", quoted(&missing))
    };
    let why = format!("Invalid params of `initialize`: {why}");
    let id = serde_json::to_value(&request.id).unwrap_or_default();
    Some(refusal(&id, INVALID_PARAMS, &why))
}

/// Names in quotes, one after the other.
pub(super) fn quoted(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

/// Why a method that the SDK does not recognise is not answered.
pub(super) fn unrecognised(method: &str, version: Option<&ProtocolVersion>) -> ErrorData {
    let method: String = method.escape_debug().take(100).collect();
    // The newest version has no handshake.
    let removed = method == "initialize" && version >= Some(&ProtocolVersion::V_2026_07_28);
    let known = METHODS.contains(&method.as_str()) || LISTS.contains(&method.as_str());
    if known && !removed {
        let why = format!("Invalid params of `{method}`");
        return ErrorData::invalid_params(why, None);
    }
    let why = format!("Method not found: {method}");
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, why, None)
}

/// Why a request is refused whose id another has that is not answered yet.
pub(super) fn is_under_way(id: &RequestId) -> String {
    format!("a request with the id {id} is under way")
}

pub(super) fn refusal(id: &Value, code: i32, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_a_surrogate_pair_is_refused_by_the_id_of_its_request() {
        let refused = |line: &str| {
            let refusal = read(line.as_bytes()).unwrap_err();
            (refusal["id"].clone(), refusal["error"]["code"].clone())
        };
        for text in [r"\ud800", r"\udc00\ud800", r"\\\uDFFF", r"x\ud800\u0041"] {
            let line = format!(r#"{{"id":7,"method":"ping","params":{{"a":"{text}"}}}}"#);
            assert_eq!(refused(&line), (json!(7), json!(-32_600)), "{line}");
        }
        // An id that is broken itself is not repeated; and what is no JSON stays none.
        assert_eq!(refused(r#"{"id":"\ud800"}"#), (Value::Null, json!(-32_700)));
        assert_eq!(
            refused(r#"{"id":1,"a":"\ud800""#),
            (Value::Null, json!(-32_700))
        );
        for text in [r"\ud83d\ude00", r"\\ud800"] {
            assert!(read(format!("\"{text}\"").as_bytes()).is_ok(), "{text}");
        }
    }
}
