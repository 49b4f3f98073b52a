//! Why there is no space for what is to be written.

use super::files::is_full;
use crate::model::file_size::{FILE_SIZE_LIMIT, FILE_SIZE_REMEDY, exceeds_file_size};

/// What leaves no space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Shortage {
    /// The disk is full, or a quota is used up.
    #[error("no space is left")]
    Disk,
    /// A file has the size that this process may write at most.
    #[error("the limit on the size of a file (`ulimit -f`, `LimitFSIZE=`) is reached")]
    FileSize,
}

impl Shortage {
    /// What kept an error's write from being done, if it was want of space.
    pub fn of_error(error: &std::io::Error) -> Option<Shortage> {
        if is_full(error) {
            Some(Shortage::Disk)
        } else {
            exceeds_file_size(error).then_some(Shortage::FileSize)
        }
    }

    /// A stable code.
    pub const fn code(self) -> &'static str {
        match self {
            Shortage::Disk => "disk_full",
            Shortage::FileSize => FILE_SIZE_LIMIT,
        }
    }

    /// What helps.
    pub const fn remedy(self) -> &'static str {
        match self {
            Shortage::Disk => "free some space",
            Shortage::FileSize => FILE_SIZE_REMEDY,
        }
    }
}
