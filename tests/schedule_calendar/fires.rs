//! The next fires in UTC of thousands of expressions.

use chrono::{DateTime, Utc};
use workerctl::model::Timestamp;
use workerctl::model::Zone;
use workerctl::schedule::{Expression, Recurrence, words};

use crate::written::{Written, throw};
use crate::{Dice, at, cron, rounds, slots};

const EXPRESSIONS: usize = 2_000;

/// Where the search begins: an ordinary day, and days before a century that has no leap day and one that has.
const STARTS: [&str; 4] = [
    "2026-11-21T12:34:56",
    "2024-02-28T23:59:59",
    "2096-12-31T23:59:00",
    "1999-12-31T00:00:00",
];

/// Expressions that fire at all, with where the comparison begins.
fn thrown() -> Vec<(Written, Recurrence, Timestamp)> {
    let mut dice = Dice(20_261_121);
    let mut thrown = Vec::new();
    while thrown.len() < EXPRESSIONS {
        let written = throw(&mut dice);
        let start = at(STARTS[dice.below(4) as usize]);
        match Expression::parse(&written.text(), written.seconds) {
            Ok(expression) => {
                thrown.push((
                    written,
                    Recurrence::cron(expression, Zone::UTC, None),
                    start,
                ));
            }
            Err(why) => {
                // Names have no second Sunday to begin a range with, and some days never come.
                let known = ["cron-never-fires", "cron-range-wraps"];
                assert!(known.contains(&why.code), "{}: {why}", written.text());
                let start = at("2000-01-01").millis();
                let start = DateTime::<Utc>::from_timestamp_millis(start)
                    .unwrap()
                    .naive_utc();
                if why.code == "cron-never-fires" {
                    let fires = written.enumerate(start, 1, 146_097);
                    assert!(fires.is_empty(), "{}", written.text());
                }
            }
        }
    }
    thrown
}

fn utc(at: Timestamp) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(at.millis()).unwrap()
}

#[test]
fn fires_are_those_of_an_enumerator() {
    let count = rounds().unwrap_or(30);
    let days = if rounds().is_some() { 30_000 } else { 4_000 };
    let mut compared = 0;
    for (written, recurrence, start) in thrown() {
        let expected = written.enumerate(utc(start).naive_utc(), count, days);
        let found = slots(&recurrence, start, expected.len());
        assert_eq!(found, expected, "{} from {start}", written.text());
        if expected.len() < count {
            let last = expected
                .last()
                .map_or(start, |last| Timestamp::from_millis(last * 1_000));
            let end = start.plus_millis((days - 1) * 86_400_000);
            let next = recurrence.next_after(last);
            assert!(
                next.is_some_and(|next| next > end),
                "{} after {last}",
                written.text()
            );
        }
        if let Some(last) = expected.last() {
            let last = Timestamp::from_millis(last * 1_000);
            let counted = recurrence.count_between(start, last, u64::MAX);
            assert_eq!(counted, expected.len() as u64, "{}", written.text());
        }
        compared += expected.len();
    }
    assert!(compared > EXPRESSIONS * count / 2, "{compared}");
}

#[test]
fn looking_back_finds_what_looking_forward_passed() {
    let count = rounds().unwrap_or(5).min(50);
    for (written, recurrence, start) in thrown().into_iter().step_by(10) {
        let mut before = start;
        for slot in slots(&recurrence, start, count) {
            let slot = Timestamp::from_millis(slot * 1_000);
            let text = written.text();
            let just_before = Timestamp::from_millis(slot.millis() - 1);
            let last = recurrence.last_at_or_before(just_before, start.plus_millis(1));
            assert_eq!(last, (before > start).then_some(before), "{text}");
            assert_eq!(
                recurrence.last_at_or_before(slot, start),
                Some(slot),
                "{text}"
            );
            assert_eq!(recurrence.first_at_or_after(slot), Some(slot), "{text}");
            assert_eq!(recurrence.count_between(before, slot, 9), 1, "{text}");
            assert_eq!(
                recurrence.count_between(before, just_before, 9),
                0,
                "{text}"
            );
            before = slot;
        }
    }
}

#[test]
fn the_same_words_mean_the_same_fires() {
    let mut told: Vec<(String, String, Vec<i64>)> = Vec::new();
    for (written, recurrence, _) in thrown() {
        told.push((
            words(&recurrence),
            written.text(),
            slots(&recurrence, at("2026-01-01"), 5),
        ));
    }
    told.sort();
    let mut alike = 0;
    for pair in told.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
        alike += 1;
        assert_eq!(
            pair[0].2, pair[1].2,
            "{} and {}: {}",
            pair[0].1, pair[1].1, pair[0].0
        );
    }
    assert!(alike > 10, "{alike}");
}

#[test]
fn centuries_do_not_end_a_schedule() {
    let first = |text: &str, from: &str| {
        let found = cron(text, Zone::UTC).next_after(at(from)).unwrap();
        found.rfc3339()[..10].to_owned()
    };
    assert_eq!(first("0 0 1 1 *", "2100-06-01"), "2101-01-01");
    assert_eq!(first("0 0 29 2 *", "2096-03-01"), "2104-02-29");
    assert_eq!(first("0 0 29 2 *", "2396-03-01"), "2400-02-29");
    // A leap day on a Saturday or Sunday, over the century.
    assert_eq!(first("0 0 29 2 */6", "2088-03-01"), "2116-02-29");
    assert_eq!(first("0 0 1 1 *", "9998-06-01"), "9999-01-01");
    assert_eq!(
        cron("0 0 1 1 *", Zone::UTC).next_after(at("9999-06-01")),
        None
    );
    assert_eq!(first("0 0 1 1 *", "0001-06-01"), "0002-01-01");
}
