//! When schedules are due, and what becomes of their due times: pure arithmetic.
//!
//! An [`Expression`] names local times. A [`Recurrence`] puts them into a zone, or is a period, or a list of
//! moments, and yields slots: instants that only grow. `docs/schedules.md` says what may be written.
//! [`settle`] says of each slot whether it runs and why not; the time and what else runs are arguments.

mod blocked;
mod days;
mod due;
mod error;
mod expression;
mod field;
mod item;
mod ledger;
mod matcher;
mod moments;
mod overdue;
mod recurrence;
mod slots;
mod warnings;
mod words;
mod zone;

#[cfg(test)]
mod tests;

pub use crate::model::schedule::{Dst, Fold, Gap};
pub use due::{
    COUNT_MAX, Decision, LATE_AFTER_MS, Moment, Next, Others, ROWS_MAX, decide, jitter_ms, settle,
};
pub use error::ExpressionError;
pub use expression::Expression;
pub use ledger::STEPPED_BACK_MS;
pub use moments::MomentError;
pub use overdue::{Expectation, HOUR_AFTER_MS, Watched, expectation};
pub use recurrence::Recurrence;
pub use warnings::{DstKind, DstWarning, dst_warnings};
pub use words::words;
