//! Reads a thread's log, page by page, while it may still grow.

mod seek;

use std::fs::File;
use std::io::{BufReader, Seek, SeekFrom};
use std::path::PathBuf;

use rustix::fs::OFlags;

use super::{Directory, FileError, LineRead, log_name, read_line};
use crate::model::{ThreadId, Timestamp};
use crate::protocol::{LogLine, LogStream};
use crate::thread::line::{number_of, read_loose};

/// Most bytes of records that one page holds.
const PAGE_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Which lines are wanted.
pub type Wants<'a> = &'a dyn Fn(&LogLine) -> bool;

/// Some lines of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPage {
    /// The lines in order.
    pub lines: Vec<LogLine>,
    /// Whether further lines stood there when the page was full.
    pub more: bool,
}

/// Reads one log from its beginning on; asked again at its end, it goes on with what was written since.
#[derive(Debug)]
pub struct LogReader {
    reader: BufReader<File>,
    path: PathBuf,
    offset: u64,
    line: u64,
}

impl LogReader {
    /// Opens the log of a thread; `None` where there is none yet.
    pub fn open(dir: &Directory, thread: &ThreadId) -> Result<Option<LogReader>, FileError> {
        let name = log_name(thread);
        match dir.open_file(&name, OFlags::RDONLY) {
            Ok(file) => Ok(Some(LogReader {
                reader: BufReader::with_capacity(64 * 1024, file),
                path: dir.path().join(name),
                offset: 0,
                line: 0,
            })),
            Err(FileError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The line that is read next, from 0.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Where that line begins, in bytes.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Passes over the lines before `line`, most of them unread.
    pub fn skip_to(&mut self, line: u64) -> Result<(), FileError> {
        self.approach(line)?;
        self.pass(line)
    }

    fn pass(&mut self, line: u64) -> Result<(), FileError> {
        let mut buffer = Vec::new();
        while self.line < line {
            let offset = self.offset;
            match self.step(&mut buffer)? {
                Some(true) => match number_of(&buffer) {
                    // Those in between are left out of the log.
                    Some(number) if number >= line => return self.go(number, offset),
                    Some(number) => self.passed(number),
                    None => {}
                },
                Some(false) => {}
                None => break,
            }
        }
        Ok(())
    }

    /// Whether another log has taken its place, which goes on instead of this one.
    pub fn is_replaced(&self) -> bool {
        let file = self.reader.get_ref();
        rustix::fs::fstat(file).is_ok_and(|found| found.st_nlink == 0)
    }

    fn go(&mut self, line: u64, offset: u64) -> Result<(), FileError> {
        let failed = |source| FileError::io("read", &self.path, source);
        self.reader.seek(SeekFrom::Start(offset)).map_err(failed)?;
        (self.line, self.offset) = (line, offset);
        Ok(())
    }

    /// A record tells its own number: where damage took the ends of lines, fewer are counted.
    fn passed(&mut self, line: u64) {
        self.line = self.line.max(line.saturating_add(1));
    }

    /// Reads at most `limit` lines. A line that is still being written is left for the next call.
    pub fn page(&mut self, limit: usize) -> Result<LogPage, FileError> {
        self.select(limit, &|_| true)
    }

    /// Reads at most `limit` lines of those that are wanted.
    pub fn select(&mut self, limit: usize, wants: Wants<'_>) -> Result<LogPage, FileError> {
        let (mut lines, mut buffer) = (Vec::new(), Vec::new());
        let end = self.offset.saturating_add(PAGE_BYTES_MAX);
        while lines.len() < limit && self.offset < end {
            let (line, Some(readable)) = (self.line, self.step(&mut buffer)?) else {
                return Ok(LogPage { lines, more: false });
            };
            let line = shown(&buffer, line, readable);
            self.passed(line.line);
            lines.extend(Some(line).filter(wants));
        }
        Ok(LogPage { lines, more: true })
    }

    /// Moves past the next whole line; `None` at the end, `false` for one that is too long to hold.
    fn step(&mut self, buffer: &mut Vec<u8>) -> Result<Option<bool>, FileError> {
        let failed = |source| FileError::io("read", &self.path, source);
        let (read, taken) = read_line(&mut self.reader, buffer).map_err(failed)?;
        match read {
            LineRead::End => Ok(None),
            LineRead::Torn => {
                // Its writer may cut it off or finish it; either way it is read again from its start.
                let start = SeekFrom::Start(self.offset);
                self.reader.seek(start).map_err(failed)?;
                Ok(None)
            }
            LineRead::Whole | LineRead::TooLong => {
                self.offset += taken;
                self.line = self.line.saturating_add(1);
                Ok(Some(read == LineRead::Whole))
            }
        }
    }
}

/// The record in `buffer` as every interface shows it.
fn shown(buffer: &[u8], line: u64, readable: bool) -> LogLine {
    let record = readable.then(|| read_loose(buffer, line).ok()).flatten();
    record.map_or_else(|| unreadable(line), |record| record.to_log_line())
}

fn unreadable(line: u64) -> LogLine {
    LogLine {
        line,
        at: Timestamp::default(),
        attempt: 0,
        stream: LogStream::Event,
        text: "this record cannot be read".to_owned(),
        continued: false,
        carriage_returns: 0,
    }
}
