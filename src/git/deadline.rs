//! An end to steps that could take long, looked at between files and objects.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, BorrowedFd};

use super::error::GitError;

/// Says whether there is time for the next file or object.
///
/// What is under way is always finished, so a step that ran out of time has ended when it says so
/// and leaves nothing half done. One look of the git library at the whole work tree counts as one
/// piece.
#[derive(Clone, Copy)]
pub struct Deadline<'a> {
    is_over: Option<&'a dyn Fn() -> bool>,
}

impl<'a> Deadline<'a> {
    /// All the time that it takes.
    pub const NONE: Deadline<'static> = Deadline { is_over: None };

    /// Until `is_over` says so; it is asked often, from the calling thread.
    pub fn when(is_over: &'a dyn Fn() -> bool) -> Self {
        Self {
            is_over: Some(is_over),
        }
    }

    /// [`GitError::OutOfTime`] once the time is up.
    pub(super) fn check(self) -> Result<(), GitError> {
        match self.is_over {
            Some(is_over) if is_over() => Err(GitError::OutOfTime),
            Some(_) | None => Ok(()),
        }
    }

    /// The failure of a step, which is that of its time where that is up.
    pub(super) fn explain<T>(self, result: Result<T, GitError>) -> Result<T, GitError> {
        match result {
            Ok(value) => Ok(value),
            Err(error) => self.check().and(Err(error)),
        }
    }
}

/// A file whose reading ends with an error once the time is up.
pub(super) struct Paced<'a> {
    file: File,
    deadline: Deadline<'a>,
}

impl<'a> Paced<'a> {
    pub(super) fn new(file: File, deadline: Deadline<'a>) -> Self {
        Self { file, deadline }
    }
}

impl Read for Paced<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let in_time = self.deadline.check();
        in_time.map_err(|error| io::Error::new(io::ErrorKind::TimedOut, error))?;
        self.file.read(buffer)
    }
}

impl Seek for Paced<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

impl AsFd for Paced<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
