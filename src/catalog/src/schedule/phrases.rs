//! Times that people write in words, such as `every 5 minutes`, with the form of a schedule that means the same.

use crate::model::duration::{exact_millis, parse_millis};

const DAYS: [&str; 7] = [
    "sunday",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
];

/// The form to write instead of a time in words; `None` if the words are not understood.
pub(super) fn form(text: &str) -> Option<String> {
    let text = text.to_lowercase();
    let mut words: Vec<&str> = text.split_whitespace().collect();
    let time = match words.iter().position(|word| *word == "at") {
        Some(at) => {
            let time = words.split_off(at).get(1..)?.concat();
            Some(time_of_day(&time)?)
        }
        None => None,
    };
    if words.first() == Some(&"every") {
        words.remove(0);
    }
    let day = match words.as_slice() {
        [] | ["day"] => Some("*".to_owned()),
        // A word without a time is an alias such as `@daily`.
        ["daily"] if time.is_some() => Some("*".to_owned()),
        ["weekday" | "weekdays"] => Some("1-5".to_owned()),
        [word] => {
            let day = DAYS
                .iter()
                .position(|day| *day == word.trim_end_matches('s'));
            day.map(|day| day.to_string())
        }
        _ => None,
    };
    match (day, time) {
        (Some(day), time) if !words.is_empty() || time.is_some() => {
            let (hour, minute) = time.unwrap_or((0, 0));
            Some(format!("`\"{minute} {hour} * * {day}\"`"))
        }
        (None, None) => period(&words),
        _ => None,
    }
}

/// The period of words such as `5 minutes`, `2h` or `hour`.
fn period(words: &[&str]) -> Option<String> {
    let (number, unit) = match words {
        [unit] if unit.chars().all(char::is_alphabetic) => ("1", *unit),
        [span] => (*span, ""),
        [number, unit] => (*number, *unit),
        _ => return None,
    };
    let unit = match unit.trim_end_matches('s') {
        "second" => "s",
        "minute" => "m",
        "hour" => "h",
        "day" => "d",
        "week" => "w",
        other => other,
    };
    let (millis, is_assumed) = parse_millis(&format!("{number}{unit}")).ok()?;
    (!is_assumed).then(|| format!("`schedule: {{every: {}}}`", exact_millis(millis)))
}

/// The hour and the minute of `9`, `9:30`, `09:30` or `5pm`.
fn time_of_day(text: &str) -> Option<(u8, u8)> {
    let (text, later) = match (text.strip_suffix("am"), text.strip_suffix("pm")) {
        (Some(text), _) => (text, Some(0)),
        (_, Some(text)) => (text, Some(12)),
        _ => (text, None),
    };
    let (hour, minute) = text.split_once(':').unwrap_or((text, "0"));
    let (mut hour, minute) = (hour.parse::<u8>().ok()?, minute.parse::<u8>().ok()?);
    if let Some(later) = later {
        hour = (1..=12).contains(&hour).then_some(hour % 12 + later)?;
    }
    (hour < 24 && minute < 60).then_some((hour, minute))
}

#[cfg(test)]
mod tests {
    use super::form;

    #[test]
    fn times_in_words_are_answered_with_a_schedule() {
        for (text, expected) in [
            ("every 5 minutes", "schedule: {every: 5m}"),
            ("Every 2h", "schedule: {every: 2h}"),
            ("every hour", "schedule: {every: 1h}"),
            ("15m", "schedule: {every: 15m}"),
            ("daily at 9", "\"0 9 * * *\""),
            ("every day at 17:30", "\"30 17 * * *\""),
            ("every day", "\"0 0 * * *\""),
            ("at 5 pm", "\"0 17 * * *\""),
            ("weekdays at 09:05", "\"5 9 * * 1-5\""),
            ("every monday", "\"0 0 * * 1\""),
        ] {
            assert_eq!(
                form(text).as_deref(),
                Some(&*format!("`{expected}`")),
                "{text}"
            );
        }
        for text in [
            "",
            "at 25",
            "every",
            "every so often",
            "5",
            "0 9 * * *",
            "noon at",
            "daily",
        ] {
            assert_eq!(form(text), None, "{text}");
        }
    }
}
