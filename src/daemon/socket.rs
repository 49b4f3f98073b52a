//! Where the socket lies, and how it is opened so that nobody else can connect to it before the engine lets them.
//!
//! The length of a socket's path is limited by the kernel; a place that would exceed it is replaced
//! by one under `/tmp/workerctl-<uid>` named after the workspace.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::faults::internal;
use crate::engine::{Host, unusable};
use crate::model::{Diagnostic, Kind};

mod claim;
mod permissions;

pub(super) use claim::{Listener, TAKEN, listener_of};
pub(super) use permissions::SocketFiles;
use permissions::temporary_directory;

/// Longest path of a socket in bytes: `sun_path` of `unix(7)` holds 108 with the final zero.
pub const SOCKET_PATH_BYTES_MAX: usize = 107;
/// Name of the socket in a directory that belongs to one engine.
const SOCKET_FILE: &str = "workerctl.sock";
/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;
/// Longest lock file that is read, in bytes.
const LOCK_BYTES_MAX: u64 = 16 * 1024;

/// Where sockets are looked for and put.
#[derive(Debug, Clone)]
pub struct SocketPlaces<'a> {
    /// Absolute path of the workspace.
    pub workspace: &'a Path,
    /// Absolute path of the state directory.
    pub state_dir: &'a Path,
    /// The socket that was asked for.
    pub explicit: Option<&'a Path>,
    /// The process's environment.
    pub environment: &'a BTreeMap<String, String>,
}

/// What an engine wrote into its workspace's lock. Read as data: it may be old or forged.
#[derive(Debug, Deserialize)]
struct LockRecord {
    socket: Option<PathBuf>,
}

impl SocketPlaces<'_> {
    /// Where an engine puts its socket.
    pub fn of_engine(&self) -> Result<PathBuf, Diagnostic> {
        if let Some(explicit) = self.explicit {
            return fitting(explicit);
        }
        let place = self
            .in_runtime_directory()
            .or_else(|| self.in_session().filter(|place| can_be_made(place)))
            .unwrap_or_else(|| self.in_state());
        Ok(self.shortened(place))
    }

    /// Where an engine puts its socket to which others may connect: no private directory is above it.
    pub fn of_shared_engine(&self) -> Result<PathBuf, Diagnostic> {
        let in_unit = self.in_runtime_directory();
        if self.explicit.is_some()
            || in_unit.is_some_and(|place| self.shortened(place.clone()) == place)
        {
            return self.of_engine();
        }
        Ok(self.in_temporary(rustix::process::geteuid().as_raw()))
    }

    /// Where a client looks, in order, without repetition.
    pub fn of_client(&self) -> Result<Vec<PathBuf>, Diagnostic> {
        if let Some(explicit) = self.explicit {
            return fitting(explicit).map(|socket| vec![socket]);
        }
        let mut places: Vec<PathBuf> = Vec::new();
        let candidates = [
            self.in_runtime_directory(),
            self.in_lock(),
            self.in_session(),
            Some(self.in_state()),
            self.of_owner(),
        ];
        for place in candidates.into_iter().flatten() {
            let place = self.shortened(place);
            if !places.contains(&place) {
                places.push(place);
            }
        }
        Ok(places)
    }

    /// Whether only what stands in the workspace's lock leads a client to this socket.
    pub(super) fn is_only_in_lock(&self, socket: &Path) -> bool {
        let own = [
            self.in_runtime_directory(),
            self.in_session(),
            Some(self.in_state()),
        ];
        let mut own = own.into_iter().flatten().map(|place| self.shortened(place));
        self.explicit.is_none() && own.all(|place| place != socket)
    }

    /// systemd's runtime directory; of several the first.
    fn in_runtime_directory(&self) -> Option<PathBuf> {
        let first = self
            .environment
            .get("RUNTIME_DIRECTORY")?
            .split(':')
            .next()?;
        absolute(first).map(|directory| directory.join(SOCKET_FILE))
    }

    /// The session's runtime directory, shared by all workspaces of a user.
    fn in_session(&self) -> Option<PathBuf> {
        let directory = absolute(self.environment.get("XDG_RUNTIME_DIR")?)?;
        Some(directory.join("workerctl").join(self.hashed_file()))
    }

    /// The socket that the engine of this workspace recorded.
    fn in_lock(&self) -> Option<PathBuf> {
        let path = self.workspace.join(".workerctl").join("lock");
        let file = fs::OpenOptions::new()
            .read(true)
            .custom_flags((OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed())
            .open(path)
            .ok()?;
        let metadata = file.metadata().ok()?;
        if !metadata.is_file() || metadata.len() > LOCK_BYTES_MAX {
            return None;
        }
        let record: LockRecord = serde_json::from_reader(file.take(LOCK_BYTES_MAX)).ok()?;
        let socket = record.socket?;
        (socket.is_absolute() && socket.as_os_str().len() <= SOCKET_PATH_BYTES_MAX)
            .then_some(socket)
    }

    /// In a directory of its own, because a group may be allowed to write the state directory.
    fn in_state(&self) -> PathBuf {
        self.state_dir.join("run").join(SOCKET_FILE)
    }

    fn hashed_file(&self) -> String {
        let digest = Sha256::digest(canonical(self.workspace).as_os_str().as_bytes());
        // 64 bits tell the workspaces of one user apart.
        let (name, _) = digest.split_at(8);
        let number = name
            .iter()
            .fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
        format!("{number:016x}.sock")
    }

    fn shortened(&self, place: PathBuf) -> PathBuf {
        if place.as_os_str().len() <= SOCKET_PATH_BYTES_MAX {
            return place;
        }
        self.in_temporary(rustix::process::geteuid().as_raw())
    }

    /// In the directory of this user that everybody can find.
    fn in_temporary(&self, uid: u32) -> PathBuf {
        temporary_directory(uid).join(self.hashed_file())
    }

    /// Where the workspace's owner lets others connect, who may not read where its engine is.
    fn of_owner(&self) -> Option<PathBuf> {
        let found = fs::metadata(self.workspace).ok()?;
        Some(self.in_temporary(found.uid()))
    }
}

