//! The store on disk against what happens to disks and processes: kills, power cuts, full disks,
//! failing calls, damage, and two engines at once.
//!
//! `WORKERCTL_TEST_ROUNDS=<n>` multiplies the number of rounds (default 1). What needs root, loop
//! devices or strace is skipped where it cannot be had.

#[cfg(test)]
use workerctl::store::{Batch, Write};
#[cfg(test)]
use workerctl::{machine, model, protocol, store};

#[cfg(test)]
mod child;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod full;
#[cfg(test)]
mod inject;
#[cfg(test)]
mod kill;
#[cfg(test)]
mod power;
#[cfg(test)]
mod rig;
#[cfg(test)]
#[path = "../../src/store/src/tests/sample_runs.rs"]
#[expect(dead_code, reason = "shared with the unit tests, which use more of it")]
mod sample_runs;
#[cfg(test)]
mod two;
