//! Reads one field: a list of numbers, names, ranges, steps and special days.

use std::ops::Range;

use super::error::ExpressionError;
use super::field::{Field, FieldValues, SpecialDay, Values};

/// A part of the text and where it begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece<'a> {
    pub(crate) text: &'a str,
    pub(crate) at: usize,
}

impl<'a> Piece<'a> {
    pub(crate) fn range(self) -> Range<usize> {
        self.at..self.at + self.text.len()
    }

    fn split_once(self, separator: char) -> Option<(Piece<'a>, Piece<'a>)> {
        let (left, right) = self.text.split_once(separator)?;
        let right = Piece {
            text: right,
            at: self.at + self.text.len() - right.len(),
        };
        let left = Piece {
            text: left,
            at: self.at,
        };
        Some((left, right))
    }
}

/// Reads one field of an expression.
pub(crate) fn read_field(field: Field, piece: Piece) -> Result<FieldValues, ExpressionError> {
    if piece.text == "?" && field.is_day() {
        return Ok(FieldValues {
            star: true,
            values: field.everything(),
            special: Vec::new(),
        });
    }
    let mut read = FieldValues {
        star: piece.text.starts_with('*'),
        ..FieldValues::default()
    };
    let mut at = piece.at;
    for text in piece.text.split(',') {
        let item = Piece { text, at };
        at += text.len() + 1;
        match special_day(field, item)? {
            Some(day) => read.special.push(day),
            None => read.values = read.values.or(plain(field, item, piece)?),
        }
    }
    Ok(read)
}

/// `*`, a number or name, a range, each with a step or without.
fn plain(field: Field, item: Piece, whole: Piece) -> Result<Values, ExpressionError> {
    if item.text.is_empty() {
        let from = item.at.saturating_sub(1).max(whole.at);
        return Err(ExpressionError::new(
            "cron-empty-item",
            from..(item.at + 1).min(whole.range().end),
            format!("an item of the list of the {} is empty", field.name()),
            "remove the comma, or write a value",
        ));
    }
    let (base, step) = match item.split_once('/') {
        Some((base, step)) => (base, Some(step_of(step)?)),
        None => (item, None),
    };
    let mut values = Values::default();
    let mut add = |low: u32, high: u32| {
        let step = usize::try_from(step.unwrap_or(1)).unwrap_or(usize::MAX);
        for value in (low..=high).step_by(step) {
            values.insert(field.canonical(value));
        }
    };
    if base.text == "*" {
        add(field.min(), field.max());
    } else if let Some((low, high)) = base.split_once('-') {
        let (low, high) = range_of(field, base, low, high, step)?;
        add(low, high);
    } else {
        let low = value_of(field, base)?;
        add(low, if step.is_some() { field.max() } else { low });
    }
    Ok(values)
}

fn step_of(step: Piece) -> Result<u32, ExpressionError> {
    let digits = !step.text.is_empty() && step.text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits {
        let from = step.at - 1;
        return Err(ExpressionError::new(
            "cron-step-unreadable",
            from..step.range().end,
            format!("`/{}` is not a step", step.text),
            "write a number after the slash, as in `*/15`",
        ));
    }
    // A step beyond every field is one beyond the field.
    let number = step.text.parse().unwrap_or(u32::MAX);
    if number == 0 {
        return Err(ExpressionError::new(
            "cron-zero-step",
            step.range(),
            "a step of zero leads nowhere",
            "write a step of 1 or more",
        ));
    }
    Ok(number)
}

fn range_of(
    field: Field,
    whole: Piece,
    low: Piece,
    high: Piece,
    step: Option<u32>,
) -> Result<(u32, u32), ExpressionError> {
    let first = value_of(field, low)?;
    let last = value_of(field, high)?;
    let by_name = high.text.starts_with(|c: char| c.is_ascii_alphabetic());
    // A week that is written by name may end on Sunday: nobody means anything else.
    let last = if field == Field::DayOfWeek && by_name && last == 0 && first > 0 {
        7
    } else {
        last
    };
    if first <= last {
        return Ok((first, last));
    }
    let hint = match step {
        None if field == Field::DayOfWeek && last == 0 => {
            format!("Sunday at the end of a range is 7: write `{first}-7`")
        }
        None => format!("write it as a list: `{}`", unwrapped(field, first, last)),
        Some(step) => format!(
            "write the values out: `{}`",
            wrapped_steps(field, first, last, step)
        ),
    };
    Err(ExpressionError::new(
        "cron-range-wraps",
        whole.range(),
        format!("the range `{}` ends before it begins", whole.text),
        hint,
    ))
}

