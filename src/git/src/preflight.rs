//! What a repository must look like before a mutating run may start in it.

use std::path::{Path, PathBuf};

use rustix::fs::Access;
use serde::{Deserialize, Serialize};

use super::author::{AuthorError, author};
use super::damage::damage;
use super::open::{Facts, Handle};
use workerctl_landing::error::{GitError, chown_remedy};

/// A repository state in which no mutating run is started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct RepositoryRefusal {
    /// A stable code for journals and views.
    pub code: String,
    /// What is in the way.
    pub message: String,
    /// What a person can do about it.
    pub hint: Option<String>,
}

impl RepositoryRefusal {
    fn new(code: &str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            message: message.into(),
            hint: Some(hint.into()),
        }
    }
}

impl RepositoryRefusal {
    /// The same with what is damaged, where that is why.
    fn with_damage(mut self, cwd: &Path) -> Self {
        if let Some(found) = damage(cwd).ok().and_then(|all| all.into_iter().next()) {
            self.message = format!("{}: {found}", self.message);
            self.hint = Some(found.remedy);
        }
        self
    }
}

impl From<GitError> for RepositoryRefusal {
    fn from(error: GitError) -> Self {
        Self {
            code: error.code().to_owned(),
            message: error.to_string(),
            hint: error.hint(),
        }
    }
}

impl From<AuthorError> for RepositoryRefusal {
    fn from(error: AuthorError) -> Self {
        Self {
            code: error.code().to_owned(),
            message: error.to_string(),
            hint: error.hint(),
        }
    }
}

/// Looks at the repository that `cwd` lies in, and refuses what no run could land in. Changes nothing.
///
/// `author_set` is `commit.author`, see [`author`].
pub fn preflight(cwd: &Path, author_set: Option<&str>) -> Result<Facts, RepositoryRefusal> {
    let looked = look(cwd, author_set);
    looked.map_err(|refusal| match refusal.code.as_str() {
        "git" => refusal.with_damage(cwd),
        _ => refusal,
    })
}

fn look(cwd: &Path, author_set: Option<&str>) -> Result<Facts, RepositoryRefusal> {
    let handle = Handle::open(cwd)?;
    let facts = handle.facts()?;
    writable(&facts)?;
    author(cwd, author_set)?;
    Ok(facts)
}

fn writable(facts: &Facts) -> Result<(), RepositoryRefusal> {
    let places: [PathBuf; 4] = [
        facts.workdir.clone(),
        facts.git_dir.clone(),
        facts.common_dir.clone(),
        facts.common_dir.join("objects"),
    ];
    for place in places {
        let allowed = rustix::fs::access(&place, Access::WRITE_OK | Access::EXEC_OK);
        if let Err(error) = allowed {
            let hint = chown_remedy(&place);
            return Err(RepositoryRefusal::new(
                "read_only",
                format!("`{}` is not writable: {error}", place.display()),
                hint.unwrap_or_else(|| "make it writable for this user".to_owned()),
            ));
        }
    }
    Ok(())
}
