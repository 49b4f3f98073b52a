//! Wall and monotonic time, and the fake one: the only place that reads a clock.

use workerctl_core::model;

pub mod zones;

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::model::Timestamp;
pub use workerctl_core::retention::BootTime;

/// Two clocks: the wall's, which may step, and a monotonic one.
pub trait Clock: Send + Sync {
    /// The wall clock.
    fn now(&self) -> Timestamp;
    /// Milliseconds since some fixed instant of this process; never steps.
    fn monotonic_ms(&self) -> u64;
    /// The time since the machine's start, sleep included; without an id if the machine does not say.
    fn boot(&self) -> BootTime;
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

    fn boot(&self) -> BootTime {
        let read = std::fs::read_to_string;
        let id = read("/proc/sys/kernel/random/boot_id").map(|id| id.trim().to_owned());
        // Seconds with two decimals, by a clock that goes on while the machine sleeps.
        let uptime = read("/proc/uptime").ok();
        let ms = uptime.as_deref().and_then(|text| {
            let (seconds, rest) = text.split_once('.')?;
            let hundredths = rest.get(..2)?.parse::<u64>().ok()?;
            let seconds = seconds.parse::<u64>().ok()?;
            seconds.checked_mul(1_000)?.checked_add(hundredths * 10)
        });
        match (id, ms) {
            (Ok(id), Some(ms)) => BootTime { id, ms },
            _ => BootTime::default(),
        }
    }
}

/// A clock that stands still until it is told otherwise.
#[derive(Debug, Default)]
pub struct FakeClock {
    wall_ms: AtomicI64,
    monotonic_ms: AtomicU64,
    boot_id: String,
}

impl FakeClock {
    /// A clock that shows `at`.
    pub fn at(at: Timestamp) -> FakeClock {
        static BOOTS: AtomicU64 = AtomicU64::new(1);
        FakeClock {
            wall_ms: AtomicI64::new(at.millis()),
            monotonic_ms: AtomicU64::new(0),
            boot_id: format!("boot {}", BOOTS.fetch_add(1, Ordering::Relaxed)),
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

    fn boot(&self) -> BootTime {
        BootTime {
            id: self.boot_id.clone(),
            ms: self.monotonic_ms(),
        }
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
        let (boot, later) = (clock.boot(), clock.boot());
        assert!(boot.id.len() == 36 && boot.ms > 0, "{boot:?}");
        assert!(later.id == boot.id && later.ms >= boot.ms);
    }
}
