//! Rows of the policies' table: what becomes of slots, one case each.

use std::num::NonZeroU64;

use super::*;
use crate::model::outcome::{Failure, Outcome, Step};
use crate::model::schedule::{
    CatchUp, CatchUpMode, Overlap, Pause, Policy, ScheduleState, SlotRow, SlotStatus,
};
use crate::model::{RunId, Timestamp, Zone};

mod absence;
mod page;

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;

/// Every hour, on the hour.
fn hourly() -> Recurrence {
    let hour = NonZeroU64::new(3_600_000).unwrap();
    Recurrence::every(hour, at(0))
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn run(number: u128) -> RunId {
    RunId::following(None, at(0), number)
}

fn state(cursor_hours: i64) -> ScheduleState {
    ScheduleState::new("d".to_owned(), at(cursor_hours * HOUR))
}

fn moment(millis: i64, running: usize, waiting: usize) -> Moment<'static> {
    Moment {
        now: at(millis),
        zone: Zone::UTC,
        there_since: at(i64::MIN),
        id: "w/s",
        others: Others { running, waiting },
    }
}

fn policy(mode: CatchUpMode, window_hours: u64) -> Policy {
    Policy {
        catch_up: CatchUp {
            mode,
            window_ms: window_hours * 3_600_000,
        },
        ..Policy::default()
    }
}

/// Rows as (first hour, last hour, status), and what follows.
fn decided(
    policy: &Policy,
    state: &ScheduleState,
    moment: Moment<'_>,
) -> (Vec<(i64, i64, SlotStatus)>, Next) {
    let mut state = state.clone();
    let (rows, next) = settle(&hourly(), policy, &mut state, moment);
    let hours = |row: &SlotRow| (row.from.millis() / HOUR, row.to.millis() / HOUR, row.status);
    for row in &rows {
        let hours = u64::try_from((row.to.millis() - row.from.millis()) / HOUR + 1).unwrap();
        assert_eq!(row.count, Some(hours));
    }
    (rows.iter().map(hours).collect(), next)
}

fn fires(hour: i64, status: SlotStatus) -> Next {
    Next::Fire {
        slot: at(hour * HOUR),
        status,
    }
}

#[test]
fn a_due_time_fires_when_it_has_come_and_not_before() {
    let policy = Policy::default();
    let waits = decided(&policy, &state(0), moment(HOUR - 1, 0, 0));
    assert_eq!(waits, (vec![], Next::Wait(Some(at(HOUR)))));
    let due = decided(&policy, &state(0), moment(HOUR, 0, 0));
    assert_eq!(due, (vec![], fires(1, SlotStatus::Ran)));
    let nearly_late = decided(&policy, &state(0), moment(HOUR + MINUTE, 0, 0));
    assert_eq!(nearly_late.1, fires(1, SlotStatus::Ran));
    let late = decided(&policy, &state(0), moment(HOUR + MINUTE + 1, 0, 0));
    assert_eq!(late.1, fires(1, SlotStatus::CaughtUp));
}

#[test]
fn the_five_ways_of_overlap() {
    let with = |overlap, running, waiting| {
        let policy = Policy {
            overlap,
            ..Policy::default()
        };
        decided(&policy, &state(0), moment(HOUR, running, waiting))
    };
    let omitted = (
        vec![(1, 1, SlotStatus::SkippedOverlap)],
        Next::Wait(Some(at(2 * HOUR))),
    );
    let goes = (vec![], fires(1, SlotStatus::Ran));
    for (overlap, alone, one_runs, one_waits) in [
        (Overlap::Skip, &goes, &omitted, &omitted),
        (Overlap::BufferOne, &goes, &goes, &omitted),
        (Overlap::BufferAll, &goes, &goes, &goes),
        (Overlap::CancelOther, &goes, &goes, &goes),
        (Overlap::AllowAll, &goes, &goes, &goes),
    ] {
        assert_eq!(&with(overlap, 0, 0), alone, "{overlap:?}");
        assert_eq!(&with(overlap, 1, 0), one_runs, "{overlap:?}");
        assert_eq!(&with(overlap, 1, 1), one_waits, "{overlap:?}");
    }
}

