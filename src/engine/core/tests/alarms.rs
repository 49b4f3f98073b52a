//! Schedules that do not succeed in time: told once an episode, whatever becomes of engines.

use super::super::super::request::Request;
use super::bench::*;
use super::schedules::{hourly, put, state};
use super::*;
use crate::model::definition::HookText;
use crate::model::schedule::{Policy, Schedule};

const HOUR_MS: u64 = 3_600_000;

/// Due every hour and expected an hour later; it cannot be run where `broken` says so.
fn watched(broken: bool) -> Schedule {
    let mut schedule = hourly(Policy {
        expected_within_ms: Some(HOUR_MS),
        on_missed: Some(HookText {
            command: "tell".to_owned(),
            timeout_ms: 1_000,
        }),
        ..Policy::default()
    });
    if broken {
        Arc::make_mut(&mut schedule.inputs).insert("refused".to_owned(), true.into());
    }
    schedule
}

fn following(first: Bench, store: &MemoryStore, world: &Arc<Mutex<World>>) -> Bench {
    let now = first.clock.now();
    first.core.pool.close();
    store.power_cut(0).unwrap();
    let next = bench(store, world, Vec::new());
    next.clock.step(now.millis() - next.clock.now().millis());
    next
}

/// Turns until so many commands have been told, and their ends are stored.
fn turn_until_told(bench: &mut Bench, world: &Arc<Mutex<World>>, count: usize) {
    for _ in 0..10_000 {
        if world.lock().unwrap().told.len() >= count && bench.core.alarms.are_silent() {
            return;
        }
        bench.core.turn(bench.inbox.take()).unwrap();
        std::thread::yield_now();
    }
    panic!("not told {count} times: {:?}", world.lock().unwrap().told);
}

fn turn_often(bench: &mut Bench) {
    for _ in 0..50 {
        bench.core.turn(bench.inbox.take()).unwrap();
        std::thread::yield_now();
    }
}

#[test]
fn an_episode_is_told_once_and_the_next_one_after_a_success() {
    let (store, world) = (MemoryStore::new(), Arc::<Mutex<World>>::default());
    let mut first = bench(&store, &world, Vec::new());
    put(&mut first, vec![watched(true)]);
    let begun = first.clock.now();
    first.clock.advance(2 * HOUR_MS - 1);
    turn_often(&mut first);
    assert!(world.lock().unwrap().told.is_empty());
    assert!(first.view.agenda().overdue.is_empty());
    assert_eq!(first.core.next_wait(), Duration::from_millis(1));
    first.clock.advance(1);
    turn_until_told(&mut first, &world, 1);
    let by = begun.plus_millis(2 * HOUR_MS);
    assert_eq!(world.lock().unwrap().told, [by]);
    assert_eq!(first.view.agenda().overdue[0].expected_by, by);
    assert!(state(&store).missed.unwrap().told.unwrap().succeeded);
    first.clock.advance(5 * HOUR_MS);
    turn_often(&mut first);
    let mut next = following(first, &store, &world);
    put(&mut next, vec![watched(true)]);
    turn_often(&mut next);
    assert_eq!(world.lock().unwrap().told.len(), 1, "told again");
    assert_eq!(next.view.agenda().overdue.len(), 1);
    // It succeeds, and is no longer overdue.
    put(&mut next, vec![watched(false)]);
    next.clock.advance(HOUR_MS);
    while state(&store).succeeded_at.is_none() {
        next.turn().unwrap();
        std::thread::yield_now();
    }
    assert_eq!(state(&store).missed, None);
    turn_often(&mut next);
    assert!(next.view.agenda().overdue.is_empty());
    put(&mut next, vec![watched(true)]);
    next.clock.advance(3 * HOUR_MS);
    turn_until_told(&mut next, &world, 2);
    let world = world.lock().unwrap();
    assert!(world.out_of_order.is_empty(), "{:?}", world.out_of_order);
}

#[test]
fn a_failed_command_is_kept_and_not_repeated() {
    let (store, world) = (MemoryStore::new(), Arc::<Mutex<World>>::default());
    world.lock().unwrap().execution_code = 1;
    let mut bench = bench(&store, &world, Vec::new());
    put(&mut bench, vec![watched(true)]);
    bench.clock.advance(2 * HOUR_MS);
    turn_until_told(&mut bench, &world, 1);
    let told = state(&store).missed.unwrap().told.unwrap();
    assert_eq!(told.message.as_deref(), Some("exited with 1"));
    assert_eq!(state(&store).actions, 0);
    turn_often(&mut bench);
    assert_eq!(world.lock().unwrap().told.len(), 1);
}

#[test]
fn a_command_that_a_drain_stops_is_told_by_the_next_engine() {
    let (store, world) = (MemoryStore::new(), Arc::<Mutex<World>>::default());
    let mut first = bench(&store, &world, vec!["tell_missed"]);
    put(&mut first, vec![watched(true)]);
    first.clock.advance(2 * HOUR_MS);
    for _ in 0..10_000 {
        if !world.lock().unwrap().told.is_empty() {
            break;
        }
        first.core.turn(first.inbox.take()).unwrap();
        std::thread::yield_now();
    }
    let _answer = first.ask(Request::Drain);
    first.core.turn(first.inbox.take()).unwrap();
    assert!(!first.core.is_done(), "its command still runs");
    while !first.core.is_done() {
        first.core.turn(first.inbox.take()).unwrap();
        std::thread::yield_now();
    }
    assert_eq!(state(&store).missed.unwrap().told, None);
    let mut next = following(first, &store, &world);
    put(&mut next, vec![watched(true)]);
    turn_until_told(&mut next, &world, 2);
    assert!(state(&store).missed.unwrap().told.is_some());
}

#[test]
fn only_a_daemon_tells_and_what_is_gone_is_not_overdue() {
    let (store, world) = (MemoryStore::new(), Arc::<Mutex<World>>::default());
    let mut bench = bench(&store, &world, Vec::new());
    bench.core.starts_queued = false;
    put(&mut bench, vec![watched(true)]);
    bench.clock.advance(3 * HOUR_MS);
    turn_often(&mut bench);
    assert!(world.lock().unwrap().told.is_empty());
    bench.core.starts_queued = true;
    put(&mut bench, vec![watched(true)]);
    turn_until_told(&mut bench, &world, 1);
    assert_eq!(bench.view.agenda().overdue.len(), 1);
    put(&mut bench, Vec::new());
    assert_eq!(
        bench.view.agenda(),
        super::super::super::view::Agenda::default()
    );
    assert_eq!(bench.core.next_wait(), TICK);
}
