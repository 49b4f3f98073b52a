//! What a conversation tells of itself while it goes on: lines of the log, and events of the journal.

use std::sync::Arc;

use super::super::super::work::Work;
use super::super::Performer;
use super::super::log::RunLog;
use crate::machine::Event;
use crate::model::agent::{Spent, TurnRecord};
use crate::process::Stream;
use crate::protocol::LogStream;
use crate::thread::mask::Masker;
use serde_json::Value;
use workerctl_agent::{Halt, Turn};

pub(super) struct Telling<'a> {
    pub(super) performer: &'a Performer,
    pub(super) work: &'a Work,
    pub(super) attempt: u32,
    pub(super) log: &'a Arc<RunLog>,
    /// What the model says in this turn.
    saying: String,
}

impl<'a> Telling<'a> {
    pub(super) fn new(
        performer: &'a Performer,
        work: &'a Work,
        attempt: u32,
        log: &'a Arc<RunLog>,
    ) -> Telling<'a> {
        Telling {
            performer,
            work,
            attempt,
            log,
            saying: String::new(),
        }
    }

    /// Keeps a turn before anything follows it, and `next` with it.
    pub(super) fn keep_turn(
        &mut self,
        number: u32,
        request: &str,
        turn: &Turn,
        spent: Spent,
        next: Option<Event>,
    ) -> Result<(), Halt> {
        let answer = self.masked(turn).map_err(|error| Halt {
            code: "internal".to_owned(),
            message: format!("the turn cannot be kept: {error}"),
            again: false,
        })?;
        let taken = Event::TurnTaken {
            attempt: self.attempt,
            turn: TurnRecord {
                number,
                request: request.to_owned(),
                answer,
                spent,
            },
        };
        self.record(std::iter::once(taken).chain(next).collect())
    }

    /// Records what must be durable before the next step.
    pub(super) fn record(&self, events: Vec<Event>) -> Result<(), Halt> {
        let inbox = &self.performer.parts.inbox;
        if inbox.record(self.work.spec.run, events) {
            self.log_events();
            return Ok(());
        }
        Err(Halt {
            code: "not_recorded".to_owned(),
            message: "the turn could not be recorded".to_owned(),
            again: true,
        })
    }

    /// Notes something that need not be durable before the next step.
    pub(super) fn note_events(&self, events: Vec<Event>) {
        let inbox = &self.performer.parts.inbox;
        inbox.note(self.work.spec.run, events);
    }

    pub(super) fn note(&self, text: &str) {
        let bytes = text.as_bytes();
        self.log
            .output(self.attempt, None, Stream::Stderr, bytes, false);
    }

    /// What was said is shown line by line, as it comes.
    pub(super) fn show(&mut self, text: &str) {
        self.saying.push_str(text);
        for piece in text.split_inclusive('\n') {
            let (line, whole) = match piece.strip_suffix('\n') {
                Some(line) => (line, true),
                None => (piece, false),
            };
            let bytes = line.as_bytes();
            self.log
                .output(self.attempt, None, Stream::Stdout, bytes, !whole);
        }
    }

    pub(super) fn end_line(&mut self) {
        if !self.saying.is_empty() && !self.saying.ends_with('\n') {
            self.log
                .output(self.attempt, None, Stream::Stdout, b"", false);
        }
        self.saying.clear();
    }

    /// As it is kept: without secrets, which a model may have come by.
    pub(super) fn masked(
        &self,
        kept: &impl serde::Serialize,
    ) -> serde_json::Result<serde_json::Value> {
        let kept = serde_json::to_value(kept)?;
        Ok(without_secrets(kept, self.log.masker()))
    }

    /// What is recorded while the attempt goes on stands in the log at its time, and not only when it has ended.
    fn log_events(&self) {
        if let Some(shown) = self.performer.parts.view.run(self.work.spec.run) {
            self.log.events(&shown.entries, self.attempt);
        }
    }

    pub(super) fn report_call(&self, name: &str, arguments: &str) {
        let cut = arguments.floor_char_boundary(arguments.len().min(1_024));
        let more = if cut < arguments.len() { "…" } else { "" };
        self.tell(&format!("{name} {}{more}", &arguments[..cut]));
    }

    /// How a call went, in one line.
    pub(super) fn report_result(&self, is_error: bool, content: &str) {
        if is_error {
            let said = content.lines().next().unwrap_or_default();
            return self.tell(&format!("  error: {said}"));
        }
        let lines = content.lines().count();
        let unit = if lines == 1 { "line" } else { "lines" };
        self.tell(&format!("  {lines} {unit}"));
    }

    pub(super) fn tell(&self, line: &str) {
        let stream = Some(LogStream::Tool);
        self.log
            .output(self.attempt, stream, Stream::Stdout, line.as_bytes(), false);
    }
}

/// The value with every text in it masked; one that is JSON itself, such as the arguments of a call, in its texts, where
/// a secret stands as it was written.
fn without_secrets(value: Value, masker: &Masker) -> Value {
    match value {
        Value::String(text) => {
            let inner = serde_json::from_str(&text).ok();
            let inner = inner.filter(|inner: &Value| inner.is_object() || inner.is_array());
            let hidden = inner.and_then(|inner| {
                let hidden = without_secrets(inner.clone(), masker);
                (hidden != inner).then(|| hidden.to_string())
            });
            let text = hidden.unwrap_or(text);
            Value::String(masker.mask_text(&text).into_owned())
        }
        Value::Array(items) => {
            let items = items.into_iter();
            items.map(|item| without_secrets(item, masker)).collect()
        }
        Value::Object(fields) => {
            let fields = fields.into_iter();
            let fields = fields.map(|(key, value)| (key, without_secrets(value, masker)));
            Value::Object(fields.collect())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_of_calls_are_masked_in_their_texts() {
        let masker = Masker::new([("KEY", &b"it's \"mine\""[..])]).unwrap();
        let command = serde_json::json!({"command": r#"echo 'it'\''s "mine"'"#, "n": 1.50});
        let kept = serde_json::json!({
            "text": "it's \"mine\"",
            "calls": [{"id": "1", "arguments": command.to_string()}, {"arguments": "{\"a\":  1}"}],
        });
        let wanted = serde_json::json!({
            "text": "***",
            "calls": [
                {"id": "1", "arguments": r#"{"command":"echo '***'","n":1.5}"#},
                {"arguments": "{\"a\":  1}"},
            ],
        });
        assert_eq!(without_secrets(kept, &masker), wanted);
    }
}
