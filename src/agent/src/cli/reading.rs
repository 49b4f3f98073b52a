//! What was read of a program's stream, and what it proves in the end.

use std::time::SystemTime;

use serde_json::Value;

use super::Format;
use super::fault::{Fault, FaultKind};
use crate::pace::WAIT_MAX;
use crate::turn::{Call, Turn, Usage, estimated_tokens};

/// Bytes of what the program said at last that are kept.
const TEXT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// How often a program may be in trouble without a turn between.
const TROUBLES_MAX: u32 = 6;

/// Refused tools that are named.
const REFUSED_MAX: usize = 1_000;

/// What one line tells, for whoever shows it.
#[derive(Debug, Clone, PartialEq)]
pub enum Seen {
    /// The model said something.
    Said(String),
    /// It calls a tool.
    Called {
        /// The tool's name.
        name: String,
        /// Its arguments.
        arguments: Value,
    },
    /// A tool has answered.
    Answered {
        /// Whether it failed.
        is_error: bool,
        /// What it said.
        text: String,
    },
    /// The program refused a tool.
    Refused {
        /// The tool's name.
        tool: String,
    },
    /// The program tries something again, or warns.
    Noted(String),
    /// A turn has ended.
    Turn {
        /// The turn; its tokens are estimated where the program has not reported all of them.
        turn: Turn,
        /// Tokens of it that the program has reported.
        reported: Usage,
    },
    /// A request of which no turn came was begun, and cost something all the same.
    Lost {
        /// Its tokens, an estimate.
        tokens: Usage,
        /// Tokens of it that the program has reported.
        reported: Usage,
    },
    /// An event that is not known, or a line that is none.
    Unknown(String),
}

/// How the program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// With this code.
    Code(i32),
    /// By a signal that we did not send.
    Signal(i32),
}

/// What was read so far.
#[derive(Debug)]
pub struct Reading {
    pub(super) format: Format,
    /// The head of a line that is not whole yet.
    pub(super) begun: Vec<u8>,
    pub(super) overlong: bool,
    pub(super) turn: OpenTurn,
    pub(super) turns: u32,
    pub(super) text: String,
    pub(super) refused: Vec<String>,
    pub(super) fault: Option<Fault>,
    /// What is known of a failure that the program may still get over.
    pub(super) trouble: Option<Fault>,
    /// How often it was in trouble since its last turn.
    troubles: u32,
    pub(super) completed: bool,
    pub(super) turns_exhausted: bool,
    /// Millionths of a dollar, as the program counts them.
    pub(super) cost: Option<u64>,
    /// Tokens of all requests, once the program has told them.
    pub(super) total: Option<Usage>,
    /// The request of the last turn, if its tokens are known.
    last_request: Option<Usage>,
    /// Bytes of the prompt and of what was said since.
    context_bytes: usize,
    /// How many of these the last request had.
    sent_bytes: usize,
    /// Calls of the last turn whose tools have not answered.
    open_calls: usize,
    pub(super) seen: Vec<Seen>,
}

/// The turn whose events are arriving.
#[derive(Debug, Default)]
pub(super) struct OpenTurn {
    pub(super) id: String,
    pub(super) begun: bool,
    pub(super) text: String,
    pub(super) calls: Vec<Call>,
    answered: usize,
    /// Tokens that the program has reported so far.
    pub(super) usage: Option<Usage>,
    /// Whether they are those of the whole turn.
    pub(super) is_measured: bool,
    /// Bytes that came of the answer while it was streamed.
    pub(super) streamed_bytes: usize,
}

impl OpenTurn {
    /// Bytes of what the model said and called.
    fn content_bytes(&self) -> usize {
        let calls = self.calls.iter().map(|call| {
            let arguments = call.arguments.as_ref().map(crate::answer::json_bytes);
            call.name.len() + arguments.unwrap_or_default()
        });
        self.text.len() + calls.sum::<usize>()
    }

    /// Its tokens, and whether they are estimated; `request` is an estimate of those of its request.
    fn metered(&self, request: Usage) -> (Usage, bool) {
        if let Some(usage) = self.usage.filter(|_| self.is_measured) {
            return (usage, false);
        }
        let bytes = self.content_bytes().max(self.streamed_bytes);
        let usage = self.usage.unwrap_or(request);
        let output = usage.output.max(estimated_tokens(bytes));
        (Usage { output, ..usage }, true)
    }
}

