//! Where changes of the clocks meet a schedule, told beforehand.

use super::clock_changes::Slots;
use super::recurrence::{Kind, Recurrence};
use super::zone::{Change, EARLIEST, LATEST, REACH, change_within, utc};
use crate::model::schedule::{Dst, DstKind, DstWarning, Fold, Gap};
use crate::model::{Timestamp, Zone};

/// Every change of the clocks after `from`, up to `until`, at which `recurrence` does not simply go on in
/// real time. Periods know no clocks, and a job that repeats in every hour of the day loses nothing.
pub fn dst_warnings(recurrence: &Recurrence, from: Timestamp, until: Timestamp) -> Vec<DstWarning> {
    let Some((zone, dst)) = recurrence.zone().zip(recurrence.dst()) else {
        return Vec::new();
    };
    let second = |at: Timestamp| at.millis().div_euclid(1_000).clamp(EARLIEST, LATEST);
    changes(zone, second(from), second(until))
        .filter_map(|change| {
            let first = first_met(recurrence, change)?;
            Some(warning(dst, change, first))
        })
        .collect()
}

/// All changes in `from + 1 ..= until`, in order.
fn changes(zone: Zone, from: i64, until: i64) -> impl Iterator<Item = Change> {
    let width = 3 * REACH;
    let windows = (until - from).max(0) / width + 1;
    (0..windows).filter_map(move |window| {
        let start = from + window * width;
        change_within(zone, start, (start + width).min(until).max(start))
    })
}

/// The first local time that the change skips or repeats, in local seconds.
fn first_met(recurrence: &Recurrence, change: Change) -> Option<i64> {
    let span = change.local_start()..change.local_end();
    match &recurrence.kind {
        Kind::Every { .. } => None,
        Kind::At(moments) => moments
            .locals
            .iter()
            .map(|local| local.and_utc().timestamp())
            .filter(|local| span.contains(local))
            .min(),
        Kind::Cron {
            expression,
            zone,
            dst,
        } => {
            let every_hour = expression.fields().hour.values.len() == 24;
            if every_hour && *dst == Dst::REAL_TIME {
                return None;
            }
            let slots = Slots {
                matcher: expression.matcher(),
                zone: *zone,
                dst: *dst,
            };
            slots
                .local_at_or_after(span.start)
                .filter(|local| span.contains(local))
        }
    }
}

fn warning(dst: Dst, change: Change, first: i64) -> DstWarning {
    let time = |local: i64| utc(local).format("%H:%M").to_string();
    let (start, end, first) = (
        time(change.local_start()),
        time(change.local_end()),
        time(first),
    );
    let (kind, clocks, what) = if change.is_gap() {
        let what = match dst.gap {
            Gap::RunAfter => format!("what is due then, from {first} on, runs once at {end}"),
            Gap::Skip => format!("what is due then, from {first} on, does not run"),
        };
        (DstKind::Gap, "are skipped", what)
    } else {
        let what = match dst.fold {
            Fold::First => "runs the first time only",
            Fold::Second => "runs the second time only",
            Fold::Both => "runs both times",
        };
        let what = format!("what is due then, from {first} on, {what}");
        (DstKind::Fold, "come twice", what)
    };
    DstWarning {
        date: utc(change.local_start()).format("%Y-%m-%d").to_string(),
        kind,
        message: format!("the times from {start} to before {end} {clocks}: {what}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Expression;

    fn warnings(text: &str, zone: Zone, dst: Option<Dst>) -> Vec<String> {
        let expression = Expression::parse(text, false).unwrap();
        let recurrence = Recurrence::cron(expression, zone, dst);
        let at = |text| Timestamp::parse(text).unwrap();
        dst_warnings(&recurrence, at("2026-01-01"), at("2028-01-01"))
            .into_iter()
            .map(|warning| format!("{} {}", warning.date, warning.message))
            .collect()
    }

    #[test]
    fn changes_that_meet_a_job_are_told() {
        let berlin = Zone::compiled_in("Europe/Berlin").unwrap();
        assert_eq!(
            warnings("30 2 * * *", berlin, None),
            [
                "2026-03-29 the times from 02:00 to before 03:00 are skipped: what is due then, from 02:30 on, runs once at 03:00",
                "2026-10-25 the times from 02:00 to before 03:00 come twice: what is due then, from 02:30 on, runs the first time only",
                "2027-03-28 the times from 02:00 to before 03:00 are skipped: what is due then, from 02:30 on, runs once at 03:00",
                "2027-10-31 the times from 02:00 to before 03:00 come twice: what is due then, from 02:30 on, runs the first time only",
            ]
        );
        assert!(warnings("30 3 * * *", berlin, None).is_empty());
        assert!(warnings("*/5 * * * *", berlin, None).is_empty());
        assert!(warnings("0 0 * * *", Zone::UTC, None).is_empty());
        assert!(warnings("30 2 * * 1", berlin, None).is_empty());
    }

    #[test]
    fn a_repeating_job_that_lives_in_the_changed_hour_is_told_of() {
        let told = warnings(
            "*/30 2 * * *",
            Zone::compiled_in("Europe/Berlin").unwrap(),
            None,
        );
        assert_eq!(told.len(), 4);
        assert!(told[0].ends_with("does not run") && told[1].ends_with("runs both times"));
        let dst = Dst {
            gap: Gap::Skip,
            fold: Fold::Second,
        };
        let told = warnings(
            "0 * * * *",
            Zone::compiled_in("Australia/Lord_Howe").unwrap(),
            Some(dst),
        );
        assert_eq!(told.len(), 2, "{told:?}"); // half an hour is skipped from 02:00, and repeated from 01:30
        assert!(told[0].ends_with("does not run"));
    }

    #[test]
    fn periods_know_no_clocks_and_moments_do() {
        let at = |text| Timestamp::parse(text).unwrap();
        let period = std::num::NonZeroU64::new(1_000).unwrap();
        let every = Recurrence::every(period, at("2026-01-01"));
        assert!(dst_warnings(&every, at("2026-01-01"), at("2028-01-01")).is_empty());
        let texts = ["2026-03-29T02:30".to_owned(), "2026-10-25T03:30".to_owned()];
        let moments = Recurrence::at(
            &texts,
            Zone::compiled_in("Europe/Berlin").unwrap(),
            Dst::FIXED_TIME,
        )
        .unwrap();
        let told = dst_warnings(&moments, at("2026-01-01"), at("2028-01-01"));
        assert_eq!(told.len(), 1);
        assert_eq!(
            (told[0].date.as_str(), told[0].kind),
            ("2026-03-29", DstKind::Gap)
        );
        assert!(dst_warnings(&moments, at("2028-01-01"), at("2026-01-01")).is_empty());
    }
}
