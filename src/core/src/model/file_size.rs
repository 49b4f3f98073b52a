//! The limit on the size of a file that a process may write (`RLIMIT_FSIZE`).

use std::io;

/// Code of what failed because a file reached the limit.
pub const FILE_SIZE_LIMIT: &str = "file_size_limit";

/// What helps.
pub const FILE_SIZE_REMEDY: &str = "raise the limit on the size of a file for the engine: `ulimit -f unlimited`, or `LimitFSIZE=infinity` in its unit";

/// Whether the system refused a write because the file would exceed the limit.
pub fn exceeds_file_size(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::FileTooLarge
}
