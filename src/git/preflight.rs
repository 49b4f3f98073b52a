//! What a repository must look like before a mutating run may start in it.

use std::path::{Path, PathBuf};

use rustix::fs::Access;
use serde::{Deserialize, Serialize};

use super::author::{AuthorError, author};
use super::damage::damage;
use super::error::{GitError, git};
use super::open::{Facts, Handle, Head};

/// What a person has allowed beyond the usual.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// Commit to a detached `HEAD`.
    pub allow_detached: bool,
}

/// A repository state in which no mutating run is started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// A stable code for journals and views.
    pub code: String,
    /// What is in the way.
    pub message: String,
    /// What a person can do about it.
    pub hint: Option<String>,
}

impl Refusal {
    fn new(code: &str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            message: message.into(),
            hint: Some(hint.into()),
        }
    }
}

impl Refusal {
    /// The same with what is damaged, where that is why.
    fn with_damage(mut self, cwd: &Path) -> Self {
        if let Some(found) = damage(cwd).ok().and_then(|all| all.into_iter().next()) {
            self.message = format!("{}: {found}", self.message);
            self.hint = Some(found.remedy);
        }
        self
    }
}

impl From<GitError> for Refusal {
    fn from(error: GitError) -> Self {
        Self {
            code: error.code().to_owned(),
            message: error.to_string(),
            hint: error.hint(),
        }
    }
}

impl From<AuthorError> for Refusal {
    fn from(error: AuthorError) -> Self {
        Self {
            code: error.code().to_owned(),
            message: error.to_string(),
            hint: error.hint(),
        }
    }
}

/// Looks at the repository that `cwd` lies in, and refuses states in which a run's change could
/// not be told from what a person is in the middle of. Changes nothing, except that a lock file
/// which a killed process of ours left behind is removed.
///
/// `author` is `commit.author`, see [`author`].
pub fn preflight(cwd: &Path, policy: &Policy, author_set: Option<&str>) -> Result<Facts, Refusal> {
    let looked = look(cwd, policy, author_set);
    looked.map_err(|refusal| match refusal.code.as_str() {
        "git" => refusal.with_damage(cwd),
        _ => refusal,
    })
}

fn look(cwd: &Path, policy: &Policy, author_set: Option<&str>) -> Result<Facts, Refusal> {
    let handle = Handle::open(cwd)?;
    let facts = handle.facts()?;
    if let Some(operation) = handle.operation()? {
        return Err(Refusal::new(
            operation.code(),
            format!("{} is in progress", operation.what()),
            operation.remedy(),
        ));
    }
    if let (Head::Detached { oid }, false) = (&facts.head, policy.allow_detached) {
        return Err(Refusal::new(
            "detached_head",
            format!("`HEAD` is detached at {oid}, so a commit would belong to no branch"),
            "check a branch out: `git switch <branch>`",
        ));
    }
    let index = handle.repo.index().map_err(git("read the index"))?;
    if index.has_conflicts() {
        return Err(Refusal::new(
            "index_conflicts",
            "the index holds unresolved conflicts",
            "resolve them and commit, or take them back: `git status` lists them",
        ));
    }
    writable(&facts)?;
    no_old_lock(&facts)?;
    author(cwd, author_set)?;
    Ok(facts)
}

fn writable(facts: &Facts) -> Result<(), Refusal> {
    let places: [PathBuf; 4] = [
        facts.workdir.clone(),
        facts.git_dir.clone(),
        facts.common_dir.clone(),
        facts.common_dir.join("objects"),
    ];
    for place in places {
        let allowed = rustix::fs::access(&place, Access::WRITE_OK | Access::EXEC_OK);
        if let Err(error) = allowed {
            return Err(Refusal::new(
                "read_only",
                format!("`{}` is not writable: {error}", place.display()),
                "make it writable for this user",
            ));
        }
    }
    Ok(())
}

/// A lock of git's that nobody seems to be working under any more would let the run do its work
/// and then leave the index behind the commit, so it is refused before anything is spent.
fn no_old_lock(facts: &Facts) -> Result<(), Refusal> {
    let mut targets = vec![facts.git_dir.join("index")];
    if let Head::Branch { refname, .. } | Head::Unborn { refname } = &facts.head {
        targets.push(facts.common_dir.join(refname));
    }
    for target in targets {
        let mut name = target.into_os_string();
        name.push(".lock");
        let lock = PathBuf::from(name);
        if super::lock::is_held(&lock)? {
            return Err(Refusal::new(
                "locked",
                format!("`{}` exists: git is at work, or was killed", lock.display()),
                "wait for the other git command; if none is running, remove the file",
            ));
        }
    }
    Ok(())
}