#[test]
fn what_was_missed_is_caught_up_as_the_policy_says() {
    // Ten slots while no daemon ran; the window holds the last three.
    let now = moment(10 * HOUR + 30 * MINUTE, 0, 0);
    let last = decided(&policy(CatchUpMode::Last, 3), &state(0), now);
    assert_eq!(
        last,
        (
            vec![(1, 7, SlotStatus::Missed), (8, 9, SlotStatus::Missed)],
            fires(10, SlotStatus::CaughtUp)
        )
    );
    let all = decided(&policy(CatchUpMode::All, 3), &state(0), now);
    assert_eq!(
        all,
        (
            vec![(1, 7, SlotStatus::Missed)],
            fires(8, SlotStatus::CaughtUp)
        )
    );
    let none = decided(&policy(CatchUpMode::None, 3), &state(0), now);
    assert_eq!(
        none,
        (
            vec![(1, 10, SlotStatus::Missed)],
            Next::Wait(Some(at(11 * HOUR)))
        )
    );
    let outside = decided(&policy(CatchUpMode::Last, 0), &state(0), now);
    assert_eq!(
        outside,
        (
            vec![(1, 10, SlotStatus::Missed)],
            Next::Wait(Some(at(11 * HOUR)))
        )
    );
}

#[test]
fn a_due_time_in_time_stands_in_for_those_that_were_missed() {
    let now = moment(10 * HOUR, 0, 0);
    let last = decided(&policy(CatchUpMode::Last, 24), &state(0), now);
    assert_eq!(
        last,
        (vec![(1, 9, SlotStatus::Missed)], fires(10, SlotStatus::Ran))
    );
}

#[test]
fn catching_up_all_goes_one_by_one_and_gives_up_with_the_window() {
    let policy = policy(CatchUpMode::All, 3);
    let busy = moment(10 * HOUR + 30 * MINUTE, 1, 0);
    let held = decided(&policy, &state(7), busy);
    assert_eq!(held, (vec![], Next::Hold(at(11 * HOUR + 1))));
    let over = decided(&policy, &state(7), moment(11 * HOUR + 1, 1, 0));
    assert_eq!(over.0, [(8, 8, SlotStatus::Missed)]);
}

#[test]
fn nothing_is_due_while_paused_or_blocked() {
    let mut paused = state(0);
    paused.pause = Some(Box::new(Pause {
        reason: "a holiday".to_owned(),
        by: "ada".to_owned(),
        at: at(0),
    }));
    let now = moment(5 * HOUR, 0, 0);
    assert_eq!(
        decided(&Policy::default(), &paused, now),
        (
            vec![(1, 5, SlotStatus::Paused)],
            Next::Wait(Some(at(6 * HOUR)))
        )
    );
    let blocked = Policy {
        blocked_hours: vec![22, 23, 0, 1],
        ..Policy::default()
    };
    let night = decided(&blocked, &state(20), moment(26 * HOUR, 0, 0));
    assert_eq!(
        night,
        (
            vec![
                (21, 21, SlotStatus::Missed),
                (22, 25, SlotStatus::BlockedHours)
            ],
            fires(26, SlotStatus::Ran)
        )
    );
    // The newest that may run is the one before the night, and not in the night.
    let woken = decided(&blocked, &state(20), moment(24 * HOUR, 0, 0));
    assert_eq!(woken, (vec![], Next::Wait(Some(at(26 * HOUR)))));
    let all = Policy {
        catch_up: CatchUp {
            mode: CatchUpMode::All,
            window_ms: 36_000_000,
        },
        ..blocked.clone()
    };
    let woken = decided(&all, &state(20), moment(24 * HOUR, 0, 0));
    assert_eq!(woken, (vec![], Next::Wait(Some(at(26 * HOUR)))));
    let morning = decided(&all, &state(20), moment(26 * HOUR, 0, 0));
    assert_eq!(morning, (vec![], fires(21, SlotStatus::CaughtUp)));
    let on_a_date = Policy {
        blocked_dates: vec!["1970-01-02".to_owned()],
        ..Policy::default()
    };
    let holiday = decided(&on_a_date, &state(23), moment(30 * HOUR, 0, 0));
    assert_eq!(holiday.0, [(24, 30, SlotStatus::BlockedHours)]);
}

#[test]
fn start_end_and_the_number_of_actions_bound_it() {
    let bounded = Policy {
        start: Some(at(3 * HOUR)),
        end: Some(at(4 * HOUR)),
        ..Policy::default()
    };
    let early = decided(&bounded, &state(0), moment(HOUR, 0, 0));
    assert_eq!(early, (vec![], Next::Wait(Some(at(3 * HOUR)))));
    assert_eq!(
        decided(&bounded, &state(3), moment(4 * HOUR, 0, 0)).1,
        fires(4, SlotStatus::Ran)
    );
    assert_eq!(
        decided(&bounded, &state(4), moment(9 * HOUR, 0, 0)),
        (vec![], Next::Wait(None))
    );
    let twice = Policy {
        max_actions: Some(2),
        ..Policy::default()
    };
    let mut done = state(0);
    done.actions = 2;
    assert_eq!(
        decided(&twice, &done, moment(HOUR, 0, 0)).1,
        Next::Wait(None)
    );
}

