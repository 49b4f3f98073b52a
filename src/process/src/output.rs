//! Reads what a command writes: into lines for the sink, byte for byte into a file, all of it
//! counted.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use super::command::{Limits, OutputSink, Stream};
use super::lines::LineSplitter;

/// Bytes of one read: what a pipe holds by default.
pub(super) const READ_BYTES: usize = 64 * 1024;

/// Longest line in bytes that is given back to the room when it is rewritten; it is well below what a log
/// holds back of a line, masks included.
const REWRITTEN_BYTES_MAX: u64 = 8 * 1024;

/// One stream of one command.
pub(super) struct Output {
    stream: Stream,
    pipe: Option<OwnedFd>,
    lines: LineSplitter,
    /// Bytes read so far.
    pub(super) bytes: u64,
    passed: u64,
    /// What may still be passed, in bytes and what lines cost beside them.
    room: u64,
    line_overhead: u64,
    /// What the line that has not ended has taken of the room.
    line_cost: u64,
    /// Whether the last byte was a carriage return.
    returned: bool,
    copy: Option<Copy>,
}

/// The file that receives standard output.
struct Copy {
    file: Option<File>,
    bytes_max: u64,
    error: Option<io::Error>,
}

impl Output {
    pub(super) fn new(stream: Stream, pipe: OwnedFd, limits: &Limits, file: Option<File>) -> Self {
        let copy = |file| Copy {
            file: Some(file),
            bytes_max: limits.stdout_file_bytes_max,
            error: None,
        };
        Self {
            stream,
            pipe: Some(pipe),
            lines: LineSplitter::new(limits.line_bytes_max),
            bytes: 0,
            passed: 0,
            room: limits.output_bytes_max,
            line_overhead: limits.line_overhead_bytes,
            line_cost: 0,
            returned: false,
            copy: file.map(copy),
        }
    }

    /// The pipe, until its end was reached.
    pub(super) fn pipe(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(OwnedFd::as_fd)
    }

    /// Reads once from a pipe that is ready, so that one stream cannot keep the others waiting.
    pub(super) fn read(&mut self, buffer: &mut [u8], sink: &mut dyn OutputSink) -> io::Result<()> {
        let Some(pipe) = &self.pipe else {
            return Ok(());
        };
        match rustix::io::read(pipe, &mut *buffer) {
            Ok(0) => self.close(sink),
            Ok(length) => self.take(&buffer[..length], sink),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn take(&mut self, bytes: &[u8], sink: &mut dyn OutputSink) {
        self.bytes += bytes.len() as u64;
        if let Some(copy) = &mut self.copy {
            copy.write(bytes, self.bytes);
        }
        let passed = &bytes[..self.fitting(bytes)];
        self.passed += passed.len() as u64;
        let stream = self.stream;
        self.lines
            .push(passed, |line, more| sink.line(stream, line, more));
    }

    /// How many of these bytes are still passed; beyond the first that is not, none is.
    ///
    /// A line that is rewritten gives back what it took: only its last form is kept, so that a progress bar
    /// cannot use up the room of what comes after it. One too long to be held as a whole was kept in pieces.
    fn fitting(&mut self, bytes: &[u8]) -> usize {
        let mut fitting = 0;
        for part in bytes.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
            if self.returned && !matches!(part[0], b'\n' | b'\r') {
                let given_back = std::mem::take(&mut self.line_cost);
                if given_back <= REWRITTEN_BYTES_MAX {
                    self.room += given_back;
                }
            }
            let ends = part.last() == Some(&b'\n');
            self.returned = part.last() == Some(&b'\r');
            let cost = part.len() as u64 + if ends { self.line_overhead } else { 0 };
            if cost > self.room {
                let rest = part.len() - usize::from(ends && self.line_overhead > 0);
                fitting += rest.min(usize::try_from(self.room).unwrap_or(usize::MAX));
                (self.room, self.line_cost) = (0, 0);
                break;
            }
            self.room -= cost;
            self.line_cost = if ends { 0 } else { self.line_cost + cost };
            fitting += part.len();
        }
        fitting
    }

    /// Stops reading and hands out the last, unfinished line.
    pub(super) fn close(&mut self, sink: &mut dyn OutputSink) {
        if self.pipe.take().is_some() {
            let stream = self.stream;
            let cut = self.dropped() > 0;
            self.lines
                .finish(cut, |line, more| sink.line(stream, line, more));
        }
    }

    /// Bytes that the sink was not given.
    pub(super) fn dropped(&self) -> u64 {
        self.bytes - self.passed
    }

    /// Why the file is incomplete, if it is.
    pub(super) fn take_copy_error(&mut self) -> Option<io::Error> {
        self.copy.as_mut().and_then(|copy| copy.error.take())
    }
}

impl Copy {
    /// Appends `bytes`, the last of `total` bytes. After the first failure nothing more is
    /// written: a file with a hole would look like a whole one.
    fn write(&mut self, bytes: &[u8], total: u64) {
        let Some(file) = &mut self.file else { return };
        let written = if total > self.bytes_max {
            Err(io::Error::from(io::ErrorKind::FileTooLarge))
        } else {
            file.write_all(bytes)
        };
        if let Err(error) = written {
            self.error = Some(error);
            self.file = None;
        }
    }
}
