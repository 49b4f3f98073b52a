//! Schedules in the loop: rows, state and run in one commit, whatever happens between.

use std::ops::ControlFlow;

use super::super::super::request::Request;
use super::bench::*;
use super::*;
use crate::model::Place;
use crate::model::SkillRef;
use crate::model::schedule::{
    Overlap, Pause, Policy, Schedule, ScheduleState, SlotRow, SlotStatus, Trigger,
};

pub(crate) const HOUR_MS: u64 = 3_600_000;

pub(crate) fn hourly(policy: Policy) -> Schedule {
    Schedule {
        id: "w/s".into(),
        skill: Arc::new(SkillRef {
            worker: "w".to_owned(),
            skill: "s".to_owned(),
        }),
        trigger: Arc::new(Trigger::Every { period_ms: HOUR_MS }),
        timezone: "UTC".into(),
        inputs: Arc::default(),
        policy: Arc::new(policy),
        disabled: false,
        place: Place {
            path: "workers/w/worker.yaml".into(),
            line: 1,
            column: 1,
        },
    }
}

pub(super) fn put(bench: &mut Bench, schedules: Vec<Schedule>) {
    let schedules = schedules.into_iter().map(Arc::new).collect();
    let answer = bench.ask(Request::Schedules(schedules));
    bench.turn().unwrap();
    assert!(matches!(answer.try_recv(), Ok(Ok(Answer::Done))));
}

pub(super) fn rows(store: &MemoryStore) -> Vec<SlotRow> {
    let mut rows = Vec::new();
    let mut take = |row: Result<SlotRow, crate::store::Unreadable>| {
        rows.push(row.unwrap());
        ControlFlow::Continue(())
    };
    store.slots("w/s", None, &mut take).unwrap();
    rows.reverse();
    rows
}

pub(crate) fn statuses(store: &MemoryStore) -> Vec<SlotStatus> {
    rows(store).iter().map(|row| row.status).collect()
}

pub(super) fn state(store: &MemoryStore) -> ScheduleState {
    let mut found = None;
    let mut take = |_: &str, state: Result<ScheduleState, _>| found = state.ok();
    store.schedules(&mut take).unwrap();
    found.unwrap()
}

/// Turns until the newest row is of this status.
pub(super) fn turn_until(bench: &mut Bench, store: &MemoryStore, count: usize) {
    for _ in 0..10_000 {
        if rows(store).len() >= count && bench.core.preparing == 0 {
            return;
        }
        bench.turn().unwrap();
        std::thread::yield_now();
    }
    panic!("no row number {count}: {:?}", rows(store));
}

#[test]
fn a_due_time_runs_once_and_its_row_names_the_run() {
    let (store, world) = (MemoryStore::new(), Arc::default());
    let mut bench = bench(&store, &world, Vec::new());
    put(&mut bench, vec![hourly(Policy::default())]);
    assert_eq!(bench.core.next_wait(), TICK);
    bench.clock.advance(HOUR_MS - 1_000);
    bench.core.turn(Mail::default()).unwrap();
    assert_eq!(bench.core.next_wait(), Duration::from_secs(1));
    assert!(rows(&store).is_empty());
    bench.clock.advance(1_000);
    turn_until(&mut bench, &store, 1);
    let row = rows(&store).remove(0);
    assert_eq!((row.status, row.count), (SlotStatus::Ran, Some(1)));
    let run = row.run.unwrap();
    assert_eq!(row.from, state(&store).cursor);
    let spec = store.spec(run).unwrap().unwrap();
    assert_eq!(spec.scheduled.unwrap().slot, row.from);
    bench.settle(run).unwrap();
    assert_eq!(world.lock().unwrap().executed.len(), 1);
    assert!(state(&store).succeeded_at.is_some());
}

