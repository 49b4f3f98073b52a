//! The time by which things expire, across engines: the wall clock, unless it has jumped.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::clock::Clock;
use crate::model::Timestamp;
use crate::retention::{BootTime, ClockRecord, Observation};
use crate::store::{Durability, write_atomically};

/// How often is looked for what has expired.
pub(super) const SWEEP_MS: u64 = 24 * 3_600_000;

/// The file of the state directory that holds what the last sweep saw of the clocks.
const FILE: &str = "forgotten";

/// Milliseconds by which both monotonic clocks may differ before the machine is asked again: it slept meanwhile.
const SLEEP_MS_MIN: u64 = 1_000;

/// Decides by which time things expire.
pub(super) struct Expiry {
    clock: Arc<dyn Clock>,
    path: PathBuf,
    state: Mutex<State>,
}

struct State {
    record: ClockRecord,
    /// Whether any engine has swept here.
    has_swept: bool,
    /// When the machine was last asked for the time since its start, and what it answered.
    boot: BootTime,
    monotonic_ms: u64,
}

impl Expiry {
    /// Reads what the last sweep recorded in this state directory; `newest` is the newest instant on record.
    pub(super) fn open(
        state_dir: &Path,
        clock: Arc<dyn Clock>,
        newest: Option<Timestamp>,
    ) -> Expiry {
        let path = state_dir.join(FILE);
        let recorded = std::fs::read_to_string(&path).ok().and_then(|text| {
            // Earlier versions wrote the time alone.
            let of_earlier = || Timestamp::parse(text.trim()).map(ClockRecord::at);
            serde_json::from_str(&text).ok().or_else(of_earlier)
        });
        let boot = clock.boot();
        let has_swept = recorded.is_some();
        let record = recorded.unwrap_or_else(|| match newest {
            Some(newest) => ClockRecord::at(newest),
            None => ClockRecord::trusted(clock.now(), boot.clone()),
        });
        let monotonic_ms = clock.monotonic_ms();
        Expiry {
            clock,
            path,
            state: Mutex::new(State {
                record,
                has_swept,
                boot,
                monotonic_ms,
            }),
        }
    }

    /// Returns the time by which things expire; never later than the wall clock.
    pub(super) fn now(&self) -> Timestamp {
        self.observe().expiry
    }

    /// Whether the wall clock has jumped and is not believed again yet.
    pub(super) fn is_doubted(&self) -> bool {
        self.observe().is_doubted
    }

    fn observe(&self) -> Observation {
        let mut state = self.lock();
        let wall = self.clock.now();
        let passed = self.clock.monotonic_ms().saturating_sub(state.monotonic_ms);
        let guess = BootTime {
            id: state.boot.id.clone(),
            ms: state.boot.ms.saturating_add(passed),
        };
        let seen = state.record.observe(wall, &guess);
        if wall.millis_since(seen.expiry) < SLEEP_MS_MIN {
            return seen;
        }
        // The monotonic clock of the process stands still while the machine sleeps.
        (state.boot, state.monotonic_ms) = (self.clock.boot(), self.clock.monotonic_ms());
        state.record.observe(wall, &state.boot)
    }

    /// Whether a day has passed since the last sweep of whichever engine.
    pub(super) fn is_sweep_due(&self) -> bool {
        let (state, now) = (self.lock(), self.clock.now());
        let swept_at = state.record.swept_at;
        // A clock that was set back is no reason to wait for it.
        !state.has_swept || swept_at > now || now.millis_since(swept_at) >= SWEEP_MS
    }

    /// Compares the clocks for a sweep; `trusts` if a person vouches for the wall clock.
    pub(super) fn sweep(&self, newest: Option<Timestamp>, trusts: bool) -> ClockRecord {
        let (wall, boot) = (self.clock.now(), self.clock.boot());
        if trusts {
            return ClockRecord::trusted(wall, boot);
        }
        self.lock().record.sweep(wall, boot, newest)
    }

    /// Records a sweep that was made, for this engine and later ones.
    pub(super) fn swept(&self, record: ClockRecord) {
        let text = serde_json::to_vec(&record).unwrap_or_default();
        let written = write_atomically(&self.path, &text, 0o600, Durability::Process);
        if let Err(error) = written {
            tracing::warn!(%error, "the time of the retention sweep could not be stored: the next engine repeats the sweep");
        }
        let mut state = self.lock();
        (state.record, state.has_swept) = (record, true);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::FakeClock;

    const DAY_MS: u64 = 24 * 3_600_000;

    fn start() -> Timestamp {
        Timestamp::from_millis(1_900_000_000_000)
    }

    #[test]
    fn what_an_earlier_version_recorded_is_read() {
        let directory = xtest::tempdir();
        let text = format!("{}\n", start().rfc3339());
        std::fs::write(directory.path().join(FILE), text).unwrap();
        let clock = Arc::new(FakeClock::at(start().plus_millis(DAY_MS - 1)));
        let open = || Expiry::open(directory.path(), Arc::clone(&clock) as Arc<dyn Clock>, None);
        assert!(!open().is_sweep_due());
        clock.advance(1);
        assert!(open().is_sweep_due());
        assert!(!open().is_doubted());
        assert_eq!(open().now(), clock.now());
        clock.step(i64::try_from(30 * DAY_MS).unwrap());
        assert!(open().is_doubted());
        assert_eq!(open().now(), start());
    }

    #[test]
    fn a_jump_is_known_to_the_next_engine() {
        let directory = xtest::tempdir();
        let clock = Arc::new(FakeClock::at(start()));
        let open = || Expiry::open(directory.path(), Arc::clone(&clock) as Arc<dyn Clock>, None);
        let first = open();
        first.swept(first.sweep(None, false));
        clock.advance(60_000);
        clock.step(i64::try_from(365 * DAY_MS).unwrap());
        for expiry in [first, open()] {
            assert_eq!(expiry.now(), start().plus_millis(60_000));
            assert!(expiry.is_sweep_due() && expiry.is_doubted());
            assert!(expiry.sweep(None, false).is_doubted);
            assert!(!expiry.sweep(None, true).is_doubted);
        }
    }
}
