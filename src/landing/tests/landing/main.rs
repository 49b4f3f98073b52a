//! A commit lands beside a person at work, and is killed on the way.
//!
//! `WORKERCTL_TEST_ROUNDS=all` tries every step with every action; a number tries that many cases of each
//! kind, chosen by a seed (40 without it). `TMPDIR` on a file system in memory makes it several times faster.
#![expect(
    clippy::unwrap_used,
    reason = "what a test cannot set up fails it at once"
)]

mod child;
mod killed;
mod importing;
mod kinds;
mod person;
mod places;
mod rig;
