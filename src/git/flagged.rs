//! Files that git is told not to look at: `git update-index --assume-unchanged` and `--skip-worktree`.
//!
//! A status says nothing of them, and a person uses them to keep changes of their own to a tracked file. So
//! those that exist are compared here. A sparse checkout has many that do not, and those are left alone.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;

use git2::{Index, IndexEntry, IndexEntryExtendedFlag, IndexEntryFlag};
use rustix::fs::Stat;

use super::beneath::{Observed, Worktree};
use super::deadline::{Deadline, Paced};
use super::error::{GitError, git};
use super::exclusions::Exclusions;
use super::ids::RepoPath;
use super::open::Handle;
use super::snapshot::{Candidate, Purpose};
use super::tree::{MODE_LINK, MODE_SUBMODULE};
use super::worktree_form::Forms;

/// What is compared, and with what.
pub(super) struct Flagged<'a> {
    pub(super) handle: &'a Handle,
    pub(super) worktree: &'a Worktree,
    pub(super) index: &'a Index,
    pub(super) exclusions: &'a Exclusions,
    pub(super) purpose: &'a Purpose<'a>,
    pub(super) deadline: Deadline<'a>,
}

/// What one look at the flagged files found.
#[derive(Default)]
pub(super) struct Unseen {
    /// Those that differ from the index.
    pub(super) candidates: Vec<Candidate>,
    /// Those that exist although they are said to be left out of the work tree.
    pub(super) present: Vec<RepoPath>,
}

impl Flagged<'_> {
    /// Looks at the flagged files that `named` does not hold already.
    pub(super) fn look(&self, named: &HashSet<RepoPath>) -> Result<Unseen, GitError> {
        let mut unseen = Unseen::default();
        let mut tools = None;
        let written = fs::metadata(self.handle.repo.path().join("index")).ok();
        for entry in self.index.iter().filter(is_flagged) {
            self.deadline.check()?;
            let path = RepoPath::from_bytes(&entry.path)?;
            if self.exclusions.covers(&path) {
                continue;
            }
            let observed = self.worktree.observe(&path)?;
            let is_there = matches!(observed, Observed::File(_) | Observed::Link(..));
            let is_skipped = is_skipped(&entry);
            if is_there && is_skipped {
                unseen.present.push(path.clone());
            }
            if named.contains(&path) {
                continue;
            }
            let differs = match &observed {
                Observed::Absent | Observed::Directory | Observed::Other => {
                    !is_skipped || self.purpose.had(&path)
                }
                Observed::Link(target, _) => {
                    let oid = git2::Oid::hash_object(git2::ObjectType::Blob, target);
                    entry.mode != MODE_LINK || oid.map_err(git("hash a link"))? != entry.id
                }
                Observed::File(stat) if is_as_noted(written.as_ref(), &entry, stat) => false,
                Observed::File(_) => {
                    let tools = match &mut tools {
                        Some(tools) => tools,
                        none => none.insert(Comparing::begin(self.handle)?),
                    };
                    tools.differs(self.worktree, &path, &entry, self.deadline)?
                }
            };
            if differs {
                unseen.candidates.push(Candidate {
                    filtered: is_there && self.handle.is_filtered(&path)?,
                    known_mode: Some(entry.mode),
                    untracked: false,
                    staged: false,
                    path,
                    observed,
                });
            }
        }
        Ok(unseen)
    }
}

/// Whether the index has noted these very times, long enough before it was `written` itself.
fn is_as_noted(written: Option<&fs::Metadata>, entry: &IndexEntry, stat: &Stat) -> bool {
    let Some(written) = written else {
        return false;
    };
    let noted = (
        i64::from(entry.mtime.seconds()),
        i64::from(entry.mtime.nanoseconds()),
    );
    let nanoseconds = i64::try_from(stat.st_mtime_nsec).unwrap_or(-1);
    let low = u64::from(u32::MAX);
    noted == (stat.st_mtime, nanoseconds)
        && noted < (written.mtime(), written.mtime_nsec())
        && entry.file_size != 0
        && u64::from(entry.file_size) == stat.st_size.cast_unsigned() & low
        && u64::from(entry.ino) == stat.st_ino & low
        && i64::from(entry.ctime.seconds()) == stat.st_ctime
}

/// Flagged, and neither a submodule nor one side of a conflict.
fn is_flagged(entry: &IndexEntry) -> bool {
    const STAGES: u16 = 0x3000;
    let assumed = entry.flags & IndexEntryFlag::VALID.bits() != 0;
    (assumed || is_skipped(entry)) && entry.flags & STAGES == 0 && entry.mode != MODE_SUBMODULE
}

fn is_skipped(entry: &IndexEntry) -> bool {
    entry.flags_extended & IndexEntryExtendedFlag::SKIP_WORKTREE.bits() != 0
}

/// What comparing contents takes.
struct Comparing {
    /// A converted form is written, and must not become an empty object.
    handle: Handle,
    forms: Forms,
}

impl Comparing {
    fn begin(handle: &Handle) -> Result<Self, GitError> {
        let handle = Handle::open_durable(handle.workdir())?;
        Ok(Self {
            forms: Forms::new(&handle),
            handle,
        })
    }

    fn differs(
        &self,
        worktree: &Worktree,
        path: &RepoPath,
        entry: &IndexEntry,
        deadline: Deadline<'_>,
    ) -> Result<bool, GitError> {
        let Some((file, stat)) = worktree.read(path)? else {
            return Ok(true);
        };
        if !self
            .forms
            .same_mode(self.forms.mode(stat.st_mode), entry.mode)
        {
            return Ok(true);
        }
        let mut file = Paced::new(file, deadline);
        let now = self.handle.normal_id(&mut file, path, &self.forms)?;
        Ok(now != entry.id)
    }
}
