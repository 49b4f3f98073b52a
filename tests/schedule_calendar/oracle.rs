//! What an expression means, day by day and second by second, from nothing but what was thrown.

use chrono::{Datelike, Days, NaiveDate, NaiveDateTime, NaiveTime, Timelike};

use crate::written::{BOUNDS, Item, Written};

fn is(item: Item, field: usize, number: u32) -> bool {
    let (min, max) = BOUNDS[field];
    let within = |low: u32, high: u32, step: u32| {
        let meant =
            |written: u32| (low..=high).contains(&written) && (written - low).is_multiple_of(step);
        meant(number) || (field == 5 && number == 0 && meant(7))
    };
    match item {
        Item::Star => true,
        Item::Value(value) => within(value, value, 1),
        Item::Range(low, high) => within(low, high, 1),
        Item::RangeStep(low, high, step) => within(low, high, step),
        Item::StarStep(step) => within(min, max, step),
        Item::OpenStep(low, step) => within(low, max, step),
        _ => false,
    }
}

fn is_day(item: Item, date: NaiveDate) -> bool {
    let later = |days: u32| date + Days::new(u64::from(days));
    let workday = |date: NaiveDate| date.weekday().number_from_monday() <= 5;
    let same_month = |other: &NaiveDate| other.month() == date.month();
    match item {
        Item::Last => later(1).day() == 1,
        Item::BeforeLast(days) => same_month(&later(days)) && later(days + 1).day() == 1,
        Item::LastWorkday => workday(date) && !(1..=3).map(later).filter(same_month).any(workday),
        Item::NearestWorkday(day) => {
            let Some(wanted) = date.with_day(day) else {
                return false;
            };
            let month = (1..=31)
                .filter_map(|day| date.with_day(day))
                .filter(|day| workday(*day));
            month.min_by_key(|day| (*day - wanted).num_days().abs()) == Some(date)
        }
        Item::Nth(weekday, nth) => {
            let earlier = (1..date.day()).filter_map(|day| date.with_day(day));
            let before = earlier
                .filter(|day| day.weekday() == date.weekday())
                .count();
            is(
                Item::Value(weekday),
                5,
                date.weekday().num_days_from_sunday(),
            ) && before + 1 == nth as usize
        }
        Item::LastWeekday(weekday) => {
            is(
                Item::Value(weekday),
                5,
                date.weekday().num_days_from_sunday(),
            ) && !same_month(&later(7))
        }
        _ => false,
    }
}

impl Written {
    fn number_fits(&self, field: usize, number: u32) -> bool {
        self.fields[field]
            .iter()
            .any(|item| is(*item, field, number))
    }

    pub(crate) fn date_fits(&self, date: NaiveDate) -> bool {
        let special = |field: usize| self.fields[field].iter().any(|item| is_day(*item, date));
        let star = |field: usize| matches!(self.fields[field][0], Item::Star | Item::StarStep(_));
        let month_day = self.number_fits(3, date.day()) || special(3);
        let weekday = self.number_fits(5, date.weekday().num_days_from_sunday()) || special(5);
        let day = if star(3) || star(5) {
            month_day && weekday
        } else {
            month_day || weekday
        };
        day && self.number_fits(4, date.month())
    }

    pub(crate) fn time_fits(&self, time: NaiveTime) -> bool {
        self.number_fits(2, time.hour())
            && self.number_fits(1, time.minute())
            && self.number_fits(0, time.second())
    }

    fn times(&self) -> Vec<NaiveTime> {
        let seconds: Vec<u32> = (0..60)
            .filter(|second| self.number_fits(0, *second))
            .collect();
        let minutes: Vec<u32> = (0..60)
            .filter(|minute| self.number_fits(1, *minute))
            .collect();
        let mut times = Vec::new();
        for hour in (0..24).filter(|hour| self.number_fits(2, *hour)) {
            for minute in &minutes {
                let of = |second: &u32| NaiveTime::from_hms_opt(hour, *minute, *second);
                times.extend(seconds.iter().filter_map(of));
            }
        }
        times
    }

    /// The first `count` times after `from`, looking at so many days.
    pub(crate) fn enumerate(&self, from: NaiveDateTime, count: usize, days: u64) -> Vec<i64> {
        let times = self.times();
        let mut found = Vec::new();
        for date in (0..days).map(|day| from.date() + Days::new(day)) {
            if found.len() >= count {
                break;
            }
            if self.date_fits(date) {
                let day = times.iter().map(|time| date.and_time(*time));
                let room = count - found.len();
                found.extend(day.filter(|time| *time > from).take(room));
            }
        }
        found
            .into_iter()
            .map(|time| time.and_utc().timestamp())
            .collect()
    }
}
