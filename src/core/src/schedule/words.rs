//! A schedule in words.

use super::field::{Field, FieldValues, Fields, SpecialDay, Values, WEEKDAYS};
use super::moments::Moments;
use super::recurrence::{Kind, Recurrence};

/// Times of day that are listed one by one.
const TIMES_MAX: u32 = 6;
/// Moments that are listed one by one.
const MOMENTS_MAX: usize = 20;

/// What `recurrence` says: `at 09:00 on Monday to Friday, Europe/Berlin`.
pub fn words(recurrence: &Recurrence) -> String {
    match &recurrence.kind {
        Kind::Cron {
            expression, zone, ..
        } => format!("{}, {}", of_fields(expression.fields()), zone.name()),
        Kind::Every { period, anchor } => {
            format!("every {}, counted from {anchor}", span(period.get()))
        }
        Kind::At(moments) => of_moments(moments),
    }
}

fn of_moments(moments: &Moments) -> String {
    let show = |slot: &crate::model::Timestamp| slot.rfc3339_in(moments.zone);
    match moments.slots.as_slice() {
        [] => "never".to_owned(),
        [first, .., last] if moments.slots.len() > MOMENTS_MAX => format!(
            "at {} moments from {} to {}, {}",
            moments.slots.len(),
            show(first),
            show(last),
            moments.zone.name()
        ),
        slots => format!(
            "at {}, {}",
            joined(&slots.iter().map(show).collect::<Vec<_>>()),
            moments.zone.name()
        ),
    }
}

/// Exactly, in the largest units.
pub(super) fn span(millis: u64) -> String {
    let units = [
        (86_400_000, "day"),
        (3_600_000, "hour"),
        (60_000, "minute"),
        (1_000, "second"),
        (1, "millisecond"),
    ];
    let mut rest = millis;
    let mut parts = Vec::new();
    for (size, name) in units {
        match rest / size {
            0 => {}
            1 if rest == size && parts.is_empty() => parts.push(name.to_owned()),
            1 => parts.push(format!("1 {name}")),
            count => parts.push(format!("{count} {name}s")),
        }
        rest %= size;
    }
    parts.join(" ")
}

fn of_fields(fields: &Fields) -> String {
    let times = times(fields);
    let months = months(&fields.month);
    match days(fields) {
        Some(days) => format!("{times} {days}{months}"),
        None if !fields.hour.is_everything(Field::Hour) || !months.is_empty() => {
            format!("{times} every day{months}")
        }
        None => times,
    }
}

fn times(fields: &Fields) -> String {
    let (seconds, minutes, hours) = (
        fields.second.values,
        fields.minute.values,
        fields.hour.values,
    );
    if seconds.len() * minutes.len() * hours.len() <= TIMES_MAX {
        return format!("at {}", joined(&clock(seconds, minutes, hours)));
    }
    let hour = scope(Field::Hour, hours);
    let hour = hour.as_deref();
    if seconds == Values::one(0) {
        let (minute, repeats) = repeated(Field::Minute, minutes);
        return within(minute, repeats, Field::Hour, hour);
    }
    let (second, repeats) = repeated(Field::Second, seconds);
    match scope(Field::Minute, minutes) {
        // Seconds of every minute: only the hours remain to be told.
        None if hour.is_none() => within(second, repeats, Field::Minute, None),
        None => {
            let every = within(second, repeats, Field::Minute, None);
            within(every, true, Field::Hour, hour)
        }
        Some(minute) => within(format!("{second} {minute}"), false, Field::Hour, hour),
    }
}

/// Appends in which values of the coarser `field` it happens; a repetition through all of them needs no
/// words.
fn within(what: String, repeats: bool, field: Field, scope: Option<&str>) -> String {
    match scope {
        Some(scope) => format!("{what} {scope}"),
        None if repeats => what,
        None => format!("{what} of every {}", field.name()),
    }
}

fn clock(seconds: Values, minutes: Values, hours: Values) -> Vec<String> {
    let mut times = Vec::new();
    for hour in hours.iter() {
        for minute in minutes.iter() {
            for second in seconds.iter() {
                times.push(if seconds == Values::one(0) {
                    format!("{hour:02}:{minute:02}")
                } else {
                    format!("{hour:02}:{minute:02}:{second:02}")
                });
            }
        }
    }
    times
}

