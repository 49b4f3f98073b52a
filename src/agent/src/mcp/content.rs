//! What a tool answered, as text for a model.

use std::fmt::Write as _;

use rmcp::model::ErrorData;
use serde_json::Value;

use super::{ToolReply, cut};

/// Reads the result of `tools/call`, as JSON: a part of a kind that is not known yet is named like the others.
pub(super) fn reply(result: &Value, bytes_max: usize) -> ToolReply {
    let parts = result["content"].as_array().map_or(&[][..], Vec::as_slice);
    let mut text = parts.iter().map(part).collect::<Vec<_>>().join("\n");
    let structured = result.get("structuredContent");
    if let Some(structured) = structured.filter(|_| text.trim().is_empty()) {
        text = structured.to_string();
    }
    ToolReply {
        content: bounded(text, bytes_max),
        is_error: result["isError"].as_bool().unwrap_or(false),
    }
}

/// An error of the protocol, such as one for bad arguments: the model may correct itself.
pub(super) fn refusal(error: &ErrorData, bytes_max: usize) -> ToolReply {
    let mut text = format!("error {}: {}", error.code.0, error.message);
    if let Some(data) = &error.data {
        text.push('\n');
        text.push_str(&data.to_string());
    }
    ToolReply {
        content: bounded(text, bytes_max),
        is_error: true,
    }
}

fn part(part: &Value) -> String {
    let kind = part["type"].as_str().unwrap_or("unknown");
    match kind {
        "text" => part["text"].as_str().unwrap_or_default().to_owned(),
        "resource" => {
            let resource = &part["resource"];
            match resource["text"].as_str() {
                // Some servers give files in this way, which the model asked to read.
                Some(text) => format!("{}\n{text}", line(kind, resource, text.len())),
                None => line(kind, resource, decoded_len(&resource["blob"])),
            }
        }
        "resource_link" => {
            let size = part["size"]
                .as_u64()
                .and_then(|size| usize::try_from(size).ok());
            line(kind, part, size.unwrap_or(0))
        }
        _ => line(kind, part, decoded_len(&part["data"])),
    }
}

/// One line for what is no text.
fn line(kind: &str, part: &Value, bytes: usize) -> String {
    let mime = part["mimeType"].as_str().unwrap_or("unknown type");
    let size = if bytes > 0 {
        format!(", {bytes} bytes")
    } else {
        String::new()
    };
    match part["uri"].as_str() {
        Some(uri) => format!("[{kind}: {mime}{size}, {uri}]"),
        None => format!("[{kind}: {mime}{size}]"),
    }
}

/// Bytes of what is written in base64.
fn decoded_len(data: &Value) -> usize {
    let data = data.as_str().unwrap_or_default().trim_end_matches('=');
    data.len() * 3 / 4
}

fn bounded(mut text: String, bytes_max: usize) -> String {
    let kept = cut(&text, bytes_max).len();
    if kept < text.len() {
        let omitted = text.len() - kept;
        text.truncate(kept);
        _ = write!(text, "\n[{omitted} bytes more are left out]");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn replies_are_text() {
        for (result, expect, is_error) in [
            (
                json!({"content": [{"type": "text", "text": "a\nb"}]}),
                "a\nb",
                false,
            ),
            (
                json!({"content": [{"type": "text", "text": "no"}], "isError": true,
                    "structuredContent": {"a": 1}}),
                "no",
                true,
            ),
            (
                json!({"content": [
                    {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"},
                    {"type": "audio", "data": "aGVs", "mimeType": "audio/wav"},
                    {"type": "resource_link", "uri": "file:///x", "name": "x", "size": 7},
                    {"type": "resource", "resource": {"uri": "a:b", "mimeType": "text/x", "text": "hi"}},
                    {"type": "resource", "resource": {"uri": "a:c", "blob": "aGVsbG8="}},
                    {"type": "hologram"},
                    {"text": "without a kind"},
                ]}),
                "[image: image/png, 5 bytes]\n[audio: audio/wav, 3 bytes]\n\
                 [resource_link: unknown type, 7 bytes, file:///x]\n\
                 [resource: text/x, 2 bytes, a:b]\nhi\n[resource: unknown type, 5 bytes, a:c]\n\
                 [hologram: unknown type]\n[unknown: unknown type]",
                false,
            ),
            (json!({"structuredContent": {"a": 1}}), r#"{"a":1}"#, false),
            (
                json!({"content": [{"type": "text", "text": "x".repeat(199) + "é"}]}),
                &format!("{}\n[2 bytes more are left out]", "x".repeat(199)),
                false,
            ),
            (json!({}), "", false),
            (json!({"content": "x"}), "", false),
        ] {
            let expect = ToolReply {
                content: expect.into(),
                is_error,
            };
            let most = if expect.content.contains("left out") {
                200
            } else {
                1000
            };
            assert_eq!(reply(&result, most), expect, "{result}");
        }
    }
}
