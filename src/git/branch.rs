//! Moving a branch by compare-and-swap, durably, and in a way that a crash cannot make unclear.
//!
//! Libgit2 renames the new reference into place before anything is synced, and writes the
//! reflog before the reference. Here the order is: lock, compare, write and sync the value under
//! another name, rename, sync the directory, reflog, unlock. So the reference never holds
//! anything but the old or the new value, and an entry in the reflog proves that it moved.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::author::Author;
use super::durable::{Written, make_directories, sync_directory};
use super::error::{GitError, git, io_at};
use super::ids::Oid;
use super::lock::GitLock;
use super::open::{Handle, Head};

/// How a compare-and-swap ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Swap {
    /// The reference was moved.
    Moved,
    /// It was at something else, and was left there; `None` when it does not exist.
    Tip(Option<Oid>),
}

/// The line for the reflog.
pub(super) struct LogLine<'a> {
    pub(super) author: &'a Author,
    pub(super) time_s: i64,
    pub(super) offset_min: i32,
    pub(super) message: &'a str,
}

impl LogLine<'_> {
    fn render(&self, from: Option<&Oid>, to: &Oid) -> String {
        let zero = "0".repeat(40);
        let sign = if self.offset_min < 0 { '-' } else { '+' };
        let minutes = self.offset_min.unsigned_abs();
        let message = self.message.lines().next().unwrap_or_default();
        let message: String = message.chars().filter(|c| !c.is_control()).collect();
        format!(
            "{} {to} {} <{}> {} {sign}{:02}{:02}\t{message}\n",
            from.map_or(zero.as_str(), Oid::as_str),
            self.author.name,
            self.author.email,
            self.time_s,
            minutes / 60,
            minutes % 60,
        )
    }
}

impl Handle {
    /// Moves `refname` (a branch, or `HEAD` when detached) from `from` to `to`.
    pub(super) fn swap_ref(
        &self,
        refname: &str,
        from: Option<&Oid>,
        to: &Oid,
        log: &LogLine<'_>,
    ) -> Result<Swap, GitError> {
        let common = self.repo.commondir().to_owned();
        let home = if refname == "HEAD" {
            self.repo.path().to_owned()
        } else {
            common.clone()
        };
        let path = home.join(refname);
        let dir = path.parent().unwrap_or(&home).to_owned();
        if from.is_none() {
            self.refuse_name_conflict(refname)?;
        }
        make_directories(&home, &dir)?;
        let lock = GitLock::take(&path, &home)?;
        // Read through a handle of its own, so that nothing from before the lock is believed.
        let tip = Handle::open(self.workdir())?.tip_or_detached(refname)?;
        if tip.as_ref() != from {
            return Ok(Swap::Tip(tip));
        }
        let value = Written::new(&home, format!("{to}\n").as_bytes())?;
        clear_empty_directory(&path);
        value.publish(&path)?;
        self.append_reflogs(refname, &log.render(from, to))?;
        drop(lock);
        sync_directory(&dir)?;
        Ok(Swap::Moved)
    }

    /// What a reference points at, where `HEAD` counts only when it is detached.
    pub(super) fn tip_or_detached(&self, refname: &str) -> Result<Option<Oid>, GitError> {
        if refname != "HEAD" {
            return self.tip(refname);
        }
        Ok(match self.head()? {
            Head::Detached { oid } => Some(oid),
            Head::Branch { .. } | Head::Unborn { .. } => None,
        })
    }

    /// A branch `a` and a branch `a/b` cannot both exist.
    fn refuse_name_conflict(&self, refname: &str) -> Result<(), GitError> {
        let fail = git("list references");
        for found in self.repo.references().map_err(&fail)? {
            let found = found.map_err(&fail)?;
            let name = found.name_bytes();
            let within =
                |a: &[u8], b: &[u8]| a.strip_prefix(b).is_some_and(|rest| rest.starts_with(b"/"));
            if within(name, refname.as_bytes()) || within(refname.as_bytes(), name) {
                return Err(GitError::Git {
                    doing: "make the branch",
                    source: git2::Error::from_str("another branch is named like its directory"),
                });
            }
        }
        Ok(())
    }

    /// Appends to the log of the reference, and of `HEAD` where `HEAD` follows it.
    fn append_reflogs(&self, refname: &str, line: &str) -> Result<(), GitError> {
        let common = self.repo.commondir();
        let wanted = self.wants_reflogs();
        let follows = matches!(self.head()?, Head::Branch { refname: r, .. } if r == refname);
        if refname != "HEAD" {
            append(common, &common.join("logs").join(refname), line, wanted)?;
        }
        if refname == "HEAD" || follows {
            let home = self.repo.path();
            append(home, &home.join("logs/HEAD"), line, wanted)?;
        }
        Ok(())
    }

    /// `core.logAllRefUpdates`: unset means yes in a repository with a work tree.
    fn wants_reflogs(&self) -> bool {
        let config = self.repo.config().and_then(|mut c| c.snapshot());
        let Ok(config) = config else { return true };
        match config.get_string("core.logallrefupdates") {
            Ok(text) if text.eq_ignore_ascii_case("always") => true,
            Ok(_) => config.get_bool("core.logallrefupdates").unwrap_or(true),
            Err(_) => true,
        }
    }

    /// Whether the log of a reference says that it was ever at `oid`.
    pub(super) fn was_at(&self, refname: &str, oid: &Oid) -> Result<bool, GitError> {
        // Read as text: it is the form that git documents, and one broken line must not hide
        // the others.
        let home = if refname == "HEAD" {
            self.repo.path()
        } else {
            self.repo.commondir()
        };
        let path = home.join("logs").join(refname);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(e) => return Err(io_at("read", &path)(e)),
        };
        let names = |line: &[u8]| {
            let mut ids = line.splitn(3, |b| *b == b' ');
            ids.next() == Some(oid.as_str().as_bytes())
                || ids.next() == Some(oid.as_str().as_bytes())
        };
        Ok(bytes.split(|b| *b == b'\n').any(names))
    }
}

fn append(home: &Path, path: &PathBuf, line: &str, create: bool) -> Result<(), GitError> {
    let exists = path.exists();
    if !exists && !create {
        return Ok(());
    }
    if let (false, Some(dir)) = (exists, path.parent()) {
        make_directories(home, dir)?;
    }
    let mut file: File = OpenOptions::new()
        .append(true)
        .create(true)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)
        .map_err(io_at("open", path))?;
    file.write_all(line.as_bytes())
        .map_err(io_at("write", path))?;
    file.sync_all().map_err(io_at("sync", path))?;
    match path.parent() {
        Some(dir) if !exists => sync_directory(dir),
        Some(_) | None => Ok(()),
    }
}

/// Git leaves empty directories where branches with longer names were; a file cannot replace one.
fn clear_empty_directory(path: &Path) {
    let Ok(entries) = fs::read_dir(path) else {
        return;
    };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            clear_empty_directory(&entry.path());
        }
    }
    // A directory that is not empty stays, and the rename that follows says so.
    let _ = fs::remove_dir(path);
}
