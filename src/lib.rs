//! `workerctl` runs workers kept in a git repository unattended and makes the result trustworthy.
//!
//! The rooms, and which of them may import which, stand in `docs/dev/architecture.md`;
//! `tests/tidy.rs` enforces them.

#[cfg(not(target_os = "linux"))]
compile_error!("workerctl supervises processes with Linux interfaces and builds on Linux only");

pub mod cli;
pub mod daemon;

// Rooms of packages, under the names that they have there.
pub use workerctl_catalog as catalog;
pub use workerctl_clock as clock;
pub use workerctl_core::{
    inputs, machine, model, protocol, queue, schedule, template, thread, upcoming,
};
pub use workerctl_engine as engine;
pub use workerctl_git as git;
pub use workerctl_mcp as mcp;
pub use workerctl_process as process;
pub use workerctl_store as store;
pub use workerctl_web as web;
