//! Slots of a schedule: instants that only grow.

use std::num::NonZeroU64;

use super::clock_changes::Slots;
use super::expression::Expression;
use super::moments::{MomentError, Moments};
use crate::model::schedule::{Dst, Trigger};
use crate::model::{Timestamp, Zone};

/// Something that has slots. No two slots of it are the same instant.
#[derive(Debug, Clone, PartialEq)]
pub struct Recurrence {
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    Cron {
        expression: Expression,
        zone: Zone,
        dst: Dst,
    },
    Every {
        period: NonZeroU64,
        anchor: Timestamp,
    },
    At(Moments),
}

impl Recurrence {
    /// Slots of a trigger that follows the clock, in its zone; `anchor` is the origin of `every`. `None` for
    /// other triggers, and where a text cannot be read.
    pub fn of(trigger: &Trigger, zone: Zone, anchor: Timestamp) -> Option<Recurrence> {
        match trigger {
            Trigger::Cron {
                expression,
                seconds,
                dst,
            } => {
                let expression = Expression::parse(expression, *seconds).ok()?;
                Some(Recurrence::cron(expression, zone, *dst))
            }
            Trigger::Every { period_ms } => {
                let period = NonZeroU64::new(*period_ms)?;
                Some(Recurrence::every(period, anchor))
            }
            Trigger::At { times, dst } => {
                Recurrence::at(times, zone, dst.unwrap_or(Dst::FIXED_TIME)).ok()
            }
            Trigger::Reboot
            | Trigger::After { .. }
            | Trigger::Watch { .. }
            | Trigger::OnCommit { .. } => None,
        }
    }

    /// Where `expression` fires in `zone`; without `dst` by [`Expression::default_dst`]. Slots lie in the
    /// years 1 to 9999, without the first day and the last.
    pub fn cron(expression: Expression, zone: Zone, dst: Option<Dst>) -> Recurrence {
        let dst = dst.unwrap_or_else(|| expression.default_dst());
        Recurrence {
            kind: Kind::Cron {
                expression,
                zone,
                dst,
            },
        }
    }

    /// `anchor` and every whole number of `period_ms` after it and before it, in real time.
    pub fn every(period_ms: NonZeroU64, anchor: Timestamp) -> Recurrence {
        Recurrence {
            kind: Kind::Every {
                period: period_ms,
                anchor,
            },
        }
    }

    /// The moments of a list: local times of `zone` as in `2026-12-24T18:00`, with seconds or without, or
    /// RFC 3339 with an offset of its own.
    ///
    /// # Errors
    /// Names the first text that is neither.
    pub fn at(texts: &[String], zone: Zone, dst: Dst) -> Result<Recurrence, MomentError> {
        let kind = Kind::At(Moments::read(texts, zone, dst)?);
        Ok(Recurrence { kind })
    }

    /// One instant.
    pub fn once(at: Timestamp) -> Recurrence {
        let kind = Kind::At(Moments::of(vec![at]));
        Recurrence { kind }
    }

    /// These instants, in ascending order.
    pub fn instants(slots: Vec<Timestamp>) -> Recurrence {
        let kind = Kind::At(Moments::of(slots));
        Recurrence { kind }
    }

    /// The zone of its local times; none for a period.
    pub fn zone(&self) -> Option<Zone> {
        match &self.kind {
            Kind::Cron { zone, .. } => Some(*zone),
            Kind::At(moments) => Some(moments.zone),
            Kind::Every { .. } => None,
        }
    }

    /// The rule for changes of the clocks that holds, chosen or by default; none for a period.
    pub fn dst(&self) -> Option<Dst> {
        match &self.kind {
            Kind::Cron { dst, .. } => Some(*dst),
            Kind::At(moments) => Some(moments.dst),
            Kind::Every { .. } => None,
        }
    }

    /// Whether its slots are moments of a list.
    pub(crate) const fn is_list(&self) -> bool {
        matches!(self.kind, Kind::At(_))
    }

