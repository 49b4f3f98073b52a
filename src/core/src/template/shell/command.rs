//! Lists, pipelines and simple commands.

use super::reader::{Reader, doubt};
use super::reading::{Command, Doubt, Part, Place, Refusal, Word};
use std::ops::Range;

/// Longest subscript of an assignment, in bytes.
const SUBSCRIPT_BYTES_MAX: usize = 1024;
/// Most simple commands in one text.
const COMMANDS_MAX: usize = 10_000;

/// What ends a list of commands. The end itself is not taken.
#[derive(Clone, Copy)]
pub(super) enum Until {
    /// The end of what is being read.
    End,
    /// `)`.
    Parenthesis,
    /// One of these words in the place of a command.
    Keyword(&'static [&'static str]),
    /// `;;`, `;&`, `;;&` or `esac`.
    Clause,
}

impl Reader<'_> {
    pub(super) fn program(&mut self) -> Result<(), Doubt> {
        self.list(Until::End, 0)?;
        self.settled()
    }

    /// Reads the commands of a substitution that is bounded by [`Reader::within`].
    pub(super) fn commands_inside(&mut self) -> Result<(), Doubt> {
        self.substituted(|reader| reader.list(Until::End, reader.start))
    }

    /// Reads commands and the parenthesis that closes them; `open` is where they began.
    pub(super) fn commands_in_parentheses(&mut self, open: usize) -> Result<(), Doubt> {
        self.substituted(|reader| reader.list(Until::Parenthesis, open))?;
        self.at += 1;
        Ok(())
    }

    fn substituted(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<(), Doubt>,
    ) -> Result<(), Doubt> {
        let pending = std::mem::take(&mut self.pending);
        let enclosed = self.enclosed_pending;
        self.enclosed_pending |= !pending.is_empty();
        let result = self.placed(Place::Argument, |reader| {
            read(reader)?;
            reader.settled()
        });
        self.pending = pending;
        self.enclosed_pending = enclosed;
        result
    }

    /// No here-document may be left without its body.
    fn settled(&self) -> Result<(), Doubt> {
        match self.pending.first() {
            Some(pending) => doubt(pending.at, "a here-document has no body"),
            None => Ok(()),
        }
    }

    /// Reads commands up to what `until` says; `open` is the place to name if it never comes.
    pub(super) fn list(&mut self, until: Until, open: usize) -> Result<(), Doubt> {
        loop {
            self.separators(until)?;
            let here = self.at;
            match (self.peek(), until) {
                (None, Until::End)
                | (Some(b')'), Until::Parenthesis)
                | (Some(b';'), Until::Clause) => return Ok(()),
                (None, _) => return doubt(open, "a command is not closed"),
                (Some(b')' | b';' | b'|'), _) => {
                    return doubt(here, "the shell's grammar has no place for this");
                }
                (Some(_), Until::Keyword(words)) if words.contains(&self.keyword()) => {
                    return Ok(());
                }
                (Some(_), Until::Clause) if self.keyword() == "esac" => return Ok(()),
                (Some(_), _) => self.pipeline()?,
            }
        }
    }

    /// Passes over blanks, line ends, comments and the marks between commands.
    pub(super) fn separators(&mut self, until: Until) -> Result<(), Doubt> {
        loop {
            self.step()?;
            self.blanks();
            match self.peek() {
                Some(b'\n') => self.line_end()?,
                Some(b'#') => self.comment(),
                Some(b';') if matches!(self.byte(self.at + 1), Some(b';' | b'&')) => {
                    let clause = matches!(until, Until::Clause);
                    return if clause {
                        Ok(())
                    } else {
                        doubt(self.at, "`;;` outside `case`")
                    };
                }
                Some(b'&') if self.byte(self.at + 1) == Some(b'>') => return Ok(()),
                Some(b';' | b'&') => self.at += 1,
                Some(b'|') if self.byte(self.at + 1) == Some(b'|') => self.at += 2,
                _ => return Ok(()),
            }
        }
    }

    /// Passes over blanks and joined lines.
    pub(super) fn blanks(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\\') if self.byte(self.at + 1) == Some(b'\n') => self.at += 2,
                _ => return,
            }
        }
    }

    pub(super) fn comment(&mut self) {
        while self.peek().is_some_and(|b| b != b'\n') {
            self.at += 1;
        }
    }

    /// Takes the end of a line and the here-documents that wait for it.
    pub(super) fn line_end(&mut self) -> Result<(), Doubt> {
        if self.enclosed_pending {
            return doubt(
                self.at,
                "a here-document begins inside a substitution that follows",
            );
        }
        self.at += 1;
        if self.pending.is_empty() {
            Ok(())
        } else {
            self.bodies()
        }
    }

    /// Passes over blanks, comments and line ends.
    pub(super) fn blank_lines(&mut self) -> Result<(), Doubt> {
        loop {
            self.step()?;
            self.blanks();
            match self.peek() {
                Some(b'\n') => self.line_end()?,
                Some(b'#') => self.comment(),
                _ => return Ok(()),
            }
        }
    }

    /// The unquoted word at the current position, if it may be a reserved one.
    pub(super) fn keyword(&self) -> &'static str {
        const WORDS: [&str; 21] = [
            "if", "then", "elif", "else", "fi", "do", "done", "while", "until", "for", "select",
            "case", "esac", "in", "{", "}", "!", "[[", "function", "time", "coproc",
        ];
        let ends = |at: usize| self.byte(at).is_none_or(|b| b" \t\n;&|()<>".contains(&b));
        let fits = |word: &&&str| self.looking_at(word) && ends(self.at + word.len());
        let found = WORDS.iter().find(fits).copied().unwrap_or_default();
        let bash_only = matches!(found, "[[" | "function" | "select" | "time" | "coproc");
        if bash_only && !self.bash() { "" } else { found }
    }

    fn pipeline(&mut self) -> Result<(), Doubt> {
        while matches!(self.keyword(), "!" | "time") {
            self.at += self.keyword().len();
            self.blanks();
            if self.looking_at("-p ") {
                self.at += 3;
                self.blanks();
            }
        }
        let mut left: Option<Range<usize>> = None;
        loop {
            self.step()?;
            let range = self.command()?;
            if let Some(left) = &mut left {
                self.out.pipes.push((left.clone(), range.clone()));
                left.end = range.end;
            } else {
                left = Some(range);
            }
            self.blanks();
            if self.peek() != Some(b'|') || self.byte(self.at + 1) == Some(b'|') {
                return Ok(());
            }
            self.at += if self.byte(self.at + 1) == Some(b'&') {
                2
            } else {
                1
            };
            self.blank_lines()?;
        }
    }

    /// Reads one command and says which entries of the reading are its own.
    pub(super) fn command(&mut self) -> Result<Range<usize>, Doubt> {
        if self.peek() == Some(b'(') || !self.keyword().is_empty() {
            self.nested(Self::compound)
        } else {
            self.nested(Self::simple)
        }
    }

    fn simple(&mut self) -> Result<Range<usize>, Doubt> {
        let index = self.out.commands.len();
        if index >= COMMANDS_MAX {
            return doubt(self.at, "the text has more than 10000 commands");
        }
        if !self.bash() && self.begins_bash_only() {
            return self.only_in_bash("`[[`, `function`, `select` and `coproc` are bash");
        }
        let own = index..index + 1;
        self.out.commands.push(Command::default());
        let mut words: Vec<Word> = Vec::new();
        let mut begun = self.at;
        let start = self.at;
        loop {
            self.step()?;
            self.blanks();
            let adjacent = self.at == begun;
            match self.peek() {
                Some(b'&') if self.byte(self.at + 1) == Some(b'>') => {
                    if !self.bash() {
                        return self.only_in_bash("`&>` is not a redirection in every `sh`");
                    }
                    self.redirection(&own)?;
                }
                None | Some(b'\n' | b';' | b'|' | b')' | b'&') => break,
                Some(b'#') => {
                    self.comment();
                    break;
                }
                Some(b'(') => {
                    if self.array_follows(&words, adjacent) {
                        let array = words.last().map(Word::lead).unwrap_or_default().to_owned();
                        self.array(&array)?;
                    } else if let [name] = words.as_slice() {
                        return self.function(&name.clone(), start, index);
                    } else if words.is_empty() && !self.bash() {
                        return self.only_in_bash("`name=(…)` is an array of bash");
                    } else {
                        return doubt(self.at, "a parenthesis is among words");
                    }
                }
                Some(_) if self.redirects() => self.redirection(&own)?,
                Some(_) if words.is_empty() && self.assignment()? => {}
                Some(_) => {
                    words.push(self.word()?);
                    begun = self.at;
                }
            }
        }
        self.out.commands[index].words = words;
        Ok(own)
    }

    /// Whether a reserved word of bash stands here.
    fn begins_bash_only(&self) -> bool {
        ["[[ ", "function ", "select ", "coproc "]
            .iter()
            .any(|word| self.looking_at(word))
    }

    /// Whether `name=(` stands here: the last word ended just before the parenthesis.
    fn array_follows(&self, words: &[Word], adjacent: bool) -> bool {
        let named = |w: &Word| w.fixed().is_some_and(|text| text.ends_with('=')) && !w.quoted;
        self.bash() && adjacent && words.last().is_some_and(named)
    }

    fn function(&mut self, name: &Word, start: usize, index: usize) -> Result<Range<usize>, Doubt> {
        for slot in name.slots() {
            self.out.slots[slot].place = Place::Refused(Refusal::VariableName);
        }
        self.at += 1;
        self.blanks();
        if self.peek() != Some(b')') {
            return doubt(start, "a parenthesis follows a word");
        }
        self.at += 1;
        self.blank_lines()?;
        self.command()?;
        Ok(index..self.out.commands.len())
    }

    /// Takes a leading `NAME=value`; false if there is none.
    fn assignment(&mut self) -> Result<bool, Doubt> {
        let from = self.at;
        let mut at = from;
        if !self
            .byte(at)
            .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        {
            return Ok(false);
        }
        while self
            .byte(at)
            .is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_')
        {
            at += 1;
        }
        let name = self.slice(from..at).to_owned();
        let subscript = self.byte(at) == Some(b'[') && self.bash();
        let mut behind = at;
        if subscript {
            let rest = self.slice(at..self.end.min(at + SUBSCRIPT_BYTES_MAX));
            let Some(close) = rest
                .find([']', '\n'])
                .filter(|i| rest.as_bytes()[*i] == b']')
            else {
                return Ok(false);
            };
            behind = at + close + 1;
        }
        let plus = usize::from(self.byte(behind) == Some(b'+') && self.bash());
        if self.byte(behind + plus) != Some(b'=') {
            return Ok(false);
        }
        if subscript {
            self.at = at;
            self.subscript()?;
            if self.at != behind {
                return doubt(from, "the subscript cannot be read");
            }
        }
        self.at = behind + plus + 1;
        self.assigns(&name, from..at);
        if self.peek() == Some(b'(') && self.bash() {
            self.array(&name)?;
        } else {
            self.placed(Place::Assignment(name), Self::word)?;
        }
        Ok(true)
    }

    /// Reads `(…)` behind `name=`.
    fn array(&mut self, name: &str) -> Result<(), Doubt> {
        let open = self.at;
        self.at += 1;
        let sensitive = super::tools::steers_programs(name.trim_end_matches(['=', '+']));
        let place = if sensitive {
            Place::Assignment(name.to_owned())
        } else {
            Place::ArrayElement
        };
        self.placed(place, |reader| {
            loop {
                reader.blank_lines()?;
                match reader.peek() {
                    None => return doubt(open, "an array is not closed"),
                    Some(b')') => break,
                    Some(b'(' | b';' | b'&' | b'|' | b'<' | b'>') => {
                        return doubt(open, "an array holds more than words");
                    }
                    Some(b'[') => {
                        // `[i]=v`: bash computes the subscript, and runs what it finds in it.
                        let place = Place::Refused(Refusal::Subscript);
                        reader.placed(place, Self::word)?;
                    }
                    Some(_) => {
                        reader.word()?;
                    }
                }
            }
            Ok(())
        })?;
        self.at += 1;
        Ok(())
    }

    /// Whether a redirection begins here.
    pub(super) fn redirects(&self) -> bool {
        let mut at = self.at;
        if self.bash() && self.byte(at) == Some(b'{') {
            let from = at + 1;
            at = from;
            while self
                .byte(at)
                .is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_')
            {
                at += 1;
            }
            let known = crate::template::token::braces(self.text, self.at, self.names)
                .is_some_and(|t| matches!(t.what, crate::template::token::What::Known(_)));
            if at == from || known || self.byte(at) != Some(b'}') {
                return false;
            }
            at += 1;
            return matches!(self.byte(at), Some(b'<' | b'>'));
        }
        while self.byte(at).is_some_and(|b| b.is_ascii_digit()) {
            at += 1;
        }
        match self.byte(at) {
            Some(b'>' | b'<') => {
                let angle = crate::template::token::angles(self.text, at, self.names)
                    .is_some_and(|t| t.range.end <= self.end);
                let process = at == self.at && self.bash() && self.byte(at + 1) == Some(b'(');
                !angle && !process
            }
            _ => false,
        }
    }

    /// The word that a place is given, with its placeholders.
    pub(super) fn placed_word(&mut self, place: Place) -> Result<Word, Doubt> {
        let from = self.at;
        let word = self.placed(place, Self::word)?;
        if self.at == from {
            return doubt(from, "a word is missing");
        }
        Ok(word)
    }
}

/// The text of a word with the expansions of the shell left out.
pub(super) fn plain(word: &Word) -> String {
    let text = |part: &Part| match part {
        Part::Text(text) => Some(text.clone()),
        Part::Slot(_) | Part::Dynamic(_) => None,
    };
    word.parts.iter().filter_map(text).collect()
}
