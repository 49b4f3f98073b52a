//! Runs of schedules that a person asks for.

use super::bench::*;
use super::schedules::*;
use super::*;
use crate::model::schedule::{Occurrence, Overlap, Pause, Policy, SlotRow, SlotStatus};
use crate::protocol::SlotView;
use crate::request::{ManualTrigger, Request};
use crate::schedule::Overrides;
use crate::store::{Batch, Write};

const HOUR: i64 = 3_600_000;

/// Asks for a run of the schedule now, or for a slot.
fn trigger(
    bench: &mut Bench,
    slot: Option<Timestamp>,
    overlap: Option<Overlap>,
    overrides: Overrides,
) -> Result<SlotView, Diagnostic> {
    let at = slot.unwrap_or_else(|| bench.clock.now());
    let factory = FakeDesk(
        Arc::clone(&bench.clock),
        Arc::clone(&bench.sight),
        MemoryStore::new(),
    );
    let schedule = hourly(Policy {
        overlap: overlap.unwrap_or_default(),
        ..Policy::default()
    });
    let due = Occurrence { at, after: None };
    let submission = factory.prepare(&schedule, due).unwrap();
    let answer = bench.ask(Request::Trigger(Box::new(ManualTrigger {
        schedule: "w/s".to_owned(),
        submission,
        slot: at,
        is_past: slot.is_some(),
        overlap,
        overrides,
    })));
    bench.turn().unwrap();
    match answer.try_recv().unwrap()? {
        Answer::Slot(row) => Ok(row),
        other => panic!("{other:?}"),
    }
}

/// Pauses the schedule for a holiday, or lets it go on.
fn pause(bench: &mut Bench, wanted: bool) {
    let pause = wanted.then(|| Pause {
        reason: "a holiday".to_owned(),
        by: "ada".to_owned(),
        at: bench.clock.now(),
    });
    let _answer = bench.ask(Request::Pause {
        schedule: "w/s".to_owned(),
        pause,
    });
    bench.turn().unwrap();
}

fn spans(rows: &[SlotRow], from: Timestamp) -> Vec<(i64, i64, SlotStatus, Option<u64>)> {
    let hours = |at: Timestamp| (at.millis() - from.millis()) / HOUR;
    rows.iter()
        .map(|row| (hours(row.from), hours(row.to), row.status, row.count))
        .collect()
}

#[test]
fn a_run_now_has_its_row_and_leaves_the_due_times_alone() {
    let (store, world) = (MemoryStore::new(), Arc::default());
    let mut bench = bench(&store, &world, Vec::new());
    put(&mut bench, vec![hourly(Policy::default())]);
    bench.clock.advance(HOUR_MS / 2);
    let row = trigger(&mut bench, None, None, Overrides::default()).unwrap();
    assert_eq!(row.status, SlotStatus::Ran);
    bench.settle(row.run.unwrap()).unwrap();
    bench.clock.advance(HOUR_MS);
    turn_until(&mut bench, &store, 2);
    assert_eq!(statuses(&store).len(), 2);
    assert_eq!(state(&store).actions, 2);
}

#[test]
fn policies_speak_against_a_run_now_and_can_be_set_aside() {
    let (store, world) = (MemoryStore::new(), Arc::default());
    let mut bench = bench(&store, &world, vec!["execute"]);
    let policy = Policy {
        max_actions: Some(1),
        ..Policy::default()
    };
    put(&mut bench, vec![hourly(policy)]);
    bench.clock.advance(1_000);
    trigger(&mut bench, None, None, Overrides::default()).unwrap();
    bench.clock.advance(1_000);
    let refused = trigger(&mut bench, None, None, Overrides::default()).unwrap_err();
    assert_eq!(
        (refused.kind, refused.code.as_str()),
        (Kind::Blocked, "used_up")
    );
    let overrides = Overrides {
        max_actions: true,
        ..Overrides::default()
    };
    let refused = trigger(&mut bench, None, None, overrides).unwrap_err();
    assert_eq!(refused.code, "overlap");
    bench.clock.advance(1_000);
    trigger(&mut bench, None, Some(Overlap::BufferOne), overrides).unwrap();
    bench.clock.advance(1_000);
    let refused = trigger(&mut bench, None, Some(Overlap::BufferOne), overrides).unwrap_err();
    assert_eq!(refused.code, "overlap");
    pause(&mut bench, true);
    let refused = trigger(&mut bench, None, Some(Overlap::AllowAll), overrides).unwrap_err();
    assert_eq!(refused.code, "paused");
    assert!(refused.message.contains("a holiday"), "{refused}");
}

