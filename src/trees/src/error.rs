//! Why a run tree cannot be had.

use std::io;
use std::path::{Path, PathBuf};

use workerctl_landing::error::GitError;
use workerctl_landing::ids::RepoPath;

/// A failure around a run tree.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// The repository, or a file below the state directory.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The small repository of a tree, or what lies beside it, cannot be read. The next run makes it anew.
    #[error("the run's worktree `{}` is damaged: {}{source}", path.display(), named(torn.as_deref()))]
    Damaged {
        /// The directory of the tree.
        path: PathBuf,
        /// The first file whose content is not what was written, if one was found.
        torn: Option<PathBuf>,
        /// What could not be read.
        source: GitError,
    },
    /// The place for run trees lies inside somebody's work tree.
    #[error("`{}` is inside the git worktree `{}`", root.display(), worktree.display())]
    InsideWorkTree {
        /// The place for run trees.
        root: PathBuf,
        /// The work tree around it.
        worktree: PathBuf,
    },
    /// Another process works in the tree.
    #[error("the run's worktree `{}` is in use by another process", .0.display())]
    InUse(PathBuf),
    /// The tree belongs to another worker or repository.
    #[error("the run's worktree `{}` belongs to worker `{worker}` of `{}`", path.display(), repository.display())]
    OtherOwner {
        /// The directory of the tree.
        path: PathBuf,
        /// Its worker.
        worker: String,
        /// Its repository.
        repository: PathBuf,
    },
    /// The base holds a path that is not stored as it is checked out.
    #[error(
        "`{path}` has the attribute `{attribute}`, which is not applied in the worktree of a run"
    )]
    Filtered {
        /// The path.
        path: RepoPath,
        /// `filter` or `working-tree-encoding`.
        attribute: String,
    },
    /// Evaluating ignore rules and attributes takes too long.
    #[error("the ignore and attribute rules of git take more than 60 s to evaluate, most recently for `{}`", .0.display())]
    SlowRules(PathBuf),
    /// `keep:` names something that is part of the base.
    #[error("`keep` names `{keep}`, but the base tracks `{path}`")]
    KeptIsTracked {
        /// The entry of `keep:`.
        keep: String,
        /// The tracked path.
        path: RepoPath,
    },
    /// An entry of `keep:` that is no relative path.
    #[error("`keep` names `{0}`, which is not a path inside the repository")]
    KeepPath(String),
    /// Something cannot be laid over the base.
    #[error("`{}` cannot be put into the worktree at `{path}`: {why}", from.display())]
    Overlay {
        /// The path in the tree.
        path: RepoPath,
        /// Where it comes from.
        from: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The base cannot be written as files.
    #[error("the base cannot be checked out: `{path}` {why}")]
    BasePath {
        /// The path in its escaped form.
        path: String,
        /// What is wrong.
        why: &'static str,
    },
    /// Something in the state directory is not what was put there.
    #[error("`{}` is not a plain {wanted}", path.display())]
    Foreign {
        /// The place.
        path: PathBuf,
        /// `directory` or `file`.
        wanted: &'static str,
    },
    /// Stopped by whoever observes the steps.
    #[error("stopped before: {0}")]
    Stopped(&'static str),
}

impl TreeError {
    /// A stable code for journals and views.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Git(error) => error.code(),
            Self::Damaged { .. } => "tree_damaged",
            Self::InsideWorkTree { .. } => "trees_inside_work_tree",
            Self::InUse(_) => "tree_in_use",
            Self::OtherOwner { .. } => "tree_of_another",
            Self::Filtered { .. } => "filtered",
            Self::SlowRules(_) => "rule_file",
            Self::KeptIsTracked { .. } | Self::KeepPath(_) => "keep",
            Self::Overlay { .. } => "overlay",
            Self::BasePath { .. } => "base_path",
            Self::Foreign { .. } => "state_directory",
            Self::Stopped(_) => "stopped",
        }
    }

    /// What a person can do about it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Git(error) => return error.hint(),
            Self::Damaged { .. } => {
                "the next run recreates the worktree; your repository is not damaged".into()
            }
            Self::InsideWorkTree { .. } => {
                "move the state directory out of every git work tree, or set `XDG_STATE_HOME` to a place outside".into()
            }
            Self::InUse(_) => "wait for the other run to end".into(),
            Self::OtherOwner { .. } => "use another worktree; this one is deleted when it is no longer used".into(),
            Self::Filtered { .. } => {
                "add `filtered: stored` to the skill if it can work on files as git stores them".into()
            }
            Self::SlowRules(_) => {
                "use fewer patterns with several wildcards in `.gitignore` and `.gitattributes`, or let the run leave fewer files".into()
            }
            Self::KeptIsTracked { keep, .. } => {
                format!("take `{keep}` out of `keep`, or stop tracking what is there")
            }
            Self::KeepPath(_) => "name a relative path such as `node_modules/`".into(),
            Self::Overlay { from, .. } => {
                format!("fix `{}`, or remove it from `local`", from.display())
            }
            Self::BasePath { .. } => "rename it in a commit of the branch".into(),
            Self::Foreign { path, .. } => format!("remove `{}`", path.display()),
            Self::Stopped(_) => return None,
        })
    }
}

fn named(torn: Option<&Path>) -> String {
    torn.map_or_else(String::new, |torn| {
        format!("`{}` is not as it was written; ", torn.display())
    })
}

/// Turns a failed system call into ours.
pub(crate) fn io_at<E: Into<io::Error>>(
    doing: &'static str,
    path: &Path,
) -> impl Fn(E) -> TreeError + use<E> {
    let path = path.to_owned();
    move |source| workerctl_landing::error::io_at(doing, &path)(source).into()
}

/// Turns a failed write of the git library into ours: its message does not always tell a full disk or file.
pub(crate) fn git_write(doing: &'static str, dir: &Path) -> impl Fn(git2::Error) -> TreeError {
    let convert = workerctl_landing::error::git_write(doing, dir);
    move |source| convert(source).into()
}

/// Turns a failure of the git library into ours.
pub(crate) fn git(doing: &'static str) -> impl Fn(git2::Error) -> TreeError {
    move |source| workerctl_landing::error::git(doing)(source).into()
}