/// `every 15 minutes`, or `at minutes 5 and 7`, and whether it is the former.
fn repeated(field: Field, values: Values) -> (String, bool) {
    let name = field.name();
    let count = values.len();
    if count == 60 {
        return (format!("every {name}"), true);
    }
    let step = 60 / count.max(1);
    let even = 60 % count.max(1) == 0 && (0..count).all(|turn| values.contains(turn * step));
    if even && count > 1 {
        return (format!("every {step} {name}s"), true);
    }
    let plural = if count == 1 { "" } else { "s" };
    let listed = joined(&runs(values.iter(), |value| value.to_string()));
    (format!("at {name}{plural} {listed}"), false)
}

/// `in the hours 9 to 17`; none for all values.
fn scope(field: Field, values: Values) -> Option<String> {
    if values == field.everything() {
        return None;
    }
    let name = field.name();
    let listed = joined(&runs(values.iter(), |value| value.to_string()));
    Some(if values.len() == 1 {
        format!("in {name} {listed}")
    } else {
        format!("in the {name}s {listed}")
    })
}

fn months(field: &FieldValues) -> String {
    if field.is_everything(Field::Month) {
        return String::new();
    }
    let listed = joined(&runs(field.values.iter(), |value| {
        name(Field::Month.names(), value.saturating_sub(1))
    }));
    format!(" in {listed}")
}

fn name(names: &[&str], index: u32) -> String {
    let index = usize::try_from(index).unwrap_or(usize::MAX);
    names.get(index).copied().unwrap_or_default().to_owned()
}

/// On which days; none for every day.
fn days(fields: &Fields) -> Option<String> {
    let (month_days, weekdays) = (&fields.day_of_month, &fields.day_of_week);
    let by_date = (!month_days.is_everything(Field::DayOfMonth)).then(|| days_of_month(month_days));
    let by_weekday = (!weekdays.is_everything(Field::DayOfWeek)).then(|| days_of_week(weekdays));
    let both = month_days.star || weekdays.star;
    match (by_date, by_weekday) {
        (Some(date), Some(weekday)) if both => {
            Some(format!("on {weekday}, if that is also {date}"))
        }
        (Some(date), Some(weekday)) => Some(format!("on {date}, and also on {weekday}")),
        (Some(one), None) | (None, Some(one)) if both => Some(format!("on {one}")),
        _ => None,
    }
}

fn days_of_month(field: &FieldValues) -> String {
    let mut parts = Vec::new();
    if !field.values.is_empty() {
        let plural = if field.values.len() == 1 { "" } else { "s" };
        let listed = joined(&runs(field.values.iter(), |day| day.to_string()));
        parts.push(format!("day{plural} {listed} of the month"));
    }
    parts.extend(special(&field.special));
    joined_once(parts)
}

fn days_of_week(field: &FieldValues) -> String {
    // The week of these words ends on Sunday.
    let from_monday = (1..=7).filter(|day| field.values.contains(day % 7));
    let mut parts = runs(from_monday, |day| name(&WEEKDAYS, day % 7));
    parts.extend(special(&field.special));
    joined_once(parts)
}

fn special(days: &[SpecialDay]) -> impl Iterator<Item = String> {
    days.iter().map(|day| match *day {
        SpecialDay::BeforeLast(0) => "the last day of the month".to_owned(),
        SpecialDay::BeforeLast(1) => "the day before the last of the month".to_owned(),
        SpecialDay::BeforeLast(days) => {
            format!("the day {days} days before the last of the month")
        }
        SpecialDay::LastWorkday => {
            "the last working day (Monday to Friday) of the month".to_owned()
        }
        SpecialDay::NearestWorkday(day) => {
            format!("the working day (Monday to Friday) nearest to day {day} of the month")
        }
        SpecialDay::Nth { weekday, nth } => {
            let ordinal = match nth {
                1 => "1st",
                2 => "2nd",
                3 => "3rd",
                4 => "4th",
                _ => "5th",
            };
            format!("the {ordinal} {} of the month", name(&WEEKDAYS, weekday))
        }
        SpecialDay::LastWeekday(weekday) => {
            format!("the last {} of the month", name(&WEEKDAYS, weekday))
        }
    })
}

/// Three and more in a row as `a to b`.
fn runs(values: impl Iterator<Item = u32>, show: impl Fn(u32) -> String) -> Vec<String> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for value in values {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == value => *last = value,
            _ => runs.push((value, value)),
        }
    }
    let mut parts = Vec::new();
    for (first, last) in runs {
        if last - first >= 2 {
            parts.push(format!("{} to {}", show(first), show(last)));
        } else {
            parts.extend((first..=last).map(&show));
        }
    }
    parts
}

fn joined_once(mut parts: Vec<String>) -> String {
    let mut seen = Vec::new();
    parts.retain(|part| {
        let new = !seen.contains(part);
        seen.push(part.clone());
        new
    });
    joined(&parts)
}

