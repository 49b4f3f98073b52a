//! When schedules are due, and what becomes of their slots: pure arithmetic.
//!
//! An [`Expression`] names local times. A [`Recurrence`] puts them into a zone, or is a period, or a list of
//! moments, and yields slots: instants that only grow. `docs/reference/schedule.md` says what may be written.
//! [`settle()`] says of each slot whether it runs and why not; the time and what else runs are arguments.

mod blocked;
mod clock_changes;
pub mod crontab;
mod days;
mod error;
mod expression;
mod field;
mod item;
mod ledger;
mod manual;
mod matcher;
mod moments;
mod occurrences;
mod overdue;
mod planned;
mod preview;
mod recurrence;
mod sentences;
mod settle;
mod simulate;
mod starts;
mod warnings;
mod words;
mod zone;

#[cfg(test)]
mod tests;

pub use crate::model::schedule::{Dst, DstKind, DstWarning, Fold, Gap, Sentence};
pub use error::ExpressionError;
pub use expression::Expression;
pub use ledger::STEPPED_BACK_MS;
pub use manual::{ManualRefused, Overrides, finds_room, permitted};
pub use moments::MomentError;
pub use overdue::{Expectation, HOUR_AFTER_MS, expectation};
pub use planned::Planned;
pub use preview::{FIRES_MAX, Fire, Preview, PreviewQuery, preview};
pub use recurrence::Recurrence;
pub use sentences::{Facts, sentences};
pub use settle::{
    COUNT_MAX, Decision, LATE_AFTER_MS, Moment, Next, OVERTAKEN, Others, ROWS_MAX, decide, settle,
};
pub use simulate::{
    ActiveRun, Busy, EndedBy, MET_MAX, Met, OverlapMet, RANGE_MAX_MS, SLOTS_MAX, Scenario,
    ScenarioError, Simulated, SimulatedRun, Simulation, simulate,
};
pub use starts::{Ahead, Watched, jitter_ms, next_start, undecided};
pub use warnings::dst_warnings;
pub use words::words;
