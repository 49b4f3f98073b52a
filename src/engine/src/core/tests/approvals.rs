//! What a person says to a run that waits for them.

use super::super::super::approval::digest;
use super::bench::*;
use super::schedules::HOUR_MS;
use super::*;
use crate::machine::Approval;
use crate::model::spec::{Approving, Gate};

fn approve(run: RunId, digest: String) -> Request {
    let approval = Approval {
        digest,
        by: "ada".to_owned(),
        note: None,
    };
    Request::Approve { run, approval }
}

#[test]
fn an_approval_counts_for_what_was_shown_alone() {
    let (store, world) = (MemoryStore::new(), Arc::default());
    let mut bench = bench(&store, &world, Vec::new());
    let asks = Approving {
        before: Gate::Execution,
        expires_ms: HOUR_MS,
    };
    let plan = Plan {
        approval: Some(asks),
        ..plan(true)
    };
    let spec = spec(1, plan);
    let _answer = bench.submit(&spec, None);
    while bench.core.asked.is_empty() {
        bench.turn().unwrap();
    }
    let shown = digest(&spec, &bench.core.live[&spec.run].run);
    for other in ["", "0", &shown[1..], &"0".repeat(shown.len())] {
        let answer = bench.ask(approve(spec.run, other.to_owned()));
        bench.turn().unwrap();
        let refused = answer.try_recv().unwrap().unwrap_err();
        assert_eq!(refused.code, "approval_changed", "{other}");
    }
    assert!(world.lock().unwrap().executed.is_empty());
    let answer = bench.ask(approve(spec.run, shown));
    bench.turn().unwrap();
    answer.try_recv().unwrap().unwrap();
    bench.settle(spec.run).unwrap();
    assert_eq!(world.lock().unwrap().executed, [(spec.run, 1)]);
}

#[test]
fn an_approval_waits_on_while_the_clock_is_a_year_ahead() {
    let (store, world) = (MemoryStore::new(), Arc::default());
    let mut bench = bench(&store, &world, Vec::new());
    let asks = Approving {
        before: Gate::Execution,
        expires_ms: HOUR_MS,
    };
    let plan = Plan {
        approval: Some(asks),
        ..plan(true)
    };
    let spec = spec(1, plan);
    let _answer = bench.submit(&spec, None);
    while bench.core.asked.is_empty() {
        bench.turn().unwrap();
    }
    let ahead = 365 * 24 * HOUR_MS.cast_signed();
    bench.clock.step(ahead);
    bench.turn().unwrap();
    assert_eq!(bench.core.asked.len(), 1);
    // The loop does not turn all the time for it.
    assert!(bench.core.next_wait() > std::time::Duration::from_secs(1));
    bench.clock.step(-ahead);
    bench.clock.advance(HOUR_MS);
    bench.turn().unwrap();
    assert!(bench.core.asked.is_empty());
}
