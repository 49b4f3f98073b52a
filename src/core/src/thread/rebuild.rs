//! From a thread's log back to what the store held of its run.

use super::line::{Chain, Content, Record, RecordError, read_loose};
use crate::machine::Entry;
use crate::model::{RunSpec, Timestamp};

/// Why a log tells of no run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RebuildError {
    /// No specification was found.
    #[error("the log holds no specification")]
    Headless,
    /// No event was found.
    #[error("the log holds no events")]
    Empty,
    /// A later version wrote it.
    #[error(transparent)]
    Newer(RecordError),
}

/// What a log tells of its run.
#[derive(Debug, Clone, PartialEq)]
pub struct Rebuilt {
    /// The specification.
    pub spec: RunSpec,
    /// Its journal from the first event on, without a gap.
    pub entries: Vec<Entry>,
    /// The first damage found; what stands here was read in spite of it.
    pub damage: Option<RecordError>,
    /// Up to when the log vouches for the run.
    pub until: Timestamp,
}

/// Reads a log line by line.
#[derive(Debug)]
pub struct Rebuilder {
    chain: Chain,
    place: u64,
    spec: Option<RunSpec>,
    entries: Vec<Entry>,
    damage: Option<RecordError>,
    until: Timestamp,
}

impl Rebuilder {
    /// For the log of this thread.
    pub fn new(thread: &str) -> Rebuilder {
        Rebuilder {
            chain: Chain::start(thread),
            place: 0,
            spec: None,
            entries: Vec::new(),
            damage: None,
            until: Timestamp::default(),
        }
    }

    /// Takes the next line, without its newline.
    pub fn push(&mut self, line: &[u8]) -> Result<(), RebuildError> {
        let place = self.place;
        self.place = self.place.saturating_add(1);
        let read = match self.damage {
            None => self.chain.read(line),
            Some(_) => read_loose(line, place),
        };
        match read {
            Ok(record) => self.take(record),
            Err(newer @ RecordError::Newer(_)) => return Err(RebuildError::Newer(newer)),
            Err(damage) => {
                if self.damage.is_none() {
                    self.damage = Some(damage);
                    if let Ok(record) = read_loose(line, place) {
                        self.take(record);
                    }
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, record: Record) {
        self.until = self.until.max(record.at);
        match record.content {
            Content::Spec(spec) if self.spec.is_none() => self.spec = Some(*spec),
            // An event that does not follow is kept out: beyond a gap nothing can be told.
            Content::Event(entry) if usize::try_from(entry.seq) == Ok(self.entries.len()) => {
                self.entries.push(*entry);
            }
            Content::Spec(_)
            | Content::Event(_)
            | Content::Output { .. }
            | Content::Omitted { .. }
            | Content::Gap { .. } => {}
        }
    }

    /// What was found.
    pub fn finish(self) -> Result<Rebuilt, RebuildError> {
        let spec = self.spec.ok_or(RebuildError::Headless)?;
        if self.entries.is_empty() {
            return Err(RebuildError::Empty);
        }
        Ok(Rebuilt {
            spec,
            entries: self.entries,
            damage: self.damage,
            until: self.until,
        })
    }
}

/// Reads a whole log; a last line without its newline counts as torn.
pub fn rebuild(thread: &str, bytes: &[u8]) -> Result<Rebuilt, RebuildError> {
    let mut rebuilder = Rebuilder::new(thread);
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        rebuilder.push(line.strip_suffix(b"\n").unwrap_or(line))?;
    }
    rebuilder.finish()
}
