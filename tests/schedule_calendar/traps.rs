//! What calendars of others do otherwise than Unix, each as a row.

use workerctl::model::Zone;
use workerctl::schedule::Expression;

use crate::{at, cron, slots};

/// The first fires of `text` in `zone` after `from`, as local times.
fn fires(text: &str, zone: Zone, from: &str, count: usize) -> Vec<String> {
    slots(&cron(text, zone), at(from), count)
        .into_iter()
        .map(|slot| {
            let slot = workerctl::model::Timestamp::from_millis(slot * 1_000);
            slot.rfc3339_in(zone)[..16].to_owned()
        })
        .collect()
}

/// The code of the refusal of `text`.
fn refusal(text: &str, seconds: bool) -> &'static str {
    Expression::parse(text, seconds).map_or_else(|why| why.code, |_| "accepted")
}

/// What, the expression, after when, and the fires in UTC.
const ROWS: [(&str, &str, &str, &[&str]); 22] = [
    (
        "five fields",
        "5 4 * * *",
        "2026-01-01",
        &["2026-01-01T04:05"],
    ),
    (
        "weekday 1 is Monday",
        "0 9 * * 1",
        "2026-01-01",
        &["2026-01-05T09:00"],
    ),
    (
        "weekday 0 is Sunday",
        "0 9 * * 0",
        "2026-01-01",
        &["2026-01-04T09:00"],
    ),
    (
        "weekday 7 is Sunday",
        "0 9 * * 7",
        "2026-01-01",
        &["2026-01-04T09:00"],
    ),
    (
        "1-5 is Monday to Friday",
        "0 9 * * 1-5",
        "2026-01-02T10:00",
        &["2026-01-05T09:00"],
    ),
    (
        "names",
        "0 9 * JAN-mar MON-FRI",
        "2026-03-31T10:00",
        &["2027-01-01T09:00"],
    ),
    (
        "full names",
        "0 9 * february Sunday",
        "2026-01-01",
        &["2026-02-01T09:00"],
    ),
    (
        "a week that ends on Sunday",
        "0 9 * * SAT-SUN",
        "2026-01-01",
        &["2026-01-03T09:00", "2026-01-04T09:00"],
    ),
    (
        "either day",
        "0 9 13 * 5",
        "2027-05-08",
        &["2027-05-13T09:00", "2027-05-14T09:00"],
    ),
    (
        "star step and weekday: both",
        "0 9 */2 * FRI",
        "2026-01-01",
        &["2026-01-09T09:00", "2026-01-23T09:00"],
    ),
    (
        "day and star step: both",
        "0 9 1 * */2",
        "2026-01-02",
        &["2026-02-01T09:00", "2026-03-01T09:00"],
    ),
    (
        "open step",
        "5/15 * * * *",
        "2026-01-01",
        &["2026-01-01T00:05", "2026-01-01T00:20"],
    ),
    (
        "a step beyond the field",
        "*/90 * * * *",
        "2026-01-01",
        &["2026-01-01T01:00", "2026-01-01T02:00"],
    ),
    (
        "last day",
        "0 9 L * *",
        "2026-02-01",
        &["2026-02-28T09:00", "2026-03-31T09:00"],
    ),
    (
        "nearest workday",
        "0 9 15W * *",
        "2026-08-01",
        &["2026-08-14T09:00"],
    ),
    (
        "last workday",
        "0 9 LW * *",
        "2026-05-01",
        &["2026-05-29T09:00"],
    ),
    (
        "second Friday",
        "0 9 * * 5#2",
        "2026-01-01",
        &["2026-01-09T09:00"],
    ),
    (
        "last Friday",
        "0 9 * * 5L",
        "2026-01-01",
        &["2026-01-30T09:00"],
    ),
    (
        "question mark",
        "0 9 ? * 1",
        "2026-01-01",
        &["2026-01-05T09:00"],
    ),
    (
        "one value with a step",
        "0 9 5-5/3 * *",
        "2026-01-01",
        &["2026-01-05T09:00", "2026-02-05T09:00"],
    ),
    (
        "leap day",
        "0 0 29 2 *",
        "2026-01-01",
        &["2028-02-29T00:00", "2032-02-29T00:00"],
    ),
    (
        "leap day or Monday",
        "0 0 29 2 1",
        "2026-01-01",
        &["2026-02-02T00:00"],
    ),
];

#[test]
fn fires_are_those_of_unix() {
    for (what, text, from, expected) in ROWS {
        assert_eq!(
            fires(text, Zone::UTC, from, expected.len()),
            expected,
            "{what}: {text}"
        );
    }
}

