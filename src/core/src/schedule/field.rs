//! The fields of an expression: their ranges, their names, and what was written in them.

/// One field of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    Second,
    Minute,
    Hour,
    DayOfMonth,
    Month,
    DayOfWeek,
}

/// What each field of an expression says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fields {
    pub(crate) second: FieldValues,
    pub(crate) minute: FieldValues,
    pub(crate) hour: FieldValues,
    pub(crate) day_of_month: FieldValues,
    pub(crate) month: FieldValues,
    pub(crate) day_of_week: FieldValues,
}

/// English names of the months, January first.
pub(crate) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// English names of the days of the week, Sunday first.
pub(crate) const WEEKDAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

impl Field {
    /// The fields of an expression with seconds, in the order in which they are written.
    pub(crate) const ALL: [Field; 6] = [
        Field::Second,
        Field::Minute,
        Field::Hour,
        Field::DayOfMonth,
        Field::Month,
        Field::DayOfWeek,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Field::Second => "second",
            Field::Minute => "minute",
            Field::Hour => "hour",
            Field::DayOfMonth => "day of the month",
            Field::Month => "month",
            Field::DayOfWeek => "day of the week",
        }
    }

    pub(crate) fn min(self) -> u32 {
        match self {
            Field::DayOfMonth | Field::Month => 1,
            _ => 0,
        }
    }

    /// The largest number that may be written; 7 is Sunday again.
    pub(crate) fn max(self) -> u32 {
        match self {
            Field::Second | Field::Minute => 59,
            Field::Hour => 23,
            Field::DayOfMonth => 31,
            Field::Month => 12,
            Field::DayOfWeek => 7,
        }
    }

    /// The full names of its values, from [`Field::min`] on.
    pub(crate) fn names(self) -> &'static [&'static str] {
        match self {
            Field::Month => &MONTHS,
            Field::DayOfWeek => &WEEKDAYS,
            _ => &[],
        }
    }

    pub(crate) fn is_day(self) -> bool {
        matches!(self, Field::DayOfMonth | Field::DayOfWeek)
    }

    /// Every value of the field.
    pub(crate) fn everything(self) -> Values {
        let mut values = Values::default();
        for value in self.min()..=self.max() {
            values.insert(self.canonical(value));
        }
        values
    }

    /// Sunday is 0.
    pub(crate) fn canonical(self, value: u32) -> u32 {
        if self == Field::DayOfWeek {
            value % 7
        } else {
            value
        }
    }
}

/// A set of numbers from 0 to 63.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Values(u64);

impl Values {
    /// The set of one number.
    pub(crate) fn one(value: u32) -> Values {
        let mut values = Values::default();
        values.insert(value);
        values
    }

    /// Adds `value`; numbers above 63 are left out.
    pub(crate) fn insert(&mut self, value: u32) {
        self.0 |= 1_u64.checked_shl(value).unwrap_or(0);
    }

    pub(crate) fn contains(self, value: u32) -> bool {
        self.0 & 1_u64.checked_shl(value).unwrap_or(0) != 0
    }

    pub(crate) fn or(self, other: Values) -> Values {
        Values(self.0 | other.0)
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// In ascending order.
    pub(crate) fn iter(self) -> impl Iterator<Item = u32> {
        (0..64).filter(move |value| self.contains(*value))
    }
}

/// A day that is another one in each month.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpecialDay {
    /// `L`, `L-3`: so many days before the last day of the month.
    BeforeLast(u32),
    /// `LW`: the last of Monday to Friday.
    LastWorkday,
    /// `15W`: the one of Monday to Friday nearest to the day, in the same month.
    NearestWorkday(u32),
    /// `5#2`: the nth such weekday.
    Nth {
        /// Sunday is 0.
        weekday: u32,
        /// 1 to 5.
        nth: u32,
    },
    /// `5L`: the last such weekday; Sunday is 0.
    LastWeekday(u32),
}

/// What one field says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct FieldValues {
    /// Its text starts with `*`, or is `?`.
    pub(crate) star: bool,
    /// The plain numbers.
    pub(crate) values: Values,
    /// The days that depend on the month, in the order in which they are written.
    pub(crate) special: Vec<SpecialDay>,
}

impl FieldValues {
    pub(crate) fn is_everything(&self, field: Field) -> bool {
        self.values == field.everything()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_was_put_into_it() {
        let mut values = Values::one(63);
        values.insert(0);
        values.insert(64);
        assert_eq!(values.iter().collect::<Vec<_>>(), [0, 63]);
        assert!(!values.contains(64));
        assert_eq!(Field::DayOfWeek.everything().len(), 7);
    }
}
