//! Crashes at every commit, and walks without aim.

use workerctl_core::machine::{CancelKind, Event, Run};
use workerctl_core::model::spec::Plan;

use crate::plans::{is_complete, plans};
use crate::representatives::{AT, representatives};
use crate::sim::{Engine, Random};

/// More events than any run needs that is left alone.
const STEPS_MAX: usize = 400;

/// When the engine is lost: at which commit, and whether the effect that follows it was done.
#[derive(Clone, Copy)]
struct Crash {
    commit: usize,
    effect_done: bool,
}

/// Runs to the end with these crashes; answers how many events were committed.
fn run_with(plan: &Plan, seed: u64, trouble: u64, crashes: &[Crash]) -> usize {
    let mut engine = Engine::submit(plan, seed, trouble);
    let mut left = crashes.to_vec();
    for _ in 0..STEPS_MAX {
        let lost = left
            .first()
            .copied()
            .filter(|crash| crash.commit <= engine.journal.len());
        if let Some(crash) = lost {
            left.remove(0);
            if crash.effect_done && engine.run.next_action().is_some() {
                let _ = engine.step();
            }
            engine.crash();
            engine.check_world();
        }
        let Some(event) = engine.step() else {
            if left.is_empty() {
                engine.check_end();
                return engine.journal.len();
            }
            left.remove(0);
            continue;
        };
        assert!(
            engine.record(event.clone()),
            "{event:?} in {:?}",
            engine.run.state
        );
        engine.check_world();
    }
    panic!("no end after {STEPS_MAX} steps under {plan:?}");
}

#[test]
fn a_crash_at_every_commit_with_and_without_the_effect_ends_well() {
    let mut crashes = 0;
    for (number, plan) in plans().iter().enumerate() {
        for trouble in [0, 4] {
            let seed = 17 + number as u64;
            let length = run_with(plan, seed, trouble, &[]);
            for commit in 1..=length {
                for effect_done in [false, true] {
                    let crash = Crash {
                        commit,
                        effect_done,
                    };
                    run_with(plan, seed, trouble, &[crash]);
                    // And a second one right after the first, and one a little later.
                    for later in [commit + 1, commit + 3] {
                        for second_done in [false, true] {
                            let second = Crash {
                                commit: later,
                                effect_done: second_done,
                            };
                            run_with(plan, seed, trouble, &[crash, second]);
                            crashes += 2;
                        }
                    }
                    crashes += 1;
                }
            }
        }
    }
    println!("{crashes} crashes");
    assert!(crashes > 2_500);
}

fn request(random: &mut Random, run: &Run) -> Event {
    match random.below(8) {
        0 => Event::RuntimeExhausted,
        1 | 2 => Event::Interrupted,
        3 => Event::CancelRequested {
            kind: CancelKind::Graceful,
            by: "somebody".into(),
        },
        4 => Event::CancelRequested {
            kind: CancelKind::Now,
            by: "somebody".into(),
        },
        // Anything at all, most of it refused.
        _ => {
            let all = representatives(run);
            let place = usize::try_from(random.below(all.len() as u64)).unwrap();
            all[place].clone()
        }
    }
}

/// Whether an event only reports: what it says must have been done in the world.
fn is_wish(event: &Event) -> bool {
    matches!(
        event,
        Event::RuntimeExhausted | Event::Interrupted | Event::CancelRequested { .. }
    )
}

fn trace_hash(engine: &Engine) -> u64 {
    let text = serde_json::to_vec(&(&engine.journal, &engine.run)).unwrap();
    text.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn walk(plans: &[Plan], seed: u64) -> u64 {
    let mut choose = Random(seed.wrapping_mul(0xD134_2543_DE82_EF95) | 1);
    for _ in 0..4 {
        choose.next();
    }
    let plan = &plans[usize::try_from(choose.below(plans.len() as u64)).unwrap()];
    let mut engine = Engine::submit(plan, seed, 5);
    for step in 0..STEPS_MAX {
        // After a while only results come, so that the walk must end.
        let disturbed = step < 60;
        if disturbed && choose.one_in(6) {
            let event = request(&mut choose, &engine.run);
            if is_wish(&event) {
                engine.record(event);
            } else if engine.run.next_action().is_some() && engine.run.apply_is_refused(&event) {
                let before = engine.run.clone();
                assert!(!engine.record(event));
                assert_eq!(engine.run, before);
            }
        }
        let late = disturbed && choose.one_in(8);
        if late {
            if choose.one_in(2) && engine.run.next_action().is_some() {
                let _ = engine.step();
            }
            engine.crash();
        }
        engine.check_world();
        let Some(event) = engine.step() else {
            break;
        };
        assert!(
            engine.record(event.clone()),
            "{event:?} in {:?}",
            engine.run.state
        );
    }
    assert!(
        engine.run.next_action().is_none() && engine.run.is_finished(),
        "seed {seed}"
    );
    engine.check_end();
    let stored = serde_json::to_string(&engine.journal).unwrap();
    let read = serde_json::from_str::<Vec<workerctl_core::machine::Entry>>(&stored).unwrap();
    assert_eq!(Run::fold(&read).unwrap(), engine.run, "seed {seed}");
    trace_hash(&engine)
}

trait Refuses {
    fn apply_is_refused(&self, event: &Event) -> bool;
}

impl Refuses for Run {
    fn apply_is_refused(&self, event: &Event) -> bool {
        self.apply(AT, event).is_err()
    }
}

#[test]
fn random_walks_end_and_repeat_themselves() {
    let (plans, mut hashes) = (plans(), std::collections::HashSet::new());
    let count: u16 = if is_complete() { 10_000 } else { 2_000 };
    for seed in (1..=count).map(u64::from) {
        let hash = walk(&plans, seed);
        assert_eq!(hash, walk(&plans, seed), "seed {seed}");
        hashes.insert(hash);
    }
    assert!(
        hashes.len() > usize::from(count) / 4,
        "only {} different walks",
        hashes.len()
    );
}
