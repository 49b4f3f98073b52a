//! Waits for the end of a rate limit.

use super::scenes::*;
use workerctl_core::machine::*;
use workerctl_core::model::Timestamp;
use workerctl_core::model::outcome::StepResult;
use workerctl_core::model::spec::{Plan, RateLimitWait, Retry};

use crate::representatives::rate_limited;

fn waiting(plan: Plan, times: u32) -> Plan {
    let wait_ms = 60_000;
    Plan {
        on_rate_limit: Some(RateLimitWait { wait_ms, times }),
        ..plan
    }
}

const UNTIL: i64 = 2_000;

#[test]
fn a_run_goes_back_into_the_queue_until_the_limit_ends() {
    let there = way("execution_finished");
    let limited = with(there.clone(), &[ended(1, rate_limited(UNTIL))]);
    let run = row(&waiting(reading(), 1), &limited, "`queued`");
    let until = Timestamp::from_millis(UNTIL);
    assert_eq!(run.facts.waits_until, Some(until));
    assert_eq!(
        (run.facts.failed_attempts, run.facts.executing_since),
        (0, None)
    );
    assert_eq!(run.next_action(), None);
    // The engine that finds it then waits on.
    let found = with(limited.clone(), &[Event::OwnerLost]);
    let run = row(&waiting(reading(), 1), &found, "`queued`");
    assert_eq!(run.facts.waits_until, Some(until));
    let cancelled = with(limited.clone(), &[cancel()]);
    row(&waiting(reading(), 1), &cancelled, "`saving` → cancelled");
    let again = with(limited, &[admitted(), VALIDATED, prepared()]);
    let run = row(&waiting(reading(), 1), &again, "`executing`");
    assert_eq!((run.facts.attempts, run.facts.waits_until), (2, None));
    assert_eq!(run.facts.results.execution, StepResult::Pending);

    // Off by default, and only as often and as long as is said.
    let failed = "`saving` → failed(execute, rate_limited)";
    let limited = with(there.clone(), &[ended(1, rate_limited(UNTIL))]);
    row(&reading(), &limited, failed);
    let twice = with(
        limited,
        &[
            admitted(),
            VALIDATED,
            prepared(),
            ended(2, rate_limited(UNTIL)),
        ],
    );
    row(&waiting(reading(), 1), &twice, failed);
    row(&waiting(reading(), 2), &twice, "`queued`");
    let long = with(there, &[ended(1, rate_limited(70_000))]);
    row(&waiting(reading(), 1), &long, failed);
}

#[test]
fn what_changes_things_is_put_back_first_and_waits_where_it_may_be_repeated() {
    let there = way("execution_finished");
    let limit = |attempt| ended(attempt, rate_limited(UNTIL));
    let put_back = [recorded(1, true), restored(true)];
    let idle = with(there.clone(), &[limit(1)]);
    let taken = with(there.clone(), &[turn_taken(1, 1), limit(1)]);
    for (plan, events) in [
        (waiting(mutating(), 1), &idle),
        (waiting(retrying(), 1), &idle),
        (waiting(retrying(), 1), &taken),
    ] {
        row(&plan, events, "`recording` → queued");
        let run = row(&plan, &with(events.clone(), &put_back), "`queued`");
        assert_eq!(run.facts.turns, 0);
        let unrestored = [recorded(1, true), restored(false)];
        row(
            &plan,
            &with(events.clone(), &unrestored),
            "`saving` → failed(execute, not_restored)",
        );
    }
    // A turn may have done something that must not be done twice.
    let failed = "`recording` → failed(execute, rate_limited)";
    row(&waiting(mutating(), 1), &taken, failed);
    // What only reads goes on after the turns that it had.
    let run = row(&waiting(reading(), 1), &taken, "`queued`");
    assert_eq!(run.facts.turns, 1);
}

#[test]
fn a_wait_is_no_attempt_of_those_that_may_fail() {
    let plan = waiting(
        Plan {
            retry: Retry {
                max_attempts: 2,
                initial_ms: 500,
                ..Retry::ONCE
            },
            ..reading()
        },
        1,
    );
    let there = way("execution_finished");
    let limited = [
        ended(1, rate_limited(UNTIL)),
        admitted(),
        VALIDATED,
        prepared(),
    ];
    let failed = with(there, &limited);
    let failed = with(failed, &[bad(2)]);
    let run = row(&plan, &failed, "`backing_off`");
    assert_eq!((run.facts.failed_attempts, run.facts.rate_waits), (1, 1));
}
