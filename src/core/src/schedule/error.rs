//! Why a text is not an expression, with the place and the remedy.

use std::ops::Range;

/// What is wrong with a text of a schedule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ExpressionError {
    /// Stable name of the problem, in kebab-case.
    pub code: &'static str,
    /// Where it is, in bytes of the text; on boundaries of characters.
    pub at: Range<usize>,
    /// What is wrong, for people.
    pub message: String,
    /// What to write instead.
    pub hint: String,
}

impl ExpressionError {
    /// The code of `@reboot`, which is a trigger of its own and not an expression.
    pub const REBOOT: &'static str = "cron-reboot";

    pub(crate) fn new(
        code: &'static str,
        at: Range<usize>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> ExpressionError {
        ExpressionError {
            code,
            at,
            message: message.into(),
            hint: hint.into(),
        }
    }

    /// Whether the text is `@reboot`: to be fired when the engine starts, never by the calendar.
    pub fn is_reboot(&self) -> bool {
        self.code == ExpressionError::REBOOT
    }
}
