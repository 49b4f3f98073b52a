//! `workerctl` runs workers kept in a git repository unattended and makes the result trustworthy.
//!
//! The rooms, and which of them may import which, stand in `docs/architecture.md`;
//! `tests/tidy.rs` enforces them.

#[cfg(not(target_os = "linux"))]
compile_error!("workerctl supervises processes with Linux interfaces and builds on Linux only");

pub mod catalog;
pub mod cli;
pub mod clock;
pub mod daemon;
pub mod engine;
pub mod git;
pub mod mcp;
pub mod process;
mod sandbox;
pub mod store;

// Rooms of `src/core`, under the names that they have there.
pub use workerctl_core::{inputs, machine, model, protocol, queue, schedule, template, thread};
