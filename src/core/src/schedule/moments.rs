//! Single moments: local times of a zone, or instants with an offset of their own.

use chrono::{DateTime, LocalResult, NaiveDate, NaiveDateTime, Offset, TimeZone};

use super::error::ExpressionError;
use super::zone::{REACH, change_within};
use crate::model::schedule::{Dst, Fold, Gap};
use crate::model::{Timestamp, Zone};

/// What is wrong with one of the texts of a list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct MomentError {
    /// Which of the texts, from zero.
    pub index: usize,
    /// What is wrong with it; places are bytes of that text.
    pub error: ExpressionError,
}

/// A list of moments and the slots that they are.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Moments {
    pub(crate) zone: Zone,
    pub(crate) dst: Dst,
    /// The local times as they were written, without those that brought an offset along.
    pub(crate) locals: Vec<NaiveDateTime>,
    /// In ascending order, each once.
    pub(crate) slots: Vec<Timestamp>,
}

/// One text of the list.
enum Moment {
    Local(NaiveDateTime),
    Instant(i64),
}

impl Moments {
    pub(crate) fn read(texts: &[String], zone: Zone, dst: Dst) -> Result<Moments, MomentError> {
        let mut moments = Moments {
            zone,
            dst,
            locals: Vec::new(),
            slots: Vec::new(),
        };
        for (index, text) in texts.iter().enumerate() {
            let moment = read(text).map_err(|error| MomentError { index, error })?;
            match moment {
                Moment::Instant(at) => moments.slots.push(Timestamp::from_millis(at)),
                Moment::Local(local) => {
                    moments.locals.push(local);
                    let seconds = instants(zone, dst, local);
                    let slots = seconds
                        .into_iter()
                        .map(|at| Timestamp::from_millis(at * 1_000));
                    moments.slots.extend(slots);
                }
            }
        }
        moments.sort();
        Ok(moments)
    }

    pub(crate) fn of(slots: Vec<Timestamp>) -> Moments {
        Moments {
            zone: Zone::UTC,
            dst: Dst::FIXED_TIME,
            locals: Vec::new(),
            slots,
        }
    }

    fn sort(&mut self) {
        self.slots.sort_unstable();
        self.slots.dedup();
    }
}

fn read(text: &str) -> Result<Moment, ExpressionError> {
    let written = text.trim_ascii();
    if let Ok(instant) = DateTime::parse_from_rfc3339(written) {
        return within_years(text, instant.naive_utc())
            .map(|_| Moment::Instant(instant.timestamp_millis()));
    }
    for form in [
        "%Y-%m-%dT%H:%M",
        "%Y-%m-%dT%H:%M:%S",
        "%Y-%m-%d %H:%M",
        "%Y-%m-%d %H:%M:%S",
    ] {
        if let Ok(local) = NaiveDateTime::parse_from_str(written, form) {
            return within_years(text, local).map(Moment::Local);
        }
    }
    let hint = if NaiveDate::parse_from_str(written, "%Y-%m-%d").is_ok() {
        format!("add the time of day: `{written}T00:00`")
    } else {
        "write date and time of the zone, as in `2026-12-24T18:00`".to_owned()
    };
    Err(ExpressionError::new(
        "at-unreadable",
        0..text.len(),
        format!("`{}` is not a date with a time of day", text.escape_debug()),
        hint,
    ))
}

fn within_years(text: &str, time: NaiveDateTime) -> Result<NaiveDateTime, ExpressionError> {
    use chrono::Datelike;
    // A leap second has no place in the calendar of the system.
    let second = chrono::Timelike::nanosecond(&time) < 1_000_000_000;
    if (1_900..=9_998).contains(&time.year()) && second {
        return Ok(time);
    }
    Err(ExpressionError::new(
        "at-out-of-range",
        0..text.len(),
        format!(
            "`{}` is no moment of the years 1900 to 9998",
            text.escape_debug()
        ),
        "write a moment that can come",
    ))
}

/// The seconds since the epoch that `local` is under the rule `dst`.
fn instants(zone: Zone, dst: Dst, local: NaiveDateTime) -> Vec<i64> {
    let utc = |offset: i32| local.and_utc().timestamp() - i64::from(offset);
    match zone.offset_from_local_datetime(&local) {
        LocalResult::Single(offset) => vec![utc(offset.fix().local_minus_utc())],
        LocalResult::Ambiguous(first, second) => {
            let first = utc(first.fix().local_minus_utc());
            let second = utc(second.fix().local_minus_utc());
            match dst.fold {
                Fold::First => vec![first.min(second)],
                Fold::Second => vec![first.max(second)],
                Fold::Both => vec![first, second],
            }
        }
        LocalResult::None if dst.gap == Gap::Skip => Vec::new(),
        LocalResult::None => {
            let near = local.and_utc().timestamp();
            change_within(zone, near - REACH, near + REACH)
                .map(|change| change.at)
                .into_iter()
                .collect()
        }
    }
}
