//! The claim to a socket's name: a locked file beside it that says which process listens there.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::Pid;

use crate::daemon::faults::internal;
use crate::engine::{Host, unusable};
use crate::model::{Diagnostic, Kind};

/// A child of an engine that was killed holds the engine's socket until its own program starts, which on
/// a busy machine takes a while; so long is waited for it, in all.
const TRIES: u32 = 200;
const WAIT: Duration = Duration::from_millis(10);
/// Code of the refusal where an engine has the socket.
pub(in crate::daemon) const TAKEN: &str = "already_running";

/// Claims the name of the socket and makes way; waits a while for what an engine that was killed has left.
pub(super) fn claim_name(path: &Path, host: Host) -> Result<OwnedFd, Diagnostic> {
    // Nothing is left beside what is not ours.
    refuse_foreign(path)?;
    let mut tries = TRIES;
    loop {
        let refused = match claim(path, host) {
            Ok(claim) => match make_way(path) {
                Ok(()) => return Ok(claim),
                Err(refused) => refused,
            },
            Err(refused) => match listener_of(path) {
                Listener::Lives { pid, .. } => return Err(taken(path, Some(pid))),
                Listener::Dead | Listener::Unknown => refused,
            },
        };
        if refused.code != TAKEN || tries == 0 {
            return Err(refused);
        }
        tries -= 1;
        std::thread::sleep(WAIT);
    }
}

fn claim_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}

/// Claims the name of the socket against other starting engines, and says in the file who it is.
fn claim(path: &Path, host: Host) -> Result<OwnedFd, Diagnostic> {
    let name = claim_path(path);
    let cannot = |error: io::Error| {
        unusable(
            "socket_not_opened",
            format!("`{}` could not be locked: {error}", name.display()),
            (&error, &name),
            "move away what is there, or choose another place with `--socket`",
        )
    };
    let file = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .custom_flags(
            (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK)
                .bits()
                .cast_signed(),
        )
        .open(&name)
        .map_err(cannot)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {
            let told = format!("{} {}\n", std::process::id(), host.name());
            file.set_len(0)
                .and_then(|()| (&file).write_all(told.as_bytes()))
                .map_err(cannot)?;
            Ok(file.into())
        }
        Err(Errno::WOULDBLOCK) => Err(taken(path, None)),
        Err(error) => Err(cannot(error.into())),
    }
}

/// Refuses a path at which something else than a socket stands.
fn refuse_foreign(path: &Path) -> Result<(), Diagnostic> {
    match fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => Err(Diagnostic::new(
            Kind::Conflict,
            "socket_path_taken",
            format!("`{}` exists and is not a socket", path.display()),
        )
        .hint("move it away, or choose another place with `--socket`")),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Removes a socket file that nobody answers any more, and nothing else.
fn make_way(path: &Path) -> Result<(), Diagnostic> {
    refuse_foreign(path)?;
    if fs::symlink_metadata(path).is_err() {
        return Ok(());
    }
    if somebody_listens(path) {
        return Err(taken(path, None));
    }
    tracing::info!(path = %path.display(), "a stale socket file was removed");
    fs::remove_file(path).map_err(|error| {
        let what = format!("the stale socket `{}` could not be removed", path.display());
        internal("socket_not_opened", &what, &error)
    })
}

fn taken(path: &Path, pid: Option<Pid>) -> Diagnostic {
    if let Some(pid) = pid
        && fs::symlink_metadata(path).is_err()
    {
        let pid = pid.as_raw_nonzero();
        return Diagnostic::new(
            Kind::Conflict,
            TAKEN,
            format!(
                "an engine, process {pid}, has claimed `{}`, but the socket does not exist",
                path.display()
            ),
        )
        .hint(format!(
            "if this persists, no command can reach the engine: end process {pid}, for example with `kill {pid}`"
        ));
    }
    let who = match pid {
        Some(pid) => format!("an engine, process {},", pid.as_raw_nonzero()),
        None => "an engine".to_owned(),
    };
    Diagnostic::new(
        Kind::Conflict,
        TAKEN,
        format!("{who} already listens on `{}`", path.display()),
    )
    .hint("`workerctl status` shows it; `workerctl daemon drain` ends it")
}

/// Who listens on a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::daemon) enum Listener {
    /// An engine.
    Lives {
        /// Its process.
        pid: Pid,
        /// Whether it lives in a command, which ends by itself.
        in_command: bool,
    },
    /// The process that claimed the name has ended; a child of it may hold it still.
    Dead,
    /// Nobody yet, or nobody who says so.
    Unknown,
}

/// What the process that claimed the name wrote, and whether it lives.
pub(in crate::daemon) fn listener_of(path: &Path) -> Listener {
    let mut text = String::new();
    let read = fs::OpenOptions::new()
        .read(true)
        .custom_flags(
            (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK)
                .bits()
                .cast_signed(),
        )
        .open(claim_path(path))
        .and_then(|file| file.take(64).read_to_string(&mut text));
    let mut words = text.split_whitespace();
    let pid = words
        .next()
        .and_then(|word| word.parse().ok())
        .and_then(Pid::from_raw);
    let (Ok(_), Some(pid)) = (read, pid) else {
        return Listener::Unknown;
    };
    if rustix::process::test_kill_process(pid) == Err(Errno::SRCH) {
        return Listener::Dead;
    }
    let in_command = words.next() == Some(Host::InProcess.name());
    Listener::Lives { pid, in_command }
}

/// Whether a connection is accepted; everything but a clear refusal counts as somebody.
fn somebody_listens(path: &Path) -> bool {
    let Ok(probe) = rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    ) else {
        return true;
    };
    let Ok(address) = SocketAddrUnix::new(path) else {
        return true;
    };
    !matches!(
        rustix::net::connect(&probe, &address),
        Err(Errno::CONNREFUSED | Errno::NOENT)
    )
}
