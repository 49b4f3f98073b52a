//! The record of counts of slots: half a day of UTC, by half hours.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::Timestamp;
use crate::protocol::{HALF_HOUR_MS, SlotCounts};

/// How long the stretch of one record is, in milliseconds.
const HALF_DAY_MS: i64 = 24 * HALF_HOUR_MS;

/// Counts by half hours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub(super) struct HalfDay(pub(super) [SlotCounts; 24]);

/// By the number of the half hour two lists without zeros at their ends: statuses and outcomes.
type Stored = BTreeMap<usize, [Vec<u32>; 2]>;

impl From<Stored> for HalfDay {
    fn from(stored: Stored) -> HalfDay {
        let mut half_day = HalfDay::default();
        for (number, [statuses, outcomes]) in stored {
            if let Some(counts) = half_day.0.get_mut(number) {
                *counts = SlotCounts::of_lists([&statuses, &outcomes]);
            }
        }
        half_day
    }
}

impl From<HalfDay> for Stored {
    fn from(half_day: HalfDay) -> Stored {
        let half_hours = half_day.0.iter().enumerate();
        let some = half_hours.filter(|(_, counts)| !counts.is_empty());
        some.map(|(number, counts)| (number, counts.lists().map(used)))
            .collect()
    }
}

fn used(counts: &[u32]) -> Vec<u32> {
    let last = counts.iter().rposition(|count| *count > 0);
    last.map_or_else(Vec::new, |last| counts[..=last].to_vec())
}

/// The beginning of the half day in which an instant lies, and the number of its half hour there.
pub(super) fn place_of(at: Timestamp) -> (Timestamp, usize) {
    let millis = at.millis();
    let half_day = millis.div_euclid(HALF_DAY_MS).saturating_mul(HALF_DAY_MS);
    let half_hour = millis.rem_euclid(HALF_DAY_MS) / HALF_HOUR_MS;
    let half_hour = usize::try_from(half_hour).unwrap_or(0);
    (Timestamp::from_millis(half_day), half_hour)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::schedule::SlotStatus;

    #[test]
    fn the_largest_counts_fit_into_a_record() {
        let most = [u32::MAX; 32];
        let half_day = HalfDay([SlotCounts::of_lists([&most, &most]); 24]);
        let text = serde_json::to_string(&half_day).unwrap();
        assert!(
            text.len() <= crate::record::INLINE_BYTES_MAX,
            "{}",
            text.len()
        );
        assert_eq!(serde_json::from_str::<HalfDay>(&text).unwrap(), half_day);
    }

    #[test]
    fn what_is_stored_has_no_zeros_at_its_ends_and_may_be_longer() {
        let mut half_day = HalfDay::default();
        half_day.0[7] = SlotCounts::of_status(SlotStatus::CaughtUp, 3);
        half_day.0[7].add(&SlotCounts::of_outcome("succeeded"));
        let text = serde_json::to_string(&half_day).unwrap();
        assert_eq!(text, r#"{"7":[[0,3],[1]]}"#);
        let longer = r#"{"7":[[0,3,0,0,0,0,0,0,9],[1]],"24":[[1],[]]}"#;
        assert_eq!(serde_json::from_str::<HalfDay>(longer).unwrap(), half_day);
        assert!(serde_json::from_str::<HalfDay>(r#"{"7":[[-1],[1]]}"#).is_err());
    }
}
