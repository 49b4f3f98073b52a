//! Commits made from trees that exist, and what else landing needs to know of a repository.

use std::path::Path;

use git2::{ErrorCode, Repository, RepositoryOpenFlags, StatusOptions, StatusShow};
use workerctl_landing::IndexSnapshot;
use workerctl_landing::error::{GitError, git, git_write};
use workerctl_landing::ids::{Oid, RunId};
use workerctl_landing::open::open;

use super::again::again;
use super::author::Identity;
use super::open::Handle;

/// A commit to be made.
#[derive(Debug)]
pub struct NewCommit<'a> {
    /// The git directory that it is written into.
    pub git_dir: &'a Path,
    /// Its tree.
    pub tree: &'a Oid,
    /// Its parents.
    pub parents: &'a [&'a Oid],
    /// Author and committer.
    pub identity: &'a Identity,
    /// When, in seconds since 1970, where the identity does not say it.
    pub time_s: i64,
    /// The offset of the zone from UTC in minutes.
    pub offset_min: i32,
    /// The whole message.
    pub message: &'a str,
}

/// Writes a commit object, not durably; the same content gives the same id.
///
/// # Errors
/// An object is missing, or it cannot be written.
pub fn write_commit(new: &NewCommit<'_>) -> Result<Oid, GitError> {
    let fail = git_write("write a commit in", new.git_dir);
    let repo = exactly(new.git_dir)?;
    let time = (new.time_s, new.offset_min);
    let [author, committer] = new.identity.signatures(time).map_err(&fail)?;
    let tree = repo.find_tree(new.tree.raw()).map_err(&fail)?;
    let mut parents = Vec::new();
    for parent in new.parents {
        parents.push(repo.find_commit(parent.raw()).map_err(&fail)?);
    }
    let parents: Vec<_> = parents.iter().collect();
    let oid = repo.commit(None, &author, &committer, new.message, &tree, &parents);
    oid.map(Oid::from).map_err(fail)
}

/// The tree of a commit.
///
/// # Errors
/// It cannot be read.
pub fn tree_at(git_dir: &Path, commit: &Oid) -> Result<Oid, GitError> {
    let fail = git("read a commit");
    let found = exactly(git_dir)?;
    let commit = found.find_commit(commit.raw()).map_err(&fail)?;
    Ok(commit.tree_id().into())
}

/// Where a branch is; `None` where it does not exist.
///
/// # Errors
/// The repository cannot be read, or the branch is a symbolic reference.
pub fn branch_at(cwd: &Path, target: &str) -> Result<Option<Oid>, GitError> {
    Handle::open(cwd)?.tip(target)
}

/// Reads the index of the checkout where the branch is checked out there, as its landing will have to.
///
/// # Errors
/// It cannot be read, or has a form that is not supported.
pub fn check_index(cwd: &Path, target: &str) -> Result<(), GitError> {
    let handle = Handle::open(cwd)?;
    if handle.head()?.refname() == target {
        IndexSnapshot::read(&handle.repo.path().join("index"))?;
    }
    Ok(())
}

/// The branch that the remote `origin` calls its own, where there is a local one of that name.
///
/// # Errors
/// The repository cannot be read.
pub fn default_branch(cwd: &Path) -> Result<Option<String>, GitError> {
    let handle = Handle::open(cwd)?;
    let found = match handle.repo.find_reference("refs/remotes/origin/HEAD") {
        Err(e) if e.code() == ErrorCode::NotFound => return Ok(None),
        found => found.map_err(git("read a reference"))?,
    };
    let short = found
        .symbolic_target()
        .ok()
        .flatten()
        .and_then(|name| name.strip_prefix("refs/remotes/origin/"))
        .map(|short| format!("refs/heads/{short}"));
    match short {
        Some(name) if handle.tip(&name)?.is_some() => Ok(Some(name)),
        _ => Ok(None),
    }
}

