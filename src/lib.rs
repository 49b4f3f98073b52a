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
pub mod inputs;
pub mod machine;
pub mod mcp;
pub mod model;
pub mod process;
pub mod protocol;
pub mod queue;
mod sandbox;
pub mod schedule;
pub mod store;
pub mod template;
pub mod thread;
