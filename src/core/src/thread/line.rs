//! One record of a thread's log: one line of JSON, each with the hash of the one before.
//!
//! ```text
//! {"line":0,"prev":"…","at":"2026-11-20T10:00:00.000Z","attempt":0,"type":"spec","version":1,"spec":{…}}
//! {"line":1,"prev":"…","at":"…","attempt":0,"type":"event","entry":{"seq":0,"at":…,"event":{…}}}
//! {"line":2,"prev":"…","at":"…","attempt":1,"type":"stdout","text":"hello"}
//! {"line":3,"prev":"…","at":"…","attempt":1,"type":"gap","lost":17}
//! {"line":9,"prev":"…","at":"…","attempt":1,"type":"omitted","of":"stdout","size":{"bytes":25,"lines":5}}
//! ```
//!
//! `prev` is the first 16 bytes, in hex, of the SHA-256 of the line before without its newline; that of
//! line 0 is taken over `workerctl thread 1` and the thread's id. 16 bytes find every accident and every
//! careless edit; whoever may write the file can also write the chain anew, which no length would prevent.
//! Numbers grow by one, but for lines that are left out of the middle of long output: those have a number and no record.
//! `spec` and `entry` are what the store holds, secrets masked, so that a store can be rebuilt from logs.

mod size;
mod source;

pub use size::OutputSize;
pub use source::Source;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::mask::Masker;
use super::safe::{inert, masked};
use super::wording;
use crate::machine::Entry;
use crate::model::legible::hex;
use crate::model::{RunSpec, Timestamp};
use crate::protocol::{LogLine, LogStream};

/// Version of the format; readers accept older ones for ever, and refuse newer ones.
pub const THREAD_VERSION: u32 = 1;

/// Most bytes of one record, its newline included.
pub const RECORD_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Why a line is not the record that is due.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// It is not a record at all.
    #[error("line {line} is not a record: {reason}")]
    Unreadable {
        /// Its place from 0.
        line: u64,
        /// What is wrong.
        reason: String,
    },
    /// Lines are missing, repeated or out of order.
    #[error("found line {found} instead of line {expected}")]
    Number {
        /// The number that is due.
        expected: u64,
        /// The number that stands there.
        found: u64,
    },
    /// The line before is not the one that was written, or the first line is another thread's.
    #[error("line {line} does not match {}", before(*.line))]
    Chain {
        /// Number of the line whose hash does not fit.
        line: u64,
    },
    /// A later version wrote it.
    #[error("the log has version {0}; this program reads up to {THREAD_VERSION}")]
    Newer(u32),
    /// More than [`RECORD_BYTES_MAX`].
    #[error("line {line} exceeds {RECORD_BYTES_MAX} bytes")]
    TooLong {
        /// Its place from 0.
        line: u64,
    },
}

/// What the hash of a line is of.
fn before(line: u64) -> String {
    match line.checked_sub(1) {
        Some(before) => format!("the hash of line {before}"),
        None => "the name of the thread".to_owned(),
    }
}

/// What a record holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// The specification; line 0.
    Spec(Box<RunSpec>),
    /// One line of the journal.
    Event(Box<Entry>),
    /// One line of output, or a part of one that is very long.
    Output {
        /// Where it comes from.
        source: Source,
        /// The text without its newline, masked.
        text: String,
        /// Whether the line goes on in the next record of the same source.
        continued: bool,
        /// Whether bytes that are not UTF-8 were replaced by U+FFFD.
        lossy: bool,
        /// How often the line was begun anew with a carriage return; the text is its last form.
        carriage_returns: u64,
    },
    /// Output in the middle of what a command wrote, beyond what is kept of it.
    Omitted {
        /// Where it came from.
        source: Source,
        /// How much of it is left out.
        size: OutputSize,
    },
    /// Lines of output that could not be written, for want of space.
    Gap {
        /// How many.
        lost: u64,
    },
}

/// One record.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Its place from 0.
    pub line: u64,
    /// When it was written.
    pub at: Timestamp,
    /// Which attempt, 0 before the first.
    pub attempt: u32,
    /// What it holds.
    pub content: Content,
}

#[derive(Serialize, Deserialize)]
struct Wire {
    line: u64,
    prev: String,
    at: String,
    attempt: u32,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    version: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    spec: Option<serde_json::Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    entry: Option<serde_json::Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    continued: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    lossy: bool,
    #[serde(
        default,
        alias = "rewrites",
        skip_serializing_if = "crate::model::schedule::is_zero"
    )]
    carriage_returns: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lost: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    of: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<OutputSize>,
}

