//! The clocks of a zone: offsets from UTC, and the instants at which they change.

use crate::model::Zone;
use chrono::{DateTime, NaiveDateTime, Offset, TimeDelta, TimeZone};

/// Seconds of 26 hours: more than any clock was ever moved at once. No zone has changed its clocks twice
/// within three of these spans, so what is different at the ends of two of them changed exactly once.
pub(crate) const REACH: i64 = 26 * 3_600;

/// The first second of year 1 and the last of year 9999, with room for every offset.
pub(crate) const EARLIEST: i64 = -62_135_596_800 + REACH;
pub(crate) const LATEST: i64 = 253_402_300_799 - REACH;

/// An instant at which the clocks of a zone change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Change {
    /// The first second with the new offset, since the epoch.
    pub(crate) at: i64,
    /// Seconds east of UTC, before and from then on.
    pub(crate) before: i64,
    pub(crate) after: i64,
}

impl Change {
    /// Clocks go forward: local times are skipped.
    pub(crate) fn is_gap(self) -> bool {
        self.after > self.before
    }

    /// Seconds of local time that are skipped or come twice.
    pub(crate) fn length(self) -> i64 {
        (self.after - self.before).abs()
    }

    /// The local time at which the skipped or repeated span begins.
    pub(crate) fn local_start(self) -> i64 {
        self.at + self.before.min(self.after)
    }

    /// The local time after the skipped or repeated span.
    pub(crate) fn local_end(self) -> i64 {
        self.at + self.before.max(self.after)
    }
}

/// Seconds that `zone` is east of UTC at `at`.
pub(crate) fn offset(zone: Zone, at: i64) -> i64 {
    let at = utc(at);
    i64::from(zone.offset_from_utc_datetime(&at).fix().local_minus_utc())
}

/// The change in `from + 1 ..= until`, which are at most three [`REACH`] apart.
pub(crate) fn change_within(zone: Zone, from: i64, until: i64) -> Option<Change> {
    let (before, after) = (offset(zone, from), offset(zone, until));
    if before == after {
        return None;
    }
    let (mut low, mut high) = (from, until);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if offset(zone, middle) == before {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(Change {
        at: high,
        before,
        after,
    })
}

/// The calendar's reading of seconds since the epoch; beyond the years 1 to 9999 their ends.
pub(crate) fn utc(seconds: i64) -> NaiveDateTime {
    let seconds = seconds.clamp(EARLIEST - REACH, LATEST + REACH);
    let epoch = DateTime::UNIX_EPOCH.naive_utc();
    epoch
        .checked_add_signed(TimeDelta::try_seconds(seconds).unwrap_or_default())
        .unwrap_or(epoch)
}
