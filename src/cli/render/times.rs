//! Instants, spans and sizes for people, and instants as people write them.

use chrono::{NaiveDate, NaiveDateTime, NaiveTime, TimeZone};

use crate::model::duration::{DurationError, parse_millis};
use crate::model::{Diagnostic, Kind, Timestamp, Zone};

pub(crate) use crate::model::size::show_bytes as bytes;

/// Longest stretch of local times that a zone has skipped, in minutes: a day.
const GAP_MINUTES_MAX: i64 = 24 * 60;

/// `2026-11-20 20:18:03` in `zone`; the zone itself stands in the title or beside it.
pub(crate) fn instant(at: Timestamp, zone: Zone) -> String {
    let time = at.time_in(zone);
    match (time.get(..2), time.get(2..4), time.get(4..)) {
        (Some(hours), Some(minutes), Some(seconds)) => {
            format!("{} {hours}:{minutes}:{seconds}", at.date_in(zone))
        }
        _ => at.rfc3339(),
    }
}

/// `20:18:03.120` in `zone`.
pub(crate) fn clock_time(at: Timestamp, zone: Zone) -> String {
    let full = instant(at, zone);
    let time = full.split_once(' ').map_or(full.as_str(), |(_, time)| time);
    format!("{time}.{:03}", at.millis().rem_euclid(1_000))
}

/// The zone of that name, UTC where there is none.
pub(crate) fn zone(name: &str) -> Zone {
    name.parse().unwrap_or(Zone::UTC)
}

/// Reads `now`, `2h` (so long ago), `2026-11-20`, `2026-11-20T09:00` (in `zone`) or RFC 3339.
///
/// `option` is named if the text cannot be read.
pub(crate) fn parse_instant(
    option: &str,
    text: &str,
    now: Timestamp,
    zone: Zone,
) -> Result<Timestamp, Diagnostic> {
    if text == "now" {
        return Ok(now);
    }
    let span = parse_millis(text);
    if let Ok((millis, _)) = span {
        let millis = i64::try_from(millis).unwrap_or(i64::MAX);
        return Ok(Timestamp::from_millis(now.millis().saturating_sub(millis)));
    }
    if let Some(local) = parse_local(text) {
        // In the hour that a zone skips there is no such local time: the first one after it is meant.
        let mut later =
            (0..=GAP_MINUTES_MAX).map(|minutes| local + chrono::Duration::minutes(minutes));
        let found = later.find_map(|local| zone.from_local_datetime(&local).earliest());
        let instant = found.map_or_else(
            || local.and_utc().timestamp_millis(),
            |found| found.timestamp_millis(),
        );
        return Ok(Timestamp::from_millis(instant));
    }
    chrono::DateTime::parse_from_rfc3339(text)
        .map(|full| Timestamp::from_millis(full.timestamp_millis()))
        .map_err(|_| {
            let message = match span {
                Err(DurationError::TooLong) => format!("`{text}`: {}", DurationError::TooLong),
                _ => format!("`{option} {text}` cannot be read"),
            };
            Diagnostic::new(Kind::Usage, "bad_instant", message).hint(
                "give a duration (`2h`, `3d`), a date (`2026-11-20`) or a time (`2026-11-20T09:00`, `2026-11-20T09:00:00Z`)",
            )
        })
}

/// Reads a time that is still to come: `18:00` (the next one in `zone`), `2026-12-24T18:00` or RFC 3339.
pub(crate) fn parse_future(
    text: &str,
    now: Timestamp,
    zone: Zone,
) -> Result<Timestamp, Diagnostic> {
    let refuse = |why: &str| {
        Diagnostic::new(Kind::Usage, "bad_instant", format!("`{text}` {why}")).hint(
            "examples: `18:00`, `2026-12-24T18:00`, `2026-12-24T18:00:00Z`; `--in 2h` for a span",
        )
    };
    let instant = |local: NaiveDateTime| {
        let found = zone.from_local_datetime(&local).earliest();
        found.map(|found| Timestamp::from_millis(found.timestamp_millis()))
    };
    let time = ["%H:%M", "%H:%M:%S"]
        .iter()
        .find_map(|form| NaiveTime::parse_from_str(text, form).ok());
    let today = zone.timestamp_millis_opt(now.millis()).single();
    let at = if let (Some(time), Some(today)) = (time, today) {
        let days = today.date_naive().iter_days().take(3);
        let mut times = days.filter_map(|day| instant(day.and_time(time)));
        times.find(|at| *at > now)
    } else if let Some(local) = parse_local(text) {
        let skipped = "does not exist: clocks are set forward over it";
        Some(instant(local).ok_or_else(|| refuse(skipped))?)
    } else {
        let full = chrono::DateTime::parse_from_rfc3339(text).map_err(|_| refuse("is no time"))?;
        Some(Timestamp::from_millis(full.timestamp_millis()))
    };
    let at = at.ok_or_else(|| refuse("is no time"))?;
    if at <= now {
        return Err(refuse("is past"));
    }
    Ok(at)
}

