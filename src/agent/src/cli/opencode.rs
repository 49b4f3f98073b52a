//! opencode, `run --format json`. There is no event at the end: the last step says that it stopped.

use serde_json::Value;

use super::fault::{Fault, FaultKind};
use super::reading::{Reading, millionths, number, text};
use crate::turn::Usage;

/// `None`: the event is not known.
pub(super) fn read(reading: &mut Reading, event: &Value) -> Option<()> {
    let part = event.get("part").unwrap_or(&Value::Null);
    match text(event, "type") {
        "step_start" => {
            reading.close_turn();
            // Another step is to follow.
            reading.completed = false;
        }
        "text" => reading.say(text(part, "text")),
        "reasoning" => {}
        "tool_use" => tool(reading, part),
        "step_finish" => {
            let tokens = part.get("tokens").unwrap_or(&Value::Null);
            let cache = tokens.get("cache").unwrap_or(&Value::Null);
            reading.turn.begun = true;
            reading.turn.usage = Some(Usage {
                input: number(tokens, "input"),
                output: number(tokens, "output").saturating_add(number(tokens, "reasoning")),
                cache_read: number(cache, "read"),
                cache_write: number(cache, "write"),
            });
            reading.turn.is_measured = true;
            if let Some(cost) = millionths(part.get("cost").and_then(Value::as_f64)) {
                reading.cost = Some(reading.cost.unwrap_or_default().saturating_add(cost));
            }
            reading.close_turn();
            reading.completed = text(part, "reason") == "stop";
        }
        "error" => {
            let error = event.get("error").unwrap_or(&Value::Null);
            let words = error.pointer("/data/message").and_then(Value::as_str);
            let words = words.unwrap_or_else(|| text(error, "name"));
            let status = error.pointer("/data/statusCode").and_then(Value::as_u64);
            let kind = status.map_or_else(|| FaultKind::of_words(words), FaultKind::of_status);
            reading.fault = Some(Fault::new(kind, words));
        }
        _ => return None,
    }
    Some(())
}

fn tool(reading: &mut Reading, part: &Value) {
    let state = part.get("state").unwrap_or(&Value::Null);
    let arguments = state.get("input").cloned().unwrap_or_default();
    reading.call(text(part, "callID"), text(part, "tool"), arguments);
    let error = text(state, "error");
    if text(state, "status") != "error" {
        return reading.answered(false, text(state, "output"));
    }
    reading.answered(true, error);
    if error.contains("rejected permission") || error.contains("prevents you from using") {
        reading.refuse(text(part, "tool"));
    }
}

/// Its log, which is the only place where it tells that its server fails: it asks again for as long as it lives.
pub(super) fn log(reading: &mut Reading, line: &str) {
    let of_work = line.contains("message=\"stream error\"") && line.contains("small=false");
    if let Some((_, error)) = line.split_once("error.error=").filter(|_| of_work) {
        let words = error.trim_matches('"');
        reading.in_trouble(Fault::said(words));
    }
}
