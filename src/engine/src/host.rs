//! Who hosts an engine.

/// Who hosts the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Host {
    /// A daemon: starts queued runs, serves until it is drained.
    Daemon,
    /// A command: starts no queued run but its own, and settles lost attempts once it changes anything.
    InProcess,
}

impl Host {
    /// Its name in every interface and in the locks.
    pub const fn name(self) -> &'static str {
        match self {
            Host::Daemon => "daemon",
            Host::InProcess => "in_process",
        }
    }
}