#[test]
fn jitter_is_the_same_for_a_due_time_always() {
    let policy = Policy {
        jitter_ms: 600_000,
        ..Policy::default()
    };
    let put_off = jitter_ms("w/s", at(HOUR), 600_000);
    assert!(put_off > 0 && put_off <= 600_000);
    assert_ne!(put_off, jitter_ms("w/s", at(2 * HOUR), 600_000));
    assert_ne!(put_off, jitter_ms("w/t", at(HOUR), 600_000));
    let due = at(HOUR).plus_millis(put_off);
    let waits = decided(&policy, &state(0), moment(HOUR, 0, 0));
    assert_eq!(waits, (vec![], Next::Wait(Some(due))));
    let goes = decided(&policy, &state(0), moment(due.millis(), 0, 0));
    assert_eq!(goes.1, fires(1, SlotStatus::Ran));
}

/// Slots of `slots` that run, with the instants at which they start, when somebody looks whenever it is told to.
fn starts(slots: &Recurrence, policy: &Policy, until: i64) -> Vec<(Timestamp, Timestamp)> {
    let mut state = ScheduleState::new("d".to_owned(), at(0));
    let (mut now, mut found) = (at(0), Vec::new());
    while now <= at(until) {
        let (rows, next) = settle(slots, policy, &mut state, moment(now.millis(), 0, 0));
        assert!(
            rows.iter()
                .all(|row| row.status == SlotStatus::BlockedHours),
            "{rows:?}"
        );
        match next {
            Next::Fire { slot, status } => {
                assert_eq!(status, SlotStatus::Ran);
                found.push((slot, now));
                state.fired(slot, status, run(1), now);
            }
            Next::Wait(Some(later)) => now = later,
            Next::Again => {}
            other => panic!("{other:?}"),
        }
    }
    found
}

#[test]
fn what_is_put_off_for_longer_than_an_interval_loses_no_due_time() {
    let policy = Policy {
        jitter_ms: 3 * 60 * 60_000,
        catch_up: CatchUp {
            mode: CatchUpMode::None,
            ..CatchUp::default()
        },
        ..Policy::default()
    };
    let often = Expression::parse("*/10 * * * * *", true).unwrap();
    let often = Recurrence::cron(often, Zone::UTC, None);
    let found = starts(&often, &policy, HOUR);
    for (nth, (slot, start)) in (1..).zip(&found) {
        assert_eq!(slot.millis(), nth * 10_000);
        let late = start.millis() - slot.millis();
        assert!((0..10_000).contains(&late), "{slot} {start}");
    }
    assert!(found.len() > 350 && found.iter().any(|(slot, start)| slot != start));
    // Moments of a list may stand close together: they keep their order, and none is late for the one before it.
    let moments = Recurrence::instants((1..=20).map(|nth| at(nth * 1_000)).collect());
    let ids = (1..=20).map(|nth| at(nth * 1_000));
    let mut latest = at(0);
    let expected: Vec<_> = ids
        .map(|slot| {
            latest = latest.max(slot.plus_millis(jitter_ms("w/s", slot, policy.jitter_ms)));
            (slot, latest)
        })
        .collect();
    let mut state = ScheduleState::new("d".to_owned(), at(0));
    for (slot, start) in expected {
        let now = moment(start.millis(), 0, 0);
        let (rows, next) = settle(&moments, &policy, &mut state, now);
        let status = SlotStatus::Ran;
        assert_eq!((rows.len(), next), (0, Next::Fire { slot, status }));
        state.fired(slot, status, run(1), start);
    }
}

#[test]
fn nothing_is_put_off_into_blocked_hours() {
    let policy = Policy {
        jitter_ms: 3_000_000,
        blocked_hours: vec![2, 3],
        ..Policy::default()
    };
    let nightly = Expression::parse("55 1 * * *", false).unwrap();
    let nightly = Recurrence::cron(nightly, Zone::UTC, None);
    let found = starts(&nightly, &policy, 40 * 24 * HOUR);
    assert_eq!(found.len(), 40);
    let hour = |at: &Timestamp| at.millis() / HOUR % 24;
    assert!(found.iter().all(|(_, start)| [1, 4].contains(&hour(start))));
    // Until then that is when it is said to run.
    let (slot, start) = found.iter().find(|(_, start)| hour(start) == 4).unwrap();
    let watched = Watched {
        id: "w/s",
        slots: &nightly,
        policy: &policy,
        zone: Zone::UTC,
    };
    let mut state = ScheduleState::new("d".to_owned(), at(0));
    state.cursor = slot.just_before();
    assert_eq!(
        next_start(watched, &state, slot.plus_millis(1)),
        Some(*start)
    );
    state.cursor = *slot;
    let next = next_start(watched, &state, *slot).unwrap();
    assert!(next > slot.plus_millis(20 * 3_600_000), "{next}");
    let always = Policy {
        blocked_hours: vec![1],
        ..Policy::default()
    };
    let never = Watched {
        policy: &always,
        ..watched
    };
    assert_eq!(next_start(never, &state, *slot), None);
}

