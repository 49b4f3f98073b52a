//! Who is behind a connection, as the kernel knows them.

use crate::model::{Diagnostic, Kind};
use crate::process::{Origin, name_of_user, origin_of};

/// The other end of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer {
    /// Its user.
    pub(super) uid: u32,
    /// Whether it stems from a command of a run, whose skill lets it ask.
    pub(super) within_run: bool,
}

impl Peer {
    /// The peer of this user and process; refused where it stems from a command that may not ask.
    pub(super) fn of(uid: u32, pid: Option<u32>) -> Result<Peer, Diagnostic> {
        // What does not say who it is may be anybody.
        let within_run = match pid.map_or(Origin::Unknown, origin_of) {
            Origin::Elsewhere => false,
            Origin::Command {
                may_control: true, ..
            } => true,
            Origin::Command { owner, .. } => return Err(within_run(Some(&owner.run))),
            Origin::Unknown => return Err(within_run(None)),
        };
        Ok(Peer { uid, within_run })
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
    /// What its user is called.
    pub(super) fn name(self) -> String {
        name_of_user(self.uid)
    }
}
