//! Which local times an expression names, without a zone: the crate `cron` behind what Unix does otherwise.
//!
//! It is given numbers and names of weekdays only. What it lacks is added here: the rule for the two fields
//! of days, days that depend on the month, and years beyond its own.

use std::str::FromStr;

use chrono::{Datelike, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta};

use super::days::DayFilter;
use super::field::{Field, FieldValues, Fields};

/// The last year in which anything fires.
pub(crate) const LAST_YEAR: i32 = 9_999;

/// The crate knows 1970 to 2100. In these 28 years every kind of year occurs, that is each weekday of
/// January 1st with and without February 29th; every year is looked up in the one of its kind.
const KINDS: std::ops::RangeInclusive<i32> = 2_072..=2_099;

/// The local times of an expression.
#[derive(Debug)]
pub(crate) struct Matcher {
    /// Any of them fires.
    alternatives: Vec<Alternative>,
}

/// Fields that must all agree.
#[derive(Debug)]
struct Alternative {
    times: cron::Schedule,
    filter: DayFilter,
}

impl Matcher {
    /// Whether any year has a day that the fields name.
    pub(crate) fn fires(fields: &Fields) -> bool {
        let plain = |days: &FieldValues| days.special.is_empty();
        if plain(&fields.day_of_month) && plain(&fields.day_of_week) {
            // In 28 years every date of the year falls on each weekday.
            let by_weekday = !fields.day_of_month.star && !fields.day_of_week.star;
            return by_weekday || has_a_date(fields);
        }
        let matcher = Matcher::new(fields);
        KINDS
            .into_iter()
            .any(|year| matcher.in_year(year).is_some())
    }

    /// Of what `fields` say.
    pub(crate) fn new(fields: &Fields) -> Matcher {
        let (month_days, weekdays) = (&fields.day_of_month, &fields.day_of_week);
        // Debian's cron: both fields of days have to agree, unless neither starts with a star.
        let pairs = if month_days.star || weekdays.star {
            vec![(Some(month_days), Some(weekdays))]
        } else {
            vec![(Some(month_days), None), (None, Some(weekdays))]
        };
        let alternatives = pairs.into_iter();
        Matcher {
            alternatives: alternatives
                .filter_map(|(month_days, weekdays)| Alternative::new(fields, month_days, weekdays))
                .collect(),
        }
    }

    /// The first local time from `from` on, a whole second; none after year 9999.
    pub(crate) fn first_at_or_after(&self, from: NaiveDateTime) -> Option<NaiveDateTime> {
        (from.year()..=LAST_YEAR).find_map(|year| {
            let kind = kind_of(year)?;
            let start = if year == from.year() {
                from.with_year(kind)?
            } else {
                new_year(kind)?
            };
            self.first_in_year(start)?.with_year(year)
        })
    }

    fn in_year(&self, kind: i32) -> Option<NaiveDateTime> {
        self.first_in_year(new_year(kind)?)
    }

    fn first_in_year(&self, from: NaiveDateTime) -> Option<NaiveDateTime> {
        self.alternatives
            .iter()
            .filter_map(|alternative| alternative.first_in_year(from))
            .min()
    }
}

