//! What is forgotten by the rules of retention.

use serde::{Deserialize, Serialize};

use crate::model::Timestamp;

/// Asks what is to be forgotten by now, or for it to be done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ForgetRequest {
    /// Only tells what would go.
    pub dry_run: bool,
    /// Believes the wall clock although it has jumped.
    pub trust_clock: bool,
}

/// What is forgotten, or would be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Forgot {
    /// Runs whose time is over, with journal and thread.
    pub run_count: u64,
    /// Of these, those that go before their time because threads have too many bytes.
    pub early_run_count: u64,
    /// When the oldest of them ended.
    pub oldest: Option<Timestamp>,
    /// When the newest of them ended.
    pub newest: Option<Timestamp>,
    /// Bytes of their threads.
    pub thread_bytes: u64,
    /// Schedules that are defined no more, with their rows.
    pub schedules: Vec<String>,
    /// Bytes of the database before.
    pub database_bytes_before: u64,
    /// Bytes of the database after it was compacted; absent where that was not done.
    pub database_bytes_after: Option<u64>,
    /// The newest instant on record, where the clock stands before it: then nothing is forgotten.
    pub clock_behind: Option<Timestamp>,
    /// Why the clock is not believed; then nothing is forgotten.
    pub clock_doubt: Option<ClockDoubt>,
    /// Whether as much went as one request may take, and there is more.
    pub more: bool,
    /// What could not be done, for people.
    pub notes: Vec<String>,
}

/// A wall clock that has jumped since the last sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ClockDoubt {
    /// The wall clock after the jump, or when it was first seen before the newest instant on record.
    pub steady_since: Timestamp,
    /// When it is believed, if it does not jump again.
    pub believed_at: Timestamp,
}
