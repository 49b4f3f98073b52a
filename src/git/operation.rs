//! What git has under way: a merge, a rebase, a pick, a revert, a mailbox, a bisection.

use std::fs;
use std::io;
use std::path::Path;

use git2::RepositoryState;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::error::{GitError, git, io_at};
use super::ids::Oid;
use super::open::Handle;

/// The kinds of operations that take more than one command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperationKind {
    /// `git merge`.
    Merge,
    /// `git revert`.
    Revert,
    /// `git cherry-pick`, or between two of several picks or reverts.
    CherryPick,
    /// `git bisect`.
    Bisect,
    /// `git rebase`.
    Rebase,
    /// `git am`.
    Mailbox,
}

/// An operation of git's that is under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// What it is.
    pub kind: OperationKind,
    /// The SHA-256 of what git has noted of it, in hexadecimal: another one of its kind has another.
    pub mark: String,
    /// The commit in which git put uncommitted changes aside for it.
    pub autostash: Option<Oid>,
}

impl Operation {
    /// A stable code for journals and views.
    pub fn code(&self) -> &'static str {
        match self.kind {
            OperationKind::Merge => "merge_in_progress",
            OperationKind::Revert => "revert_in_progress",
            OperationKind::CherryPick => "cherry_pick_in_progress",
            OperationKind::Bisect => "bisect_in_progress",
            OperationKind::Rebase => "rebase_in_progress",
            OperationKind::Mailbox => "am_in_progress",
        }
    }

    /// For people, with its article.
    pub fn what(&self) -> &'static str {
        match self.kind {
            OperationKind::Merge => "a merge",
            OperationKind::Revert => "a revert",
            OperationKind::CherryPick => "a cherry-pick",
            OperationKind::Bisect => "a bisection",
            OperationKind::Rebase => "a rebase",
            OperationKind::Mailbox => "applying a mailbox",
        }
    }

    /// The commands that end it.
    pub fn remedy(&self) -> String {
        let command = match self.kind {
            OperationKind::Bisect => return "finish it: `git bisect reset`".to_owned(),
            OperationKind::Merge => "merge",
            OperationKind::Revert => "revert",
            OperationKind::CherryPick => "cherry-pick",
            OperationKind::Rebase => "rebase",
            OperationKind::Mailbox => "am",
        };
        format!("finish it: `git {command} --continue`, or give up: `git {command} --abort`")
    }
}

/// Files from which one operation can be told from another of its kind.
const MARKS: [&str; 9] = [
    "MERGE_HEAD",
    "REVERT_HEAD",
    "CHERRY_PICK_HEAD",
    "sequencer/todo",
    "rebase-merge/orig-head",
    "rebase-merge/onto",
    "rebase-apply/orig-head",
    "rebase-apply/onto",
    "BISECT_LOG",
];

/// Where git notes the commit that holds what it put aside.
const AUTOSTASHES: [&str; 3] = [
    "MERGE_AUTOSTASH",
    "rebase-merge/autostash",
    "rebase-apply/autostash",
];

/// What an operation leaves that the git library does not remove with it.
const REMAINS: [&str; 12] = [
    "AUTO_MERGE",
    "MERGE_RR",
    "MERGE_AUTOSTASH",
    "REBASE_HEAD",
    "BISECT_START",
    "BISECT_NAMES",
    "BISECT_TERMS",
    "BISECT_EXPECTED_REV",
    "BISECT_ANCESTORS_OK",
    "BISECT_FIRST_PARENT",
    "BISECT_RUN",
    "BISECT_HEAD",
];

impl Handle {
    /// What is under way now.
    pub(super) fn operation(&self) -> Result<Option<Operation>, GitError> {
        use RepositoryState as State;
        let kind = match self.repo.state() {
            // Between two picks there is no `CHERRY_PICK_HEAD`, so the git library calls it clean.
            State::Clean if self.repo.path().join("sequencer").exists() => {
                OperationKind::CherryPick
            }
            State::Clean => return Ok(None),
            State::Merge => OperationKind::Merge,
            State::Revert | State::RevertSequence => OperationKind::Revert,
            State::CherryPick | State::CherryPickSequence => OperationKind::CherryPick,
            State::Bisect => OperationKind::Bisect,
            State::Rebase | State::RebaseInteractive | State::RebaseMerge => OperationKind::Rebase,
            State::ApplyMailbox | State::ApplyMailboxOrRebase => OperationKind::Mailbox,
        };
        let mut hash = Sha256::new();
        for name in MARKS {
            let noted = self.noted(name)?.unwrap_or_default();
            hash.update(name);
            hash.update(noted.len().to_le_bytes());
            hash.update(noted);
        }
        let mut autostash = None;
        for name in AUTOSTASHES {
            let noted = self.noted(name)?.unwrap_or_default();
            let text = String::from_utf8_lossy(&noted);
            autostash = autostash.or_else(|| text.trim().parse().ok());
        }
        Ok(Some(Operation {
            kind,
            mark: format!("{:x}", hash.finalize()),
            autostash,
        }))
    }

    fn noted(&self, name: &str) -> Result<Option<Vec<u8>>, GitError> {
        let path = self.repo.path().join(name);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(e) if is_absent(&e) => Ok(None),
            Err(e) => Err(io_at("read", &path)(e)),
        }
    }

    /// Forgets the operation that is under way; index, `HEAD` and files are left as they are.
    ///
    /// What tells of it goes last, so that it can be repeated after a crash.
    pub(super) fn forget_operation(&self) -> Result<(), GitError> {
        let git_dir = self.repo.path();
        let fail = git("forget what git has under way");
        let bisected = self.repo.references_glob("refs/bisect/*").map_err(&fail)?;
        for reference in bisected.flatten() {
            let mut reference = reference;
            reference.delete().map_err(&fail)?;
        }
        // The git library does not list those of a linked work tree.
        let own = git_dir.join("refs/bisect");
        gone(&own, fs::remove_dir_all(&own))?;
        for name in REMAINS {
            let path = git_dir.join(name);
            gone(&path, fs::remove_file(&path))?;
        }
        self.repo.cleanup_state().map_err(fail)
    }
}

fn gone(path: &Path, removed: io::Result<()>) -> Result<(), GitError> {
    match removed {
        Err(e) if !is_absent(&e) => Err(io_at("remove", path)(e)),
        Err(_) | Ok(()) => Ok(()),
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}
