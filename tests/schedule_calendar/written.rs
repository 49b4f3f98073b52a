//! Expressions as they are thrown by dice: what is meant, and the text that says it.

use workerctl::schedule::{Dst, Fold, Gap};

use crate::Dice;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Item {
    Star,
    Value(u32),
    Range(u32, u32),
    StarStep(u32),
    RangeStep(u32, u32, u32),
    OpenStep(u32, u32),
    Last,
    BeforeLast(u32),
    LastWorkday,
    NearestWorkday(u32),
    Nth(u32, u32),
    LastWeekday(u32),
}

/// Lowest and highest number of each field, seconds first.
pub(crate) const BOUNDS: [(u32, u32); 6] = [(0, 59), (0, 59), (0, 23), (1, 31), (1, 12), (0, 7)];

const NAMES: [&[&str]; 2] = [
    &[
        "",
        "jan",
        "Feb",
        "MAR",
        "April",
        "may",
        "JUNE",
        "Jul",
        "aug",
        "September",
        "oct",
        "Nov",
        "DEC",
    ],
    &[
        "SUN",
        "mon",
        "Tue",
        "wednesday",
        "THU",
        "fri",
        "Saturday",
        "sun",
    ],
];

#[derive(Debug, Clone)]
pub(crate) struct Written {
    /// Second to weekday.
    pub(crate) fields: [Vec<Item>; 6],
    pub(crate) seconds: bool,
    names: bool,
}

impl Written {
    pub(crate) fn new(fields: [Vec<Item>; 6]) -> Written {
        Written {
            fields,
            seconds: false,
            names: false,
        }
    }

    /// Once a day where minute and hour are fixed, in real time where one of them is a star.
    pub(crate) fn default_dst(&self) -> Dst {
        let star = |field: usize| matches!(self.fields[field][0], Item::Star | Item::StarStep(_));
        let (gap, fold) = if star(1) || star(2) {
            (Gap::Skip, Fold::Both)
        } else {
            (Gap::RunAfter, Fold::First)
        };
        Dst { gap, fold }
    }

    pub(crate) fn text(&self) -> String {
        let from = usize::from(!self.seconds);
        let fields: Vec<String> = (from..6).map(|field| self.field(field)).collect();
        fields.join(" ")
    }

    fn field(&self, field: usize) -> String {
        let value = |number: u32| match field {
            // By name there is one Sunday, the first of a week; only a range may end on it.
            4 | 5 if self.names && number != 7 => NAMES[field - 4][number as usize].to_owned(),
            4 if self.names => NAMES[0][7].to_owned(),
            _ => number.to_string(),
        };
        let end = |low: u32, high: u32| match high {
            7 if field == 5 && self.names && low > 0 => NAMES[1][7].to_owned(),
            _ => value(high),
        };
        let items: Vec<String> = self.fields[field]
            .iter()
            .map(|item| match *item {
                Item::Star => "*".to_owned(),
                Item::Value(number) => value(number),
                Item::Range(low, high) => format!("{}-{}", value(low), end(low, high)),
                Item::StarStep(step) => format!("*/{step}"),
                Item::RangeStep(low, high, step) => {
                    format!("{}-{}/{step}", value(low), end(low, high))
                }
                Item::OpenStep(low, step) => format!("{}/{step}", value(low)),
                Item::Last => "L".to_owned(),
                Item::BeforeLast(days) => format!("L-{days}"),
                Item::LastWorkday => "LW".to_owned(),
                Item::NearestWorkday(day) => format!("{day}W"),
                Item::Nth(weekday, nth) => format!("{}#{nth}", value(weekday)),
                Item::LastWeekday(weekday) => format!("{}L", value(weekday)),
            })
            .collect();
        items.join(",")
    }
}

pub(crate) fn throw(dice: &mut Dice) -> Written {
    let seconds = dice.below(8) == 0;
    let mut fields: [Vec<Item>; 6] = std::array::from_fn(|field| throw_field(dice, field));
    if !seconds {
        fields[0] = vec![Item::Value(0)];
    }
    // Weekdays by name: a range may end on Sunday, and never begins with its second number.
    let names = dice.below(4) == 0;
    Written {
        fields,
        seconds,
        names,
    }
}

fn throw_field(dice: &mut Dice, field: usize) -> Vec<Item> {
    let stars = [3, 2, 2, 5, 6, 5][field];
    if dice.below(10) < stars {
        return vec![Item::Star];
    }
    let count = if dice.below(3) == 0 {
        dice.from(2, 4)
    } else {
        1
    };
    (0..count).map(|_| throw_item(dice, field)).collect()
}

fn throw_item(dice: &mut Dice, field: usize) -> Item {
    let (min, max) = BOUNDS[field];
    let special = match field {
        3 => dice.below(16),
        5 => 8 + dice.below(12),
        _ => 99,
    };
    match special {
        0 => return Item::Last,
        1 => return Item::BeforeLast(dice.from(1, 30)),
        2 => return Item::LastWorkday,
        3 => return Item::NearestWorkday(dice.from(1, 31)),
        17 if field == 5 => return Item::Nth(dice.from(0, 7), dice.from(1, 5)),
        18 if field == 5 => return Item::LastWeekday(dice.from(0, 7)),
        _ => {}
    }
    let low = dice.from(min, max);
    let high = dice.from(low, max);
    match dice.below(12) {
        0 => Item::StarStep(dice.from(1, max + 2)),
        1 | 2 => Item::RangeStep(low, high, dice.from(1, 9)),
        3 => Item::OpenStep(low, dice.from(1, 20)),
        4..7 => Item::Range(low, high),
        _ => Item::Value(low),
    }
}
