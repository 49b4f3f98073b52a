//! The engine's hold on its workspace and its state directory: taken, refused, and kept.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::Access;

use super::{ENGINE_RUNNING, EngineOptions, unusable};
use crate::git::tracked_below;
use crate::model::{Diagnostic, Kind};
use crate::process::end_orphans_with_open;
use crate::store::identity;
use crate::store::lock::{self, Holder, Lock, LockError, LockState, UNNAMED_HINT};

/// The locks of one engine. They go with it.
pub(super) struct Hold {
    root: PathBuf,
    holder: Holder,
    workspace: Mutex<Lock>,
    _state: Lock,
}

impl Hold {
    /// Takes both locks.
    pub(super) fn take(root: &Path, options: &EngineOptions) -> Result<Hold, Diagnostic> {
        let mut holder = Holder::this_process(root, &options.state_dir);
        options.host.name().clone_into(&mut holder.host);
        holder.socket = options
            .socket
            .as_ref()
            .map(|socket| socket.display().to_string());
        let (state, workspace) = free_of_orphans(root, &options.state_dir, || {
            let state = Lock::of_state(&options.state_dir, &holder);
            let state = state.map_err(|e| refused_lock(&e))?;
            let workspace = Lock::of_workspace(root, &holder).map_err(|e| refused_lock(&e))?;
            Ok((state, workspace))
        })?;
        Ok(Hold {
            root: root.to_path_buf(),
            holder,
            workspace: Mutex::new(workspace),
            _state: state,
        })
    }

    /// Puts the file of the workspace's lock back where it was lost; answers whether it was.
    pub(super) fn keep(&self) -> Result<bool, Diagnostic> {
        let mut lock = self
            .workspace
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if !lock.is_lost() {
            return Ok(false);
        }
        lock.put_back(&self.root, &self.holder)
            .map(|()| true)
            .map_err(|e| refused_lock(&e))
    }
}

/// Takes a lock again if processes that a dead engine has left had it, which are ended. A command can read the
/// workspace, so it can wait for a lock there and get it when its engine is killed.
fn free_of_orphans<T>(
    workspace: &Path,
    state_dir: &Path,
    take: impl Fn() -> Result<T, Diagnostic>,
) -> Result<T, Diagnostic> {
    let taken = take();
    if !matches!(&taken, Err(refused) if refused.code == ENGINE_RUNNING) {
        return taken;
    }
    let state = state_dir.join(lock::LOCK_NAME);
    let file = workspace.join(lock::WORKSPACE_FOLDER).join(lock::LOCK_NAME);
    match end_orphans_with_open(&[&state, &file, workspace]) {
        0 => taken,
        ended => {
            tracing::warn!(
                ended,
                "ended processes of an earlier engine that kept its locks"
            );
            take()
        }
    }
}

/// Refuses where an engine with another state directory has the workspace, or its store is another one.
///
/// # Errors
/// Says who has it, or where its store is. Nothing was made.
pub fn refuse_unfit(workspace: &Path, state_dir: &Path) -> Result<(), Diagnostic> {
    free_of_orphans(workspace, state_dir, || {
        refuse_where_held(workspace, state_dir)
    })?;
    check_store(workspace, state_dir)?;
    create_state_dir(state_dir)
}

/// Refuses a state directory in which git tracks files, and a store that is not the one of the workspace.
///
/// # Errors
/// Names a tracked path, or says where the store of the workspace is. Nothing was made.
pub fn check_store(workspace: &Path, state_dir: &Path) -> Result<(), Diagnostic> {
    identity::refuse_tracked(state_dir, tracked_below(state_dir).as_deref())?;
    identity::check(workspace, state_dir)
}

/// Creates the state directory, or refuses one that cannot be used. Otherwise the first file that is created in it,
/// such as the socket, would be blamed.
fn create_state_dir(state_dir: &Path) -> Result<(), Diagnostic> {
    let created = DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(state_dir);
    let rights = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
    let usable = created.and_then(|()| Ok(rustix::fs::access(state_dir, rights)?));
    usable.map_err(|error| {
        let shown = state_dir.display();
        unusable(
            "state_dir",
            format!("the state directory `{shown}` cannot be used: {error}"),
            (&error, state_dir),
            "name another directory with `--state-dir`",
        )
    })
}

/// Makes an empty store for a workspace that has none, or has lost its own: on request only.
///
/// # Errors
/// There is a store, or an engine has the workspace.
pub fn init_store(options: &EngineOptions) -> Result<(), Diagnostic> {
    let (workspace, state_dir) = (&options.workspace, &options.state_dir);
    refuse_where_held(workspace, state_dir)?;
    identity::refuse_tracked(state_dir, tracked_below(state_dir).as_deref())?;
    let _hold = Hold::take(workspace, options)?;
    super::keep_out_of_git(workspace, state_dir);
    identity::announce(workspace, state_dir)?;
    drop(super::open_store(state_dir)?);
    identity::settle(workspace, state_dir)
}

/// Refuses where an engine with another state directory has the workspace.
fn refuse_where_held(workspace: &Path, state_dir: &Path) -> Result<(), Diagnostic> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let same = |one: &str, other: &Path| real(Path::new(one)) == real(other);
    let refused = match lock::inspect_workspace(workspace) {
        Ok(LockState::HeldBy(holder)) if !same(&holder.state_dir, state_dir) => LockError::Held {
            path: workspace.join(lock::WORKSPACE_FOLDER).join(lock::LOCK_NAME),
            holder: Some(holder),
        },
        Ok(LockState::Unnamed) => match lock::inspect_state(state_dir) {
            // That one has it: what else it holds tells more.
            Ok(LockState::HeldBy(holder)) if same(&holder.workspace, workspace) => return Ok(()),
            _ => LockError::Unnamed(workspace.to_path_buf()),
        },
        _ => return Ok(()),
    };
    Err(refused_lock(&refused))
}

fn refused_lock(error: &LockError) -> Diagnostic {
    let conflict = || Diagnostic::new(Kind::Conflict, ENGINE_RUNNING, error.to_string());
    match error {
        LockError::Held { holder, .. } => {
            let refused =
                conflict().hint("use that engine, or end it with `workerctl daemon drain`");
            match holder {
                Some(holder) => {
                    refused.hint(format!("if it does not answer, end process {}", holder.pid))
                }
                None => refused,
            }
        }
        LockError::Unnamed(_) => conflict().hint(UNNAMED_HINT),
        LockError::Moved(_) => {
            Diagnostic::new(Kind::Conflict, "workspace_moved", error.to_string())
                .hint("end this engine, and start one in the workspace's new place")
        }
        LockError::File(file) => unusable(
            "lock",
            crate::model::diagnostic::chain(error),
            (&file.source, &file.path),
            "move the existing file away: it is recreated",
        ),
    }
}
