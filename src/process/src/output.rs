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

/// One stream of one command.
pub(super) struct Output {
    stream: Stream,
    pipe: Option<OwnedFd>,
    lines: LineSplitter,
    /// Bytes read so far.
    pub(super) bytes: u64,
    passed: u64,
    passed_max: u64,
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
            passed_max: limits.output_bytes_max,
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
        let room = usize::try_from(self.passed_max - self.passed).unwrap_or(usize::MAX);
        let passed = &bytes[..bytes.len().min(room)];
        self.passed += passed.len() as u64;
        let stream = self.stream;
        self.lines
            .push(passed, |line, more| sink.line(stream, line, more));
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
