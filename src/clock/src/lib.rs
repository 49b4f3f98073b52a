//! Wall and monotonic time, and the fake one: the only place that reads a clock.

use workerctl_core::model;

pub mod zones;

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::model::Timestamp;

/// Two clocks: the wall's, which may step, and a monotonic one.
pub trait Clock: Send + Sync {
    /// The wall clock.
    fn now(&self) -> Timestamp;
    /// Milliseconds since some fixed instant of this process; never steps.
    fn monotonic_ms(&self) -> u64;
}

/// The machine's clocks.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
}

impl Default for SystemClock {
    fn default() -> SystemClock {
        SystemClock {
            start: Instant::now(),
        }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let now = SystemTime::now();
        let millis = match now.duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
            Err(before) => -i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX),
        };
        Timestamp::from_millis(millis)
    }

    fn monotonic_ms(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// A clock that stands still until it is told otherwise.
#[derive(Debug, Default)]
pub struct FakeClock {
    wall_ms: AtomicI64,
    monotonic_ms: AtomicU64,
}

impl FakeClock {
    /// A clock that shows `at`.
    pub fn at(at: Timestamp) -> FakeClock {
        FakeClock {
            wall_ms: AtomicI64::new(at.millis()),
            monotonic_ms: AtomicU64::new(0),
        }
    }

    /// Lets time pass on both clocks.
    pub fn advance(&self, millis: u64) {
        self.wall_ms
            .fetch_add(i64::try_from(millis).unwrap_or(i64::MAX), Ordering::SeqCst);
        self.monotonic_ms.fetch_add(millis, Ordering::SeqCst);
    }

    /// Steps the wall clock alone.
    pub fn step(&self, millis: i64) {
        self.wall_ms.fetch_add(millis, Ordering::SeqCst);
    }
}

impl Clock for FakeClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.wall_ms.load(Ordering::SeqCst))
    }

    fn monotonic_ms(&self) -> u64 {
        self.monotonic_ms.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_moves_the_wall_alone() {
        let clock = FakeClock::at(Timestamp::from_millis(1_000));
        clock.step(-500);
        clock.advance(20);
        assert_eq!((clock.now().millis(), clock.monotonic_ms()), (520, 20));
    }

    #[test]
    fn the_machine_has_a_present() {
        let clock = SystemClock::default();
        assert!(clock.now() > Timestamp::from_millis(1_700_000_000_000));
        assert!(clock.monotonic_ms() < 60_000);
    }
}
