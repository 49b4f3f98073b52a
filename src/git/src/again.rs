//! Trying again what another git got in the way of.
//!
//! `git gc` and its parts may run beside us at any time. They replace packs that are being read, delete objects
//! that no reference names yet, and remove directories that are empty for a moment. All of it is gone at the next
//! look with a fresh handle, and what was deleted is written again from the work tree.

use std::io::ErrorKind;
use std::thread;
use std::time::Duration;

use git2::{ErrorClass, ErrorCode};

use workerctl_landing::error::GitError;

/// How often something is tried in all.
const TRIES: u32 = 20;

/// The wait before the second time; it grows by as much each time.
const PAUSE: Duration = Duration::from_millis(10);

/// An error that may be gone at the next look.
pub(super) trait Passing {
    /// Whether it is of the kind that another git causes.
    fn may_pass(&self) -> bool;
}

impl Passing for GitError {
    fn may_pass(&self) -> bool {
        match self {
            Self::Io { source, .. } => source.kind() == ErrorKind::NotFound,
            Self::Git { source, .. } => {
                let code = matches!(source.code(), ErrorCode::NotFound | ErrorCode::Locked);
                let class = matches!(
                    source.class(),
                    ErrorClass::Odb
                        | ErrorClass::Object
                        | ErrorClass::Tree
                        | ErrorClass::Reference
                        | ErrorClass::Os
                );
                code || class
            }
            _ => false,
        }
    }
}

/// Does it until it succeeds, fails for good, or was tried often enough. It has to open its own handle, and must
/// do no harm where it is repeated.
pub(super) fn again<T, E: Passing>(mut attempt: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    for tried in 1..TRIES {
        match attempt() {
            Err(error) if error.may_pass() => thread::sleep(PAUSE * tried),
            done => return done,
        }
    }
    attempt()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn git_error(code: ErrorCode, class: ErrorClass) -> GitError {
        workerctl_landing::error::git("read")(git2::Error::new(code, class, "x"))
    }

    #[test]
    fn what_may_pass_is_tried_a_bounded_number_of_times() {
        let mut tried = 0;
        let gone: Result<(), _> = again(|| {
            tried += 1;
            Err(git_error(ErrorCode::NotFound, ErrorClass::Odb))
        });
        assert!(gone.is_err());
        assert_eq!(tried, TRIES);
    }

    #[test]
    fn what_will_not_pass_is_tried_once() {
        let mut tried = 0;
        let refused: Result<(), _> = again(|| {
            tried += 1;
            Err(GitError::NotARepository(PathBuf::from("/x")))
        });
        assert!(refused.is_err());
        assert_eq!(tried, 1);
    }
}
