//! The loop over the store in memory, with a fake world: crashes at every commit, full disks, drains.

mod alarms;
mod approvals;
pub(crate) mod bench;
mod ending;
mod keys;
mod limits;
mod manual;
mod occurrences;
mod rate_limit;
mod samples;
pub(crate) mod schedules;
mod wake;

use std::sync::Mutex;

use super::super::request::{Request, Submission};
use super::super::view::Condition;
use super::super::work::{NoticeResult, PushResult, Pushing, Telling, Work};
use super::*;
use crate::machine::{Action, CancelKind, Run};
use crate::model::outcome::{Outcome, Phase};
use crate::model::spec::{Plan, Retry};
use crate::queue::Needs;
use crate::store::{FaultPlace, InjectedFault, MemoryStore};
use bench::*;

#[test]
fn a_mutating_run_goes_the_whole_way_and_nothing_runs_before_its_commit() {
    let (store, world) = (MemoryStore::new(), Arc::default());
    let mut bench = bench(&store, &world, Vec::new());
    let spec = spec(1, plan(true));
    let answer = bench.submit(&spec, None);
    bench.turn().unwrap();
    assert!(matches!(answer.try_recv(), Ok(Ok(Answer::Submitted(_)))));
    bench.settle(spec.run).unwrap();
    let summary = stored(&store, spec.run);
    assert_eq!(summary.outcome, Some(Outcome::Succeeded));
    assert_eq!(summary.commit.as_deref(), Some("c0ffee"));
    let world = world.lock().unwrap();
    assert!(world.out_of_order.is_empty(), "{:?}", world.out_of_order);
    assert_eq!(
        (
            world.executed.len(),
            world.committed.len(),
            world.closed.len()
        ),
        (1, 1, 1)
    );
    assert!(store.active().unwrap().is_empty());
}

#[test]
fn a_run_without_anything_to_verify_takes_two_syncs_and_is_unverified() {
    let (store, world) = (MemoryStore::new(), Arc::default());
    let mut bench = bench(&store, &world, Vec::new());
    let spec = spec(
        1,
        Plan {
            verifies: false,
            ..plan(false)
        },
    );
    let before = store.counters().syncs;
    let _answer = bench.submit(&spec, None);
    while bench
        .view
        .run(spec.run)
        .is_none_or(|shown| !shown.run.is_finished())
    {
        bench.turn().unwrap();
    }
    assert_eq!(store.counters().syncs - before, 2);
    bench.settle(spec.run).unwrap();
    assert!(stored(&store, spec.run).unverified);
}

#[test]
fn what_an_executor_went_on_with_counts_only_where_the_run_asks_for_it() {
    let (store, world) = (MemoryStore::new(), Arc::default());
    let mut bench = bench(&store, &world, vec!["execute"]);
    let reading = spec(
        1,
        Plan {
            verifies: false,
            ..plan(false)
        },
    );
    let _answer = bench.submit(&reading, None);
    bench.turn().unwrap();
    let mut turn = Turn::default();
    bench
        .core
        .record(&mut turn, reading.run, Event::Interrupted);
    let execute = Action::Execute { attempt: 1 };
    bench
        .core
        .on_result(&mut turn, reading.run, result(&execute, 1, true));
    bench
        .core
        .on_following(&mut turn, reading.run, Some(Event::Saved));
    // It goes back into the queue: there is nothing to save yet.
    assert!(bench.core.live[&reading.run].run.is_queued());
    let names = |entries: &[Entry]| -> Vec<&str> {
        entries.iter().map(|entry| entry.event.name()).collect()
    };
    assert_eq!(
        names(&turn.entries[&reading.run]),
        ["interrupted", "execution_finished"]
    );
}

/// A crash at every commit, before and after it is durable, of a mutating run: it always ends, commits at
/// most once, and its command is never started by recovery.
#[test]
fn a_crash_at_every_commit_is_survived() {
    for place in [
        FaultPlace::BeforeApply,
        FaultPlace::BeforeSync,
        FaultPlace::AfterSync,
    ] {
        for nth in 1..20 {
            crash_at(nth, place, plan(true));
            crash_at(
                nth,
                place,
                Plan {
                    idempotent: true,
                    ..plan(true)
                },
            );
            crash_at(nth, place, plan(false));
        }
    }
}

