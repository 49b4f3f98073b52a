//! Redirections and here-documents.

use super::reader::{Pending, Reader, doubt};
use super::reading::{Doubt, Place, Refusal, Word};
use std::ops::Range;

/// The operators, each before any that it begins with.
const MARKS: [&str; 12] = [
    "<<<", "<<-", "&>>", "<<", "<>", "<&", ">>", ">|", ">&", "&>", "<", ">",
];

impl Reader<'_> {
    /// Reads one redirection of the commands `into`.
    pub(super) fn redirection(&mut self, into: &Range<usize>) -> Result<(), Doubt> {
        let from = self.at;
        if self.peek() == Some(b'{') {
            while self.peek().is_some_and(|b| b != b'}') {
                self.at += 1;
            }
            self.at += 1;
        }
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        let Some(mark) = MARKS.iter().find(|mark| self.looking_at(mark)) else {
            return doubt(from, "a redirection cannot be read");
        };
        self.at += mark.len();
        match *mark {
            "<<<" => {
                if !self.bash() {
                    self.at = from;
                    return self.only_in_bash("`<<<` is not read by every `sh`");
                }
                self.blanks();
                let word = self.placed_word(Place::HereString)?;
                self.feeds(&word, into.clone());
                Ok(())
            }
            "<<" | "<<-" => self.here_document(from, *mark == "<<-", into),
            "<&" | ">&" => {
                self.blanks();
                self.placed_word(Place::Refused(Refusal::Descriptor))
                    .map(drop)
            }
            _ => {
                if self.peek() == Some(b'(') && !self.bash() {
                    return self.only_in_bash("`<(…)` is not read by every `sh`");
                }
                self.blanks();
                let word = self.placed_word(Place::Redirect)?;
                if word.is_process() && !word.inner.is_empty() {
                    self.out.pipes.push((word.inner, into.clone()));
                }
                Ok(())
            }
        }
    }

    fn here_document(&mut self, at: usize, tabs: bool, into: &Range<usize>) -> Result<(), Doubt> {
        self.blanks();
        let slots = self.out.slots.len();
        let from = self.at;
        let word = self.placed(Place::Refused(Refusal::Delimiter), |reader| {
            reader.delimiter()
        })?;
        if self.at == from {
            return doubt(at, "a here-document has no delimiter");
        }
        if self.out.slots.len() > slots {
            return doubt(self.at, "the delimiter of a here-document is a placeholder");
        }
        let delimiter = super::command::plain(&word);
        self.pending.push(Pending {
            at,
            delimiter,
            quoted: word.quoted,
            tabs,
            into: into.clone(),
        });
        Ok(())
    }

    /// Reads the word behind `<<`: quotes are removed and nothing is expanded.
    fn delimiter(&mut self) -> Result<Word, Doubt> {
        let mut word = Word::default();
        while let Some(byte) = self.peek() {
            match byte {
                b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>' => break,
                b'$' | b'`' => {
                    return doubt(self.at, "the delimiter of a here-document has an expansion");
                }
                _ => self.bare_piece(&mut word)?,
            }
        }
        Ok(word)
    }

    /// Reads the bodies that begin on the line at the current position.
    pub(super) fn bodies(&mut self) -> Result<(), Doubt> {
        for pending in std::mem::take(&mut self.pending) {
            let Some((end, next)) = self.body_end(&pending) else {
                return doubt(pending.at, "a here-document is not closed");
            };
            if pending.quoted {
                let place = Place::Refused(Refusal::QuotedHereDoc);
                self.placed(place, |reader| reader.scan_to(end))?;
            } else {
                let mut word = Word::default();
                let commands = self.out.commands.len();
                self.nested(|reader| {
                    reader.within(end, |reader| {
                        reader.placed(Place::HereDoc, |reader| {
                            while reader.peek().is_some() {
                                reader.double_piece(&mut word, None)?;
                            }
                            Ok(())
                        })
                    })
                })?;
                word.inner = commands..self.out.commands.len();
                self.feeds(&word, pending.into.clone());
            }
            self.at = next;
        }
        Ok(())
    }

    /// Where the body ends, and where the line behind its delimiter begins.
    fn body_end(&mut self, pending: &Pending) -> Option<(usize, usize)> {
        let mut line = self.at;
        let mut joined = false;
        while line < self.end {
            let rest = self.slice(line..self.end);
            let length = rest.find('\n').unwrap_or(rest.len());
            let text = &rest[..length];
            let bare = if pending.tabs {
                text.trim_start_matches('\t')
            } else {
                text
            };
            if bare == pending.delimiter && !joined {
                return Some((line, (line + length + 1).min(self.end)));
            }
            let backslashes = text.len() - text.trim_end_matches('\\').len();
            joined = !pending.quoted && backslashes % 2 == 1;
            line += length + 1;
        }
        None
    }
}
