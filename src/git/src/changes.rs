//! Which paths were changed, and the content of a file in a commit.

use std::path::Path;

use git2::{Delta, DiffDelta, DiffFindOptions, ObjectType};

use super::diff::Span;
use super::open::Handle;
use workerctl_landing::error::{GitError, git};
use workerctl_landing::ids::{Oid, RepoPath};

/// Bytes of files that are compared by content, to find renamed ones, and again to count lines; beyond this only equal
/// files are taken for renamed, and no lines are counted.
const COMPARED_BYTES_MAX: u64 = 64 << 20;

/// Files beyond which only equal ones are taken for renamed.
const COMPARED_FILES_MAX: usize = 2_000;

/// A path that was changed; bytes that are not UTF-8 are replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedPath {
    /// Its path, the old one where it is gone.
    pub path: String,
    /// What was done to it.
    pub change: PathChange,
    /// Lines that came and lines that went; `None` for a file that is not text or too large.
    pub lines: Option<(u64, u64)>,
    /// Whether it is no text, before or after, as far as it was looked at.
    pub is_binary: bool,
    /// Git's modes before and after; 0 if there is no file.
    pub modes: (u32, u32),
    /// Whether the caller wanted it first.
    pub is_first: bool,
}

/// What was done to a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathChange {
    /// It was not there before.
    Added,
    /// It has another content or another mode.
    Modified,
    /// It is no longer there.
    Deleted,
    /// It was at another path before.
    Renamed {
        /// That path.
        from: String,
    },
}

/// Returns the paths that were changed, at most `paths_max` of them, and how many there are: first those that `is_first`
/// selects by path and new mode, then the others, each in their order.
pub fn changed_paths(
    cwd: &Path,
    span: &Span,
    paths_max: usize,
    is_first: &dyn Fn(&Path, u32) -> bool,
) -> Result<(Vec<ChangedPath>, usize), GitError> {
    let handle = Handle::open(cwd)?;
    let mut diff = handle.compared(span)?;
    handle.find_renames(&mut diff)?;
    let mut left = COMPARED_BYTES_MAX;
    let mut paths = Vec::new();
    let mut ordered: Vec<_> = diff.deltas().enumerate().collect();
    let is_first = |delta: &DiffDelta<'_>| {
        let mut files = [delta.old_file(), delta.new_file()].into_iter();
        let mode = mode_of(&delta.new_file());
        files.any(|file| file.path().is_some_and(|path| is_first(path, mode)))
    };
    ordered.sort_by_cached_key(|(index, delta)| (!is_first(delta), *index));
    for (index, delta) in ordered.into_iter().take(paths_max) {
        let bytes = handle.bytes_of(&delta);
        let is_compared = bytes <= left;
        let (mut lines, mut is_binary) = (None, false);
        if is_compared {
            left -= bytes;
            (lines, is_binary) = handle.lines_of(&diff, index)?;
        }
        let (path, change) = change_of(&delta);
        paths.push(ChangedPath {
            path,
            change,
            lines,
            is_binary,
            modes: (mode_of(&delta.old_file()), mode_of(&delta.new_file())),
            is_first: is_first(&delta),
        });
    }
    Ok((paths, diff.deltas().len()))
}

/// The content of a file in a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommittedFile {
    /// All of it.
    Content(Vec<u8>),
    /// It has more bytes than were wanted.
    TooLarge(u64),
}

/// Reads a regular file of a commit, `path` being relative to the root of the repository; `None` where commit or file are
/// not there.
pub fn committed_file(
    cwd: &Path,
    commit: &Oid,
    path: &Path,
    bytes_max: u64,
) -> Result<Option<CommittedFile>, GitError> {
    let handle = Handle::open(cwd)?;
    let fail = git("read a file of a commit");
    let Ok(commit) = handle.repo.find_commit(commit.raw()) else {
        return Ok(None);
    };
    let found = match commit.tree().and_then(|tree| tree.get_path(path)) {
        Ok(found) => found,
        Err(error) if error.code() == git2::ErrorCode::NotFound => return Ok(None),
        Err(error) => return Err(fail(error)),
    };
    let is_link = found.filemode() == i32::from(git2::FileMode::Link);
    if found.kind() != Some(ObjectType::Blob) || is_link {
        return Ok(None);
    }
    let bytes = handle.bytes_at(found.id()).map_err(&fail)?;
    if bytes > bytes_max {
        return Ok(Some(CommittedFile::TooLarge(bytes)));
    }
    let blob = handle.repo.find_blob(found.id()).map_err(&fail)?;
    Ok(Some(CommittedFile::Content(blob.content().to_vec())))
}

/// Returns id and mode of what the commit that is checked out has at a path; `None` if it has nothing there.
pub fn head_entry(cwd: &Path, path: &RepoPath) -> Result<Option<(Oid, u32)>, GitError> {
    let handle = Handle::open(cwd)?;
    let fail = git("read a file of the commit that is checked out");
    let tree = match handle.repo.head().and_then(|head| head.peel_to_tree()) {
        Ok(tree) => tree,
        Err(error) if is_missing(&error) => return Ok(None),
        Err(error) => return Err(fail(error)),
    };
    entry_of(&tree, path).map_err(fail)
}

