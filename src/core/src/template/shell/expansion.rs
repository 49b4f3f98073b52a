//! Everything that begins with a dollar sign, and arithmetic.

use super::reader::{Reader, doubt};
use super::reading::{Doubt, Form, Part, Place, Refusal, Word};

/// What stands behind the operator of `${name…}`.
enum Operand {
    /// `:-` and its like: a word that may become the value.
    Replacement,
    /// `#`, `##`, `%`, `%%`: a pattern.
    Trim,
    /// Anything else.
    Other,
}

impl Reader<'_> {
    /// Reads an expansion at `$`.
    pub(super) fn dollar(&mut self, word: &mut Word, in_double: bool) -> Result<(), Doubt> {
        let from = self.at;
        match self.byte(from + 1) {
            Some(b'\'') if !in_double => {
                if !self.bash() {
                    return self.only_in_bash("`$'…'` is not read alike by every `sh`");
                }
                return self.ansi_c(word);
            }
            Some(b'"') if !in_double => {
                if !self.bash() {
                    word.push_text("$");
                }
                self.at += 1;
                return self.double(word);
            }
            Some(b'(') => return self.dollar_parenthesis(word),
            Some(b'{') => return self.parameter(word, in_double),
            Some(b'[') if self.bash() => {
                return doubt(from, "`$[…]` is an old form of `$((…))`");
            }
            Some(b) if b.is_ascii_alphabetic() || b == b'_' => {
                self.at += 2;
                while self
                    .peek()
                    .is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_')
                {
                    self.at += 1;
                }
                let name = self.slice(from + 1..self.at).to_owned();
                self.mentions_variable(&name, from..self.at);
            }
            Some(b) if b.is_ascii_digit() || b"@*#?-$!".contains(&b) => self.at += 2,
            _ => {
                word.push_text("$");
                self.at += 1;
                return Ok(());
            }
        }
        word.parts
            .push(Part::Dynamic(self.slice(from..self.at).to_owned()));
        Ok(())
    }

    fn dollar_parenthesis(&mut self, word: &mut Word) -> Result<(), Doubt> {
        let from = self.at;
        if self.byte(from + 2) == Some(b'(') {
            if self.arithmetic_or_not(from + 1)? {
                word.parts
                    .push(Part::Dynamic(self.slice(from..self.at).to_owned()));
                return Ok(());
            }
            if !self.bash() {
                return doubt(from, "`$((` begins arithmetic, which is not closed by `))`");
            }
        }
        self.substitution(word, 2)
    }

    /// Reads `$(…)`, `<(…)` or `>(…)`, whose opening is `opening` bytes long.
    pub(super) fn substitution(&mut self, word: &mut Word, opening: usize) -> Result<(), Doubt> {
        let from = self.at;
        self.at += opening;
        self.nested(|reader| {
            let in_expansion = std::mem::replace(&mut reader.in_expansion, false);
            let result = reader.commands_in_parentheses(from);
            reader.in_expansion = in_expansion;
            result
        })?;
        word.parts
            .push(Part::Dynamic(self.slice(from..self.at).to_owned()));
        Ok(())
    }

    /// Tries to read `((…))` at the first parenthesis, `open`; false if it is something else.
    pub(super) fn arithmetic_or_not(&mut self, open: usize) -> Result<bool, Doubt> {
        if self.not_arithmetic.contains(&open) {
            return Ok(false);
        }
        let at = self.at;
        let mark = self.out.mark();
        let pending = self.pending.len();
        self.at = open + 2;
        let read = self.nested(|reader| reader.placed(Place::Arithmetic, Self::arithmetic_inside));
        if read.is_ok_and(|closed| closed) {
            return Ok(true);
        }
        self.step()?;
        self.not_arithmetic.insert(open);
        self.pending.truncate(pending);
        self.out.rewind(mark);
        self.at = at;
        Ok(false)
    }

    /// Reads up to and with `))`; false if the parentheses do not fit.
    fn arithmetic_inside(&mut self) -> Result<bool, Doubt> {
        let mut word = Word::default();
        let mut open = 0_usize;
        loop {
            self.step()?;
            match self.peek() {
                None | Some(b'\'') => return Ok(false),
                Some(b'(') => {
                    open += 1;
                    self.at += 1;
                }
                Some(b')') if open > 0 => {
                    open -= 1;
                    self.at += 1;
                }
                Some(b')') => {
                    let closed = self.byte(self.at + 1) == Some(b')');
                    self.at += 2;
                    return Ok(closed);
                }
                Some(b'$') if matches!(self.byte(self.at + 1), Some(b'{')) => {
                    // The text of `${V:-x}` becomes part of the expression as it is.
                    let place = Place::Refused(Refusal::Operator);
                    self.placed(place, |reader| reader.dollar(&mut word, true))?;
                }
                Some(b'$') => self.dollar(&mut word, true)?,
                Some(b'"') => {
                    let place = Place::Refused(Refusal::Operator);
                    self.placed(place, |reader| reader.double(&mut word))?;
                }
                Some(b'`') => self.bare_piece(&mut word)?,
                Some(b'\\') => self.at += 2,
                Some(b'{') if self.braces(&mut word, Form::Arithmetic) => {}
                Some(b'<') if self.quoted_angles(&mut word, Form::Arithmetic, None) => {}
                Some(_) => self.literal(&mut word),
            }
        }
    }

    /// Reads `${…}`.
    fn parameter(&mut self, word: &mut Word, in_double: bool) -> Result<(), Doubt> {
        let from = self.at;
        self.at += 2;
        self.nested(|reader| {
            let outer = std::mem::replace(&mut reader.in_expansion, true);
            let result = reader.parameter_inside(word, in_double, from);
            reader.in_expansion = outer;
            result
        })?;
        // The braces of the expansion are told apart from those of a word.
        word.parts
            .push(Part::Dynamic(self.slice(from..self.at).to_owned()));
        Ok(())
    }

    fn parameter_inside(
        &mut self,
        word: &mut Word,
        in_double: bool,
        from: usize,
    ) -> Result<(), Doubt> {
        let mut name_word = Word::default();
        let naming = self.placed(Place::Refused(Refusal::VariableName), |reader| {
            Ok(reader.peek() == Some(b'{') && reader.braces(&mut name_word, Form::Bare))
        })?;
        let name = if naming { "" } else { self.parameter_name() };
        if !naming && name.is_empty() {
            return doubt(from, "`${` is not followed by the name of a variable");
        }
        let name = name.trim_start_matches('!').to_owned();
        if self.peek() == Some(b'}') {
            self.at += 1;
            if self.slice(from + 2..self.at - 1) == name {
                self.mentions_variable(&name, from..self.at);
            }
            return Ok(());
        }
        if self.peek() == Some(b'[') {
            self.subscript()?;
        }
        let operand = if naming {
            Operand::Other
        } else {
            self.operator(&name, from)
        };
        // dash takes a quoted pattern in a here-document for an unquoted one.
        let operand = match operand {
            Operand::Trim if self.place == Place::HereDoc => Operand::Other,
            operand => operand,
        };
        match operand {
            Operand::Replacement if in_double => self.until_brace(from, |reader| {
                if reader.peek() == Some(b'"') {
                    reader.double(word)
                } else {
                    reader.double_piece(word, None)
                }
            }),
            Operand::Trim if in_double => {
                self.until_brace(from, |reader| reader.quoted_trim_piece(word))
            }
            Operand::Replacement | Operand::Trim => {
                self.until_brace(from, |reader| reader.bare_piece(word))
            }
            Operand::Other => self.placed(Place::Refused(Refusal::Operator), |reader| {
                reader.until_brace(from, |reader| reader.bare_piece(word))
            }),
        }
    }

    fn until_brace(
        &mut self,
        from: usize,
        mut piece: impl FnMut(&mut Self) -> Result<(), Doubt>,
    ) -> Result<(), Doubt> {
        loop {
            self.step()?;
            match self.peek() {
                None => return doubt(from, "`${` is not closed"),
                Some(b'}') => break,
                Some(_) => piece(self)?,
            }
        }
        self.at += 1;
        Ok(())
    }

    /// A piece of the pattern in `"${V#…}"`: quotes count there, so the reference has its own.
    fn quoted_trim_piece(&mut self, word: &mut Word) -> Result<(), Doubt> {
        match self.peek() {
            Some(b'"') => self.double(word),
            Some(b'\'') => self.placed(Place::Refused(Refusal::Operator), |r| r.bare_piece(word)),
            _ => self.bare_piece(word),
        }
    }

    /// Takes the name behind `${`, with `!` for indirection; a length sign is passed over.
    fn parameter_name(&mut self) -> &str {
        let named = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_');
        if self.peek() == Some(b'#') {
            let next = self.byte(self.at + 1);
            if named(next) || matches!(next, Some(b'@' | b'*' | b'?' | b'!' | b'$')) {
                self.at += 1;
            }
        }
        let from = self.at;
        if self.peek() == Some(b'!') && self.bash() && named(self.byte(from + 1)) {
            self.at += 1;
        }
        if named(self.peek()) {
            while named(self.peek()) {
                self.at += 1;
            }
        } else if self.peek().is_some_and(|b| b"@*#?-$!".contains(&b)) {
            self.at += 1;
        }
        self.slice(from..self.at)
    }

    /// Takes the operator of `${name…}`.
    fn operator(&mut self, name: &str, from: usize) -> Operand {
        let indirect = self.byte(from + 2) == Some(b'!') && !name.is_empty();
        let colon = usize::from(self.peek() == Some(b':'));
        match self.byte(self.at + colon) {
            _ if indirect => Operand::Other,
            Some(byte @ (b'-' | b'=' | b'+' | b'?')) => {
                self.at += colon + 1;
                if byte == b'=' {
                    self.assigns(name, from..self.at);
                }
                Operand::Replacement
            }
            Some(byte @ (b'#' | b'%')) if colon == 0 => {
                self.at += 1;
                if self.peek() == Some(byte) {
                    self.at += 1;
                }
                Operand::Trim
            }
            _ => Operand::Other,
        }
    }

    /// Reads `[…]` behind a name.
    pub(super) fn subscript(&mut self) -> Result<(), Doubt> {
        let open = self.at;
        let mut word = Word::default();
        self.at += 1;
        self.placed(Place::Refused(Refusal::Subscript), |reader| {
            loop {
                match reader.peek() {
                    None => return doubt(open, "`[` is not closed"),
                    Some(b']') => break,
                    Some(_) => reader.bare_piece(&mut word)?,
                }
            }
            Ok(())
        })?;
        self.at += 1;
        Ok(())
    }
}
