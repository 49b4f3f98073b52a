//! When each phase of a run began and ended.

use crate::machine::{Entry, Event, Run, State};
use crate::model::Timestamp;
use crate::protocol::PhaseView;

/// Takes the next entry and the run after it. What follows the end of a run changes no phase.
pub(super) fn push(phases: &mut Vec<PhaseView>, entry: &Entry, after: &Run) {
    let was_lost = entry.event == Event::OwnerLost;
    let now = current(entry.at, after);
    let Some(last) = phases.last_mut().filter(|last| last.end.is_none()) else {
        // Of a run that has ended nothing is left to begin.
        if phases.is_empty() {
            phases.extend(now);
        }
        return;
    };
    // Who waits goes on waiting, whichever engine it waits for.
    let goes_on = now.as_ref().is_some_and(|now| is_same(last, now));
    if goes_on && (last.waiting || !was_lost) {
        return;
    }
    last.end = Some(entry.at);
    last.owner_lost = was_lost && !last.waiting;
    phases.extend(now);
}

/// The phase of a run that has not ended, as one that begins now.
fn current(at: Timestamp, run: &Run) -> Option<PhaseView> {
    let (facts, phase) = (&run.facts, run.phase());
    let waiting_for = match &run.state {
        State::Publishing { .. } => facts.waits_for.clone(),
        State::Queued => facts
            .waits_until
            .map(|until| format!("the end of a rate limit, {}", until.rfc3339())),
        _ => None,
    };
    (!run.is_finished()).then(|| PhaseView {
        attempt: facts.attempts,
        phase,
        waiting: waits(run),
        waiting_for,
        begin: at,
        end: None,
        owner_lost: false,
    })
}

/// Returns true while nothing is done for a run: it waits for its turn, for approval, for its next attempt or to land.
pub(super) fn waits(run: &Run) -> bool {
    match &run.state {
        State::Queued | State::AwaitingApproval { .. } | State::BackingOff { .. } => true,
        State::Publishing { .. } => run.facts.waits_for.is_some(),
        _ => false,
    }
}

fn is_same(one: &PhaseView, other: &PhaseView) -> bool {
    (one.attempt, one.phase, &one.waiting_for) == (other.attempt, other.phase, &other.waiting_for)
}

#[cfg(test)]
mod tests;