/// The short names of the local branches.
///
/// # Errors
/// The repository cannot be read.
pub fn branches(cwd: &Path) -> Result<Vec<String>, GitError> {
    let handle = Handle::open(cwd)?;
    let fail = git("list the branches");
    let found = handle.repo.branches(Some(git2::BranchType::Local));
    let mut names = Vec::new();
    for branch in found.map_err(&fail)? {
        let (branch, _) = branch.map_err(&fail)?;
        names.push(String::from_utf8_lossy(branch.name_bytes().map_err(&fail)?).into_owned());
    }
    Ok(names)
}

/// The names of the remotes of a repository.
///
/// # Errors
/// The repository cannot be read.
pub fn remotes(cwd: &Path) -> Result<Vec<String>, GitError> {
    let handle = Handle::open(cwd)?;
    let names = handle.repo.remotes().map_err(git("read the remotes"))?;
    Ok(names
        .iter()
        .flatten()
        .flatten()
        .map(str::to_owned)
        .collect())
}

/// Keeps the commit that a run starts from, whatever becomes of its branch.
///
/// # Errors
/// The reference cannot be written.
pub fn keep_base(cwd: &Path, run: &RunId, commit: &Oid) -> Result<(), GitError> {
    again(|| Handle::open(cwd)?.keep_base(run, commit))
}

/// Ignored entries at the top of what the checkout holds, directories with a `/`.
///
/// # Errors
/// The repository cannot be read.
pub fn ignored_entries(workdir: &Path) -> Result<Vec<String>, GitError> {
    let fail = git("look for ignored files");
    let handle = Handle::open(workdir)?;
    let mut options = StatusOptions::new();
    options
        .show(StatusShow::Workdir)
        .include_ignored(true)
        .include_untracked(false)
        .recurse_ignored_dirs(false)
        .exclude_submodules(true);
    let found = handle.repo.statuses(Some(&mut options)).map_err(&fail)?;
    let ignored = found.iter().filter(|entry| entry.status().is_ignored());
    let names = ignored.filter_map(|entry| entry.path().ok().map(str::to_owned));
    Ok(names.collect())
}

/// Whether git ignores a path of a work tree, which it then is not tracked in; the repository is named by its
/// work tree or its git directory.
///
/// # Errors
/// The repository cannot be read.
pub fn is_ignored(place: &Path, path: &Path) -> Result<bool, GitError> {
    let fail = git("look for ignored files");
    let repo = exactly(place)?;
    let index = repo.index().map_err(&fail)?;
    if index.get_path(path, 0).is_some() {
        return Ok(false);
    }
    repo.is_path_ignored(path).map_err(fail)
}

fn exactly(git_dir: &Path) -> Result<Repository, GitError> {
    let flags = RepositoryOpenFlags::NO_SEARCH;
    open(git_dir, flags, "open the repository")
}

/// The commit message with its trailers, as git writes them: a blank line before the block.
///
/// Control characters other than line ends are dropped from the text, and a trailer's value is
/// put on one line, so that nothing in a value can pose as another trailer.
pub fn message_with_trailers(text: &str, trailers: &[(&str, &str)]) -> String {
    let clean = |c: &char| *c == '\n' || *c == '\t' || !c.is_control();
    let text: String = text.chars().filter(clean).collect();
    let mut lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    while lines.last().is_some_and(|l| l.is_empty()) {
        lines.pop();
    }
    let body = lines.join("\n");
    let body = body.trim_start_matches('\n');
    let mut message = if body.is_empty() {
        "workerctl".to_owned()
    } else {
        body.to_owned()
    };
    message.push('\n');
    for (i, (key, value)) in trailers.iter().enumerate() {
        if i == 0 {
            message.push('\n');
        }
        let value: String = value.chars().filter(|c| !c.is_control()).collect();
        message.push_str(key);
        message.push_str(": ");
        message.push_str(value.trim());
        message.push('\n');
    }
    message
}