#[test]
fn an_engine_that_is_lost_at_any_commit_of_a_due_time_runs_it_once() {
    let mut crashes = 0;
    for place in [
        FaultPlace::BeforeApply,
        FaultPlace::BeforeSync,
        FaultPlace::AfterSync,
    ] {
        for nth in 1..6 {
            let (store, world) = (MemoryStore::new(), Arc::<Mutex<World>>::default());
            let mut first = bench(&store, &world, Vec::new());
            put(&mut first, vec![hourly(Policy::default())]);
            store.fail_nth(nth, InjectedFault::Broken, place);
            first.clock.advance(HOUR_MS);
            let mut lost = false;
            while !lost && world.lock().unwrap().closed.is_empty() {
                lost = first.turn().is_err();
            }
            if !lost {
                // It has fewer commits than that.
                first.core.pool.close();
                continue;
            }
            crashes += 1;
            let now = first.clock.now();
            first.core.pool.close();
            store.power_cut(0).unwrap();
            let mut next = bench(&store, &world, Vec::new());
            next.clock.step(now.millis() - next.clock.now().millis());
            next.recover(&store).unwrap();
            put(&mut next, vec![hourly(Policy::default())]);
            turn_until(&mut next, &store, 1);
            let rows = rows(&store);
            assert_eq!(rows.len(), 1, "commit {nth} {place:?}");
            assert_eq!(rows[0].status, SlotStatus::Ran);
            let run = rows[0].run.unwrap();
            if next.core.holds(run) {
                next.settle(run).unwrap();
            }
            assert_eq!(stored(&store, run).outcome, Some(Outcome::Succeeded));
            next.core.pool.close();
        }
    }
    assert!(crashes >= 6, "{crashes} crashes");
}

#[test]
fn a_run_that_goes_on_is_skipped_over_or_waited_for() {
    for (overlap, wanted) in [
        (
            Overlap::Skip,
            vec![SlotStatus::Ran, SlotStatus::SkippedOverlap],
        ),
        (Overlap::BufferOne, vec![SlotStatus::Ran, SlotStatus::Ran]),
        (Overlap::CancelOther, vec![SlotStatus::Ran, SlotStatus::Ran]),
    ] {
        let (store, world) = (MemoryStore::new(), Arc::default());
        let mut bench = bench(&store, &world, vec!["execute"]);
        let policy = Policy {
            overlap,
            ..Policy::default()
        };
        put(&mut bench, vec![hourly(policy)]);
        bench.clock.advance(HOUR_MS);
        turn_until(&mut bench, &store, 1);
        bench.clock.advance(HOUR_MS);
        turn_until(&mut bench, &store, 2);
        assert_eq!(statuses(&store), wanted, "{overlap:?}");
        let first = rows(&store)[0].run.unwrap();
        let stopped = bench.core.live[&first].run.stop_wanted();
        assert_eq!(stopped.is_some(), overlap == Overlap::CancelOther);
        for row in rows(&store) {
            let Some(run) = row.run else { continue };
            let _answer = bench.ask(Request::Cancel {
                run,
                kind: CancelKind::Now,
                by: "a test".to_owned(),
            });
            bench.settle(run).unwrap();
        }
        assert!(world.lock().unwrap().out_of_order.is_empty());
    }
}

#[test]
fn what_cannot_run_as_it_is_says_why_and_the_next_is_tried() {
    let (store, world) = (MemoryStore::new(), Arc::default());
    let mut bench = bench(&store, &world, Vec::new());
    let mut broken = hourly(Policy::default());
    Arc::make_mut(&mut broken.inputs).insert("refused".to_owned(), true.into());
    put(&mut bench, vec![broken]);
    bench.clock.advance(HOUR_MS);
    turn_until(&mut bench, &store, 1);
    let row = rows(&store).remove(0);
    assert_eq!(row.status, SlotStatus::BlockedConfig);
    assert_eq!(row.reason.as_deref(), Some("no such input"));
    put(&mut bench, vec![hourly(Policy::default())]);
    bench.clock.advance(HOUR_MS);
    turn_until(&mut bench, &store, 2);
    assert_eq!(
        statuses(&store),
        [SlotStatus::BlockedConfig, SlotStatus::Ran]
    );
}

#[test]
fn a_pause_is_kept_over_engines_and_covers_what_was_due() {
    let (store, world) = (MemoryStore::new(), Arc::default());
    let mut first = bench(&store, &world, Vec::new());
    put(&mut first, vec![hourly(Policy::default())]);
    let pause = Pause {
        reason: "a holiday".to_owned(),
        by: "ada".to_owned(),
        at: first.clock.now(),
    };
    let answer = first.ask(Request::Pause {
        schedule: "w/s".to_owned(),
        pause: Some(pause),
    });
    first.turn().unwrap();
    assert!(matches!(answer.try_recv(), Ok(Ok(Answer::Done))));
    let unknown = first.ask(Request::Pause {
        schedule: "w/t".to_owned(),
        pause: None,
    });
    first.turn().unwrap();
    let refused = unknown.try_recv().unwrap().unwrap_err();
    assert_eq!(refused.code, "schedule_not_found");
    let now = first.clock.now();
    first.core.pool.close();
    store.power_cut(0).unwrap();
    let mut next = bench(&store, &world, Vec::new());
    next.clock.step(now.millis() - next.clock.now().millis());
    put(&mut next, vec![hourly(Policy::default())]);
    next.clock.advance(3 * HOUR_MS);
    turn_until(&mut next, &store, 1);
    let row = rows(&store).remove(0);
    assert_eq!((row.status, row.count), (SlotStatus::Paused, Some(3)));
    assert_eq!(row.reason.as_deref(), Some("a holiday"));
}

