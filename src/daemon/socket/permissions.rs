//! The modes on the way to a socket: closed to others, unless the configuration gives any of them a role.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::model::{Access, Diagnostic, Kind};

/// A socket file, and the directory that was made for it.
#[derive(Debug, Clone)]
pub(in crate::daemon) struct SocketFiles {
    /// Where it is.
    pub(super) socket: PathBuf,
    /// Whether this process has made it.
    pub(super) is_ours: bool,
    /// Its directory, where this process has made that, or it is this user's for such sockets.
    pub(super) own_directory: Option<PathBuf>,
}

/// The directory of a user's sockets that everybody can find.
pub(super) fn temporary_directory(uid: u32) -> PathBuf {
    PathBuf::from(format!("/tmp/workerctl-{uid}"))
}

impl SocketFiles {
    /// Lets others connect while any of them has a role: who they are is told by the kernel and decided at each
    /// connection. What others have made stays as it is, and a log line says so where it keeps them out.
    pub(in crate::daemon) fn follow(&self, access: &Access) {
        let (of_socket, of_directory) = if access.is_empty() {
            (0o600, 0o700)
        } else {
            (0o666, 0o711)
        };
        let socket = self.is_ours.then_some((&self.socket, of_socket));
        let shared = temporary_directory(rustix::process::geteuid().as_raw());
        // Engines of other workspaces of this user may let others in there.
        let is_left = |own: &&PathBuf| access.is_empty() && **own == shared;
        let directory = self.own_directory.iter().filter(|own| !is_left(own));
        let directory = directory.map(|own| (own, of_directory));
        for (path, mode) in socket.into_iter().chain(directory) {
            if let Err(error) = fs::set_permissions(path, fs::Permissions::from_mode(mode)) {
                tracing::warn!(path = %path.display(), %error, "the mode could not be set");
            }
        }
        if let Some(closed) = self.closed_to(access) {
            tracing::warn!(hint = closed.hints.concat(), "{}", closed.message);
        }
    }

    /// What keeps those who have a role from connecting, where somebody has one.
    pub(in crate::daemon) fn closed_to(&self, access: &Access) -> Option<Diagnostic> {
        if access.is_empty() {
            return None;
        }
        let lets = |path: &Path, bit: u32| {
            let Ok(found) = fs::metadata(path) else {
                return false;
            };
            let of_group = access.groups().any(|group| group == found.gid());
            found.mode() & bit != 0 || (of_group && found.mode() & (bit << 3) != 0)
        };
        let closed = |message: String, hint: String| {
            Some(Diagnostic::new(Kind::Blocked, "socket_closed", message).hint(hint))
        };
        let above = self.socket.ancestors().skip(1);
        if let Some(directory) = above.into_iter().find(|above| !lets(above, 0o001)) {
            let shown = directory.display();
            return closed(
                format!(
                    "the users named in `access` cannot reach the socket: they may not enter `{shown}`"
                ),
                format!(
                    "set `RuntimeDirectoryMode=0755` in the unit, run `chmod o+x {shown}`, or choose another path with `--socket`"
                ),
            );
        }
        if lets(&self.socket, 0o002) {
            return None;
        }
        let shown = self.socket.display();
        closed(
            format!("the users named in `access` may not write to the socket `{shown}`"),
            format!("set `SocketMode=0666` in the socket unit, or run `chmod o+rw {shown}`"),
        )
    }
}