/// The present and a span such as `2h`.
pub(crate) fn after_span(text: &str, now: Timestamp) -> Result<Timestamp, Diagnostic> {
    match parse_millis(text) {
        Ok((millis, _)) => Ok(now.plus_millis(millis)),
        _ => Err(Diagnostic::new(
            Kind::Usage,
            "bad_span",
            format!("`{text}` is no span of time up to a year"),
        )
        .hint("examples: `90s`, `30m`, `2h`, `3d`")),
    }
}

fn parse_local(text: &str) -> Option<NaiveDateTime> {
    [
        "%Y-%m-%dT%H:%M:%S",
        "%Y-%m-%d %H:%M:%S",
        "%Y-%m-%dT%H:%M",
        "%Y-%m-%d %H:%M",
    ]
    .iter()
    .find_map(|form| NaiveDateTime::parse_from_str(text, form).ok())
    .or_else(|| {
        let date = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?;
        Some(date.and_time(NaiveTime::MIN))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_read_as_people_write_them() {
        let now = Timestamp::from_millis(1_795_000_000_000);
        let berlin = Zone::compiled_in("Europe/Berlin").unwrap();
        let table = [
            ("2h", "2026-11-18T09:06:40.000Z"),
            ("3d", "2026-11-15T11:06:40.000Z"),
            ("2026-11-01", "2026-10-31T23:00:00.000Z"),
            ("2026-07-01T09:00", "2026-07-01T07:00:00.000Z"),
            ("2026-07-01 09:00:30", "2026-07-01T07:00:30.000Z"),
            ("2026-07-01T09:00:00Z", "2026-07-01T09:00:00.000Z"),
            ("2026-03-29T02:30", "2026-03-29T01:00:00.000Z"),
            ("2026-10-25T02:30", "2026-10-25T00:30:00.000Z"),
        ];
        for (text, expected) in table {
            assert_eq!(
                parse_instant("--since", text, now, berlin)
                    .unwrap()
                    .rfc3339(),
                expected,
                "{text}"
            );
        }
        for bad in ["", "yesterday", "2026-13-01", "-2h", "2026-11-20T25:00"] {
            assert_eq!(
                parse_instant("--since", bad, now, berlin).unwrap_err().kind,
                Kind::Usage,
                "{bad}"
            );
        }
    }

    #[test]
    fn times_to_come_are_read_as_people_write_them() {
        // 2026-11-18 12:06:40 in Berlin.
        let now = Timestamp::from_millis(1_795_000_000_000);
        let berlin = Zone::compiled_in("Europe/Berlin").unwrap();
        for (text, expected) in [
            ("18:00", "2026-11-18T17:00:00.000Z"),
            ("12:06", "2026-11-19T11:06:00.000Z"),
            ("12:06:41", "2026-11-18T11:06:41.000Z"),
            ("2026-12-24T18:00", "2026-12-24T17:00:00.000Z"),
            ("2026-12-24", "2026-12-23T23:00:00.000Z"),
            ("2026-12-24T18:00:00Z", "2026-12-24T18:00:00.000Z"),
        ] {
            let read = parse_future(text, now, berlin).unwrap();
            assert_eq!(read.rfc3339(), expected, "{text}");
        }
        for bad in [
            "",
            "2h",
            "2026-11-18T12:00",
            "2027-03-28T02:30",
            "25:00",
            "soon",
        ] {
            let refused = parse_future(bad, now, berlin).unwrap_err();
            assert_eq!(refused.kind, Kind::Usage, "{bad}");
        }
        assert_eq!(after_span("2h", now).unwrap(), now.plus_millis(7_200_000));
        for bad in ["", "2 fortnights", "20000d", "-1h"] {
            assert_eq!(after_span(bad, now).unwrap_err().kind, Kind::Usage, "{bad}");
        }
    }

    #[test]
    fn sizes_and_instants_are_short() {
        let table = [
            (0, "0 B"),
            (1_023, "1023 B"),
            (1_024, "1.0 KiB"),
            (1_300, "1.2 KiB"),
            (1_048_575, "1023.9 KiB"),
            (1_048_576, "1.0 MiB"),
            (u64::MAX, "15.9 EiB"),
        ];
        for (count, shown) in table {
            assert_eq!(bytes(count), shown);
        }
        let at = Timestamp::from_millis(1_795_000_000_123);
        assert_eq!(
            instant(at, Zone::compiled_in("Europe/Berlin").unwrap()),
            "2026-11-18 12:06:40"
        );
        assert_eq!(clock_time(at, Zone::UTC), "11:06:40.123");
        for millis in [i64::MIN, i64::MAX] {
            assert!(!instant(Timestamp::from_millis(millis), Zone::UTC).is_empty());
        }
    }
}
