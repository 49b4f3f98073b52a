//! Schedules at their limits: a full queue, a ledger that is shortened, very many slots, very many schedules.

use super::super::super::request::Request;
use super::bench::*;
use super::schedules::{HOUR_MS, hourly, put, rows, state, statuses, turn_until};
use super::*;
use crate::model::schedule::{
    CatchUp, CatchUpMode, Overlap, Policy, Schedule, SlotRow, SlotStatus, Trigger,
};
use crate::scheduler::EVALUATIONS_MAX;
use crate::store::{Batch, Write};
use crate::stored_schedules::StoredSchedules;

/// Rows that a ledger keeps.
const KEPT: u64 = 10_000;

/// Rows that are there before one more makes some go.
const FULL: u64 = KEPT + 100;

#[test]
fn a_full_queue_keeps_a_due_time_and_it_runs_when_there_is_room() {
    let (store, world) = (MemoryStore::new(), Arc::default());
    let mut bench = bench(&store, &world, vec!["execute"]);
    let policy = Policy {
        overlap: Overlap::AllowAll,
        ..Policy::default()
    };
    put(&mut bench, vec![hourly(policy)]);
    let mut taken = Vec::new();
    let refused = loop {
        let spec = spec(100 + taken.len() as u128, plan(false));
        let answer = bench.submit(&spec, None);
        bench.turn().unwrap();
        match answer.try_recv().unwrap() {
            Ok(_) => taken.push(spec.run),
            Err(refused) => break refused,
        }
    };
    assert_eq!(refused.code, "queue_full");
    let before = state(&store);
    bench.clock.advance(HOUR_MS);
    bench.turn().unwrap();
    for _ in 0..100 {
        if bench.core.preparing == 0 {
            break;
        }
        bench.turn().unwrap();
    }
    assert_eq!(bench.core.preparing, 0);
    assert!(rows(&store).is_empty());
    assert_eq!(state(&store), before);
    // It is tried again by itself, and still there is no room.
    let wait = bench.core.next_wait();
    assert!(
        wait > Duration::ZERO && wait <= Duration::from_secs(5),
        "{wait:?}"
    );
    for run in &taken {
        let _answer = bench.ask(Request::Cancel {
            run: *run,
            kind: CancelKind::Now,
            by: "a test".to_owned(),
        });
        bench.turn().unwrap();
    }
    for run in taken {
        bench.settle(run).unwrap();
    }
    turn_until(&mut bench, &store, 1);
    let row = rows(&store).remove(0);
    assert_eq!((row.status, row.count), (SlotStatus::Ran, Some(1)));
    assert_eq!(row.from, before.anchor.plus_millis(HOUR_MS));
}

#[test]
fn a_due_time_that_never_found_room_says_so() {
    let (store, world) = (MemoryStore::new(), Arc::default());
    let mut bench = bench(&store, &world, vec!["execute"]);
    let policy = Policy {
        overlap: Overlap::AllowAll,
        catch_up: CatchUp {
            mode: CatchUpMode::None,
            ..CatchUp::default()
        },
        ..Policy::default()
    };
    put(&mut bench, vec![hourly(policy)]);
    for number in 0..20 {
        let _answer = bench.submit(&spec(100 + number, plan(false)), None);
        bench.turn().unwrap();
    }
    bench.clock.advance(HOUR_MS);
    bench.turn().unwrap();
    while bench.core.preparing > 0 {
        bench.turn().unwrap();
    }
    assert!(rows(&store).is_empty());
    bench.clock.advance(2 * 60_000);
    turn_until(&mut bench, &store, 1);
    let row = rows(&store).remove(0);
    assert_eq!((row.status, row.count), (SlotStatus::Missed, Some(1)));
    let why = row.reason.unwrap();
    assert!(why.contains("wait"), "{why}");
}