/// `22-2` as `22-23,0-2`.
fn unwrapped(field: Field, first: u32, last: u32) -> String {
    let show = |low: u32, high: u32| {
        if low == high {
            low.to_string()
        } else {
            format!("{low}-{high}")
        }
    };
    if field == Field::DayOfWeek && first == 7 {
        return show(0, last);
    }
    format!("{},{}", show(first, field.max()), show(field.min(), last))
}

fn wrapped_steps(field: Field, first: u32, last: u32, step: u32) -> String {
    let highest = if field == Field::DayOfWeek {
        6
    } else {
        field.max()
    };
    let step = usize::try_from(step).unwrap_or(usize::MAX);
    let turn = (first..=highest).chain(field.min()..=last);
    let values: Vec<String> = turn.step_by(step).map(|value| value.to_string()).collect();
    values.join(",")
}

/// A number or a name.
fn value_of(field: Field, piece: Piece) -> Result<u32, ExpressionError> {
    if !piece.text.is_empty() && piece.text.bytes().all(|byte| byte.is_ascii_digit()) {
        return number_of(field, piece, field.min(), field.max());
    }
    let name = !piece.text.is_empty() && piece.text.chars().all(char::is_alphabetic);
    if !name {
        return Err(unreadable(field, piece));
    }
    let names = field.names();
    let written = piece.text.to_ascii_lowercase();
    let found = names.iter().position(|name| {
        let name = name.to_ascii_lowercase();
        name == written || name.get(..3) == Some(written.as_str())
    });
    match found.and_then(|index| u32::try_from(index).ok()) {
        Some(index) => Ok(index + field.min()),
        None => Err(unknown_name(field, piece, &written)),
    }
}

fn number_of(field: Field, piece: Piece, min: u32, max: u32) -> Result<u32, ExpressionError> {
    match piece.text.parse::<u32>() {
        Ok(number) if (min..=max).contains(&number) => Ok(number),
        _ => Err(ExpressionError::new(
            "cron-out-of-range",
            piece.range(),
            format!("{} {} does not exist", field.name(), piece.text),
            format!("write a number from {min} to {max}"),
        )),
    }
}

fn unreadable(field: Field, piece: Piece) -> ExpressionError {
    let message = if piece.text.is_empty() {
        format!("a value of the {} is missing", field.name())
    } else {
        format!("`{}` is no value of the {}", piece.text, field.name())
    };
    ExpressionError::new("cron-unreadable", piece.range(), message, allowed(field))
}

fn unknown_name(field: Field, piece: Piece, written: &str) -> ExpressionError {
    let near = field
        .names()
        .iter()
        .map(|name| (distance(name, written), name))
        .min()
        .filter(|(distance, _)| *distance <= 2);
    let hint = match near {
        Some((_, name)) => format!("did you mean `{name}`?"),
        None => allowed(field),
    };
    ExpressionError::new(
        "cron-name-unknown",
        piece.range(),
        format!("there is no {} called `{}`", field.name(), piece.text),
        hint,
    )
}

/// To the full name or to its three letters, whichever is nearer.
fn distance(name: &str, written: &str) -> usize {
    let name = name.to_ascii_lowercase();
    let short = name.get(..3).unwrap_or(&name);
    strsim::damerau_levenshtein(&name, written).min(strsim::damerau_levenshtein(short, written))
}

fn allowed(field: Field) -> String {
    let (min, max) = (field.min(), field.max());
    let names = match field {
        Field::Month => ", or `JAN` to `DEC`",
        Field::DayOfWeek => ", or `MON` to `SUN`",
        _ => "",
    };
    format!("write numbers from {min} to {max}{names}, `*`, ranges, lists or steps")
}

