//! Runs that wait in the queue for the end of a rate limit.

use super::bench::*;
use super::schedules::HOUR_MS;
use super::*;
use crate::model::Timestamp;
use crate::model::spec::RateLimitWait;

fn waiting(plan: Plan) -> Plan {
    Plan {
        on_rate_limit: Some(RateLimitWait {
            wait_ms: 6 * HOUR_MS,
            times: 1,
        }),
        max_runtime_ms: Some(HOUR_MS),
        ..plan
    }
}

/// Turns until the run waits; answers why.
fn turn_until_waiting(bench: &mut Bench, run: RunId) -> String {
    for _ in 0..10_000 {
        bench.turn().unwrap();
        let shown = bench.view.run(run).unwrap();
        if shown.run.facts.waits_until.is_some() && shown.run.is_queued() {
            return shown.summary.waiting_for.clone().unwrap();
        }
        std::thread::yield_now();
    }
    panic!(
        "it does not wait: {:?}",
        bench.view.run(run).unwrap().run.state
    );
}

#[test]
fn a_run_waits_with_nothing_held_over_engines_and_goes_on_by_itself() {
    for mutating in [false, true] {
        let (store, world) = (MemoryStore::new(), Arc::<Mutex<World>>::default());
        let mut first = bench(&store, &world, Vec::new());
        let until = first.clock.now().plus_millis(3 * HOUR_MS);
        world.lock().unwrap().limits = vec![until];
        let limited = spec(1, waiting(plan(mutating)));
        let _answer = first.submit(&limited, None);
        let why = turn_until_waiting(&mut first, limited.run);
        let told = format!("the rate limit of its model to end: {}", until.rfc3339());
        assert_eq!(why, told);
        assert_eq!(first.core.queue.active(), 0);
        // One of the same worker and the same repository goes meanwhile.
        let other = spec(2, plan(mutating));
        let _answer = first.submit(&other, None);
        first.turn().unwrap();
        first.settle(other.run).unwrap();
        assert_eq!(stored(&store, other.run).outcome, Some(Outcome::Succeeded));
        first.core.pool.close();
        store.power_cut(0).unwrap();

        let mut next = bench(&store, &world, Vec::new());
        next.recover(&store).unwrap();
        let why = turn_until_waiting(&mut next, limited.run);
        assert_eq!(why, told);
        next.clock.advance(3 * HOUR_MS - 1);
        next.turn().unwrap();
        assert!(next.view.run(limited.run).unwrap().run.is_queued());
        next.clock.advance(1);
        next.settle(limited.run).unwrap();
        let ended = stored(&store, limited.run);
        // It has waited longer than all its attempts may take together.
        assert_eq!(ended.outcome, Some(Outcome::Succeeded));
        assert_eq!(ended.waiting_for, None);
        let world = world.lock().unwrap();
        let attempts = [(limited.run, 1), (other.run, 1), (limited.run, 2)];
        assert_eq!(world.executed, attempts);
        assert!(world.out_of_order.is_empty(), "{:?}", world.out_of_order);
        assert_eq!(world.committed.len(), if mutating { 2 } else { 0 });
    }
}

#[test]
fn a_run_that_waits_can_be_cancelled() {
    let (store, world) = (MemoryStore::new(), Arc::<Mutex<World>>::default());
    let mut bench = bench(&store, &world, Vec::new());
    world.lock().unwrap().limits = vec![bench.clock.now().plus_millis(HOUR_MS)];
    let limited = spec(1, waiting(plan(true)));
    let _answer = bench.submit(&limited, None);
    turn_until_waiting(&mut bench, limited.run);
    let _answer = bench.ask(Request::Cancel {
        run: limited.run,
        kind: CancelKind::Graceful,
        by: "a person".to_owned(),
    });
    bench.settle(limited.run).unwrap();
    assert_eq!(
        stored(&store, limited.run).outcome,
        Some(Outcome::Cancelled)
    );
    bench.clock.advance(2 * HOUR_MS);
    bench.turn().unwrap();
    assert_eq!(world.lock().unwrap().executed.len(), 1);
}

#[test]
fn a_limit_that_ends_too_late_or_comes_too_often_fails_the_run() {
    let (store, world) = (MemoryStore::new(), Arc::<Mutex<World>>::default());
    let mut bench = bench(&store, &world, Vec::new());
    let now = bench.clock.now();
    let failed = |run| match stored(&store, run).outcome {
        Some(Outcome::Failed { failure }) => failure.code,
        other => panic!("{other:?}"),
    };
    let at = |hours: u64| -> Timestamp { now.plus_millis(hours * HOUR_MS) };
    world.lock().unwrap().limits = vec![at(7)];
    let late = spec(1, waiting(plan(false)));
    let _answer = bench.submit(&late, None);
    bench.turn().unwrap();
    bench.settle(late.run).unwrap();
    assert_eq!(failed(late.run), "rate_limited");
    world.lock().unwrap().limits = vec![at(2), at(1)];
    let again = spec(2, waiting(plan(false)));
    let _answer = bench.submit(&again, None);
    turn_until_waiting(&mut bench, again.run);
    bench.clock.advance(HOUR_MS);
    bench.settle(again.run).unwrap();
    assert_eq!(failed(again.run), "rate_limited");
    assert_eq!(world.lock().unwrap().executed.len(), 3);
}