    /// By how many milliseconds a slot may be put off so that it stays before the next one, up to `most`. Moments of
    /// a list wait for each other instead: more of them may come.
    pub(crate) fn room_after(&self, slot: Timestamp, most: u64) -> u64 {
        if most == 0 || self.is_list() {
            return most;
        }
        let next = self.next_after(slot);
        let room = next.map(|next| next.millis_since(slot).saturating_sub(1));
        room.map_or(most, |room| room.min(most))
    }

    /// The first slot strictly after `after`.
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        match &self.kind {
            Kind::Cron {
                expression,
                zone,
                dst,
            } => slots_of(expression, *zone, *dst)
                .first_at_or_after(second_after(after))
                .map(|second| Timestamp::from_millis(second * 1_000)),
            Kind::Every { period, anchor } => {
                let step = turns(*period, *anchor, after) + 1;
                instant(*period, *anchor, step)
            }
            Kind::At(moments) => {
                let index = moments.slots.partition_point(|slot| *slot <= after);
                moments.slots.get(index).copied()
            }
        }
    }

    /// The first slot at `at` or after it.
    pub fn first_at_or_after(&self, at: Timestamp) -> Option<Timestamp> {
        match &self.kind {
            Kind::Every { period, anchor } if instant_is_slot(*period, *anchor, at) => Some(at),
            _ => self.next_after(at.just_before()),
        }
    }

    /// The last slot in `not_before ..= at`, found by halving: some 40 steps for ten years, however dense.
    pub fn last_at_or_before(&self, at: Timestamp, not_before: Timestamp) -> Option<Timestamp> {
        if let Kind::Every { period, anchor } = &self.kind {
            let slot = instant(*period, *anchor, turns(*period, *anchor, at))?;
            return (not_before..=at).contains(&slot).then_some(slot);
        }
        let within = |slot: &Timestamp| *slot <= at;
        let mut last = self.first_at_or_after(not_before).filter(within)?;
        // No slot lies in `high + 1 ..= at`.
        let mut high = at;
        while last < high {
            let middle = last.plus_millis(high.millis_since(last) / 2);
            match self.next_after(middle).filter(within) {
                Some(slot) => last = slot,
                None => high = middle,
            }
        }
        Some(last)
    }

    /// How many slots lie strictly after `after`, up to `until` and with it; counts to `at_most` and stops.
    pub fn count_between(&self, after: Timestamp, until: Timestamp, at_most: u64) -> u64 {
        if until <= after {
            return 0;
        }
        match &self.kind {
            Kind::Every { period, anchor } => {
                let count = turns(*period, *anchor, until) - turns(*period, *anchor, after);
                u64::try_from(count).unwrap_or(u64::MAX).min(at_most)
            }
            Kind::At(moments) => {
                let upto = |at: Timestamp| moments.slots.partition_point(|slot| *slot <= at);
                let count = upto(until) - upto(after);
                u64::try_from(count).unwrap_or(u64::MAX).min(at_most)
            }
            Kind::Cron {
                expression,
                zone,
                dst,
            } => slots_of(expression, *zone, *dst).count(
                second_after(after),
                until.millis().div_euclid(1_000),
                expression.times_of_day(),
                at_most,
            ),
        }
    }
}

fn slots_of(expression: &Expression, zone: Zone, dst: Dst) -> Slots<'_> {
    Slots {
        matcher: expression.matcher(),
        zone,
        dst,
    }
}

/// The first whole second after `at`, since the epoch.
fn second_after(at: Timestamp) -> i64 {
    at.millis().div_euclid(1_000) + 1
}

/// How many whole periods lie between `anchor` and `at`, rounded down.
fn turns(period: NonZeroU64, anchor: Timestamp, at: Timestamp) -> i128 {
    let elapsed = i128::from(at.millis()) - i128::from(anchor.millis());
    elapsed.div_euclid(i128::from(period.get()))
}

