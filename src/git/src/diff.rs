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

/// From one state of a repository to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The commit before; `None` where there was none.
    pub before: Option<Oid>,
    /// The commit after.
    pub after: Oid,
}

/// From a run's baseline to what it had done: before it was put back, or as it stands. `None` when nothing of the run
/// is kept any more.
pub fn kept_span(cwd: &Path, run: &RunId) -> Result<Option<Span>, GitError> {
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
    Ok(Some(Span { before, after }))
}

/// From the first parent of one commit to another, which may be the same; `None` when one of them is gone.
pub fn span_of_commits(cwd: &Path, first: &Oid, last: &Oid) -> Result<Option<Span>, GitError> {
    let handle = Handle::open(cwd)?;
    let found = |oid: &Oid| handle.repo.find_commit(oid.raw());
    let (Ok(commit), Ok(_)) = (found(first), found(last)) else {
        return Ok(None);
    };
    let before = commit.parent_id(0).ok().map(Oid::from);
    let after = last.clone();
    Ok(Some(Span { before, after }))
}

/// What was changed, as a patch that ends at `bytes_max`; only of one path or what lies below it, where one is given,
/// and then a file that was renamed is compared with what it was.
pub fn patch(
    cwd: &Path,
    span: &Span,
    path: Option<&str>,
    bytes_max: usize,
) -> Result<Patch, GitError> {
    let handle = Handle::open(cwd)?;
    let mut diff = handle.compared(span)?;
    if path.is_some() {
        handle.find_renames(&mut diff)?;
    }
    handle.printed(&diff, path, bytes_max)
}

impl Handle {
    /// What differs between two commits, file by file.
    pub(super) fn compared(&self, span: &Span) -> Result<git2::Diff<'_>, GitError> {
        let before = self.tree_of(span.before.as_ref())?;
        let after = self.tree_of(Some(&span.after))?;
        let mut options = DiffOptions::new();
        // A file that becomes a link goes and comes, so that both contents are seen.
        options.include_typechange(false).max_size(FILE_BYTES_MAX);
        self.repo
            .diff_tree_to_tree(before.as_ref(), after.as_ref(), Some(&mut options))
            .map_err(git("compare two trees"))
    }

    fn printed(
        &self,
        diff: &git2::Diff<'_>,
        wanted: Option<&str>,
        bytes_max: usize,
    ) -> Result<Patch, GitError> {
        let fail = git("compare two trees");
        let mut printed = Printed {
            bytes: Vec::new(),
            bytes_max,
            truncated: false,
        };
        for (index, delta) in diff.deltas().enumerate() {
            if wanted.is_some_and(|path| !is_of(&delta, path)) {
                continue;
            }
            let Some(mut patch) = git2::Patch::from_diff(diff, index).map_err(&fail)? else {
                continue;
            };
            if patch.delta().flags().is_binary()
                && let Some(text) =
                    self.as_text(&patch.delta(), |made| Ok(made.to_buf()?.to_vec()))?
            {
                printed.add(String::from_utf8_lossy(&text).as_bytes());
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

    /// Reads the patch of a file that is text, whatever the attributes of the repository say: a run may have set them.
    pub(super) fn as_text<T>(
        &self,
        delta: &git2::DiffDelta<'_>,
        read: impl FnOnce(&mut git2::Patch<'_>) -> Result<T, git2::Error>,
    ) -> Result<Option<T>, GitError> {
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
        let read = made.and_then(|mut made| read(&mut made)).map_err(&fail)?;
        Ok(Some(read))
    }
}

/// Whether a file is or was at a path, or below it.
fn is_of(delta: &git2::DiffDelta<'_>, path: &str) -> bool {
    let is = |file: git2::DiffFile<'_>| {
        let found = String::from_utf8_lossy(file.path_bytes().unwrap_or_default()).into_owned();
        let rest = found.strip_prefix(path.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    is(delta.new_file()) || is(delta.old_file())
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
