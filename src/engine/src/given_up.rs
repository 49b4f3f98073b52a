//! Runs that were given up: their line in lists says that they have ended, their journal does not.
//!
//! A store that was built again from threads, and an engine that could not go on with a run, write the
//! line and leave the journal as it is. Whoever reads such a run sees the end that the line tells.

use crate::machine::{Entry, Event, Run};
use crate::model::outcome::Outcome;
use crate::protocol::RunSummary;

/// Ends `run` as its line tells, if its journal does not; answers the entry that the journal lacks.
pub(super) fn missing_end(
    run: &mut Run,
    entries: &[Entry],
    summary: Option<&RunSummary>,
) -> Option<Entry> {
    let summary = summary.filter(|_| !run.is_finished())?;
    let Some(Outcome::Unknown { why }) = &summary.outcome else {
        return None;
    };
    let event = Event::GivenUp { why: why.clone() };
    let at = summary
        .finished_at
        .or(entries.last().map(|entry| entry.at))?;
    *run = run.apply(at, &event).ok()?;
    let seq = u32::try_from(entries.len()).unwrap_or(u32::MAX);
    Some(Entry { seq, at, event })
}
