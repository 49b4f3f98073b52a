//! An agent program while it works: what it prints is shown, its turns are kept, and at a limit it is ended.

use workerctl_agent::cli::{Exit, Fault, Format, Reading, Seen};
use workerctl_agent::{Halt, Turn, Usage};

use super::super::super::work::Work;
use super::super::command::{TAIL_BYTES_MAX, Tail};
use super::super::notes::Note;
use super::ledger::Ledger;
use super::telling::Telling;
use crate::machine::Event;
use crate::model::Timestamp;
use crate::model::agent::{AgentProgram, AgentSpec, Prices, Spent};
use crate::model::evidence::Ended;
use crate::process::{self, EndCause, ExitStatus, OutputSink, Spawned, Stream};

/// Turns that an attempt may take.
pub(super) fn turns_left(work: &Work, agent: &AgentSpec) -> u32 {
    let taken = work.run.facts.all_turns;
    let of_budget = agent.budget.turns.map(|limit| limit.saturating_sub(taken));
    of_budget.map_or(agent.max_iterations, |left| left.min(agent.max_iterations))
}

/// Why we end a program ourselves.
enum Enough {
    Turns,
    Budget(String),
    Journal(String),
    /// It goes on trying what comes to nothing.
    Stuck,
}

pub(super) struct Sink<'a> {
    telling: Telling<'a>,
    agent: &'a AgentSpec,
    reading: Reading,
    note: std::io::Result<Note<'a>>,
    tail: Tail,
    error_line: Vec<u8>,
    spent: Spent,
    ledger: Ledger,
    /// Whether the journal has something that is counted if nothing replaces it.
    in_flight: bool,
    enough: Option<Enough>,
}

impl OutputSink for Sink<'_> {
    fn spawned(&mut self, child: &Spawned) {
        let written = match &self.note {
            Ok(note) => child.live_record().and_then(|record| note.write(&record)),
            Err(error) => Err(error.kind().into()),
        };
        if let Err(error) = written {
            tracing::warn!(%error, "the live process could not be noted");
        }
    }

    fn line(&mut self, stream: Stream, bytes: &[u8], more: bool) {
        let seen = match stream {
            Stream::Stdout => self.reading.piece(bytes, more),
            Stream::Stderr => self.error_piece(bytes, more),
        };
        self.take(seen);
    }

    fn has_enough(&self) -> bool {
        self.enough.is_some()
    }
}

