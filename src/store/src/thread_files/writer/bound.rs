//! Bounds the output that a log holds of each command: its beginning and its end are kept, the middle is omitted.
//!
//! Every line is appended at once, so that it can be followed and survives a crash. When a stream has twice what may be
//! kept, and when it ends, the log is written again without the middle, and takes the place of the old one.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom, Write};

use rustix::fs::{AtFlags, OFlags};
use rustix::io::Errno;

use super::super::{FileError, LineRead, copy_name, read_line};
use super::{ThreadWriter, place};
use crate::thread::line::{Chain, Content, OutputSize, Record, RecordError, Source, read_loose};
use crate::thread::mask::Masker;

/// Most lines that are kept of one stream of a command, since the record of a line is much longer than a short line.
const OUTPUT_LINES_MAX: u64 = 2_000_000;

/// Bytes of a copy that are written at once.
const COPIED_AT_ONCE: usize = 256 * 1024;

/// After a failure, how many lines are dropped before the log is written again.
const LINES_UNTIL_RETRY: u32 = 1_024;

/// How much is kept of each stream of a command.
#[derive(Debug)]
pub(super) struct Bound {
    max: OutputSize,
    /// Where the log may be written again from; before it every line stays.
    zone: Option<Zone>,
}

/// A place in the log: how many bytes stand before it, and what the next record is chained to.
#[derive(Debug, Clone)]
struct Zone {
    offset: u64,
    chain: Chain,
}

/// What one stream of the present command has written.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// What stays of its beginning.
    head: OutputSize,
    /// What the log holds of it behind that.
    rest: OutputSize,
    /// Number of the first line behind its beginning.
    rest_from: Option<u64>,
    /// What was omitted between the two.
    omitted: OutputSize,
    /// Lines that were dropped since the log could not be written again.
    refused: u32,
}

impl Kept {
    fn size(&self) -> OutputSize {
        self.head.plus(self.rest)
    }
}

impl Default for Bound {
    fn default() -> Bound {
        Bound::new(u64::MAX)
    }
}

impl Bound {
    pub(super) fn new(bytes: u64) -> Bound {
        let lines = OUTPUT_LINES_MAX;
        Bound {
            max: OutputSize { bytes, lines },
            zone: None,
        }
    }

    fn half(&self) -> OutputSize {
        OutputSize {
            bytes: self.max.bytes / 2,
            lines: self.max.lines / 2,
        }
    }
}

/// A log that is written again without the middle of one stream.
struct Omission {
    source: Source,
    /// Number of the first line that may be omitted.
    from: u64,
    max: OutputSize,
    /// What is still held of the stream.
    size: OutputSize,
    omitted: OutputSize,
    /// The last line that was omitted, until the record that says so was written.
    last: Option<Record>,
    /// Whether that record was written: what follows stays.
    is_done: bool,
    chain: Chain,
    out: Vec<u8>,
}

impl Omission {
    /// Takes the next line of the log.
    fn line(&mut self, line: &[u8]) -> Result<(), RecordError> {
        if self.is_done {
            return self.chain.relink(line, &mut self.out);
        }
        // A record that cannot be read, because a secret was masked in it, is no output and stays.
        let record = read_loose(line, self.chain.next_line()).ok();
        let record = record.filter(|record| record.line >= self.from);
        match record {
            Some(Record {
                content: Content::Omitted { source, .. },
                ..
            }) if source == self.source => Ok(()),
            Some(record) if self.size.exceeds(self.max) => {
                match OutputSize::of_content(&record.content) {
                    Some((source, size)) if source == self.source => {
                        self.size = self.size.minus(size);
                        self.omitted = self.omitted.plus(size);
                        self.last = Some(record);
                        if self.size.exceeds(self.max) {
                            return Ok(());
                        }
                        self.mark()
                    }
                    _ => self.chain.relink(line, &mut self.out),
                }
            }
            _ => self.chain.relink(line, &mut self.out),
        }
    }

    /// Writes how much was omitted, in the place of the last line that was.
    fn mark(&mut self) -> Result<(), RecordError> {
        let Some(last) = self.last.take() else {
            return Ok(());
        };
        self.is_done = true;
        self.chain.pass_over(last.line);
        let (source, size) = (self.source, self.omitted);
        let content = Content::Omitted { source, size };
        let masker = Masker::none();
        let (chain, out) = (&mut self.chain, &mut self.out);
        chain.append(last.at, last.attempt, content, &masker, out)?;
        Ok(())
    }
}

