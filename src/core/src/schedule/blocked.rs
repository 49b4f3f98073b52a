//! Hours and dates in which nothing is due.

use std::collections::BTreeSet;

use chrono::{DateTime, Timelike, Utc};

use crate::model::schedule::Policy;
use crate::model::{Timestamp, Zone};

/// Borders of hours and dates lie on quarters of an hour of UTC in every zone of today.
const STEP_MS: i64 = 15 * 60_000;

/// When nothing is due.
pub(super) struct Blocked<'a> {
    hours: &'a [u8],
    dates: BTreeSet<&'a str>,
    zone: Zone,
}

impl<'a> Blocked<'a> {
    /// By a policy, in a zone.
    pub(super) fn new(policy: &'a Policy, zone: Zone) -> Blocked<'a> {
        Blocked {
            hours: &policy.blocked_hours,
            dates: policy.blocked_dates.iter().map(String::as_str).collect(),
            zone,
        }
    }

    fn is_empty(&self) -> bool {
        self.hours.is_empty() && self.dates.is_empty()
    }

    /// Whether an instant is blocked.
    pub(super) fn holds(&self, at: Timestamp) -> bool {
        if self.is_empty() {
            return false;
        }
        let Some(utc) = DateTime::<Utc>::from_timestamp_millis(at.millis()) else {
            return false;
        };
        let local = utc.with_timezone(&self.zone);
        let hour = u8::try_from(local.hour()).unwrap_or(u8::MAX);
        self.hours.contains(&hour)
            || (!self.dates.is_empty()
                && self
                    .dates
                    .contains(local.format("%Y-%m-%d").to_string().as_str()))
    }

    /// The instant from which on it is no longer blocked, at most the one after `most`; `None` where `at`
    /// is not blocked.
    pub(super) fn until(&self, at: Timestamp, most: Timestamp) -> Option<Timestamp> {
        if !self.holds(at) {
            return None;
        }
        let mut border = quarter_after(at);
        while border <= most && self.holds(border) {
            border = quarter_after(border);
        }
        Some(border.min(most.plus_millis(1)))
    }

    /// The first blocked instant from `from` to `most`.
    pub(super) fn next_from(&self, from: Timestamp, most: Timestamp) -> Option<Timestamp> {
        if self.is_empty() {
            return None;
        }
        let mut at = from;
        while at <= most {
            if self.holds(at) {
                return Some(at);
            }
            at = quarter_after(at);
        }
        None
    }

    /// Since when it is blocked, not before the instant after `least`; `None` where `at` is not blocked.
    pub(super) fn since(&self, at: Timestamp, least: Timestamp) -> Option<Timestamp> {
        if !self.holds(at) {
            return None;
        }
        let mut border = quarter_of(at);
        while border > least && self.holds(border.just_before()) {
            border = quarter_of(border.just_before());
        }
        Some(border.max(least.plus_millis(1)))
    }
}

fn quarter_of(at: Timestamp) -> Timestamp {
    let millis = at.millis();
    Timestamp::from_millis(millis.saturating_sub(millis.rem_euclid(STEP_MS)))
}

fn quarter_after(at: Timestamp) -> Timestamp {
    Timestamp::from_millis(quarter_of(at).millis().saturating_add(STEP_MS))
}
