//! The reader of shell text: its position, its bounds, and the placeholders it meets.
//!
//! It follows the shell's grammar only as far as quoting and command words depend on it. Where it
//! is not certain it stops with a [`Doubt`]; placeholders behind that point are refused.

use super::Dialect;
use super::reading::{Doubt, Feed, Form, Part, Place, Reading, Refusal, Slot, UnboundName, Word};
use crate::template::names::{Names, Reference, Scope, is_shell_variable};
use crate::template::problem::TextProblem;
use crate::template::token::{self, Token, What};
use std::collections::BTreeSet;
use std::ops::Range;

/// Deepest nesting of substitutions, groups and quotes that is followed.
const DEPTH_MAX: usize = 48;
/// Most words, pieces and commands that are read, per byte of the text and at least.
const STEPS_PER_BYTE: usize = 64;
const STEPS_MIN: usize = 10_000;

/// A here-document whose body has not begun yet.
pub(super) struct Pending {
    pub(super) at: usize,
    pub(super) delimiter: String,
    pub(super) quoted: bool,
    pub(super) tabs: bool,
    pub(super) into: Range<usize>,
}

pub(super) struct Reader<'a> {
    pub(super) text: &'a str,
    pub(super) names: &'a Names,
    pub(super) dialect: Dialect,
    pub(super) at: usize,
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) place: Place,
    pub(super) out: Reading,
    pub(super) pending: Vec<Pending>,
    /// A here-document of an enclosing command still waits for its body.
    pub(super) enclosed_pending: bool,
    /// Inside `${…}`, where a brace ends the expansion.
    pub(super) in_expansion: bool,
    /// Offsets of `((` that turned out not to be arithmetic.
    pub(super) not_arithmetic: BTreeSet<usize>,
    depth: usize,
    steps: usize,
}

impl<'a> Reader<'a> {
    /// Reads all of `text`.
    pub(super) fn read(text: &'a str, names: &'a Names, dialect: Dialect) -> Reading {
        let mut reader = Reader {
            text,
            names,
            dialect,
            at: 0,
            start: 0,
            end: text.len(),
            place: Place::Argument,
            out: Reading::default(),
            pending: Vec::new(),
            enclosed_pending: false,
            in_expansion: false,
            not_arithmetic: BTreeSet::new(),
            depth: 0,
            steps: text
                .len()
                .saturating_mul(STEPS_PER_BYTE)
                .saturating_add(STEPS_MIN),
        };
        if let Err(doubt) = reader.program() {
            reader.out.doubt = Some(doubt);
        }
        reader.out
    }

    pub(super) fn bash(&self) -> bool {
        self.dialect == Dialect::Bash
    }

    /// The byte at `at`, within the bounds of what is being read.
    pub(super) fn byte(&self, at: usize) -> Option<u8> {
        if at < self.end {
            self.text.as_bytes().get(at).copied()
        } else {
            None
        }
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.byte(self.at)
    }

    pub(super) fn looking_at(&self, what: &str) -> bool {
        let rest = self.text.as_bytes().get(self.at..self.end);
        rest.is_some_and(|rest| rest.starts_with(what.as_bytes()))
    }