#[test]
fn old_rows_go_and_stay_counted() {
    let (store, world) = (MemoryStore::new(), Arc::default());
    let mut first = bench(&store, &world, Vec::new());
    put(&mut first, vec![hourly(Policy::default())]);
    first.core.pool.close();
    let mut kept = state(&store);
    let at = |hours: u64| kept.anchor.plus_millis(hours * HOUR_MS);
    let status = |hours: u64| match hours % 2 {
        0 => SlotStatus::Paused,
        _ => SlotStatus::SkippedOverlap,
    };
    let writes = (1..=FULL).map(|hours| Write::Slot {
        schedule: "w/s".to_owned(),
        row: SlotRow::one(at(hours), status(hours), at(hours)),
    });
    let writes = writes.collect();
    let (last, now) = (at(FULL), at(FULL + 1));
    store.commit(&Batch { writes }).unwrap();
    kept.cursor = last;
    kept.rows = FULL;
    kept.totals = [
        (SlotStatus::Paused, FULL / 2),
        (SlotStatus::SkippedOverlap, FULL / 2),
    ]
    .into();
    let anchor = kept.anchor;
    let writes = vec![Write::Schedule {
        id: "w/s".to_owned(),
        state: Box::new(kept),
    }];
    store.commit(&Batch { writes }).unwrap();
    let mut next = bench(&store, &world, Vec::new());
    next.clock.step(now.millis() - next.clock.now().millis());
    put(&mut next, vec![hourly(Policy::default())]);
    for _ in 0..1_000 {
        if state(&store).cursor == now && next.core.preparing == 0 {
            break;
        }
        next.turn().unwrap();
    }
    let state = state(&store);
    let rows = rows(&store);
    assert_eq!(rows.last().unwrap().from, now);
    assert_eq!(rows.len() as u64, state.rows);
    assert_eq!(state.rows, KEPT + 1);
    // What went is exactly what lies before the first row that is left.
    let gone = FULL - KEPT;
    assert_eq!(rows[0].from, anchor.plus_millis((gone + 1) * HOUR_MS));
    let until = anchor.plus_millis(gone * HOUR_MS);
    assert_eq!(state.trimmed_until, Some(until));
    assert_eq!(state.totals[&SlotStatus::Paused], FULL / 2);
    assert_eq!(state.totals[&SlotStatus::SkippedOverlap], FULL / 2);
    assert_eq!(state.totals[&SlotStatus::Ran], 1);
}

#[test]
fn very_many_times_leave_the_state_small() {
    let (store, world) = (MemoryStore::new(), Arc::default());
    let mut bench = bench(&store, &world, Vec::new());
    let begin = bench.clock.now();
    let time = |minutes: u64| begin.plus_millis(minutes * 60_000).rfc3339();
    let listed = |count: u64| Schedule {
        trigger: Arc::new(Trigger::At {
            times: (1..=count).map(time).collect(),
            dst: None,
        }),
        ..hourly(Policy::default())
    };
    put(&mut bench, vec![listed(1_000)]);
    let first = state(&store);
    assert!(serde_json::to_string(&first).unwrap().len() < 512);
    bench.clock.advance(60_000);
    turn_until(&mut bench, &store, 1);
    assert_eq!(statuses(&store), [SlotStatus::Ran]);
    assert!(serde_json::to_string(&state(&store)).unwrap().len() < 512);
    // One time less, and the schedule counts from now on.
    put(&mut bench, vec![listed(999)]);
    assert_ne!(state(&store).digest, first.digest);
}

/// A schedule of many.
fn one_of_many(number: u64) -> Schedule {
    Schedule {
        id: format!("w/s#{number}").into(),
        ..hourly(Policy::default())
    }
}

