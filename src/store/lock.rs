//! The exclusive right to a directory, held by an engine that says who it is.
//!
//! The lock is the kernel's (`flock`) and goes with the process, however it ends; what stands in the
//! file is for people and for clients that look for the engine, and means nothing once the lock is
//! free. The file is never removed: two processes could else hold locks on two files of one name.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use super::files::{FileError, SAFELY, create_private_directory, must_be_regular};

/// Name of the lock in a state directory and in a workspace's folder.
pub const LOCK_NAME: &str = "lock";

/// Name of the folder in a workspace.
pub const WORKSPACE_FOLDER: &str = ".workerctl";

/// Most bytes that are read of a lock's content.
const CONTENT_BYTES_MAX: u64 = 64 * 1024;

/// Somebody who only looks whether a lock is held holds it for an instant, as does a child between
/// its creation and the start of its program; so long is waited for them, in all.
const TRIES: u32 = 10;
const WAIT: Duration = Duration::from_millis(10);

/// How often that is waited for a child of a holder that was killed: on a busy machine its program starts late.
const ROUNDS_AFTER_DEATH: u32 = 20;

/// Who holds a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Its process.
    pub pid: u32,
    /// The boot in which the process number means something.
    pub boot_id: String,
    /// Absolute path of the workspace that it serves.
    pub workspace: String,
    /// Absolute path of its state directory.
    #[serde(default)]
    pub state_dir: String,
    /// Absolute path of its socket, once there is one.
    #[serde(default)]
    pub socket: Option<String>,
    /// Who hosts it, `daemon` or `in_process`; empty where it does not say so.
    #[serde(default)]
    pub host: String,
}

impl Holder {
    /// This process, in this boot.
    pub fn this_process(workspace: &Path, state_dir: &Path) -> Holder {
        Holder {
            pid: std::process::id(),
            boot_id: boot_id(),
            workspace: workspace.display().to_string(),
            state_dir: state_dir.display().to_string(),
            socket: None,
            host: String::new(),
        }
    }

    /// Whether its process has ended for certain.
    pub fn is_dead(&self) -> bool {
        use rustix::process::{Pid, test_kill_process};
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        self.boot_id == boot_id()
            && pid.is_some_and(|pid| test_kill_process(pid) == Err(rustix::io::Errno::SRCH))
    }
}

/// The kernel's name for this boot; empty where it gives none.
pub fn boot_id() -> String {
    let mut text = String::new();
    let read = File::open("/proc/sys/kernel/random/boot_id")
        .and_then(|file| file.take(64).read_to_string(&mut text));
    match read {
        Ok(_) => text.trim().to_owned(),
        Err(_) => String::new(),
    }
}

/// Why a lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Somebody else holds it.
    #[error("`{}` is held by {}", path.display(), describe(holder.as_deref()))]
    Held {
        /// The lock.
        path: PathBuf,
        /// Who, as far as the file tells.
        holder: Option<Box<Holder>>,
    },
    /// The lock's file cannot be used.
    #[error("the lock cannot be taken: {0}")]
    File(#[from] FileError),
}

fn describe(holder: Option<&Holder>) -> String {
    match holder {
        Some(holder) => format!("process {}", holder.pid),
        None => "another process".to_owned(),
    }
}

/// A lock that is held until this is dropped or the process ends. Children do not inherit it.
#[derive(Debug)]
pub struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Takes the lock of a state directory, which is created (mode 0700) when it is missing.
    pub fn of_state(directory: &Path, holder: &Holder) -> Result<Lock, LockError> {
        create_private_directory(directory)?;
        Lock::take(directory.join(LOCK_NAME), holder)
    }

    /// Takes the lock of a workspace, in a folder there that git ignores.
    pub fn of_workspace(workspace: &Path, holder: &Holder) -> Result<Lock, LockError> {
        let folder = workspace.join(WORKSPACE_FOLDER);
        create_private_directory(&folder)?;
        let ignore = folder.join(".gitignore");
        if !ignore.exists() {
            super::write_atomically(&ignore, b"*\n", 0o644, super::Durability::Process)?;
        }
        Lock::take(folder.join(LOCK_NAME), holder)
    }

    /// Says who holds it, for instance once the socket is known.
    pub fn tell(&self, holder: &Holder) -> Result<(), LockError> {
        let json = serde_json::to_vec(holder)
            .map_err(|e| FileError::at(&self.path)(io::Error::other(e)))?;
        // Whoever reads in between sees something that is not JSON, and so does not know the holder.
        self.file
            .set_len(0)
            .and_then(|()| self.file.write_all_at(&json, 0))
            .and_then(|()| (&self.file).flush())
            .map_err(FileError::at(&self.path))?;
        Ok(())
    }

    /// The lock's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn take(path: PathBuf, holder: &Holder) -> Result<Lock, LockError> {
        let file = open(&path, true).map_err(FileError::at(&path))?;
        let mut rounds = ROUNDS_AFTER_DEATH;
        while !try_lock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(FileError::at(&path))?
        {
            let holder = content(&file).map(Box::new);
            if rounds == 0 || !holder.as_deref().is_some_and(Holder::is_dead) {
                return Err(LockError::Held { path, holder });
            }
            rounds -= 1;
        }
        let lock = Lock { file, path };
        lock.tell(holder)?;
        Ok(lock)
    }
}

