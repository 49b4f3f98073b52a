//! Whether the wall clock may be used to delete what has expired.
//!
//! A clock that is a year ahead for half a minute, as before the first answer of a time server, must not delete a
//! year of history. So what expires does so by [`Observation::expiry`], which goes on as fast as the clock of the
//! machine's boot says, and follows the wall clock across a jump only after that has been steady for a day.

use serde::{Deserialize, Serialize};

use crate::model::Timestamp;

const DAY_MS: u64 = 24 * 3_600_000;

/// Longest time that the machine may have been off without the wall clock being doubted, in milliseconds. It is also
/// how far one sweep goes at most towards a wall clock that is believed again.
pub const STEP_MS_MAX: u64 = 7 * DAY_MS;

/// How long a wall clock that has jumped has to be steady until it is believed, in milliseconds.
pub const STEADY_MS: u64 = DAY_MS;

/// By how much the wall clock may differ from the clock of the boot: corrections of that size are common.
const TOLERANCE_MS: u64 = 5 * 60_000;

/// Part of the time between two sweeps that may be added to the tolerance: a thousandth.
const DRIFT_PART: u64 = 1_000;

/// One sweep goes at least this part of the way to a wall clock that is believed again.
const WAY_PARTS: u64 = 16;

/// The machine's time since its start, sleep included.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BootTime {
    /// Which start of the machine; empty if that is not known.
    pub id: String,
    /// Milliseconds since then.
    pub ms: u64,
}

/// What a sweep has recorded of the clocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockRecord {
    /// The wall clock at the last sweep.
    pub swept_at: Timestamp,
    /// The time since the machine's start then.
    #[serde(default)]
    pub boot: BootTime,
    /// Since when the wall clock has not jumped.
    pub steady_since: Timestamp,
    /// Whether it jumped then and has not been steady for long enough.
    #[serde(default)]
    pub is_doubted: bool,
    /// By which time things had expired.
    pub expiry: Timestamp,
}

/// Both clocks, compared with what the last sweep recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observation {
    /// Since when the wall clock has not jumped.
    pub steady_since: Timestamp,
    /// Whether it jumped then and has not been steady for long enough.
    pub is_doubted: bool,
    /// By which time things expire; never later than the wall clock.
    pub expiry: Timestamp,
}

impl ClockRecord {
    /// Something was recorded at that time, and nothing is known of a jump.
    pub fn at(time: Timestamp) -> ClockRecord {
        ClockRecord {
            swept_at: time,
            boot: BootTime::default(),
            steady_since: time,
            is_doubted: false,
            expiry: time,
        }
    }

    /// Compares the clocks with this record.
    pub fn observe(&self, wall: Timestamp, boot: &BootTime) -> Observation {
        let passed = (!boot.id.is_empty() && boot.id == self.boot.id)
            .then(|| boot.ms.checked_sub(self.boot.ms))
            .flatten();
        let has_jumped = match passed {
            Some(passed) => {
                let expected = self.swept_at.plus_millis(passed);
                let differs = wall.millis_since(expected).max(expected.millis_since(wall));
                differs > TOLERANCE_MS.saturating_add(passed / DRIFT_PART)
            }
            None => wall < self.swept_at || wall.millis_since(self.swept_at) > STEP_MS_MAX,
        };
        let steady_since = if has_jumped { wall } else { self.steady_since };
        let is_young = wall.millis_since(steady_since) < STEADY_MS;
        let expiry = if has_jumped {
            self.expiry.plus_millis(passed.unwrap_or(0))
        } else {
            self.expiry.plus_millis(wall.millis_since(self.swept_at))
        };
        Observation {
            steady_since,
            is_doubted: (has_jumped || self.is_doubted) && is_young,
            expiry: expiry.min(wall),
        }
    }

    /// Compares the clocks for a sweep, which also brings the time of expiry closer to a wall clock that is believed
    /// again. `newest` is the newest instant on record: a wall clock before it is doubted as well.
    #[must_use]
    pub fn sweep(&self, wall: Timestamp, boot: BootTime, newest: Option<Timestamp>) -> ClockRecord {
        let mut seen = self.observe(wall, &boot);
        let is_young = wall.millis_since(seen.steady_since) < STEADY_MS;
        seen.is_doubted |= is_young && newest.is_some_and(|newest| newest > wall);
        let mut expiry = seen.expiry;
        if seen.is_doubted {
            // A wall clock that is set back for a moment does not undo what has passed.
            expiry = expiry.max(self.expiry);
        } else {
            let behind = wall.millis_since(expiry);
            expiry = expiry.plus_millis(behind.min(STEP_MS_MAX.max(behind / WAY_PARTS)));
        }
        ClockRecord {
            swept_at: wall,
            boot,
            steady_since: seen.steady_since,
            is_doubted: seen.is_doubted,
            expiry,
        }
    }