#[test]
fn rows_of_one_status_grow_and_a_run_ends_them() {
    let mut state = state(0);
    let busy = |hour: i64| moment(hour * HOUR, 1, 0);
    let policy = Policy::default();
    for hour in 1..=3 {
        let (rows, _) = settle(&hourly(), &policy, &mut state, busy(hour));
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].from, at(HOUR));
        assert_eq!(rows[0].count, u64::try_from(hour).ok());
    }
    state.fired(at(4 * HOUR), SlotStatus::Ran, run(1), at(4 * HOUR));
    let (rows, _) = settle(&hourly(), &policy, &mut state, busy(5));
    assert_eq!(rows[0].from, at(5 * HOUR));
    assert_eq!((state.rows, state.actions), (3, 1));
    assert_eq!(state.totals[&SlotStatus::SkippedOverlap], 4);
}

#[test]
fn what_has_run_never_runs_again_when_the_clock_steps_back() {
    let policy = Policy::default();
    let mut state = state(0);
    let ran = state.fired(at(HOUR), SlotStatus::Ran, run(1), at(HOUR));
    let (skipped, _) = settle(&hourly(), &policy, &mut state, moment(3 * HOUR, 1, 0));
    let skipped = skipped[0].clone();
    let ahead = state.fired(at(4 * HOUR), SlotStatus::Ran, run(2), at(4 * HOUR));
    let now = at(2 * HOUR + MINUTE);
    assert!(state.is_behind(now));
    assert!(!state.is_behind(at(4 * HOUR - 5 * MINUTE)));
    let (gone, shortened) = state.rewind(&hourly(), vec![ran, skipped, ahead], now);
    assert!(gone.is_empty());
    let shortened = shortened.unwrap();
    assert_eq!((shortened.to, shortened.count), (at(2 * HOUR), Some(1)));
    assert_eq!(state.ran_ahead, [at(4 * HOUR)]);
    // The third hour comes again; the fourth has run.
    let (rows, next) = settle(&hourly(), &policy, &mut state, moment(3 * HOUR, 0, 0));
    assert_eq!((rows, next), (vec![], fires(3, SlotStatus::Ran)));
    state.fired(at(3 * HOUR), SlotStatus::Ran, run(3), at(3 * HOUR));
    let (rows, next) = settle(&hourly(), &policy, &mut state, moment(4 * HOUR, 0, 0));
    assert_eq!((rows, next), (vec![], Next::Wait(Some(at(5 * HOUR)))));
    assert_eq!(state.cursor, at(4 * HOUR));
}

#[test]
fn a_row_does_not_reach_over_a_run() {
    let policy = policy(CatchUpMode::None, 1);
    let mut state = state(0);
    state.ran_ahead = vec![at(3 * HOUR)];
    let (rows, _) = settle(
        &hourly(),
        &policy,
        &mut state,
        moment(6 * HOUR + 2 * MINUTE, 0, 0),
    );
    let hours: Vec<(i64, i64)> = rows
        .iter()
        .map(|row| (row.from.millis() / HOUR, row.to.millis() / HOUR))
        .collect();
    assert_eq!(hours, [(1, 2), (4, 6)]);
    assert!(state.ran_ahead.is_empty());
}

#[test]
fn failures_in_a_row_pause_it() {
    let policy = Policy {
        pause_on_failure: Some(2),
        ..Policy::default()
    };
    let failed = Outcome::Failed {
        failure: Failure::new(Step::Execute, "exit_code", "1"),
    };
    let mut state = state(0);
    for outcome in [&failed, &Outcome::Succeeded, &failed, &Outcome::Cancelled] {
        state.ended(&policy, outcome, at(1));
        assert_eq!(state.pause, None);
    }
    state.ended(&policy, &failed, at(2));
    let pause = state.pause.clone().unwrap();
    assert_eq!(pause.reason, "2 failures in a row");
    assert_eq!(state.succeeded_at, Some(at(1)));
}
