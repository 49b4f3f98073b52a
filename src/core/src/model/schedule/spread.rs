//! Where the slots of a row lie, of which only the first, the last and their number are known.

use super::SlotRow;
use crate::model::Timestamp;

/// How far before its end the slots of a stretch are told, in milliseconds: 400 days.
const TOLD_MS: u64 = 400 * 24 * 3_600_000;

/// Tells of slots after one instant up to another, evenly between them, how many lie in each step of so many
/// milliseconds since the epoch: at most one call a step and one a slot.
pub fn spread(
    (after, until): (Timestamp, Timestamp),
    count: u64,
    step_ms: i64,
    see: &mut dyn FnMut(Timestamp, u64),
) {
    let length = i128::from(until.millis_since(after).max(1));
    let count = i128::from(count);
    let slot = |number: i128| {
        let offset = u64::try_from(number * length / count).unwrap_or(0);
        after.plus_millis(offset)
    };
    // How many come before an instant.
    let before = |at: Timestamp| {
        let offset = i128::from(at.millis()) - i128::from(after.millis());
        ((offset * count + length - 1).div_euclid(length) - 1).clamp(0, count)
    };
    let mut told = before(until.minus_millis(TOLD_MS));
    while told < count {
        let step = slot(told + 1).millis().div_euclid(step_ms);
        let start = Timestamp::from_millis(step.saturating_mul(step_ms));
        let end = Timestamp::from_millis(step.saturating_add(1).saturating_mul(step_ms));
        let upto = before(end).max(told + 1);
        see(start, u64::try_from(upto - told).unwrap_or(0));
        told = upto;
    }
}

impl SlotRow {
    /// Tells how many of its slots lie in each step: the first and the last where they are, the others evenly between
    /// them. `most` stands for a number that is not known.
    pub fn spread(&self, most: u64, step_ms: i64, see: &mut dyn FnMut(Timestamp, u64)) {
        let count = self.count.unwrap_or(most).max(1);
        if self.to.millis_since(self.from) <= TOLD_MS {
            spread((self.from.just_before(), self.from), 1, step_ms, see);
        }
        spread((self.from, self.to), count - 1, step_ms, see);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::schedule::SlotStatus;

    const HOUR_MS: i64 = 3_600_000;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    fn hours(row: &SlotRow) -> Vec<(String, u64)> {
        let mut hours: Vec<(String, u64)> = Vec::new();
        row.spread(100, HOUR_MS, &mut |hour, count| {
            let hour = hour.rfc3339()[8..13].to_owned();
            match hours.last_mut() {
                Some((last, sum)) if *last == hour => *sum += count,
                _ => hours.push((hour, count)),
            }
        });
        hours
    }

    fn row(from: &str, to: &str, count: Option<u64>) -> SlotRow {
        SlotRow {
            to: at(to),
            count,
            ..SlotRow::one(at(from), SlotStatus::Missed, at(to))
        }
    }

    #[test]
    fn slots_of_a_period_are_where_they_were() {
        let daily = row("2026-01-01T09:30", "2026-01-03T09:30", Some(3));
        let wanted = ["01T09", "02T09", "03T09"].map(|hour| (hour.to_owned(), 1));
        assert_eq!(hours(&daily), wanted);
        let often = row("2026-01-01T00:00", "2026-01-01T02:00", Some(9));
        assert_eq!(
            hours(&often),
            [
                ("01T00".into(), 4),
                ("01T01".into(), 4),
                ("01T02".into(), 1)
            ]
        );
        let one = row("2026-01-01T00:00", "2026-01-01T00:00", Some(1));
        assert_eq!(hours(&one), [("01T00".into(), 1)]);
    }

    #[test]
    fn every_slot_is_told_once_and_of_the_far_past_none() {
        for (to, count) in [
            ("2026-01-01T07:03", 7),
            ("2026-02-01", 1_000),
            ("2026-01-02", 86_401),
        ] {
            let told = hours(&row("2026-01-01T00:00", to, Some(count)));
            assert_eq!(told.iter().map(|(_, count)| count).sum::<u64>(), count);
        }
        let many = row("2026-01-01", "2026-01-01T10:00", None);
        assert_eq!(
            hours(&many).iter().map(|(_, count)| count).sum::<u64>(),
            100
        );
        let long = hours(&row("1990-01-01", "2026-01-01", Some(100_000)));
        assert!(long.len() <= 400 * 24 + 1, "{}", long.len());
    }
}
