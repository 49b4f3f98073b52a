//! Who is heard at the control socket, and whether they get there.

use std::sync::{OnceLock, PoisonError, RwLock};

use tokio::net::UnixStream;
use tokio::net::unix::UCred;

use super::socket::SocketFiles;
use crate::model::{Access, AccessRole};
use crate::process::groups_of_peer;
use crate::protocol::Probe;

/// The current roles, which a reload replaces.
#[derive(Debug, Default)]
pub(super) struct AccessControl {
    access: RwLock<Access>,
    files: OnceLock<SocketFiles>,
}

impl AccessControl {
    /// These files follow the roles from now on.
    pub(super) fn guard(&self, files: SocketFiles) {
        if self.files.set(files).is_err() {
            tracing::error!("the files of a socket were given twice");
        }
    }

    /// These roles are in force from now on.
    pub(super) fn set(&self, access: &Access) {
        let mut current = self.access.write().unwrap_or_else(PoisonError::into_inner);
        if *current == *access {
            return;
        }
        // The lock is held over both: files must not follow an older configuration than the one in force.
        current.clone_from(access);
        if let Some(files) = self.files.get() {
            files.follow(access);
        }
        tracing::info!("roles on the control socket have changed");
    }

    /// The role that the configuration gives whoever is behind a connection.
    pub(super) fn role_of(&self, stream: &UnixStream, peer: UCred) -> Option<AccessRole> {
        let access = self.access.read().unwrap_or_else(PoisonError::into_inner);
        let mut groups = vec![peer.gid()];
        if access.groups().next().is_some() {
            match groups_of_peer(stream) {
                Ok(found) => groups.extend(found),
                Err(error) => tracing::warn!(%error, "the groups of a connection are not known"),
            }
        }
        access.role_of(peer.uid(), &groups)
    }

    /// Whether those who have a role get to the socket; `None` where nobody has one.
    pub(super) fn probe(&self) -> Option<Probe> {
        let access = self.access.read().unwrap_or_else(PoisonError::into_inner);
        let files = self.files.get().filter(|_| !access.is_empty())?;
        let closed = files.closed_to(&access);
        let works = closed.is_none();
        let (message, hints) = closed.map_or_else(
            || {
                let message = "those whom `access` names can reach the socket";
                (message.to_owned(), Vec::new())
            },
            |closed| (closed.message, closed.hints),
        );
        Some(Probe {
            what: "access".to_owned(),
            works,
            message,
            hints,
        })
    }
}