fn crash_at(nth: u64, place: FaultPlace, plan: Plan) {
    let case = format!("commit {nth} {place:?} mutating {}", plan.mutating);
    let (store, world) = (MemoryStore::new(), Arc::<Mutex<World>>::default());
    let spec = spec(1, plan);
    store.fail_nth(nth, InjectedFault::Broken, place);
    let mut first = bench(&store, &world, Vec::new());
    let answer = first.submit(&spec, None);
    let mut crashed = first.turn().is_err();
    let acknowledged = answer.try_recv().is_ok_and(|answer| answer.is_ok());
    if !crashed {
        crashed = first.settle(spec.run).is_err();
    }
    first.core.pool.close();
    let executed = world.lock().unwrap().executed.len();
    // A fault that the first engine did not live to see meets the second one.
    let recovered = (0..3).any(|_| {
        store.power_cut(0).unwrap();
        let mut next = bench(&store, &world, Vec::new());
        let ended = next.recover(&store).and_then(|()| next.settle(spec.run));
        next.core.pool.close();
        ended.is_ok()
    });
    assert!(recovered, "{case}: no engine got through");
    let world = world.lock().unwrap();
    assert!(
        world.out_of_order.is_empty(),
        "{case}: {:?}",
        world.out_of_order
    );
    assert!(world.committed.len() <= 1, "{case}: committed twice");
    let known = store.summary(spec.run).unwrap();
    assert!(
        known.is_some() || !acknowledged,
        "{case}: an acknowledged run is lost"
    );
    let Some(summary) = known else { return };
    assert_eq!(summary.phase, Phase::Finished, "{case}");
    if spec.plan.mutating && !spec.plan.idempotent && crashed && executed > 0 {
        assert_eq!(
            world.executed.len(),
            executed,
            "{case}: started again by recovery"
        );
    }
    let claimed = summary.commit.is_some();
    assert_eq!(claimed, !world.committed.is_empty(), "{case}: {summary:?}");
}

/// A result that ends each engine which records it must not keep every later engine from starting.
#[test]
fn a_run_whose_result_ends_every_engine_is_given_up() {
    let (store, world) = (MemoryStore::new(), Arc::<Mutex<World>>::default());
    let spec = spec(1, plan(true));
    let mut engine = bench(&store, &world, Vec::new());
    let _answer = engine.submit(&spec, None);
    while world.lock().unwrap().executed.is_empty() {
        engine.turn().unwrap();
    }
    let mut seen = Vec::new();
    for _ in 0..6 {
        // Each engine is lost before it has recorded anything but the loss of the one before.
        engine.core.pool.close();
        engine = bench(&store, &world, Vec::new());
        engine.recover(&store).unwrap();
        let journal = store.journal(spec.run).unwrap();
        let lost = |entry: &&Entry| entry.event == Event::OwnerLost;
        seen.push(journal.iter().filter(lost).count());
    }
    assert_eq!(seen, [1, 2, 3, 4, 4, 4]);
    engine.settle(spec.run).unwrap();
    let given_up = Outcome::Unknown {
        why: RECOVERY_FAILED.to_owned(),
    };
    assert_eq!(stored(&store, spec.run).outcome, Some(given_up));
    assert_eq!(world.lock().unwrap().executed.len(), 1);
}

