//! Gemini CLI, `-o stream-json`.

use serde_json::Value;

use super::fault::{Fault, FaultKind};
use super::reading::{Reading, number, text};
use crate::turn::Usage;

/// `None`: the event is not known.
pub(super) fn read(reading: &mut Reading, event: &Value) -> Option<()> {
    match text(event, "type") {
        "init" => {}
        "message" => {
            // Its answers come in pieces; what it was asked comes back once.
            if text(event, "role") == "assistant" {
                reading.say(text(event, "content"));
            }
        }
        "tool_use" => {
            let arguments = event.get("parameters").cloned().unwrap_or_default();
            reading.call(text(event, "tool_id"), text(event, "tool_name"), arguments);
        }
        "tool_result" => {
            reading.close_turn();
            let is_error = text(event, "status") == "error";
            let error = event.pointer("/error/message").and_then(Value::as_str);
            reading.answered(is_error, error.unwrap_or_else(|| text(event, "output")));
        }
        "error" => {
            if text(event, "severity") == "warning" {
                reading.note(text(event, "message"));
            } else {
                reading.in_trouble(Fault::said(text(event, "message")));
            }
        }
        "result" => result(reading, event),
        _ => return None,
    }
    Some(())
}

fn result(reading: &mut Reading, event: &Value) {
    let stats = event.get("stats").unwrap_or(&Value::Null);
    let cached = number(stats, "cached");
    let usage = Usage {
        input: number(stats, "input_tokens").saturating_sub(cached),
        output: number(stats, "output_tokens"),
        cache_read: cached,
        cache_write: 0,
    };
    // It reports all tokens at once; they stand with the last turn.
    reading.total = (usage != Usage::default()).then_some(usage);
    reading.close_turn();
    reading.completed = true;
    if text(event, "status") == "success" {
        return;
    }
    let words = event.pointer("/error/message").and_then(Value::as_str);
    let words = words.unwrap_or("it says that it failed");
    let known = reading
        .trouble
        .take()
        .filter(|known| known.kind != FaultKind::Failed);
    reading.fault = Some(known.unwrap_or_else(|| Fault::said(words)));
}
