//! Whether a thread is what was written: the chain of its log, the end that its summary records, and the
//! events of its journal. Pure; it reads line by line, so that a log of any size takes one line of memory.

use serde::{Deserialize, Serialize};

use super::line::{Chain, Content, LogEnd, Record};
use crate::model::Timestamp;
use crate::model::value::MASK;

/// What is to be said of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Soundness {
    /// Everything is as it was written, up to the recorded end.
    Verified,
    /// The run goes on, or its engine was lost: sound up to here, and no end is recorded yet.
    Unfinished,
    /// The run has ended and its end is not recorded, as by older versions: sound up to here.
    EndUnknown,
    /// It is not what was written.
    Damaged,
}

/// What checking a thread came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckedThread {
    /// The thread.
    pub thread: String,
    /// What is to be said of it.
    pub state: Soundness,
    /// Lines that its log has.
    pub lines: u64,
    /// The first damage that was found.
    pub damage: Option<String>,
}

/// A run's journal as the store tells it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Journal {
    /// The run's id.
    pub run: String,
    /// Name of its outcome, once it has one.
    pub outcome: Option<String>,
    /// When each event happened, and its name.
    pub timeline: Vec<(Timestamp, String)>,
}

impl Journal {
    /// Whether nothing is written to the thread any more.
    fn is_closed(&self) -> bool {
        self.timeline
            .last()
            .is_some_and(|(_, name)| name == "closed")
    }
}

