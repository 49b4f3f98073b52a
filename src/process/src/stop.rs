//! Stopping a command from another thread.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU8, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::event::{EventfdFlags, eventfd};

/// How urgently a command is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StopKind {
    /// TERM, the grace period, KILL.
    Graceful,
    /// KILL at once.
    Now,
}

/// Stops the commands it was given to, from any thread and at any time.
///
/// What was asked for stays asked for: a command that is started later with the same handle does
/// not start, and several commands may share one handle.
#[derive(Clone, Debug, Default)]
pub struct StopHandle {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    asked: AtomicU8,
    /// Readable from the first request of any kind on; made when a command first waits for it.
    any: Bell,
    /// Readable from the first request to stop now on.
    now: Bell,
    listeners: Listeners,
}

/// What is told of the first request.
#[derive(Default)]
struct Listeners(Mutex<Vec<Box<dyn FnOnce() + Send>>>);

impl fmt::Debug for Listeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listeners").finish_non_exhaustive()
    }
}

/// A descriptor that is never read from, so that every command that shares it wakes up.
#[derive(Debug, Default)]
struct Bell(OnceLock<OwnedFd>);

impl Bell {
    fn ring(&self) {
        if let Some(descriptor) = self.0.get() {
            // Adding one to a counter of 64 bits fails only when it would overflow, and then the
            // descriptor is readable already.
            let _ = rustix::io::write(descriptor, &1_u64.to_ne_bytes());
        }
    }

    fn descriptor(&self) -> io::Result<BorrowedFd<'_>> {
        if self.0.get().is_none() {
            let made = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            // Another command of the same handle may have been quicker; then its own is used.
            let _ = self.0.set(made);
        }
        let descriptor = self.0.get().map(AsFd::as_fd);
        descriptor.ok_or_else(|| io::Error::other("no descriptor to wait on"))
    }
}

impl StopHandle {
    /// A handle with which nothing has been asked for.
    pub fn new() -> Self {
        Self {
            shared: Arc::default(),
        }
    }

    /// Asks for the end; a later, weaker request changes nothing.
    pub fn stop(&self, kind: StopKind) {
        let level = match kind {
            StopKind::Graceful => 1,
            StopKind::Now => 2,
        };
        let mut listeners = self.listeners();
        // Before anything shows: whoever sees a command end by this finds that the listeners know why.
        for tell in listeners.drain(..) {
            tell();
        }
        self.shared.asked.fetch_max(level, Ordering::SeqCst);
        drop(listeners);
        // Whoever makes a bell looks at `asked` after that: one of the two sees the other.
        fence(Ordering::SeqCst);
        self.shared.any.ring();
        if kind == StopKind::Now {
            self.shared.now.ring();
        }
    }

    /// Has this done, briefly and without use of this handle, when something is asked for; at once, if it has been.
    pub fn when_asked(&self, told: Box<dyn FnOnce() + Send>) {
        let mut listeners = self.listeners();
        if self.requested().is_none() {
            listeners.push(told);
            return;
        }
        drop(listeners);
        told();
    }

    fn listeners(&self) -> MutexGuard<'_, Vec<Box<dyn FnOnce() + Send>>> {
        let listeners = &self.shared.listeners.0;
        listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The strongest kind asked for so far.
    pub fn requested(&self) -> Option<StopKind> {
        match self.shared.asked.load(Ordering::SeqCst) {
            0 => None,
            1 => Some(StopKind::Graceful),
            _ => Some(StopKind::Now),
        }
    }

    /// Makes what a command that is about to start has to wait on.
    ///
    /// # Errors
    /// No file descriptor is to be had.
    pub(super) fn prepare(&self) -> io::Result<()> {
        self.shared.any.descriptor().map(drop)
    }

    /// The descriptor that becomes readable when something stronger than `seen` is asked for. `None`:
    /// there is nothing stronger, or no descriptor to be had; then it is noticed at the end of the
    /// grace period.
    pub(super) fn wakes(&self, seen: Option<StopKind>) -> Option<BorrowedFd<'_>> {
        let bell = match seen {
            None => &self.shared.any,
            Some(StopKind::Graceful) => &self.shared.now,
            Some(StopKind::Now) => return None,
        };
        let descriptor = bell.descriptor().ok()?;
        fence(Ordering::SeqCst);
        if self.requested() > seen {
            bell.ring();
        }
        Some(descriptor)
    }
}
