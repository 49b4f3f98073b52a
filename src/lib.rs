//! `workerctl` runs workers kept in a git repository unattended and makes the result trustworthy.
//!
//! The rooms, and which of them may import which, stand in `docs/architecture.md`;
//! `tests/tidy.rs` enforces them.

#[cfg(not(target_os = "linux"))]
compile_error!("workerctl supervises processes with Linux interfaces and builds on Linux only");

pub mod cli;
pub mod clock;
pub mod daemon;
pub mod engine;
pub mod mcp;

// Rooms of packages, under the names that they have there.
pub use workerctl_catalog as catalog;
pub use workerctl_core::{inputs, machine, model, protocol, queue, schedule, template, thread};
pub use workerctl_git as git;
pub use workerctl_process as process;
use workerctl_sandbox as sandbox;
pub use workerctl_store as store;