    pub(super) fn slice(&self, range: Range<usize>) -> &'a str {
        self.text.get(range).unwrap_or_default()
    }

    pub(super) fn only_in_bash<T>(&self, why: &'static str) -> Result<T, Doubt> {
        Err(Doubt {
            at: self.at,
            why,
            hint: "say `shell: bash`, or write it as POSIX shell",
        })
    }

    /// Counts one step of work.
    pub(super) fn step(&mut self) -> Result<(), Doubt> {
        if self.steps == 0 {
            return doubt(self.at, "the text is too entangled to be read");
        }
        self.steps -= 1;
        Ok(())
    }

    /// Runs `read` one level deeper.
    pub(super) fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Doubt>,
    ) -> Result<T, Doubt> {
        if self.depth >= DEPTH_MAX {
            return doubt(self.at, "the text is nested too deeply to be read");
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Runs `read` with another place for the placeholders it meets.
    pub(super) fn placed<T>(
        &mut self,
        place: Place,
        read: impl FnOnce(&mut Self) -> Result<T, Doubt>,
    ) -> Result<T, Doubt> {
        let outer = std::mem::replace(&mut self.place, place);
        let result = read(self);
        self.place = outer;
        result
    }

    /// Runs `read` on the bytes up to `end` as if nothing followed them.
    pub(super) fn within<T>(
        &mut self,
        end: usize,
        read: impl FnOnce(&mut Self) -> Result<T, Doubt>,
    ) -> Result<T, Doubt> {
        let outer = (self.start, self.end);
        (self.start, self.end) = (self.at, end.min(self.end));
        let result = read(self);
        (self.start, self.end) = outer;
        result
    }

    /// Takes the placeholder in braces at the current position; false if there is none.
    pub(super) fn braces(&mut self, word: &mut Word, form: Form) -> bool {
        let Some(token) = token::braces(self.text, self.at, self.names) else {
            self.note_unknown(word, form);
            return false;
        };
        if token.range.end > self.end {
            return false;
        }
        self.take(&token, word, form)
    }

    /// Notes a word in braces that may have been meant as a placeholder.
    fn note_unknown(&self, word: &mut Word, form: Form) {
        let is_read = matches!(form, Form::Bare | Form::Double) && !self.in_expansion;
        let range = token::unknown(self.text, self.at).filter(|range| range.end <= self.end);
        word.left
            .extend(range.filter(|_| is_read).map(|range| UnboundName {
                range,
                is_built_in: false,
            }));
    }

    fn take(&mut self, token: &Token, word: &mut Word, form: Form) -> bool {
        let range = token.range.clone();
        let written = self.slice(range.clone());
        match &token.what {
            What::Known(reference) if self.is_left(*reference, written, form) => {
                let is_built_in = true;
                word.left.push(UnboundName { range, is_built_in });
                return false;
            }
            What::Known(reference) => {
                let (reference, place) = (*reference, self.place.clone());
                word.parts.push(Part::Slot(self.out.slots.len()));
                self.out.slots.push(Slot {
                    range: range.clone(),
                    reference,
                    form,
                    place,
                    whole: false,
                });
            }
            What::Several(all) => {
                let scoped: Vec<_> = all.iter().map(|&i| self.names.scoped(i)).collect();
                self.out
                    .problems
                    .push(ambiguous(range.clone(), written, &scoped));
                word.push_text(written);
            }
            What::Handlebars => {
                self.out.problems.push(TextProblem::error(
                    "handlebars_in_shell",
                    range.clone(),
                    format!("`{written}` is Handlebars, which is not for shell text"),
                    format!(
                        "write `{{{}}}`",
                        written.trim_matches(['{', '}', ' ', '~', '\t'])
                    ),
                ));
                word.push_text(written);
            }
            What::Near(near) => {
                // `{fd}>file` is how a shell itself names a descriptor.
                let descriptor = matches!(self.byte(range.end), Some(b'<' | b'>'));
                if !matches!(form, Form::Bare | Form::Double)
                    || descriptor
                    || self.place == Place::HereDoc
                {
                    return false;
                }
                self.out
                    .problems
                    .push(unknown(range.clone(), written, near));
                word.push_text(written);
            }
        }
        self.at = range.end;
        true
    }

    /// Whether it stays as it is: between single quotes stands the text of other programs, whose own braces may hold
    /// a word such as `date`. Only what the skill itself declares is meant there.
    fn is_left(&self, reference: Reference, written: &str, form: Form) -> bool {
        matches!(form, Form::Single | Form::AnsiC)
            && !matches!(self.place, Place::Refused(_))
            && self.names.get(reference).scope == Scope::Builtin
            && written.starts_with('{')
            && !written.starts_with("{builtin.")
    }

    /// Takes `<output>` inside quotes that opened at `open`; false if there is none.
    pub(super) fn quoted_angles(
        &mut self,
        word: &mut Word,
        form: Form,
        open: Option<usize>,
    ) -> bool {
        let Some(token) = token::angles(self.text, self.at, self.names) else {
            return false;
        };
        if token.range.end > self.end {
            return false;
        }
        let before = open
            .filter(|open| *open < self.at)
            .and_then(|_| self.byte(self.at - 1));
        let begins = open.is_some_and(|open| open + 1 == self.at);
        let quote = open.and_then(|open| self.byte(open));
        let whole = begins && self.byte(token.range.end) == quote;
        let fits = whole || matches!(before, Some(b'=' | b'/'));
        if fits && open.is_some() {
            return self.take(&token, word, form);
        }
        self.ambiguous_angles(&token, word, form)
    }

    /// Takes `<output>` outside quotes; false if there is none.
    pub(super) fn bare_angles(&mut self, word: &mut Word) -> bool {
        let Some(token) = token::angles(self.text, self.at, self.names) else {
            return false;
        };
        if token.range.end > self.end {
            return false;
        }
        let before = (self.at > self.start).then(|| self.text.as_bytes()[self.at - 1]);
        let after = self.byte(token.range.end);
        let opens = matches!(
            before,
            None | Some(b' ' | b'\t' | b'\n' | b'\r' | b'=' | b'(')
        );
        let closes = matches!(
            after,
            None | Some(b' ' | b'\t' | b'\n' | b'\r' | b';' | b'/' | b')')
        );
        let conditional = matches!(self.place, Place::Condition | Place::Refused(_));
        if opens && closes && !conditional {
            return self.take(&token, word, Form::Bare);
        }
        self.ambiguous_angles(&token, word, Form::Bare)
    }

    fn ambiguous_angles(&mut self, token: &Token, word: &mut Word, form: Form) -> bool {
        let outer = std::mem::replace(&mut self.place, Place::Refused(Refusal::AngleAmbiguous));
        let done = self.take(token, word, form);
        self.place = outer;
        done
    }

    /// At a backslash: takes the placeholder behind it as plain text; false if there is none.
    ///
    /// `plain` says that the shell would keep the backslash, which is therefore removed.
    pub(super) fn escaped(&mut self, word: &mut Word, plain: bool) -> bool {
        let after = self.at + 1;
        let angle = self.byte(after) == Some(b'<');
        let found = if angle {
            token::angles(self.text, after, self.names)
        } else {
            token::braces(self.text, after, self.names)
        };
        let Some(token) = found.filter(|t| t.range.end <= self.end) else {
            return false;
        };
        let What::Known(reference) = token.what else {
            return false;
        };
        if self.in_expansion && !angle {
            // The closing brace would end the expansion.
            let place = Place::Refused(Refusal::EscapeInExpansion);
            let (range, form) = (self.at..token.range.end, Form::Bare);
            self.out.slots.push(Slot {
                range,
                reference,
                form,
                place,
                whole: false,
            });
        } else if plain {
            self.out.edits.push((self.at..after, ""));
        } else if angle {
            self.out.requoted.push(self.at..token.range.end);
        }
        word.push_text(self.slice(token.range.clone()));
        self.at = token.range.end;
        true
    }

    /// Notes that the text sets the variable `name`, which stands at `range`.
    pub(super) fn assigns(&mut self, name: &str, range: Range<usize>) {
        if name.starts_with("WORKERCTL_") {
            self.out.problems.push(TextProblem::error(
                "reserved_variable",
                range,
                format!("the text sets `{name}`, which carries a value of the run"),
                "use a variable of another name",
            ));
        }
        self.out.assigned.insert(name.to_owned());
    }

    /// Notes `$name` or a plain `${name}`.
    pub(super) fn mentions_variable(&mut self, name: &str, range: Range<usize>) {
        let (lookup, _) = self.names.resolve(name);
        if lookup != crate::template::names::Lookup::Unknown && is_shell_variable(name) {
            self.out.variables.push((range, name.to_owned()));
        }
    }

    /// Notes that the placeholders of `word`, and what its substitutions print, are read from standard input by `into`.
    pub(super) fn feeds(&mut self, word: &Word, into: Range<usize>) {
        let slots: Vec<_> = word.slots().collect();
        if !slots.is_empty() {
            let into = into.clone();
            self.out.feeds.push(Feed { slots, into });
        }
        if !word.inner.is_empty() {
            self.out.pipes.push((word.inner.clone(), into));
        }
    }
}

/// Stops reading at `at`.
pub(super) fn doubt<T>(at: usize, why: &'static str) -> Result<T, Doubt> {
    Err(Doubt {
        at,
        why,
        hint: "write that part more plainly, or put the placeholder before it",
    })
}

pub(crate) fn ambiguous(range: Range<usize>, written: &str, scoped: &[String]) -> TextProblem {
    TextProblem::error(
        "ambiguous_name",
        range,
        format!("`{written}` has more than one meaning here"),
        format!(
            "write {}",
            scoped
                .iter()
                .map(|s| format!("`{s}`"))
                .collect::<Vec<_>>()
                .join(" or ")
        ),
    )
}

pub(crate) fn unknown(range: Range<usize>, written: &str, near: &str) -> TextProblem {
    TextProblem::error(
        "unknown_name",
        range,
        format!("nothing here is named `{written}`"),
        format!("did you mean `{{{near}}}`? Quote the braces if they are meant as they are"),
    )
}
