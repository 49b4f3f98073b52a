//! Finding the engine of a workspace: the one that answers, else one hosted here.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{Access, access};
use rustix::io::Errno;

use super::client::{HttpControl, OTHER_WORKSPACE};
use super::connect_options::{ConnectMode, ConnectOptions};
use super::exchange::{CUT_OFF, NO_ENGINE, NOT_PERMITTED};
use super::hosted::Hosted;
use super::socket::SocketPlaces;
use super::wire::STARTING;
use crate::model::{Diagnostic, Kind};
use crate::process::name_of_user;
use crate::store::lock::{self, LockState, UNNAMED_HINT, WORKSPACE_FOLDER};

/// How often an engine that takes its place or leaves it at this moment is tried again.
pub(super) const TRIES_MAX: u32 = 50;
/// How often an engine that recovers is asked again: for 30 s.
const RECOVERING_TRIES_MAX: u32 = 300;
/// The pause between two tries.
pub(super) const TRY_PAUSE: Duration = Duration::from_millis(100);

/// Code of the refusal where nobody answers and a process holds the workspace all the same.
const OUT_OF_REACH: &str = "engine_out_of_reach";

/// Where the engine is.
pub(super) enum Place {
    /// Behind a socket.
    Elsewhere(Arc<HttpControl>),
    /// In this process.
    Here(Box<Hosted>),
}

/// Where the engine of a workspace is: behind a socket, else here.
pub(super) fn find(options: &ConnectOptions) -> Result<Place, Diagnostic> {
    let (mut tries, mut recovering) = (TRIES_MAX, RECOVERING_TRIES_MAX);
    loop {
        let nobody = match dial(options) {
            Ok(control) => return Ok(Place::Elsewhere(Arc::new(control))),
            Err(error) if may_not_host(&error, options) => {
                return Err(of_somebody_else(error, options));
            }
            Err(error) if error.code == NO_ENGINE => error,
            Err(error) if error.code == STARTING && recovering > 0 => {
                recovering -= 1;
                std::thread::sleep(TRY_PAUSE);
                continue;
            }
            // It has ended at this moment.
            Err(error) if error.code == CUT_OFF && tries > 0 => {
                tries -= 1;
                std::thread::sleep(TRY_PAUSE);
                continue;
            }
            Err(error) => return Err(error),
        };
        match options.mode {
            ConnectMode::RunningOnly => return Err(out_of_reach(nobody, options)),
            ConnectMode::RunningElseHosted => match Hosted::start(options) {
                Ok(hosted) => return Ok(Place::Here(Box::new(hosted))),
                // Another command became the host in between: it will answer in a moment.
                Err(error) if settles(&error) && tries > 0 => {
                    tries -= 1;
                    std::thread::sleep(TRY_PAUSE);
                }
                Err(error) => return Err(error),
            },
        }
    }
}

/// Whether no engine was found at the usual places and this user may not write the workspace: an engine of theirs would
/// be refused by one file after the other.
fn may_not_host(error: &Diagnostic, options: &ConnectOptions) -> bool {
    let writable = |path: &Path| access(path, Access::WRITE_OK | Access::EXEC_OK);
    let not_found = [NO_ENGINE, NOT_PERMITTED].contains(&error.code.as_str());
    let looked = match writable(&options.workspace.join(WORKSPACE_FOLDER)) {
        Err(Errno::NOENT) => writable(&options.workspace),
        looked => looked,
    };
    options.socket.is_none() && not_found && looked == Err(Errno::ACCESS)
}

fn of_somebody_else(error: Diagnostic, options: &ConnectOptions) -> Diagnostic {
    let shown = options.workspace.display();
    let found = std::fs::metadata(&options.workspace);
    let owner = found.map_or_else(
        |_| "its owner".to_owned(),
        |found| format!("`{}`", name_of_user(found.uid())),
    );
    Diagnostic {
        message: format!(
            "no engine of `{shown}` can be reached, and this command cannot start one because you have no write permission there"
        ),
        hints: vec![format!(
            "{owner} can start one with `workerctl daemon`, and `access` in `workerctl.yaml` lets other users reach it; if one listens on another socket, name it with `--socket` or `WORKERCTL_SOCKET`"
        )],
        ..error
    }
}

/// Nobody answers: where a process holds the workspace all the same, starting another one helps nobody.
fn out_of_reach(nobody: Diagnostic, options: &ConnectOptions) -> Diagnostic {
    let hint = match lock::inspect_workspace(&options.workspace) {
        Ok(LockState::HeldBy(holder)) => {
            let place = holder.socket.as_deref().unwrap_or("another socket");
            format!(
                "process {} has locked the workspace and listens on `{place}`: name that path with `--socket`, or end the process if that file is missing",
                holder.pid
            )
        }
        Ok(LockState::Unnamed) => {
            format!("a process has locked the workspace and cannot be reached: {UNNAMED_HINT}")
        }
        Ok(LockState::Free | LockState::Held) | Err(_) => return nobody,
    };
    Diagnostic {
        code: OUT_OF_REACH.to_owned(),
        hints: vec![hint],
        ..nobody
    }
}

/// Whether what kept an engine from starting may be another one that starts or ends at this moment.
fn settles(error: &Diagnostic) -> bool {
    error.kind == Kind::Conflict && error.code != "socket_path_taken"
}

/// The engine that runs, once it has recovered.
pub fn dial_patiently(options: &ConnectOptions) -> Result<Arc<HttpControl>, Diagnostic> {
    let options = ConnectOptions {
        mode: ConnectMode::RunningOnly,
        ..options.clone()
    };
    match find(&options)? {
        Place::Elsewhere(control) => Ok(control),
        Place::Here(_) => {
            let why = "an engine was started where none was asked for";
            Err(Diagnostic::new(Kind::Internal, "hosted", why))
        }
    }
}

/// Dials the engine that runs. The code `no_engine` says that nobody listens anywhere.
pub fn dial(options: &ConnectOptions) -> Result<HttpControl, Diagnostic> {
    let places = SocketPlaces {
        workspace: &options.workspace,
        state_dir: &options.state_dir,
        explicit: options.socket.as_deref(),
        environment: &options.environment,
    };
    let (mut nobody, mut denied) = (None, None);
    for socket in places.of_client()? {
        match HttpControl::introduced(&socket, options) {
            Ok(control) => return Ok(control),
            Err(error) if error.code == NO_ENGINE => nobody = nobody.or(Some(error)),
            // Another place may be open to this user.
            Err(error) if error.code == NOT_PERMITTED => denied = denied.or(Some(error)),
            // The workspace was copied, with a lock that tells of the original's engine.
            Err(error)
                if error.code == OTHER_WORKSPACE
                    && places.is_only_in_lock(&socket)
                    && nobody_holds(options) => {}
            Err(error) => return Err(error),
        }
    }
    Err(denied.or(nobody).unwrap_or_else(|| {
        Diagnostic::new(Kind::Unreachable, NO_ENGINE, "no engine runs")
            .hint("`workerctl daemon` starts one")
    }))
}

fn nobody_holds(options: &ConnectOptions) -> bool {
    lock::inspect_workspace(&options.workspace).is_ok_and(|found| found == LockState::Free)
}
