//! Answers that wait for their reader: bounded, for a client that does not read may not fill the memory.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, SemaphorePermit};

/// Bytes that wait to be written before nothing more is read and answered.
const BYTES_MAX: usize = 8 * 1024 * 1024;

/// Answers about skills that are made at once, and are not counted until they are handed over.
const TURNS: usize = 8;

/// How long the last answers may take to be read.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// What has been handed over and not been written.
pub(super) struct Unwritten {
    bytes: AtomicUsize,
    /// Told whenever something was written.
    written: Notify,
    /// Whether the reader of the answers has left.
    gone: AtomicBool,
    empty: (Mutex<()>, Condvar),
    turns: Semaphore,
}

impl Unwritten {
    pub(super) fn new() -> Unwritten {
        Unwritten {
            bytes: AtomicUsize::new(0),
            written: Notify::new(),
            gone: AtomicBool::new(false),
            empty: (Mutex::new(()), Condvar::new()),
            turns: Semaphore::new(TURNS),
        }
    }

    /// Counts what is handed over.
    pub(super) fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::AcqRel);
    }

    /// Counts what is handed over no longer.
    pub(super) fn take(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::AcqRel);
    }

    /// Tells that so much was written, or that nobody reads any more.
    pub(super) fn wrote(&self, bytes: usize, is_read: bool) {
        self.take(bytes);
        self.gone.store(!is_read, Ordering::Release);
        self.written.notify_waiters();
        drop(self.empty.0.lock());
        self.empty.1.notify_all();
    }

    /// Whether nobody reads any more.
    pub(super) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    /// The next time that something was written, from this moment on.
    pub(super) fn next(&self) -> impl Future<Output = ()> + '_ {
        self.written.notified()
    }

    pub(super) fn is_full(&self) -> bool {
        self.bytes.load(Ordering::Acquire) > BYTES_MAX
    }

    /// Waits until there is space for more answers, or nobody to read them.
    pub(super) async fn space(&self) {
        loop {
            let written = self.next();
            if !self.is_full() || self.is_gone() {
                return;
            }
            written.await;
        }
    }

    /// The same, with the right to make one of those that may be large.
    pub(super) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        // It is never closed.
        let turn = self.turns.acquire().await.ok();
        self.space().await;
        turn
    }

    /// Waits until everything is written, as long as somebody reads it.
    pub(super) fn flush(&self) {
        let (lock, told) = &self.empty;
        let guard = lock.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = |(): &mut ()| !self.is_gone() && self.bytes.load(Ordering::Acquire) > 0;
        let waited = told.wait_timeout_while(guard, LAST_WORDS, waits);
        if waited.is_ok_and(|(_, timeout)| timeout.timed_out()) {
            tracing::warn!("the client did not read its last answers");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn no_answer_is_made_while_too_much_waits_for_its_reader() {
        let unwritten = Unwritten::new();
        let mut context = Context::from_waker(Waker::noop());
        unwritten.add(BYTES_MAX + 1);
        let mut first = pin!(unwritten.turn());
        assert!(first.as_mut().poll(&mut context).is_pending());
        unwritten.wrote(1, true);
        let Poll::Ready(turn) = first.as_mut().poll(&mut context) else {
            panic!("there is space");
        };
        let turns: Vec<_> = (1..TURNS)
            .map(|_| pin!(unwritten.turn()).poll(&mut context))
            .collect();
        assert!(turns.iter().all(Poll::is_ready));
        let mut next = pin!(unwritten.turn());
        assert!(next.as_mut().poll(&mut context).is_pending());
        drop(turn);
        assert!(next.as_mut().poll(&mut context).is_ready());
        // Whoever waits for a reader that has left waits no longer.
        drop(turns);
        unwritten.add(BYTES_MAX);
        let mut last = pin!(unwritten.turn());
        assert!(last.as_mut().poll(&mut context).is_pending());
        unwritten.wrote(0, false);
        assert!(last.as_mut().poll(&mut context).is_ready());
    }
}
