//! Trying again what another git got in the way of.
//!
//! `git gc` and its parts may run beside us at any time. They replace packs that are being read, delete objects
//! that no reference names yet, and remove directories that are empty for a moment. All of it is gone at the next
//! look with a fresh handle, and what was deleted is written again from the work tree.

use std::io::ErrorKind;
use std::thread;
use std::time::Duration;

use git2::{ErrorClass, ErrorCode};

use super::commit::PrepareError;
use super::deadline::Deadline;
use super::error::{GitError, git};
use super::ids::{Oid, RunId};
use super::open::Handle;
use super::refs::Kept;

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

impl Passing for PrepareError {
    fn may_pass(&self) -> bool {
        matches!(self, Self::Git(error) if error.may_pass())
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

impl Handle {
    /// Points a hidden reference at an object, and then makes durable what it holds. From here on a prune leaves that
    /// alone, and what one has deleted before is written again under the same reference.
    pub(super) fn keep_all(
        &self,
        run: &RunId,
        kept: Kept,
        oid: &Oid,
        objects: &[Oid],
    ) -> Result<(), GitError> {
        self.keep(run, kept, oid)?;
        self.hold(run, objects);
        self.sync_objects(objects, Deadline::NONE)?;
        self.expect_kept(objects)
    }

    /// Fails where one of these objects is gone: a prune that had looked for references before there was one
    /// for them deletes them all the same.
    pub(super) fn expect_kept(&self, oids: &[Oid]) -> Result<(), GitError> {
        let fail = git("keep what was recorded");
        // This handle believes of what it has read that it is there.
        let fresh = Handle::open(self.workdir())?;
        let odb = fresh.repo.odb().map_err(&fail)?;
        match oids.iter().find(|oid| !odb.exists(oid.raw())) {
            None => Ok(()),
            Some(oid) => {
                let message = format!("the object {oid} was deleted by another program");
                let gone = git2::Error::new(ErrorCode::NotFound, ErrorClass::Odb, message);
                Err(fail(gone))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn git_error(code: ErrorCode, class: ErrorClass) -> GitError {
        git("read")(git2::Error::new(code, class, "x"))
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
            Err(GitError::OutOfTime)
        });
        assert!(refused.is_err());
        assert_eq!(tried, 1);
    }
}
