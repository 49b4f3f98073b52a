//! From a journal to what people read: the thread's log and summary, lists, metrics. Pure.

pub mod check;
pub mod document;
pub mod filter;
pub mod line;
pub mod mask;
pub mod metrics;
pub mod project;
pub mod rebuild;
pub mod safe;
#[cfg(test)]
pub(crate) mod samples;
pub mod sgr;
pub mod split;
mod telling;
pub mod wording;
