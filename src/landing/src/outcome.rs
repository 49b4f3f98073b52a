//! How a landing ends, and what stands in its way.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::error::GitError;
use crate::ids::{Oid, RepoPath};

/// How an attempt to land ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Outcome {
    /// The branch holds the commit, or held it and somebody took it off again.
    Landed {
        /// The commit: of this round or of an earlier one.
        commit: Oid,
        /// Files that were written to through an open descriptor while they were replaced. What was
        /// written lies in the staging folder.
        late: Vec<MetFile>,
    },
    /// The branch holds everything already, in somebody else's commit.
    LandedIn {
        /// The tip.
        tip: Oid,
    },
    /// The branch is elsewhere. Nothing was changed.
    Moved {
        /// Where it is; `None` where it does not exist.
        tip: Option<Oid>,
        /// Paths of the commit that the tip holds neither as before nor as after it. Where there are
        /// none, the same change can be put on the tip.
        conflicts: Vec<RepoPath>,
    },
    /// Something is in the way; later it may succeed. Everything is as it was, except for what is named.
    Waiting {
        /// What is in the way.
        obstacle: Obstacle,
        /// Files that could not be put back because somebody has edited them.
        left: Vec<MetFile>,
    },
    /// Somebody took the locks away while files were exchanged, and the index cannot be put back
    /// before they are free: recover the plan until it says something else.
    Interrupted {
        /// What holds recovery up.
        obstacle: Obstacle,
    },
}

/// How the recovery of a landing ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Recovered {
    /// The branch holds the commit, or held it and somebody took it off again.
    Landed {
        /// The commit: of this round or of an earlier one.
        commit: Oid,
        /// Files that were written to while they were replaced.
        late: Vec<MetFile>,
    },
    /// Nothing of it is left, except for what is named. Land again.
    TakenBack {
        /// Why it could not be completed.
        obstacle: Obstacle,
        /// Files that could not be put back because somebody has edited them.
        left: Vec<MetFile>,
    },
    /// It cannot be decided yet: recover again later.
    Blocked {
        /// What is in the way.
        obstacle: Obstacle,
    },
}

/// A file of a person's that is named because a landing met it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetFile {
    /// The root of its work tree.
    pub workdir: PathBuf,
    /// The path.
    pub path: RepoPath,
    /// Where the file lies that was replaced or deleted, if any.
    pub replaced: Option<PathBuf>,
}

/// What keeps a commit from landing now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Obstacle {
    /// A lock of git's is held by somebody else.
    Locked {
        /// The lock file.
        lock: PathBuf,
    },
    /// A lock that was taken is gone: somebody removed it.
    LockLost {
        /// The lock file.
        lock: PathBuf,
    },
    /// A file of the commit has changes that are not committed, or something else stands in its place.
    Dirty {
        /// The work tree.
        workdir: PathBuf,
        /// The paths.
        paths: Vec<RepoPath>,
    },
    /// A path of the commit has something staged.
    Staged {
        /// The work tree.
        workdir: PathBuf,
        /// The paths.
        paths: Vec<RepoPath>,
    },
    /// Git has something under way that is to end on the branch.
    Operation {
        /// The git directory of its work tree.
        git_dir: PathBuf,
        /// What, such as `a rebase`.
        what: String,
    },
    /// The branch is elsewhere.
    TipMoved {
        /// Where it is.
        tip: Option<Oid>,
    },
    /// Work trees came, went or switched branches.
    CheckoutsChanged,
    /// The files of a work tree that has the branch checked out are gone, and it is locked.
    CheckoutMissing {
        /// The git directory of that work tree.
        git_dir: PathBuf,
    },
    /// The files that were staged are gone.
    StagingGone,
    /// Something may not be written.
    Denied {
        /// What, and the system's reason.
        why: String,
    },
}

impl Obstacle {
    /// A stable code for journals and views.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Locked { .. }
            | Self::LockLost { .. }
            | Self::CheckoutsChanged
            | Self::TipMoved { .. }
            | Self::StagingGone
            | Self::Operation { .. } => "busy",
            Self::Dirty { .. } | Self::Staged { .. } => "checkout_dirty",
            Self::CheckoutMissing { .. } => "checkout_missing",
            Self::Denied { .. } => "read_only",
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Locked { lock } => {
                let lock = lock.display();
                write!(f, "`{lock}` exists: git is at work, or was killed")
            }
            Self::LockLost { lock } => {
                write!(f, "`{}` was removed by another process", lock.display())
            }
            Self::Dirty { workdir, paths } => {
                let (workdir, paths) = (workdir.display(), list(paths));
                write!(f, "uncommitted changes in `{workdir}`: {paths}")
            }
            Self::Staged { workdir, paths } => {
                let (workdir, paths) = (workdir.display(), list(paths));
                write!(f, "staged changes in `{workdir}`: {paths}")
            }
            Self::Operation { git_dir, what } => {
                write!(f, "{what} is in progress (`{}`)", git_dir.display())
            }
            Self::TipMoved { tip: Some(tip) } => write!(f, "the branch moved to {tip}"),
            Self::TipMoved { tip: None } => f.write_str("the branch is gone"),
            Self::CheckoutsChanged => {
                f.write_str("checkouts were added or removed, or switched branches")
            }
            Self::CheckoutMissing { git_dir } => write!(
                f,
                "the files of the locked work tree `{}` are not there",
                git_dir.display()
            ),
            Self::StagingGone => f.write_str("the staged files are gone"),
            Self::Denied { why } => f.write_str(why),
        }
    }
}

fn list(paths: &[RepoPath]) -> String {
    const SHOWN_MAX: usize = 5;
    let shown: Vec<String> = paths
        .iter()
        .take(SHOWN_MAX)
        .map(|p| format!("`{p}`"))
        .collect();
    let more = paths.len().saturating_sub(SHOWN_MAX);
    match more {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Why a commit can never land here, or could not now.
#[derive(Debug, thiserror::Error)]
pub enum LandError {
    /// The commit or the repository is of a kind that is not supported.
    #[error("{message}")]
    Refused {
        /// A stable code for journals and views.
        code: &'static str,
        /// What it is.
        message: String,
    },
    /// The journal could not be written. Nothing was changed after that.
    #[error("cannot record the landing: {0}")]
    Journal(#[source] std::io::Error),
    /// The run's own repository, from which its commit is imported, cannot be read.
    #[error(transparent)]
    Source(GitError),
    /// The repository or the file system failed. Where a plan is recorded, it wants recovery.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl LandError {
    /// Whether something may not be written, which waiting alone does not change.
    pub(crate) fn is_denied(&self) -> bool {
        self.code() == "read_only"
    }

    pub(crate) fn refused(code: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self::Refused { code, message }
    }

    /// Says what may not be written, with what helps.
    pub(crate) fn denial(&self) -> String {
        match self {
            Self::Git(error) => error.with_hint(),
            _ => self.to_string(),
        }
    }

    /// A stable code for journals and views.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Refused { code, .. } => code,
            Self::Journal(_) => "journal",
            Self::Source(error) | Self::Git(error) => error.code(),
        }
    }
}
