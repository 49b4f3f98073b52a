//! Writing what the work tree holds at a path as objects.

use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, AsRawFd};

use git2::{AttrCheckFlags, AttrValue};
use rustix::fs::Stat;
use sha2::{Digest, Sha256};

use super::beneath::{Observed, Worktree};
use super::deadline::{Deadline, Paced};
use super::error::{GitError, git, git_write, io_at};
use super::ids::{Oid, RepoPath};
use super::open::Handle;
use super::snapshot::{Candidate, DirtyPath, Limits, Purpose, Snapshot, UnkeptFile, size};
use super::tree::{MODE_EXECUTABLE, MODE_FILE, MODE_LINK, Overlay, TreeEntry};
use super::worktree_form::Forms;

/// Reads candidates and writes what they hold as objects.
pub(super) struct Recorder<'a> {
    pub(super) handle: &'a Handle,
    pub(super) worktree: &'a Worktree,
    pub(super) limits: &'a Limits,
    pub(super) purpose: &'a Purpose<'a>,
    pub(super) forms: Forms,
    pub(super) has_links: bool,
    pub(super) deadline: Deadline<'a>,
}

impl Recorder<'_> {
    pub(super) fn record(
        &self,
        candidate: &Candidate,
        snapshot: &mut Snapshot,
        overlay: &mut Overlay,
    ) -> Result<(), GitError> {
        self.deadline.check()?;
        self.deadline
            .explain(self.record_in_time(candidate, snapshot, overlay))
    }

    fn record_in_time(
        &self,
        candidate: &Candidate,
        snapshot: &mut Snapshot,
        overlay: &mut Overlay,
    ) -> Result<(), GitError> {
        let path = candidate.path.clone();
        let mut dirty = DirtyPath {
            path: path.clone(),
            entry: None,
            raw: None,
            unix_mode: None,
            untracked: candidate.untracked,
            staged: candidate.staged,
        };
        match &candidate.observed {
            // A fifo or socket is nothing to git; neither is the directory that took a file's
            // place: the files in it are candidates of their own.
            Observed::Absent | Observed::Directory | Observed::Other => {}
            Observed::Link(target, _) => {
                let oid = self.handle.repo.blob(target).map_err(git_write(
                    "write an object in",
                    self.handle.repo.commondir(),
                ))?;
                dirty.entry = Some(noted(snapshot, oid, MODE_LINK));
            }
            Observed::File(stat) if self.is_left_out(candidate, stat) => {
                if candidate.filtered {
                    snapshot.filtered.push(path.clone());
                }
                if let Purpose::Baseline = self.purpose {
                    snapshot
                        .unkept
                        .extend(digest(self.worktree, &path, self.deadline)?);
                    snapshot.dirty.push(dirty);
                }
                return Ok(());
            }
            Observed::File(_) => {
                let mode = |stat: &Stat| self.mode(stat, candidate.known_mode);
                if let Some(read) = self.store(&path, &mut snapshot.written)? {
                    dirty.raw = read.raw;
                    dirty.unix_mode = Some(read.stat.st_mode & 0o777);
                    dirty.entry = Some(noted(snapshot, read.oid, mode(&read.stat)));
                }
            }
        }
        overlay.insert(path, dirty.entry.clone());
        snapshot.dirty.push(dirty);
        Ok(())
    }

    fn is_left_out(&self, candidate: &Candidate, stat: &Stat) -> bool {
        match self.purpose {
            Purpose::Baseline => {
                let large = size(stat) > self.limits.untracked_file_bytes_max;
                candidate.filtered || (candidate.untracked && large)
            }
            Purpose::Result(baseline) => {
                let mut unkept = baseline.unkept.iter();
                candidate.filtered || unkept.any(|u| u.path == candidate.path)
            }
        }
    }

    fn mode(&self, stat: &Stat, known: Option<u32>) -> u32 {
        match known {
            Some(MODE_LINK) if !self.has_links => MODE_LINK,
            // Where modes mean nothing, the recorded one stays.
            Some(MODE_EXECUTABLE) if self.forms.same_mode(MODE_FILE, MODE_EXECUTABLE) => {
                MODE_EXECUTABLE
            }
            _ => self.forms.mode(stat.st_mode),
        }
    }

    fn store(
        &self,
        path: &RepoPath,
        written: &mut Vec<Oid>,
    ) -> Result<Option<StoredFile>, GitError> {
        let Some((file, stat)) = self.worktree.read(path)? else {
            return Ok(None);
        };
        let mut file = Paced::new(file, self.deadline);
        let oid = self.handle.normal_blob(&mut file, path, &self.forms)?;
        let odb = self.handle.repo.odb().map_err(git("open the objects"))?;
        let (stored, _) = odb.read_header(oid).map_err(git("read an object"))?;
        // End-of-line conversion always changes the size; without it the bytes are the blob's.
        let converted = u64::try_from(stored).unwrap_or(u64::MAX) != size(&stat);
        let mut raw = None;
        if converted
            && matches!(self.purpose, Purpose::Baseline)
            && let Some((file, _)) = self.worktree.read(path)?
        {
            let mut file = Paced::new(file, self.deadline);
            let exact = Oid::from(self.handle.exact_blob(&mut file)?);
            written.push(exact.clone());
            raw = Some(exact);
        }
        Ok(Some(StoredFile { oid, raw, stat }))
    }
}

