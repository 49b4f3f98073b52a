//! The tables of `docs/reference/schedule.md` say what the program does.

use chrono::{DateTime, NaiveDate};

use crate::model::schedule::{Dst, Fold, Gap};
use crate::model::{Timestamp, Zone};
use crate::schedule::{Expression, Recurrence, words};

/// Cells of the rows below that head.
fn rows(head: &str) -> Vec<Vec<String>> {
    let page = include_str!("../../../../../docs/reference/schedule.md");
    let (_, below) = page.split_once(head).expect("a table with that head");
    let rows: Vec<Vec<String>> = below
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells = line.split('|').skip(1);
            cells.map(|cell| cell.trim().to_owned()).collect()
        })
        .collect();
    assert!(rows.len() > 3, "{head}");
    rows
}

/// The texts of a cell that stand between backquotes.
fn codes(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

fn recurrence(text: &str, dst: Option<Dst>) -> Recurrence {
    let expression = Expression::parse(text, false).unwrap_or_else(|e| panic!("{text}: {e:?}"));
    Recurrence::cron(expression, "Europe/Berlin".parse().unwrap(), dst)
}

#[test]
fn expressions_are_due_when_the_page_says() {
    let mut differing = Vec::new();
    for row in rows("| written | due |") {
        let (said, _) = row[1].split_once(';').unwrap_or((&row[1], ""));
        for text in codes(&row[0]) {
            let told = words(&recurrence(text, None));
            if told != format!("{said}, Europe/Berlin") {
                differing.push((text.to_owned(), told));
            }
        }
    }
    assert!(differing.is_empty(), "{differing:#?}");
}

#[test]
fn expressions_are_refused_as_the_page_says() {
    for row in rows("| code | for example | why |") {
        for text in codes(&row[1]) {
            let error = Expression::parse(text, false).expect_err(text);
            assert!(codes(&row[0]).contains(&error.code), "{text}: {error:?}");
        }
    }
}

#[test]
fn changes_of_clocks_are_met_as_the_page_says() {
    for row in rows("| expression | `dst` |") {
        let dst = match codes(&row[1]).as_slice() {
            [] => None,
            ["{gap: skip, fold: second}"] => Some((Gap::Skip, Fold::Second)),
            ["{gap: run_after, fold: first}"] => Some((Gap::RunAfter, Fold::First)),
            other => panic!("{other:?}"),
        };
        let slots = recurrence(codes(&row[0])[0], dst.map(|(gap, fold)| Dst { gap, fold }));
        let zone: Zone = "Europe/Berlin".parse().unwrap();
        for (cell, (month, day)) in [(&row[2], (3, 29)), (&row[3], (10, 25))] {
            assert_eq!(
                of_day(&slots, zone, month, day).join(", "),
                *cell,
                "{row:?}"
            );
        }
    }
}

/// Slots of a day of 2026, by its clocks.
fn of_day(slots: &Recurrence, zone: Zone, month: u32, day: u32) -> Vec<String> {
    let date = NaiveDate::from_ymd_opt(2026, month, day).unwrap();
    // The day begins in winter or in summer: two hours before it in universal time are enough for both.
    let midnight = date.and_hms_opt(0, 0, 0).unwrap().and_utc();
    let mut at = Timestamp::from_millis(midnight.timestamp_millis() - 2 * super::HOUR - 1);
    let mut found = Vec::new();
    while let Some(slot) = slots.next_after(at) {
        let told = slot.rfc3339_in(zone);
        let local = DateTime::parse_from_rfc3339(&told).unwrap();
        if local.date_naive() > date {
            break;
        }
        if local.date_naive() == date {
            found.push(local.format("%H:%M%:z").to_string());
        }
        at = slot;
    }
    found
}
