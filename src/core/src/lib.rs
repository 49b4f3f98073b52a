//! What `workerctl` decides, and nothing that it does: pure functions over plain data.
//!
//! No room here touches files, processes, threads, clocks, randomness or the environment; time and everything that was
//! found out is an argument.

pub mod inputs;
pub mod machine;
pub mod model;
pub mod protocol;
pub mod queue;
pub mod retention;
pub mod schedule;
pub mod template;
pub mod thread;
pub mod upcoming;