/// `L`, `LW`, `L-3`, `15W` for days of the month, `5#2` and `5L` for days of the week.
fn special_day(field: Field, item: Piece) -> Result<Option<SpecialDay>, ExpressionError> {
    let upper = item.text.to_ascii_uppercase();
    match field {
        Field::DayOfMonth if upper.contains(['L', 'W', '#']) => {
            month_day(field, item, &upper).map(Some)
        }
        Field::DayOfWeek => week_day(field, item, &upper),
        _ if looks_special(&upper) => Err(misplaced(field, item)),
        _ => Ok(None),
    }
}

fn month_day(field: Field, item: Piece, upper: &str) -> Result<SpecialDay, ExpressionError> {
    match upper {
        "L" => return Ok(SpecialDay::BeforeLast(0)),
        "LW" => return Ok(SpecialDay::LastWorkday),
        _ => {}
    }
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if let Some((_, days)) = item.split_once('-')
        && upper.starts_with("L-")
        && digits(days.text)
    {
        return number_of(field, days, 1, 30).map(SpecialDay::BeforeLast);
    }
    if let Some(text) = item.text.strip_suffix(['w', 'W'])
        && digits(text)
    {
        let day = Piece { text, at: item.at };
        return number_of(field, day, 1, 31).map(SpecialDay::NearestWorkday);
    }
    let name = upper.len() >= 3 && upper.bytes().all(|byte| byte.is_ascii_alphabetic());
    if name && !looks_special(upper) {
        return Err(unreadable(field, item));
    }
    Err(misplaced(field, item))
}

fn week_day(field: Field, item: Piece, upper: &str) -> Result<Option<SpecialDay>, ExpressionError> {
    if let Some((weekday, nth)) = item.split_once('#') {
        if nth.text.eq_ignore_ascii_case("L") || weekday.text.contains(['-', '/', '*']) {
            return Err(misplaced(field, item));
        }
        let weekday = field.canonical(value_of(field, weekday)?);
        return match nth.text {
            "1" | "2" | "3" | "4" | "5" => {
                let nth = nth.text.parse().unwrap_or(1);
                Ok(Some(SpecialDay::Nth { weekday, nth }))
            }
            _ => Err(ExpressionError::new(
                "cron-out-of-range",
                nth.range(),
                format!("a month has no weekday number `{}`", nth.text),
                "write 1 to 5 after `#`, or `5L` for the last Friday",
            )),
        };
    }
    if let Some(text) = item.text.strip_suffix(['l', 'L']) {
        let day = Piece { text, at: item.at };
        if text.is_empty() || text.contains(['-', '/', '*']) {
            return Err(misplaced(field, item));
        }
        let weekday = field.canonical(value_of(field, day)?);
        return Ok(Some(SpecialDay::LastWeekday(weekday)));
    }
    if looks_special(upper) {
        return Err(misplaced(field, item));
    }
    Ok(None)
}

/// Whether it uses the letters of special days, and is no name.
fn looks_special(upper: &str) -> bool {
    let rest = upper.trim_start_matches(|c: char| c.is_ascii_digit() || "*-/".contains(c));
    let letters = rest.trim_end_matches(|c: char| c.is_ascii_digit() || "*-/".contains(c));
    upper.contains('#') || matches!(letters, "L" | "W" | "LW" | "WL")
}

fn misplaced(field: Field, item: Piece) -> ExpressionError {
    let hint = match field {
        Field::DayOfMonth => {
            "this field accepts `L`, `LW`, `L-3` and `15W`, each as an item of its own; \
             `5#2` and `5L` belong to the day of the week"
        }
        Field::DayOfWeek => {
            "this field accepts `5#2` and `5L`, each for one weekday; `L`, `LW` and `15W` belong to the day of the month"
        }
        _ => "`L`, `W` and `#` belong to the fields of days",
    };
    ExpressionError::new(
        "cron-special-misplaced",
        item.range(),
        format!("`{}` means nothing as {}", item.text, field.name()),
        hint,
    )
}
