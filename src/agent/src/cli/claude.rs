//! Claude Code, `--output-format stream-json`, and Qwen Code, which took it over.

use serde_json::Value;

use super::fault::{Fault, FaultKind};
use super::reading::{Reading, millionths, number, text};
use crate::turn::Usage;

/// `None`: the event is not known.
pub(super) fn read(reading: &mut Reading, event: &Value) -> Option<()> {
    match text(event, "type") {
        "system" => system(reading, event),
        "assistant" => {
            assistant(reading, event);
            Some(())
        }
        "stream_event" => {
            streamed(reading, event);
            Some(())
        }
        "user" => {
            user(reading, event);
            Some(())
        }
        "result" => {
            result(reading, event);
            Some(())
        }
        "rate_limit_event" => {
            rate_limit(reading, event);
            Some(())
        }
        _ => None,
    }
}

fn system(reading: &mut Reading, event: &Value) -> Option<()> {
    match text(event, "subtype") {
        "init" | "status" => {}
        "permission_denied" => reading.refuse(text(event, "tool_name")),
        "api_retry" => {
            let status = number(event, "error_status");
            let wait = number(event, "retry_delay_ms");
            let (kind, what) = match status {
                0 => (FaultKind::Incomplete, "did not answer".to_owned()),
                status => (
                    FaultKind::of_status(status),
                    format!("answered {status} ({})", text(event, "error")),
                ),
            };
            let wait = std::time::Duration::from_millis(wait);
            let seconds = wait.as_secs_f64();
            let message = format!("its server {what}, it asks again in {seconds:.1} s");
            let until = std::time::SystemTime::now().checked_add(wait);
            if !reading.turn.begun {
                reading.lose_request();
            }
            reading.in_trouble(Fault {
                until: until.filter(|_| kind == FaultKind::RateLimited),
                ..Fault::new(kind, message)
            });
        }
        _ => return None,
    }
    Some(())
}

/// One answer of the model may come as several events with the same id.
fn assistant(reading: &mut Reading, event: &Value) {
    let message = event.get("message").unwrap_or(&Value::Null);
    let is_error = event.get("is_api_error_message") == Some(&Value::Bool(true));
    if is_error || text(message, "model") == "<synthetic>" {
        // The result that follows says the same, and counts.
        return;
    }
    if text(message, "id") != reading.turn.id {
        reading.close_turn();
        text(message, "id").clone_into(&mut reading.turn.id);
    }
    reading.turn.begun = true;
    // These are the tokens that were known when the answer began, unless it was not streamed.
    if let Some(reported) = message.get("usage")
        && !reading.turn.is_measured
    {
        reading.turn.usage = Some(usage(reported));
        reading.turn.is_measured = message.get("stop_reason").is_some_and(Value::is_string);
    }
    for block in parts(message) {
        match text(block, "type") {
            "text" => reading.say(text(block, "text")),
            "tool_use" => {
                let arguments = block.get("input").cloned().unwrap_or_default();
                reading.call(text(block, "id"), text(block, "name"), arguments);
            }
            _ => {}
        }
    }
}

/// A piece of the model's stream. Only the last ones have the tokens of the whole answer.
fn streamed(reading: &mut Reading, event: &Value) {
    if event
        .get("parent_tool_use_id")
        .is_some_and(Value::is_string)
    {
        return;
    }
    let piece = event.get("event").unwrap_or(&Value::Null);
    match text(piece, "type") {
        "message_start" => {
            let message = piece.get("message").unwrap_or(&Value::Null);
            reading.close_turn();
            text(message, "id").clone_into(&mut reading.turn.id);
            reading.turn.usage = message.get("usage").map(usage);
        }
        "content_block_delta" => {
            let delta = piece.get("delta").unwrap_or(&Value::Null);
            for key in ["text", "thinking", "partial_json"] {
                reading.turn.streamed_bytes += text(delta, key).len();
            }
        }
        "message_delta" => {
            let Some(reported) = piece.get("usage") else {
                return;
            };
            let before = reading.turn.usage.unwrap_or_default();
            let now = usage(reported);
            let newer = |now: u64, before: u64| if now == 0 { before } else { now };
            reading.turn.usage = Some(Usage {
                input: newer(now.input, before.input),
                output: newer(now.output, before.output),
                cache_read: newer(now.cache_read, before.cache_read),
                cache_write: newer(now.cache_write, before.cache_write),
            });
            reading.turn.is_measured = now.output > 0;
        }
        _ => {}
    }
}

