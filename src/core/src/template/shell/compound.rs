//! Compound commands.

use super::command::Until;
use super::reader::{Reader, doubt};
use super::reading::{Doubt, Form, Place, Refusal, Word};
use std::ops::Range;

impl Reader<'_> {
    /// Reads a compound command and its redirections.
    pub(super) fn compound(&mut self) -> Result<Range<usize>, Doubt> {
        let from = self.at;
        let index = self.out.commands.len();
        let keyword = self.keyword();
        self.at += keyword.len();
        match keyword {
            "" => self.parenthesised(from)?,
            "{" => {
                self.list(Until::Keyword(&["}"]), from)?;
                self.at += 1;
            }
            "if" => self.conditional_lists(from)?,
            "while" | "until" => {
                self.list(Until::Keyword(&["do"]), from)?;
                self.body(from)?;
            }
            "for" | "select" => self.loop_over(from)?,
            "case" => self.case(from)?,
            "[[" => self.condition(from)?,
            "function" => {
                self.blanks();
                self.placed_word(Place::Refused(Refusal::VariableName))?;
                self.blanks();
                if self.looking_at("()") {
                    self.at += 2;
                }
                self.blank_lines()?;
                self.command()?;
            }
            _ => return doubt(from, "a reserved word is in the place of a command"),
        }
        let range = index..self.out.commands.len();
        loop {
            self.blanks();
            let ampersand = self.bash() && self.looking_at("&>");
            if !(ampersand || self.redirects()) {
                return Ok(range);
            }
            self.redirection(&range)?;
        }
    }

    fn parenthesised(&mut self, from: usize) -> Result<(), Doubt> {
        if self.byte(from + 1) == Some(b'(') {
            if !self.bash() {
                return self.only_in_bash("`((` is not arithmetic in every `sh`");
            }
            if self.arithmetic_or_not(from)? {
                return Ok(());
            }
        }
        self.at = from + 1;
        self.list(Until::Parenthesis, from)?;
        self.at += 1;
        Ok(())
    }

    fn conditional_lists(&mut self, from: usize) -> Result<(), Doubt> {
        self.list(Until::Keyword(&["then"]), from)?;
        loop {
            self.at += self.keyword().len();
            self.list(Until::Keyword(&["elif", "else", "fi", "then"]), from)?;
            if self.keyword() == "fi" {
                self.at += 2;
                return Ok(());
            }
        }
    }

    /// Reads `do … done`.
    fn body(&mut self, from: usize) -> Result<(), Doubt> {
        if self.keyword() != "do" {
            return doubt(self.at, "`do` is missing");
        }
        self.at += 2;
        self.list(Until::Keyword(&["done"]), from)?;
        self.at += 4;
        Ok(())
    }

    fn loop_over(&mut self, from: usize) -> Result<(), Doubt> {
        self.blanks();
        if self.looking_at("((") {
            let open = self.at;
            if !(self.bash() && self.arithmetic_or_not(open)?) {
                return doubt(open, "`((` cannot be read here");
            }
        } else {
            let name_at = self.at;
            let name = self.placed_word(Place::Refused(Refusal::VariableName))?;
            if let Some(name) = name.fixed() {
                let name = name.to_owned();
                self.assigns(&name, name_at..self.at);
            }
            self.blank_lines()?;
            if self.keyword() == "in" {
                self.at += 2;
                self.placed(Place::LoopWord, Self::loop_words)?;
            }
        }
        self.separators(Until::End)?;
        self.body(from)
    }

    fn loop_words(&mut self) -> Result<(), Doubt> {
        loop {
            self.blanks();
            match self.peek() {
                None | Some(b'\n' | b';' | b'#') => return Ok(()),
                Some(b'&' | b'|' | b'(' | b')') => {
                    return doubt(self.at, "a loop is given more than words");
                }
                Some(_) => {
                    let from = self.at;
                    self.word()?;
                    if self.at == from {
                        return doubt(from, "a loop is given more than words");
                    }
                }
            }
        }
    }

    fn case(&mut self, from: usize) -> Result<(), Doubt> {
        self.blanks();
        self.placed_word(Place::CaseSubject)?;
        self.blank_lines()?;
        if self.keyword() != "in" {
            return doubt(self.at, "`in` is missing");
        }
        self.at += 2;
        loop {
            self.blank_lines()?;
            if self.keyword() == "esac" {
                self.at += 4;
                return Ok(());
            }
            self.placed(Place::CasePattern, |reader| reader.patterns(from))?;
            self.list(Until::Clause, from)?;
            if self.keyword() != "esac" {
                self.at += if self.looking_at(";;&") { 3 } else { 2 };
            }
        }
    }

    /// Reads `[(] pattern [| pattern]… )`.
    fn patterns(&mut self, from: usize) -> Result<(), Doubt> {
        if self.peek() == Some(b'(') {
            self.at += 1;
        }
        loop {
            self.blanks();
            let begun = self.at;
            self.word()?;
            if self.at == begun {
                return doubt(begun, "a pattern is missing");
            }
            self.blanks();
            match self.peek() {
                Some(b'|') => self.at += 1,
                Some(b')') => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return doubt(from, "the patterns of `case` cannot be read"),
            }
        }
    }

    /// Reads `[[ … ]]`.
    fn condition(&mut self, from: usize) -> Result<(), Doubt> {
        let mut words: Vec<Word> = Vec::new();
        self.placed(Place::Condition, |reader| {
            loop {
                reader.step()?;
                reader.blanks();
                let last = words
                    .last()
                    .and_then(Word::fixed)
                    .unwrap_or_default()
                    .to_owned();
                match reader.peek() {
                    None => return doubt(from, "`[[` is not closed"),
                    Some(b'\n') => reader.line_end()?,
                    Some(_) if matches!(last.as_str(), "=~" | "==" | "=" | "!=") => {
                        words.push(reader.pattern_word()?);
                    }
                    Some(b'<') if reader.bare_angles(&mut Word::default()) => {}
                    Some(b'(' | b')' | b'&' | b'|' | b'<' | b'>' | b';') => {
                        reader.at += 1;
                        words.push(Word::default());
                    }
                    Some(_) => words.push(reader.word()?),
                }
                let closing = words
                    .last()
                    .is_some_and(|w| w.fixed() == Some("]]") && !w.quoted);
                if closing {
                    return Ok(());
                }
            }
        })?;
        self.condition_places(&words);
        Ok(())
    }

    /// The right side of a comparison in `[[ ]]`: parentheses and bars belong to it.
    fn pattern_word(&mut self) -> Result<Word, Doubt> {
        let from = self.at;
        let mut word = Word::default();
        while let Some(byte) = self.peek() {
            match byte {
                b' ' | b'\t' | b'\n' | b')' | b'&' | b';' => break,
                b'(' => self.pattern_group(&mut word)?,
                b'<' if self.bare_angles(&mut word) => {}
                b'|' if self.byte(self.at + 1) == Some(b'|') => break,
                _ => self.bare_piece(&mut word)?,
            }
        }
        if self.at == from {
            return doubt(from, "the right side of a comparison is missing");
        }
        // What follows is no operand of this operator, even if it looks like one.
        if word
            .fixed()
            .is_some_and(|text| matches!(text, "=~" | "==" | "=" | "!="))
        {
            word.parts
                .insert(0, super::reading::Part::Dynamic(String::new()));
        }
        Ok(word)
    }

    /// Numeric operands and names of variables are not read as text by `[[ ]]`.
    fn condition_places(&mut self, words: &[Word]) {
        let numeric = |w: Option<&Word>| {
            w.and_then(Word::fixed)
                .is_some_and(|t| matches!(t, "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge"))
        };
        for (i, word) in words.iter().enumerate() {
            let before = i.checked_sub(1).and_then(|i| words.get(i));
            let names = before
                .and_then(Word::fixed)
                .is_some_and(|t| matches!(t, "-v" | "-R"));
            let place = if numeric(before) || numeric(words.get(i + 1)) {
                Place::NumericCondition
            } else if names {
                Place::Refused(Refusal::VariableName)
            } else {
                continue;
            };
            for slot in word.slots() {
                self.out.slots[slot].place = place.clone();
            }
        }
    }
}

impl Form {
    /// The text that stands for the variable `name` in this form.
    pub(super) fn reference(self, name: &str) -> String {
        match self {
            Self::Bare => format!("\"${{{name}}}\""),
            Self::Double => format!("${{{name}}}"),
            Self::Single => format!("'\"${{{name}}}\"'"),
            Self::AnsiC => format!("'\"${{{name}}}\"$'"),
            Self::Arithmetic => format!("(${{{name}}})"),
        }
    }
}
