//! What makes objects and references survive a power cut.
//!
//! A rename is not durable before its directory is synced, and a loose object that existed
//! already (written by the skill's own git, or by an earlier stage of ours) is not written
//! again, so a setting that syncs new objects does not reach it. Everything that a commit will
//! need is therefore synced once more by name before the commit may be named anywhere.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::deadline::Deadline;
use super::error::{GitError, git_write, io_at};
use super::ids::Oid;
use super::open::Handle;

/// Up to this many objects are synced one by one; more by one sync of the file system.
pub(super) const OBJECTS_SYNCED_SINGLY_MAX: usize = 64;

/// Larger objects are not read back for their checksum after they were written.
const READ_BACK_BYTES_MAX: usize = 16 << 20;

/// Files of ours inside `.git` that are being written begin with this.
const TEMPORARY_PREFIX: &str = "workerctl-tmp-";

impl Handle {
    /// Syncs these objects and the directories that name them, and reads each back.
    pub(super) fn sync_objects(
        &self,
        oids: &[Oid],
        deadline: Deadline<'_>,
    ) -> Result<(), GitError> {
        if oids.is_empty() {
            return Ok(());
        }
        let objects = self.repo.commondir().join("objects");
        let wanted: BTreeSet<&Oid> = oids.iter().collect();
        let singly = wanted.len() <= OBJECTS_SYNCED_SINGLY_MAX;
        let mut directories = BTreeSet::from([objects.clone()]);
        for oid in &wanted {
            deadline.check()?;
            let (fan, rest) = oid.as_str().split_at(2);
            let file = objects.join(fan).join(rest);
            match File::open(&file) {
                Ok(open) => {
                    refuse_empty(&open, &file)?;
                    if singly {
                        open.sync_all().map_err(io_at("sync", &file))?;
                    }
                    directories.insert(objects.join(fan));
                }
                // Packed, or in an alternate store: git synced it when it wrote the pack.
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(io_at("open", &file)(e)),
            }
            self.read_back(oid)?;
        }
        if singly {
            let mut left = directories.iter().filter(|dir| dir.exists());
            left.try_for_each(|dir| sync_directory(dir))
        } else {
            let root = File::open(&objects).map_err(io_at("open", &objects))?;
            rustix::fs::syncfs(root).map_err(io_at("sync", &objects))
        }
    }

    fn read_back(&self, oid: &Oid) -> Result<(), GitError> {
        let fail = git_write("read back an object in", self.repo.commondir());
        let odb = self.repo.odb().map_err(&fail)?;
        let (bytes, _) = odb.read_header(oid.raw()).map_err(&fail)?;
        if bytes <= READ_BACK_BYTES_MAX {
            odb.read(oid.raw()).map_err(fail)?;
        }
        Ok(())
    }
}

/// An empty object file is what a power cut leaves of an object that was renamed but not synced.
/// It would stand in the way of writing the object again, and holds nothing: it is removed.
fn refuse_empty(open: &File, path: &Path) -> Result<(), GitError> {
    let length = open.metadata().map_err(io_at("look at", path))?.len();
    if length > 0 {
        return Ok(());
    }
    fs::remove_file(path).map_err(io_at("remove the empty object", path))?;
    let source = io::Error::new(
        io::ErrorKind::InvalidData,
        "the object was empty and has been removed; writing it again will succeed",
    );
    Err(io_at("read the object", path)(source))
}

/// Syncs a directory, so that the names in it are durable.
pub(super) fn sync_directory(path: &Path) -> Result<(), GitError> {
    let open = File::open(path).map_err(io_at("open", path))?;
    open.sync_all().map_err(io_at("sync", path))
}

/// Tells this process from earlier ones with its pid: in a container that is the same at every start.
static MARK: LazyLock<String> = LazyLock::new(|| {
    // The keys of the hasher stem from the operating system's source of randomness.
    format!("{:016x}", RandomState::new().hash_one(std::process::id()))
});

/// A name in `dir` that nothing else has; swept with the next lease if this process is killed.
pub(super) fn temporary_name(dir: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let (pid, mark) = (std::process::id(), MARK.as_str());
    dir.join(format!("{TEMPORARY_PREFIX}{pid}-{mark}-{count}"))
}

/// Whether a file of this name is one of ours that is being written.
pub(super) fn is_temporary(name: &str) -> bool {
    name.starts_with(TEMPORARY_PREFIX)
}

