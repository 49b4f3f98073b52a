//! Who is behind a connection, as the kernel knows them.

use std::sync::Arc;

use crate::model::config::CONFIG_FILE;
use crate::model::{AccessRole, Diagnostic, Kind};
use crate::process::{Origin, name_of_user, origin_of, user_is_kept};

/// The other end of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer {
    /// Its user.
    pub(super) uid: u32,
    /// What it may do.
    pub(super) role: AccessRole,
    /// Whether it stems from a command of a run, whose skill lets it ask.
    pub(super) within_run: bool,
}

/// The groups of the other end, the first of which is its own.
#[derive(Debug, Clone)]
pub(super) struct Groups(pub(super) Arc<[u32]>);

/// It came in at the door of the web page, and the user is whoever logged in.
#[derive(Debug, Clone, Copy)]
pub(super) struct AtDoor;

impl Peer {
    /// The peer of this user and process; refused where it stems from a command that may not ask.
    pub(super) fn of(uid: u32, pid: Option<u32>, role: AccessRole) -> Result<Peer, Diagnostic> {
        let own = rustix::process::geteuid().as_raw();
        let origin = match pid {
            _ if uid != own && user_is_kept() => Origin::Elsewhere,
            Some(pid) => origin_of(pid),
            // What does not say who it is may be anybody.
            None => Origin::Unknown,
        };
        let within_run = match origin {
            Origin::Elsewhere => false,
            Origin::Command {
                may_control: true, ..
            } => true,
            Origin::Command { owner, .. } => return Err(within_run(Some(&owner.run))),
            Origin::Unknown => return Err(within_run(None)),
        };
        Ok(Peer {
            uid,
            role,
            within_run,
        })
    }
}

fn within_run(run: Option<&str>) -> Diagnostic {
    let whose = run.map_or_else(String::new, |run| format!(" {run}"));
    let message =
        format!("this process stems from a command of a run{whose}, which may not ask the engine");
    Diagnostic::new(Kind::Blocked, "within_run", message)
        .hint("write `workerctl: true` on its skill where it is meant to")
}

impl Peer {
    /// Refuses what needs a higher role than it has.
    pub(super) fn may(self, what: &str, needed: AccessRole) -> Result<(), Diagnostic> {
        if self.role >= needed {
            return Ok(());
        }
        let (who, has, needs) = (self.name(), self.role.name(), needed.name());
        let message =
            format!("user `{who}` has the role `{has}`, and `{what}` needs the role `{needs}`");
        let hint = format!("`access: {{{needs}: {{users: […]}}}}` in `{CONFIG_FILE}` gives it");
        Err(Diagnostic::new(Kind::Blocked, "role", message).hint(hint))
    }

    /// What its user is called.
    pub(super) fn name(self) -> String {
        name_of_user(self.uid)
    }
}
