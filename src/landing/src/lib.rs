//! Landing: a commit that was prepared elsewhere becomes the tip of a branch, and the checkouts that have
//! the branch follow, while people work in them.
//!
//! [`import()`] brings the objects in as one pack. [`land`] tries once to land and waits for nothing;
//! [`recover`] completes or takes back what a killed process left. Both run the same code: what was done is
//! never recorded, it is read from the inodes in a staging folder below the git directory.
//!
//! # The order
//!
//! 1. Without locks: the new files, each with a second name (a hard link), the lock tokens and the new
//!    index are staged in a folder that is complete before it gets its name. The [`Journal`] records the
//!    [`Plan`].
//! 2. Git's locks are taken by linking tokens: the index and `HEAD` of each checkout, then the branch, whose
//!    lock already holds the new value.
//! 3. Tip, `HEAD`s, what git has under way, index entries and files are compared.
//! 4. Each file is exchanged with the one in its place; what came out is compared. If it differs, it goes
//!    back, everything goes back, and [`Outcome::Waiting`] says why. Nothing lands with a path left out.
//! 5. The index is exchanged in the same way.
//! 6. The branch's log exists; the branch's lock is renamed over the branch; then the logs get their lines.
//! 7. Locks are removed that are ours by inode, `HEAD`s before indexes. The journal records the end.
//!
//! So no index is ever ahead of its files, and no branch ahead of an index: whatever a person commits in
//! between holds the old content of a path or the new one, as their files do. Taking back goes the other
//! way, index before files. With the files first, an amended commit between two kills held the new content
//! of a file that was old again, and the status showed a change that nobody had made.
//!
//! # Where this differs from the design's first form, and why
//!
//! - **Recovery keeps the locks that are ours** and takes the missing ones, instead of removing all of them
//!   first: in between, a person's command would see half of the change. Where it cannot go on, it lets go
//!   of all of them.
//! - **`HEAD` is locked in every checkout**, not only in those that have the branch: otherwise
//!   `git switch` could put one on the branch while it moves, with the old files.
//! - **The index is exchanged, not renamed over**: of 5,115 cases with a rename, 4 overwrote an index that a
//!   person had written after removing all locks by hand between the last look at the lock and the rename.
//! - **A placed file is looked at once more before the index is exchanged**: an editor that saved over it
//!   by rename holds the old content, and the branch would make that a change against the commit.
//! - **An entry is distrusted by whole seconds.** Git's usual builds compare the seconds of a file's time
//!   alone, so a change of the same size in the second in which the index was written would be hidden by an
//!   index of ours that is younger. By nanoseconds one such edit was hidden.
//! - **What equals the commit already is clean**, tracked files and deletions included.
//!
//! # What is left open
//!
//! - `git switch` or `git worktree add` of a branch that is checked out nowhere, when it has read the branch
//!   before it moved and writes its `HEAD` after: git guards that against no other mover of branches either.
//! - Between the last look at a lock and a rename lie microseconds in which a person can remove the lock by
//!   hand; files and indexes are compared after their exchange, the branch alone is not.
//! - An editor that saves an old buffer after the landing: the edit is kept, in the work tree, as it is when
//!   anybody else commits or pulls.

mod attempt;
mod bounds;
mod branch;
mod connected;
mod derived;
mod differences;
mod entries;
pub mod error;
mod files;
mod forms;
pub mod ids;
mod import;
mod index;
mod journal;
mod landing;
mod locks;
mod loose;
mod objects;
pub mod open;
mod outcome;
mod packs;
mod passwords;
mod plan;
mod repository;
mod settings;
mod sharing;
mod stage;
mod stand;
mod store;
mod verify;
mod worktree;

pub use bounds::{FILE_BYTES_MAX, beyond_bounds, borrowed_objects};
pub use derived::remove_derived;
pub use differences::{MODE_TREE, TreeItem, differences};
pub use entries::{Entries, EntryStat};
pub use import::{Import, import, kept_reference};
pub use index::IndexSnapshot;
pub use journal::{FileJournal, Journal, Observer, Record, Unobserved};
pub use landing::{Request, held_locks, land, late_edits, recover};
pub use loose::is_whole_object;
pub use objects::is_git_directory;
pub use outcome::{LandError, MetFile, Obstacle, Outcome, Recovered};
pub use passwords::{holds_password, without_user};
pub use plan::{Change, Checkout, Entry, LogLine, Plan};
pub use repository::checkouts;
pub use settings::setting;
pub use sharing::Sharing;
pub use stage::clear;
pub use store::damaged_object;
pub use verify::{Expected, PreparedCommit};
