//! Everything that is done in the user's git repository: baseline, result, commit, restore.
//!
//! The rules of this room:
//! - A fresh handle for each call; see [`locate`].
//! - No child process and no hook, filter, signature or file system monitor of the repository:
//!   its configuration may be hostile. Paths with a `filter` attribute are refused instead.
//! - The user's index, branch and files change only by compare-and-swap: what a person did
//!   meanwhile wins, and is named.
//! - Whatever a returned value names is durable before it is returned.

mod again;
mod arrivals;
mod attribution;
mod author;
mod baseline;
mod beneath;
mod branch;
mod commit;
mod create;
mod damage;
mod deadline;
mod diff;
mod durable;
mod error;
mod exclusions;
mod flagged;
mod former_rules;
mod held;
mod ids;
mod left_locks;
mod lock;
mod open;
mod operation;
mod overlooked;
mod patterns;
mod permissions;
mod preflight;
mod quarantine;
mod record;
mod refs;
mod restore;
mod show;
mod snapshot;
mod staged;
mod status;
mod too_deep;
mod tree;
mod user_index;
mod worktree_form;

pub use arrivals::{COMMITS_LISTED_MAX, arrivals, branch_tip};
pub use attribution::{
    Attribution, AttributionError, Drift, OutputObstacle, attribute, check_unchanged,
    declared_dirty, message_with_trailers,
};
pub use author::{Author, AuthorError, author};
pub use baseline::{Baseline, PathChange, ResultTree, baseline, result_tree};
pub use commit::{
    COMMITS_SEARCHED_MAX, CommitRequest, Found, Moved, PrepareError, Prepared, PreparedCommit,
    RUN_TRAILER, find_commit, move_ref, prepare_commit, refresh_index,
};
pub use create::{FIRST_COMMIT_PATHS_MAX, FirstCommit, create_repository, first_commit};
pub use damage::{Damage, damage, damage_behind};
pub use deadline::Deadline;
pub use diff::{Patch, diff, diff_of_commits};
pub use error::GitError;
pub use exclusions::Exclusions;
pub use former_rules::HiddenRules;
pub use ids::{NameError, Oid, PATH_BYTES_MAX, PATH_COMPONENTS_MAX, RepoPath, RunId};
pub use left_locks::{GitLockFile, clear_left_locks, git_locks};
pub use lock::{Holder, LockOwner, RepositoryLease};
pub use open::{Facts, Head, locate};
pub use operation::{Operation, OperationKind};
pub use patterns::PathPatterns;
pub use permissions::Permissions;
pub use preflight::{Policy, Refusal, preflight};
pub use refs::{drop_refs, expired_refs};
pub use restore::{NotRestored, Restored, restore};
pub use show::{ShownCommit, ShownFile, show_commit};
pub use snapshot::{DirtyPath, Limits, UnkeptFile, dirty_paths};
pub use staged::{StagedEntry, StagedPath, settle_index};
pub use too_deep::DIRECTORIES_MAX;
pub use tree::{
    Change, ChangeKind, MODE_EXECUTABLE, MODE_FILE, MODE_LINK, MODE_SUBMODULE, TreeEntry,
};
pub use user_index::IndexRefresh;

#[cfg(test)]
mod tests;