impl Record {
    /// The record as every interface shows it.
    pub fn to_log_line(&self) -> LogLine {
        let (stream, text) = match &self.content {
            Content::Spec(spec) => (
                LogStream::Event,
                format!("run {} of {}", spec.run, spec.skill),
            ),
            Content::Event(entry) => (LogStream::Event, wording::event(&entry.event)),
            Content::Output { source, text, .. } => ((*source).into(), text.clone()),
            Content::Omitted { source, size } => ((*source).into(), wording::omitted(*size)),
            Content::Gap { lost } => (
                LogStream::Event,
                format!("{lost} lines of output could not be written"),
            ),
        };
        let (continued, carriage_returns) = match &self.content {
            Content::Output {
                continued,
                carriage_returns,
                ..
            } => (*continued, *carriage_returns),
            Content::Spec(_)
            | Content::Event(_)
            | Content::Omitted { .. }
            | Content::Gap { .. } => (false, 0),
        };
        LogLine {
            line: self.line,
            at: self.at,
            attempt: self.attempt,
            stream,
            text,
            continued,
            carriage_returns,
        }
    }

    fn wire(&self, prev: &Hash, masker: &Masker) -> Result<Wire, serde_json::Error> {
        let mut wire = Wire {
            line: self.line,
            prev: prev.hex(),
            at: self.at.rfc3339(),
            attempt: self.attempt,
            kind: String::new(),
            version: None,
            spec: None,
            entry: None,
            text: None,
            continued: false,
            lossy: false,
            carriage_returns: 0,
            lost: None,
            of: None,
            size: None,
        };
        let kind = match &self.content {
            Content::Spec(spec) => {
                wire.version = Some(THREAD_VERSION);
                wire.spec = Some(masked(serde_json::to_value(spec)?, masker));
                "spec"
            }
            Content::Event(entry) => {
                wire.entry = Some(masked(serde_json::to_value(entry)?, masker));
                "event"
            }
            Content::Output {
                source,
                text,
                continued,
                lossy,
                carriage_returns,
            } => {
                wire.text = Some(masker.mask_text(text).into_owned());
                wire.continued = *continued;
                wire.lossy = *lossy;
                wire.carriage_returns = *carriage_returns;
                source.name()
            }
            Content::Omitted { source, size } => {
                wire.of = Some(source.name().to_owned());
                wire.size = Some(*size);
                "omitted"
            }
            Content::Gap { lost } => {
                wire.lost = Some(*lost);
                "gap"
            }
        };
        kind.clone_into(&mut wire.kind);
        Ok(wire)
    }

    fn of(wire: &Wire) -> Result<Record, RecordError> {
        let line = wire.line;
        let unreadable = |reason: String| RecordError::Unreadable { line, reason };
        let missing = |field: &str| RecordError::Unreadable {
            line,
            reason: format!("a record of type `{}` has no `{field}`", wire.kind),
        };
        let at = Timestamp::parse(&wire.at)
            .ok_or_else(|| unreadable(format!("`{}` is not a time", wire.at)))?;
        let output = |source| -> Result<Content, RecordError> {
            Ok(Content::Output {
                source,
                text: wire.text.clone().ok_or_else(|| missing("text"))?,
                continued: wire.continued,
                lossy: wire.lossy,
                carriage_returns: wire.carriage_returns,
            })
        };
        let content = match wire.kind.as_str() {
            "spec" => {
                if let Some(version) = wire.version
                    && version > THREAD_VERSION
                {
                    return Err(RecordError::Newer(version));
                }
                let spec = wire.spec.clone().ok_or_else(|| missing("spec"))?;
                Content::Spec(serde_json::from_value(spec).map_err(|e| unreadable(e.to_string()))?)
            }
            "event" => {
                let entry = wire.entry.clone().ok_or_else(|| missing("entry"))?;
                Content::Event(
                    serde_json::from_value(entry).map_err(|e| unreadable(e.to_string()))?,
                )
            }
            "omitted" => {
                let source = wire.of.as_deref().and_then(Source::named);
                Content::Omitted {
                    source: source.ok_or_else(|| missing("of"))?,
                    size: wire.size.ok_or_else(|| missing("size"))?,
                }
            }
            "gap" => Content::Gap {
                lost: wire.lost.ok_or_else(|| missing("lost"))?,
            },
            other => match Source::named(other) {
                Some(source) => output(source)?,
                None => return Err(unreadable(format!("`{other}` is no type of a record"))),
            },
        };
        Ok(Record {
            line,
            at,
            attempt: wire.attempt,
            content,
        })
    }
}

/// The hash that a line carries of the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Hash([u8; 16]);

impl Hash {
    fn of(bytes: &[u8]) -> Hash {
        let mut short = [0; 16];
        short.copy_from_slice(&Sha256::digest(bytes)[..16]);
        Hash(short)
    }

    fn hex(&self) -> String {
        hex(&self.0)
    }
}

/// Where a log ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEnd {
    /// The number that a next line would have: how many lines it has, with those that are left out.
    pub lines: u64,
    /// The hash of the last one, as a next line would carry it.
    pub hash: String,
}

