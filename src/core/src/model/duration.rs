//! Spans of time as people write them: `15m`, `1h30m`, `500ms`.

/// Longest span that is accepted: 366 days, a leap year, in milliseconds.
pub const MILLIS_MAX: u64 = 366 * 24 * 3_600_000;

/// Why a text is not a span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// Not digits followed by a unit.
    #[error("expected a duration such as `500ms`, `30s`, `15m` or `1h30m`")]
    Shape,
    /// Zero or below.
    #[error("a duration must be greater than zero")]
    NotPositive,
    /// More than [`MILLIS_MAX`].
    #[error("a duration must not exceed 366 days")]
    TooLong,
}

/// Reads a span in milliseconds. The flag is true when no unit stood there and seconds were assumed.
pub fn parse_millis(text: &str) -> Result<(u64, bool), DurationError> {
    let text = text.trim();
    if text.starts_with('-') {
        return Err(DurationError::NotPositive);
    }
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        let seconds: u64 = text.parse().map_err(|_| DurationError::TooLong)?;
        return bounded(seconds.checked_mul(1_000)).map(|millis| (millis, true));
    }
    let mut total: u64 = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, tail) = rest.split_at(digits);
        let unit = tail.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (unit, tail) = tail.split_at(unit);
        let factor = unit_millis(unit).ok_or(DurationError::Shape)?;
        if number.is_empty() {
            return Err(DurationError::Shape);
        }
        let number: u64 = number.parse().map_err(|_| DurationError::TooLong)?;
        total = number
            .checked_mul(factor)
            .and_then(|part| total.checked_add(part))
            .ok_or(DurationError::TooLong)?;
        rest = tail.trim_start();
    }
    if text.is_empty() {
        Err(DurationError::Shape)
    } else {
        bounded(Some(total)).map(|ms| (ms, false))
    }
}

fn unit_millis(unit: &str) -> Option<u64> {
    Some(match unit {
        "ms" => 1,
        "s" | "sec" | "secs" => 1_000,
        "m" | "min" | "mins" => 60_000,
        "h" | "hr" | "hrs" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    })
}

fn bounded(millis: Option<u64>) -> Result<u64, DurationError> {
    match millis {
        Some(0) => Err(DurationError::NotPositive),
        Some(millis) if millis <= MILLIS_MAX => Ok(millis),
        _ => Err(DurationError::TooLong),
    }
}

/// Writes a span for people: `850ms`, `4.2s`, `3m 10s`, `2h 5m`, `3d 4h`.
pub fn show_millis(millis: u64) -> String {
    let seconds = millis / 1_000;
    match millis {
        0..1_000 => format!("{millis}ms"),
        1_000..60_000 => format!("{}.{}s", seconds, millis % 1_000 / 100),
        60_000..3_600_000 => format!("{}m {}s", seconds / 60, seconds % 60),
        3_600_000..86_400_000 => format!("{}h {}m", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{}d {}h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

/// Writes a span exactly and as files take it: `5s`, `1h30m`, `1s500ms`.
pub fn exact_millis(millis: u64) -> String {
    let mut left = millis;
    let units = [
        ("d", 86_400_000),
        ("h", 3_600_000),
        ("m", 60_000),
        ("s", 1_000),
        ("ms", 1),
    ];
    let written: String = units
        .into_iter()
        .filter_map(|(unit, each)| {
            let count = left / each;
            left %= each;
            (count > 0).then(|| format!("{count}{unit}"))
        })
        .collect();
    if written.is_empty() {
        "0s".to_owned()
    } else {
        written
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_span_is_written_as_files_take_it() {
        let table = [
            (5_000, "5s"),
            (60_000, "1m"),
            (5_400_000, "1h30m"),
            (1_500, "1s500ms"),
            (14 * 86_400_000, "14d"),
        ];
        for (millis, written) in table {
            assert_eq!(exact_millis(millis), written);
            assert_eq!(parse_millis(written), Ok((millis, false)));
        }
        assert_eq!(exact_millis(0), "0s");
    }

    use super::*;

    #[test]
    fn what_people_write_is_read() {
        let table = [
            ("15m", Ok((900_000, false))),
            ("1h30m", Ok((5_400_000, false))),
            ("1h 30m", Ok((5_400_000, false))),
            ("500ms", Ok((500, false))),
            ("90", Ok((90_000, true))),
            ("0", Err(DurationError::NotPositive)),
            ("0s", Err(DurationError::NotPositive)),
            ("-5m", Err(DurationError::NotPositive)),
            ("", Err(DurationError::Shape)),
            ("m", Err(DurationError::Shape)),
            ("5 apples", Err(DurationError::Shape)),
            ("99999999999999999999s", Err(DurationError::TooLong)),
            ("9999999999999999h", Err(DurationError::TooLong)),
            ("367d", Err(DurationError::TooLong)),
        ];
        for (text, expected) in table {
            assert_eq!(parse_millis(text), expected, "{text}");
        }
    }

    #[test]
    fn spans_are_shown_short() {
        let shown = [5, 4_250, 190_000, 7_500_000, 273_600_000].map(show_millis);
        assert_eq!(shown, ["5ms", "4.2s", "3m 10s", "2h 5m", "3d 4h"]);
    }
}
