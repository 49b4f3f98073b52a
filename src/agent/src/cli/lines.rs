//! The stream of a program, read line by line.

use serde_json::Value;

use super::fault::{Fault, FaultKind};
use super::reading::{Reading, Seen};
use super::{Format, Known, claude, codex, gemini, generic, opencode};

/// Bytes of one line that is read as an event.
const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;

impl Reading {
    /// A piece of a line; `more`: it goes on in the next piece. Answers what became known by it.
    pub fn piece(&mut self, bytes: &[u8], more: bool) -> Vec<Seen> {
        if self.begun.len().saturating_add(bytes.len()) > LINE_BYTES_MAX {
            self.overlong = true;
            self.begun.clear();
        }
        if !self.overlong {
            self.begun.extend_from_slice(bytes);
        }
        if more {
            return Vec::new();
        }
        if std::mem::take(&mut self.overlong) {
            // It may have told of a refusal or of a failure.
            let message = "an event of more than 8 MiB could not be read";
            self.fault
                .get_or_insert_with(|| Fault::new(FaultKind::Failed, message));
            return vec![Seen::Noted(message.to_owned())];
        }
        let line = std::mem::take(&mut self.begun);
        self.line(&String::from_utf8_lossy(&line));
        std::mem::take(&mut self.seen)
    }

    /// A line of standard error, where some programs tell what their events do not.
    pub fn error_line(&mut self, line: &str) -> Vec<Seen> {
        if self.format == Format::Known(Known::Opencode) {
            opencode::log(self, line);
        }
        std::mem::take(&mut self.seen)
    }

    fn line(&mut self, line: &str) {
        if let Format::Described(shape) = &self.format {
            let shape = shape.clone();
            return generic::line(self, &shape, line);
        }
        let line = line.trim();
        if line.is_empty() {
            return;
        }
        let Ok(event @ Value::Object(_)) = serde_json::from_str::<Value>(line) else {
            self.seen.push(Seen::Unknown(line.to_owned()));
            return;
        };
        let known = match &self.format {
            Format::Known(Known::Claude | Known::Qwen) => claude::read(self, &event),
            Format::Known(Known::Codex) => codex::read(self, &event),
            Format::Known(Known::Opencode) => opencode::read(self, &event),
            Format::Known(Known::Gemini) => gemini::read(self, &event),
            Format::Described(_) => None,
        };
        if known.is_none() {
            self.seen.push(Seen::Unknown(line.to_owned()));
        }
    }

    /// The stream has ended; answers what only now is known.
    pub fn end(&mut self) -> Vec<Seen> {
        if !self.begun.is_empty() {
            let line = std::mem::take(&mut self.begun);
            self.line(&String::from_utf8_lossy(&line));
        }
        if let Format::Described(shape) = &self.format {
            let shape = shape.clone();
            generic::end(self, &shape);
        }
        self.close_turn();
        std::mem::take(&mut self.seen)
    }
}