impl Reading {
    /// Nothing read yet.
    pub fn new(format: Format) -> Reading {
        Reading {
            format,
            begun: Vec::new(),
            overlong: false,
            turn: OpenTurn::default(),
            turns: 0,
            text: String::new(),
            refused: Vec::new(),
            fault: None,
            trouble: None,
            troubles: 0,
            completed: false,
            turns_exhausted: false,
            cost: None,
            total: None,
            last_request: None,
            context_bytes: 0,
            sent_bytes: 0,
            open_calls: 0,
            seen: Vec::new(),
        }
    }

    /// Takes the size of the prompt, of which the first request is estimated.
    #[must_use]
    pub const fn with_prompt(mut self, bytes: usize) -> Reading {
        self.context_bytes = bytes;
        self
    }

    /// Turns that were seen to end.
    pub const fn turns(&self) -> u32 {
        self.turns
    }

    /// The last that the model said.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What the program says that all of it cost, in millionths of a dollar.
    pub const fn cost(&self) -> Option<u64> {
        self.cost
    }

    /// What the program says that all of its requests took; `None`: it has not said so yet.
    pub const fn total(&self) -> Option<Usage> {
        self.total
    }

    /// Estimates the tokens of the program's next request: those of the request before if they are known, else by its size,
    /// where what the request before had counts as read from a cache.
    pub fn next_request(&self) -> Usage {
        match self.last_request {
            Some(last) => Usage {
                input: last.input,
                cache_read: last.cache_read.saturating_add(last.cache_write),
                ..Usage::default()
            },
            None => Usage {
                input: estimated_tokens(self.context_bytes.saturating_sub(self.sent_bytes)),
                cache_read: estimated_tokens(self.sent_bytes),
                ..Usage::default()
            },
        }
    }

    /// Whether a request is in flight of whose answer nothing has come, as far as the events tell: the work is not done,
    /// and no tool is being used.
    pub const fn is_asking(&self) -> bool {
        let is_answered = self.turn.begun || self.turn.usage.is_some();
        !is_answered && !self.completed && self.fault.is_none() && self.open_calls == 0
    }

    /// Whether the program says that it has no turns left.
    pub const fn turns_exhausted(&self) -> bool {
        self.turns_exhausted
    }

    /// What the program last said to be wrong; it may have got over it.
    pub fn trouble(&self) -> Option<&Fault> {
        self.fault.as_ref().or(self.trouble.as_ref())
    }

    /// Whether it goes on trying what comes to nothing: it has tried often since its last turn, or waits for longer than an
    /// attempt may.
    pub fn is_stuck(&self) -> bool {
        let until = self.trouble.as_ref().and_then(|trouble| trouble.until);
        let wait = until.and_then(|until| until.duration_since(SystemTime::now()).ok());
        self.troubles > TROUBLES_MAX || wait.is_some_and(|wait| wait > WAIT_MAX)
    }

