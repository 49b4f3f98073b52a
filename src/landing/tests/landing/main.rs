//! A commit lands beside a person at work, and is killed on the way.
//!
//! `WORKERCTL_TEST_ROUNDS=all` tries every step with every action; a number tries that many cases of each
//! kind, chosen by a seed (40 without it). `TMPDIR` on a file system in memory makes it several times faster.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "what a test cannot set up fails it at once; how many cases there were is said"
)]

mod child;
#[path = "../../../../tests/workspace/disk.rs"]
#[expect(dead_code, reason = "shared with other tests, which use more of it")]
mod disk;
mod entries;
mod importing;
mod killed;
mod kinds;
mod person;
mod places;
mod power;
mod rig;

use xtest::skip;
