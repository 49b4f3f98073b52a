//! Where a command looks for an engine.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// Which engine a command accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectMode {
    /// The one that runs; where none runs, one hosted in this process.
    RunningElseHosted,
    /// Only one that runs: for what must outlive this process, and for commands about the daemon.
    RunningOnly,
}

/// Where to look for an engine, and what to host one with.
#[derive(Debug, Clone)]
pub struct ConnectOptions {
    /// Absolute path of the workspace.
    pub workspace: PathBuf,
    /// Absolute path of the state directory.
    pub state_dir: PathBuf,
    /// The socket that was asked for.
    pub socket: Option<PathBuf>,
    /// The process's environment.
    pub environment: BTreeMap<String, String>,
    /// Which engine is accepted.
    pub mode: ConnectMode,
}