#[test]
fn a_full_disk_keeps_the_batch_and_refuses_new_work() {
    let (store, world) = (MemoryStore::new(), Arc::default());
    let mut bench = bench(&store, &world, Vec::new());
    let spec = spec(1, plan(true));
    store.fail_nth(2, InjectedFault::Full, FaultPlace::BeforeApply);
    let _answer = bench.submit(&spec, None);
    bench.turn().unwrap();
    let other = self::spec(2, plan(false));
    let view = Arc::clone(&bench.view);
    let inbox = Arc::clone(&bench.inbox);
    let refused = std::thread::spawn(move || {
        while !matches!(view.condition(), Condition::Short(_)) {
            std::thread::yield_now();
        }
        let needs = Needs {
            worker: "w".into(),
            repository: None,
            destinations: Vec::new(),
            schedule: None,
        };
        let request = Request::Submit(Box::new(Submission {
            spec: other,
            needs,
            key: None,
        }));
        let answer = inbox.request(request).unwrap();
        answer.recv().unwrap().map(|_| ()).unwrap_err().code
    });
    bench.settle(spec.run).unwrap();
    assert_eq!(refused.join().unwrap(), "disk_full");
    assert_eq!(stored(&store, spec.run).outcome, Some(Outcome::Succeeded));
    assert_eq!(bench.view.condition(), Condition::Ready);
}

#[test]
fn a_key_answers_the_same_run_even_within_one_turn() {
    let (store, world) = (MemoryStore::new(), Arc::default());
    let mut bench = bench(&store, &world, Vec::new());
    let (first, mut second) = (spec(1, plan(false)), spec(2, plan(false)).as_ref().clone());
    second.skill = first.skill.clone();
    let second = Arc::new(second);
    let answers = [
        bench.submit(&first, Some("k")),
        bench.submit(&second, Some("k")),
    ];
    bench.turn().unwrap();
    let submitted = answers.map(|answer| match answer.try_recv().unwrap().unwrap() {
        Answer::Submitted(submitted) => submitted,
        other => panic!("{other:?}"),
    });
    assert_eq!(submitted[0].run, submitted[1].run);
    assert!(!submitted[0].existing && submitted[1].existing);
    bench.settle(first.run).unwrap();
    let other_skill = spec(3, plan(false));
    let answer = bench.submit(&other_skill, Some("k"));
    bench.turn().unwrap();
    assert_eq!(answer.try_recv().unwrap().unwrap_err().code, "key_reused");
}

#[test]
fn the_queue_is_bounded_and_says_so() {
    let (store, world) = (MemoryStore::new(), Arc::default());
    let mut bench = bench(&store, &world, vec!["execute"]);
    let specs: Vec<_> = (1..=7).map(|n| spec(n, plan(false))).collect();
    let first: Vec<_> = specs[..2]
        .iter()
        .map(|spec| bench.submit(spec, None))
        .collect();
    bench.turn().unwrap();
    let rest: Vec<_> = specs[2..]
        .iter()
        .map(|spec| bench.submit(spec, None))
        .collect();
    bench.turn().unwrap();
    assert!(
        first
            .iter()
            .all(|answer| answer.try_recv().unwrap().is_ok())
    );
    let codes: Vec<_> = rest
        .iter()
        .map(|a| a.try_recv().unwrap().map_err(|d| d.code))
        .collect();
    assert!(codes[..3].iter().all(Result::is_ok), "{codes:?}");
    assert_eq!(codes[3].as_ref().unwrap_err(), "queue_full");
    for spec in &specs[..5] {
        let _ = bench.ask(Request::Cancel {
            run: spec.run,
            kind: CancelKind::Graceful,
            by: "test".into(),
        });
    }
    for spec in &specs[..5] {
        bench.settle(spec.run).unwrap();
        assert_eq!(stored(&store, spec.run).outcome, Some(Outcome::Cancelled));
    }
    assert_eq!(
        world.lock().unwrap().executed.len(),
        2,
        "cancelled runs in the queue never start"
    );
}

