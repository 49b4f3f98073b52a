//! What an engine that has to end tells those whose requests it was storing.

use super::super::super::request::{ENDED_OPEN, Request};
use super::bench::*;
use super::*;

#[test]
fn what_was_being_stored_when_the_store_broke_is_open() {
    let (store, world) = (MemoryStore::new(), Arc::default());
    let mut bench = bench(&store, &world, Vec::new());
    store.fail_nth(1, InjectedFault::Broken, FaultPlace::AfterSync);
    let answer = bench.submit(&spec(1, plan(true)), None);
    let ended = bench.turn().unwrap_err();
    assert_eq!(ended.code, "store_broken");
    let open = answer.try_recv().unwrap().unwrap_err();
    assert_eq!((open.kind, open.code.as_str()), (Kind::Open, ENDED_OPEN));
    assert!(open.message.contains(&ended.message), "{open:?}");
}

#[test]
fn a_drain_does_not_wait_for_space_that_nothing_needs() {
    let (store, world) = (MemoryStore::new(), Arc::default());
    let mut bench = bench(&store, &world, Vec::new());
    store.fail_nth(1, InjectedFault::Full, FaultPlace::BeforeApply);
    let answer = bench.submit(&spec(1, plan(true)), None);
    let _drained = bench.ask(Request::Drain);
    let ended = bench.turn().unwrap_err();
    assert_eq!(
        (ended.kind, ended.code.as_str()),
        (Kind::Blocked, "disk_full")
    );
    let open = answer.try_recv().unwrap().unwrap_err();
    assert_eq!((open.kind, open.code.as_str()), (Kind::Open, ENDED_OPEN));
}

#[test]
fn a_drain_waits_for_space_that_a_result_needs() {
    let (store, world) = (MemoryStore::new(), Arc::default());
    let mut bench = bench(&store, &world, vec!["execute"]);
    let reading = spec(1, plan(false));
    let _answer = bench.submit(&reading, None);
    while world.lock().unwrap().executed.is_empty() {
        bench.turn().unwrap();
    }
    let _drained = bench.ask(Request::Drain);
    bench.turn().unwrap();
    store.fail_nth(1, InjectedFault::Full, FaultPlace::BeforeApply);
    let interrupted = Event::CancelRequested {
        kind: CancelKind::Now,
        by: "a test".to_owned(),
    };
    let mut turn = Turn::default();
    bench.core.record(&mut turn, reading.run, interrupted);
    // It is tried again, and there is space by then.
    bench.core.commit(&mut turn).unwrap();
    assert_eq!(bench.view.condition(), Condition::Draining);
}
