//! What the API tells of one run: its log, its phases, who did what, and what it left; a real daemon and real commands.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::panic,
    reason = "what prepares a test fails by panicking, and says when it skips"
)]

#[expect(dead_code, reason = "shared with other tests, which use more of it")]
mod workspace;

#[path = "api_runs/acts.rs"]
mod acts;
#[path = "api_runs/durations.rs"]
mod durations;
#[path = "api_runs/logs.rs"]
mod logs;
#[path = "api_runs/results.rs"]
mod results;

use workspace::api::{Answer, Api};
