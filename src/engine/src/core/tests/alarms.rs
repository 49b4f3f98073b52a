//! Schedules that do not succeed in time: told once an episode, whatever becomes of engines.

use super::super::super::request::Request;
use super::bench::*;
use super::schedules::{hourly, put, state};
use super::*;
use crate::model::schedule::{Policy, Schedule};
use crate::model::{News, Notice, Notices};

const HOUR_MS: u64 = 3_600_000;

/// Due every hour and expected an hour later; it cannot be run where `broken` says so.
fn watched(broken: bool) -> Schedule {
    let mut schedule = hourly(Policy {
        expected_within_ms: Some(HOUR_MS),
        ..Policy::default()
    });
    if broken {
        Arc::make_mut(&mut schedule.inputs).insert("refused".to_owned(), true.into());
    }
    schedule
}

/// What the store has of all that is to be told.
fn notices(store: &MemoryStore) -> Vec<Notices> {
    let mut all = Vec::new();
    store.notices(&mut |one| all.push(one.unwrap())).unwrap();
    all
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
        if world.lock().unwrap().told.len() >= count && bench.core.board.is_silent() {
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
    assert_eq!(world.lock().unwrap().told[0].expected_by, Some(by));
    assert_eq!(first.view.agenda().overdue[0].expected_by, by);
    assert!(notices(&store)[0].waiting.is_empty());
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
fn what_cannot_be_delivered_is_tried_again_by_whichever_engine_until_it_is() {
    let (store, world) = (MemoryStore::new(), Arc::<Mutex<World>>::default());
    world.lock().unwrap().deaf = true;
    let mut first = bench(&store, &world, Vec::new());
    put(&mut first, vec![watched(true)]);
    first.clock.advance(2 * HOUR_MS);
    turn_until_told(&mut first, &world, 1);
    let kept = notices(&store).remove(0);
    assert_eq!(
        (kept.tries, kept.why.as_deref()),
        (1, Some("exited with 1"))
    );
    assert_eq!(first.core.next_wait(), TICK);
    first.clock.advance(59_999);
    turn_often(&mut first);
    assert_eq!(world.lock().unwrap().told.len(), 1);
    assert_eq!(first.core.next_wait(), Duration::from_millis(1));
    first.clock.advance(1);
    turn_until_told(&mut first, &world, 2);
    let mut next = following(first, &store, &world);
    world.lock().unwrap().deaf = false;
    put(&mut next, vec![watched(true)]);
    turn_until_told(&mut next, &world, 3);
    let kept = notices(&store).remove(0);
    assert!(
        kept.waiting.is_empty() && kept.failing_since.is_some(),
        "{kept:?}"
    );
    next.clock.advance(5 * HOUR_MS);
    turn_often(&mut next);
    let world = world.lock().unwrap();
    assert_eq!(world.told.len(), 3);
    assert!(world.out_of_order.is_empty(), "{:?}", world.out_of_order);
}

#[test]
fn the_first_failure_of_a_streak_and_the_first_success_after_it_are_told_without_a_schedule_too() {
    let (store, world) = (MemoryStore::new(), Arc::<Mutex<World>>::default());
    let mut bench = bench(&store, &world, Vec::new());
    world.lock().unwrap().wants_all = true;
    world.lock().unwrap().deaf = true;
    for (number, code) in [(1, 1), (2, 1), (3, 0), (4, 0)] {
        world.lock().unwrap().execution_code = code;
        let mut spec = spec(number, plan(false));
        Arc::make_mut(&mut spec).skill = "w/same".parse().unwrap();
        let _answer = bench.submit(&spec, None);
        bench.turn().unwrap();
        bench.settle(spec.run).unwrap();
    }
    let kept = notices(&store).remove(0);
    let news = |of: &[Notice]| of.iter().map(|one| one.news).collect::<Vec<_>>();
    assert_eq!(news(&kept.waiting), [News::Failed, News::Recovered]);
    assert_eq!(kept.waiting[1].failures, 2);
    // Nobody was told in vain of what came after: in their order.
    world.lock().unwrap().deaf = false;
    world.lock().unwrap().told.clear();
    bench.clock.advance(HOUR_MS);
    turn_until_told(&mut bench, &world, 2);
    assert_eq!(
        news(&world.lock().unwrap().told),
        [News::Failed, News::Recovered]
    );
    assert!(
        notices(&store).is_empty(),
        "nothing is remembered of what is over"
    );
    assert_eq!(bench.core.next_wait(), TICK);
}

#[test]
fn where_nobody_wants_to_know_nothing_waits() {
    let (store, world) = (MemoryStore::new(), Arc::<Mutex<World>>::default());
    let mut bench = bench(&store, &world, Vec::new());
    world.lock().unwrap().execution_code = 1;
    let spec = spec(1, plan(false));
    let _answer = bench.submit(&spec, None);
    bench.turn().unwrap();
    bench.settle(spec.run).unwrap();
    turn_until_told(&mut bench, &world, 0);
    let kept = notices(&store).remove(0);
    assert!(kept.waiting.is_empty() && kept.failures == 1, "{kept:?}");
    assert_eq!(bench.core.next_wait(), TICK);
}

#[test]
fn a_command_that_a_drain_stops_is_told_by_the_next_engine() {
    let (store, world) = (MemoryStore::new(), Arc::<Mutex<World>>::default());
    let mut first = bench(&store, &world, vec!["tell"]);
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
    assert_eq!(notices(&store)[0].waiting.len(), 1);
    let mut next = following(first, &store, &world);
    put(&mut next, vec![watched(true)]);
    turn_until_told(&mut next, &world, 2);
    assert!(notices(&store)[0].waiting.is_empty());
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

#[test]
fn a_web_server_that_asks_for_a_wait_is_left_alone_for_so_long() {
    let (store, world) = (MemoryStore::new(), Arc::<Mutex<World>>::default());
    world.lock().unwrap().deaf = true;
    world.lock().unwrap().wait_ms = Some(20 * 60_000);
    let mut bench = bench(&store, &world, Vec::new());
    put(&mut bench, vec![watched(true)]);
    bench.clock.advance(2 * HOUR_MS);
    turn_until_told(&mut bench, &world, 1);
    bench.clock.advance(20 * 60_000 - 1);
    turn_often(&mut bench);
    assert_eq!(world.lock().unwrap().told.len(), 1);
    assert_eq!(bench.core.next_wait(), Duration::from_millis(1));
    bench.clock.advance(1);
    turn_until_told(&mut bench, &world, 2);
    assert_eq!(notices(&store)[0].tries, 2);
}
