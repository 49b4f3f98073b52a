//! Ending a turn from another thread.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// Ends the turns that it was given to, at any point and at once. Clones are the same switch, which is
/// never reset.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<Switch>);

#[derive(Debug, Default)]
struct Switch {
    stopped: Mutex<bool>,
    for_threads: Condvar,
    for_tasks: Notify,
}

impl Stop {
    /// A switch that is not pulled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends them.
    pub fn stop(&self) {
        *self
            .0
            .stopped
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = true;
        self.0.for_threads.notify_all();
        self.0.for_tasks.notify_waiters();
    }

    /// Whether it was pulled.
    pub fn is_stopped(&self) -> bool {
        *self
            .0
            .stopped
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Blocks the thread until it is pulled, for `limit` at most; whether it was pulled.
    pub fn wait(&self, limit: Duration) -> bool {
        let end = Instant::now().checked_add(limit);
        let mut stopped = self
            .0
            .stopped
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        while !*stopped {
            let left = end.map_or(limit, |end| end.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                break;
            }
            stopped = self
                .0
                .for_threads
                .wait_timeout(stopped, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        *stopped
    }

    /// Resolves when it is pulled.
    pub(crate) async fn stopped(&self) {
        let notified = self.0.for_tasks.notified();
        // The flag is read after registering, so that a stop in between is not missed.
        if !self.is_stopped() {
            notified.await;
        }
    }
}
