//! Which run a process belongs to.

/// The run and the attempt that processes belong to; every process carries both as variables.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Owner {
    /// The run's id in full.
    pub run: String,
    /// The attempt, counted from 1.
    pub attempt: u32,
}

/// Where a process comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// From no command of this process.
    Elsewhere,
    /// From a command of this process.
    Command {
        /// On whose behalf that runs.
        owner: Owner,
        /// Whether it may ask the engine in this process for something.
        may_control: bool,
    },
    /// From a command of another engine's run.
    OtherEngine,
    /// It cannot be decided.
    Unknown(Undecided),
}

/// Why the origin of a process cannot be decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Undecided {
    /// The kernel names no process.
    #[error("the kernel names no process behind the connection")]
    NoProcess,
    /// It connected and ended, so that its id may name another process by now.
    #[error("the process that connected has ended")]
    Ended,
    /// This process of its ancestry, which may be itself, cannot be looked at.
    #[error("`/proc` hides process {0}, from which the caller descends")]
    Hidden(u32),
    /// A command left it behind, and it is not known which.
    #[error("the caller is an orphan of a command that can no longer be identified")]
    Orphan,
}
