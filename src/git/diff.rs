//! What a run had done, as a patch.

use std::path::Path;

use git2::{DiffFormat, DiffOptions};
use serde::{Deserialize, Serialize};

use super::open::Handle;
use super::refs::Kept;
use workerctl_landing::error::{GitError, git};
use workerctl_landing::ids::{Oid, RunId};

/// Files larger than this are shown as binary.
const FILE_BYTES_MAX: i64 = 4 << 20;

/// A patch in git's form; bytes that are not UTF-8 are replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Patch {
    /// The text.
    pub text: String,
    /// Whether the text ends before the patch does.
    pub truncated: bool,
}

/// The difference between a run's baseline and what it had done: before it was put back, or as
/// it stands. `None` when nothing of the run is kept any more.
pub fn diff(cwd: &Path, run: &RunId, bytes_max: usize) -> Result<Option<Patch>, GitError> {
    let handle = Handle::open(cwd)?;
    let mut after = None;
    for kept in [Kept::Discarded, Kept::Commit, Kept::Result] {
        after = after.or(handle.kept(run, kept)?);
    }
    let Some(after) = after else { return Ok(None) };
    let before = match handle.kept(run, Kept::Base)? {
        Some(oid) => Some(oid),
        None => handle.kept(run, Kept::Baseline)?,
    };
    handle.patch(before.as_ref(), &after, bytes_max).map(Some)
}

/// The difference between the first parent of one commit and another, which may be the same; `None` when one of
/// them is gone.
pub fn diff_of_commits(
    cwd: &Path,
    first: &Oid,
    last: &Oid,
    bytes_max: usize,
) -> Result<Option<Patch>, GitError> {
    let handle = Handle::open(cwd)?;
    let found = |oid: &Oid| handle.repo.find_commit(oid.raw());
    let (Ok(commit), Ok(_)) = (found(first), found(last)) else {
        return Ok(None);
    };
    let parent = commit.parent_id(0).ok().map(Oid::from);
    handle.patch(parent.as_ref(), last, bytes_max).map(Some)
}

impl Handle {
    fn patch(
        &self,
        before: Option<&Oid>,
        after: &Oid,
        bytes_max: usize,
    ) -> Result<Patch, GitError> {
        let before = self.tree_of(before)?;
        let after = self.tree_of(Some(after))?;
        let mut options = DiffOptions::new();
        options.include_typechange(true).max_size(FILE_BYTES_MAX);
        let diff = self
            .repo
            .diff_tree_to_tree(before.as_ref(), after.as_ref(), Some(&mut options))
            .map_err(git("compare two trees"))?;
        let mut bytes: Vec<u8> = Vec::new();
        let mut truncated = false;
        let printed = diff.print(DiffFormat::Patch, |_, _, line| {
            let origin = line.origin();
            let marked = matches!(origin, '+' | '-' | ' ');
            let length = line.content().len() + usize::from(marked);
            if bytes.len() + length > bytes_max {
                truncated = true;
                return false;
            }
            if let (true, Ok(mark)) = (marked, u8::try_from(origin)) {
                bytes.push(mark);
            }
            bytes.extend_from_slice(line.content());
            true
        });
        match printed {
            // Stopping the printer at the limit is reported as an error of the caller's.
            Err(_) if truncated => {}
            Err(e) => return Err(git("print the patch")(e)),
            Ok(()) => {}
        }
        Ok(Patch {
            text: String::from_utf8_lossy(&bytes).into_owned(),
            truncated,
        })
    }
}
