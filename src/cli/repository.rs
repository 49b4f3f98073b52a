//! Git repositories: the one place of the command line that names the git room.

use std::path::{Path, PathBuf};

use crate::git::{self, FirstCommit, GitError, Head, LockOwner, RepoPath};
use crate::model::{Diagnostic, Kind, Timestamp};

pub(crate) use crate::git::tracked_below;

/// What commands want to know of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Repository {
    /// Root of its work tree.
    pub(crate) workdir: String,
    /// `main` or `a detached HEAD`.
    pub(crate) branch: String,
    /// Whether commits would move HEAD itself.
    pub(crate) detached: bool,
}

/// The repository that a directory lies in.
pub(crate) fn locate(directory: &Path) -> Result<Repository, Diagnostic> {
    git::locate(directory)
        .map(|facts| told(&facts))
        .map_err(|error| refused(&error))
}

/// Directories that git writes to for a workspace and that lie outside of it: those of its repository where the workspace
/// is a linked work tree or a directory of a larger one.
pub(crate) fn outside(workspace: &Path) -> Vec<PathBuf> {
    let Ok(facts) = git::locate(workspace) else {
        return Vec::new();
    };
    let mut found = vec![facts.common_dir];
    if !facts.git_dir.starts_with(&found[0]) {
        found.push(facts.git_dir);
    }
    found.retain(|directory| !directory.starts_with(workspace));
    found
}

/// Makes a repository where there is none; `None`: the directory lies in one, however broken.
pub(crate) fn create(directory: &Path) -> Result<Option<Repository>, Diagnostic> {
    match git::locate(directory) {
        Err(GitError::NotARepository(_)) => git::create_repository(directory)
            .map(|facts| Some(told(&facts)))
            .map_err(|error| refused(&error)),
        Ok(_) | Err(_) => Ok(None),
    }
}

/// Makes the first commit of a repository from files given relative to its root, as `Name <mail>` or as git knows it.
/// Answers the commit in hex.
pub(crate) fn first_commit(
    root: &Path,
    files: &[String],
    author: Option<&str>,
    message: &str,
    now: Timestamp,
) -> Result<String, Diagnostic> {
    let identity = git::identity(root, author).map_err(|error| {
        let told = Diagnostic::new(Kind::Blocked, error.code(), error.to_string());
        hinted(told, error.hint())
    })?;
    let paths: Result<Vec<RepoPath>, git::NameError> = files
        .iter()
        .map(|file| RepoPath::from_bytes(file.as_bytes()))
        .collect();
    let paths = paths.map_err(|error| refused(&error.into()))?;
    let how = FirstCommit {
        identity: &identity,
        message,
        time_s: now.millis().div_euclid(1_000),
        offset_min: 0,
    };
    git::first_commit(root, &paths, &how)
        .map(|oid| oid.as_str().to_owned())
        .map_err(|error| refused(&error))
}

fn refused(error: &GitError) -> Diagnostic {
    let told = Diagnostic::new(Kind::Blocked, error.code(), error.to_string());
    hinted(told, error.hint())
}

fn hinted(told: Diagnostic, hint: Option<String>) -> Diagnostic {
    match hint {
        Some(hint) => told.hint(hint),
        None => told,
    }
}

fn told(facts: &git::Facts) -> Repository {
    let detached = matches!(facts.head, Head::Detached { .. });
    let branch = if detached {
        "a detached HEAD".to_owned()
    } else {
        let name = facts.head.refname();
        name.strip_prefix("refs/heads/").unwrap_or(name).to_owned()
    };
    Repository {
        workdir: facts.workdir.display().to_string(),
        branch,
        detached,
    }
}

/// Names of a repository that definitions may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Names {
    /// Short names of local branches, the one of an unborn `HEAD` included.
    pub(crate) branches: Vec<String>,
    /// Names of remotes.
    pub(crate) remotes: Vec<String>,
}

/// Returns the names of the repository that a directory lies in; `None` if it lies in none that can be read.
pub(crate) fn names(directory: &Path) -> Option<Names> {
    let mut branches = git::branches(directory).ok()?;
    if let Ok(Head::Unborn { refname }) = git::locate(directory).map(|facts| facts.head) {
        branches.extend(refname.strip_prefix("refs/heads/").map(str::to_owned));
    }
    Some(Names {
        branches,
        remotes: git::remotes(directory).ok()?,
    })
}

/// A lock file of git's that is in somebody's way, for `doctor`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GitLock {
    /// Its file.
    pub(crate) path: String,
    /// Since when it has been there.
    pub(crate) since: Timestamp,
    /// Whether a process of ours left it that is gone.
    pub(crate) left: bool,
}

/// Lock files of a repository, without those of engines that are at work.
pub(crate) fn git_locks(directory: &Path) -> Vec<GitLock> {
    let found = git::git_locks(directory);
    let told = found.into_iter().filter_map(|lock| {
        let left = match lock.owner {
            LockOwner::Ours(_) => return None,
            LockOwner::Left => true,
            LockOwner::Foreign => false,
        };
        Some(GitLock {
            path: lock.path.display().to_string(),
            since: Timestamp::from_millis(lock.since_s.saturating_mul(1_000)),
            left,
        })
    });
    told.collect()
}

/// What is damaged of a repository, each with the commands that mend it.
pub(crate) fn damage(directory: &Path) -> Result<Vec<(String, String)>, Diagnostic> {
    let found = git::damage(directory).map_err(|error| refused(&error))?;
    let told = found.into_iter().map(|one| (one.to_string(), one.remedy));
    Ok(told.collect())
}

/// A commit for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Commit {
    /// Its id in hex.
    pub(crate) oid: String,
    /// `Name <mail>`.
    pub(crate) author: String,
    /// When it was made.
    pub(crate) at: Timestamp,
    /// The whole message.
    pub(crate) message: String,
    /// Its files, one line each with how many lines came and went.
    pub(crate) files: Vec<String>,
    /// How many files are not listed.
    pub(crate) files_more: u64,
}

/// Most bytes of a commit's message that are shown.
const MESSAGE_BYTES_MAX: usize = 16 * 1024;

/// Most files of a commit that are listed.
const FILES_MAX: usize = 100;

/// A commit of a repository, given in hex; `None` when it is gone.
pub(crate) fn commit(root: &Path, commit: &str) -> Result<Option<Commit>, Diagnostic> {
    let oid = commit
        .parse()
        .map_err(|error: git::NameError| refused(&error.into()))?;
    let found = git::show_commit(root, &oid, MESSAGE_BYTES_MAX, FILES_MAX)
        .map_err(|error| refused(&error))?;
    Ok(found.map(|shown| Commit {
        oid: shown.oid.as_str().to_owned(),
        author: shown.author,
        at: Timestamp::from_millis(shown.time_s.saturating_mul(1_000)),
        message: shown.message,
        files_more: shown.files_count.saturating_sub(shown.files.len() as u64),
        files: shown.files.iter().map(file_line).collect(),
    }))
}

fn file_line(file: &git::ShownFile) -> String {
    match file.lines {
        Some((came, went)) => format!("{} | +{came} -{went}", file.path),
        None => format!("{} | not text", file.path),
    }
}

/// Who commits would be by: `Name <mail>`.
pub(crate) fn author(directory: &Path, configured: Option<&str>) -> Result<String, Diagnostic> {
    match git::author(directory, configured) {
        Ok(author) => Ok(format!("{} <{}>", author.name, author.email)),
        Err(error) => {
            let told = Diagnostic::new(Kind::Blocked, error.code(), error.to_string());
            Err(hinted(told, error.hint()))
        }
    }
}
