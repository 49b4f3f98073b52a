//! Triggers that do not follow the clock: each occurrence leads to one run, whatever happens between.

use super::bench::*;
use super::schedules::*;
use super::*;
use crate::model::schedule::{AfterWhen, Overlap, Policy, Schedule, SlotStatus, Trigger};
use crate::request::Request;

/// A schedule that follows runs of the skill of every run on the bench.
fn follower(when: AfterWhen) -> Schedule {
    let mut follower = hourly(Policy::default());
    follower.trigger = Arc::new(Trigger::After {
        skill: Box::new(spec(1, plan(false)).skill.clone()),
        when,
    });
    Arc::make_mut(&mut follower.skill).skill = "next".to_owned();
    follower
}

/// A schedule that waits for something to be seen.
fn watcher(overlap: Overlap) -> Schedule {
    let policy = Policy {
        overlap,
        ..Policy::default()
    };
    let mut watcher = hourly(policy);
    watcher.trigger = Arc::new(Trigger::OnCommit {
        branch: "main".to_owned(),
    });
    Arc::make_mut(&mut watcher.skill).skill = "next".to_owned();
    Arc::make_mut(&mut watcher.inputs).insert("looks".to_owned(), true.into());
    watcher
}

fn see(bench: &Bench, sight: &str) {
    sight.clone_into(&mut bench.sight.lock().unwrap());
}

/// Has everything looked at, and waits until that is done.
fn probe(bench: &mut Bench) {
    bench.clock.advance(1_000);
    let answer = bench.ask(Request::Hint(None));
    bench.turn().unwrap();
    assert!(matches!(answer.try_recv(), Ok(Ok(Answer::Done))));
    for _ in 0..200 {
        bench.inbox.wait(Duration::from_millis(5));
        bench.turn().unwrap();
        let is_looking = bench.core.scheduler.is_looking();
        if bench.core.preparing == 0 && bench.core.outstanding == 0 && !is_looking {
            return;
        }
    }
    panic!("nobody has looked");
}

#[test]
fn a_run_that_ends_is_followed_as_its_end_says() {
    for (code, when, followed) in [
        (0, AfterWhen::Succeeded, true),
        (0, AfterWhen::Failed, false),
        (0, AfterWhen::Always, true),
        (1, AfterWhen::Succeeded, false),
        (1, AfterWhen::Failed, true),
        (1, AfterWhen::Always, true),
    ] {
        let (store, world) = (MemoryStore::new(), Arc::<Mutex<World>>::default());
        world.lock().unwrap().execution_code = code;
        let mut bench = bench(&store, &world, Vec::new());
        put(&mut bench, vec![follower(when)]);
        let first = spec(1, plan(false));
        let _answer = bench.submit(&first, None);
        bench.turn().unwrap();
        bench.settle(first.run).unwrap();
        if !followed {
            assert!(rows(&store).is_empty(), "{code} {when:?}");
            continue;
        }
        turn_until(&mut bench, &store, 1);
        let row = rows(&store).remove(0);
        assert_eq!(row.status, SlotStatus::Ran);
        let follows = store.spec(row.run.unwrap()).unwrap().unwrap();
        assert_eq!(follows.scheduled.unwrap().after, Some(first.run));
        assert!(state(&store).pending.is_empty());
    }
}

#[test]
fn what_ended_while_no_daemon_was_there_is_followed_once() {
    let (store, world) = (MemoryStore::new(), Arc::<Mutex<World>>::default());
    let mut daemon = bench(&store, &world, Vec::new());
    put(&mut daemon, vec![follower(AfterWhen::Succeeded)]);
    let now = daemon.clock.now();
    daemon.core.pool.close();
    let mut other = bench(&store, &world, Vec::new());
    other
        .clock
        .step(now.millis() - other.clock.now().millis() + 1_000);
    let first = spec(1, plan(false));
    let _answer = other.submit(&first, None);
    other.turn().unwrap();
    other.settle(first.run).unwrap();
    assert!(rows(&store).is_empty());
    let now = other.clock.now();
    other.core.pool.close();
    for _ in 0..2 {
        let mut daemon = bench(&store, &world, Vec::new());
        daemon
            .clock
            .step(now.millis() - daemon.clock.now().millis() + 1_000);
        daemon.recover(&store).unwrap();
        put(&mut daemon, vec![follower(AfterWhen::Succeeded)]);
        turn_until(&mut daemon, &store, 1);
        assert_eq!(statuses(&store), [SlotStatus::Ran]);
        daemon.core.pool.close();
    }
}

