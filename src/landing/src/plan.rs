//! What a landing is going to do, as it is kept in the journal before anything is done.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::ids::{Oid, RepoPath, RunId};
use crate::sharing::Sharing;

/// A regular file.
pub(crate) const MODE_FILE: u32 = 0o100_644;
/// An executable file.
pub(crate) const MODE_EXECUTABLE: u32 = 0o100_755;
/// A symbolic link.
pub(crate) const MODE_LINK: u32 = 0o120_000;
/// A submodule, which is a commit of another repository.
pub(crate) const MODE_COMMIT: u32 = 0o160_000;

/// Everything that landing one commit takes. What was done of it is never recorded: it is read
/// from the inodes in the staging folder, so that recovery believes nothing but what it sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The run.
    pub run: RunId,
    /// The branch, as a full name.
    pub target: String,
    /// Where the branch must be; `None` where it does not exist yet.
    pub from: Option<Oid>,
    /// Where it moves to.
    pub to: Oid,
    /// Commits of earlier rounds of this run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<Oid>,
    /// The directory that all work trees of the repository share.
    pub common_dir: PathBuf,
    /// The folder with the staged files, the lock tokens and what was exchanged out.
    pub staging: PathBuf,
    /// Every checkout of the repository.
    pub checkouts: Vec<Checkout>,
    /// What differs between the two commits, in the order of the paths' bytes.
    pub changes: Vec<Change>,
    /// For the reflogs.
    pub log: LogLine,
    /// Who may work with the repository.
    #[serde(default, skip_serializing_if = "Sharing::is_umask")]
    pub sharing: Sharing,
}

impl Plan {
    /// The commits that would be this run's, if a branch held them.
    pub(crate) fn commits(&self) -> impl Iterator<Item = &Oid> {
        std::iter::once(&self.to).chain(&self.earlier)
    }

    /// The checkouts whose files follow the branch, with their places in the staging folder.
    pub(crate) fn followers(&self) -> impl Iterator<Item = Follower<'_>> {
        let numbered = self.checkouts.iter().enumerate();
        numbered.filter_map(|(number, checkout)| self.follower(number, checkout))
    }

    fn follower<'a>(&'a self, number: usize, checkout: &'a Checkout) -> Option<Follower<'a>> {
        let workdir = checkout.workdir.as_deref()?;
        checkout.follows.then(|| Follower {
            plan: self,
            checkout,
            workdir,
            staged: self.place_of(number),
        })
    }

    /// The folder of a checkout in the staging folder.
    pub(crate) fn place_of(&self, number: usize) -> PathBuf {
        self.staging.join(format!("checkout-{number}"))
    }
}

/// A main or linked work tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkout {
    /// Its own git directory.
    pub git_dir: PathBuf,
    /// Its files; `None` where they are gone.
    pub workdir: Option<PathBuf>,
    /// Whether it has the target checked out.
    pub follows: bool,
    /// Changes, by number, that concern its index only: a sparse checkout leaves the files out.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub index_only: BTreeSet<usize>,
    /// Changes, by number, that somebody had staged already.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub staged_before: BTreeSet<usize>,
}

/// How a path changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The path.
    pub path: RepoPath,
    /// What the branch holds before.
    pub old: Option<Entry>,
    /// What it holds after.
    pub new: Option<Entry>,
}

impl Change {
    /// Whether it is of a submodule, of which a commit holds an id only.
    pub(crate) fn is_submodule(&self) -> bool {
        let sides = [&self.old, &self.new];
        sides
            .into_iter()
            .flatten()
            .any(|entry| entry.mode == MODE_COMMIT)
    }
}

/// What a commit holds at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The blob, or the commit of a submodule.
    pub oid: Oid,
    /// The git file mode.
    pub mode: u32,
    /// The id that the file has as a blob where its line ends are converted on checkout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<Oid>,
}

impl Entry {
    /// Whether an index or tree entry is the same.
    pub(crate) fn is(&self, oid: git2::Oid, mode: u32) -> bool {
        self.oid.raw() == oid && self.mode == mode
    }
}

/// The line for the reflogs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// The committer's name.
    pub name: String,
    /// The committer's mail address.
    pub email: String,
    /// When, in seconds since 1970.
    pub time_s: i64,
    /// The offset of the zone from UTC in minutes.
    pub offset_min: i32,
    /// What happened.
    pub message: String,
}

/// A checkout whose files change, with its part of the staging folder.
pub(crate) struct Follower<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) checkout: &'a Checkout,
    pub(crate) workdir: &'a Path,
    staged: PathBuf,
}

impl Follower<'_> {
    /// The changes of its files, with their numbers.
    pub(crate) fn file_changes(&self) -> impl DoubleEndedIterator<Item = (usize, &Change)> {
        let numbered = self.plan.changes.iter().enumerate();
        numbered.filter(|(number, change)| {
            !change.is_submodule() && !self.checkout.index_only.contains(number)
        })
    }

    /// The submodules that come, go or move. Their work trees stay as they are, as `git pull` leaves them.
    pub(crate) fn submodules(&self) -> impl Iterator<Item = &Change> {
        let numbered = self.plan.changes.iter().enumerate();
        let here = numbered.filter(|(number, change)| {
            change.is_submodule() && !self.checkout.index_only.contains(number)
        });
        here.map(|(_, change)| change)
    }

    /// Where the new file of a change waits, and later what came out for it.
    pub(crate) fn slot(&self, number: usize) -> PathBuf {
        self.staged.join(format!("new-{number}"))
    }

    /// A second name of the new file, by which it is told wherever it is.
    pub(crate) fn ours(&self, number: usize) -> PathBuf {
        self.staged.join(format!("ours-{number}"))
    }

    /// Where a deleted file goes.
    pub(crate) fn out(&self, number: usize) -> PathBuf {
        self.staged.join(format!("out-{number}"))
    }

    /// A file in the folder of the checkout.
    pub(crate) fn staged(&self, name: &str) -> PathBuf {
        self.staged.join(name)
    }

    pub(crate) fn index(&self) -> PathBuf {
        self.checkout.git_dir.join("index")
    }
}