/// What a summary file tells that can be compared; everything else in it is for people.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct SummaryFacts {
    thread_id: String,
    #[serde(default)]
    run: RunFacts,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct RunFacts {
    id: String,
    outcome: Option<OutcomeName>,
    log: Option<LogEnd>,
    timeline: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct OutcomeName {
    kind: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Step {
    at: String,
    event: String,
}

/// Checks one thread; told of its log line by line.
#[derive(Debug)]
pub struct ThreadCheck<'a> {
    thread: &'a str,
    summary: Option<SummaryFacts>,
    journal: Option<&'a Journal>,
    chain: Chain,
    events: usize,
    /// Whether a line could not be read although it is what was written.
    unreadable: bool,
    damage: Option<String>,
}

impl<'a> ThreadCheck<'a> {
    /// Nothing of the log was read yet. The journal and the summary have to be read before the log is: what
    /// is written meanwhile then makes the log longer than they say, never shorter.
    pub fn new(
        thread: &'a str,
        summary: Option<SummaryFacts>,
        journal: Option<&'a Journal>,
    ) -> ThreadCheck<'a> {
        let mut check = ThreadCheck {
            thread,
            summary,
            journal,
            chain: Chain::start(thread),
            events: 0,
            unreadable: false,
            damage: None,
        };
        check.compare_summary();
        check
    }

    /// Notes damage; what follows the first one may follow from it.
    pub fn damaged(&mut self, what: impl Into<String>) {
        if self.damage.is_none() {
            self.damage = Some(what.into());
        }
    }

    fn compare_summary(&mut self) {
        let Some(summary) = &self.summary else {
            if self.is_closed() {
                self.damaged("its summary is missing");
            }
            return;
        };
        let told = &summary.run;
        let wrong = if !agrees(&summary.thread_id, self.thread) {
            Some(format!("its summary is of thread {}", summary.thread_id))
        } else if let Some(journal) = self.journal {
            let outcome = told.outcome.as_ref().map(|outcome| outcome.kind.as_str());
            let due = journal.outcome.as_deref();
            if !agrees(&told.id, &journal.run) {
                Some(format!("its summary is of run {}", told.id))
            } else if journal.is_closed()
                && !agrees(outcome.unwrap_or_default(), due.unwrap_or_default())
            {
                let name = |outcome: Option<&str>| outcome.unwrap_or("no outcome").to_owned();
                let (told, due) = (name(outcome), name(due));
                Some(format!("its summary says `{told}`, the journal `{due}`"))
            } else {
                None
            }
        } else {
            None
        };
        if let Some(wrong) = wrong {
            self.damaged(wrong);
        }
    }

    /// Takes the next whole line of the log, without its newline.
    pub fn line(&mut self, line: &[u8]) {
        match self.chain.follow(line) {
            Ok(Ok(record)) => self.record(&record),
            // It is what was written; events can no longer be counted.
            Ok(Err(_)) => self.unreadable = true,
            Err(error) => {
                self.damaged(error.to_string());
                // Counted on from the number that stands there, as the writer goes on after damage.
                if self.chain.resume(line).is_err() {
                    self.chain.skip();
                }
            }
        }
        let next = self.chain.next_line();
        let end = self.recorded_end().filter(|end| end.lines == next);
        if end.is_some_and(|end| *end != self.chain.end()) {
            let last = next.saturating_sub(1);
            self.damaged(format!("line {last} is not the one that was written last"));
        }
    }

    /// A line that is too long to be a record was passed over.
    pub fn too_long(&mut self) {
        self.damaged(format!(
            "line {} is too long for a record",
            self.chain.next_line()
        ));
        self.chain.skip();
    }

    fn record(&mut self, record: &Record) {
        let Content::Event(entry) = &record.content else {
            return;
        };
        if self.unreadable {
            return;
        }
        let place = self.events;
        self.events += 1;
        if usize::try_from(entry.seq) != Ok(place) {
            return self.damaged(format!(
                "line {} holds event {}, and event {place} is due",
                record.line, entry.seq
            ));
        }
        let in_summary = self
            .summary
            .as_ref()
            .and_then(|summary| summary.run.timeline.get(place));
        let in_journal = self.journal.and_then(|journal| journal.timeline.get(place));
        let name = entry.event.name();
        if in_summary.is_some_and(|step| {
            !agrees(&step.event, name) || !agrees(&step.at, &entry.at.rfc3339())
        }) {
            self.damaged(format!(
                "the event of line {} is not the one that the summary names",
                record.line
            ));
        } else if in_journal.is_some_and(|(at, due)| due != name || *at != entry.at) {
            self.damaged(format!(
                "the event of line {} is not the one of the journal",
                record.line
            ));
        }
    }

    fn recorded_end(&self) -> Option<&LogEnd> {
        self.summary.as_ref()?.run.log.as_ref()
    }

    fn is_closed(&self) -> bool {
        self.journal.is_some_and(Journal::is_closed)
    }

    /// The end of the log. `torn`: bytes without a newline stand there; `None`: there is no log.
    pub fn finish(mut self, torn: Option<bool>) -> CheckedThread {
        let lines = self.chain.next_line();
        let closed = self.is_closed();
        let end = self.recorded_end().map(|end| end.lines);
        // The journal's last event, `closed`, follows the last one that the log is told.
        let journal = self.journal.filter(|_| closed);
        let told = self.summary.as_ref();
        let due = journal
            .map_or(0, |journal| journal.timeline.len() - 1)
            .max(told.map_or(0, |summary| summary.run.timeline.len()));
        match (torn, end) {
            (None, end) if closed || end.is_some() => self.damaged("its log is missing"),
            (Some(_), Some(end)) if lines < end => {
                self.damaged(format!(
                    "its log is cut off: {lines} of {end} lines are there"
                ));
            }
            (Some(_), Some(end)) if closed && lines > end => {
                self.damaged(format!(
                    "its log goes on after its recorded end: {lines} lines, {end} recorded"
                ));
            }
            (Some(true), _) if closed => self.damaged("its log ends in the middle of a line"),
            (Some(_), _) if !self.unreadable && self.events < due => {
                self.damaged(format!(
                    "its log is cut off: {} of {due} events are there",
                    self.events
                ));
            }
            _ => {}
        }
        let whole = torn == Some(false) && end == Some(lines);
        let state = match (&self.damage, end) {
            (Some(_), _) => Soundness::Damaged,
            (None, Some(_)) if whole && (closed || self.journal.is_none()) => Soundness::Verified,
            (None, None) if closed => Soundness::EndUnknown,
            (None, _) => Soundness::Unfinished,
        };
        CheckedThread {
            thread: self.thread.to_owned(),
            state,
            lines,
            damage: self.damage,
        }
    }
}

/// Whether a summary tells the same; what was masked in it cannot be told.
fn agrees(told: &str, due: &str) -> bool {
    told == due || told.contains(MASK)
}

#[cfg(test)]
mod tests;