#[test]
fn a_full_queue_refuses_a_run_now_and_keeps_the_record_as_it_is() {
    let (store, world) = (MemoryStore::new(), Arc::default());
    let mut bench = bench(&store, &world, vec!["execute"]);
    put(&mut bench, vec![hourly(Policy::default())]);
    let mut refused = None;
    for _ in 0..12 {
        bench.clock.advance(1_000);
        refused = trigger(
            &mut bench,
            None,
            Some(Overlap::BufferAll),
            Overrides::default(),
        )
        .err();
        if refused.is_some() {
            break;
        }
    }
    assert_eq!(refused.unwrap().code, "queue_full");
    let made = state(&store).actions;
    assert_eq!(u64::try_from(rows(&store).len()).unwrap(), made);
}

/// An hourly schedule that has been paused over five slots, and when that began.
fn paused_for_five_hours(store: &MemoryStore, world: &Arc<Mutex<World>>) -> (Bench, Timestamp) {
    let mut bench = bench(store, world, Vec::new());
    let begun = bench.clock.now();
    put(&mut bench, vec![hourly(Policy::default())]);
    pause(&mut bench, true);
    bench.clock.advance(5 * HOUR_MS);
    (bench, begun)
}

#[test]
fn due_times_of_the_past_run_after_all_and_each_keeps_one_row() {
    let (store, world) = (MemoryStore::new(), Arc::default());
    let (mut bench, begun) = paused_for_five_hours(&store, &world);
    pause(&mut bench, false);
    turn_until(&mut bench, &store, 1);
    assert_eq!(
        spans(&rows(&store), begun),
        [(1, 5, SlotStatus::Paused, Some(5))]
    );
    let at = |hour: i64| Some(Timestamp::from_millis(begun.millis() + hour * HOUR));
    let all = Some(Overlap::BufferAll);
    let mut backfill = |hour| trigger(&mut bench, at(hour), all, Overrides::default());
    let row = backfill(3).unwrap();
    assert_eq!(row.status, SlotStatus::Backfilled);
    let again = backfill(3).unwrap_err();
    assert_eq!(again.code, "has_run");
    assert_eq!(backfill(6).unwrap_err().code, "not_decided");
    backfill(1).unwrap();
    backfill(5).unwrap();
    assert_eq!(
        spans(&rows(&store), begun),
        [
            (1, 1, SlotStatus::Backfilled, Some(1)),
            (2, 2, SlotStatus::Paused, Some(1)),
            (3, 3, SlotStatus::Backfilled, Some(1)),
            (4, 4, SlotStatus::Paused, Some(1)),
            (5, 5, SlotStatus::Backfilled, Some(1)),
        ]
    );
    let known = state(&store);
    assert_eq!(known.rows, 5);
    assert_eq!(known.totals[&SlotStatus::Paused], 2);
    assert_eq!(known.totals[&SlotStatus::Backfilled], 3);
    // Before the schedule was known nothing was due, and it may run all the same.
    let before = trigger(&mut bench, at(-2), all, Overrides::default()).unwrap();
    assert_eq!(before.status, SlotStatus::Backfilled);
    let odd = Some(Timestamp::from_millis(begun.millis() + HOUR / 2));
    let refused = trigger(&mut bench, odd, all, Overrides::default()).unwrap_err();
    assert_eq!(refused.code, "no_due_time");
}

#[test]
fn a_run_for_later_waits_for_its_time_over_engines_and_can_be_cancelled() {
    let (store, world) = (MemoryStore::new(), Arc::<Mutex<World>>::default());
    let mut first = bench(&store, &world, Vec::new());
    let later = |number: u128, hours: u64, now: Timestamp| {
        let mut made = spec(number, plan(false)).as_ref().clone();
        made.not_before = Some(now.plus_millis(hours * HOUR_MS));
        Arc::new(made)
    };
    let now = first.clock.now();
    let (early, late) = (later(1, 1, now), later(2, 2, now));
    let _answers = (first.submit(&early, None), first.submit(&late, None));
    first.turn().unwrap();
    let waiting = first
        .view
        .run(early.run)
        .unwrap()
        .summary
        .waiting_for
        .clone();
    assert!(waiting.unwrap().starts_with("its time: "));
    first.core.pool.close();
    store.power_cut(0).unwrap();
    let mut next = bench(&store, &world, Vec::new());
    next.recover(&store).unwrap();
    let other = spec(3, plan(false));
    let _answer = next.submit(&other, None);
    next.turn().unwrap();
    // It stands in nobody's way.
    next.settle(other.run).unwrap();
    assert_eq!(world.lock().unwrap().executed.len(), 1);
    next.clock.advance(HOUR_MS);
    next.settle(early.run).unwrap();
    assert_eq!(world.lock().unwrap().executed.len(), 2);
    let _answer = next.ask(Request::Cancel {
        run: late.run,
        kind: CancelKind::Graceful,
        by: "ada".to_owned(),
    });
    next.turn().unwrap();
    next.settle(late.run).unwrap();
    assert_eq!(stored(&store, late.run).outcome, Some(Outcome::Cancelled));
    next.clock.advance(3 * HOUR_MS);
    next.turn().unwrap();
    assert_eq!(world.lock().unwrap().executed.len(), 2);
}

