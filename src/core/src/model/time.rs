//! Instants of the wall clock as data; reading a clock is another room's work.

use std::fmt;
use std::num::NonZeroU64;

use super::Zone;
use chrono::{DateTime, SecondsFormat, TimeZone, Utc};
use serde::{Deserialize, Serialize};

/// An instant of the wall clock in milliseconds since 1970-01-01T00:00:00Z.
///
/// In JSON it is RFC 3339 in UTC with milliseconds; a bare number of milliseconds is read, too. There may be very many
/// that are absent: the number is moved above zero, so that `Option` takes no room.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(NonZeroU64);

impl Timestamp {
    /// From milliseconds since the epoch; the least number there is counts as the next one.
    pub const fn from_millis(millis: i64) -> Timestamp {
        let moved = millis.cast_unsigned() ^ (1 << 63);
        Timestamp(NonZeroU64::MIN.saturating_add(moved.saturating_sub(1)))
    }

    /// Milliseconds since the epoch.
    pub const fn millis(self) -> i64 {
        (self.0.get() ^ (1 << 63)).cast_signed()
    }

    /// Milliseconds from `earlier` to `self`, zero when the clock stepped back.
    pub fn millis_since(self, earlier: Timestamp) -> u64 {
        u64::try_from(self.millis().saturating_sub(earlier.millis())).unwrap_or(0)
    }

    /// This instant moved by `millis`, saturating.
    #[must_use]
    pub fn plus_millis(self, millis: u64) -> Timestamp {
        let millis = i64::try_from(millis).unwrap_or(i64::MAX);
        Timestamp::from_millis(self.millis().saturating_add(millis))
    }

    /// The millisecond before this instant, saturating.
    #[must_use]
    pub const fn just_before(self) -> Timestamp {
        Timestamp::from_millis(self.millis().saturating_sub(1))
    }

    /// So many milliseconds earlier.
    #[must_use]
    pub fn minus_millis(self, millis: u64) -> Timestamp {
        let millis = i64::try_from(millis).unwrap_or(i64::MAX);
        Timestamp::from_millis(self.millis().saturating_sub(millis))
    }

    /// RFC 3339 in UTC with milliseconds.
    pub fn rfc3339(self) -> String {
        self.utc().to_rfc3339_opts(SecondsFormat::Millis, true)
    }

    /// RFC 3339 in `zone` with seconds and the zone's offset.
    pub fn rfc3339_in(self, zone: Zone) -> String {
        self.utc()
            .with_timezone(&zone)
            .to_rfc3339_opts(SecondsFormat::Secs, false)
    }

    /// As mails have it (RFC 5322), in UTC.
    pub fn rfc2822(self) -> String {
        self.utc().format("%a, %d %b %Y %H:%M:%S +0000").to_string()
    }

    /// `YYYYMMDD-HHMMSS` in UTC.
    pub fn utc_compact(self) -> String {
        self.utc().format("%Y%m%d-%H%M%S").to_string()
    }

    /// The hour of UTC in which it lies: `2026-11-25T05`.
    pub fn hour(self) -> String {
        let mut text = self.rfc3339();
        text.truncate("2026-11-25T05".len());
        text
    }

    /// `YYYY-MM-DD` in `zone`.
    pub fn date_in(self, zone: Zone) -> String {
        self.utc()
            .with_timezone(&zone)
            .format("%Y-%m-%d")
            .to_string()
    }

    /// `HHMMSS` in `zone`, safe in a file name.
    pub fn time_in(self, zone: Zone) -> String {
        self.utc().with_timezone(&zone).format("%H%M%S").to_string()
    }

    /// Offset of `zone` from UTC at this instant, in minutes east.
    pub fn offset_minutes_in(self, zone: Zone) -> i32 {
        use chrono::Offset;
        self.utc()
            .with_timezone(&zone)
            .offset()
            .fix()
            .local_minus_utc()
            / 60
    }

    /// Reads RFC 3339, or a date, or a date with time in UTC.
    pub fn parse(text: &str) -> Option<Timestamp> {
        if let Ok(full) = DateTime::parse_from_rfc3339(text) {
            return Some(Timestamp::from_millis(full.timestamp_millis()));
        }
        let naive = chrono::NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S")
            .or_else(|_| chrono::NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S"))
            .or_else(|_| chrono::NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M"))
            .ok()
            .or_else(|| {
                chrono::NaiveDate::parse_from_str(text, "%Y-%m-%d")
                    .ok()?
                    .and_hms_opt(0, 0, 0)
            })?;
        Some(Timestamp::from_millis(naive.and_utc().timestamp_millis()))
    }

    fn utc(self) -> DateTime<Utc> {
        let seconds = self.millis().div_euclid(1_000);
        let nanos = u32::try_from(self.millis().rem_euclid(1_000)).unwrap_or(0) * 1_000_000;
        Utc.timestamp_opt(seconds, nanos)
            .single()
            .unwrap_or(DateTime::<Utc>::MAX_UTC)
    }
}

impl Default for Timestamp {
    fn default() -> Timestamp {
        Timestamp::from_millis(0)
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Timestamp").field(&self.millis()).finish()
    }
}

impl Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        struct Instant;
        impl serde::de::Visitor<'_> for Instant {
            type Value = Timestamp;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an instant in RFC 3339")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Timestamp, E> {
                Timestamp::parse(text).ok_or_else(|| E::custom("not an instant in RFC 3339"))
            }

            fn visit_i64<E: serde::de::Error>(self, millis: i64) -> Result<Timestamp, E> {
                Ok(Timestamp::from_millis(millis))
            }

            fn visit_u64<E: serde::de::Error>(self, millis: u64) -> Result<Timestamp, E> {
                i64::try_from(millis)
                    .map(Timestamp::from_millis)
                    .map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Instant)
    }
}

impl schemars::JsonSchema for Timestamp {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Timestamp".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "format": "date-time",
            "description": "An instant, RFC 3339 in UTC with milliseconds."
        })
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.rfc3339())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc3339_round_trips() {
        let at = Timestamp::from_millis(1_795_203_296_789);
        assert_eq!(Timestamp::parse(&at.rfc3339()), Some(at));
        assert_eq!(
            Timestamp::parse("2026-01-01").map(Timestamp::millis),
            Some(1_767_225_600_000)
        );
    }

    #[test]
    fn an_absent_instant_takes_no_room_and_the_order_is_that_of_numbers() {
        assert_eq!(size_of::<Option<Timestamp>>(), 8);
        let numbers = [i64::MIN + 1, -1, 0, 1, 1_795_203_296_789, i64::MAX];
        let instants = numbers.map(Timestamp::from_millis);
        assert!(instants.is_sorted());
        assert_eq!(instants.map(Timestamp::millis), numbers);
        assert_eq!(Timestamp::from_millis(i64::MIN), instants[0]);
        assert_eq!(Timestamp::default().millis(), 0);
    }

    #[test]
    fn no_instant_panics() {
        for millis in [i64::MIN, -1, 0, i64::MAX] {
            let at = Timestamp::from_millis(millis);
            assert!(!at.rfc3339().is_empty());
            assert!(
                !at.date_in(Zone::compiled_in("Europe/Berlin").unwrap())
                    .is_empty()
            );
        }
    }

    #[test]
    fn a_clock_that_steps_back_yields_no_negative_span() {
        let (early, late) = (Timestamp::from_millis(5), Timestamp::from_millis(9));
        assert_eq!(early.millis_since(late), 0);
        assert_eq!(late.millis_since(early), 4);
    }
}