    /// Whether the work counts as done, which a check has still to confirm.
    ///
    /// # Errors
    /// It does not, and why. Tools in `may_be_refused` may have been refused; `last_words` are those of standard error.
    pub fn verdict(
        &self,
        exit: Exit,
        may_be_refused: &[String],
        last_words: &str,
    ) -> Result<(), Fault> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let refused: Vec<&str> = self
            .refused
            .iter()
            .filter(|tool| !may_be_refused.contains(tool))
            .map(String::as_str)
            .collect();
        if !refused.is_empty() {
            let message = format!(
                "it refused the tool `{}`, so its work may be incomplete",
                refused.join("`, `")
            );
            return Err(Fault::new(FaultKind::Refused, message));
        }
        if !self.completed {
            return Err(self.broken_off(exit, last_words));
        }
        if self.text.trim().is_empty() {
            return Err(Fault::new(FaultKind::Empty, "it ended without an answer"));
        }
        if self.turns == 0 {
            return Err(Fault::new(
                FaultKind::NoTurns,
                "it ended without a turn of its model",
            ));
        }
        match exit {
            Exit::Code(0) => Ok(()),
            exit => Err(Fault::new(FaultKind::Exit, ended(exit, last_words))),
        }
    }

    fn broken_off(&self, exit: Exit, last_words: &str) -> Fault {
        if let Some(trouble) = &self.trouble {
            return trouble.clone();
        }
        let words = last_words.trim();
        let message = format!("it ended without a result: {}", ended(exit, words));
        let kind = match FaultKind::of_words(words) {
            kind @ (FaultKind::Auth | FaultKind::RateLimited) => kind,
            _ => FaultKind::NoResult,
        };
        Fault::new(kind, message)
    }

    pub(super) fn say(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.turn.begun = true;
        self.turn.text.push_str(text);
        self.seen.push(Seen::Said(text.to_owned()));
    }

    pub(super) fn call(&mut self, id: &str, name: &str, arguments: Value) {
        self.turn.begun = true;
        self.turn.calls.push(Call {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: Ok(arguments.clone()),
        });
        self.seen.push(Seen::Called {
            name: name.to_owned(),
            arguments,
        });
    }

    pub(super) fn answered(&mut self, is_error: bool, text: impl Into<String>) {
        let text = text.into();
        self.context_bytes = self.context_bytes.saturating_add(text.len());
        if self.turn.calls.is_empty() {
            self.open_calls = self.open_calls.saturating_sub(1);
        } else {
            self.turn.answered += 1;
        }
        self.seen.push(Seen::Answered { is_error, text });
    }

    pub(super) fn refuse(&mut self, tool: &str) {
        self.seen.push(Seen::Refused {
            tool: tool.to_owned(),
        });
        if self.refused.len() < REFUSED_MAX && !self.refused.iter().any(|one| one == tool) {
            self.refused.push(tool.to_owned());
        }
    }

    pub(super) fn note(&mut self, text: impl Into<String>) {
        self.seen.push(Seen::Noted(text.into()));
    }

    /// What the program may still get over.
    pub(super) fn in_trouble(&mut self, fault: Fault) {
        self.note(fault.message.clone());
        self.troubles = self.troubles.saturating_add(1);
        self.trouble = Some(fault);
    }

    /// Ends the turn whose events arrived, if there is one.
    pub(super) fn close_turn(&mut self) {
        if !self.turn.begun {
            return self.lose_request();
        }
        let turn = std::mem::take(&mut self.turn);
        let (usage, estimated) = turn.metered(self.next_request());
        let bytes = turn.content_bytes().max(turn.streamed_bytes);
        self.sent_bytes = self.context_bytes;
        self.context_bytes = self.context_bytes.saturating_add(bytes);
        self.last_request = turn.usage.filter(|usage| usage.request() > 0);
        self.open_calls = turn.calls.len().saturating_sub(turn.answered);
        self.turns = self.turns.saturating_add(1);
        // Whatever ended the work before, it went on.
        self.completed = false;
        self.trouble = None;
        self.troubles = 0;
        if !turn.text.trim().is_empty() {
            self.last_words(&turn.text);
        }
        let taken = Turn {
            text: turn.text,
            calls: turn.calls,
            usage: Some(usage),
            estimated,
            stop: String::new(),
            continuation: None,
            tries: 1,
            duration: std::time::Duration::ZERO,
        };
        self.seen.push(Seen::Turn {
            turn: taken,
            reported: turn.usage.unwrap_or_default(),
        });
    }

    /// Counts the request whose answer began and of which nothing came.
    pub(super) fn lose_request(&mut self) {
        let turn = std::mem::take(&mut self.turn);
        if turn.usage.is_some() || turn.streamed_bytes > 0 {
            self.seen.push(Seen::Lost {
                tokens: turn.metered(self.next_request()).0,
                reported: turn.usage.unwrap_or_default(),
            });
        }
    }

    /// Counts a request whose answer broke off before anything of it was told.
    pub(super) fn cut_request(&mut self) {
        self.seen.push(Seen::Lost {
            tokens: self.next_request(),
            reported: Usage::default(),
        });
    }

    /// Keeps what the model said last.
    pub(super) fn last_words(&mut self, text: &str) {
        let cut = text.floor_char_boundary(text.len().min(TEXT_BYTES_MAX));
        text[..cut].clone_into(&mut self.text);
    }
}

fn ended(exit: Exit, last_words: &str) -> String {
    let how = match exit {
        Exit::Code(code) => format!("exit code {code}"),
        Exit::Signal(signal) => format!("ended by signal {signal}"),
    };
    match last_words.lines().rfind(|line| !line.trim().is_empty()) {
        Some(line) => {
            let line = line.trim();
            format!(
                "{how}: {}",
                &line[..line.floor_char_boundary(line.len().min(500))]
            )
        }
        None => how,
    }
}

/// Text at a key.
pub(super) fn text<'v>(event: &'v Value, key: &str) -> &'v str {
    event.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// A number at a key, 0 where there is none.
pub(super) fn number(event: &Value, key: &str) -> u64 {
    event.get(key).and_then(Value::as_u64).unwrap_or_default()
}

/// Dollars as millionths.
pub(super) fn millionths(dollars: Option<f64>) -> Option<u64> {
    let millionths = (dollars? * 1e6).ceil();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the bounds are looked at"
    )]
    (0.0..1e15)
        .contains(&millionths)
        .then_some(millionths as u64)
}
