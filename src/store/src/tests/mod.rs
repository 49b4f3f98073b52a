//! Tests that need more than one file of the room.

mod conformance;
mod faults;
mod forgetting;
mod maintenance;
mod model;
pub(crate) mod sample_runs;
mod samples;
mod tally;
mod torn;
