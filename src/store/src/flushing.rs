//! Wakes a flush of sled that waits for a write which has failed.
//!
//! sled writes the head of a batch on a thread of its own and, where that fails, notes the failure and tells
//! nobody: a flush that waits already waits for ever. Every further flush sees the failure at once, and wakes
//! all that wait. So a flush that takes long is joined by others.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use super::guard;

/// How long a flush takes before it is joined by another one; each further one comes after twice that time.
const LOOK: Duration = Duration::from_secs(1);
/// Longest time between two of them.
const LOOK_MAX: Duration = Duration::from_secs(64);

/// The thread that waits for flushes. It sleeps while there are none.
#[derive(Debug)]
pub(super) struct FlushGuard {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The flush that is under way: its number, and what it flushes.
    flushing: Option<(u64, sled::Db)>,
    flushes: u64,
    sleeps: bool,
    over: bool,
}

/// A flush that is looked after until this is dropped.
struct Flushing<'a>(&'a Shared);

impl FlushGuard {
    /// Starts the thread; without it a failure may go unnoticed, so that is told.
    pub(super) fn start() -> FlushGuard {
        let shared = Arc::new(Shared::default());
        let looking = Arc::clone(&shared);
        let started = Builder::new()
            .name("store-flush".to_owned())
            .spawn(move || looking.maintain());
        if let Err(error) = &started {
            tracing::warn!(%error, "the thread that handles failed store writes could not be started");
        }
        FlushGuard {
            shared,
            thread: started.ok(),
        }
    }

    /// Flushes; on return everything has been handed to the kernel, or a write has failed.
    pub(super) fn flush(&self, database: &sled::Db) -> sled::Result<usize> {
        let _looked_after = self.begin(database);
        database.flush()
    }

    fn begin(&self, database: &sled::Db) -> Flushing<'_> {
        let mut state = self.shared.lock();
        state.flushes += 1;
        state.flushing = Some((state.flushes, database.clone()));
        if state.sleeps {
            self.shared.changed.notify_one();
        }
        Flushing(&self.shared)
    }
}

impl Drop for Flushing<'_> {
    fn drop(&mut self) {
        self.0.lock().flushing = None;
    }
}

impl Drop for FlushGuard {
    fn drop(&mut self) {
        self.shared.lock().over = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // It only looks: there is nothing to learn from how it ended.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn maintain(&self) {
        let (mut last, mut patience) = (0, LOOK);
        let mut state = self.lock();
        while !state.over {
            let Some((now, _)) = &state.flushing else {
                state.sleeps = true;
                let woken = self.changed.wait(state);
                state = woken.unwrap_or_else(PoisonError::into_inner);
                state.sleeps = false;
                continue;
            };
            if *now != last {
                (last, patience) = (*now, LOOK);
            }
            let waited = self.changed.wait_timeout(state, patience);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if let Some((now, database)) = &state.flushing
                && *now == last
            {
                join_in(database.clone());
                patience = (patience * 2).min(LOOK_MAX);
            }
        }
    }
}

/// One more flush, on a thread of its own because it waits as well where nothing has failed.
fn join_in(database: sled::Db) {
    let joining = Builder::new()
        .name("store-flush".to_owned())
        .spawn(move || {
            // The flush that is looked after is told the same.
            let _ = guard::catch_panics(|| drop(database.flush()));
        });
    if let Err(error) = joining {
        tracing::warn!(%error, "a flush that takes long could not be looked after");
    }
}