#[test]
fn an_engine_that_is_lost_at_any_commit_follows_a_run_once() {
    let mut crashes = 0;
    for place in [
        FaultPlace::BeforeApply,
        FaultPlace::BeforeSync,
        FaultPlace::AfterSync,
    ] {
        for nth in 2..9 {
            let (store, world) = (MemoryStore::new(), Arc::<Mutex<World>>::default());
            let mut engine = bench(&store, &world, Vec::new());
            put(&mut engine, vec![follower(AfterWhen::Always)]);
            let first = spec(1, plan(false));
            let _answer = engine.submit(&first, None);
            engine.turn().unwrap();
            engine.clock.advance(1_000);
            store.fail_nth(nth, InjectedFault::Broken, place);
            let mut lost = false;
            for _ in 0..200 {
                lost |= engine.turn().is_err();
                if lost {
                    break;
                }
            }
            let now = engine.clock.now();
            engine.core.pool.close();
            crashes += usize::from(lost);
            store.power_cut(0).unwrap();
            let mut next = bench(&store, &world, Vec::new());
            next.clock.step(now.millis() - next.clock.now().millis());
            next.begin(&store, vec![follower(AfterWhen::Always)])
                .unwrap();
            turn_until(&mut next, &store, 1);
            for _ in 0..20 {
                next.turn().unwrap();
            }
            assert_eq!(
                statuses(&store),
                [SlotStatus::Ran],
                "commit {nth} {place:?}"
            );
            next.core.pool.close();
        }
    }
    assert!(crashes >= 6, "{crashes} crashes");
}

#[test]
fn what_is_seen_first_is_no_occurrence_and_each_change_is_one() {
    let (store, world) = (MemoryStore::new(), Arc::default());
    let mut bench = bench(&store, &world, Vec::new());
    see(&bench, "a");
    put(&mut bench, vec![watcher(Overlap::Skip)]);
    probe(&mut bench);
    probe(&mut bench);
    assert!(rows(&store).is_empty());
    assert_eq!(state(&store).seen.as_deref(), Some("a"));
    see(&bench, "b");
    probe(&mut bench);
    turn_until(&mut bench, &store, 1);
    let run = rows(&store)[0].run.unwrap();
    bench.settle(run).unwrap();
    probe(&mut bench);
    assert_eq!(statuses(&store), [SlotStatus::Ran]);
}

#[test]
fn what_a_run_changes_itself_starts_no_other() {
    let (store, world) = (MemoryStore::new(), Arc::default());
    let mut bench = bench(&store, &world, vec!["execute"]);
    see(&bench, "a");
    put(&mut bench, vec![watcher(Overlap::Skip)]);
    probe(&mut bench);
    see(&bench, "b");
    bench.clock.advance(1_000);
    let _answer = bench.ask(Request::Hint(None));
    turn_until(&mut bench, &store, 1);
    let run = rows(&store)[0].run.unwrap();
    see(&bench, "c");
    let _answer = bench.ask(Request::Hint(Some("w/s".to_owned())));
    for _ in 0..20 {
        bench.turn().unwrap();
    }
    assert_eq!(statuses(&store), [SlotStatus::Ran]);
    let _answer = bench.ask(Request::Cancel {
        run,
        kind: CancelKind::Now,
        by: "a test".to_owned(),
    });
    bench.settle(run).unwrap();
    turn_until(&mut bench, &store, 2);
    assert_eq!(
        statuses(&store),
        [SlotStatus::Ran, SlotStatus::SkippedOverlap]
    );
    let why = rows(&store)[1].reason.clone().unwrap();
    assert!(why.contains("while a run of the schedule itself"), "{why}");
    probe(&mut bench);
    assert_eq!(rows(&store).len(), 2);
}

#[test]
fn what_changed_while_nobody_looked_counts_and_what_cannot_be_seen_says_why() {
    let (store, world) = (MemoryStore::new(), Arc::default());
    let mut first = bench(&store, &world, Vec::new());
    see(&first, "a");
    put(&mut first, vec![watcher(Overlap::Skip)]);
    probe(&mut first);
    let now = first.clock.now();
    first.core.pool.close();
    let mut next = bench(&store, &world, Vec::new());
    next.clock
        .step(now.millis() - next.clock.now().millis() + 1_000);
    see(&next, "b");
    put(&mut next, vec![watcher(Overlap::Skip)]);
    turn_until(&mut next, &store, 1);
    assert_eq!(statuses(&store), [SlotStatus::Ran]);
    let mut blind = watcher(Overlap::Skip);
    Arc::make_mut(&mut blind.inputs).clear();
    put(&mut next, vec![blind]);
    let run = rows(&store)[0].run.unwrap();
    next.settle(run).unwrap();
    turn_until(&mut next, &store, 2);
    let row = rows(&store).remove(1);
    assert_eq!(row.status, SlotStatus::BlockedConfig);
    assert_eq!(row.reason.as_deref(), Some("nothing to see"));
}