#[test]
fn what_is_due_at_once_is_shared_out_between_workers() {
    let (store, world) = (MemoryStore::new(), Arc::default());
    let mut bench = bench(&store, &world, Vec::new());
    let of = |worker: &str, number: u32| Schedule {
        id: format!("{worker}/{number}").into(),
        skill: Arc::new(SkillRef {
            worker: worker.to_owned(),
            skill: number.to_string(),
        }),
        ..hourly(Policy::default())
    };
    let schedules = |workers: &[(&str, u32)]| {
        let all = workers.iter();
        all.flat_map(|(worker, count)| (1..=*count).map(|number| of(worker, number)))
            .collect::<Vec<_>>()
    };
    put(&mut bench, schedules(&[("a", 3), ("b", 1), ("c", 2)]));
    bench.turn().unwrap();
    let in_turn = bench.core.scheduler.in_turn().join(" ");
    assert_eq!(in_turn, "a/1 b/1 c/1 a/2 c/2 a/3");
    // One that goes lets those behind it move up.
    put(&mut bench, schedules(&[("a", 3), ("c", 2)]).split_off(1));
    bench.turn().unwrap();
    assert_eq!(bench.core.scheduler.in_turn().join(" "), "a/2 c/1 a/3 c/2");
}

#[test]
fn a_due_time_of_an_engine_that_ends_is_not_waited_for_again_and_again() {
    let (store, world) = (MemoryStore::new(), Arc::default());
    let mut bench = bench(&store, &world, vec!["execute"]);
    put(&mut bench, vec![hourly(Policy::default())]);
    bench.clock.advance(HOUR_MS);
    turn_until(&mut bench, &store, 1);
    while world.lock().unwrap().executed.is_empty() {
        bench.turn().unwrap();
    }
    let _drained = bench.ask(Request::Drain);
    bench.turn().unwrap();
    bench.core.drain_grace_ms = 10 * HOUR_MS;
    bench.clock.advance(HOUR_MS);
    bench.core.turn(Mail::default()).unwrap();
    assert_eq!(bench.core.next_wait(), TICK);
}

#[test]
fn a_schedule_that_goes_and_comes_back_counts_from_then() {
    let (store, world) = (MemoryStore::new(), Arc::default());
    let mut bench = bench(&store, &world, Vec::new());
    put(&mut bench, vec![hourly(Policy::default())]);
    put(&mut bench, Vec::new());
    assert!(state(&store).closed.is_some());
    bench.clock.advance(5 * HOUR_MS);
    bench.turn().unwrap();
    put(&mut bench, vec![hourly(Policy::default())]);
    let state = state(&store);
    assert_eq!(state.closed, None);
    assert_eq!(state.cursor, bench.clock.now());
    assert!(rows(&store).is_empty());
}

#[test]
fn what_waits_when_a_schedule_changes_or_goes_has_its_row() {
    for is_removed in [true, false] {
        let (store, world) = (MemoryStore::new(), Arc::default());
        let mut bench = bench(&store, &world, Vec::new());
        let policy = Policy {
            jitter_ms: 1_000 * HOUR_MS,
            ..Policy::default()
        };
        let begun = bench.clock.now();
        let times = (1..=3).map(|hours| begun.plus_millis(hours * HOUR_MS).rfc3339());
        let mut listed = hourly(policy);
        listed.trigger = Arc::new(Trigger::At {
            times: times.collect(),
            dst: None,
        });
        put(&mut bench, vec![listed]);
        bench.clock.advance(3 * HOUR_MS);
        bench.turn().unwrap();
        let decided: u64 = rows(&store).iter().filter_map(|row| row.count).sum();
        let mut other = hourly(Policy::default());
        other.trigger = Arc::new(Trigger::Every {
            period_ms: 2 * HOUR_MS,
        });
        put(&mut bench, if is_removed { vec![] } else { vec![other] });
        let covered: u64 = rows(&store).iter().filter_map(|row| row.count).sum();
        assert_eq!((decided, covered), (0, 3), "{is_removed}");
        assert_eq!(statuses(&store), [SlotStatus::BlockedConfig]);
    }
}