#[test]
fn nicknames_are_what_they_stand_for() {
    let table = [
        ("@yearly", "2027-01-01T00:00"),
        ("@annually", "2027-01-01T00:00"),
        ("@monthly", "2026-02-01T00:00"),
        ("@weekly", "2026-01-04T00:00"),
        ("@daily", "2026-01-02T00:00"),
        ("@Midnight", "2026-01-02T00:00"),
        ("@hourly", "2026-01-01T01:00"),
    ];
    for (text, expected) in table {
        assert_eq!(
            fires(text, Zone::UTC, "2026-01-01", 1),
            [expected],
            "{text}"
        );
        assert!(Expression::parse(text, true).is_ok(), "{text}");
    }
    let reboot = Expression::parse(" @reboot", false).unwrap_err();
    assert!(reboot.is_reboot());
    assert_eq!(reboot.at, 1..8);
}

#[test]
fn what_no_unix_accepts_is_refused() {
    let table = [
        ("0 0 9 * * *", "cron-too-many-fields"),
        ("0 0 9 * * * 2026", "cron-too-many-fields"),
        ("22-2 * * * *", "cron-range-wraps"),
        ("0 22-2 * * *", "cron-range-wraps"),
        ("0 9 * * FRI-MON", "cron-range-wraps"),
        ("50-10 * * * *", "cron-range-wraps"),
        ("0,,5 * * * *", "cron-empty-item"),
        ("60 * * * *", "cron-out-of-range"),
        ("0 24 * * *", "cron-out-of-range"),
        ("0 0 0 * *", "cron-out-of-range"),
        ("0 0 32 * *", "cron-out-of-range"),
        ("0 0 * 13 *", "cron-out-of-range"),
        ("*/0 * * * *", "cron-zero-step"),
        ("0 0 30 2 *", "cron-never-fires"),
        ("0 0 31 4 *", "cron-never-fires"),
    ];
    for (text, code) in table {
        assert_eq!(refusal(text, false), code, "{text}");
    }
    assert_eq!(refusal("0 9 * * 1", true), "cron-too-few-fields");
}

#[test]
fn years_do_not_end_in_2100() {
    assert_eq!(
        fires("0 9 1 1 *", Zone::UTC, "2100-02-01", 2),
        ["2101-01-01T09:00", "2102-01-01T09:00"]
    );
    assert_eq!(
        fires("* * * * *", Zone::UTC, "2100-12-31T23:59:00", 1),
        ["2101-01-01T00:00"]
    );
}

#[test]
fn clocks_that_change_lose_and_double_nothing() {
    let berlin = Zone::compiled_in("Europe/Berlin").unwrap();
    let rows: [(&str, &str, Zone, &str, &[&str]); 7] = [
        (
            "gap: right after it",
            "30 2 * * *",
            berlin,
            "2026-03-28T12:00",
            &["2026-03-29T03:00", "2026-03-30T02:30"],
        ),
        (
            "gap at midnight",
            "0 0 * * *",
            Zone::compiled_in("Asia/Beirut").unwrap(),
            "2026-03-28T12:00",
            &["2026-03-29T01:00", "2026-03-30T00:00"],
        ),
        (
            "gap at midnight",
            "0 0 * * *",
            Zone::compiled_in("America/Sao_Paulo").unwrap(),
            "2018-11-03T12:00",
            &["2018-11-04T01:00", "2018-11-05T00:00"],
        ),
        (
            "gap: one slot with a regular one",
            "0 2,3 * * *",
            berlin,
            "2026-03-28T12:00",
            &["2026-03-29T03:00", "2026-03-30T02:00"],
        ),
        (
            "fold: once",
            "30 2 * * *",
            berlin,
            "2026-10-24T12:00",
            &["2026-10-25T02:30", "2026-10-26T02:30"],
        ),
        (
            "fold: both passes",
            "*/30 * * * *",
            berlin,
            "2026-10-24T23:59",
            &[
                "2026-10-25T02:00",
                "2026-10-25T02:30",
                "2026-10-25T02:00",
                "2026-10-25T02:30",
                "2026-10-25T03:00",
            ],
        ),
        (
            "gap: nothing invented",
            "*/30 * * * *",
            berlin,
            "2026-03-29T00:29",
            &["2026-03-29T01:30", "2026-03-29T03:00"],
        ),
    ];
    for (what, text, zone, from, expected) in rows {
        assert_eq!(
            fires(text, zone, from, expected.len()),
            expected,
            "{what}: {text}"
        );
    }
}

#[test]
fn the_one_slot_of_a_fold_is_its_first_pass() {
    let fold = slots(
        &cron("30 2 * * *", Zone::compiled_in("Europe/Berlin").unwrap()),
        at("2026-10-25"),
        1,
    );
    assert_eq!(fold, [at("2026-10-25T00:30").millis() / 1_000]);
}
