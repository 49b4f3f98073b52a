//! The exclusive right to a directory, held by an engine that says who it is.
//!
//! The lock is the kernel's (`flock`) and goes with the process, however it ends; what stands in the
//! file is for people and for clients that look for the engine, and means nothing once the lock is
//! free. The file is never removed: two processes could else hold locks on two files of one name. Others
//! may remove a workspace's, as `git clean -x` does, so there the directory itself is locked besides.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags};
use serde::{Deserialize, Serialize};

use super::files::{FileError, SAFELY, create_private_directory, must_be_regular};

/// Name of the lock in a state directory and in a workspace's folder.
pub const LOCK_NAME: &str = "lock";

/// Name of the folder in a workspace.
pub const WORKSPACE_FOLDER: &str = ".workerctl";

/// What helps where somebody holds a workspace and its lock does not say who.
pub const UNNAMED_HINT: &str = "a daemon whose `.workerctl/lock` was removed, for instance by `git clean -x`, creates it again within 30 s; otherwise find the process with `lslocks` and wait for it or end it (another program that runs `flock` on the workspace's directory also locks it)";

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
    /// The pid namespace in which it does; empty where that is not known.
    #[serde(default)]
    pub pid_ns: String,
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
            pid_ns: pid_ns(),
            workspace: workspace.display().to_string(),
            state_dir: state_dir.display().to_string(),
            socket: None,
            host: String::new(),
        }
    }

    /// Whether its process has ended for certain; one of another pid namespace cannot be seen from here.
    pub fn is_dead(&self) -> bool {
        use rustix::process::{Pid, test_kill_process};
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        let can_be_seen = self.pid_ns.is_empty() || self.pid_ns == pid_ns();
        self.boot_id == boot_id()
            && can_be_seen
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

/// The kernel's name for the namespace of this process's number; empty where it gives none.
fn pid_ns() -> String {
    std::fs::read_link("/proc/self/ns/pid")
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
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
    /// Somebody else holds a workspace, and nobody holds the lock's file in it.
    #[error(
        "`{}` is locked by a process that `{WORKSPACE_FOLDER}/{LOCK_NAME}` does not identify, so it cannot be reached",
        .0.display()
    )]
    Unnamed(PathBuf),
    /// The workspace is no longer where it was.
    #[error("`{}` is no longer the directory that this engine serves", .0.display())]
    Moved(PathBuf),
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
    /// The workspace itself; let go first, so that nobody finds it held and the file not.
    directory: Option<File>,
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Takes the lock of a state directory, which is created (mode 0700) when it is missing.
    pub fn of_state(directory: &Path, holder: &Holder) -> Result<Lock, LockError> {
        create_private_directory(directory)?;
        let path = directory.join(LOCK_NAME);
        let lock = Lock {
            directory: None,
            file: taken(&path)?,
            path,
        };
        lock.tell(holder)?;
        Ok(lock)
    }

    /// Takes the lock of a workspace, in a folder there that git ignores, and that of the directory itself.
    pub fn of_workspace(workspace: &Path, holder: &Holder) -> Result<Lock, LockError> {
        let directory = taken_directory(workspace)?;
        let path = made_place(workspace)?;
        let lock = Lock {
            directory,
            file: taken(&path)?,
            path,
        };
        lock.tell(holder)?;
        Ok(lock)
    }

    /// Whether its name leads to it no more: removed, or replaced.
    pub fn is_lost(&self) -> bool {
        !same(std::fs::symlink_metadata(&self.path), self.file.metadata())
    }

    /// Makes the file of a workspace's lock anew after it was lost, unless another engine has taken it by now.
    pub fn put_back(&mut self, workspace: &Path, holder: &Holder) -> Result<(), LockError> {
        if let Some(directory) = &self.directory
            && !same(std::fs::metadata(workspace), directory.metadata())
        {
            return Err(LockError::Moved(workspace.to_path_buf()));
        }
        self.path = made_place(workspace)?;
        self.file = taken(&self.path)?;
        self.tell(holder)
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
}

fn place_in(workspace: &Path) -> PathBuf {
    workspace.join(WORKSPACE_FOLDER).join(LOCK_NAME)
}

/// The place of a workspace's lock, whose folder is made where it is missing.
fn made_place(workspace: &Path) -> Result<PathBuf, FileError> {
    Ok(made_folder(workspace)?.join(LOCK_NAME))
}