/// Whether a month that is named has a day of the month that is named.
fn has_a_date(fields: &Fields) -> bool {
    let longest = |month| match month {
        2 => 29,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    let first = fields.day_of_month.values.iter().next();
    first.is_some_and(|first| {
        fields
            .month
            .values
            .iter()
            .any(|month| first <= longest(month))
    })
}

fn new_year(year: i32) -> Option<NaiveDateTime> {
    Some(NaiveDate::from_ymd_opt(year, 1, 1)?.and_time(NaiveTime::MIN))
}

/// The year of [`KINDS`] with the same days.
fn kind_of(year: i32) -> Option<i32> {
    let kind = |year: i32| {
        let first = NaiveDate::from_ymd_opt(year, 1, 1)?;
        Some((first.weekday(), first.leap_year()))
    };
    let wanted = kind(year)?;
    KINDS.into_iter().find(|year| kind(*year) == Some(wanted))
}

impl Alternative {
    /// The crate reads every list of numbers within the ranges of the fields, and is given nothing else.
    fn new(
        fields: &Fields,
        month_days: Option<&FieldValues>,
        weekdays: Option<&FieldValues>,
    ) -> Option<Alternative> {
        let special =
            |field: Option<&FieldValues>| field.filter(|field| !field.special.is_empty()).cloned();
        let filter = DayFilter {
            day_of_month: special(month_days),
            day_of_week: special(weekdays),
        };
        // A field with special days is the filter's alone. Years are left open, which costs nothing.
        let plain = |field: Field, values: Option<&FieldValues>| match values {
            Some(values) if values.special.is_empty() => list(field, values),
            _ => "*".to_owned(),
        };
        let text = format!(
            "{} {} {} {} {} {} *",
            list(Field::Second, &fields.second),
            list(Field::Minute, &fields.minute),
            list(Field::Hour, &fields.hour),
            plain(Field::DayOfMonth, month_days),
            list(Field::Month, &fields.month),
            plain(Field::DayOfWeek, weekdays),
        );
        let times = cron::Schedule::from_str(&text).ok()?;
        Some(Alternative { times, filter })
    }

    /// The first time from `from` to the end of its year, which is one of [`KINDS`].
    fn first_in_year(&self, mut from: NaiveDateTime) -> Option<NaiveDateTime> {
        loop {
            let before = from.checked_sub_signed(TimeDelta::seconds(1))?;
            let found = self.times.after(&before.and_utc()).next()?.naive_utc();
            if found.year() != from.year() {
                return None;
            }
            if self.filter.is_empty() {
                return Some(found);
            }
            let day = self.filter.first_in_year(found.date())?;
            if day == found.date() {
                return Some(found);
            }
            from = day.and_time(NaiveTime::MIN);
        }
    }
}

/// The values as `cron` reads them. It counts weekdays from Sunday = 1, so they go by name.
fn list(field: Field, values: &FieldValues) -> String {
    if values.is_everything(field) {
        return "*".to_owned();
    }
    let name = |value: u32| {
        let names = field.names();
        let index = usize::try_from(value).ok()?;
        names.get(index)?.get(..3)
    };
    let shown: Vec<String> = values
        .values
        .iter()
        .map(|value| match name(value) {
            Some(name) if field == Field::DayOfWeek => name.to_owned(),
            _ => value.to_string(),
        })
        .collect();
    shown.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Expression;

    #[test]
    fn the_crate_reads_every_number_of_every_field() {
        for (index, field) in Field::ALL.into_iter().enumerate() {
            let all = field.everything().iter().map(|value| value.to_string());
            for value in all.collect::<Vec<_>>() {
                let mut texts = ["0", "0", "0", "*", "*", "*"];
                texts[index] = &value;
                let expression = Expression::parse(&texts.join(" "), true).unwrap();
                assert_eq!(expression.matcher().alternatives.len(), 1, "{texts:?}");
            }
        }
        let lists = "0-58 0-58 0-22 1-30 1-11 1-6";
        let expression = Expression::parse(lists, true).unwrap();
        assert_eq!(expression.matcher().alternatives.len(), 2);
    }

    #[test]
    fn what_never_fires_is_told_by_its_dates() {
        for (text, fires) in [
            ("0 0 30 2 *", false),
            ("0 0 31 4,6 *", false),
            ("0 0 31 4,5 *", true),
            ("0 0 29 2 *", true),
            // Both have to agree: in some year that day is a Monday.
            ("0 0 29 2 */7", true),
            ("0 0 30 2 1", true),
            ("0 0 30 2 */2", false),
            ("0 0 L-30 2 *", false),
            ("0 0 * 2 1#5", true),
        ] {
            let read = Expression::parse(text, false);
            assert_eq!(read.is_ok(), fires, "{text}");
            if let Ok(read) = read {
                let found = KINDS
                    .into_iter()
                    .find_map(|year| read.matcher().in_year(year));
                assert!(found.is_some(), "{text}");
            }
        }
    }

    #[test]
    fn every_year_has_one_of_its_kind() {
        for year in 1..=LAST_YEAR {
            let kind = kind_of(year).unwrap();
            let days = |year| {
                let weekday = |month, day| {
                    NaiveDate::from_ymd_opt(year, month, day).map(|date| date.weekday())
                };
                [
                    weekday(1, 1),
                    weekday(2, 29),
                    weekday(3, 1),
                    weekday(12, 31),
                ]
            };
            assert_eq!(days(year), days(kind), "{year}");
        }
    }
}