impl<'a> Sink<'a> {
    pub(super) fn new(
        telling: Telling<'a>,
        agent: &'a AgentSpec,
        (format, prompt_bytes): (Format, usize),
        prices: Option<Prices>,
        note: std::io::Result<Note<'a>>,
    ) -> Sink<'a> {
        Sink {
            ledger: Ledger::new(&format, prices),
            in_flight: false,
            spent: telling.work.run.facts.spent,
            telling,
            agent,
            reading: Reading::new(format).with_prompt(prompt_bytes),
            note,
            tail: Tail::of(TAIL_BYTES_MAX),
            error_line: Vec::new(),
            enough: None,
        }
    }

    /// The last that its model said.
    pub(super) fn text(&self) -> &str {
        self.reading.text()
    }

    /// Records that the program is about to ask for its first turn.
    pub(super) fn begins(&mut self) -> Result<(), Halt> {
        self.in_flight = true;
        self.telling.record(vec![self.request_sent()])
    }

    /// What is counted if the engine is lost now.
    fn request_sent(&self) -> Event {
        Event::RequestSent {
            attempt: self.telling.attempt,
            spent: self.ledger.in_flight(Some(self.reading.next_request())),
        }
    }

    /// Takes what is known only when the stream has ended, and counts what the journal has not. A program that has ended by
    /// itself has no request in flight.
    pub(super) fn end(&mut self, finished: Option<&process::Finished>) {
        let was_ended = finished.is_some_and(|finished| {
            let by_itself = matches!(finished.ended, EndCause::ByItself);
            !by_itself || matches!(finished.status, ExitStatus::Signalled(_))
        });
        let was_asking = was_ended && self.reading.is_asking();
        let seen = self.reading.end();
        self.take(seen);
        let is_asking = was_asking && self.reading.is_asking();
        self.settle(is_asking.then(|| self.reading.next_request()));
    }

    fn error_piece(&mut self, bytes: &[u8], more: bool) -> Vec<Seen> {
        let telling = &self.telling;
        let lines = telling
            .log
            .output(telling.attempt, None, Stream::Stderr, bytes, more);
        for line in &lines {
            self.tail.push(&line.text, line.continued);
        }
        if self.error_line.len() < TAIL_BYTES_MAX {
            self.error_line.extend_from_slice(bytes);
        }
        if more {
            return Vec::new();
        }
        let line = std::mem::take(&mut self.error_line);
        self.reading.error_line(&String::from_utf8_lossy(&line))
    }

    fn take(&mut self, seen: Vec<Seen>) {
        for one in seen {
            match one {
                Seen::Said(text) => self.telling.show(&text),
                Seen::Called { name, arguments } => {
                    self.telling.end_line();
                    self.telling.report_call(&name, &arguments.to_string());
                }
                Seen::Answered { is_error, text } => self.telling.report_result(is_error, &text),
                Seen::Refused { tool } => self.telling.tell(&format!("  refused: `{tool}`")),
                Seen::Noted(text) | Seen::Unknown(text) => self.telling.note(&text),
                Seen::Turn { turn, reported } => self.keep(&turn, reported),
                Seen::Lost { tokens, reported } => {
                    let spent = self.ledger.lost(tokens, reported);
                    let next = self.request_sent();
                    self.in_flight = true;
                    self.add("incomplete", spent, Some(next));
                }
            }
        }
        if self.reading.is_stuck() {
            self.enough.get_or_insert(Enough::Stuck);
        }
    }

    /// Keeps a turn; what is too much ends the program.
    fn keep(&mut self, turn: &Turn, reported: Usage) {
        self.telling.end_line();
        let usage = turn.usage.unwrap_or_default();
        let mut spent = self.ledger.turn(usage, reported, self.reading.cost());
        spent = spent.plus(self.ledger.total(self.reading.total()));
        self.spent = self.spent.plus(spent);
        let facts = &self.telling.work.run.facts;
        let number = facts.turns.saturating_add(self.reading.turns());
        // With its last turn a program ends by itself, if it has nothing left to call.
        let goes_on = !turn.calls.is_empty() && self.reading.total().is_none();
        let open = self.ledger.in_flight(None);
        self.in_flight = goes_on || open != Spent::default();
        let next = self.in_flight.then(|| self.request_sent());
        if let Err(halt) = self.telling.keep_turn(number, "", turn, spent, next) {
            self.enough.get_or_insert(Enough::Journal(halt.message));
        }
        let limit = turns_left(self.telling.work, self.agent);
        if self.reading.turns() >= limit && !turn.calls.is_empty() {
            self.enough.get_or_insert(Enough::Turns);
        }
        if let Some(why) = self.over_budget() {
            self.enough.get_or_insert(Enough::Budget(why));
        }
    }

    fn over_budget(&self) -> Option<String> {
        let budget = &self.agent.budget;
        let (tokens, money) = self.ledger.uncounted();
        let of_day = self
            .telling
            .performer
            .reserved(self.telling.work, self.agent, money);
        let tokens = self.spent.tokens.plus(tokens);
        let tokens = tokens.sum().saturating_sub(tokens.cache_read);
        if let Some(limit) = budget.tokens.filter(|limit| tokens > *limit) {
            return Some(format!(
                "{tokens} of {limit} tokens are spent (`budget.tokens`)"
            ));
        }
        let money = self.spent.money.unwrap_or_default().plus(money);
        if let Some(limit) = budget.money.filter(|limit| money > *limit) {
            return Some(format!("{money} of {limit} is spent (`budget.money`)"));
        }
        of_day.err()
    }

    fn settle(&mut self, next: Option<Usage>) {
        self.telling.end_line();
        let (total, cost) = (self.reading.total(), self.reading.cost());
        let spent = self.ledger.end(total, cost, next);
        if self.in_flight || spent.tokens.sum() > 0 || spent.money.is_some_and(|it| !it.is_zero()) {
            let code = if spent.unmeasured > 0 {
                "estimated"
            } else {
                "counted_later"
            };
            self.add(code, spent, None);
        }
    }

    /// Counts what no turn has counted; `next` follows.
    fn add(&mut self, code: &str, spent: Spent, next: Option<Event>) {
        self.spent = self.spent.plus(spent);
        let failed = Event::TurnFailed {
            attempt: self.telling.attempt,
            code: code.to_owned(),
            spent,
        };
        let events = std::iter::once(failed).chain(next);
        self.telling.note_events(events.collect());
    }

    /// How the attempt has ended.
    pub(super) fn ended(&self, finished: &process::Finished, program: &AgentProgram) -> Ended {
        let limit = self.agent.max_iterations;
        let unfinished = || {
            let message = super::iteration_limit(limit, self.reading.text());
            failed("iteration_limit", message, true)
        };
        match (finished.ended, &self.enough) {
            (EndCause::Stopped(_), _) => return Ended::Stopped,
            (_, Some(Enough::Budget(why))) => {
                return failed("budget_exhausted", why.clone(), false);
            }
            (_, Some(Enough::Journal(why))) => return failed("not_recorded", why.clone(), true),
            (_, Some(Enough::Turns)) => return unfinished(),
            (_, Some(Enough::Stuck)) => {
                return match self.reading.trouble() {
                    Some(fault) => of_fault(fault, program, None),
                    None => failed(
                        "incomplete",
                        format!("`{}` got no further", program.cli),
                        true,
                    ),
                };
            }
            (EndCause::Silent, None) => {
                let shown = crate::model::duration::show_millis(program.silence_ms);
                let silent = format!(
                    "`{}` said nothing for {shown} (`agent.silence`)",
                    program.cli
                );
                return match self.reading.trouble() {
                    Some(fault) => of_fault(fault, program, Some(&silent)),
                    None => failed("silence", silent, true),
                };
            }
            (EndCause::ByItself, None) => {}
            _ => return super::super::command::ended(finished),
        }
        if self.reading.turns_exhausted() {
            return unfinished();
        }
        let exit = match finished.status {
            ExitStatus::Exited(code) => Exit::Code(code),
            ExitStatus::Signalled(signal) => Exit::Signal(signal),
        };
        let last_words = self.tail.clone().text();
        match self
            .reading
            .verdict(exit, &program.may_be_denied, &last_words)
        {
            Ok(()) => Ended::Answered {
                turns: self.reading.turns(),
            },
            Err(fault) => of_fault(&fault, program, None),
        }
    }
}

fn failed(code: &str, message: String, again: bool) -> Ended {
    Ended::Failed {
        code: code.to_owned(),
        message,
        again,
        until: None,
    }
}

fn of_fault(fault: &Fault, program: &AgentProgram, more: Option<&str>) -> Ended {
    let mut message = format!("`{}`: {}", program.cli, fault.message);
    let until = fault
        .until
        .and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    let until = until
        .and_then(|since| i64::try_from(since.as_millis()).ok())
        .map(Timestamp::from_millis);
    if let Some(until) = until {
        message = format!("{message}, until {}", until.rfc3339());
    }
    if let Some(more) = more {
        message = format!("{message}; {more}");
    }
    Ended::Failed {
        code: fault.kind.code().to_owned(),
        message,
        again: fault.kind.may_be_repeated(),
        // Of a program that is described nobody knows whether it has done anything yet.
        until: until.filter(|_| program.described.is_none()),
    }
}
