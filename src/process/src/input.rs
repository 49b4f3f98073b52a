//! What is still to be written to a command.

use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::command::Stdin;
use super::output::READ_BYTES;

/// What is still to be written to the command.
pub(super) struct Input<'a> {
    pub(super) pipe: Option<OwnedFd>,
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    /// What `stdin` holds, for this end of a pipe.
    pub(super) fn new(pipe: Option<OwnedFd>, stdin: &'a Stdin) -> Self {
        let rest: &[u8] = match stdin {
            Stdin::Null | Stdin::Pipe(_) => &[],
            Stdin::Bytes(bytes) => bytes,
        };
        Self { pipe, rest }
    }

    /// Writes as much as fits; afterwards, or when nobody reads any more, closes the pipe.
    pub(super) fn write(&mut self) {
        let Some(pipe) = &self.pipe else { return };
        let next = &self.rest[..self.rest.len().min(READ_BYTES)];
        match rustix::io::write(pipe, next) {
            Ok(length) => self.rest = &self.rest[length..],
            Err(Errno::AGAIN | Errno::INTR) => return,
            // Whether a command reads its input is its own affair.
            Err(_) => self.rest = &[],
        }
        if self.rest.is_empty() {
            self.pipe = None;
        }
    }
}
