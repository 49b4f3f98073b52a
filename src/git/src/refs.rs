//! Hidden references that keep a run's objects alive: `refs/workerctl/runs/<id>/…`.

use std::collections::BTreeMap;
use std::path::Path;

use git2::ErrorCode;

use super::again::again;
use super::durable::Written;
use super::lock::GitLock;
use super::open::Handle;
use workerctl_landing::Sharing;
use workerctl_landing::error::{GitError, git, io_at};
use workerctl_landing::ids::{Oid, RunId};

const ROOT: &str = "refs/workerctl/runs";

/// What a hidden reference of a run keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeptRef {
    /// The commit that the run starts from.
    Base,
    /// The baseline of older versions, as a commit.
    Baseline,
    /// The exact bytes of files whose recorded form differs from them, as a tree.
    Raw,
    /// What was staged before the run, as a tree.
    Staged,
    /// The result of older versions, as a commit.
    Result,
    /// What a run of an older version had done before it was put back, as a commit.
    Discarded,
    /// What the run left, as a commit, until its branch holds it.
    Commit,
}

impl KeptRef {
    const ALL: [Self; 7] = [
        Self::Base,
        Self::Baseline,
        Self::Raw,
        Self::Staged,
        Self::Result,
        Self::Discarded,
        Self::Commit,
    ];

    pub(super) fn name(self, run: &RunId) -> String {
        let last = match self {
            Self::Base => "base",
            Self::Baseline => "baseline",
            Self::Raw => "raw",
            Self::Staged => "staged",
            Self::Result => "result",
            Self::Discarded => "discarded",
            Self::Commit => "commit",
        };
        format!("{ROOT}/{run}/{last}")
    }
}

impl Handle {
    /// Keeps the commit that a run starts from. After a power cut the name may be gone, and `git gc` spares what
    /// is young; but a name without its content would make `git fsck` complain for ever, so that is synced.
    ///
    /// It is written here rather than by libgit2, which renames before it syncs.
    pub(super) fn keep_base(&self, run: &RunId, oid: &Oid) -> Result<(), GitError> {
        let common = self.repo.commondir();
        let path = common.join(KeptRef::Base.name(run));
        let dir = path.parent().unwrap_or(common);
        let sharing = self.sharing()?;
        sharing.make_directories(dir)?;
        // A `git pack-refs` that packs what it was before removes the file only under this lock.
        let lock = match self.kept(run, KeptRef::Base) {
            Ok(None) => None,
            Ok(Some(_)) | Err(_) => Some(GitLock::take(&path, common, sharing)?),
        };
        let written = Written::new(common, format!("{oid}\n").as_bytes(), sharing)?;
        std::fs::rename(written.path(), &path).map_err(io_at("write", &path))?;
        drop(lock);
        Ok(())
    }

    pub(super) fn kept(&self, run: &RunId, kept: KeptRef) -> Result<Option<Oid>, GitError> {
        self.tip(&kept.name(run))
    }
}

/// Drops the hidden references of a run; what only they kept is left to `git gc`.
///
/// Repeating it is no error. Returns how many there were.
pub fn drop_refs(cwd: &Path, run: &RunId) -> Result<usize, GitError> {
    again(|| drop_once(cwd, run))
}

fn drop_once(cwd: &Path, run: &RunId) -> Result<usize, GitError> {
    let handle = Handle::open(cwd)?;
    let common = handle.repo.commondir();
    let mut dropped = 0;
    for kept in KeptRef::ALL {
        match handle.repo.find_reference(&kept.name(run)) {
            Err(e) if e.code() == ErrorCode::NotFound => {}
            Err(e) => return Err(git("read a reference")(e)),
            Ok(_) => {
                delete(common, &kept.name(run), handle.sharing()?)?;
                dropped += 1;
            }
        }
    }
    let dir = common.join(ROOT).join(run.as_str());
    match std::fs::remove_dir(&dir) {
        Ok(()) => {}
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
        // A name in it that is not ours is left to whoever made it.
        Err(e) if e.kind() == std::io::ErrorKind::DirectoryNotEmpty => {}
        Err(e) => return Err(io_at("remove", &dir)(e)),
    }
    Ok(dropped)
}

/// Deletes a reference, packed or not.
///
/// It is done here rather than by libgit2, whose locks are nobody's once it is killed: one on the packed
/// references would keep git from deleting branches and from `git gc` until a person removes it.
fn delete(common: &Path, name: &str, sharing: Sharing) -> Result<(), GitError> {
    let path = common.join(name);
    // As git does: the older value in the packed references never shows. The reference itself needs no lock:
    // nobody else writes it, and a `git pack-refs` takes one only to remove it too.
    delete_packed(common, name, sharing)?;
    match std::fs::remove_file(&path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(io_at("remove", &path)(e)),
        _ => Ok(()),
    }
}

fn delete_packed(common: &Path, name: &str, sharing: Sharing) -> Result<(), GitError> {
    let path = common.join("packed-refs");
    let read = || match std::fs::read(&path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        other => other.map_err(io_at("read", &path)),
    };
    let ending = format!(" {name}\n");
    let is_it = |line: &[u8]| line.ends_with(ending.as_bytes());
    if !read()?.split_inclusive(|b| *b == b'\n').any(is_it) {
        return Ok(());
    }
    let _lock = GitLock::take(&path, common, sharing)?;
    // No line of an object that a tag leads to follows: these point at commits and trees.
    let bytes = read()?;
    let lines = bytes.split_inclusive(|b| *b == b'\n');
    let rest: Vec<u8> = lines
        .filter(|line| !is_it(line))
        .flatten()
        .copied()
        .collect();
    Written::new(common, &rest, sharing)?.publish(&path)
}

/// Runs that still have hidden references and were accepted before `before_s` (seconds since
/// 1970, compared with the time in the run's id), oldest first.
pub fn expired_refs(cwd: &Path, before_s: i64) -> Result<Vec<RunId>, GitError> {
    let handle = Handle::open(cwd)?;
    let fail = git("list references");
    let glob = format!("{ROOT}/*");
    let mut found = BTreeMap::new();
    for reference in handle.repo.references_glob(&glob).map_err(&fail)? {
        let reference = reference.map_err(&fail)?;
        let run = std::str::from_utf8(reference.name_bytes())
            .ok()
            .and_then(|name| name.strip_prefix(ROOT)?.split('/').nth(1))
            .and_then(|id| id.parse::<RunId>().ok());
        if let Some(run) = run
            && run.accepted_at_s() < before_s
        {
            found.insert((run.accepted_at_s(), run.clone()), run);
        }
    }
    Ok(found.into_values().collect())
}
