//! A tree that a power cut has torn before its result was recorded.

use workerctl_core::machine::*;
use workerctl_core::model::outcome::{Failure, Step};

use super::scenes::*;

#[test]
fn a_result_that_went_with_its_tree_is_unknown_or_begins_again() {
    let torn = |attempt| Event::RecordingFailed {
        attempt,
        failure: Failure::new(Step::Record, TREE_LOST, "torn"),
    };
    let there = with(way("execution_finished"), &[ok(1)]);
    let unknown = "`restoring` → unknown(tree_lost)";
    row(&mutating(), &with(there.clone(), &[torn(1)]), unknown);
    let mut lost = there.clone();
    for attempt in 1..=2 {
        lost = with(lost, &[torn(attempt)]);
        row(&retrying(), &lost, "`restoring` → retry");
        lost = with(lost, &[restored(true), ok(attempt + 1)]);
    }
    row(&retrying(), &with(lost, &[torn(3)]), unknown);
    // What had failed is tried again as it would have been, and what was cancelled is.
    let failed = with(way("execution_finished"), &[bad(1), torn(1)]);
    row(&retrying(), &failed, "`restoring` → retry");
    let ending = with(there, &[cancel(), torn(1)]);
    row(&mutating(), &ending, "`restoring` → cancelled");
}