#[test]
fn a_clock_that_steps_back_holds_nothing_up() {
    let (store, world) = (MemoryStore::new(), Arc::default());
    let mut bench = bench(&store, &world, Vec::new());
    see(&bench, "a");
    put(&mut bench, vec![watcher(Overlap::Skip)]);
    probe(&mut bench);
    see(&bench, "b");
    probe(&mut bench);
    turn_until(&mut bench, &store, 1);
    let run = rows(&store)[0].run.unwrap();
    bench.settle(run).unwrap();
    bench.clock.step(-i64::try_from(24 * HOUR_MS).unwrap());
    see(&bench, "c");
    probe(&mut bench);
    turn_until(&mut bench, &store, 2);
    let statuses: Vec<SlotStatus> = rows(&store).iter().map(|row| row.status).collect();
    assert_eq!(statuses, [SlotStatus::Ran, SlotStatus::Ran]);
}

#[test]
fn an_occurrence_that_waits_keeps_its_turn_beside_what_cannot_be_seen() {
    let (store, world) = (MemoryStore::new(), Arc::default());
    let mut bench = bench(&store, &world, Vec::new());
    see(&bench, "a");
    let mut late = watcher(Overlap::Skip);
    let policy = Policy {
        jitter_ms: HOUR_MS,
        ..Policy::default()
    };
    late.policy = policy.into();
    put(&mut bench, vec![late.clone()]);
    probe(&mut bench);
    see(&bench, "b");
    probe(&mut bench);
    assert_eq!(state(&store).pending.len(), 1);
    late.inputs = serde_json::Map::new().into();
    put(&mut bench, vec![late.clone()]);
    probe(&mut bench);
    assert!(
        statuses(&store)
            .iter()
            .all(|status| *status == SlotStatus::BlockedConfig)
    );
    assert_eq!(state(&store).pending.len(), 1);
    late.inputs = watcher(Overlap::Skip).inputs.clone();
    put(&mut bench, vec![late]);
    bench.clock.advance(HOUR_MS);
    for _ in 0..200 {
        bench.inbox.wait(Duration::from_millis(5));
        bench.turn().unwrap();
    }
    assert!(
        statuses(&store).contains(&SlotStatus::CaughtUp)
            || statuses(&store).contains(&SlotStatus::Ran)
    );
    assert!(state(&store).pending.is_empty());
}

#[test]
fn what_happens_outside_of_start_and_end_is_not_due() {
    let (store, world) = (MemoryStore::new(), Arc::<Mutex<World>>::default());
    let mut bench = bench(&store, &world, Vec::new());
    let mut over = follower(AfterWhen::Always);
    let policy = Policy {
        end: Some(bench.clock.now()),
        ..Policy::default()
    };
    over.policy = policy.into();
    put(&mut bench, vec![over]);
    bench.clock.advance(1_000);
    let first = spec(1, plan(false));
    let _answer = bench.submit(&first, None);
    bench.turn().unwrap();
    bench.settle(first.run).unwrap();
    assert!(rows(&store).is_empty());
    assert!(state(&store).pending.is_empty());
}

/// Files that go on changing are taken as they are after 30 times the time in which they are to settle.
#[test]
fn what_never_settles_is_taken_as_it_is_after_a_while() {
    const SETTLE_MS: u64 = 10_000;
    let (store, world) = (MemoryStore::new(), Arc::default());
    let mut bench = bench(&store, &world, Vec::new());
    let mut watcher = watcher(Overlap::Skip);
    watcher.trigger = Arc::new(Trigger::Watch {
        paths: vec!["docs".to_owned()],
        settle_ms: SETTLE_MS,
    });
    see(&bench, "a");
    put(&mut bench, vec![watcher]);
    probe(&mut bench);
    let began = bench.clock.now();
    let mut number = 0;
    while state(&store).pending.is_empty() && rows(&store).is_empty() {
        number += 1;
        assert!(number < 100, "it is put off for ever");
        see(&bench, &number.to_string());
        bench.clock.advance(SETTLE_MS / 2);
        let _answer = bench.ask(Request::Hint(Some("w/s".to_owned())));
        for _ in 0..20 {
            bench.turn().unwrap();
            bench.inbox.wait(Duration::from_millis(1));
        }
    }
    let took = bench.clock.now().millis_since(began);
    assert!(
        (30 * SETTLE_MS..=31 * SETTLE_MS).contains(&took),
        "{took} ms"
    );
}