/// Where a log stands: the number and the hash that its next line carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    next: u64,
    prev: Hash,
}

impl Chain {
    /// The chain of a log that has no line yet.
    pub fn start(thread: &str) -> Chain {
        Chain {
            next: 0,
            prev: Hash::of(format!("workerctl thread 1\n{thread}").as_bytes()),
        }
    }

    /// The number of the next line.
    pub fn next_line(&self) -> u64 {
        self.next
    }

    /// The end of a log that stands here.
    pub fn end(&self) -> LogEnd {
        LogEnd {
            lines: self.next,
            hash: self.prev.hex(),
        }
    }

    /// Passes over a line that cannot be read.
    pub fn skip(&mut self) {
        self.next = self.next.saturating_add(1);
    }

    /// Appends the next record and its newline to `out`; the text within is masked.
    pub fn append(
        &mut self,
        at: Timestamp,
        attempt: u32,
        content: Content,
        masker: &Masker,
        out: &mut Vec<u8>,
    ) -> Result<Record, RecordError> {
        let record = Record {
            line: self.next,
            at,
            attempt,
            content,
        };
        let unreadable = |error: serde_json::Error| RecordError::Unreadable {
            line: record.line,
            reason: error.to_string(),
        };
        let wire = record.wire(&self.prev, masker).map_err(unreadable)?;
        let json = inert(serde_json::to_string(&wire).map_err(unreadable)?);
        if json.len() >= RECORD_BYTES_MAX {
            return Err(RecordError::TooLong { line: record.line });
        }
        self.advance(json.as_bytes());
        out.extend_from_slice(json.as_bytes());
        out.push(b'\n');
        Ok(record)
    }

    /// Reads the line that is due, without its newline, and moves on; a line that is not due moves nothing.
    pub fn read(&mut self, line: &[u8]) -> Result<Record, RecordError> {
        let record = Record::of(&self.due(line)?)?;
        self.next = record.line;
        self.advance(line);
        Ok(record)
    }

    /// Moves on over the line that is due; what it holds may be unreadable nevertheless, as where a secret that
    /// was masked in it equals a part of a time.
    pub fn follow(&mut self, line: &[u8]) -> Result<Result<Record, RecordError>, RecordError> {
        let wire = self.due(line)?;
        self.next = wire.line;
        self.advance(line);
        Ok(Record::of(&wire))
    }

    fn due(&self, line: &[u8]) -> Result<Wire, RecordError> {
        let wire = parse(line, self.next)?;
        let follows = wire.prev == self.prev.hex();
        // The line before vouches for it: numbers may be left out, never repeated.
        if wire.line < self.next || (wire.line > self.next && !follows) {
            return Err(RecordError::Number {
                expected: self.next,
                found: wire.line,
            });
        }
        if !follows {
            return Err(RecordError::Chain { line: wire.line });
        }
        Ok(wire)
    }

    /// Reads a line whatever stood before it and moves on from there: for a log that was damaged further up.
    pub fn resume(&mut self, line: &[u8]) -> Result<Record, RecordError> {
        let record = read_loose(line, self.next)?;
        self.next = record.line;
        self.advance(line);
        Ok(record)
    }

    fn advance(&mut self, line: &[u8]) {
        self.prev = Hash::of(line);
        self.next = self.next.saturating_add(1);
    }
}

fn parse(line: &[u8], place: u64) -> Result<Wire, RecordError> {
    if line.len() >= RECORD_BYTES_MAX {
        return Err(RecordError::TooLong { line: place });
    }
    serde_json::from_slice(line).map_err(|error| RecordError::Unreadable {
        line: place,
        reason: error.to_string(),
    })
}

/// The number that a line carries; `None` where it is no record.
pub fn number_of(line: &[u8]) -> Option<u64> {
    #[derive(Deserialize)]
    struct Numbered {
        line: u64,
    }
    let numbered: Numbered = serde_json::from_slice(line).ok()?;
    Some(numbered.line)
}

/// Reads a line without asking what stood before it; `place` names it in errors.
pub fn read_loose(line: &[u8], place: u64) -> Result<Record, RecordError> {
    Record::of(&parse(line, place)?)
}

/// Checks a whole log: every line readable, in order, and none changed. Answers how many lines it has,
/// with those that are left out.
///
/// A log whose last line has no newline is torn there, which is reported as unreadable.
pub fn verify(thread: &str, bytes: &[u8]) -> Result<u64, RecordError> {
    let mut chain = Chain::start(thread);
    let mut rest = bytes;
    while !rest.is_empty() {
        let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
            return Err(RecordError::Unreadable {
                line: chain.next,
                reason: "it is cut off".to_owned(),
            });
        };
        chain.read(&rest[..end])?;
        rest = &rest[end + 1..];
    }
    Ok(chain.next)
}

#[cfg(test)]
mod tests;