/// Returns the same for a commit.
pub fn commit_entry(
    cwd: &Path,
    commit: &Oid,
    path: &RepoPath,
) -> Result<Option<(Oid, u32)>, GitError> {
    let handle = Handle::open(cwd)?;
    let found = handle
        .repo
        .find_commit(commit.raw())
        .and_then(|commit| commit.tree());
    let found = found.and_then(|tree| entry_of(&tree, path));
    found.map_err(git("read a file of a commit"))
}

fn entry_of(tree: &git2::Tree<'_>, path: &RepoPath) -> Result<Option<(Oid, u32)>, git2::Error> {
    match tree.get_path(path.as_path()) {
        Ok(found) => {
            let mode = u32::try_from(found.filemode_raw()).unwrap_or_default();
            Ok(Some((Oid::from(found.id()), mode)))
        }
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns whether the commit that is checked out has exactly this content at `file`, or no file if there is none.
/// `None` if there is no repository around `directory`, or no commit in it.
pub fn is_checked_out(
    directory: &Path,
    file: &str,
    content: Option<&[u8]>,
) -> Result<Option<bool>, GitError> {
    let handle = match Handle::open(directory) {
        Err(GitError::NotARepository(_)) => return Ok(None),
        opened => opened?,
    };
    let fail = git("read a file of the commit that is checked out");
    let tree = match handle.repo.head().and_then(|head| head.peel_to_tree()) {
        Err(error) if is_missing(&error) => return Ok(None),
        found => found.map_err(&fail)?,
    };
    let root = std::fs::canonicalize(handle.workdir()).unwrap_or_default();
    let directory = std::fs::canonicalize(directory).unwrap_or_default();
    let below = directory.strip_prefix(&root).unwrap_or(Path::new(""));
    let entry = match tree.get_path(&below.join(file)) {
        Err(error) if is_missing(&error) => None,
        found => Some(found.map_err(&fail)?.id()),
    };
    let hash = |content| git2::Oid::hash_object(ObjectType::Blob, content);
    let id = content.map(hash).transpose().map_err(&fail)?;
    Ok(Some(entry == id))
}

fn is_missing(error: &git2::Error) -> bool {
    use git2::ErrorCode::{NotFound, UnbornBranch};
    matches!(error.code(), NotFound | UnbornBranch)
}

impl Handle {
    /// Takes files that came and went for renamed where they are alike.
    pub(super) fn find_renames(&self, diff: &mut git2::Diff<'_>) -> Result<(), GitError> {
        let moved = diff
            .deltas()
            .filter(|delta| delta.status() != Delta::Modified);
        let bytes: u64 = moved.map(|delta| self.bytes_of(&delta)).sum();
        let is_much = bytes > COMPARED_BYTES_MAX || diff.deltas().len() > COMPARED_FILES_MAX;
        let mut options = DiffFindOptions::new();
        options.renames(true).exact_match_only(is_much);
        diff.find_similar(Some(&mut options))
            .map_err(git("find renamed files"))
    }

    /// Lines that came and went, where it is text; and whether it is none.
    fn lines_of(
        &self,
        diff: &git2::Diff<'_>,
        index: usize,
    ) -> Result<(Option<(u64, u64)>, bool), GitError> {
        let fail = git("compare two files");
        let Some(patch) = git2::Patch::from_diff(diff, index).map_err(&fail)? else {
            return Ok((None, false));
        };
        let counted = |patch: &git2::Patch<'_>| {
            let (_, came, went) = patch.line_stats()?;
            Ok((came as u64, went as u64))
        };
        if !patch.delta().flags().is_binary() {
            return Ok((Some(counted(&patch).map_err(&fail)?), false));
        }
        let lines = self.as_text(&patch.delta(), |patch| counted(patch))?;
        Ok((lines, lines.is_none()))
    }

    /// Bytes of a file before and after.
    fn bytes_of(&self, delta: &DiffDelta<'_>) -> u64 {
        let sides = [delta.old_file(), delta.new_file()].into_iter();
        let there = sides.filter(|side| !side.id().is_zero());
        there
            .map(|side| self.bytes_at(side.id()).unwrap_or(0))
            .sum()
    }

    fn bytes_at(&self, id: git2::Oid) -> Result<u64, git2::Error> {
        let (bytes, _) = self.repo.odb()?.read_header(id)?;
        Ok(bytes as u64)
    }
}

/// Git's mode of a file; 0 if there is none.
fn mode_of(file: &git2::DiffFile<'_>) -> u32 {
    u32::from(file.mode())
}

fn change_of(delta: &DiffDelta<'_>) -> (String, PathChange) {
    let path = |file: git2::DiffFile<'_>| {
        String::from_utf8_lossy(file.path_bytes().unwrap_or_default()).into_owned()
    };
    let change = match delta.status() {
        Delta::Added => PathChange::Added,
        Delta::Deleted => return (path(delta.old_file()), PathChange::Deleted),
        Delta::Renamed => PathChange::Renamed {
            from: path(delta.old_file()),
        },
        _ => PathChange::Modified,
    };
    (path(delta.new_file()), change)
}
