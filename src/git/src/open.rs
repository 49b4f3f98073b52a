//! Finding and opening the user's repository, with a fresh handle for every use.
//!
//! A handle caches the index and the configuration; one that is older than the user's last
//! `git add` would silently take that back when it writes. So no handle outlives a call.

use std::path::{Path, PathBuf};

use git2::{ErrorCode, Repository, RepositoryOpenFlags};
use serde::{Deserialize, Serialize};

use workerctl_landing::Sharing;
use workerctl_landing::error::{GitError, git};
use workerctl_landing::ids::{Oid, escape};
use workerctl_landing::open::{self, MemorySettings};

/// Where `HEAD` points.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Head {
    /// On a branch that has a commit.
    Branch {
        /// The full name, such as `refs/heads/main`.
        refname: String,
        /// The commit.
        oid: Oid,
    },
    /// On a branch without a commit.
    Unborn {
        /// The full name of the branch that the first commit will make.
        refname: String,
    },
    /// On a commit without a branch.
    Detached {
        /// The commit.
        oid: Oid,
    },
}

impl Head {
    /// The commit, if there is one.
    pub fn oid(&self) -> Option<&Oid> {
        match self {
            Self::Branch { oid, .. } | Self::Detached { oid } => Some(oid),
            Self::Unborn { .. } => None,
        }
    }

    /// The reference that a commit moves: the branch, or `HEAD` itself when detached.
    pub fn refname(&self) -> &str {
        match self {
            Self::Branch { refname, .. } | Self::Unborn { refname } => refname,
            Self::Detached { .. } => "HEAD",
        }
    }
}

/// What is known about a repository before anything is done in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// The root of the work tree.
    pub workdir: PathBuf,
    /// `.git` of this work tree.
    pub git_dir: PathBuf,
    /// The directory that linked work trees share; the same as `git_dir` in the main one.
    pub common_dir: PathBuf,
    /// Where `HEAD` points.
    pub head: Head,
    /// Who may work with it.
    #[serde(default)]
    pub sharing: Sharing,
}

/// Finds the repository that `cwd` lies in, and refuses those that cannot be worked with.
pub fn locate(cwd: &Path) -> Result<Facts, GitError> {
    Handle::open(cwd)?.facts()
}

/// Whether a work tree is a submodule of the repository around it.
pub fn is_submodule(workdir: &Path) -> bool {
    let look = || {
        let outer = Handle::open(workdir.parent()?).ok()?;
        let root = std::fs::canonicalize(outer.workdir()).ok()?;
        let path = workdir.strip_prefix(&root).ok()?;
        // A repository that was merely added has an entry too, but no address.
        let found = outer.repo.find_submodule(path.to_str()?).ok()?;
        Some(found.opt_url_bytes().is_some())
    };
    look().unwrap_or(false)
}

/// One fresh handle on a repository with a work tree.
pub(super) struct Handle {
    pub(super) repo: Repository,
    /// The highest configuration level; it must live as long as `repo`.
    durable: Option<MemorySettings>,
}

impl Handle {
    /// Opens for reading, and for writing objects that are synced afterwards as a batch.
    pub(super) fn open(cwd: &Path) -> Result<Self, GitError> {
        let flags = RepositoryOpenFlags::empty();
        let repo = open::open(cwd, flags, "open the repository")?;
        if repo.is_bare() || repo.workdir().is_none() {
            return Err(GitError::Bare(repo.path().to_owned()));
        }
        Ok(Self {
            repo,
            durable: None,
        })
    }

    /// Opens so that each object is synced before it gets its name.
    ///
    /// The setting lies in a configuration level in memory above all files: nothing that a
    /// person has configured is written, and nothing they have configured can switch it off.
    pub(super) fn open_durable(cwd: &Path) -> Result<Self, GitError> {
        let mut handle = Self::open(cwd)?;
        let settings = open::add_settings(&handle.repo, "[core]\n\tfsyncObjectFiles = true\n")?;
        let config = handle.repo.config();
        let is_set = config.and_then(|config| config.get_bool("core.fsyncObjectFiles"));
        if !is_set.unwrap_or(false) {
            return Err(GitError::UnsupportedFormat(
                "objects cannot be made durable here, because `/proc` is not mounted".into(),
            ));
        }
        handle.durable = Some(settings);
        Ok(handle)
    }

