//! Schedules whose gate mostly finds nothing to do.

use std::ops::ControlFlow;

use super::bench::*;
use super::schedules::{HOUR_MS, hourly, put};
use super::*;
use crate::model::SkillRef;
use crate::model::schedule::{
    AfterWhen, Overlap, Policy, Schedule, ScheduleState, SlotRow, SlotStatus, Trigger,
};
use crate::store::Unreadable;

fn named(id: &str, wakes: bool) -> Schedule {
    let mut schedule = hourly(Policy {
        overlap: Overlap::BufferAll,
        ..Policy::default()
    });
    schedule.id = id.into();
    schedule.skill = Arc::new(SkillRef {
        worker: id.replace('/', "-"),
        skill: "s".to_owned(),
    });
    if wakes {
        Arc::make_mut(&mut schedule.inputs).insert("wakes".to_owned(), true.into());
    }
    schedule
}

fn rows_of(store: &MemoryStore, id: &str) -> Vec<SlotRow> {
    let mut rows = Vec::new();
    let mut take = |row: Result<SlotRow, Unreadable>| {
        rows.push(row.unwrap());
        ControlFlow::Continue(())
    };
    store.slots(id, None, &mut take).unwrap();
    rows
}

fn state_of(store: &MemoryStore, wanted: &str) -> ScheduleState {
    let mut found = None;
    let mut take = |id: &str, state: Result<ScheduleState, _>| {
        if id == wanted {
            found = state.ok();
        }
    };
    store.schedules(&mut take).unwrap();
    found.unwrap()
}

/// One of two schedules has a gate, which finds something once in a hundred slots. Both have a row and a run for each
/// slot, and only what was found to do is executed, and followed.
#[test]
fn a_gate_that_finds_nothing_costs_no_execution_and_loses_no_slot() {
    let (store, world) = (MemoryStore::new(), Arc::<Mutex<World>>::default());
    let mut bench = bench(&store, &world, Vec::new());
    let (gated, plain) = (named("w/gated", true), named("w/plain", false));
    let follower = |id: &str, when| Schedule {
        trigger: Arc::new(Trigger::After {
            skill: Box::new((*gated.skill).clone()),
            when,
        }),
        ..named(id, false)
    };
    let follows = follower("w/follows", AfterWhen::Succeeded);
    let always = follower("w/always", AfterWhen::Always);
    let skills = [&gated, &plain, &follows, &always].map(|one| one.skill.worker.clone());
    put(&mut bench, vec![gated, plain, follows, always]);
    let began = bench.clock.now();
    for slot in 1..=FINDS_EVERY {
        let due = began.plus_millis(slot * HOUR_MS);
        bench.clock.advance(due.millis_since(bench.clock.now()));
        let wanted = usize::try_from(slot).unwrap();
        let have_rows = || {
            let all = ["w/gated", "w/plain", "w/always"];
            all.iter().all(|id| rows_of(&store, id).len() >= wanted)
        };
        for _ in 0..100_000 {
            let idle = bench.core.preparing == 0 && bench.core.sealing.under_way.is_none();
            if have_rows() && idle {
                if bench.core.live.is_empty() {
                    break;
                }
                let works = |live: &Live| live.outstanding.is_some();
                if !bench.core.live.values().any(works) {
                    // Only what ended waits, for its files to be synced.
                    bench.clock.advance(crate::core::sealing::SEAL_AFTER_MS);
                }
            }
            bench.turn().unwrap();
            std::thread::yield_now();
        }
        assert!(have_rows() && bench.core.live.is_empty(), "slot {slot}");
    }
    for id in ["w/gated", "w/plain"] {
        let rows = rows_of(&store, id);
        assert_eq!(rows.len(), 100, "{id}");
        assert!(
            rows.iter()
                .all(|row| row.status == SlotStatus::Ran && row.run.is_some())
        );
        let state = state_of(&store, id);
        assert_eq!((state.failures, state.actions), (0, 100));
        assert!(state.succeeded_at.is_some());
    }
    let mut ended = std::collections::BTreeMap::<String, (u32, u32)>::new();
    let take = &mut |summary: crate::protocol::RunSummary| {
        assert_eq!(summary.outcome, Some(Outcome::Succeeded));
        let (runs, idle) = ended.entry(summary.skill.worker.clone()).or_default();
        *runs += 1;
        *idle += u32::from(summary.nothing_to_do);
        assert!(!(summary.nothing_to_do && summary.unverified));
        assert_eq!(summary.nothing_to_do, summary.attempts == 0);
        ControlFlow::Continue(())
    };
    store.summaries(None, take).unwrap();
    let counted = skills.map(|skill| ended[&skill]);
    assert_eq!(counted, [(100, 99), (100, 0), (1, 0), (100, 0)]);
    let world = world.lock().unwrap();
    assert_eq!(
        (world.asked, world.executed.len()),
        (100, 1 + 100 + 1 + 100)
    );
}
