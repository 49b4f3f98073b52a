//! Finds places in a log without reading what lies before them: each record carries its number.

use super::super::{FileError, LineRead, read_line};
use super::{LogReader, Wants, shown};
use crate::thread::line::{RECORD_BYTES_MAX, number_of};
use std::collections::VecDeque;

/// What is read through rather than searched, in bytes.
const NEAR_BYTES: u64 = 256 * 1024;

/// What is looked through at once from the end on, in bytes.
const BLOCK_BYTES: u64 = 4 * 1024 * 1024;

/// How much of its end is looked through for the last lines that are wanted, in bytes.
const TAIL_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// Where a line begins: its number, and its place in bytes.
#[derive(Clone, Copy)]
struct Mark {
    line: u64,
    offset: u64,
}

impl LogReader {
    /// Passes over all whole lines, most of them unread; the number of the next line is then how many there are.
    pub fn skip_to_end(&mut self) -> Result<(), FileError> {
        let size = self.size()?;
        for window in [NEAR_BYTES, NEAR_BYTES + RECORD_BYTES_MAX as u64] {
            let begin = size.saturating_sub(window);
            if begin <= self.offset || self.land(begin, size)? {
                break;
            }
        }
        self.pass(u64::MAX)
    }

    /// Goes to the first of the last `count` lines that are wanted.
    pub fn skip_to_last(&mut self, count: usize, wants: Wants<'_>) -> Result<(), FileError> {
        self.skip_to_end()?;
        let (mut first, mut found) = (self.mark(), 0);
        let (mut end, mut block) = (self.offset, BLOCK_BYTES);
        let floor = end.saturating_sub(TAIL_BYTES_MAX);
        while found < count && end > floor {
            let begin = end.saturating_sub(block).max(floor);
            self.go_to(Mark { line: 0, offset: 0 })?;
            if begin > 0 && !self.land(begin, end)? {
                if begin == floor {
                    break;
                }
                // One line takes the whole block.
                block *= 2;
                continue;
            }
            let at = self.offset;
            let marks = self.wanted_before(end, count - found, wants)?;
            found += marks.len();
            first = marks.front().copied().unwrap_or(first);
            (end, block) = (at, BLOCK_BYTES);
        }
        self.go_to(first)
    }

    /// Where the last `count` wanted lines before `end` begin.
    fn wanted_before(
        &mut self,
        end: u64,
        count: usize,
        wants: Wants<'_>,
    ) -> Result<VecDeque<Mark>, FileError> {
        let (mut marks, mut buffer) = (VecDeque::new(), Vec::new());
        while self.offset < end {
            let mark = self.mark();
            let Some(readable) = self.step(&mut buffer)? else {
                break;
            };
            let line = shown(&buffer, mark.line, readable);
            self.passed(line.line);
            if wants(&line) {
                marks.push_back(mark);
            }
            if marks.len() > count {
                marks.pop_front();
            }
        }
        Ok(marks)
    }

    /// Comes near a line that lies further on, by halves. A damaged log is searched as far as its numbers grow.
    pub(super) fn approach(&mut self, line: u64) -> Result<(), FileError> {
        if self.line >= line {
            return Ok(());
        }
        let (mut low, mut high) = (self.mark(), self.size()?);
        let mut searched = low.offset;
        while low.line < line && high.saturating_sub(searched) > NEAR_BYTES {
            let middle = searched + (high - searched) / 2;
            if self.land(middle, high)? && (low.line..=line).contains(&self.line) {
                low = self.mark();
                searched = low.offset;
            } else {
                high = middle;
            }
        }
        self.go_to(low)
    }

    /// Goes to the first readable record that begins behind `offset` and before `until`; `false`: there is none, and nothing
    /// has moved.
    fn land(&mut self, offset: u64, until: u64) -> Result<bool, FileError> {
        let before = self.mark();
        let mut at = Mark { line: 0, offset };
        self.go_to(at)?;
        let mut buffer = Vec::new();
        // What begins before it is passed over, whole or not.
        let mut is_whole = false;
        loop {
            let (read, taken) = self.next_line(&mut buffer)?;
            let number = (is_whole && read == LineRead::Whole).then(|| number_of(&buffer));
            if let Some(line) = number.flatten() {
                at.line = line;
                self.go_to(at)?;
                return Ok(true);
            }
            if matches!(read, LineRead::End | LineRead::Torn) {
                self.go_to(before)?;
                return Ok(false);
            }
            at.offset += taken;
            is_whole = true;
            if at.offset >= until {
                self.go_to(before)?;
                return Ok(false);
            }
        }
    }

    fn next_line(&mut self, buffer: &mut Vec<u8>) -> Result<(LineRead, u64), FileError> {
        let failed = |source| FileError::io("read", &self.path, source);
        read_line(&mut self.reader, buffer).map_err(failed)
    }

    fn size(&self) -> Result<u64, FileError> {
        let failed = |source| FileError::io("look at", &self.path, source);
        let found = self.reader.get_ref().metadata().map_err(failed)?;
        Ok(found.len())
    }

    fn mark(&self) -> Mark {
        Mark {
            line: self.line,
            offset: self.offset,
        }
    }

    fn go_to(&mut self, mark: Mark) -> Result<(), FileError> {
        self.go(mark.line, mark.offset)
    }
}