    pub(super) fn workdir(&self) -> &Path {
        // A handle without a work tree is never made.
        self.repo.workdir().unwrap_or_else(|| self.repo.path())
    }

    pub(super) fn facts(&self) -> Result<Facts, GitError> {
        Ok(Facts {
            workdir: tidy(self.workdir()),
            git_dir: tidy(self.repo.path()),
            common_dir: tidy(self.repo.commondir()),
            head: self.head()?,
            sharing: self.sharing()?,
        })
    }

    pub(super) fn sharing(&self) -> Result<Sharing, GitError> {
        sharing_in(&self.repo)
    }

    pub(super) fn head(&self) -> Result<Head, GitError> {
        let raw = self
            .repo
            .find_reference("HEAD")
            .map_err(git("read `HEAD`"))?;
        match raw.symbolic_target_bytes() {
            None => {
                let oid = raw.target().ok_or_else(|| GitError::Git {
                    doing: "read `HEAD`",
                    source: git2::Error::from_str("it points nowhere"),
                })?;
                Ok(Head::Detached { oid: oid.into() })
            }
            Some(bytes) => {
                let refname = String::from_utf8(bytes.to_vec()).map_err(|_| {
                    GitError::UnsupportedFormat(format!(
                        "the branch name `{}` is not UTF-8",
                        escape(bytes)
                    ))
                })?;
                match self.tip(&refname)? {
                    Some(oid) => Ok(Head::Branch { refname, oid }),
                    None => Ok(Head::Unborn { refname }),
                }
            }
        }
    }

    /// The commit that a reference points at; `None` when the reference does not exist.
    pub(super) fn tip(&self, refname: &str) -> Result<Option<Oid>, GitError> {
        match self.repo.find_reference(refname) {
            Err(e) if e.code() == ErrorCode::NotFound => Ok(None),
            Err(e) => Err(git("read a reference")(e)),
            Ok(found) => match found.target() {
                Some(oid) => Ok(Some(oid.into())),
                None => Err(GitError::Symbolic {
                    branch: refname.to_owned(),
                    target: escape(found.symbolic_target_bytes().unwrap_or_default()),
                }),
            },
        }
    }

    /// The tree of a commit; `None` for no commit.
    pub(super) fn tree_of(&self, commit: Option<&Oid>) -> Result<Option<git2::Tree<'_>>, GitError> {
        let Some(oid) = commit else { return Ok(None) };
        let commit = self
            .repo
            .find_commit(oid.raw())
            .map_err(git("read a commit"))?;
        commit.tree().map(Some).map_err(git("read a tree"))
    }
}

/// Who may work with the repository of this common directory; the umask says it where its settings cannot be read. A pipe
/// in their place is not waited for: an engine asks at its start.
pub(super) fn sharing(common_dir: &Path) -> Sharing {
    let is_file = std::fs::metadata(common_dir.join("config")).is_ok_and(|found| found.is_file());
    let read = || {
        let flags = RepositoryOpenFlags::NO_SEARCH;
        sharing_in(&open::open(common_dir, flags, "open the repository")?)
    };
    if is_file {
        read().unwrap_or_default()
    } else {
        Sharing::default()
    }
}

fn sharing_in(repo: &Repository) -> Result<Sharing, GitError> {
    let config = repo.config().and_then(|mut config| config.snapshot());
    Sharing::read(&config.map_err(git("read the configuration"))?)
}

/// A directory without the trailing `/` that libgit2 gives it.
fn tidy(path: &Path) -> PathBuf {
    path.components().collect()
}
