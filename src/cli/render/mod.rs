//! How things look: lines, tables, times, problems, a run's progress and its report.

pub(crate) mod diagnostic;
pub(crate) mod json;
pub(crate) mod line;
pub(crate) mod problem;
pub(crate) mod progress;
pub(crate) mod report;
pub(crate) mod table;
pub(crate) mod times;