fn usage(reported: &Value) -> Usage {
    Usage {
        input: number(reported, "input_tokens"),
        output: number(reported, "output_tokens"),
        cache_read: number(reported, "cache_read_input_tokens"),
        cache_write: number(reported, "cache_creation_input_tokens"),
    }
}

/// Tokens of all requests. `modelUsage` has those of sub-agents and side requests too, and is missing in some versions.
fn total(event: &Value) -> Option<Usage> {
    let models = event.get("modelUsage").and_then(Value::as_object);
    let mut sum = Usage::default();
    for of in models.into_iter().flat_map(serde_json::Map::values) {
        sum.input = sum.input.saturating_add(number(of, "inputTokens"));
        sum.output = sum.output.saturating_add(number(of, "outputTokens"));
        let (read, write) = ("cacheReadInputTokens", "cacheCreationInputTokens");
        sum.cache_read = sum.cache_read.saturating_add(number(of, read));
        sum.cache_write = sum.cache_write.saturating_add(number(of, write));
    }
    let main = event.get("usage").map(usage).unwrap_or_default();
    let most = if sum.sum() >= main.sum() { sum } else { main };
    (most.sum() > 0).then_some(most)
}

fn user(reading: &mut Reading, event: &Value) {
    reading.close_turn();
    let message = event.get("message").unwrap_or(&Value::Null);
    for part in parts(message).filter(|part| text(part, "type") == "tool_result") {
        let is_error = part.get("is_error") == Some(&Value::Bool(true));
        let said = match part.get("content") {
            Some(Value::String(said)) => said.clone(),
            Some(Value::Array(parts)) => {
                let texts: Vec<&str> = parts.iter().map(|part| text(part, "text")).collect();
                texts.join("\n")
            }
            _ => String::new(),
        };
        reading.answered(is_error, said);
    }
}

fn parts(message: &Value) -> impl Iterator<Item = &Value> {
    let content = message.get("content").and_then(Value::as_array);
    content.into_iter().flatten()
}

fn result(reading: &mut Reading, event: &Value) {
    // Before the turn ends, so that it has its part of it.
    reading.cost = millionths(event.get("total_cost_usd").and_then(Value::as_f64));
    reading.total = total(event);
    reading.close_turn();
    let denials = event.get("permission_denials").and_then(Value::as_array);
    for denial in denials.into_iter().flatten() {
        let tool = text(denial, "tool_name");
        if !reading.refused.iter().any(|one| one == tool) {
            reading.refuse(tool);
        }
    }
    let (subtype, words) = (text(event, "subtype"), text(event, "result"));
    let is_error = !matches!(
        event.get("is_error"),
        None | Some(Value::Null | Value::Bool(false))
    );
    reading.completed = true;
    if subtype == "error_max_turns" || text(event, "terminal_reason") == "max_turns" {
        reading.turns_exhausted = true;
    } else if subtype == "error_max_budget_usd" {
        let message = "it has spent its budget";
        reading.fault = Some(Fault::new(FaultKind::Budget, message));
    } else if is_error || subtype != "success" {
        let words = if words.is_empty() { subtype } else { words };
        let kind = match number(event, "api_error_status") {
            0 => FaultKind::of_words(words),
            status => FaultKind::of_status(status),
        };
        let mut fault = Fault::new(kind, words);
        fault.until = fault
            .until
            .or(reading.trouble.take().and_then(|known| known.until));
        reading.fault = Some(fault);
    } else {
        reading.last_words(words);
    }
}

/// Tells how much of a plan's allowance is used; the moment when there is more is known only here.
fn rate_limit(reading: &mut Reading, event: &Value) {
    let info = event.get("rate_limit_info").unwrap_or(&Value::Null);
    if text(info, "status") != "rejected" {
        return;
    }
    let resets = number(info, "resetsAt");
    let message = format!("the allowance of its plan is used up|{resets}");
    let mut fault = Fault::new(FaultKind::RateLimited, message);
    "the allowance of its plan is used up".clone_into(&mut fault.message);
    reading.in_trouble(fault);
}
