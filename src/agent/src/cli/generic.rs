//! A program whose output its user describes.

use serde_json::Value;

use super::fault::{Fault, FaultKind};
use super::reading::{Reading, Seen, millionths};
use crate::turn::Usage;

/// In which form the answer is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// Text; all of it is the answer, and an exit code of 0 ends the work.
    Text,
    /// One JSON document.
    Json,
    /// An event in JSON on each line.
    JsonLines,
}

/// Where what counts stands in the output; pointers are those of RFC 6901.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// In which form it is.
    pub output: Output,
    /// What the event that ends the work has: a pointer, and the value there. Absent: the last event ends it.
    pub done: Option<(String, String)>,
    /// The answer.
    pub result: Option<String>,
    /// What is there, and neither null, false nor empty, where the work has failed.
    pub failure: Option<String>,
    /// A list of refused tools, by name or with a name in it.
    pub denials: Option<String>,
    /// Tokens of requests.
    pub input_tokens: Option<String>,
    /// Tokens of answers.
    pub output_tokens: Option<String>,
    /// What it cost, in dollars.
    pub cost: Option<String>,
}

pub(super) fn line(reading: &mut Reading, shape: &Shape, line: &str) {
    match shape.output {
        Output::Text => {
            reading.say(&format!("{line}\n"));
        }
        // A document may have lines; it is read when it is whole.
        Output::Json => {
            reading.turn.text.push_str(line);
            reading.turn.text.push('\n');
        }
        Output::JsonLines => match serde_json::from_str::<Value>(line.trim()) {
            Ok(event @ Value::Object(_)) => event_of(reading, shape, &event),
            _ => reading.seen.push(Seen::Unknown(line.to_owned())),
        },
    }
}

pub(super) fn end(reading: &mut Reading, shape: &Shape) {
    match shape.output {
        Output::Text => {
            reading.close_turn();
            reading.completed = true;
        }
        Output::Json => {
            let document = std::mem::take(&mut reading.turn.text);
            match serde_json::from_str::<Value>(&document) {
                Ok(event) => event_of(reading, shape, &event),
                Err(_) => reading.seen.push(Seen::Unknown(document)),
            }
        }
        Output::JsonLines => {}
    }
}

fn event_of(reading: &mut Reading, shape: &Shape, event: &Value) {
    let at = |pointer: &Option<String>| pointer.as_ref().and_then(|pointer| event.pointer(pointer));
    let ends = match &shape.done {
        Some((pointer, value)) => event
            .pointer(pointer)
            .is_some_and(|found| shown(found) == *value),
        None => true,
    };
    if !ends {
        return reading.seen.push(Seen::Unknown(event.to_string()));
    }
    for denial in at(&shape.denials)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let named = ["tool_name", "tool", "name"]
            .iter()
            .find_map(|key| denial.get(key));
        reading.refuse(&shown(named.unwrap_or(denial)));
    }
    if let Some(failure) = at(&shape.failure).filter(|found| is_something(found)) {
        let words = match failure {
            Value::Bool(_) => at(&shape.result).map_or_else(String::new, shown),
            failure => shown(failure),
        };
        let words = if words.is_empty() {
            "it says that it failed".to_owned()
        } else {
            words
        };
        reading.fault = Some(Fault::new(FaultKind::of_words(&words), words));
    }
    let count = |pointer: &Option<String>| at(pointer).and_then(Value::as_u64);
    let (input, output) = (count(&shape.input_tokens), count(&shape.output_tokens));
    if input.is_some() || output.is_some() {
        reading.turn.usage = Some(Usage {
            input: input.unwrap_or_default(),
            output: output.unwrap_or_default(),
            ..Usage::default()
        });
        reading.turn.is_measured = true;
    }
    reading.cost = millionths(at(&shape.cost).and_then(Value::as_f64)).or(reading.cost);
    reading.turn.begun = true;
    reading.say(&at(&shape.result).map_or_else(String::new, shown));
    reading.close_turn();
    reading.completed = true;
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn is_something(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    }
}
