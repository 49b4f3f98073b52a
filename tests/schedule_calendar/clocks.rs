//! Around every change of the clocks, against an enumerator that walks real time minute by minute.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDateTime, Offset, TimeDelta, TimeZone};
use workerctl::model::Timestamp;
use workerctl::model::zone::{self, Zone};
use workerctl::schedule::{Dst, Expression, Fold, Gap, Recurrence};

use crate::written::{Item, Written};
use crate::{cron, rounds, slots};

/// Zones and the years of their changes; Apia and Sao Paulo have given theirs up.
const ZONES: [(&str, i32, i32); 8] = [
    ("Europe/Berlin", 2024, 2034),
    ("America/New_York", 2024, 2034),
    ("Australia/Lord_Howe", 2024, 2034),
    ("Pacific/Apia", 2010, 2034),
    ("Africa/Casablanca", 2024, 2034),
    ("Asia/Beirut", 2024, 2034),
    ("America/Sao_Paulo", 2016, 2034),
    ("America/Santiago", 2024, 2034),
];

fn value(number: u32) -> Vec<Item> {
    vec![Item::Value(number)]
}

/// Minute, hour, day of the month and weekday; with a day, the job is one of the day on which Apia skipped.
fn jobs() -> Vec<Written> {
    use Item::{Range, RangeStep, Star, StarStep, Value};
    let star = || vec![Star];
    let table = [
        (value(30), value(2), star(), star()),
        (value(0), value(0), star(), star()),
        (value(59), value(23), star(), star()),
        (value(0), value(3), star(), star()),
        (value(15), vec![Range(0, 4)], star(), star()),
        (
            vec![Value(0), Value(20), Value(45)],
            vec![Value(1), Value(2)],
            star(),
            star(),
        ),
        (
            vec![RangeStep(5, 55, 10)],
            vec![Range(0, 3)],
            star(),
            vec![Value(0)],
        ),
        (value(30), value(9), value(30), star()),
        (value(0), star(), star(), star()),
        (vec![StarStep(20)], star(), star(), star()),
        (vec![StarStep(15)], value(2), star(), star()),
        (value(30), vec![StarStep(2)], star(), star()),
        (
            vec![StarStep(30)],
            vec![Value(0), Value(23)],
            star(),
            vec![Range(5, 7)],
        ),
    ];
    table
        .into_iter()
        .map(|(minute, hour, day, weekday)| {
            Written::new([value(0), minute, hour, day, star(), weekday])
        })
        .collect()
}

fn rules() -> Vec<Option<Dst>> {
    let mut rules = vec![None];
    for gap in [Gap::RunAfter, Gap::Skip] {
        for fold in [Fold::First, Fold::Second, Fold::Both] {
            rules.push(Some(Dst { gap, fold }));
        }
    }
    rules
}

/// Every change of a zone's clocks: its instant and by how many seconds.
fn changes(zone: Zone, from: i32, until: i32) -> Vec<(i64, i64)> {
    let offset = |at: i64| {
        let utc = DateTime::from_timestamp(at, 0).unwrap().naive_utc();
        i64::from(zone.offset_from_utc_datetime(&utc).fix().local_minus_utc())
    };
    let year = |year: i32| i64::from(year - 1970) * 31_556_952 / 900 * 900;
    let mut changes = Vec::new();
    for day in (year(from)..year(until + 1)).step_by(86_400) {
        if offset(day) == offset(day + 86_400) {
            continue;
        }
        for at in (day + 900..=day + 86_400).step_by(900) {
            if offset(at) != offset(at - 900) {
                changes.push((at, offset(at) - offset(at - 900)));
            }
        }
    }
    changes
}

/// The minutes around a change: their instants and what the clocks show.
struct Around {
    minutes: Vec<(i64, NaiveDateTime)>,
    /// First and last minute that shows the same.
    passes: BTreeMap<NaiveDateTime, (i64, i64)>,
}

impl Around {
    fn new(zone: Zone, change: i64, hours: i64) -> Around {
        let mut around = Around {
            minutes: Vec::new(),
            passes: BTreeMap::new(),
        };
        for at in (change - hours * 3_600..=change + hours * 3_600).step_by(60) {
            let utc = DateTime::from_timestamp(at, 0).unwrap().naive_utc();
            let local = zone.from_utc_datetime(&utc).naive_local();
            around.minutes.push((at, local));
            around.passes.entry(local).or_insert((at, at)).1 = at;
        }
        around
    }

    /// Of each minute but the first: whether the job names what its clocks show, and whether it names a
    /// time that was skipped right before it.
    fn named(&self, job: &Written) -> Vec<(bool, bool)> {
        let fits =
            |local: NaiveDateTime| job.date_fits(local.date()) && job.time_fits(local.time());
        let minute = TimeDelta::minutes(1);
        self.minutes
            .windows(2)
            .map(|pair| {
                let mut skipped = pair[0].1 + minute;
                let mut lost = false;
                while skipped < pair[1].1 {
                    lost |= fits(skipped);
                    skipped += minute;
                }
                (fits(pair[1].1), lost)
            })
            .collect()
    }