/// Whether the directory of a socket is there or can be made in the one above it, where that is there.
fn can_be_made(socket: &Path) -> bool {
    let Some((directory, above)) = socket.parent().and_then(|own| Some((own, own.parent()?)))
    else {
        return false;
    };
    let made = fs::DirBuilder::new().mode(0o700).create(directory);
    made.is_ok() || directory.is_dir() || !above.exists()
}

fn absolute(text: &str) -> Option<PathBuf> {
    let path = PathBuf::from(text);
    path.is_absolute().then_some(path)
}

fn fitting(explicit: &Path) -> Result<PathBuf, Diagnostic> {
    let socket = std::path::absolute(explicit).map_err(|error| {
        Diagnostic::new(
            Kind::Usage,
            "bad_socket_path",
            format!("the path of the socket cannot be used: {error}"),
        )
    })?;
    if socket.as_os_str().len() <= SOCKET_PATH_BYTES_MAX {
        return Ok(socket);
    }
    Err(Diagnostic::new(
        Kind::Usage,
        "socket_path_too_long",
        format!(
            "`{}` has more than {SOCKET_PATH_BYTES_MAX} bytes; the kernel allows no more for a socket",
            socket.display()
        ),
    )
    .hint("choose a shorter path with `--socket`"))
}

/// The one name of a workspace: two ways to it must not look like two workspaces.
pub(super) fn canonical(workspace: &Path) -> PathBuf {
    fs::canonicalize(workspace).unwrap_or_else(|_| workspace.to_path_buf())
}

/// A socket that is being listened to.
#[derive(Debug)]
pub struct Endpoint {
    listener: UnixListener,
    path: Option<PathBuf>,
    /// The socket file, if it could be looked at.
    file: Option<SocketFile>,
    ours: Option<Ours>,
    /// Whether systemd passed it.
    pub(super) is_passed: bool,
}

/// One file at a path, which another file may replace.
#[derive(Debug, Clone)]
struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

/// A socket file that we made and therefore remove.
#[derive(Debug)]
struct Ours {
    file: SocketFile,
    /// Its directory, where that is for sockets of ours.
    own_directory: Option<PathBuf>,
    /// Held as long as the socket file is ours, so that nobody takes it for a stale one.
    _claim: OwnedFd,
}

impl Endpoint {
    /// Takes over the socket that systemd passed, if it passed one.
    pub fn passed() -> Result<Option<Endpoint>, Diagnostic> {
        let mut passed = listenfd::ListenFd::from_env();
        if passed.len() > 1 {
            return Err(Diagnostic::new(
                Kind::Usage,
                "too_many_sockets",
                format!("{} sockets were passed; one is expected", passed.len()),
            )
            .hint("keep one `ListenStream=` in the socket unit"));
        }
        let listener = passed.take_unix_listener(0).map_err(|error| {
            Diagnostic::new(
                Kind::Usage,
                "bad_passed_socket",
                format!("the socket that was passed cannot be used: {error}"),
            )
            .hint("the socket unit needs `ListenStream=` with an absolute path")
        })?;
        Ok(listener.map(|listener| {
            let path = listener
                .local_addr()
                .ok()
                .and_then(|address| address.as_pathname().map(Path::to_path_buf));
            Endpoint {
                file: path.as_deref().and_then(|path| SocketFile::at(path).ok()),
                path,
                listener,
                ours: None,
                is_passed: true,
            }
        }))
    }

    /// Opens the socket of a daemon at `path` with mode 0600, which nobody could connect to before it had
    /// that mode.
    ///
    /// A socket file that nobody answers is replaced; one that somebody answers is a conflict.
    pub fn bind(path: &Path) -> Result<Endpoint, Diagnostic> {
        Endpoint::bind_as(path, Host::Daemon)
    }