/// `a, b and c`.
pub(super) fn joined(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Timestamp;
    use crate::model::Zone;
    use crate::schedule::{Dst, Expression};

    #[test]
    fn expressions_in_words() {
        let table = [
            ("0 9 * * 1-5", "at 09:00 on Monday to Friday"),
            ("0 9 * * *", "at 09:00 every day"),
            ("@hourly", "at minute 0 of every hour"),
            ("* * * * *", "every minute"),
            ("*/15 * * * *", "every 15 minutes"),
            ("5/15 * * * *", "at minutes 5, 20, 35 and 50 of every hour"),
            ("*/90 * * * *", "at minute 0 of every hour"),
            (
                "*/15 9-17 * * MON-FRI",
                "every 15 minutes in the hours 9 to 17 on Monday to Friday",
            ),
            (
                "0 */2 * 6 *",
                "at minute 0 in the hours 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20 and 22 every day in June",
            ),
            (
                "30 8,12 1,15 * *",
                "at 08:30 and 12:30 on days 1 and 15 of the month",
            ),
            (
                "0 9 13 * 5",
                "at 09:00 on day 13 of the month, and also on Friday",
            ),
            (
                "0 9 */10 * FRI",
                "at 09:00 on Friday, if that is also days 1, 11, 21 and 31 of the month",
            ),
            ("0 9 1-31 * FRI", "at 09:00 every day"),
            (
                "0 9 L,LW,15W,L-1,L-3 * *",
                "at 09:00 on the last day of the month, the last working day (Monday to Friday) of the month, the working day (Monday to Friday) nearest to day 15 of the month, the day before the last of the month and the day 3 days before the last of the month",
            ),
            (
                "0 9 * JAN,MAR-MAY 5#2,SUNL,6,0",
                "at 09:00 on Saturday, Sunday, the 2nd Friday of the month and the last Sunday of the month in January and March to May",
            ),
            ("* 9 * * *", "every minute in hour 9 every day"),
            ("@yearly", "at 00:00 on day 1 of the month in January"),
        ];
        for (text, expected) in table {
            let expression = Expression::parse(text, false).unwrap();
            let recurrence = Recurrence::cron(
                expression,
                Zone::compiled_in("Europe/Berlin").unwrap(),
                None,
            );
            let told = words(&recurrence);
            assert_eq!(told, format!("{expected}, Europe/Berlin"), "{text}");
        }
    }

    #[test]
    fn seconds_in_words() {
        let table = [
            ("30 0 9 * * *", "at 09:00:30 every day"),
            ("* * * * * *", "every second"),
            ("*/10 * * * * *", "every 10 seconds"),
            ("5,7 * * * * *", "at seconds 5 and 7 of every minute"),
            (
                "*/10 0-4 * * * *",
                "every 10 seconds in the minutes 0 to 4 of every hour",
            ),
            (
                "5 * 9 * * *",
                "at second 5 of every minute in hour 9 every day",
            ),
            (
                "*/10 1 2,3 * * *",
                "every 10 seconds in minute 1 in the hours 2 and 3 every day",
            ),
        ];
        for (text, expected) in table {
            let expression = Expression::parse(text, true).unwrap();
            let told = words(&Recurrence::cron(expression, Zone::UTC, None));
            assert_eq!(told, format!("{expected}, UTC"), "{text}");
        }
    }

    #[test]
    fn periods_and_moments_in_words() {
        let every = |millis| {
            let period = std::num::NonZeroU64::new(millis).unwrap();
            words(&Recurrence::every(period, Timestamp::default()))
        };
        let from = "counted from 1970-01-01T00:00:00.000Z";
        assert_eq!(every(900_000), format!("every 15 minutes, {from}"));
        assert_eq!(every(3_600_000), format!("every hour, {from}"));
        assert_eq!(
            every(90_061_001),
            format!("every 1 day 1 hour 1 minute 1 second 1 millisecond, {from}")
        );
        let moments = |count: usize| {
            let texts: Vec<String> = (1..=count)
                .map(|day| format!("2026-12-{day:02}T18:00"))
                .collect();
            words(
                &Recurrence::at(
                    &texts,
                    Zone::compiled_in("Europe/Berlin").unwrap(),
                    Dst::FIXED_TIME,
                )
                .unwrap(),
            )
        };
        assert_eq!(moments(0), "never");
        assert_eq!(
            moments(2),
            "at 2026-12-01T18:00:00+01:00 and 2026-12-02T18:00:00+01:00, Europe/Berlin"
        );
        assert_eq!(
            moments(24),
            "at 24 moments from 2026-12-01T18:00:00+01:00 to 2026-12-24T18:00:00+01:00, Europe/Berlin"
        );
    }
}
