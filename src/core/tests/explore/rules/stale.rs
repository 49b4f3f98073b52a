//! Results that no longer count: of an attempt that is over, or on a tip that has moved.

use super::scenes::*;
use workerctl_core::machine::*;
use workerctl_core::model::evidence::Verdict;

use crate::representatives::AT;

#[test]
fn a_late_result_of_an_attempt_that_is_over_is_refused() {
    let again = [
        bad(1),
        recorded(1, true),
        restored(true),
        Event::BackoffElapsed { attempt: 2 },
    ];
    let second = with(way("execution_finished"), &again);
    let run = after(&retrying(), &second);
    assert_eq!(run.facts.attempts, 2);
    for ended in [ok(1), bad(1)] {
        assert!(run.apply(AT, &ended).is_err());
    }
    let run = after(&retrying(), &with(second, &[ok(2)]));
    assert!(run.apply(AT, &recorded(1, true)).is_err());
    let run = run.apply(AT, &recorded(2, true)).unwrap();
    assert!(run.apply(AT, &checked(1, Verdict::Passed)).is_err());
    assert!(run.apply(AT, &checked(2, Verdict::Passed)).is_ok());
}

#[test]
fn a_change_whose_branch_has_moved_is_verified_on_the_new_tip() {
    let tip = "b".to_owned();
    let moved = with(way("committed"), &[Event::TargetMoved { tip }]);
    row(&mutating(), &moved, "`recording` → verify");
    let there = with(moved, &[recorded(1, true)]);
    row(&mutating(), &there, "`verifying`");
    let failed = with(there.clone(), &[checked(1, Verdict::Failed)]);
    row(
        &mutating(),
        &failed,
        "`restoring` → failed(verify, check_failed)",
    );
    let passed = with(there, &[checked(1, Verdict::Passed), Event::Saved]);
    row(&mutating(), &passed, "`committing`");
}
