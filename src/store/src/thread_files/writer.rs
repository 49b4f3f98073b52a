//! Appends to a thread's log: events, and output masked at this one place.

mod bound;

use std::fs::File;
use std::io::{BufReader, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::OFlags;

use super::{Directory, FileError, LineRead, log_name, read_line};
use crate::machine::Entry;
use crate::model::{RunSpec, Timestamp};
use crate::protocol::LogLine;
use crate::thread::line::{Chain, Content, LogEnd, OutputSize, Record, RecordError, Source};
use crate::thread::mask::{MaskStream, Masker};
use crate::thread::split::LineSplitter;

/// Bytes of records that are kept while they cannot be written; output beyond is counted, not kept.
pub const PENDING_BYTES_MAX: usize = 1024 * 1024;

use bound::{Bound, Kept};

/// One of the four streams on its way to lines.
#[derive(Debug)]
struct Stream {
    mask: MaskStream,
    lines: LineSplitter,
    kept: Kept,
}

/// Appends to the log of one thread. One writer at a time.
///
/// Records gather in memory until [`ThreadWriter::flush`] writes them in one call, so that a chunk of
/// output costs one write however many lines it has. A failed write leaves the file as it was before
/// and the records pending; the next flush tries again.
#[derive(Debug)]
pub struct ThreadWriter {
    dir: Arc<Directory>,
    name: String,
    file: File,
    path: PathBuf,
    masker: Masker,
    chain: Chain,
    streams: [Stream; 4],
    bound: Bound,
    /// Length of the file up to its last whole record.
    written_bytes: u64,
    pending: Vec<u8>,
    /// Whether a write failed and may have left a part of a record behind.
    torn: bool,
    unsynced: bool,
    next_seq: u32,
    lost: u64,
    damage: Option<RecordError>,
}

impl ThreadWriter {
    /// Opens or begins the log of a run. A torn tail is cut; damage further up is kept and reported.
    /// The name of a new log is durable with the next sync of the file system.
    pub fn open(
        dir: &Arc<Directory>,
        spec: &RunSpec,
        masker: Masker,
        at: Timestamp,
    ) -> Result<ThreadWriter, FileError> {
        let name = log_name(&spec.thread);
        let path = dir.path().join(&name);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::APPEND;
        let file = dir.open_file(&name, flags)?;
        let stream = || Stream {
            mask: masker.stream(),
            lines: LineSplitter::default(),
            kept: Kept::default(),
        };
        let streams = [stream(), stream(), stream(), stream()];
        let mut writer = ThreadWriter {
            dir: Arc::clone(dir),
            name,
            file,
            path,
            masker,
            chain: Chain::start(spec.thread.as_str()),
            streams,
            bound: Bound::default(),
            written_bytes: 0,
            pending: Vec::new(),
            torn: false,
            unsynced: false,
            next_seq: 0,
            lost: 0,
            damage: None,
        };
        if !is_empty(&writer.file) {
            writer.recover()?;
            writer.remove_unfinished_copy()?;
        }
        if writer.chain.next_line() == 0 {
            writer.append(at, 0, Content::Spec(Box::new(spec.clone())))?;
            writer.flush()?;
        }
        Ok(writer)
    }

    /// Reads what is there, and cuts what a crash left unfinished.
    fn recover(&mut self) -> Result<(), FileError> {
        let failed = |source| FileError::io("read", &self.path, source);
        let mut reader = BufReader::with_capacity(64 * 1024, &self.file);
        reader.seek(SeekFrom::Start(0)).map_err(failed)?;
        let (mut buffer, mut offset) = (Vec::new(), 0u64);
        let mut damage = None;
        let mut found = None;
        let mut next_seq = 0;
        let mut kept_bytes = 0;
        loop {
            let (read, taken) = read_line(&mut reader, &mut buffer).map_err(failed)?;
            offset += taken;
            let record = match read {
                LineRead::End => break,
                LineRead::Torn => continue,
                LineRead::TooLong => Err(RecordError::TooLong {
                    line: self.chain.next_line(),
                }),
                LineRead::Whole if damage.is_some() => self.chain.resume(&buffer),
                LineRead::Whole => self.chain.read(&buffer).or_else(|error| {
                    damage.get_or_insert(error);
                    self.chain.resume(&buffer)
                }),
            };
            match record {
                Ok(record) => {
                    if let Content::Event(entry) = &record.content {
                        next_seq = next_seq.max(entry.seq.saturating_add(1));
                    }
                    kept_bytes = offset;
                    // Damage counts only where something that can be read follows it.
                    found.clone_from(&damage);
                }
                Err(newer @ RecordError::Newer(_)) => return Err(self.record_error(newer)),
                Err(error) => {
                    damage.get_or_insert(error);
                }
            }
        }
        self.next_seq = next_seq;
        self.damage = found;
        self.written_bytes = kept_bytes;
        if kept_bytes < offset {
            self.cut()?;
        }
        Ok(())
    }

    /// Number of the first event that the log does not hold yet.
    pub fn next_seq(&self) -> u32 {
        self.next_seq
    }

    /// Damage that was found in what an earlier engine wrote.
    pub fn damage(&self) -> Option<&RecordError> {
        self.damage.as_ref()
    }

    /// Takes those events that the log does not hold yet.
    ///
    /// While writes fail and [`PENDING_BYTES_MAX`] is reached, the rest is left out: the caller gives
    /// the journal again from [`ThreadWriter::next_seq`] on, at the latest when the run ends.
    pub fn entries<'a>(
        &mut self,
        entries: impl IntoIterator<Item = &'a Entry>,
        attempt: u32,
    ) -> Result<Vec<LogLine>, FileError> {
        let mut lines = Vec::new();
        for entry in entries {
            if entry.seq < self.next_seq {
                continue;
            }
            if self.torn && self.pending.len() > PENDING_BYTES_MAX {
                break;
            }
            let content = Content::Event(Box::new(entry.clone()));
            lines.push(self.append(entry.at, attempt, content)?.to_log_line());
            self.next_seq = entry.seq.saturating_add(1);
        }
        Ok(lines)
    }

    /// Takes a chunk of output and answers the lines that it ended, masked, also those that the log cannot take.
    pub fn output(
        &mut self,
        at: Timestamp,
        attempt: u32,
        source: Source,
        bytes: &[u8],
    ) -> Vec<LogLine> {
        let (mut masked, mut pieces) = (Vec::new(), Vec::new());
        let stream = &mut self.streams[place(source)];
        stream.mask.push(bytes, &mut masked);
        stream.lines.push(&masked, &mut pieces);
        self.lines(at, attempt, source, pieces)
    }

    /// Keeps at most so many bytes of each stream of a command.
    #[must_use]
    pub fn with_output_bytes_max(mut self, bytes: u64) -> ThreadWriter {
        self.bound = Bound::new(bytes);
        self
    }

    /// Ends a stream of a command: what was held back and what lacks its newline become lines.
    ///
    /// Answers them, and how much is omitted in the middle of what the stream was in all.
    pub fn end_output(
        &mut self,
        at: Timestamp,
        attempt: u32,
        source: Source,
    ) -> (Vec<LogLine>, OutputSize) {
        let (mut masked, mut pieces) = (Vec::new(), Vec::new());
        let stream = &mut self.streams[place(source)];
        stream.mask.finish(&mut masked);
        stream.lines.push(&masked, &mut pieces);
        stream.lines.finish(&mut pieces);
        let lines = self.lines(at, attempt, source, pieces);
        (lines, self.end_bound(source))
    }

    /// The line that a stream rewrites, as it stands now; it is not written before it ends.
    pub fn rewritten(&self, at: Timestamp, attempt: u32, source: Source) -> Option<LogLine> {
        let piece = self.streams[place(source)].lines.rewritten()?;
        Some(LogLine {
            line: self.chain.next_line(),
            at,
            attempt,
            stream: source.into(),
            text: piece.text,
            continued: false,
            carriage_returns: piece.carriage_returns,
        })
    }

    fn lines(
        &mut self,
        at: Timestamp,
        attempt: u32,
        source: Source,
        pieces: Vec<crate::thread::split::Piece>,
    ) -> Vec<LogLine> {
        let mut lines = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let size = OutputSize::of_text(&piece.text, piece.continued, piece.lossy);
            let content = Content::Output {
                source,
                text: piece.text,
                continued: piece.continued,
                lossy: piece.lossy,
                carriage_returns: piece.carriage_returns,
            };
            let is_stuck = self.torn && self.pending.len() > PENDING_BYTES_MAX;
            if is_stuck || !self.make_room(source, size) {
                self.lost = self.lost.saturating_add(1);
                // The reason of a failure is in the last lines, also of a log that cannot take them.
                let line = self.chain.next_line();
                let lost = Record {
                    line,
                    at,
                    attempt,
                    content,
                };
                lines.push(lost.to_log_line());
                continue;
            }
            match self.append(at, attempt, content) {
                Ok(record) => lines.push(record.to_log_line()),
                Err(_) => self.lost = self.lost.saturating_add(1),
            }
        }
        lines
    }

    fn append(
        &mut self,
        at: Timestamp,
        attempt: u32,
        content: Content,
    ) -> Result<Record, FileError> {
        if self.lost > 0 && !self.torn {
            let gap = Content::Gap { lost: self.lost };
            self.record(at, attempt, gap)?;
            self.lost = 0;
        }
        self.record(at, attempt, content)
    }

    fn record(
        &mut self,
        at: Timestamp,
        attempt: u32,
        content: Content,
    ) -> Result<Record, FileError> {
        // Output is masked before it is cut into lines; a secret cannot come back in a part of it.
        let none = Masker::none();
        let masker = match content {
            Content::Output { .. } | Content::Omitted { .. } | Content::Gap { .. } => &none,
            Content::Spec(_) | Content::Event(_) => &self.masker,
        };
        let record = self
            .chain
            .append(at, attempt, content, masker, &mut self.pending);
        record.map_err(|source| self.record_error(source))
    }

    fn record_error(&self, source: RecordError) -> FileError {
        FileError::Record {
            path: self.path.clone(),
            source,
        }
    }

    /// Writes what is pending, in one call; on an error it stays pending.
    pub fn flush(&mut self) -> Result<(), FileError> {
        if self.torn {
            self.cut()?;
        }
        if self.pending.is_empty() {
            return Ok(());
        }
        if let Err(source) = self.file.write_all(&self.pending) {
            self.torn = true;
            let error = FileError::io("write", &self.path, source);
            // The part that was written goes now if it can, so that readers do not see it.
            let _ = self.cut();
            self.torn = true;
            return Err(error);
        }
        self.written_bytes += self.pending.len() as u64;
        self.pending.clear();
        self.pending.shrink_to(256 * 1024);
        self.unsynced = true;
        Ok(())
    }

    /// Writes what is pending and answers where the log ends.
    pub fn end(&mut self) -> Result<LogEnd, FileError> {
        self.flush()?;
        Ok(self.chain.end())
    }

    fn cut(&mut self) -> Result<(), FileError> {
        self.file
            .set_len(self.written_bytes)
            .map_err(|source| FileError::io("cut", &self.path, source))?;
        self.torn = false;
        self.unsynced = true;
        Ok(())
    }

    /// Writes what is pending and makes all of it durable.
    pub fn sync(&mut self) -> Result<(), FileError> {
        self.flush()?;
        if self.unsynced {
            self.file
                .sync_data()
                .map_err(|source| FileError::io("sync", &self.path, source))?;
            self.unsynced = false;
        }
        Ok(())
    }
}

/// Whether there is nothing to recover, as in a log that has just begun.
fn is_empty(file: &File) -> bool {
    file.metadata().is_ok_and(|found| found.len() == 0)
}

fn place(source: Source) -> usize {
    match source {
        Source::Stdout => 0,
        Source::Stderr => 1,
        Source::Check => 2,
        Source::Tool => 3,
    }
}

#[cfg(test)]
impl ThreadWriter {
    /// Puts another file in the place of the log's.
    pub(super) fn exchange_file(&mut self, file: File) -> File {
        std::mem::replace(&mut self.file, file)
    }

    /// Whether something was written since the last sync.
    pub(super) fn is_unsynced(&self) -> bool {
        self.unsynced || !self.pending.is_empty()
    }

    /// How many lines of output were lost since the log last told so.
    pub(super) fn lost_lines(&self) -> u64 {
        self.lost
    }
}