impl ThreadWriter {
    /// Counts a line that is to be appended; `false` if it has to be dropped, because the log cannot be written again.
    pub(super) fn make_room(&mut self, source: Source, size: OutputSize) -> bool {
        let (half, max) = (self.bound.half(), self.bound.max);
        let next = self.chain.next_line();
        let kept = &mut self.streams[place(source)].kept;
        if kept.rest_from.is_none() {
            if !kept.head.plus(size).exceeds(half) {
                kept.head = kept.head.plus(size);
                return true;
            }
            kept.rest_from = Some(next);
            let offset = self.written_bytes + self.pending.len() as u64;
            let chain = &self.chain;
            self.bound.zone.get_or_insert_with(|| Zone {
                offset,
                chain: chain.clone(),
            });
        }
        let held = kept.rest.plus(size);
        if !kept.head.plus(held).exceeds(max.plus(max)) {
            kept.rest = held;
            return true;
        }
        let is_due = kept.refused.is_multiple_of(LINES_UNTIL_RETRY);
        if is_due && self.omit_middle(source).is_ok() {
            let kept = &mut self.streams[place(source)].kept;
            kept.rest = kept.rest.plus(size);
            return true;
        }
        let kept = &mut self.streams[place(source)].kept;
        kept.refused = kept.refused.saturating_add(1);
        false
    }

    /// Ends the bound of a stream; answers how much of it was omitted.
    pub(super) fn end_bound(&mut self, source: Source) -> OutputSize {
        let max = self.bound.max;
        if self.streams[place(source)].kept.size().exceeds(max) {
            // Without space for the copy more is kept than is asked for.
            let _ = self.omit_middle(source);
        }
        let kept = std::mem::take(&mut self.streams[place(source)].kept);
        if self
            .streams
            .iter()
            .all(|stream| stream.kept.rest_from.is_none())
        {
            self.bound.zone = None;
        }
        kept.omitted
    }

    /// Writes the log again without the middle of a stream.
    fn omit_middle(&mut self, source: Source) -> Result<(), FileError> {
        self.flush()?;
        let kept = &self.streams[place(source)].kept;
        let (Some(zone), Some(from)) = (self.bound.zone.clone(), kept.rest_from) else {
            return Ok(());
        };
        let omission = Omission {
            source,
            from,
            max: self.bound.max,
            size: kept.size(),
            omitted: kept.omitted,
            last: None,
            is_done: false,
            chain: zone.chain,
            out: Vec::new(),
        };
        let copied = self.copy_without_middle(zone.offset, omission);
        if let Err(error) = &copied {
            tracing::warn!(%error, path = %self.path.display(), "the middle of long output cannot be omitted");
            // Half a copy would take space that may be what is missing.
            let _ = self.remove_unfinished_copy();
        }
        copied
    }

    fn copy_without_middle(&mut self, begin: u64, mut part: Omission) -> Result<(), FileError> {
        let name = copy_name(&self.name);
        let path = self.dir.path().join(&name);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC | OFlags::APPEND;
        let mut copy = self.dir.open_file(&name, flags)?;
        let write_failed = |source| FileError::io("write", &path, source);
        let read_failed = |source| FileError::io("read", &self.path, source);
        let mut old: &File = &self.file;
        old.seek(SeekFrom::Start(0)).map_err(read_failed)?;
        let mut written = std::io::copy(&mut old.take(begin), &mut copy).map_err(write_failed)?;
        old.seek(SeekFrom::Start(begin)).map_err(read_failed)?;
        let mut reader = BufReader::with_capacity(64 * 1024, old.take(self.written_bytes - begin));
        let mut line = Vec::new();
        loop {
            let (read, _) = read_line(&mut reader, &mut line).map_err(read_failed)?;
            let at = part.chain.next_line();
            match read {
                LineRead::End => break,
                LineRead::Whole => part.line(&line),
                LineRead::TooLong | LineRead::Torn => Err(RecordError::TooLong { line: at }),
            }
            .map_err(|source| self.record_error(source))?;
            if part.out.len() >= COPIED_AT_ONCE {
                copy.write_all(&part.out).map_err(write_failed)?;
                written += part.out.len() as u64;
                part.out.clear();
            }
        }
        part.mark().map_err(|source| self.record_error(source))?;
        copy.write_all(&part.out).map_err(write_failed)?;
        written += part.out.len() as u64;
        // What it replaces may be durable already.
        copy.sync_data().map_err(write_failed)?;
        self.dir.rename(&name, &self.name)?;
        part.chain.pass_over(self.chain.next_line());
        (self.file, self.written_bytes, self.chain) = (copy, written, part.chain);
        self.unsynced = true;
        let kept = &mut self.streams[place(part.source)].kept;
        kept.rest = part.size.minus(kept.head);
        kept.omitted = part.omitted;
        kept.refused = 0;
        Ok(())
    }

    /// Removes what a crash left of a log that was being written again.
    pub(super) fn remove_unfinished_copy(&self) -> Result<(), FileError> {
        let name = copy_name(&self.name);
        match rustix::fs::unlinkat(&self.dir.handle, &name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(FileError::errno(
                "remove",
                &self.dir.path().join(name),
                errno,
            )),
        }
    }
}
