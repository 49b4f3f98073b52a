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
    /// It cannot be told: it has gone, or nobody knows any more which command has left it.
    Unknown,
}
