//! Schedules on a virtual clock, with an engine that is lost, a clock that steps and a machine that sleeps.
//!
//! Whatever happens: each slot has exactly one row, each row that says so exactly one run, no slot
//! runs twice, nothing turns in circles, and the same seed leads to the same rows.
//!
//! `WORKERCTL_TEST_ROUNDS=<n>` sets the number of seeds (8 by default, 3 for traces, 1,000 before a release);
//! `WORKERCTL_TEST_SEED=<n>` the first of them.
#![expect(
    clippy::unwrap_used,
    reason = "what prepares a test fails by panicking, and says which seed"
)]

#[cfg(test)]
#[path = "schedule_simulation/engine.rs"]
mod engine;
#[cfg(test)]
#[path = "schedule_simulation/world.rs"]
mod world;

use world::World;

fn number(name: &str, default: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.map_or(default, |text| text.parse().unwrap())
}

#[test]
fn every_due_time_has_one_row_whatever_happens() {
    let first = number("WORKERCTL_TEST_SEED", 1);
    let rounds = number("WORKERCTL_TEST_ROUNDS", 8);
    let mut slots = 0;
    for seed in first..first + rounds {
        let mut world = World::new(seed);
        world.live();
        slots += world.verify();
    }
    println!("{rounds} seeds from {first}: {slots} slots, each with one row");
}

#[test]
fn a_seed_leads_to_the_same_rows_again() {
    let first = number("WORKERCTL_TEST_SEED", 1);
    for seed in first..first + number("WORKERCTL_TEST_ROUNDS", 3) {
        let trace = || {
            let mut world = World::new(seed);
            world.live();
            world.trace()
        };
        assert_eq!(trace(), trace(), "seed {seed}");
    }
}
