//! One commit as people look at it: who, when, why, and how much of which files.

use std::path::Path;

use git2::{DiffOptions, Patch};
use serde::{Deserialize, Serialize};

use super::open::Handle;
use workerctl_landing::error::{GitError, git};
use workerctl_landing::ids::Oid;

/// Files larger than this are not compared line by line.
const FILE_BYTES_MAX: i64 = 4 << 20;

/// One file of a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownFile {
    /// Its path, the old one where it is gone.
    pub path: String,
    /// Lines that came and lines that went; `None` for a file that is not text or too large.
    pub lines: Option<(u64, u64)>,
}

/// A commit for people; bytes that are not UTF-8 are replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownCommit {
    /// The commit.
    pub oid: Oid,
    /// Its author, `Name <mail>`.
    pub author: String,
    /// When, in seconds since 1970.
    pub time_s: i64,
    /// The offset of the author's zone from UTC in minutes.
    pub offset_min: i32,
    /// The whole message.
    pub message: String,
    /// The files that it changed, in the order of their paths, bounded.
    pub files: Vec<ShownFile>,
    /// How many files it changed in all.
    pub files_count: u64,
}

/// Reads a commit; `None` when it is gone. Its message ends at `message_bytes_max`, the list of its
/// files at `files_max`.
pub fn show_commit(
    cwd: &Path,
    oid: &Oid,
    message_bytes_max: usize,
    files_max: usize,
) -> Result<Option<ShownCommit>, GitError> {
    let handle = Handle::open(cwd)?;
    let Ok(commit) = handle.repo.find_commit(oid.raw()) else {
        return Ok(None);
    };
    let fail = git("compare two trees");
    let parent = commit.parent_id(0).ok().map(Oid::from);
    let before = handle.tree_of(parent.as_ref())?;
    let after = commit.tree().map_err(git("read a tree"))?;
    let mut options = DiffOptions::new();
    options.include_typechange(true).max_size(FILE_BYTES_MAX);
    let diff = handle
        .repo
        .diff_tree_to_tree(before.as_ref(), Some(&after), Some(&mut options))
        .map_err(&fail)?;
    let mut files = Vec::new();
    for (index, delta) in diff.deltas().enumerate().take(files_max) {
        let paths = [delta.new_file().path_bytes(), delta.old_file().path_bytes()];
        let path = paths.into_iter().flatten().next().unwrap_or_default();
        let compared = Patch::from_diff(&diff, index).map_err(&fail)?;
        let lines = match compared {
            Some(found) if !found.delta().flags().is_binary() => {
                let (_, came, went) = found.line_stats().map_err(&fail)?;
                Some((came as u64, went as u64))
            }
            Some(_) | None => None,
        };
        files.push(ShownFile {
            path: text(path),
            lines,
        });
    }
    let message = commit.message_bytes();
    let author = commit.author();
    Ok(Some(ShownCommit {
        oid: oid.clone(),
        author: format!(
            "{} <{}>",
            text(author.name_bytes()),
            text(author.email_bytes())
        ),
        time_s: author.when().seconds(),
        offset_min: author.when().offset_minutes(),
        message: text(message.get(..message_bytes_max).unwrap_or(message)),
        files,
        files_count: diff.deltas().len() as u64,
    }))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