    /// The same for an engine of any host; who it is stands beside the socket.
    pub(super) fn bind_as(path: &Path, host: Host) -> Result<Endpoint, Diagnostic> {
        let cannot = |what: &str, error: io::Error| {
            unusable(
                "socket_not_opened",
                format!(
                    "the socket `{}` could not be opened: {what}: {error}",
                    path.display()
                ),
                (&error, path),
                "choose another place with `--socket`",
            )
        };
        let directory = path.parent().unwrap_or(Path::new("/"));
        let is_new = private_directory(directory)?;
        let is_own =
            is_new || *directory == *temporary_directory(rustix::process::geteuid().as_raw());
        let claim = claim::claim_name(path, host)?;
        let socket = rustix::net::socket_with(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC,
            None,
        )
        .map_err(|error| cannot("socket", error.into()))?;
        let address = SocketAddrUnix::new(path).map_err(|error| cannot("address", error.into()))?;
        rustix::net::bind(&socket, &address).map_err(|error| cannot("bind", error.into()))?;
        // Nobody can connect before `listen`, so there is no moment with a wider mode.
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))
            .map_err(|error| cannot("mode", error))?;
        let file = SocketFile::at(path).map_err(|error| cannot("stat", error))?;
        let ours = Ours {
            file: file.clone(),
            own_directory: is_own.then(|| directory.to_path_buf()),
            _claim: claim,
        };
        rustix::net::listen(&socket, BACKLOG).map_err(|error| cannot("listen", error.into()))?;
        Ok(Endpoint {
            listener: UnixListener::from(socket),
            path: Some(path.to_path_buf()),
            file: Some(file),
            ours: Some(ours),
            is_passed: false,
        })
    }

    /// Its path, where it has one.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The files that decide who may connect.
    pub(super) fn files(&self) -> Option<SocketFiles> {
        Some(SocketFiles {
            socket: self.path.clone()?,
            is_ours: self.ours.is_some(),
            own_directory: self
                .ours
                .as_ref()
                .and_then(|ours| ours.own_directory.clone()),
        })
    }

    /// Whether its name leads to it no more, so that nobody can reach it: removed, or replaced.
    pub(super) fn is_lost(&self) -> bool {
        self.file.as_ref().is_some_and(|file| !file.is_there())
    }

    /// Binds the socket of a daemon again after its file was lost; the listener of the new one. After a failure it
    /// is still lost.
    pub(super) fn bind_again(&mut self) -> Result<UnixListener, Diagnostic> {
        let path = self.path.clone().unwrap_or_default();
        // The claim is given up before it is taken again: its file may be gone as well.
        self.ours = None;
        *self = Endpoint::bind(&path)?;
        self.listener()
    }

    /// A second handle to the same socket, for the server.
    pub fn listener(&self) -> Result<UnixListener, Diagnostic> {
        let what = "the socket could not be handed to the server";
        let listener = self.listener.try_clone();
        listener.map_err(|error| internal("socket_not_opened", what, &error))
    }
}

impl SocketFile {
    fn at(path: &Path) -> io::Result<SocketFile> {
        let found = fs::symlink_metadata(path)?;
        Ok(SocketFile {
            path: path.to_path_buf(),
            device: found.dev(),
            inode: found.ino(),
        })
    }

    /// Whether the file under the name is still the one that was found there.
    fn is_there(&self) -> bool {
        fs::symlink_metadata(&self.path)
            .is_ok_and(|found| found.dev() == self.device && found.ino() == self.inode)
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        if self.file.is_there()
            && let Err(error) = fs::remove_file(&self.file.path)
        {
            tracing::warn!(path = %self.file.path.display(), %error, "the socket file was left behind");
        }
    }
}

/// Makes the directory with mode 0700, or checks that nobody else can put files into the one that is there; whether it
/// was made.
fn private_directory(directory: &Path) -> Result<bool, Diagnostic> {
    let is_new = !directory.exists();
    let refused = |reason: String| {
        Diagnostic::new(
            Kind::Blocked,
            "socket_directory_unsafe",
            format!("no socket is opened in `{}`: {reason}", directory.display()),
        )
        .hint("choose a directory that only you can write with `--socket`")
    };
    if let Err(error) = fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
    {
        return Err(unusable(
            "socket_directory_unsafe",
            format!("no socket is opened in `{}`: {error}", directory.display()),
            (&error, directory),
            "choose a directory that only you can write with `--socket`",
        ));
    }
    let found = fs::metadata(directory).map_err(|error| refused(error.to_string()))?;
    let uid = rustix::process::geteuid().as_raw();
    if found.uid() != uid && found.uid() != 0 {
        return Err(refused(format!("it belongs to user {}", found.uid())));
    }
    // Others may write where only owners can remove, as in /tmp. A group may, since many systems give
    // every user a group alone; both sides look at the other's user id besides.
    if found.mode() & 0o002 != 0 && found.mode() & 0o1000 == 0 {
        return Err(refused("others can write it".to_owned()));
    }
    Ok(is_new)
}

#[cfg(test)]
mod tests;
