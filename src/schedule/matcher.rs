//! Which local times an expression names, without a zone: the crate `cron` behind what Unix does otherwise.
//!
//! It is given numbers and names of weekdays only. What it lacks is added here: the rule for the two fields
//! of days, days that depend on the month, and years beyond its own.

use std::ops::Range;
use std::str::FromStr;

use chrono::{Datelike, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta};

use super::days::DayFilter;
use super::error::ExpressionError;
use super::expression::Fields;
use super::field::{Field, FieldValues};

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
    /// Of what `fields` say; `at` is the place of the whole expression.
    pub(crate) fn new(fields: &Fields, at: Range<usize>) -> Result<Matcher, ExpressionError> {
        let (month_days, weekdays) = (&fields.day_of_month, &fields.day_of_week);
        // Debian's cron: both fields of days have to agree, unless neither starts with a star.
        let pairs = if month_days.star || weekdays.star {
            vec![(Some(month_days), Some(weekdays))]
        } else {
            vec![(Some(month_days), None), (None, Some(weekdays))]
        };
        let alternatives = pairs
            .into_iter()
            .map(|(month_days, weekdays)| Alternative::new(fields, month_days, weekdays))
            .collect::<Result<_, _>>()
            .map_err(|error| {
                ExpressionError::new(
                    "cron-unreadable",
                    at.clone(),
                    format!("the expression cannot be evaluated: {error}"),
                    "write it in a simpler form",
                )
            })?;
        let matcher = Matcher { alternatives };
        if KINDS
            .into_iter()
            .any(|year| matcher.in_year(year).is_some())
        {
            return Ok(matcher);
        }
        Err(ExpressionError::new(
            "cron-never-fires",
            at,
            "no year has a day that the expression names",
            "look at the day of the month and the month: February has 29 days at most, \
             April, June, September and November have 30",
        ))
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
    fn new(
        fields: &Fields,
        month_days: Option<&FieldValues>,
        weekdays: Option<&FieldValues>,
    ) -> Result<Alternative, cron::error::Error> {
        let special =
            |field: Option<&FieldValues>| field.filter(|field| !field.special.is_empty()).cloned();
        let filter = DayFilter {
            day_of_month: special(month_days),
            day_of_week: special(weekdays),
        };
        // A field with special days is the filter's alone.
        let plain = |field: Field, values: Option<&FieldValues>| match values {
            Some(values) if values.special.is_empty() => list(field, values),
            _ => "*".to_owned(),
        };
        let text = format!(
            "{} {} {} {} {} {} {}-{}",
            list(Field::Second, &fields.second),
            list(Field::Minute, &fields.minute),
            list(Field::Hour, &fields.hour),
            plain(Field::DayOfMonth, month_days),
            list(Field::Month, &fields.month),
            plain(Field::DayOfWeek, weekdays),
            KINDS.start(),
            KINDS.end(),
        );
        let times = cron::Schedule::from_str(&text)?;
        Ok(Alternative { times, filter })
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
