//! The engine of the workspace, held only while it is needed.
//!
//! A client may keep its server for days. An engine in this process keeps the workspace from everybody
//! else, so it is given back as soon as its runs have ended and nobody asks it anything.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::model::{Diagnostic, Kind};
use crate::protocol::{Control, Status};

/// Finds the engine of the workspace, or hosts one.
pub type Connect = Box<dyn Fn() -> Result<Arc<dyn Control>, Diagnostic> + Send + Sync>;

/// How long an engine is kept after it was last used.
const IDLE: Duration = Duration::from_secs(3);

/// How often, and with which pause, it is looked whether all have let go of an engine that has ended.
const LETTING_GO_LOOKS: u32 = 100;
const LETTING_GO_PAUSE: Duration = Duration::from_millis(20);

/// Finds, keeps and gives back the engine.
pub(super) struct Engines {
    connect: Connect,
    held: Mutex<EngineLease>,
}

#[derive(Default)]
struct EngineLease {
    control: Option<Arc<dyn Control>>,
    users: usize,
    idle_since: Option<Instant>,
}

/// The engine for as long as somebody needs it.
pub(super) struct Lease {
    engines: Arc<Engines>,
    control: Arc<dyn Control>,
}

impl std::ops::Deref for Lease {
    type Target = dyn Control;

    fn deref(&self) -> &Self::Target {
        self.control.as_ref()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut held = self.engines.held();
        held.users = held.users.saturating_sub(1);
        held.idle_since = Some(tokio::time::Instant::now());
    }
}

impl Engines {
    pub(super) fn new(connect: Connect) -> Engines {
        Engines {
            connect,
            held: Mutex::default(),
        }
    }

    fn held(&self) -> MutexGuard<'_, EngineLease> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The engine; found or hosted where there is none yet. Blocks.
    pub(super) fn lease(self: &Arc<Engines>) -> Result<Lease, Diagnostic> {
        let mut held = self.held();
        let control = if let Some(control) = &held.control {
            Arc::clone(control)
        } else {
            let control = (self.connect)()?;
            held.control = Some(Arc::clone(&control));
            control
        };
        held.users += 1;
        Ok(Lease {
            engines: Arc::clone(self),
            control,
        })
    }

    /// Asks the engine; one that has gone since is looked for once more.
    pub(super) fn ask<T>(
        self: &Arc<Engines>,
        ask: impl Fn(&dyn Control) -> Result<T, Diagnostic>,
    ) -> Result<T, Diagnostic> {
        let lease = self.lease()?;
        match ask(lease.control.as_ref()) {
            Err(refused) if refused.kind == Kind::Unreachable => {
                self.forget(&lease.control);
                drop(lease);
                let again = self.lease()?;
                ask(again.control.as_ref())
            }
            answered => answered,
        }
    }

    fn forget(&self, gone: &Arc<dyn Control>) {
        let mut held = self.held();
        if held
            .control
            .as_ref()
            .is_some_and(|control| Arc::ptr_eq(control, gone))
        {
            held.control = None;
        }
    }

    /// Gives an engine back that nobody uses and that has nothing to do. Blocks for as long as that takes.
    pub(super) fn give_back_idle(&self) {
        let mut held = self.held();
        let idle = held.idle_since.is_some_and(|since| since.elapsed() >= IDLE);
        let Some(control) = held.control.as_ref().filter(|_| idle && held.users == 0) else {
            return;
        };
        // Dropping an engine in this process ends what it runs.
        let at_rest = match control.status() {
            Ok(status) => status.host == "daemon" || status.running + status.queued == 0,
            Err(_) => true,
        };
        if at_rest {
            // The lock is kept meanwhile: whoever comes next finds either this engine or none.
            held.control = None;
        } else {
            held.idle_since = Some(tokio::time::Instant::now());
        }
    }

    /// Gives the engine back; one in this process when its runs have ended.
    pub(super) fn close(&self) {
        let Some(control) = self.held().control.take() else {
            return;
        };
        // A daemon goes on without this server, and so does the engine of another command: its runs are not this client's.
        let is_elsewhere = |status: Status| status.pid != std::process::id();
        if control.status().is_ok_and(is_elsewhere) {
            return;
        }
        // Whoever watches a run holds the engine too: it is told to end, and they let go then.
        if let Err(error) = control.drain() {
            tracing::debug!(%error, "the engine in this process was not drained");
        }
        for _ in 0..LETTING_GO_LOOKS {
            if Arc::strong_count(&control) == 1 {
                break;
            }
            std::thread::sleep(LETTING_GO_PAUSE);
        }
    }
}
