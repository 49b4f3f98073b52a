//! Who is behind a connection, as the kernel knows them.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use crate::model::config::CONFIG_FILE;
use crate::model::{AccessRole, Diagnostic, Kind, RunId};
use crate::process::{Origin, Undecided, name_of_user, origin_of, user_is_kept};

/// The other end of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer {
    /// Its user.
    pub(super) uid: u32,
    /// What it may do.
    pub(super) role: AccessRole,
    /// On whose behalf it asks.
    pub(super) caller: Caller,
}

/// On whose behalf a request is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Caller {
    /// Its user.
    Person,
    /// The command of a run, whose skill lets it ask.
    Run(RunId),
    /// Another command that an engine has started: of `notify`, or of another engine's run.
    Command,
}

/// The groups of the other end, the first of which is its own.
#[derive(Debug, Clone)]
pub(super) struct Groups(pub(super) Arc<[u32]>);

/// It came in at the door of the web page, and the user is whoever logged in.
#[derive(Debug, Clone, Copy)]
pub(super) struct AtDoor;

impl Peer {
    /// The peer of this user and process; refused if it stems from a command that may not ask.
    pub(super) fn new(
        uid: u32,
        process: Option<(u32, Option<BorrowedFd<'_>>)>,
        role: AccessRole,
    ) -> Result<Peer, Diagnostic> {
        let own = rustix::process::geteuid().as_raw();
        let origin = match process {
            _ if uid != own && user_is_kept() => Origin::Elsewhere,
            Some((pid, pidfd)) => origin_of(pid, pidfd),
            None => Origin::Unknown(Undecided::NoProcess),
        };
        let caller = match origin {
            Origin::Elsewhere => Caller::Person,
            Origin::OtherEngine => Caller::Command,
            Origin::Command {
                may_control: true,
                owner,
            } => owner.run.parse().map_or(Caller::Command, Caller::Run),
            Origin::Command { owner, .. } => return Err(within_run(&owner.run)),
            Origin::Unknown(why) => return Err(undecided(why)),
        };
        Ok(Peer { uid, role, caller })
    }

    /// Refuses an operation that commands of runs may not ask for, if this is one. `by_person` is the command with which
    /// a person asks for it.
    pub(super) fn needs_person(self, what: &str, by_person: &str) -> Result<(), Diagnostic> {
        if self.caller == Caller::Person {
            return Ok(());
        }
        let message = format!(
            "`{what}` is not available to commands of a run: they may only read, submit runs, and cancel runs that they submitted"
        );
        let refused = Diagnostic::new(Kind::Blocked, "person_needed", message);
        Err(refused.hint(format!(
            "run it yourself, outside of the run: `{by_person}`"
        )))
    }

    /// The run that asks, if one does.
    pub(super) fn run(self) -> Option<RunId> {
        match self.caller {
            Caller::Run(run) => Some(run),
            Caller::Person | Caller::Command => None,
        }
    }

    /// Refuses what needs a higher role than it has.
    pub(super) fn may(self, what: &str, needed: AccessRole) -> Result<(), Diagnostic> {
        if self.role >= needed {
            return Ok(());
        }
        let (who, has, needs) = (self.name(), self.role.name(), needed.name());
        let message =
            format!("user `{who}` has the role `{has}`, and `{what}` needs the role `{needs}`");
        let hint =
            format!("grant it with `access: {{{needs}: {{users: […]}}}}` in `{CONFIG_FILE}`");
        Err(Diagnostic::new(Kind::Blocked, "role", message).hint(hint))
    }

    /// The name of the caller, as it is recorded: of the user, or of the run.
    pub(super) fn name(self) -> String {
        match self.caller {
            Caller::Run(run) => format!("run {}", run.short()),
            Caller::Command => format!("a command of {}", name_of_user(self.uid)),
            Caller::Person => name_of_user(self.uid),
        }
    }
}

fn within_run(run: &str) -> Diagnostic {
    let message = format!(
        "this process descends from a command of run {run}, and that command may not send requests to the engine"
    );
    Diagnostic::new(Kind::Blocked, "within_run", message)
        .hint("run the command yourself, from a process that the run did not start")
}

fn undecided(why: Undecided) -> Diagnostic {
    let message = format!(
        "cannot determine whether this process belongs to a run: {why}; commands of runs may not send requests to the engine"
    );
    let refused = Diagnostic::new(Kind::Blocked, "origin_unknown", message);
    match why {
        Undecided::Hidden(_) => refused
            .hint("run the command in a control group other than the engine's, such as a login session: `/proc/self/cgroup` shows the current one")
            .hint("try again when no run is active"),
        Undecided::NoProcess | Undecided::Ended | Undecided::Orphan => refused.hint("try again from a new process"),
    }
}
