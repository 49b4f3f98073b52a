//! What is wrong with a text that holds placeholders, and what to do about it.

use std::ops::Range;

/// How much a [`TextProblem`] weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing; nothing is wrong yet.
    Note,
    /// Probably not what was meant; the text is usable.
    Warning,
    /// The text is refused.
    Error,
}

/// One diagnosed defect of a text, with its place and its remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextProblem {
    /// Stable identifier, for example `placeholder_in_code`.
    pub code: &'static str,
    /// How much it weighs.
    pub severity: Severity,
    /// Where it stands, in bytes of the text.
    pub offset: Range<usize>,
    /// What is wrong: a lower-case fragment, literals in backticks.
    pub message: String,
    /// What to write instead.
    pub hint: String,
}

impl TextProblem {
    pub(super) fn new(
        severity: Severity,
        code: &'static str,
        offset: Range<usize>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self {
            code,
            severity,
            offset,
            message: message.into(),
            hint: hint.into(),
        }
    }

    pub(super) fn error(
        code: &'static str,
        offset: Range<usize>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self::new(Severity::Error, code, offset, message, hint)
    }

    /// Whether this problem refuses the text.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// A usable template, with what is worth saying about it.
#[derive(Debug, Clone)]
pub struct Compiled<T> {
    /// The template.
    pub template: T,
    /// Warnings and notes; never an error.
    pub notes: Vec<TextProblem>,
}

/// Splits `found` into a verdict: any error refuses the text, and then all problems are reported.
pub(super) fn verdict<T>(
    template: T,
    mut found: Vec<TextProblem>,
) -> Result<Compiled<T>, Vec<TextProblem>> {
    found.sort_by(|a, b| {
        (a.offset.start, b.severity, a.code).cmp(&(b.offset.start, a.severity, b.code))
    });
    found.dedup();
    if found.iter().any(TextProblem::is_error) {
        return Err(found);
    }
    Ok(Compiled {
        template,
        notes: found,
    })
}
