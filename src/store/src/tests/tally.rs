//! Counts of slots by half hours, and the newest run of each skill.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::sample_runs::{accepted, at, batch, run, skill, summary};
use crate::model::schedule::{SlotRow, SlotStatus};
use crate::model::{Outcome, RunId, Timestamp};
use crate::protocol::{RunSummary, SlotCounts};
use crate::{MemoryStore, OpenOptions, SledStore, Store, Write};

const SCHEDULE: &str = "w/s#nightly";

fn open(dir: &std::path::Path) -> SledStore {
    let options = OpenOptions {
        reserve_bytes: 0,
        ..OpenOptions::default()
    };
    SledStore::open(dir, options).unwrap()
}

fn instant(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn counted(store: &dyn Store, worker: Option<&str>) -> BTreeMap<String, SlotCounts> {
    let mut all = BTreeMap::new();
    let mut take = |at: Timestamp, counts| {
        all.insert(at.rfc3339()[..16].to_owned(), counts);
    };
    let (from, to) = (instant("2000-01-01"), instant("2100-01-01"));
    store.slot_counts(worker, from, to, &mut take).unwrap();
    all
}

fn statuses(store: &dyn Store) -> Vec<(String, SlotStatus, u32)> {
    let all = counted(store, None);
    let of = |(at, counts): (&String, &SlotCounts)| {
        let statuses = counts.statuses().into_iter();
        let at = at.clone();
        statuses
            .map(move |(status, count)| (at.clone(), status, count))
            .collect::<Vec<_>>()
    };
    all.iter().flat_map(of).collect()
}

fn slot(row: SlotRow) -> Write {
    Write::Slot {
        schedule: SCHEDULE.to_owned(),
        row,
    }
}

/// The row of a run, and the line of it once it has ended.
fn ran(n: u64) -> (SlotRow, RunSummary) {
    let slot = instant("2026-01-02T02:40");
    let mut ended = summary(n);
    ended.schedule = Some(SCHEDULE.to_owned());
    ended.slot = Some(slot);
    let row = SlotRow {
        run: Some(ended.run),
        ..SlotRow::one(slot, SlotStatus::Ran, slot)
    };
    (row, ended)
}

#[test]
fn a_row_that_grows_counts_each_slot_where_it_was() {
    let store = MemoryStore::new();
    let mut row = SlotRow::one(instant("2026-01-02T09:00"), SlotStatus::Paused, at(1));
    store.commit(&batch(vec![slot(row.clone())])).unwrap();
    // Not on the Saturday and the Sunday between.
    for (count, to) in [
        (2, "2026-01-05T09:00"),
        (3, "2026-01-06T09:00"),
        (4, "2026-01-07T09:00"),
    ] {
        row.to = instant(to);
        row.count = Some(count);
        let written = slot(row.clone());
        store
            .commit(&batch(vec![written.clone(), written]))
            .unwrap();
    }
    let paused = |at: &str| (at.to_owned(), SlotStatus::Paused, 1);
    let days = [
        "2026-01-02T09:00",
        "2026-01-05T09:00",
        "2026-01-06T09:00",
        "2026-01-07T09:00",
    ];
    assert_eq!(statuses(&store), days.map(paused));
    let other = row.clone().because("a holiday");
    store.commit(&batch(vec![slot(other)])).unwrap();
    assert_eq!(statuses(&store).len(), 4);
    // The clock is stepped back over the last one.
    row.to = instant(days[2]);
    row.count = Some(3);
    store.commit(&batch(vec![slot(row.clone())])).unwrap();
    assert_eq!(statuses(&store), [0, 1, 2].map(|day| paused(days[day])));
    let undone = Write::UndoSlot {
        schedule: SCHEDULE.to_owned(),
        from: row.from,
    };
    store.commit(&batch(vec![undone.clone(), undone])).unwrap();
    assert_eq!(statuses(&store), []);
}

#[test]
fn a_slot_counts_as_its_run_ended_in_the_end_and_stays_when_row_and_run_go() {
    let store = MemoryStore::new();
    let (row, mut ended) = ran(1);
    store.commit(&accepted(1)).unwrap();
    store.commit(&batch(vec![slot(row.clone())])).unwrap();
    ended.outcome = Some(Outcome::Unknown { why: "w".into() });
    let unknown = Write::Finished(Box::new(ended.clone()));
    ended.outcome = Some(Outcome::Succeeded);
    let resolved = Write::Finished(Box::new(ended));
    for write in [&unknown, &unknown, &resolved, &resolved] {
        let twice = vec![write.clone(), write.clone()];
        store.commit(&batch(twice)).unwrap();
    }
    // The row says how it ended, too.
    let mut outcomes = Vec::new();
    let mut take = |row: Result<SlotRow, _>| {
        outcomes.push(row.unwrap().outcome);
        ControlFlow::Continue(())
    };
    store.slots(SCHEDULE, None, &mut take).unwrap();
    assert_eq!(outcomes, [Some("succeeded".to_owned())]);
    store.commit(&batch(vec![Write::Closed(run(1))])).unwrap();
    let dropped = Write::DropSlot {
        schedule: SCHEDULE.to_owned(),
        from: row.from,
    };
    store.commit(&batch(vec![dropped])).unwrap();
    store.commit(&batch(vec![Write::Forget(run(1))])).unwrap();
    let mut wanted = SlotCounts::of_status(SlotStatus::Ran, 1);
    wanted.add(&SlotCounts::of_outcome("succeeded"));
    let wanted: BTreeMap<_, _> = [("2026-01-02T02:30".to_owned(), wanted)].into();
    assert_eq!(counted(&store, None), wanted);
    assert_eq!(counted(&store, Some("w")), wanted);
    assert_eq!(counted(&store, Some("")), wanted);
    assert!(counted(&store, Some("other")).is_empty());
}

#[test]
fn counts_go_by_their_age_whoever_they_are_of() {
    let store = MemoryStore::new();
    for schedule in ["a/s", "w/s", "w/t", "x/s"] {
        for day in ["2026-01-01T23:59", "2026-01-02T12:00", "2026-01-03"] {
            let row = SlotRow::one(instant(day), SlotStatus::Missed, at(1));
            let schedule = schedule.to_owned();
            let write = Write::Slot { schedule, row };
            store.commit(&batch(vec![write])).unwrap();
        }
    }
    let forget = |before| {
        let write = Write::ForgetHours(instant(before));
        store.commit(&batch(vec![write])).unwrap();
        [None, Some("a"), Some("w"), Some("x")].map(|of| counted(&store, of).len())
    };
    assert_eq!(forget("2026-01-02T11:59"), [2, 2, 2, 2]);
    assert_eq!(forget("2026-01-02T23:00"), [2, 2, 2, 2]);
    assert_eq!(forget("2026-01-03T00:00"), [1, 1, 1, 1]);
    assert_eq!(forget("2027-01-01"), [0, 0, 0, 0]);
}

#[test]
fn the_newest_run_of_a_skill_is_known_until_it_is_forgotten() {
    let store = MemoryStore::new();
    let newest = |store: &dyn Store| -> Option<RunId> { store.newest_of(&skill()).unwrap() };
    assert_eq!(newest(&store), None);
    for n in [1, 3, 2] {
        store.commit(&accepted(n)).unwrap();
        let finished = Write::Finished(Box::new(summary(n)));
        let closed = Write::Closed(run(n));
        store.commit(&batch(vec![finished, closed])).unwrap();
    }
    assert_eq!(newest(&store), Some(run(3)));
    store.commit(&batch(vec![Write::Forget(run(1))])).unwrap();
    assert_eq!(newest(&store), Some(run(3)));
    store.commit(&batch(vec![Write::Forget(run(3))])).unwrap();
    assert_eq!(newest(&store), None);
}

#[test]
fn a_store_of_a_version_that_counted_no_slots_is_counted_when_it_is_opened() {
    let dir = xtest::tempdir();
    let store = open(dir.path());
    let (row, mut ended) = ran(2);
    ended.outcome = Some(Outcome::Unknown { why: "w".into() });
    let missed = SlotRow {
        to: instant("2026-01-01T05:00"),
        count: Some(6),
        ..SlotRow::one(instant("2026-01-01"), SlotStatus::Missed, at(1))
    };
    store.commit(&accepted(2)).unwrap();
    store.commit(&batch(vec![slot(row), slot(missed)])).unwrap();
    let finished = Write::Finished(Box::new(ended.clone()));
    store.commit(&batch(vec![finished])).unwrap();
    let all = counted(&store, None);
    assert_eq!(all.len(), 7);
    // Lines of that version had no slot.
    let mut old = ended.clone();
    old.slot = None;
    store.0.forget_counts(false).unwrap();
    let line = Write::Finished(Box::new(old));
    store.commit(&batch(vec![line])).unwrap();
    store.0.forget_counts(false).unwrap();
    assert!(counted(&store, None).is_empty());
    drop(store);
    let store = open(dir.path());
    assert_eq!(counted(&store, None), all);
    assert_eq!(store.newest_of(&skill()).unwrap(), Some(run(2)));
    // Somebody settles it now.
    ended.outcome = Some(Outcome::Succeeded);
    let resolved = Write::Finished(Box::new(ended));
    store.commit(&batch(vec![resolved])).unwrap();
    let at = counted(&store, None)["2026-01-02T02:30"];
    assert_eq!(at.outcomes(), [("succeeded".to_owned(), 1)].into());
    drop(store);
    let report = crate::maintenance::verify(dir.path()).unwrap();
    assert_eq!(report.fault_count, 0, "{report:?}");
}

#[test]
fn a_count_that_was_cut_off_begins_anew() {
    let dir = xtest::tempdir();
    let store = open(dir.path());
    let (row, ended) = ran(2);
    let missed = SlotRow::one(instant("2026-01-01"), SlotStatus::Missed, at(1));
    store.commit(&accepted(2)).unwrap();
    let finished = Write::Finished(Box::new(ended));
    store
        .commit(&batch(vec![slot(row), slot(missed), finished]))
        .unwrap();
    let all = counted(&store, None);
    let rows = crate::tally::of_everything(store.0.table()).unwrap();
    store.0.forget_counts(false).unwrap();
    // The power went after these and before what says that they are all.
    store.0.write_counted(&[], rows).unwrap();
    assert_eq!(counted(&store, None), all);
    drop(store);
    let store = open(dir.path());
    assert_eq!(counted(&store, None), all);
}
