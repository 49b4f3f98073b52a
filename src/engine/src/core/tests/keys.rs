//! Idempotency keys: how long a submission that is repeated is answered with the run that it made.

use super::super::requests::KEY_MS;
use super::bench::*;
use super::schedules::HOUR_MS;
use super::*;
use crate::model::{RunSpec, Timestamp};

fn submitted(bench: &mut Bench, number: u128, key: &str) -> (RunId, bool) {
    let submitted_at = bench.clock.now();
    let spec = Arc::new(RunSpec {
        submitted_at,
        run: RunId::following(None, submitted_at, number),
        ..spec(1, plan(false)).as_ref().clone()
    });
    let answer = bench.submit(&spec, Some(key));
    bench.turn().unwrap();
    let Answer::Submitted(submitted) = answer.try_recv().unwrap().unwrap() else {
        panic!("no submission was answered");
    };
    bench.settle(submitted.run).unwrap();
    (submitted.run, submitted.existing)
}

#[test]
fn a_key_answers_for_a_day_and_no_longer() {
    let (store, world) = (MemoryStore::new(), Arc::default());
    let mut bench = bench(&store, &world, Vec::new());
    let began: Timestamp = bench.clock.now();
    let (first, _) = submitted(&mut bench, 0, "key");
    for hour in 1..24 {
        let next = began.plus_millis(hour * HOUR_MS);
        bench.clock.advance(next.millis_since(bench.clock.now()));
        // What is committed sweeps what is too old.
        submitted(&mut bench, hour.into(), &format!("of hour {hour}"));
        let repeated = submitted(&mut bench, 100 + u128::from(hour), "key");
        assert_eq!(repeated, (first, true), "after {hour} hours");
    }
    let over = began.plus_millis(KEY_MS + 1);
    bench.clock.advance(over.millis_since(bench.clock.now()));
    let (other, is_known) = submitted(&mut bench, 200, "key");
    assert!(other != first && !is_known);
}

#[test]
fn a_key_answers_while_the_clock_is_a_year_ahead_and_afterwards() {
    let (store, world) = (MemoryStore::new(), Arc::default());
    let mut bench = bench(&store, &world, Vec::new());
    let (first, _) = submitted(&mut bench, 0, "key");
    let ahead = 365 * 24 * HOUR_MS.cast_signed();
    bench.clock.step(ahead);
    assert_eq!(submitted(&mut bench, 1, "key"), (first, true));
    // What is committed drops keys whose time is over, once an hour.
    bench.clock.advance(HOUR_MS);
    submitted(&mut bench, 2, "other");
    assert_eq!(submitted(&mut bench, 3, "key"), (first, true));
    bench.clock.step(-ahead);
    assert_eq!(submitted(&mut bench, 4, "key"), (first, true));
}
