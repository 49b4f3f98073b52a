//! What a run had done, as a patch.

use std::path::Path;

use git2::DiffOptions;
use serde::{Deserialize, Serialize};

use super::open::Handle;
use super::refs::KeptRef;
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
    for kept in [KeptRef::Discarded, KeptRef::Commit, KeptRef::Result] {
        after = after.or(handle.kept(run, kept)?);
    }
    let Some(after) = after else { return Ok(None) };
    let before = match handle.kept(run, KeptRef::Base)? {
        Some(oid) => Some(oid),
        None => handle.kept(run, KeptRef::Baseline)?,
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
        // A file that becomes a link goes and comes, so that both contents are seen.
        options.include_typechange(false).max_size(FILE_BYTES_MAX);
        let fail = git("compare two trees");
        let diff = self
            .repo
            .diff_tree_to_tree(before.as_ref(), after.as_ref(), Some(&mut options))
            .map_err(&fail)?;
        let mut printed = Printed {
            bytes: Vec::new(),
            bytes_max,
            truncated: false,
        };
        for index in 0..diff.deltas().len() {
            let Some(mut patch) = git2::Patch::from_diff(&diff, index).map_err(&fail)? else {
                continue;
            };
            if patch.delta().flags().is_binary()
                && let Some(as_text) = self.text_of(&patch.delta())?
            {
                printed.add(as_text.as_bytes());
            } else {
                match patch.print(&mut |_, _, line| printed.line(&line)) {
                    // Stopping the printer at the limit is reported as an error of the caller's.
                    Err(_) if printed.truncated => {}
                    other => other.map_err(git("print the patch"))?,
                }
            }
            if printed.truncated {
                break;
            }
        }
        let Printed {
            bytes, truncated, ..
        } = printed;
        Ok(Patch {
            text: String::from_utf8_lossy(&bytes).into_owned(),
            truncated,
        })
    }

    /// The patch of a file that is text, whatever the attributes of the repository say: a run may have set them.
    fn text_of(&self, delta: &git2::DiffDelta<'_>) -> Result<Option<String>, GitError> {
        let fail = git("compare two files");
        let blob = |file: git2::DiffFile<'_>| self.repo.find_blob(file.id()).ok();
        let (old, new) = (blob(delta.old_file()), blob(delta.new_file()));
        let sides = || old.iter().chain(&new);
        let is_large = |blob: &git2::Blob<'_>| {
            i64::try_from(blob.size()).is_ok_and(|size| size > FILE_BYTES_MAX)
        };
        if sides().next().is_none() || sides().any(|blob| blob.is_binary() || is_large(blob)) {
            return Ok(None);
        }
        let path = |file: git2::DiffFile<'_>| file.path().map(Path::to_owned);
        let (old_path, new_path) = (path(delta.old_file()), path(delta.new_file()));
        let content =
            |blob: &Option<git2::Blob<'_>>| blob.as_ref().map(|blob| blob.content().to_vec());
        let (old, new) = (
            content(&old).unwrap_or_default(),
            content(&new).unwrap_or_default(),
        );
        let mut options = DiffOptions::new();
        options.force_text(true);
        let made = git2::Patch::from_buffers(
            &old,
            old_path.as_deref(),
            &new,
            new_path.as_deref(),
            Some(&mut options),
        );
        let text = made.and_then(|mut made| made.to_buf()).map_err(&fail)?;
        Ok(Some(String::from_utf8_lossy(&text).into_owned()))
    }
}

/// A patch as far as it is printed.
struct Printed {
    bytes: Vec<u8>,
    bytes_max: usize,
    truncated: bool,
}

impl Printed {
    fn add(&mut self, bytes: &[u8]) -> bool {
        self.truncated |= self.bytes.len() + bytes.len() > self.bytes_max;
        if !self.truncated {
            self.bytes.extend_from_slice(bytes);
        }
        !self.truncated
    }

    fn line(&mut self, line: &git2::DiffLine<'_>) -> bool {
        let origin = line.origin();
        let mark = u8::try_from(origin)
            .ok()
            .filter(|_| matches!(origin, '+' | '-' | ' '));
        let mut bytes: Vec<u8> = mark.into_iter().collect();
        bytes.extend_from_slice(line.content());
        self.add(&bytes)
    }
}