    /// Returns the record of a wall clock that a person vouches for.
    pub fn trusted(wall: Timestamp, boot: BootTime) -> ClockRecord {
        ClockRecord {
            boot,
            ..ClockRecord::at(wall)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE_MS: u64 = 60_000;

    /// Clocks that tests set, and the record of the last sweep.
    struct Rig {
        wall: Timestamp,
        boot: BootTime,
        record: ClockRecord,
    }

    impl Rig {
        fn new() -> Rig {
            let wall = Timestamp::from_millis(1_900_000_000_000);
            let boot = BootTime {
                id: "first".to_owned(),
                ms: 1_000,
            };
            Rig {
                wall,
                record: ClockRecord::trusted(wall, boot.clone()),
                boot,
            }
        }

        fn pass(&mut self, millis: u64) {
            self.wall = self.wall.plus_millis(millis);
            self.boot.ms += millis;
        }

        fn sweep(&mut self) -> ClockRecord {
            self.record = self.record.sweep(self.wall, self.boot.clone(), None);
            self.record.clone()
        }

        fn expiry(&self) -> Timestamp {
            self.record.observe(self.wall, &self.boot).expiry
        }

        /// Starts the machine again after so long, with a clock that is ahead by so much.
        fn boot(&mut self, off_ms: u64) {
            self.wall = self.wall.plus_millis(off_ms);
            self.boot = BootTime {
                id: format!("{}+", self.boot.id),
                ms: 500,
            };
        }
    }

    #[test]
    fn things_expire_by_a_steady_wall_clock() {
        let mut rig = Rig::new();
        for _ in 0..100 {
            rig.pass(DAY_MS);
            assert_eq!(rig.expiry(), rig.wall);
            assert!(!rig.sweep().is_doubted);
            // Small corrections, both ways.
            rig.wall = rig.wall.plus_millis(MINUTE_MS);
            rig.pass(DAY_MS);
            rig.wall = rig.wall.minus_millis(2 * MINUTE_MS);
            assert!(!rig.sweep().is_doubted);
            assert_eq!(rig.record.expiry, rig.wall);
        }
    }

    #[test]
    fn a_clock_that_is_ahead_for_a_moment_expires_nothing_at_any_moment() {
        for reboots in [false, true] {
            let mut rig = Rig::new();
            rig.pass(DAY_MS);
            rig.sweep();
            if reboots {
                rig.boot(MINUTE_MS);
            }
            let (before, ahead) = (rig.wall, 365 * DAY_MS);
            rig.wall = rig.wall.plus_millis(ahead);
            rig.pass(MINUTE_MS / 2);
            let limit = before.plus_millis(MINUTE_MS);
            assert!(rig.expiry() <= limit);
            assert!(rig.sweep().is_doubted);
            assert!(rig.record.expiry <= limit);
            rig.wall = rig.wall.minus_millis(ahead);
            rig.pass(MINUTE_MS);
            assert!(rig.sweep().is_doubted);
            assert!(rig.expiry() <= rig.wall);
            // After a day things expire as ever.
            rig.pass(DAY_MS);
            assert!(!rig.sweep().is_doubted);
            assert_eq!(rig.record.expiry, rig.wall);
        }
    }

    #[test]
    fn a_clock_that_stays_ahead_is_believed_after_a_day_and_followed_step_by_step() {
        let mut rig = Rig::new();
        rig.wall = rig.wall.plus_millis(30 * DAY_MS);
        assert!(rig.sweep().is_doubted);
        rig.pass(DAY_MS - 1);
        assert!(rig.sweep().is_doubted);
        rig.pass(1);
        let mut before = rig.record.expiry;
        let mut steps = 0;
        while rig.sweep().expiry < rig.wall {
            assert!(!rig.record.is_doubted);
            assert!(rig.record.expiry.millis_since(before) <= STEP_MS_MAX + DAY_MS);
            before = rig.record.expiry;
            rig.pass(DAY_MS);
            steps += 1;
        }
        assert!((3..=5).contains(&steps), "{steps}");
    }

    #[test]
    fn a_machine_that_was_off_is_believed_at_once_up_to_a_week() {
        let mut rig = Rig::new();
        rig.boot(STEP_MS_MAX);
        assert_eq!(rig.expiry(), rig.wall);
        assert!(!rig.sweep().is_doubted);
        rig.boot(STEP_MS_MAX + 1);
        let before = rig.record.expiry;
        assert_eq!(rig.expiry(), before);
        assert!(rig.sweep().is_doubted);
        // It is started each day, and never on for long.
        rig.boot(DAY_MS);
        assert!(!rig.sweep().is_doubted);
    }

    #[test]
    fn a_clock_that_was_set_back_expires_nothing_and_loses_no_way() {
        let mut rig = Rig::new();
        let before = rig.wall;
        rig.boot(0);
        rig.wall = Timestamp::from_millis(0);
        assert_eq!(rig.expiry(), rig.wall);
        assert!(rig.sweep().is_doubted);
        rig.wall = before.plus_millis(MINUTE_MS);
        rig.sweep();
        rig.pass(DAY_MS);
        assert!(!rig.sweep().is_doubted);
        assert_eq!(rig.record.expiry, rig.wall);
    }

    #[test]
    fn a_clock_before_the_newest_record_is_doubted_for_a_day() {
        let mut rig = Rig::new();
        let newest = Some(rig.wall.plus_millis(300 * DAY_MS));
        let sweep = |rig: &Rig| rig.record.sweep(rig.wall, rig.boot.clone(), newest);
        assert!(sweep(&rig).is_doubted);
        rig.pass(STEADY_MS);
        let record = sweep(&rig);
        assert!(!record.is_doubted);
        assert_eq!(record.expiry, rig.wall);
    }

    #[test]
    fn far_away_times_are_reached_some_time() {
        let mut rig = Rig::new();
        rig.record = ClockRecord::at(Timestamp::from_millis(0));
        rig.sweep();
        rig.pass(DAY_MS);
        let mut days = 0;
        while rig.sweep().expiry < rig.wall {
            rig.pass(DAY_MS);
            days += 1;
        }
        assert!(days < 200, "{days}");
    }
}
