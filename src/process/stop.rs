//! Stopping a command from another thread.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

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
#[derive(Clone, Debug)]
pub struct StopHandle {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    asked: AtomicU8,
    /// Readable from the first request of any kind on. Never read from, so that every command
    /// that shares the handle wakes up.
    any: OwnedFd,
    /// Readable from the first request to stop now on.
    now: OwnedFd,
}

impl StopHandle {
    /// A handle with which nothing has been asked for.
    ///
    /// # Errors
    /// No file descriptor is to be had.
    pub fn new() -> io::Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let shared = Shared {
            asked: AtomicU8::new(0),
            any: eventfd(0, flags)?,
            now: eventfd(0, flags)?,
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Asks for the end; a later, weaker request changes nothing.
    pub fn stop(&self, kind: StopKind) {
        let level = match kind {
            StopKind::Graceful => 1,
            StopKind::Now => 2,
        };
        self.shared.asked.fetch_max(level, Ordering::SeqCst);
        // Adding one to a counter of 64 bits fails only when it would overflow, and then the
        // descriptor is readable already.
        let one = 1_u64.to_ne_bytes();
        let _ = rustix::io::write(&self.shared.any, &one);
        if kind == StopKind::Now {
            let _ = rustix::io::write(&self.shared.now, &one);
        }
    }

    /// The strongest kind asked for so far.
    pub fn requested(&self) -> Option<StopKind> {
        match self.shared.asked.load(Ordering::SeqCst) {
            0 => None,
            1 => Some(StopKind::Graceful),
            _ => Some(StopKind::Now),
        }
    }

    /// The descriptor that becomes readable when something stronger than `seen` is asked for.
    pub(super) fn wakes(&self, seen: Option<StopKind>) -> Option<BorrowedFd<'_>> {
        match seen {
            None => Some(self.shared.any.as_fd()),
            Some(StopKind::Graceful) => Some(self.shared.now.as_fd()),
            Some(StopKind::Now) => None,
        }
    }
}
