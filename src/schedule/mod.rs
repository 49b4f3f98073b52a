//! Which due times there are, which of them run, and what becomes of late and overlapping ones.
//!
//! Pure: the time, the zone and what else runs are arguments.

mod blocked;
mod due;
mod ledger;

#[cfg(test)]
mod tests;

pub use due::{
    COUNT_MAX, Decision, LATE_AFTER_MS, Moment, Next, Others, ROWS_MAX, Slots, decide, jitter_ms,
    settle,
};
pub use ledger::STEPPED_BACK_MS;
