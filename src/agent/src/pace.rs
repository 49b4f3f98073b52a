//! Waits between tries.

use std::time::{Duration, SystemTime};

use reqwest::header::HeaderMap;

use crate::stop::Stop;

/// Tries of one turn at most.
pub const TRIES_MAX: u32 = 3;

/// The longest `retry-after` that is waited for within a turn.
pub const WAIT_MAX: Duration = Duration::from_mins(1);

/// The clock for waits between tries: tests inject one that does not sleep.
pub trait Pace: Send + Sync {
    /// The wall clock, against which dates of servers are read.
    fn now(&self) -> SystemTime;

    /// Waits, and returns early with `true` when stopped.
    fn wait(&self, span: Duration, stop: &Stop) -> bool;

    /// A number from 0 to 1, which spreads turns that failed together.
    fn jitter(&self) -> f64;
}

/// The system clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemPace;

impl Pace for SystemPace {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    fn wait(&self, span: Duration, stop: &Stop) -> bool {
        stop.wait(span)
    }

    fn jitter(&self) -> f64 {
        fastrand::f64()
    }
}

/// The wait in `retry-after-ms`, or in `retry-after` as seconds or as a date (RFC 9110, 10.2.3). Other values
/// are ignored.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let number = |text: &str, units_per_second: f64| {
        let seconds = text.parse::<f64>().ok()? / units_per_second;
        Duration::try_from_secs_f64(seconds).ok()
    };
    if let Some(span) = text("retry-after-ms").and_then(|ms| number(ms, 1000.0)) {
        return Some(span);
    }
    let after = text("retry-after")?;
    number(after, 1.0).or_else(|| {
        let date = httpdate::parse_http_date(after).ok()?;
        // A date in the past asks for no wait.
        Some(date.duration_since(now).unwrap_or_default())
    })
}

/// The wait after the given failed try without `retry-after`: 0.5 s, then 2 s, each up to a
/// quarter shorter or longer.
pub(crate) fn own_wait(failed_try: u32, jitter: f64) -> Duration {
    let base = if failed_try <= 1 { 0.5 } else { 2.0 };
    Duration::from_secs_f64(base * (0.75 + 0.5 * jitter.clamp(0.0, 1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::{HeaderName, HeaderValue};

    fn parsed(name: &'static str, value: &'static str) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
        // 1994-11-06T08:49:37Z, the example of RFC 9110.
        retry_after(
            &headers,
            SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777),
        )
    }

    #[test]
    fn a_wait_is_read_in_each_of_its_forms() {
        let ms = |n| Some(Duration::from_millis(n));
        for (name, value, expect) in [
            ("retry-after", "3", ms(3_000)),
            ("retry-after", " 3 ", ms(3_000)),
            ("retry-after", "0.25", ms(250)),
            ("retry-after", "Sun, 06 Nov 1994 08:49:39 GMT", ms(2_000)),
            ("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT", ms(0)),
            ("retry-after", "-3", None),
            ("retry-after", "NaN", None),
            ("retry-after", "1e400", None),
            ("retry-after", "soon", None),
            ("retry-after-ms", "750", ms(750)),
            ("retry-after-ms", "x", None),
        ] {
            assert_eq!(parsed(name, value), expect, "{name}: {value}");
        }
    }

    #[test]
    fn own_waits_grow_and_are_spread() {
        assert_eq!(own_wait(1, 0.5), Duration::from_millis(500));
        assert_eq!(own_wait(1, 0.0), Duration::from_millis(375));
        assert_eq!(own_wait(2, 0.5), Duration::from_secs(2));
        assert_eq!(own_wait(2, 9.0), Duration::from_millis(2_500));
    }
}
