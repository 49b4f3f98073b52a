//! Who is heard at the control socket, and whether they get there.

use std::sync::{OnceLock, PoisonError, RwLock};

use super::socket::SocketFiles;
use crate::model::{Access, AccessRole};
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

    /// Sets the modes of the files again, which were made again.
    pub(super) fn restore_modes(&self) {
        let access = self.access.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(files) = self.files.get().filter(|_| !access.is_empty()) {
            files.follow(&access);
        }
    }

    /// The role that the configuration gives a user who is in these groups.
    pub(super) fn role_of(&self, uid: u32, groups: &[u32]) -> Option<AccessRole> {
        let access = self.access.read().unwrap_or_else(PoisonError::into_inner);
        access.role_of(uid, groups)
    }

    /// Whether those who have a role get to the socket; `None` where nobody has one.
    pub(super) fn probe(&self) -> Option<Probe> {
        let access = self.access.read().unwrap_or_else(PoisonError::into_inner);
        let files = self.files.get().filter(|_| !access.is_empty())?;
        let closed = files.closed_to(&access);
        let works = closed.is_none();
        let (message, hints) = closed.map_or_else(
            || {
                let message = "the users named in `access` can reach the socket";
                (message.to_owned(), Vec::new())
            },
            |closed| (closed.message, closed.hints),
        );
        Some(Probe {
            subject: "access".to_owned(),
            ok: works,
            message,
            hints,
        })
    }
}
