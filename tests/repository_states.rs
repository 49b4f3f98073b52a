//! States that a repository can be in when a mutating run begins, works or ends: each run either ends with
//! exactly one commit on the right branch and the checkout clean, or is refused or fails by name with nothing
//! changed: no file, index entry, reference, `HEAD` or setting.
//!
//! The states are built by the real git, and what became of them is looked at with it.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::panic,
    reason = "what prepares a test fails by panicking, and says when it skips"
)]

#[path = "repository_states/branches.rs"]
mod branches;
#[path = "repository_states/contents.rs"]
mod contents;
#[path = "repository_states/formats.rs"]
mod formats;
#[path = "repository_states/row.rs"]
mod row;
#[path = "repository_states/under_way.rs"]
mod under_way;
#[expect(dead_code, reason = "shared with other tests, which use more of it")]
mod workspace;
