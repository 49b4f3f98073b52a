//! Words and quotes.

use super::reader::{Reader, doubt};
use super::reading::{Doubt, Form, Part, Place, Refusal, Word};

impl Reader<'_> {
    /// Reads one word; it may be empty when a metacharacter follows at once.
    pub(super) fn word(&mut self) -> Result<Word, Doubt> {
        let mut word = Word {
            at: self.at,
            ..Word::default()
        };
        let commands = self.out.commands.len();
        while let Some(byte) = self.peek() {
            match byte {
                b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b')' => break,
                b'(' => {
                    let last = self.at.checked_sub(1).and_then(|at| self.byte(at));
                    let extended = matches!(last, Some(b'?' | b'*' | b'+' | b'@' | b'!'));
                    if !(extended && self.bash() && !word.parts.is_empty()) {
                        break;
                    }
                    self.pattern_group(&mut word)?;
                }
                b'<' | b'>' => {
                    if self.bare_angles(&mut word) {
                        continue;
                    }
                    if !(self.bash() && self.byte(self.at + 1) == Some(b'(')) {
                        break;
                    }
                    self.substitution(&mut word, 2)?;
                }
                _ => self.bare_piece(&mut word)?,
            }
        }
        self.mark_whole(&word);
        word.inner = commands..self.out.commands.len();
        Ok(word)
    }

    fn mark_whole(&mut self, word: &Word) {
        if let [Part::Slot(slot)] = *word.parts.as_slice()
            && !word.quoted
        {
            self.out.slots[slot].whole = true;
        }
    }

    /// `@(a|b)` and its like: everything up to the matching parenthesis belongs to the word.
    pub(super) fn pattern_group(&mut self, word: &mut Word) -> Result<(), Doubt> {
        let open = self.at;
        self.at += 1;
        word.push_text("(");
        self.nested(|reader| {
            loop {
                match reader.peek() {
                    None => return doubt(open, "a parenthesis is not closed"),
                    Some(b')') => break,
                    Some(b'(') => reader.pattern_group(word)?,
                    Some(b'|' | b' ' | b'<' | b'>' | b'&' | b';' | b'\t' | b'\n') => {
                        word.push_text(" ");
                        reader.at += 1;
                    }
                    Some(_) => reader.bare_piece(word)?,
                }
            }
            Ok(())
        })?;
        self.at += 1;
        word.push_text(")");
        Ok(())
    }

    /// Reads one piece outside quotes.
    pub(super) fn bare_piece(&mut self, word: &mut Word) -> Result<(), Doubt> {
        self.step()?;
        match self.peek() {
            None => Ok(()),
            Some(b'\\') => {
                self.bare_backslash(word);
                Ok(())
            }
            Some(b'\'') => self.single(word),
            Some(b'"') => self.double(word),
            Some(b'$') => self.dollar(word, false),
            Some(b'`') => self.backticks(word),
            Some(b'{') => {
                if !self.braces(word, Form::Bare) {
                    self.literal(word);
                }
                Ok(())
            }
            Some(_) => {
                self.literal(word);
                Ok(())
            }
        }
    }

    fn bare_backslash(&mut self, word: &mut Word) {
        if self.escaped(word, false) {
            return;
        }
        if self.byte(self.at + 1) == Some(b'\n') {
            self.at += 2;
            return;
        }
        let from = self.at + 1;
        let length = self
            .slice(from..self.end)
            .chars()
            .next()
            .map_or(0, char::len_utf8);
        word.push_text(self.slice(from..from + length));
        word.quoted = true;
        self.at = from + length;
    }

    /// Takes ordinary text up to the next character that may mean something.
    pub(super) fn literal(&mut self, word: &mut Word) {
        let from = self.at;
        self.at += 1;
        while self
            .peek()
            .is_some_and(|b| b.is_ascii_alphanumeric() || b >= 0x80 || b"_-./=,:".contains(&b))
        {
            self.at += 1;
        }
        // A character of several bytes is never split: all of them are taken above.
        word.push_text(self.slice(from..self.at));
    }

    /// `'…'`: nothing but the closing quote means anything to the shell.
    fn single(&mut self, word: &mut Word) -> Result<(), Doubt> {
        let open = self.at;
        word.quoted = true;
        word.push_text("");
        self.at += 1;
        loop {
            self.step()?;
            match self.peek() {
                None => return doubt(open, "a single quote is not closed"),
                Some(b'\'') => break,
                Some(b'\\') => self.single_backslash(word),
                Some(b'{') if self.braces(word, Form::Single) => {}
                Some(b'<') if self.quoted_angles(word, Form::Single, Some(open)) => {}
                Some(_) => self.literal(word),
            }
        }
        self.at += 1;
        Ok(())
    }

    /// To the shell a backslash is text here; the last of an odd number of them is our escape.
    fn single_backslash(&mut self, word: &mut Word) {
        let rest = self.slice(self.at..self.end);
        let run = rest.len() - rest.trim_start_matches('\\').len();
        let last = self.at + run - 1;
        word.push_text(self.slice(self.at..last));
        self.at = last;
        if run.is_multiple_of(2) || !self.escaped(word, true) {
            word.push_text("\\");
            self.at = last + 1;
        }
    }

    /// `"…"`.
    pub(super) fn double(&mut self, word: &mut Word) -> Result<(), Doubt> {
        let open = self.at;
        word.quoted = true;
        word.push_text("");
        self.at += 1;
        self.nested(|reader| {
            // A closing brace does not end an enclosing expansion from inside quotes.
            let outer = std::mem::replace(&mut reader.in_expansion, false);
            let result = loop {
                match reader.peek() {
                    None => break doubt(open, "a double quote is not closed"),
                    Some(b'"') => break Ok(()),
                    Some(_) => {
                        if let Err(doubt) = reader.double_piece(word, Some(open)) {
                            break Err(doubt);
                        }
                    }
                }
            };
            reader.in_expansion = outer;
            result
        })?;
        self.at += 1;
        Ok(())
    }

    /// Reads one piece inside double quotes that opened at `open`, or in a here-document.
    pub(super) fn double_piece(
        &mut self,
        word: &mut Word,
        open: Option<usize>,
    ) -> Result<(), Doubt> {
        self.step()?;
        match self.peek() {
            None => {}
            Some(b'\\') => self.double_backslash(word),
            Some(b'$') => return self.dollar(word, true),
            Some(b'`') => return self.backticks(word),
            Some(b'{') if self.braces(word, Form::Double) => {}
            Some(b'<') if self.quoted_angles(word, Form::Double, open) => {}
            Some(_) => self.literal(word),
        }
        Ok(())
    }

    fn double_backslash(&mut self, word: &mut Word) {
        if self.escaped(word, true) {
            return;
        }
        match self.byte(self.at + 1) {
            Some(b'\n') => self.at += 2,
            Some(byte @ (b'$' | b'`' | b'"' | b'\\')) => {
                word.push_text(char::from(byte).encode_utf8(&mut [0; 4]));
                self.at += 2;
            }
            _ => {
                word.push_text("\\");
                self.at += 1;
            }
        }
    }

    /// `$'…'` of bash.
    pub(super) fn ansi_c(&mut self, word: &mut Word) -> Result<(), Doubt> {
        let open = self.at;
        word.quoted = true;
        word.push_text("");
        self.at += 2;
        loop {
            self.step()?;
            match self.peek() {
                None => return doubt(open, "`$'` is not closed"),
                Some(b'\'') => break,
                Some(b'\\') if self.escaped(word, true) => {}
                Some(b'\\') => {
                    // The next character, whatever it is, does not close the quotes.
                    let from = self.at;
                    let next = self.slice(from + 1..self.end).chars().next();
                    self.at += 1 + next.map_or(0, char::len_utf8);
                    word.push_text(self.slice(from..self.at));
                }
                Some(b'{') if self.braces(word, Form::AnsiC) => {}
                Some(b'<') if self.quoted_angles(word, Form::AnsiC, Some(open + 1)) => {}
                Some(_) => self.literal(word),
            }
        }
        self.at += 1;
        Ok(())
    }

    /// `` `…` ``: read as commands unless a backslash in it is read twice.
    fn backticks(&mut self, word: &mut Word) -> Result<(), Doubt> {
        let open = self.at;
        let mut close = open + 1;
        let mut escapes = false;
        loop {
            match self.byte(close) {
                None => return doubt(open, "a backtick is not closed"),
                Some(b'`') => break,
                Some(b'\\') => {
                    escapes = true;
                    close += 2;
                }
                Some(_) => close += 1,
            }
        }
        self.at = open + 1;
        if escapes {
            self.placed(Place::Refused(Refusal::Backticks), |reader| {
                reader.scan_to(close)
            })?;
        } else {
            self.nested(|reader| {
                let in_expansion = std::mem::replace(&mut reader.in_expansion, false);
                let result = reader.within(close, Self::commands_inside);
                reader.in_expansion = in_expansion;
                result
            })?;
        }
        self.at = close + 1;
        word.quoted = true;
        word.parts
            .push(Part::Dynamic(self.slice(open..self.at).to_owned()));
        Ok(())
    }

    /// Finds the placeholders up to `end`, whatever stands around them.
    pub(super) fn scan_to(&mut self, end: usize) -> Result<(), Doubt> {
        let mut word = Word::default();
        while self.at < end.min(self.end) {
            self.step()?;
            if self.peek() == Some(b'\\') && self.escaped(&mut word, true) {
                continue;
            }
            if !(self.peek() == Some(b'{') && self.braces(&mut word, Form::Single)) {
                self.literal(&mut word);
            }
        }
        Ok(())
    }
}
