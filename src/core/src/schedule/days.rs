//! Days that are other ones in each month: `L`, `LW`, `15W`, `5#2`, `5L`.

use chrono::{Datelike, NaiveDate};

use super::field::{FieldValues, SpecialDay};

/// The days that both fields allow, worked out month by month. An absent field allows every day.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct DayFilter {
    pub(crate) day_of_month: Option<FieldValues>,
    pub(crate) day_of_week: Option<FieldValues>,
}

impl DayFilter {
    pub(crate) fn is_empty(&self) -> bool {
        self.day_of_month.is_none() && self.day_of_week.is_none()
    }

    /// The first allowed day from `date` to the end of its year.
    pub(crate) fn first_in_year(&self, date: NaiveDate) -> Option<NaiveDate> {
        (date.month()..=12).find_map(|number| {
            let from = if number == date.month() {
                date.day()
            } else {
                1
            };
            let month = Month::new(date.year(), number)?;
            let day = (from..=month.days).find(|day| self.allows(&month, *day))?;
            NaiveDate::from_ymd_opt(date.year(), number, day)
        })
    }

    fn allows(&self, month: &Month, day: u32) -> bool {
        let by_day = |field: &FieldValues| {
            field.values.contains(day) || field.special.iter().any(|one| month.is(*one, day))
        };
        let by_weekday = |field: &FieldValues| {
            field.values.contains(month.weekday(day))
                || field.special.iter().any(|one| month.is(*one, day))
        };
        self.day_of_month.as_ref().is_none_or(by_day)
            && self.day_of_week.as_ref().is_none_or(by_weekday)
    }
}

/// One month of one year.
struct Month {
    /// 28 to 31.
    days: u32,
    /// Of its first day; Sunday is 0.
    first_weekday: u32,
}

impl Month {
    fn new(year: i32, number: u32) -> Option<Month> {
        let first = NaiveDate::from_ymd_opt(year, number, 1)?;
        Some(Month {
            days: u32::from(first.num_days_in_month()),
            first_weekday: first.weekday().num_days_from_sunday(),
        })
    }

    /// Sunday is 0.
    fn weekday(&self, day: u32) -> u32 {
        (self.first_weekday + day + 6) % 7
    }

    fn is(&self, special: SpecialDay, day: u32) -> bool {
        match special {
            SpecialDay::BeforeLast(before) => day + before == self.days,
            SpecialDay::LastWorkday => day == self.nearest_workday(self.days),
            SpecialDay::NearestWorkday(near) => {
                near <= self.days && day == self.nearest_workday(near)
            }
            SpecialDay::Nth { weekday, nth } => {
                self.weekday(day) == weekday && (day - 1) / 7 + 1 == nth
            }
            SpecialDay::LastWeekday(weekday) => self.weekday(day) == weekday && day + 7 > self.days,
        }
    }

    /// The one of Monday to Friday nearest to `day` that lies in this month.
    fn nearest_workday(&self, day: u32) -> u32 {
        match self.weekday(day) {
            6 if day == 1 => 3,
            6 => day - 1,
            0 if day == self.days => day - 2,
            0 => day + 1,
            _ => day,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::field::Field;
    use crate::schedule::item::{Piece, read_field};

    fn days(field: Field, text: &str, year: i32, number: u32) -> Vec<u32> {
        let read = read_field(field, Piece { text, at: 0 }).unwrap();
        let mut filter = DayFilter::default();
        match field {
            Field::DayOfMonth => filter.day_of_month = Some(read),
            _ => filter.day_of_week = Some(read),
        }
        let month = Month::new(year, number).unwrap();
        (1..=month.days)
            .filter(|day| filter.allows(&month, *day))
            .collect()
    }

    #[test]
    fn special_days_are_those_of_the_month() {
        // August 2026 begins on a Saturday, May 2026 ends on a Sunday.
        let table: [(Field, &str, u32, &[u32]); 14] = [
            (Field::DayOfMonth, "L", 2, &[28]),
            (Field::DayOfMonth, "L-3", 2, &[25]),
            (Field::DayOfMonth, "L-30", 2, &[]),
            (Field::DayOfMonth, "L-30", 8, &[1]),
            (Field::DayOfMonth, "LW", 5, &[29]),
            (Field::DayOfMonth, "1W", 8, &[3]),
            (Field::DayOfMonth, "15W", 8, &[14]),
            (Field::DayOfMonth, "16W", 8, &[17]),
            (Field::DayOfMonth, "31W", 5, &[29]),
            (Field::DayOfMonth, "31W", 6, &[]),
            (Field::DayOfWeek, "6#1", 8, &[1]),
            (Field::DayOfWeek, "1#5", 8, &[31]),
            (Field::DayOfWeek, "5#5", 8, &[]),
            (Field::DayOfWeek, "5L,0L", 8, &[28, 30]),
        ];
        for (field, text, month, expected) in table {
            assert_eq!(
                days(field, text, 2026, month),
                expected,
                "{text} in {month}"
            );
        }
        assert_eq!(days(Field::DayOfMonth, "L", 2028, 2), [29]);
    }
}
