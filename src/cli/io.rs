//! Where a command writes: two streams that know whether a person reads them.

use std::io::{self, Read, Write};
use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::render::line::Line;

/// One stream of output. The first failure is kept; what is written after it goes nowhere.
pub(crate) struct Stream<'a> {
    writer: &'a mut dyn Write,
    /// What lies below, where it is known.
    descriptor: Option<BorrowedFd<'a>>,
    /// Whether a terminal shows it.
    pub(crate) is_terminal: bool,
    /// Whether colours are wanted.
    pub(crate) color: bool,
    /// Columns that texts for people are broken at, where a terminal shows them.
    columns: Option<usize>,
    failure: Option<io::Error>,
}

impl<'a> Stream<'a> {
    /// A stream that nothing has been written to.
    pub(crate) fn new(writer: &'a mut dyn Write, is_terminal: bool, color: bool) -> Stream<'a> {
        Stream {
            writer,
            descriptor: None,
            is_terminal,
            color,
            columns: None,
            failure: None,
        }
    }

    /// The same stream, known to end in a descriptor.
    pub(crate) fn on(self, descriptor: BorrowedFd<'a>) -> Stream<'a> {
        Stream {
            descriptor: Some(descriptor),
            ..self
        }
    }

    /// The same stream on a terminal that is so wide.
    pub(crate) fn of_width(self, width: usize) -> Stream<'a> {
        Stream {
            columns: self.is_terminal.then_some(width),
            ..self
        }
    }

    /// The same stream for a part of its life.
    pub(crate) fn reborrow(&mut self) -> Stream<'_> {
        Stream {
            descriptor: self.descriptor,
            columns: self.columns,
            ..Stream::new(&mut *self.writer, self.is_terminal, self.color)
        }
    }

    /// Writes one line; control characters in it are escaped.
    pub(crate) fn line(&mut self, line: impl Into<Line>) {
        let mut text = line.into().paint(self.color);
        text.push('\n');
        self.raw(&text);
    }

    /// Writes a line with text of a run. If the terminal is too narrow, continuation lines begin with a sign, so that they
    /// cannot look like lines of ours.
    pub(crate) fn folded(&mut self, line: impl Into<Line>) {
        for line in line.into().folded(self.columns.unwrap_or(usize::MAX)) {
            self.line(line);
        }
    }

    /// Writes text for people: what a terminal is too narrow for goes on in the next line, indented.
    pub(crate) fn prose(&mut self, line: Line, indent: usize) {
        for line in line.wrapped(self.columns.unwrap_or(usize::MAX), indent) {
            self.line(line);
        }
    }

    /// Writes text as it is: for what was escaped before, and for data that another program reads.
    pub(crate) fn raw(&mut self, text: &str) {
        if self.failure.is_none()
            && let Err(error) = self.writer.write_all(text.as_bytes())
        {
            self.failure = Some(error);
        }
    }

    /// Hands on what is buffered.
    pub(crate) fn flush(&mut self) {
        if self.failure.is_none()
            && let Err(error) = self.writer.flush()
        {
            self.failure = Some(error);
        }
    }

    /// Whether writing on is pointless, such as after `| head`.
    pub(crate) fn is_closed(&self) -> bool {
        self.failure.is_some()
    }

    /// Whether its reader has left, as far as that can be told without writing anything.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.descriptor.is_some_and(|descriptor| {
            let mut asked = [PollFd::from_borrowed_fd(descriptor, PollFlags::empty())];
            let gone = PollFlags::ERR | PollFlags::HUP;
            poll(&mut asked, Some(&Timespec::default())).is_ok()
                && asked.iter().any(|one| one.revents().intersects(gone))
        })
    }

    /// The failure, unless the reader merely went away.
    pub(crate) fn failure(&self) -> Option<&io::Error> {
        self.failure
            .as_ref()
            .filter(|error| error.kind() != io::ErrorKind::BrokenPipe)
    }
}

/// All that a command reads from and writes to.
pub(crate) struct Io<'a> {
    /// Data.
    pub(crate) out: Stream<'a>,
    /// Everything else.
    pub(crate) err: Stream<'a>,
    /// Standard input, for `-`.
    pub(crate) input: &'a mut dyn Read,
    /// Whether a person can be asked: standard input and standard error are terminals.
    pub(crate) can_ask: bool,
    /// Columns of the terminal.
    pub(crate) width: usize,
}

/// Longest answer that is read.
const ANSWER_BYTES_MAX: usize = 200;

impl Io<'_> {
    /// Columns that a table on standard output may take; `None` where no terminal shows it.
    pub(crate) fn table_width(&self) -> Option<usize> {
        self.out.is_terminal.then_some(self.width)
    }

    /// Returns true if a terminal shows what the command writes.
    pub(crate) fn has_terminal(&self) -> bool {
        self.out.is_terminal || self.err.is_terminal
    }

    /// Asks a person for one line; blank where there is none.
    pub(crate) fn ask(&mut self, question: &str) -> String {
        self.err.raw(&format!("{question} "));
        self.err.flush();
        let (mut line, mut byte) = (Vec::new(), [0]);
        // Byte by byte: what stands behind the line is for whoever asks next.
        while line.len() < ANSWER_BYTES_MAX
            && self.input.read(&mut byte).is_ok_and(|count| count == 1)
            && byte != *b"\n"
        {
            line.push(byte[0]);
        }
        String::from_utf8_lossy(&line).trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_reader_that_has_left_is_noticed_without_a_word() {
        let (reader, mut writer) = io::pipe().unwrap();
        let descriptor = writer.as_fd().try_clone_to_owned().unwrap();
        let mut stream = Stream::new(&mut writer, false, false).on(descriptor.as_fd());
        assert!(!stream.reborrow().is_abandoned());
        drop(reader);
        assert!(stream.reborrow().is_abandoned());
        assert!(!stream.is_closed());
        let mut nowhere = Vec::new();
        assert!(!Stream::new(&mut nowhere, false, false).is_abandoned());
    }
}
