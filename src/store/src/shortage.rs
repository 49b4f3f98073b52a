//! Why there is no space for what is to be written.

use std::path::Path;

use super::files::is_full;
use crate::model::file_size::{FILE_SIZE_LIMIT, FILE_SIZE_REMEDY, exceeds_file_size};

/// What leaves no space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Shortage {
    /// The disk is full, or a quota is used up.
    #[error("no space is left")]
    Disk,
    /// The file system has space, but no inode for another file.
    #[error("the file system has no free inodes")]
    Inodes,
    /// A file has the size that this process may write at most.
    #[error("the limit on the size of a file (`ulimit -f`, `LimitFSIZE=`) is reached")]
    FileSize,
}

impl Shortage {
    /// Returns what kept a write at `path` from being done; `None` if it was not for want of space.
    pub fn of_error(error: &std::io::Error, path: &Path) -> Option<Shortage> {
        if is_full(error) {
            Some(Shortage::on(path))
        } else {
            exceeds_file_size(error).then_some(Shortage::FileSize)
        }
    }

    /// Returns what is short on the full file system of `path`, which need not exist itself.
    pub fn on(path: &Path) -> Shortage {
        let found = path
            .ancestors()
            .find_map(|above| rustix::fs::statvfs(above).ok());
        match found {
            // File systems that create inodes as they need them report none at all.
            Some(disk) if disk.f_files > 0 && disk.f_favail == 0 => Shortage::Inodes,
            _ => Shortage::Disk,
        }
    }

    /// A stable code.
    pub const fn code(self) -> &'static str {
        match self {
            Shortage::Disk | Shortage::Inodes => "disk_full",
            Shortage::FileSize => FILE_SIZE_LIMIT,
        }
    }

    /// What helps.
    pub const fn remedy(self) -> &'static str {
        match self {
            Shortage::Disk => "free some space",
            Shortage::Inodes => "delete files on that file system (`df -i` shows its inodes)",
            Shortage::FileSize => FILE_SIZE_REMEDY,
        }
    }
}
