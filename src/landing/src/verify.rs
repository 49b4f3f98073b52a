//! Compares the record of a landing with what is known of the run from elsewhere.
//!
//! A record is a file, and recovery moves branches, replaces files and deletes a directory by what it says. So
//! recovery acts on a record only if the run, its commit and the repository agree with it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::ids::{Oid, RunId};
use crate::outcome::LandError;
use crate::plan::{Checkout, Plan};
use crate::repository::{Repo, same};
use crate::stage::FOLDER;

/// A commit that was prepared for a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedCommit {
    /// Full name of the branch that it is for.
    pub target: String,
    /// Its parent on the branch; `None` for the first commit of the branch.
    pub from: Option<Oid>,
    /// The commit.
    pub to: Oid,
}

/// What the record of a landing has to agree with.
#[derive(Debug, Clone, Copy)]
pub struct Expected<'a> {
    /// A directory of the repository.
    pub repository: &'a Path,
    /// The run whose landing it is.
    pub run: &'a RunId,
    /// All commits that were prepared for the run.
    pub commits: &'a [PreparedCommit],
}

impl Plan {
    /// Checks that this plan is one that [`land`](crate::land) made for a commit of the run.
    ///
    /// # Errors
    /// `record_differs` names the part that differs. The repository cannot be read.
    pub fn verify(&self, expected: &Expected<'_>) -> Result<(), LandError> {
        self.verify_place(expected.repository, expected.run)?;
        let is_prepared = |commit: &PreparedCommit| {
            commit.target == self.target && commit.from == self.from && commit.to == self.to
        };
        if !expected.commits.iter().any(is_prepared) {
            return Err(differs("the commit or its branch"));
        }
        let is_known = |oid: &Oid| expected.commits.iter().any(|commit| commit.to == *oid);
        if !self.earlier.iter().all(is_known) {
            return Err(differs("the earlier commits"));
        }
        let repo = Repo::at(&self.common_dir)?;
        let changes = repo.changes(self.from.as_ref(), &self.to)?;
        let agree = changes.len() == self.changes.len()
            && changes.iter().zip(&self.changes).all(|(found, recorded)| {
                found.path == recorded.path
                    && same(found.old.as_ref(), recorded.old.as_ref())
                    && same(found.new.as_ref(), recorded.new.as_ref())
            });
        if !agree {
            return Err(differs("the changed paths"));
        }
        let present = repo.checkouts(&self.target)?;
        let linked = self.common_dir.join("worktrees");
        let is_present = |checkout: &Checkout| {
            let found = present
                .iter()
                .find(|found| found.git_dir == checkout.git_dir);
            if found.is_none() && checkout.git_dir.parent() != Some(&linked) {
                return false;
            }
            match found.and_then(|found| found.workdir.as_ref()) {
                Some(workdir) => checkout
                    .workdir
                    .as_ref()
                    .is_none_or(|recorded| recorded == workdir),
                // It was removed since: nothing can be written where no files are.
                None => !checkout.workdir.as_deref().is_some_and(Path::exists),
            }
        };
        if !self.checkouts.iter().all(is_present) {
            return Err(differs("the work trees"));
        }
        Ok(())
    }

    /// Checks that this plan is of this run and repository, and keeps its files where landings of the run do: so that
    /// [`clear`](crate::clear) deletes nothing else.
    ///
    /// # Errors
    /// `record_differs` names the part that differs. The repository cannot be read.
    pub fn verify_place(&self, repository: &Path, run: &RunId) -> Result<(), LandError> {
        if self.run != *run {
            return Err(differs("the run"));
        }
        let repo = Repo::find(repository)?;
        if repo.common_dir != self.common_dir {
            return Err(differs("the repository"));
        }
        let folder = self.common_dir.join(FOLDER);
        let name = self.staging.strip_prefix(&folder).ok();
        let name = name.and_then(Path::to_str).unwrap_or_default();
        let number = name.strip_prefix(run.as_str());
        let number = number.and_then(|rest| rest.strip_prefix('-'));
        let is_numbered = number.is_some_and(|number| number.parse::<u32>().is_ok());
        // The folder is made by the engine; a link in its place would lead elsewhere.
        let is_real = fs::canonicalize(&folder).ok() == real_folder(&self.common_dir);
        let is_directory = fs::symlink_metadata(&self.staging).is_ok_and(|found| found.is_dir());
        let is_absent = !self.staging.exists();
        if is_numbered && (is_absent || is_real && is_directory) {
            return Ok(());
        }
        Err(differs("the staging directory"))
    }
}

fn real_folder(common_dir: &Path) -> Option<PathBuf> {
    Some(fs::canonicalize(common_dir).ok()?.join(FOLDER))
}

fn differs(part: &str) -> LandError {
    LandError::refused(
        "record_differs",
        format!("{part} in the record of the landing differ from those of the run"),
    )
}
