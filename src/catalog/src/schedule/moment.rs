//! Dates and times of a zone as people write them.

use chrono::{Datelike, Duration, LocalResult, NaiveDate, NaiveDateTime, TimeZone, Timelike};

use crate::model::{Timestamp, Zone};

/// Minutes after a missing local time within which the next one that exists is looked for: a zone that
/// moved across the date line has left out a whole day.
const GAP_MINUTES_MAX: i64 = 2 * 24 * 60;

/// Which of the instants that a text may mean is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Edge {
    /// The first: a date begins, a repeated time counts the first time.
    First,
    /// The last: a date ends, a repeated time counts the second time.
    Last,
}

/// Explains why a text begins with a date that no calendar has: the month is above 12, or the month has fewer days.
pub(super) fn impossible_date(text: &str) -> Option<String> {
    let date = text
        .get(..10)
        .filter(|date| has_shape(date, "0000-00-00"))?;
    let (month, day) = date.split_at(8);
    let number = month.get(5..7).unwrap_or_default();
    if number.parse::<u8>().is_ok_and(|number| number > 12) {
        return Some(format!(
            "a date is year, month and day: there is no month {number}"
        ));
    }
    let first = NaiveDate::parse_from_str(&format!("{month}01"), "%Y-%m-%d").ok()?;
    let days = first.num_days_in_month();
    (day.parse::<u8>().ok()? > days).then(|| format!("{} has {days} days", first.format("%B %Y")))
}

/// Returns what to write instead of a time of day without a date.
pub(super) fn daily(text: &str) -> Option<String> {
    let (hour, minute) = text.split_once(':')?;
    let (hour, minute): (u8, u8) = (hour.parse().ok()?, minute.parse().ok()?);
    (hour < 24 && minute < 60).then(|| {
        format!(
            "write `cron: \"{minute} {hour} * * *\"` for every day, or add the date: `at: 2026-12-24T{hour:02}:{minute:02}`"
        )
    })
}

/// `YYYY-MM-DD`, if that day exists.
pub(super) fn date(text: &str) -> Option<NaiveDate> {
    has_shape(text, "0000-00-00")
        .then(|| NaiveDate::parse_from_str(text, "%Y-%m-%d").ok())
        .flatten()
}

/// `YYYY-MM-DDTHH:MM` with optional seconds and a `T` or a blank, if that time can be on a clock.
pub(super) fn local(text: &str) -> Option<NaiveDateTime> {
    let text = text.replacen(' ', "T", 1);
    let format = if has_shape(&text, "0000-00-00T00:00") {
        "%Y-%m-%dT%H:%M"
    } else if has_shape(&text, "0000-00-00T00:00:00") {
        "%Y-%m-%dT%H:%M:%S"
    } else {
        return None;
    };
    NaiveDateTime::parse_from_str(&text, format)
        .ok()
        .filter(|time| time.nanosecond() == 0 && time.year() > 0)
}

/// Whether it is a local time, or RFC 3339 with an offset of its own.
pub(super) fn is_time(text: &str) -> bool {
    local(text).is_some() || chrono::DateTime::parse_from_rfc3339(text).is_ok()
}

/// Whether digits stand where `shape` has `0`, and the same characters elsewhere.
fn has_shape(text: &str, shape: &str) -> bool {
    text.len() == shape.len()
        && text
            .bytes()
            .zip(shape.bytes())
            .all(|(byte, wanted)| match wanted {
                b'0' => byte.is_ascii_digit(),
                wanted => byte == wanted,
            })
}

/// The instant that RFC 3339, a local time or a date of `zone` means.
pub(super) fn instant(text: &str, zone: Zone, edge: Edge) -> Option<Timestamp> {
    if let Ok(full) = chrono::DateTime::parse_from_rfc3339(text) {
        return Some(Timestamp::from_millis(full.timestamp_millis()));
    }
    if let Some(time) = local(text) {
        return in_zone(time, zone, edge);
    }
    let day = date(text)?;
    match edge {
        Edge::First => in_zone(day.and_hms_opt(0, 0, 0)?, zone, Edge::First),
        Edge::Last => {
            let next = day.succ_opt()?.and_hms_opt(0, 0, 0)?;
            let begins = in_zone(next, zone, Edge::First)?;
            Some(Timestamp::from_millis(begins.millis() - 1))
        }
    }
}

/// When a zone's clock shows `time`; the first instant after it where it never does.
pub(super) fn in_zone(time: NaiveDateTime, zone: Zone, edge: Edge) -> Option<Timestamp> {
    (0..=GAP_MINUTES_MAX).find_map(|minutes| {
        let moved = time.checked_add_signed(Duration::minutes(minutes))?;
        // Clocks move at full minutes: behind a gap seconds of the written time no longer count.
        let moved = if minutes == 0 {
            moved
        } else {
            moved.with_second(0)?
        };
        let found = match (zone.from_local_datetime(&moved), edge) {
            (LocalResult::Single(found), _)
            | (LocalResult::Ambiguous(found, _), Edge::First)
            | (LocalResult::Ambiguous(_, found), Edge::Last) => found,
            (LocalResult::None, _) => return None,
        };
        Some(Timestamp::from_millis(found.timestamp_millis()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn berlin() -> Zone {
        Zone::compiled_in("Europe/Berlin").unwrap()
    }

    fn shown(text: &str, edge: Edge) -> Option<String> {
        instant(text, berlin(), edge).map(Timestamp::rfc3339)
    }

    #[test]
    fn instants_are_read_in_their_zone() {
        let table = [
            ("2026-07-01", Edge::First, "2026-06-30T22:00:00.000Z"),
            ("2026-07-01", Edge::Last, "2026-07-01T21:59:59.999Z"),
            ("2026-07-01T09:30", Edge::First, "2026-07-01T07:30:00.000Z"),
            (
                "2026-07-01 09:30:05",
                Edge::Last,
                "2026-07-01T07:30:05.000Z",
            ),
            (
                "2026-07-01T09:30:00+05:00",
                Edge::First,
                "2026-07-01T04:30:00.000Z",
            ),
            // The clock jumps from 02:00 to 03:00.
            (
                "2026-03-29T02:30:20",
                Edge::First,
                "2026-03-29T01:00:00.000Z",
            ),
            // The clock shows 02:30 twice.
            ("2026-10-25T02:30", Edge::First, "2026-10-25T00:30:00.000Z"),
            ("2026-10-25T02:30", Edge::Last, "2026-10-25T01:30:00.000Z"),
        ];
        for (text, edge, expected) in table {
            assert_eq!(
                shown(text, edge).as_deref(),
                Some(expected),
                "{text} {edge:?}"
            );
        }
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for text in [
            "",
            "2026-02-30",
            "2026-13-01",
            "2026-1-5",
            "2026-01-05T24:00",
            "2026-01-05T23:59:60",
            "2026-01-05T9:00",
            "+026-01-05",
            "tomorrow",
            "0000-01-01T00:00",
            "2026-01-0\u{e4}",
        ] {
            assert_eq!(shown(text, Edge::First), None, "{text}");
        }
    }
}
