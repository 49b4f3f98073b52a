//! Places that an engine needs and cannot use: what that means for whoever asked, and what helps.

use std::io;
use std::path::Path;

use rustix::io::Errno;

use crate::model::diagnostic::chain;
use crate::model::{Diagnostic, Kind};
use crate::store::{Shortage, StoreError};

/// Code of what is refused for want of space.
pub(super) const DISK_FULL: &str = "disk_full";

/// Code of what is refused because its file system is read-only.
const READ_ONLY: &str = "read_only";

/// A place that cannot be used: no space is left there, it may not be written, or else `remedy` helps.
///
/// What only a person can mend is `Blocked`, also what stands in the way.
pub fn unusable(
    code: &str,
    message: String,
    (error, path): (&io::Error, &Path),
    remedy: &str,
) -> Diagnostic {
    const WRITABLE: &str =
        "make it writable for this user, or name another state directory with `--state-dir`";
    let in_the_way = [Errno::NOTDIR, Errno::EXIST, Errno::ISDIR, Errno::LOOP];
    if let Some(shortage) = Shortage::of_error(error, path) {
        return of_shortage(shortage, message);
    }
    match error.kind() {
        io::ErrorKind::ReadOnlyFilesystem => {
            Diagnostic::new(Kind::Blocked, READ_ONLY, message).hint(WRITABLE)
        }
        io::ErrorKind::PermissionDenied => {
            Diagnostic::new(Kind::Blocked, code, message).hint(WRITABLE)
        }
        _ if Errno::from_io_error(error).is_some_and(|errno| in_the_way.contains(&errno)) => {
            Diagnostic::new(Kind::Blocked, code, message).hint(remedy)
        }
        _ => Diagnostic::new(Kind::Internal, code, message).hint(remedy),
    }
}

fn of_shortage(shortage: Shortage, message: String) -> Diagnostic {
    Diagnostic::new(Kind::Blocked, shortage.code(), message)
        .hint(format!("{} and start again", shortage.remedy()))
}

/// Why an engine did not start, for a service manager: a disk that is full or read-only may not be so for long, so it
/// counts as a failure, which is tried again, and not as a refusal, which is final.
pub fn unless_it_passes(mut refused: Diagnostic) -> Diagnostic {
    if [DISK_FULL, READ_ONLY].contains(&refused.code.as_str()) {
        refused.kind = Kind::Internal;
    }
    refused
}

/// The store's files went away under the engine, which acknowledges nothing more.
pub(super) fn gone(message: String) -> Diagnostic {
    Diagnostic::new(Kind::Internal, "state_gone", message).hint(
        "put the state directory back, or restore the store from the threads with `workerctl store rebuild`, or create an empty store with `workerctl store init`; then start the engine again",
    )
}

/// Why the store cannot be used, and what to do about it.
pub(super) fn of_store(error: &StoreError) -> Diagnostic {
    let message = chain(error);
    match error {
        StoreError::Full { shortage, .. } => of_shortage(*shortage, message),
        StoreError::Newer { .. } => Diagnostic::new(Kind::Blocked, "store_newer", message)
            .hint("use the newer program, or another `--state-dir`"),
        StoreError::Corrupt { .. } => Diagnostic::new(Kind::Blocked, "store_corrupt", message)
            .hint("`workerctl store verify` shows the damage, `workerctl store rebuild` restores from the threads"),
        StoreError::Gone { .. } => gone(message),
        StoreError::Broken { source, path } => unusable(
            "store",
            message,
            (source, Path::new(path)),
            "`workerctl doctor` looks at everything that an engine needs",
        ),
        _ => Diagnostic::new(Kind::Internal, "store", message),
    }
}