#[test]
fn a_reload_writes_what_has_changed_and_leaves_the_others_alone() {
    let (store, world) = (MemoryStore::new(), Arc::default());
    let mut bench = bench(&store, &world, Vec::new());
    put(&mut bench, (0..2_500).map(one_of_many).collect());
    while bench.core.next_wait() == Duration::ZERO {
        bench.turn().unwrap();
    }
    bench.clock.advance(60_000);
    let mut changed: Vec<_> = (0..2_500).map(one_of_many).collect();
    changed[7].trigger = Arc::new(Trigger::Every {
        period_ms: 2 * HOUR_MS,
    });
    // What says nothing of slots changes none of them.
    changed[8].policy = Arc::new(Policy {
        overlap: Overlap::BufferOne,
        ..Policy::default()
    });
    let changed: Vec<_> = changed.into_iter().map(Arc::new).collect();
    let mut turn = Turn::default();
    bench.core.set_schedules(&mut turn, &changed).unwrap();
    let written: Vec<&str> = turn
        .before
        .iter()
        .filter_map(|write| match write {
            Write::Schedule { id, .. } => Some(id.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(written, ["w/s#7"]);
    bench.core.commit(&mut turn).unwrap();
    let mut anchors = std::collections::BTreeMap::new();
    store
        .schedules(&mut |id, state| {
            anchors.insert(id.to_owned(), state.unwrap().anchor);
        })
        .unwrap();
    let now = bench.clock.now();
    let moved = anchors.iter().filter(|(_, anchor)| **anchor == now);
    assert_eq!(
        moved.map(|(id, _)| id.as_str()).collect::<Vec<_>>(),
        ["w/s#7"]
    );
    // Only those two are looked at again; the others wait for their time.
    bench.turn().unwrap();
    let wait = bench.core.next_wait();
    assert_eq!(wait, TICK);
}

#[test]
fn a_due_time_does_not_wait_for_the_first_looks_at_very_many_schedules() {
    let (store, world) = (MemoryStore::new(), Arc::default());
    let mut bench = bench(&store, &world, vec!["execute"]);
    put(&mut bench, vec![hourly(Policy::default())]);
    bench.clock.advance(HOUR_MS - 1_000);
    bench.turn().unwrap();
    let mut all: Vec<_> = (0..2_500).map(one_of_many).collect();
    all.push(hourly(Policy::default()));
    put(&mut bench, all);
    bench.clock.advance(1_000);
    bench.core.turn(Mail::default()).unwrap();
    assert_eq!(bench.core.preparing, 1);
    turn_until(&mut bench, &store, 1);
    assert_eq!(statuses(&store), [SlotStatus::Ran]);
    // The others were looked at meanwhile, and are all in the end.
    assert_eq!(bench.core.next_wait(), Duration::ZERO);
    while bench.core.next_wait() == Duration::ZERO {
        bench.turn().unwrap();
    }
    let mut active = bench.core.scheduler.wakes_in_force();
    assert!(active.all(|(_, wake)| wake.is_some()));
}

#[test]
fn what_was_due_last_is_looked_at_first_after_a_start() {
    let (store, world) = (MemoryStore::new(), Arc::default());
    let mut first = bench(&store, &world, Vec::new());
    let all: Vec<_> = (0..500).map(|one| Arc::new(one_of_many(one))).collect();
    first.core.begin_schedules(&all, true).unwrap();
    first.core.pool.close();
    let mut next = bench(&store, &world, Vec::new());
    let cursors = all.iter().enumerate().map(|(minute, one)| {
        let cursor = next.clock.now().plus_millis(minute as u64 * 60_000);
        (Arc::clone(&one.id), cursor)
    });
    next.core.scheduler = Scheduler::new(StoredSchedules {
        going_on: cursors.collect(),
        others: BTreeMap::new(),
    });
    next.core.begin_schedules(&all, true).unwrap();
    next.turn().unwrap();
    let active: HashMap<_, _> = next.core.scheduler.wakes_in_force().collect();
    let seen = |one: &Arc<Schedule>| active[&*one.id].is_some();
    let (earlier, later) = all.split_at(all.len() - EVALUATIONS_MAX);
    assert!(later.iter().all(seen));
    assert!(!earlier.iter().any(seen));
}

#[test]
fn very_many_new_schedules_are_stored_part_by_part() {
    let (store, world) = (MemoryStore::new(), Arc::default());
    let mut first = bench(&store, &world, Vec::new());
    let all: Vec<_> = (0..5_000)
        .map(|number| Arc::new(one_of_many(number)))
        .collect();
    let before = store.counters().syncs;
    store.fail_nth(2, InjectedFault::Broken, FaultPlace::BeforeApply);
    assert!(first.core.begin_schedules(&all, true).is_err());
    first.core.pool.close();
    store.power_cut(0).unwrap();
    let known = |store: &MemoryStore| {
        let mut known = std::collections::BTreeMap::new();
        store
            .schedules(&mut |id, state| drop(known.insert(id.to_owned(), state.unwrap())))
            .unwrap();
        known
    };
    let stored = known(&store);
    assert!(
        !stored.is_empty() && stored.len() < 5_000,
        "{}",
        stored.len()
    );
    // The next engine leaves those alone and stores the others.
    let mut next = bench(&store, &world, Vec::new());
    next.clock.advance(60_000);
    next.core.begin_schedules(&all, true).unwrap();
    let all = known(&store);
    assert_eq!(all.len(), 5_000);
    assert!(stored.iter().all(|(id, state)| all[id] == *state));
    assert!(store.counters().syncs > before + 2);
}
