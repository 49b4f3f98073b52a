//! When a program may be used again, as its message words it.

use std::time::{Duration, SystemTime};

/// Longest wait that is believed.
const WAIT_MAX: Duration = Duration::from_hours(31 * 24);

/// The moment that a message names: `…|1795631610`, in seconds since 1970; or `… in 2 hours 5 minutes`, `… in 23.5s`.
pub(super) fn until(message: &str, now: SystemTime) -> Option<SystemTime> {
    let moment = at_second(message).or_else(|| Some(now + span(message)?))?;
    let wait = moment.duration_since(now).unwrap_or_default();
    (wait <= WAIT_MAX).then_some(moment)
}

fn at_second(message: &str) -> Option<SystemTime> {
    let digits = message.rsplit_once('|')?.1.trim();
    let seconds = digits.parse::<u64>().ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}

/// The sum of the spans behind the last word `in`.
fn span(message: &str) -> Option<Duration> {
    let words: Vec<&str> = message.split_whitespace().collect();
    let from = words.iter().rposition(|word| *word == "in")?;
    let mut sum = None;
    let mut number = None;
    for word in &words[from + 1..] {
        let word = word.trim_matches([',', '.', ')', ';']);
        let split = word.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (digits, unit) = word.split_at(split.unwrap_or(word.len()));
        if let Ok(value) = digits.parse::<f64>() {
            number = Some(value);
        }
        let Some(seconds) = seconds_of(unit) else {
            if unit.is_empty() || unit == "and" {
                continue;
            }
            break;
        };
        let value: f64 = number.take()?;
        let part = Duration::try_from_secs_f64(value * seconds).ok()?;
        sum = Some(sum.unwrap_or(Duration::ZERO).saturating_add(part));
    }
    sum
}

fn seconds_of(unit: &str) -> Option<f64> {
    Some(match unit {
        "ms" => 0.001,
        "s" | "sec" | "second" | "seconds" => 1.0,
        "m" | "min" | "minute" | "minutes" => 60.0,
        "h" | "hour" | "hours" => 3600.0,
        "d" | "day" | "days" => 86_400.0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_messages_name_is_understood_or_left_open() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_000_000);
        let wait = |message: &str| {
            until(message, now).map(|at| at.duration_since(now).unwrap().as_secs_f64())
        };
        assert_eq!(wait("usage limit reached|1795003600"), Some(3600.0));
        assert_eq!(wait("try again in 2 hours 5 minutes."), Some(7500.0));
        assert_eq!(wait("Please retry in 23.5s."), Some(23.5));
        assert_eq!(
            wait("Try again in 1 day, 3 hours and 2 minutes"),
            Some(97_320.0)
        );
        assert_eq!(wait("slow down"), None);
        assert_eq!(wait("in an hour, or in the evening"), None);
        assert_eq!(wait("try again in 9999999999 days"), None);
        assert_eq!(wait("|18446744073709551615"), None);
    }
}
