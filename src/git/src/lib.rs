//! What is read and kept in a person's git repository; files, index and branches are the landing's.
//!
//! The rules of this room:
//! - A fresh handle for each call; see [`locate`].
//! - No child process and no hook, filter, signature or file system monitor of the repository:
//!   its configuration may be hostile. Paths with a `filter` attribute are refused instead.
//! - Whatever a returned value names is durable before it is returned.

mod again;
mod arrivals;
mod author;
mod changes;
mod checkouts;
mod create;
mod damage;
mod diff;
mod durable;
mod left_locks;
mod lock;
mod making;
mod open;
mod patterns;
mod preflight;
mod refs;
mod show;
mod tracked;

pub use arrivals::{arrivals, branch_tip, commit_of_run, has_commit};
pub use author::{Author, AuthorError, Identity, author, identity};
pub use changes::{
    ChangedPath, CommittedFile, PathChange, changed_paths, commit_entry, committed_file,
    head_entry, is_checked_out,
};
pub use checkouts::{Checkout, checkouts};
pub use create::{FIRST_COMMIT_PATHS_MAX, FirstCommit, create_repository, first_commit};
pub use damage::{Damage, damage, damage_behind};
pub use diff::{Patch, Span, kept_span, patch, span_of_commits};
pub use left_locks::{GitLockFile, clear_left_locks, directories, git_locks};
pub use lock::{Holder, LockOwner, RepositoryLease};
pub use making::{
    NewCommit, branch_at, branches, check_index, default_branch, ignored_entries, is_ignored,
    keep_base, message_with_trailers, remotes, tree_at, write_commit,
};
pub use open::{Facts, Head, is_submodule, locate};
pub use patterns::PathPatterns;
pub use preflight::{RepositoryRefusal, preflight};
pub use refs::{drop_refs, expired_refs};
pub use show::{ShownCommit, ShownFile, show_commit};
pub use tracked::{TrackedChanges, tracked_below, tracked_changes};
pub use workerctl_landing::error::GitError;
pub use workerctl_landing::ids::{
    NameError, Oid, PATH_BYTES_MAX, PATH_COMPONENTS_MAX, RepoPath, RunId,
};

#[cfg(test)]
mod tests;
