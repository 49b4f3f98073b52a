//! What the daemon's loop needs of the engine that it hosts, and what it is asked to do with it.

use std::sync::Arc;

use crate::engine::definitions::Definitions;
use crate::engine::{Engine, Heartbeat, Hints, Watched, WebSessionStore};
use crate::model::{Diagnostic, Kind};
use crate::protocol::Control;

/// What a person or the service manager asks of the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostSignal {
    /// End in order; a second time: end what runs at once.
    Stop,
    /// Read the definitions again.
    Reload,
}

/// What the daemon needs of an engine.
pub trait Hosted: Send + Sync {
    /// The interface to it. Once the engine has ended its answers are `Kind::Unreachable`.
    fn control(&self) -> Arc<dyn Control>;
    /// Signs of life of its core loop.
    fn heartbeat(&self) -> Heartbeat;
    /// Reads the definitions again if any of them changed; answers whether any did.
    fn rescan(&self) -> Result<bool, Diagnostic>;
    /// Where changes hint that a schedule may be due.
    fn watched(&self) -> Vec<Watched> {
        Vec::new()
    }
    /// Takes hints that one of them is to be looked at.
    fn hints(&self) -> Hints {
        Arc::new(|_| Ok(()))
    }
    /// Whether it has ended, as far as that can be told without waiting.
    fn has_ended(&self) -> bool {
        false
    }
    /// Does this once it has ended, so that nobody has to look.
    fn on_end(&self, told: Box<dyn FnOnce() + Send>) {
        drop(told);
    }
    /// Makes the workspace's lock anew where somebody removed it; answers whether that was so.
    fn keep_hold(&self) -> Result<bool, Diagnostic> {
        Ok(false)
    }
    /// Its definitions, where it has some.
    fn definitions(&self) -> Option<Arc<Definitions>> {
        None
    }
    /// Where sessions of the web page are kept, where they are.
    fn web_sessions(&self) -> Option<Arc<dyn WebSessionStore>> {
        None
    }
    /// Does this whenever something else is due next or a schedule is overdue or no longer.
    fn on_agenda(&self, told: Box<dyn Fn() + Send + Sync>) {
        drop(told);
    }
    /// Waits until it has ended, and says why where that was not in order.
    fn join(self: Arc<Self>) -> Result<(), Diagnostic>;
}

impl Hosted for Engine {
    fn control(&self) -> Arc<dyn Control> {
        Engine::control(self)
    }

    fn heartbeat(&self) -> Heartbeat {
        Engine::heartbeat(self)
    }

    fn rescan(&self) -> Result<bool, Diagnostic> {
        let changed = self.reload_if_stale()?;
        self.look_at_all()?;
        Ok(changed)
    }

    fn watched(&self) -> Vec<Watched> {
        Engine::watched(self)
    }

    fn hints(&self) -> Hints {
        Engine::hints(self)
    }

    fn has_ended(&self) -> bool {
        Engine::has_ended(self)
    }

    fn keep_hold(&self) -> Result<bool, Diagnostic> {
        Engine::keep_hold(self)
    }

    fn on_end(&self, told: Box<dyn FnOnce() + Send>) {
        Engine::on_end(self, told);
    }

    fn on_agenda(&self, told: Box<dyn Fn() + Send + Sync>) {
        Engine::on_agenda(self, told);
    }

    fn definitions(&self) -> Option<Arc<Definitions>> {
        Some(Engine::definitions(self))
    }

    fn web_sessions(&self) -> Option<Arc<dyn WebSessionStore>> {
        Some(Engine::web_sessions(self))
    }

    fn join(self: Arc<Self>) -> Result<(), Diagnostic> {
        match Arc::into_inner(self) {
            Some(engine) => Engine::join(engine),
            None => Err(Diagnostic::new(
                Kind::Internal,
                "engine_in_use",
                "the engine is still being asked while it ends",
            )),
        }
    }
}

/// Starts an engine.
pub type StartEngine = Box<dyn FnOnce() -> Result<Arc<dyn Hosted>, Diagnostic> + Send>;
