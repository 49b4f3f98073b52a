//! Conversations with a model.

use super::scenes::*;
use workerctl_core::machine::*;

/// A conversation goes on where it was only in a run that changes nothing: there a turn is progress.
#[test]
fn turns_that_are_taken_anew_do_not_excuse_a_crash() {
    let there = way("execution_finished");
    let lost = |attempt: u32, number: u32| [turn_taken(attempt, number), Event::OwnerLost];
    let again = |attempt| [recorded(attempt, true), restored(true)];
    let mut anew = there.clone();
    for attempt in [1, 2] {
        anew = with(with(anew, &lost(attempt, 1)), &again(attempt));
    }
    let looping = with(anew, &lost(3, 1));
    row(
        &retrying(),
        &looping,
        "`recording` → failed(execute, crash_loop)",
    );

    let further: Vec<Event> = (1..=9).flat_map(|turn| lost(turn, turn)).collect();
    row(&reading(), &with(there, &further), "`executing`");
}