#[test]
fn two_runs_at_one_instant_do_not_share_a_row() {
    let (store, world) = (MemoryStore::new(), Arc::default());
    let mut bench = bench(&store, &world, Vec::new());
    put(&mut bench, vec![hourly(Policy::default())]);
    bench.clock.advance(1_000);
    let all = Some(Overlap::AllowAll);
    let first = trigger(&mut bench, None, all, Overrides::default()).unwrap();
    let refused = trigger(&mut bench, None, all, Overrides::default()).unwrap_err();
    assert_eq!(refused.code, "busy");
    assert_eq!(rows(&store).len(), 1);
    assert_eq!(rows(&store)[0].run, first.run);
}

#[test]
fn rows_of_another_definition_are_not_divided() {
    let (store, world) = (MemoryStore::new(), Arc::default());
    let (mut bench, begun) = paused_for_five_hours(&store, &world);
    let mut other = hourly(Policy::default());
    other.trigger = Arc::new(crate::model::schedule::Trigger::Every {
        period_ms: 2 * HOUR_MS,
    });
    put(&mut bench, vec![other]);
    let before = rows(&store);
    assert_eq!(spans(&before, begun), [(1, 5, SlotStatus::Paused, Some(5))]);
    pause(&mut bench, false);
    let at = Some(Timestamp::from_millis(begun.millis() + 3 * HOUR));
    let all = Some(Overlap::BufferAll);
    let refused = trigger(&mut bench, at, all, Overrides::default()).unwrap_err();
    assert_eq!(refused.code, "other_definition");
    assert_eq!(rows(&store), before);
}

/// A schedule whose definition changed: only the row that lies before a slot is looked at, or so many runs.
#[test]
fn what_another_definition_left_is_not_looked_through() {
    let (store, world) = (MemoryStore::new(), Arc::default());
    let mut bench = bench(&store, &world, Vec::new());
    let every = |period_ms: u64| {
        let mut schedule = hourly(Policy::default());
        schedule.trigger = crate::model::schedule::Trigger::Every { period_ms }.into();
        schedule
    };
    put(&mut bench, vec![every(1_000 * HOUR_MS)]);
    let begun = bench.clock.now();
    let minute = |number: i64| Timestamp::from_millis(begun.millis() + number * 60_000);
    let ran = |number: i64| Write::Slot {
        schedule: "w/s".to_owned(),
        row: SlotRow {
            run: Some(RunId::following(None, minute(number), 1)),
            ..SlotRow::one(minute(number), SlotStatus::Ran, minute(number))
        },
    };
    let mut left = Batch::default();
    left.writes.extend((1..900).map(ran));
    store.commit(&left).unwrap();
    bench.clock.advance(24 * HOUR_MS);
    put(&mut bench, vec![every(HOUR_MS / 7)]);
    let anchor = state(&store).anchor;
    let due = |periods: i64| {
        let period = i64::try_from(HOUR_MS / 7).unwrap();
        Some(Timestamp::from_millis(anchor.millis() - periods * period))
    };
    let all = Some(Overlap::BufferAll);
    let at = due(50).unwrap();
    assert!(at > minute(900), "all runs lie before it");
    let refused = trigger(&mut bench, due(50), all, Overrides::default()).unwrap_err();
    assert_eq!(refused.code, "other_definition");
    // So few runs are looked through.
    let early = (0..10_000)
        .find(|n| due(*n).unwrap() < minute(400))
        .unwrap();
    let row = trigger(&mut bench, due(early), all, Overrides::default()).unwrap();
    assert_eq!(row.status, SlotStatus::Backfilled);
}
