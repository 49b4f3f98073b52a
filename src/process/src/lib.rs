//! Runs one command: group, environment, timeout, caps.
//!
//! The library `duct` builds and starts the child; everything after that is done here, in one
//! loop over its pipes, its exit and its deadlines, without a thread for each command. A command
//! is over when *no* process of it is left: not in its group, not in a session of its own, not
//! with an emptied environment.
//!
//! `wall` and `container` import each other: a container is a part of a wall, and is built from what the whole
//! wall permits.

use workerctl_core::model;

mod command;
mod container;
mod control_group;
mod descriptors;
mod environment;
mod error;
mod filter;
mod groups;
mod input;
mod launch;
mod lines;
mod live;
mod memory;
mod open_files;
mod origin;
mod orphans;
mod output;
mod owner;
mod procfs;
mod registry;
mod run;
mod signal;
mod spawn;
mod stop;
mod tag;
mod usage;
mod user;
mod wall;

pub use command::{
    ARGUMENT_BYTES_MAX, ATTEMPT_VARIABLE, Command, EndCause, ExitStatus, Finished, Limits,
    OutputSink, PipeEnd, Program, RUN_VARIABLE, Spawned, Stdin, Stream,
};
pub use container::{Container, Link, containers_stand, launched_within_container};
pub use descriptors::close_inherited_on_exec;
pub use environment::environment;
pub use error::SpawnError;
pub use filter::Network;
pub use groups::{groups_of_peer, pidfd_of_peer};
pub use launch::launch;
pub use live::LiveRecord;
pub use memory::give_back_memory;
pub use open_files::{open_files_cause, with_cause};
pub use origin::{is_command_of_run, origin_of, user_is_kept};
pub use orphans::{
    OrphansEnded, OrphansRemain, end_orphans_with_open, find_and_end_orphans, is_within,
};
pub use owner::{Origin, Owner, Undecided};
pub use registry::become_subreaper;
pub use run::run;
pub use stop::{StopHandle, StopKind};
pub use user::{name_of_user, own_name};
pub use wall::{RaisedWall, Wall, WallError, landlock_abi, walls_stand};

#[cfg(test)]
mod tests;
