//! Stopping a turn from another thread.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// Stops every turn that it was passed to, at any point and at once. Clones share one flag, which is never
/// reset.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<StopState>);

#[derive(Debug, Default)]
struct StopState {
    stopped: Mutex<bool>,
    for_threads: Condvar,
    for_tasks: Notify,
}

impl Stop {
    /// A flag that is not set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops the turns.
    pub fn stop(&self) {
        *self
            .0
            .stopped
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = true;
        self.0.for_threads.notify_all();
        self.0.for_tasks.notify_waiters();
    }

    /// Whether [`stop`](Self::stop) was called.
    pub fn is_stopped(&self) -> bool {
        *self
            .0
            .stopped
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Blocks the thread for `limit`, or until stopped; returns whether it was stopped.
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

    /// Resolves when stopped.
    pub(crate) async fn stopped(&self) {
        let notified = self.0.for_tasks.notified();
        // The flag is read after registering, so that a stop in between is not missed.
        if !self.is_stopped() {
            notified.await;
        }
    }
}