    fn slots(&self, named: &[(bool, bool)], dst: Dst) -> Vec<i64> {
        let mut slots = Vec::new();
        for ((at, local), (fits, lost)) in self.minutes[1..].iter().zip(named) {
            let counts = |(first, last): (i64, i64)| match dst.fold {
                Fold::First => *at == first,
                Fold::Second => *at == last,
                Fold::Both => true,
            };
            let late = *lost && dst.gap == Gap::RunAfter;
            if late || (*fits && counts(self.passes[local])) {
                slots.push(*at);
            }
        }
        slots
    }
}

#[test]
fn nothing_is_lost_or_doubled_where_clocks_change() {
    let jobs = jobs();
    let mut compared = 0;
    for (name, from, until) in ZONES {
        let zone = Zone::compiled_in(name).unwrap();
        let found = changes(zone, from, until);
        assert!(found.len() >= 5, "{zone}: {found:?}");
        for (change, length) in found {
            // As far as needed to see both ends of a fold, or of a day that is skipped.
            let hours = length.abs() / 3_600 + 7;
            let around = Around::new(zone, change, hours);
            let start = around.minutes[0].0;
            let end = change + hours * 3_600 - length.abs() - 3_600;
            for job in &jobs {
                let expression = Expression::parse(&job.text(), false).unwrap();
                let named = around.named(job);
                for rule in rules() {
                    let dst = rule.unwrap_or_else(|| job.default_dst());
                    let recurrence = Recurrence::cron(expression.clone(), zone, rule);
                    let expected: Vec<i64> = around
                        .slots(&named, dst)
                        .into_iter()
                        .filter(|slot| (start + length.abs() + 1..=end).contains(slot))
                        .collect();
                    let from = Timestamp::from_millis((start + length.abs()) * 1_000);
                    let mut found = slots(&recurrence, from, expected.len() + 1);
                    found.retain(|slot| *slot <= end);
                    let context = format!("{} {zone} {change} {dst:?}", job.text());
                    assert_eq!(found, expected, "{context}");
                    assert!(found.is_sorted_by(|one, next| one < next), "{context}");
                    let count =
                        recurrence.count_between(from, Timestamp::from_millis(end * 1_000), 9_999);
                    assert_eq!(count, expected.len() as u64, "{context}");
                    compared += found.len();
                    if let Some(last) = expected.last().filter(|_| rule.is_none()) {
                        let until = Timestamp::from_millis(end * 1_000);
                        let last = Timestamp::from_millis(last * 1_000);
                        assert_eq!(
                            recurrence.last_at_or_before(until, from),
                            Some(last),
                            "{context}"
                        );
                    }
                }
            }
        }
    }
    assert!(compared > 10_000, "{compared}");
}

#[test]
fn apia_skips_a_day_and_makes_up_for_it_once() {
    let told = |text: &str| {
        let recurrence = cron(text, Zone::compiled_in("Pacific/Apia").unwrap());
        let from = Timestamp::parse("2011-12-29T20:00:00Z").unwrap();
        let show = |slot: i64| {
            Timestamp::from_millis(slot * 1_000)
                .rfc3339_in(Zone::compiled_in("Pacific/Apia").unwrap())
        };
        slots(&recurrence, from, 2)
            .into_iter()
            .map(show)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        told("0 9 30 12 *"),
        ["2011-12-31T00:00:00+14:00", "2012-12-30T09:00:00+14:00"]
    );
    assert_eq!(told("0,30 9,17 * * *")[..1], ["2011-12-29T17:00:00-10:00"]);
    assert_eq!(
        told("0 8 * * *"),
        ["2011-12-31T00:00:00+14:00", "2011-12-31T08:00:00+14:00"]
    );
}

/// What the search rests upon: no clock was moved by more than a day, and none twice within 78 hours.
#[test]
fn changes_are_small_and_far_apart() {
    let some = ZONES.map(|zone| zone.0);
    let all = zone::names().filter(|name| rounds().is_some() || some.contains(name));
    for name in all {
        let zone = Zone::compiled_in(name).unwrap();
        let mut last = i64::MIN;
        for (change, length) in changes(zone, 1_900, 2_110) {
            assert!(length.abs() <= 86_400, "{zone}: {change} {length}");
            assert!(change.saturating_sub(last) > 78 * 3_600, "{zone}: {change}");
            last = change;
        }
    }
}

/// Rules that hold until they are changed hold beyond every table.
#[test]
fn daylight_saving_has_no_last_year() {
    let berlin = Zone::compiled_in("Europe/Berlin").unwrap();
    assert_eq!(changes(berlin, 2_098, 2_099).len(), 4);
    assert_eq!(changes(berlin, 2_400, 2_402).len(), 6);
    let late = cron("30 2 * * *", berlin).next_after(Timestamp::parse("2150-07-01").unwrap());
    assert_eq!(late.unwrap().rfc3339(), "2150-07-01T00:30:00.000Z");
}
