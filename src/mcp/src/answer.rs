//! What is said to a client: results of tools and refusals.

use std::borrow::Cow;

use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::Value;

use crate::model::Diagnostic;
use crate::model::legible::legible_lines;

/// A text, and nothing about errors: as the skill tool's contract writes it.
pub(super) fn plain(text: impl Into<String>) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.is_error = None;
    result
}

/// A text that tells a failure to the model.
pub(super) fn failure(text: impl Into<String>) -> CallToolResult {
    // It may repeat names and texts of files.
    let text = legible_lines(&text.into()).into_owned();
    CallToolResult::error(vec![ContentBlock::text(text)])
}

/// A text that tells no failure.
pub(super) fn success(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

/// A text with the same as data.
pub(super) fn structured(text: String, data: Value, is_error: bool) -> CallToolResult {
    let mut result = if is_error {
        failure(text)
    } else {
        success(text)
    };
    result.structured_content = Some(data);
    result
}

/// Characters of a text that stands among others, as many as a description ought to have.
const BRIEF_CHARS: usize = 1_024;

/// Whether [`brief`] leaves something of a text out.
pub(super) fn is_long(text: &str) -> bool {
    text.chars().nth(BRIEF_CHARS).is_some()
}

/// A text, shortened where it is longer than a description ought to be.
pub(super) fn brief(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(BRIEF_CHARS) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()).into(),
        None => text.into(),
    }
}

/// Everything that a diagnostic says, in lines, to a model: it has tools, and no command line.
pub(super) fn told(refused: &Diagnostic) -> String {
    let mut lines = vec![refused.message.clone()];
    let details = refused
        .details
        .iter()
        .filter(|one| **one != refused.message);
    lines.extend(details.map(|one| format!("- {one}")));
    lines.extend(refused.hints.iter().filter_map(|hint| hint_to_model(hint)));
    lines.join("\n")
}

/// What hints name that say how to widen rights: they are for people.
const SETTINGS: [&str; 7] = [
    "`access",
    "`allowed-tools",
    "`approval",
    "`mcp:",
    "`sandbox",
    "`toolsets",
    "`workerctl: ",
];

fn hint_to_model(hint: &str) -> Option<String> {
    if SETTINGS.iter().any(|setting| hint.contains(setting)) {
        return None;
    }
    Some(if hint.contains("`workerctl runs`") {
        "hint: `list_runs` lists runs with their ids".to_owned()
    } else if hint.contains("`workerctl ") {
        format!("for a person: {hint}")
    } else {
        format!("hint: {hint}")
    })
}

/// Something that is nobody's request's fault.
pub(super) fn internal(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

/// Does what blocks on a thread of its own.
pub(super) async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ErrorData> {
    tokio::task::spawn_blocking(work).await.map_err(internal)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// wave-skill-tool.md: "'system_error' // Unexpected system error".
    #[test]
    fn what_nobody_expected_is_an_internal_error_of_the_protocol() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let told = runtime.block_on(apart(|| panic!("unexpected")));
        assert_eq!(told.map(|()| 0).unwrap_err().code.0, -32_603);
    }
}
