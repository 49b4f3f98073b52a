//! What is wrong with an input, in words that never hold a secret.

use std::fmt;

use crate::model::definition::Input;
use crate::model::diagnostic::{Diagnostic, Kind};

/// Longest excerpt of a refused text that a message quotes, in characters.
const EXCERPT_CHARS: usize = 60;

/// What kind of defect it is; the names are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Code {
    /// A required input has neither a value nor a default.
    Missing,
    /// No input of that name is declared.
    Unknown,
    /// One input was given more than once and is not a list.
    Duplicate,
    /// The value is not of the declared type.
    WrongType,
    /// The value is none of the allowed ones.
    NotAllowed,
    /// The value does not match the declared pattern.
    PatternMismatch,
    /// A number, a length or a count lies outside its limits.
    OutOfRange,
    /// The value holds a NUL character, which no command can receive.
    Nul,
    /// The value, a list or the request as a whole is too large.
    TooLarge,
    /// The path is absolute, leaves the workspace, enters `.git` or cannot name a file.
    BadPath,
    /// The definition of the input contradicts itself.
    BadDefinition,
}

impl Code {
    /// The stable name, lower case with dashes.
    pub const fn name(self) -> &'static str {
        match self {
            Code::Missing => "input-missing",
            Code::Unknown => "input-unknown",
            Code::Duplicate => "input-duplicate",
            Code::WrongType => "input-type",
            Code::NotAllowed => "input-not-allowed",
            Code::PatternMismatch => "input-pattern",
            Code::OutOfRange => "input-range",
            Code::Nul => "input-nul",
            Code::TooLarge => "input-too-large",
            Code::BadPath => "input-path",
            Code::BadDefinition => "input-definition",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One defect of one input. Values of sensitive inputs never stand in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("input `{input}`: {message}")]
pub struct InputProblem {
    /// The input's name as declared, or as given where none is declared; made printable.
    pub input: String,
    /// What kind of defect.
    pub code: Code,
    /// A lower-case fragment.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl InputProblem {
    /// The defect in one line, the hint behind it in parentheses.
    pub fn line(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{self} ({hint})"),
            None => self.to_string(),
        }
    }
}

/// All problems of one request as the refusal that is told at the rim.
///
/// A bad definition among them makes it a refusal of the definition, for no other value would help.
pub fn refusal(problems: &[InputProblem]) -> Diagnostic {
    let bad_definition = problems.iter().any(|p| p.code == Code::BadDefinition);
    let kind = if bad_definition {
        Kind::Definition
    } else {
        Kind::Usage
    };
    let message = match problems {
        [only] => only.to_string(),
        several => format!("{} problems with the inputs", several.len()),
    };
    let mut diagnostic = Diagnostic::new(kind, "inputs_refused", message);
    match problems {
        [only] => diagnostic.hints.extend(only.hint.clone()),
        several => diagnostic
            .details
            .extend(several.iter().map(InputProblem::line)),
    }
    diagnostic
}

/// A defect before it is known which input it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ValueFault {
    pub(super) code: Code,
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

impl ValueFault {
    pub(super) fn new(code: Code, message: impl Into<String>) -> ValueFault {
        ValueFault {
            code,
            message: message.into(),
            hint: None,
        }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> ValueFault {
        self.hint = Some(hint.into());
        self
    }

    /// Says which item of a list it is about, counted from 1.
    pub(super) fn of_item(mut self, number: usize) -> ValueFault {
        self.message = format!("item {number}: {}", self.message);
        self
    }

    pub(super) fn of(self, input: &str) -> InputProblem {
        InputProblem {
            input: printable(input),
            code: self.code,
            message: self.message,
            hint: self.hint,
        }
    }
}

/// The value as a message may show it: quoted and shortened, and not at all where it is a secret.
pub(super) fn shown(input: &Input, text: &str) -> String {
    if input.sensitive {
        "the value".to_owned()
    } else {
        format!("`{}`", printable(text))
    }
}

/// Text on one line, without anything that a terminal would obey, shortened to an excerpt.
pub(super) fn printable(text: &str) -> String {
    let mut out = String::new();
    for (count, ch) in text.chars().enumerate() {
        if count == EXCERPT_CHARS {
            out.push('…');
            break;
        }
        if ch.is_control() || is_invisible(ch) {
            out.extend(ch.escape_unicode());
        } else {
            out.push(ch);
        }
    }
    out
}

/// Characters that break a line, turn the direction of writing, or show nothing.
const fn is_invisible(ch: char) -> bool {
    matches!(
        ch,
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
    )
}

/// The candidate that was probably meant by `text`, if one is near enough.
pub(super) fn nearest<'a>(
    text: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    const COMPARED_CHARS_MAX: usize = 64;
    let folded = fold(text);
    let length = folded.chars().count();
    if length == 0 || length > COMPARED_CHARS_MAX {
        return None;
    }
    let allowed = if length <= 4 { 1 } else { 2 };
    candidates
        .filter(|candidate| candidate.chars().count() <= COMPARED_CHARS_MAX)
        .map(|candidate| {
            let distance = strsim::damerau_levenshtein(&folded, &fold(candidate));
            (distance, candidate)
        })
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Case and the choice between `-` and `_` are the usual slips.
fn fold(text: &str) -> String {
    text.to_lowercase().replace('-', "_")
}