/// The folder of a workspace, which git ignores; made where it is missing.
pub(super) fn made_folder(workspace: &Path) -> Result<PathBuf, FileError> {
    let folder = workspace.join(WORKSPACE_FOLDER);
    create_private_directory(&folder)?;
    let ignore = folder.join(".gitignore");
    if !ignore.exists() {
        super::write_atomically(&ignore, b"*\n", 0o644, super::Durability::Process)?;
    }
    Ok(folder)
}

/// The file, locked by this process.
fn taken(path: &Path) -> Result<File, LockError> {
    let file = open(path, true).map_err(FileError::at(path))?;
    let mut rounds = ROUNDS_AFTER_DEATH;
    while !try_lock(&file, FlockOperation::NonBlockingLockExclusive).map_err(FileError::at(path))? {
        let holder = content(&file).map(Box::new);
        if rounds == 0 || !holder.as_deref().is_some_and(Holder::is_dead) {
            let path = path.to_path_buf();
            return Err(LockError::Held { path, holder });
        }
        rounds -= 1;
    }
    Ok(file)
}

/// The workspace itself, locked by this process; `None` where the file system locks no directories.
fn taken_directory(workspace: &Path) -> Result<Option<File>, LockError> {
    let Ok(directory) = open_directory(workspace) else {
        return Ok(None);
    };
    let path = place_in(workspace);
    let mut rounds = ROUNDS_AFTER_DEATH;
    loop {
        match try_lock(&directory, FlockOperation::NonBlockingLockExclusive) {
            Ok(true) => return Ok(Some(directory)),
            Ok(false) => {}
            // NFS wants a file that may be written, others know no such locks: the file has to do.
            Err(_) => return Ok(None),
        }
        let holder = match look(&path)? {
            LockState::Free | LockState::Unnamed => {
                return Err(LockError::Unnamed(workspace.to_path_buf()));
            }
            LockState::Held => None,
            LockState::HeldBy(holder) => Some(holder),
        };
        if rounds == 0 || !holder.as_deref().is_some_and(Holder::is_dead) {
            return Err(LockError::Held { path, holder });
        }
        rounds -= 1;
    }
}

fn same(one: io::Result<std::fs::Metadata>, other: io::Result<std::fs::Metadata>) -> bool {
    match (one, other) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    }
}

/// Whether a lock is held, and by whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockState {
    /// Nobody holds it, whatever the file says.
    Free,
    /// Somebody does, and says so.
    HeldBy(Box<Holder>),
    /// Somebody does, and the file does not say who, or not yet.
    Held,
    /// Somebody holds the workspace, and nobody the file in it, which was removed since.
    Unnamed,
}

impl LockState {
    /// Who holds it, as far as is known.
    pub fn holder(&self) -> Option<&Holder> {
        match self {
            LockState::HeldBy(holder) => Some(holder),
            LockState::Free | LockState::Held | LockState::Unnamed => None,
        }
    }
}

/// Looks at the lock of a state directory.
pub fn inspect_state(directory: &Path) -> Result<LockState, FileError> {
    look(&directory.join(LOCK_NAME))
}

/// Looks at the lock of a workspace.
pub fn inspect_workspace(workspace: &Path) -> Result<LockState, FileError> {
    let path = place_in(workspace);
    match look(&path)? {
        // An engine that started in between has taken both by now, and has said who it is or will.
        LockState::Free if directory_is_held(workspace) => Ok(match look(&path)? {
            LockState::Free => LockState::Unnamed,
            found => found,
        }),
        found => Ok(found),
    }
}

/// Whether somebody holds the workspace itself; not where its file system locks no directories.
fn directory_is_held(workspace: &Path) -> bool {
    open_directory(workspace)
        .and_then(|directory| try_lock(&directory, FlockOperation::NonBlockingLockShared))
        .is_ok_and(|free| !free)
}

fn look(path: &Path) -> Result<LockState, FileError> {
    let file = match open(path, false) {
        Ok(file) => file,
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(LockState::Free);
        }
        Err(error) => return Err(FileError::at(path)(error)),
    };
    // A shared lock is had only while nobody holds the exclusive one; it goes with the file.
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Ok(LockState::Free),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(match content(&file) {
            Some(holder) => LockState::HeldBy(Box::new(holder)),
            None => LockState::Held,
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

fn open_directory(path: &Path) -> io::Result<File> {
    File::options()
        .read(true)
        .custom_flags(OFlags::DIRECTORY.bits().cast_signed())
        .open(path)
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
mod tests;