#[test]
fn due_times_beyond_the_last_action_do_not_come_back() {
    let (store, world) = (MemoryStore::new(), Arc::default());
    let mut bench = bench(&store, &world, Vec::new());
    let most = |most| {
        hourly(Policy {
            max_actions: Some(most),
            ..Policy::default()
        })
    };
    put(&mut bench, vec![most(1)]);
    bench.clock.advance(HOUR_MS);
    turn_until(&mut bench, &store, 1);
    bench.settle(rows(&store)[0].run.unwrap()).unwrap();
    bench.clock.advance(5 * HOUR_MS);
    put(&mut bench, vec![most(5)]);
    bench.turn().unwrap();
    assert_eq!(statuses(&store), [SlotStatus::Ran]);
    bench.clock.advance(HOUR_MS);
    turn_until(&mut bench, &store, 2);
    assert_eq!(statuses(&store), [SlotStatus::Ran, SlotStatus::Ran]);
}

#[test]
fn a_run_that_ends_while_its_schedule_is_removed_is_counted() {
    let (store, world) = (MemoryStore::new(), Arc::default());
    let mut bench = bench(&store, &world, vec!["execute"]);
    let mut limited = hourly(Policy::default());
    Arc::make_mut(&mut limited.inputs).insert("max_runtime_ms".to_owned(), 60_000.into());
    put(&mut bench, vec![limited.clone()]);
    bench.clock.advance(HOUR_MS);
    turn_until(&mut bench, &store, 1);
    let run = rows(&store)[0].run.unwrap();
    put(&mut bench, Vec::new());
    while bench.core.live[&run].outstanding.is_none() {
        bench.turn().unwrap();
    }
    bench.clock.advance(60_000);
    bench.settle(run).unwrap();
    assert_eq!(state(&store).failures, 1);
    put(&mut bench, vec![limited]);
    assert_eq!(state(&store).failures, 1);
}

#[test]
fn a_run_that_an_engine_without_schedules_settles_is_counted() {
    let (store, world) = (MemoryStore::new(), Arc::<Mutex<World>>::default());
    let mut daemon = bench(&store, &world, Vec::new());
    put(&mut daemon, vec![hourly(Policy::default())]);
    daemon.clock.advance(HOUR_MS);
    turn_until(&mut daemon, &store, 1);
    let run = rows(&store)[0].run.unwrap();
    daemon.core.pool.close();
    world.lock().unwrap().execution_code = 1;
    let mut other = bench(&store, &world, Vec::new());
    other.recover(&store).unwrap();
    other.settle(run).unwrap();
    assert_eq!(state(&store).failures, 1);
}

/// How many slots the store counts in all, and how many its rows cover.
fn counted(store: &MemoryStore) -> (u64, u64) {
    let mut slots = 0;
    let mut take = |_, counts: crate::protocol::SlotCounts| {
        slots += counts
            .statuses()
            .values()
            .map(|count| u64::from(*count))
            .sum::<u64>();
    };
    let (from, to) = ("2000-01-01", "2100-01-01");
    let at = |text| Timestamp::parse(text).unwrap();
    store
        .slot_counts(None, at(from), at(to), &mut take)
        .unwrap();
    let rows = rows(store);
    (slots, rows.iter().filter_map(|row| row.count).sum())
}

#[test]
fn slots_that_come_again_because_the_clock_was_stepped_back_count_once() {
    let (store, world) = (MemoryStore::new(), Arc::default());
    let mut bench = bench(&store, &world, Vec::new());
    let mut policy = Policy::default();
    policy.catch_up.mode = crate::model::schedule::CatchUpMode::None;
    put(&mut bench, vec![hourly(policy)]);
    bench.clock.advance(5 * HOUR_MS + 120_000);
    turn_until(&mut bench, &store, 1);
    assert_eq!(counted(&store), (5, 5));
    for (hours, left) in [(2, 3), (3, 0)] {
        bench.clock.step(-hours * HOUR_MS.cast_signed());
        for _ in 0..3 {
            bench.turn().unwrap();
        }
        assert_eq!(counted(&store), (left, left));
    }
    bench.clock.step(5 * HOUR_MS.cast_signed());
    turn_until(&mut bench, &store, 1);
    assert_eq!(counted(&store), (5, 5));
}