#[test]
fn a_drain_interrupts_what_outlives_its_grace() {
    let (store, world) = (MemoryStore::new(), Arc::default());
    let mut bench = bench(&store, &world, vec!["execute"]);
    let (mutating, reading) = (spec(1, plan(true)), spec(2, plan(false)));
    let _answers = [bench.submit(&mutating, None), bench.submit(&reading, None)];
    while world.lock().unwrap().executed.len() < 2 {
        bench.turn().unwrap();
    }
    let drained = bench.ask(Request::Drain);
    bench.turn().unwrap();
    assert!(drained.try_recv().is_err(), "it has not ended yet");
    let late = bench.submit(&spec(3, plan(false)), None);
    bench.turn().unwrap();
    assert_eq!(late.try_recv().unwrap().unwrap_err().code, "draining");
    bench.clock.advance(2_000);
    bench.core.turn(Mail::default()).unwrap();
    while !bench.core.is_done() {
        bench.turn().unwrap();
    }
    let outcome = stored(&store, mutating.run).outcome.unwrap();
    assert!(matches!(outcome, Outcome::Failed { failure } if failure.code == "interrupted"));
    let journal = store.journal(reading.run).unwrap();
    assert!(
        Run::fold(&journal).unwrap().is_queued(),
        "a run that only reads goes back to the queue"
    );
    bench.core.report_drained(&Ok(()));
    assert!(drained.try_recv().unwrap().is_ok());
}

#[test]
fn a_retry_waits_and_a_stepped_clock_does_not_prolong_it() {
    let (store, world) = (MemoryStore::new(), Arc::<Mutex<World>>::default());
    world.lock().unwrap().execution_code = 1;
    let retry = Retry {
        max_attempts: 2,
        initial_ms: 60_000,
        ..Retry::ONCE
    };
    let spec = spec(
        1,
        Plan {
            retry,
            ..plan(false)
        },
    );
    let mut bench = bench(&store, &world, Vec::new());
    let _answer = bench.submit(&spec, None);
    while bench
        .view
        .run(spec.run)
        .is_none_or(|s| s.run.phase() != Phase::BackingOff)
    {
        bench.turn().unwrap();
    }
    bench.clock.step(-3_600_000);
    bench.clock.advance(59_000);
    bench.core.turn(Mail::default()).unwrap();
    assert_eq!(world.lock().unwrap().executed.len(), 1);
    bench.clock.advance(1_000);
    bench.core.turn(Mail::default()).unwrap();
    bench.settle(spec.run).unwrap();
    assert_eq!(
        world.lock().unwrap().executed,
        [(spec.run, 1), (spec.run, 2)]
    );
    let outcome = stored(&store, spec.run).outcome.unwrap();
    assert!(matches!(outcome, Outcome::Failed { failure } if failure.code == "exit_code"));
}

#[test]
fn an_effect_that_panics_fails_its_run_alone() {
    struct Panics;
    impl Effects for Panics {
        fn perform(&self, work: &Work) -> Event {
            if let Action::Execute { .. } = work.action {
                std::panic::resume_unwind(Box::new("boom"));
            }
            result(&work.action, 0, false)
        }
        fn land_kept(
            &self,
            _: &Work,
            _: &str,
            _: Option<&str>,
        ) -> Result<Event, crate::model::outcome::Failure> {
            Ok(Event::LandingStopped)
        }

        fn tell(&self, _telling: &Telling) -> NoticeResult {
            std::panic::resume_unwind(Box::new("boom"));
        }
        fn push(&self, _pushing: &Pushing) -> PushResult {
            std::panic::resume_unwind(Box::new("boom"));
        }
        fn sync_files(&self) -> std::collections::BTreeSet<RunId> {
            std::collections::BTreeSet::new()
        }
        fn flush_log(&self, _run: RunId) {}
    }
    let (store, world) = (MemoryStore::new(), Arc::default());
    let mut bench = bench(&store, &world, Vec::new());
    bench.core.pool = Pool::new(
        Arc::new(Panics),
        Arc::new(FakeDesk(
            Arc::clone(&bench.clock),
            Arc::default(),
            MemoryStore::new(),
        )),
        Arc::clone(&bench.inbox),
    );
    let spec = spec(1, plan(false));
    let _answer = bench.submit(&spec, None);
    bench.turn().unwrap();
    bench.settle(spec.run).unwrap();
    let outcome = stored(&store, spec.run).outcome.unwrap();
    assert!(matches!(outcome, Outcome::Failed { failure } if failure.code == "internal"));
}
