//! What makes references survive a power cut.
//!
//! A rename is not durable before its directory is synced.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use workerctl_landing::Sharing;
use workerctl_landing::error::{GitError, io_at};

/// Files of ours inside `.git` that are being written begin with this.
const TEMPORARY_PREFIX: &str = "workerctl-tmp-";

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
    pub(super) fn new(dir: &Path, content: &[u8], sharing: Sharing) -> Result<Self, GitError> {
        Self::create(temporary_name(dir), content, sharing)
    }

    fn create(path: PathBuf, content: &[u8], sharing: Sharing) -> Result<Self, GitError> {
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
        sharing
            .adjust_file(&file)
            .map_err(io_at("set the mode of", path))?;
        file.sync_all().map_err(io_at("sync", path))?;
        Ok(written)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
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
        let dir = xtest::tempdir();
        let path = dir.path().join("taken");
        fs::write(&path, "theirs").unwrap();
        assert!(Written::create(path.clone(), b"ours", Sharing::Umask).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"theirs");
    }

    #[test]
    fn what_an_earlier_process_with_this_pid_left_is_swept() {
        let dir = xtest::tempdir();
        let own = Written::new(dir.path(), b"own", Sharing::Umask).unwrap();
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
