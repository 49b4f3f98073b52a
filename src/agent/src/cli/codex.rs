//! Codex, `exec --json`. What it calls a turn is all of its work; each item that is a call or a message stands for a turn
//! here, for answers of its model are not told apart.

use serde_json::{Value, json};

use super::fault::Fault;
use super::reading::{Reading, number, text};
use crate::turn::Usage;

/// `None`: the event is not known.
pub(super) fn read(reading: &mut Reading, event: &Value) -> Option<()> {
    match text(event, "type") {
        "thread.started" | "turn.started" => {}
        "item.started" | "item.updated" | "item.completed" => {
            let item = event.get("item")?;
            item_event(reading, text(event, "type"), item)?;
        }
        "error" => {
            let words = text(event, "message");
            if words.contains("stream disconnected") || words.contains("stream closed") {
                reading.cut_request();
            }
            reading.in_trouble(Fault::said(words));
        }
        "turn.failed" => {
            reading.close_turn();
            let words = event.pointer("/error/message").and_then(Value::as_str);
            let words = words.unwrap_or("it says that it failed");
            reading.fault = Some(Fault::said(words));
        }
        "turn.completed" => {
            let usage = event.get("usage").unwrap_or(&Value::Null);
            let cached = number(usage, "cached_input_tokens");
            let written = number(usage, "cache_write_input_tokens");
            // Tokens of a cache are part of the input, and those of reasoning part of the output. They are those of all
            // requests, and stand with the last turn.
            reading.total = Some(Usage {
                input: number(usage, "input_tokens")
                    .saturating_sub(cached)
                    .saturating_sub(written),
                output: number(usage, "output_tokens"),
                cache_read: cached,
                cache_write: written,
            });
            reading.close_turn();
            reading.completed = true;
        }
        _ => return None,
    }
    Some(())
}

fn item_event(reading: &mut Reading, kind: &str, item: &Value) -> Option<()> {
    let (completed, id) = (kind == "item.completed", text(item, "id"));
    let (name, arguments) = match text(item, "type") {
        "agent_message" => {
            if completed {
                reading.close_turn();
                reading.turn.begun = true;
                reading.say(text(item, "text"));
            }
            return Some(());
        }
        // Warnings such as an unknown model; what ends the work has events of its own.
        "error" => {
            reading.note(text(item, "message"));
            return Some(());
        }
        "reasoning" | "todo_list" => return Some(()),
        "command_execution" => ("shell", json!({ "command": text(item, "command") })),
        "file_change" => ("edit", item.get("changes").cloned().unwrap_or_default()),
        "mcp_tool_call" => (
            text(item, "tool"),
            item.get("arguments").cloned().unwrap_or_default(),
        ),
        "web_search" => ("web_search", json!({ "query": text(item, "query") })),
        _ => return None,
    };
    let is_new = !reading.turn.calls.iter().any(|call| call.id == id);
    if is_new {
        // What was said before belongs to this call, other calls do not.
        if !reading.turn.calls.is_empty() {
            reading.close_turn();
        }
        reading.call(id, name, arguments);
    }
    if completed {
        let is_error = text(item, "status") == "failed";
        reading.answered(is_error, text(item, "aggregated_output"));
        if text(item, "status") == "declined" {
            reading.refuse(name);
        }
    }
    Some(())
}
