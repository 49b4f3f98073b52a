//! What goes in and out: owner, base, what a run started from and what it changed.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use workerctl_landing::ids::{Oid, RepoPath};

/// For whom a tree is taken.
#[derive(Debug, Clone, Copy)]
pub struct Owner<'a> {
    /// The worker.
    pub worker: &'a str,
    /// The common git directory of the real repository.
    pub repository: &'a Path,
    /// The name of the workspace's directory, which the work tree gets too.
    pub name: &'a str,
    /// What distinguishes the rights of runs that share kept files; empty if nothing is kept. A run with fewer rights
    /// could otherwise leave a program in a cache that a run with more rights executes.
    pub rights: &'a str,
}

/// What a tree is made equal to.
#[derive(Debug, Clone, Copy)]
pub struct Base<'a> {
    /// Any directory of the real repository.
    pub repository: &'a Path,
    /// The full name of the branch, such as `refs/heads/main`.
    pub target: &'a str,
    /// The commit; without one the branch is unborn and the tree empty.
    pub commit: Option<&'a Oid>,
    /// Name and mail of the author of commits that the run makes.
    pub author: (&'a str, &'a str),
    /// Name and mail of their committer.
    pub committer: (&'a str, &'a str),
    /// Ignored caches that stay, such as `node_modules/`, from the root of the tree.
    pub keep: &'a [String],
    /// What is laid over the base, and is never part of the result. Later entries win.
    pub overlay: &'a [Overlay],
    /// Whether paths with the attributes `filter` or `working-tree-encoding` may hold stored bytes.
    pub allow_filtered: bool,
}

/// One thing of the checkout that is laid over the base.
#[derive(Debug, Clone)]
pub struct Overlay {
    /// Where in the tree.
    pub path: RepoPath,
    /// The file or directory, absolute; what is copied has no links on the way.
    pub from: PathBuf,
    /// Whether a symbolic link to `from` is made instead of a copy.
    pub link: bool,
    /// Whether a missing `from` is no error.
    pub optional: bool,
    /// Whether what git ignores of a directory is left out.
    pub unignored: bool,
}

/// What a run started from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// The number of the tree.
    pub number: u32,
    /// The commit that the target was at.
    pub base: Option<Oid>,
    /// Its tree; the empty one on an unborn branch.
    pub tree: Oid,
    /// The full name of the branch.
    pub target: String,
    /// What was laid over, file by file, each with its mode and blob id.
    #[serde(default)]
    pub overlaid: Vec<(RepoPath, String)>,
    /// Caches that stayed.
    #[serde(default)]
    pub keep: Vec<String>,
    /// Whether filtered paths hold stored bytes.
    #[serde(default)]
    pub allow_filtered: bool,
}

/// What a run left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunResult {
    /// Where `HEAD` is.
    pub head: HeadState,
    /// Commits of the run on the target, oldest first, the newest 100.
    #[serde(default)]
    pub commits_made: Vec<Oid>,
    /// How many there are.
    #[serde(default)]
    pub commits_count: u64,
    /// The whole result, without what was laid over and what is ignored.
    pub tree: Oid,
    /// From the base's tree to the result's, ordered by path.
    pub changes: Vec<PathChange>,
    /// Ignored files that the run made.
    #[serde(default)]
    pub ignored: IgnoredSeen,
    /// Entries of `keep` that are no longer what they were, such as a link in the place of a directory. They are
    /// removed before the next run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unkept: Vec<RepoPath>,
    /// Why the result must be refused.
    #[serde(default)]
    pub problems: Vec<ResultProblem>,
    /// Whether the target's commit does not descend from the base.
    #[serde(default)]
    pub is_unrelated: bool,
}

/// Where `HEAD` of the small repository is after a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum HeadState {
    /// On the target.
    OnTarget {
        /// Its commit, if it has one.
        commit: Option<Oid>,
    },
    /// Elsewhere.
    Moved {
        /// What `HEAD` holds now: a reference, a commit, or why it cannot be read.
        found: String,
    },
}

/// What a tree object holds at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeEntry {
    /// The blob, or the commit of a submodule.
    pub oid: Oid,
    /// Git's mode.
    pub mode: u32,
}

/// One path that a run changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathChange {
    /// The path.
    pub path: RepoPath,
    /// In the base.
    pub old: Option<TreeEntry>,
    /// In the result.
    pub new: Option<TreeEntry>,
    /// The size of the new content.
    #[serde(default)]
    pub bytes: u64,
}

/// Ignored entries that a run made and that are dropped with the tree; a directory counts once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IgnoredSeen {
    /// How many.
    pub count: u64,
    /// The first 20 by name; a directory ends with `/`.
    pub names: Vec<String>,
}

/// Something because of which a result is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultProblem {
    /// A stable code: `overlay_changed`, `kept_is_tracked`, `file_too_large`, `nested_repository`, `submodule`, `path_name`, `filtered`,
    /// `rule_file`, `unreadable`, `unmerged`, `operation`, `case_collision`, `repository_damaged`.
    pub code: String,
    /// What is wrong, with its place.
    pub message: String,
    /// What can be done about it.
    pub hint: String,
}

/// A tree as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeInfo {
    /// The number.
    pub number: u32,
    /// The directory that holds it all.
    pub path: PathBuf,
    /// The worker that it belongs to; empty if it belongs to nobody yet.
    pub worker: String,
    /// The common git directory of its repository.
    pub repository: PathBuf,
    /// When it was last used, in seconds since 1970.
    pub last_used_s: i64,
    /// Whether somebody holds it.
    pub in_use: bool,
    /// Files of its base.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// When trees go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SweepLimits {
    /// Those that were not used for so many seconds.
    pub idle_s: i64,
    /// The least recently used beyond so many.
    pub max: usize,
    /// More of them until so many bytes are free on the file system; 0 for no such limit.
    pub min_free: u64,
}