/// Whether a file of this name was left by a process that is gone.
fn is_left(name: &str, is_alive: impl Fn(u32) -> bool) -> bool {
    let Some(rest) = name.strip_prefix(TEMPORARY_PREFIX) else {
        return false;
    };
    let mut parts = rest.split(['-', '.']);
    let Some(pid) = parts.next().and_then(|pid| pid.parse().ok()) else {
        return false;
    };
    if pid == std::process::id() {
        return parts.next() != Some(MARK.as_str());
    }
    !is_alive(pid)
}

/// A file of ours that has its whole content and is synced, but not yet its final name.
pub(super) struct Written {
    path: PathBuf,
}

impl Written {
    /// Writes `content` under a name of its own in `dir`.
    pub(super) fn new(dir: &Path, content: &[u8]) -> Result<Self, GitError> {
        Self::create(temporary_name(dir), content)
    }

    fn create(path: PathBuf, content: &[u8]) -> Result<Self, GitError> {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
            .open(&path)
            .map_err(io_at("create", &path))?;
        // From here on there is a file of ours to remove; what was there before is somebody else's.
        let written = Self { path };
        let path = &written.path;
        file.write_all(content).map_err(io_at("write", path))?;
        file.sync_all().map_err(io_at("sync", path))?;
        Ok(written)
    }

    /// A name of its own in `dir`, for a file that something else will write.
    pub(super) fn reserve(dir: &Path) -> Self {
        Self {
            path: temporary_name(dir),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Syncs what something else has written under its name.
    pub(super) fn sync(&self) -> Result<(), GitError> {
        let open = File::open(&self.path).map_err(io_at("open", &self.path))?;
        open.sync_all().map_err(io_at("sync", &self.path))
    }

    /// Gives the file its final name, replacing what had it, and syncs the directory.
    pub(super) fn publish(self, to: &Path) -> Result<(), GitError> {
        fs::rename(&self.path, to).map_err(io_at("write", to))?;
        to.parent().map_or(Ok(()), sync_directory)
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        // After a rename there is nothing under this name any more, which is the usual case.
        let _ = fs::remove_file(&self.path);
    }
}

/// Makes the directories down to `dir` and syncs each parent that got a new name.
pub(super) fn make_directories(root: &Path, dir: &Path) -> Result<(), GitError> {
    let Ok(relative) = dir.strip_prefix(root) else {
        return Ok(());
    };
    let mut here = root.to_owned();
    for part in relative.components() {
        let next = here.join(part);
        match fs::create_dir(&next) {
            Ok(()) => sync_directory(&here)?,
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(io_at("make the directory", &next)(e)),
        }
        here = next;
    }
    Ok(())
}

/// Removes temporary files that processes which are gone have left in `dir`.
pub(super) fn sweep_temporaries(
    dir: &Path,
    is_alive: impl Fn(u32) -> bool,
) -> Result<(), GitError> {
    let listed = fs::read_dir(dir).map_err(io_at("list", dir))?;
    for entry in listed {
        let entry = entry.map_err(io_at("list", dir))?;
        let name = entry.file_name();
        if name.to_str().is_some_and(|name| is_left(name, &is_alive)) {
            let path = dir.join(OsStr::new(&name));
            let directory = entry.file_type().is_ok_and(|t| t.is_dir());
            let removed = if directory {
                fs::remove_dir_all(&path)
            } else {
                fs::remove_file(&path)
            };
            removed.map_err(io_at("remove", &path))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_somebody_else_made_is_never_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("taken");
        fs::write(&path, "theirs").unwrap();
        assert!(Written::create(path.clone(), b"ours").is_err());
        assert_eq!(fs::read(&path).unwrap(), b"theirs");
    }

    #[test]
    fn what_an_earlier_process_with_this_pid_left_is_swept() {
        let dir = tempfile::tempdir().unwrap();
        let own = Written::new(dir.path(), b"own").unwrap();
        let pid = std::process::id();
        let names = [
            format!("{TEMPORARY_PREFIX}{pid}-0"),
            format!("{TEMPORARY_PREFIX}{pid}-0000000000000000-0"),
            format!("{TEMPORARY_PREFIX}{pid}"),
        ];
        for name in &names {
            fs::write(dir.path().join(name), "").unwrap();
        }
        let of_another = dir
            .path()
            .join(format!("{TEMPORARY_PREFIX}{}-0-0", pid + 1));
        fs::write(&of_another, "").unwrap();
        sweep_temporaries(dir.path(), |_| true).unwrap();
        assert!(own.path().exists() && of_another.exists());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }
}