/// Notes an object for syncing and gives the entry that names it.
fn noted(snapshot: &mut Snapshot, oid: git2::Oid, mode: u32) -> TreeEntry {
    let oid = Oid::from(oid);
    snapshot.written.push(oid.clone());
    TreeEntry { oid, mode }
}

/// What reading one file gave.
struct StoredFile {
    oid: git2::Oid,
    raw: Option<Oid>,
    stat: Stat,
}

/// Files up to this size are read at once; larger ones go through a temporary file.
const READ_AT_ONCE_BYTES_MAX: u64 = 4 << 20;

impl Handle {
    /// Writes the content of a file as a blob, in the normal form that end-of-line conversion
    /// gives it.
    pub(super) fn normal_blob(
        &self,
        source: &mut Paced<'_>,
        path: &RepoPath,
        forms: &Forms,
    ) -> Result<git2::Oid, GitError> {
        if forms.may_convert(self, path)? {
            self.streamed_blob(source, Some(path))
        } else {
            self.exact_blob(source)
        }
    }

    /// The id that [`Self::normal_blob`] gives; written only where that takes a conversion.
    pub(super) fn normal_id(
        &self,
        source: &mut Paced<'_>,
        path: &RepoPath,
        forms: &Forms,
    ) -> Result<git2::Oid, GitError> {
        if forms.may_convert(self, path)? {
            return self.streamed_blob(source, Some(path));
        }
        // Opened once more through its descriptor, so that no link that took its place is followed.
        let opened = format!("/proc/self/fd/{}", source.as_fd().as_raw_fd());
        git2::Oid::hash_file(git2::ObjectType::Blob, opened).map_err(git("read a file"))
    }

    /// Writes the content of a file as a blob, byte for byte.
    fn exact_blob(&self, source: &mut Paced<'_>) -> Result<git2::Oid, GitError> {
        let mut bytes = Vec::new();
        let shown = self.workdir();
        let fail = || io_at("read a file in", shown);
        let limit = READ_AT_ONCE_BYTES_MAX;
        source.take(limit).read_to_end(&mut bytes).map_err(fail())?;
        if u64::try_from(bytes.len()).unwrap_or(limit) < limit {
            let write = git_write("write an object in", self.repo.commondir());
            return self.repo.blob(&bytes).map_err(write);
        }
        source.rewind().map_err(fail())?;
        self.streamed_blob(source, None)
    }

    fn streamed_blob(
        &self,
        source: &mut Paced<'_>,
        path: Option<&RepoPath>,
    ) -> Result<git2::Oid, GitError> {
        let fail = git_write("write an object in", self.repo.commondir());
        let shown = path.map_or_else(|| self.workdir(), RepoPath::as_path);
        let hint = path.map(RepoPath::as_path);
        let mut blob = self.repo.blob_writer(hint).map_err(&fail)?;
        let mut buffer = vec![0; 64 << 10];
        loop {
            match source.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => blob
                    .write_all(&buffer[..n])
                    .map_err(|_| fail(git2::Error::last_error(-1)))?,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(io_at("read", shown)(e)),
            }
        }
        blob.commit().map_err(fail)
    }

    /// Whether git would hand the content of this path to a filter program.
    pub(super) fn is_filtered(&self, path: &RepoPath) -> Result<bool, GitError> {
        let value = self
            .repo
            .get_attr_bytes(path.as_path(), "filter", AttrCheckFlags::FILE_THEN_INDEX)
            .map_err(git("read the attributes"))?;
        let value = AttrValue::from_bytes(value);
        Ok(matches!(value, AttrValue::String(_) | AttrValue::Bytes(_)))
    }
}

/// The digest of a regular file; `None` when it is not one any more.
pub(super) fn digest(
    worktree: &Worktree,
    path: &RepoPath,
    deadline: Deadline<'_>,
) -> Result<Option<UnkeptFile>, GitError> {
    let Some((file, _)) = worktree.read(path)? else {
        return Ok(None);
    };
    let mut file = Paced::new(file, deadline);
    let mut hash = Sha256::new();
    let bytes = io::copy(&mut file, &mut hash).map_err(io_at("read", path.as_path()))?;
    Ok(Some(UnkeptFile {
        path: path.clone(),
        bytes,
        sha256: format!("{:x}", hash.finalize()),
    }))
}