/// `anchor` moved by so many periods, where a timestamp can say it.
fn instant(period: NonZeroU64, anchor: Timestamp, turns: i128) -> Option<Timestamp> {
    let millis = i128::from(anchor.millis()) + turns * i128::from(period.get());
    i64::try_from(millis).ok().map(Timestamp::from_millis)
}

fn instant_is_slot(period: NonZeroU64, anchor: Timestamp, at: Timestamp) -> bool {
    instant(period, anchor, turns(period, anchor, at)) == Some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    fn cron(text: &str) -> Recurrence {
        let expression = Expression::parse(text, text.split(' ').count() == 6).unwrap();
        Recurrence::cron(
            expression,
            Zone::compiled_in("Europe/Berlin").unwrap(),
            None,
        )
    }

    fn every(period_ms: u64, anchor: i64) -> Recurrence {
        let period = NonZeroU64::new(period_ms).unwrap();
        Recurrence::every(period, Timestamp::from_millis(anchor))
    }

    #[test]
    fn a_period_does_not_drift() {
        let recurrence = every(900_000, 7);
        let mut slot = Timestamp::from_millis(7);
        for turn in 1..=1_000 {
            slot = recurrence.next_after(slot).unwrap();
            assert_eq!(slot.millis(), 7 + turn * 900_000);
        }
        let late = Timestamp::from_millis(7 + 900_000 * 40 + 899_999);
        let slot = Timestamp::from_millis(7 + 900_000 * 40);
        assert_eq!(
            recurrence.last_at_or_before(late, Timestamp::default()),
            Some(slot)
        );
        assert_eq!(recurrence.last_at_or_before(late, late), None);
        assert_eq!(recurrence.first_at_or_after(slot), Some(slot));
        assert_eq!(
            recurrence.count_between(Timestamp::from_millis(7), late, 1_000),
            40
        );
        assert_eq!(
            recurrence.count_between(Timestamp::from_millis(7), late, 5),
            5
        );
    }

    #[test]
    fn the_ends_of_time_do_not_panic() {
        let ends =
            [i64::MIN, i64::MIN + 1, -1, 0, i64::MAX - 1, i64::MAX].map(Timestamp::from_millis);
        let texts = ["2026-12-24T18:00".to_owned()];
        let moments = Recurrence::at(
            &texts,
            Zone::compiled_in("Europe/Berlin").unwrap(),
            Dst::FIXED_TIME,
        )
        .unwrap();
        for recurrence in [
            every(1, 0),
            every(u64::MAX, i64::MIN),
            cron("* * * * *"),
            moments,
        ] {
            for one in ends {
                let next = recurrence.next_after(one);
                assert!(next.is_none_or(|next| next > one));
                assert!(
                    recurrence
                        .first_at_or_after(one)
                        .is_none_or(|first| first >= one)
                );
                for other in ends {
                    let last = recurrence.last_at_or_before(one, other);
                    assert!(last.is_none_or(|last| (other..=one).contains(&last)));
                    assert!(recurrence.count_between(one, other, 3) <= 3);
                }
            }
        }
        let end = cron("0 0 30 12 *").last_at_or_before(Timestamp::from_millis(i64::MAX), ends[3]);
        assert_eq!(
            end.unwrap()
                .date_in(Zone::compiled_in("Europe/Berlin").unwrap()),
            "9999-12-30"
        );
    }

    #[test]
    fn the_last_slot_of_ten_dense_years_is_found_at_once() {
        let recurrence = cron("* * * * * *");
        let (from, until) = (at("2020-01-01"), at("2030-01-01"));
        assert_eq!(recurrence.last_at_or_before(until, from), Some(until));
        let sparse = cron("0 12 29 2 *");
        assert_eq!(
            sparse.last_at_or_before(until, from),
            Some(at("2028-02-29T11:00:00Z"))
        );
        assert_eq!(sparse.last_at_or_before(until, at("2028-03-01")), None);
    }

    #[test]
    fn dense_years_are_counted_day_by_day() {
        let count = |text: &str, until: &str| {
            cron(text).count_between(at("2025-12-31T23:00:00"), at(until), u64::MAX)
        };
        // Without the slot at the start of the year.
        assert_eq!(count("* * * * *", "2026-12-31T22:59:59"), 365 * 1_440 - 1);
        assert_eq!(
            count("* * * * * *", "2027-12-31T22:59:59"),
            730 * 86_400 - 1
        );
        assert_eq!(count("*/30 2 * * *", "2026-12-31T22:59:59"), 365 * 2);
        assert_eq!(count("0,30 2 * * *", "2026-12-31T22:59:59"), 365 * 2 - 1);
        let some = cron("* * * * *").count_between(at("2026-01-01"), at("9000-01-01"), 100_000);
        assert_eq!(some, 100_000);
    }

    #[test]
    fn moments_are_sorted_and_each_once() {
        let texts = [
            "2026-12-24 18:00:30",
            "2026-12-24T18:00:30",
            "2026-01-01T00:00Z",
            "2026-01-01T00:00:00Z",
            " 2026-06-01T10:00:00+05:30 ",
        ];
        let texts: Vec<String> = texts.iter().map(ToString::to_string).collect();
        let refused = Recurrence::at(
            &texts,
            Zone::compiled_in("Europe/Berlin").unwrap(),
            Dst::FIXED_TIME,
        )
        .unwrap_err();
        assert_eq!((refused.index, refused.error.code), (2, "at-unreadable"));
        let texts: Vec<String> = texts
            .into_iter()
            .filter(|text| text != "2026-01-01T00:00Z")
            .collect();
        let moments = Recurrence::at(
            &texts,
            Zone::compiled_in("Europe/Berlin").unwrap(),
            Dst::FIXED_TIME,
        )
        .unwrap();
        let mut slots = Vec::new();
        let mut slot = at("2000-01-01");
        while let Some(next) = moments.next_after(slot) {
            slots.push(next.rfc3339());
            slot = next;
        }
        assert_eq!(
            slots,
            [
                "2026-01-01T00:00:00.000Z",
                "2026-06-01T04:30:00.000Z",
                "2026-12-24T17:00:30.000Z"
            ]
        );
        assert_eq!(moments.count_between(at("2000-01-01"), slot, 9), 3);
        assert_eq!(moments.last_at_or_before(slot, slot), Some(slot));
    }

    #[test]
    fn a_moment_in_a_gap_or_a_fold_follows_the_rule() {
        use crate::model::schedule::{Fold, Gap};
        let slots = |text: &str, gap, fold| {
            let moments = Recurrence::at(
                &[text.to_owned()],
                Zone::compiled_in("Europe/Berlin").unwrap(),
                Dst { gap, fold },
            )
            .unwrap();
            let Kind::At(moments) = moments.kind else {
                panic!()
            };
            moments
                .slots
                .iter()
                .map(|slot| slot.rfc3339()[11..16].to_owned())
                .collect::<Vec<_>>()
        };
        let (gap, fold) = ("2026-03-29T02:30", "2026-10-25T02:30");
        assert_eq!(slots(gap, Gap::RunAfter, Fold::First), ["01:00"]);
        assert!(slots(gap, Gap::Skip, Fold::First).is_empty());
        assert_eq!(slots(fold, Gap::Skip, Fold::First), ["00:30"]);
        assert_eq!(slots(fold, Gap::Skip, Fold::Second), ["01:30"]);
        assert_eq!(slots(fold, Gap::Skip, Fold::Both), ["00:30", "01:30"]);
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        for text in [
            "",
            "tomorrow",
            "2026-02-30T10:00",
            "2026-12-24",
            "18:00",
            "2026-12-24T24:00",
            "10000-01-01T00:00",
            "1899-01-01T00:00",
            "2026-12-31T23:59:60",
            "2026-12-31T23:59:60Z",
        ] {
            let refused =
                Recurrence::at(&[text.to_owned()], Zone::UTC, Dst::FIXED_TIME).unwrap_err();
            assert!(refused.error.code.starts_with("at-"), "{text}");
            assert!(!refused.error.hint.is_empty());
        }
    }
}