/// Whether a lock is held, and by whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// Nobody holds it, whatever the file says.
    Free,
    /// Somebody does, and says so.
    HeldBy(Box<Holder>),
    /// Somebody does, and the file does not say who, or not yet.
    Held,
}

impl Found {
    /// Who holds it, as far as is known.
    pub fn holder(&self) -> Option<&Holder> {
        match self {
            Found::HeldBy(holder) => Some(holder),
            Found::Free | Found::Held => None,
        }
    }
}

/// Looks at the lock of a state directory.
pub fn look_at_state(directory: &Path) -> Result<Found, FileError> {
    look(&directory.join(LOCK_NAME))
}

/// Looks at the lock of a workspace.
pub fn look_at_workspace(workspace: &Path) -> Result<Found, FileError> {
    look(&workspace.join(WORKSPACE_FOLDER).join(LOCK_NAME))
}

fn look(path: &Path) -> Result<Found, FileError> {
    let file = match open(path, false) {
        Ok(file) => file,
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(Found::Free);
        }
        Err(error) => return Err(FileError::at(path)(error)),
    };
    // A shared lock is had only while nobody holds the exclusive one; it goes with the file.
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Ok(Found::Free),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(match content(&file) {
            Some(holder) => Found::HeldBy(Box::new(holder)),
            None => Found::Held,
        }),
        Err(error) => Err(FileError::at(path)(error.into())),
    }
}

fn open(path: &Path, create: bool) -> io::Result<File> {
    File::options()
        .read(true)
        .write(create)
        .create(create)
        .truncate(false)
        .mode(0o600)
        .custom_flags(SAFELY.bits().cast_signed())
        .open(path)
        .and_then(must_be_regular)
}

fn try_lock(file: &File, operation: FlockOperation) -> io::Result<bool> {
    for attempt in 0..TRIES {
        match rustix::fs::flock(file, operation) {
            Ok(()) => return Ok(true),
            Err(rustix::io::Errno::WOULDBLOCK) if attempt + 1 < TRIES => std::thread::sleep(WAIT),
            Err(rustix::io::Errno::WOULDBLOCK) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(false)
}

fn content(file: &File) -> Option<Holder> {
    let mut json = Vec::new();
    file.take(CONTENT_BYTES_MAX).read_to_end(&mut json).ok()?;
    serde_json::from_slice(&json).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_told_who_holds_it() {
        let dir = tempfile::tempdir().unwrap();
        let me = Holder::this_process(dir.path(), dir.path());
        assert!(!me.boot_id.is_empty());
        assert_eq!(look_at_state(dir.path()).unwrap(), Found::Free);
        let lock = Lock::of_state(dir.path(), &me).unwrap();
        assert_eq!(
            look_at_state(dir.path()).unwrap(),
            Found::HeldBy(Box::new(me.clone()))
        );
        let error = Lock::of_state(dir.path(), &me).unwrap_err();
        let shown = error.to_string();
        assert!(
            shown.contains(&format!("process {}", std::process::id())),
            "{shown}"
        );
        drop(lock);
        assert_eq!(look_at_state(dir.path()).unwrap(), Found::Free);
        Lock::of_state(dir.path(), &me).unwrap();
    }

    #[test]
    fn what_a_killed_holder_left_is_harmless() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(LOCK_NAME);
        for left in ["{\"pid\":1}", "not json", ""] {
            std::fs::write(&path, left).unwrap();
            assert_eq!(look_at_state(dir.path()).unwrap(), Found::Free);
            let me = Holder::this_process(dir.path(), dir.path());
            let lock = Lock::of_state(dir.path(), &me).unwrap();
            assert_eq!(
                look_at_state(dir.path()).unwrap(),
                Found::HeldBy(Box::new(me))
            );
            drop(lock);
        }
    }

    #[test]
    fn a_child_does_not_keep_it() {
        let dir = tempfile::tempdir().unwrap();
        let me = Holder::this_process(dir.path(), dir.path());
        let lock = Lock::of_state(dir.path(), &me).unwrap();
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        drop(lock);
        let again = Lock::of_state(dir.path(), &me);
        child.kill().unwrap();
        child.wait().unwrap();
        again.unwrap();
    }

    #[test]
    fn the_folder_in_a_workspace_ignores_itself() {
        let dir = tempfile::tempdir().unwrap();
        let mut me = Holder::this_process(dir.path(), dir.path());
        let lock = Lock::of_workspace(dir.path(), &me).unwrap();
        me.socket = Some("/run/x.sock".to_owned());
        lock.tell(&me).unwrap();
        assert_eq!(
            look_at_workspace(dir.path()).unwrap(),
            Found::HeldBy(Box::new(me))
        );
        let ignore = std::fs::read_to_string(dir.path().join(".workerctl/.gitignore")).unwrap();
        assert_eq!(ignore, "*\n");
    }

    #[test]
    fn a_link_in_its_place_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/dev/null", dir.path().join(LOCK_NAME)).unwrap();
        let me = Holder::this_process(dir.path(), dir.path());
        assert!(matches!(
            Lock::of_state(dir.path(), &me),
            Err(LockError::File(_))
        ));
    }
}
