//! Runs that are forgotten: nothing of them stays but what was counted of them.

use std::fs;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::sample_runs::{accepted, at, batch, recorded, run, spec, submitted, summary};
use crate::model::outcome::{Failure, Step};
use crate::model::{Outcome, Timestamp};
use crate::protocol::{Counted, DayCounts, RunSummary};
use crate::{FaultPlace, InjectedFault, MemoryStore, OpenOptions, SledStore, Store, Write};

fn open(dir: &std::path::Path) -> SledStore {
    let options = OpenOptions {
        reserve_bytes: 0,
        ..OpenOptions::default()
    };
    SledStore::open(dir, options).unwrap()
}

fn finished(n: u64) -> Write {
    Write::Finished(Box::new(summary(n)))
}

fn counted(store: &dyn Store) -> Vec<(String, Counted, DayCounts)> {
    let ended = summary(1).finished_at.unwrap().rfc3339();
    let mut all = Vec::new();
    for at in [&ended[..10], &ended[..13]] {
        let mut take = |of, counts| all.push((at.to_owned(), of, counts));
        store.counts(at, "", &mut take).unwrap();
        // Those of everything are held, and are what is stored.
        let mut held = Vec::new();
        let mut take = |of, counts| held.push((at.to_owned(), of, counts));
        store.counts(at, &Counted::All.key(), &mut take).unwrap();
        let of_all = all
            .iter()
            .filter(|one| one.0 == at && one.1 == Counted::All);
        assert!(of_all.eq(&held), "{held:?}");
    }
    all
}

fn runs_counted(store: &dyn Store) -> u32 {
    let all = counted(store);
    let of_all = all.iter().filter(|(_, of, _)| *of == Counted::All);
    of_all.map(|(_, _, counts)| counts.runs()).sum()
}

fn known(store: &dyn Store) -> usize {
    let mut lines = 0;
    let mut count = |_: RunSummary| {
        lines += 1;
        ControlFlow::Continue(())
    };
    store.summaries(None, &mut count).unwrap();
    lines
}

#[test]
fn a_forgotten_run_leaves_its_counts_and_nothing_else() {
    let dir = xtest::tempdir();
    let store = open(dir.path());
    let large = batch(vec![
        Write::Spec(Arc::new(spec(1, 20_000))),
        Write::Entries {
            run: run(1),
            entries: vec![submitted(1), recorded(1, 1, 20_000)],
        },
    ]);
    for (n, accepted) in [(1, large), (2, accepted(2))] {
        store.commit(&accepted).unwrap();
        store
            .commit(&batch(vec![finished(n), Write::Closed(run(n))]))
            .unwrap();
    }
    assert_eq!(store.find(&run(1).to_string(), 2).unwrap(), [run(1)]);
    let payloads = dir.path().join("payload").join(run(1).to_string());
    assert_eq!(fs::read_dir(&payloads).unwrap().count(), 2);
    store.commit(&batch(vec![Write::Forget(run(1))])).unwrap();
    assert!(!payloads.exists());
    let look = |store: &dyn Store| {
        assert_eq!(store.spec(run(1)).unwrap(), None);
        assert_eq!(store.journal(run(1)).unwrap(), []);
        assert_eq!(store.summary(run(1)).unwrap(), None);
        assert_eq!(store.find(&run(1).to_string(), 2).unwrap(), []);
        assert_eq!(store.spec(run(2)).unwrap(), Some(spec(2, 40)));
        assert_eq!(known(store), 1);
        assert_eq!(runs_counted(store), 2);
    };
    look(&store);
    drop(store);
    look(&open(dir.path()));
    let report = crate::maintenance::verify(dir.path()).unwrap();
    assert_eq!(
        (report.fault_count, report.orphan_count),
        (0, 0),
        "{report:?}"
    );
}

#[test]
fn an_active_run_is_not_forgotten() {
    let store = MemoryStore::new();
    store.commit(&accepted(1)).unwrap();
    store
        .commit(&batch(vec![finished(1), Write::Forget(run(1))]))
        .unwrap();
    assert_eq!(store.active().unwrap(), [run(1)]);
    assert_eq!(store.summary(run(1)).unwrap(), Some(summary(1)));
    assert_eq!(store.spec(run(1)).unwrap(), Some(spec(1, 40)));
}

#[test]
fn a_run_counts_once_and_as_it_ended_in_the_end() {
    let store = MemoryStore::new();
    store.commit(&accepted(1)).unwrap();
    let mut failed = summary(1);
    failed.outcome = Some(Outcome::Failed {
        failure: Failure::new(Step::Land, "checkout_dirty", "a file is changed"),
    });
    failed.schedule = Some("w/s#nightly".to_owned());
    let mut landed = failed.clone();
    landed.outcome = Some(Outcome::Succeeded);
    for line in [&failed, &failed, &landed, &landed] {
        let written = Write::Finished(Box::new(line.clone()));
        store
            .commit(&batch(vec![written.clone(), written]))
            .unwrap();
    }
    let all = counted(&store);
    let subjects: Vec<&Counted> = all.iter().map(|(_, of, _)| of).collect();
    let schedule = Counted::Schedule("w/s#nightly".to_owned());
    let skill = Counted::Skill(landed.skill.clone());
    let expected = [&Counted::All, &schedule, &skill, &schedule, &skill];
    assert_eq!(subjects, expected);
    for (_, _, counts) in &all {
        assert_eq!(counts.outcomes, [("succeeded".to_owned(), 1)].into());
        assert_eq!((counts.runs(), counts.verified), (1, 1));
        assert!(
            counts
                .took
                .percentile(50)
                .is_some_and(|ms| (870..1_120).contains(&ms))
        );
    }
}

#[test]
fn a_crash_while_runs_are_forgotten_loses_no_count_and_leaves_none_by_halves() {
    for place in [
        FaultPlace::BeforeApply,
        FaultPlace::BeforeSync,
        FaultPlace::AfterSync,
    ] {
        for kept in 0..3 {
            let store = MemoryStore::new();
            for n in 1..=4 {
                store.commit(&accepted(n)).unwrap();
                store
                    .commit(&batch(vec![finished(n), Write::Closed(run(n))]))
                    .unwrap();
            }
            store.fail_nth(1, InjectedFault::Broken, place);
            let both = batch(vec![Write::Forget(run(1)), Write::Forget(run(2))]);
            store.commit(&both).unwrap_err();
            store.power_cut(kept).unwrap();
            let is_there = |n| {
                let (spec, journal) = (store.spec(run(n)).unwrap(), store.journal(run(n)).unwrap());
                let line = store.summary(run(n)).unwrap();
                assert_eq!(spec.is_some(), line.is_some());
                assert_eq!(spec.is_some(), !journal.is_empty());
                spec.is_some()
            };
            assert_eq!(is_there(1), is_there(2));
            assert!(is_there(3) && is_there(4));
            assert_eq!(runs_counted(&store), 4);
            store.commit(&both).unwrap();
            assert!(!is_there(1) && !is_there(2));
            assert_eq!(runs_counted(&store), 4);
        }
    }
}

#[test]
fn payloads_that_a_crash_left_are_swept_and_no_others() {
    let dir = xtest::tempdir();
    let store = open(dir.path());
    store
        .commit(&batch(vec![Write::Spec(Arc::new(spec(2, 20_000)))]))
        .unwrap();
    let payloads = dir.path().join("payload");
    for n in [1, 3] {
        let left = payloads.join(run(n).to_string());
        fs::create_dir(&left).unwrap();
        fs::write(left.join("spec-0000000000000000.json"), "{}").unwrap();
    }
    // The third could be a run that is just being accepted.
    assert_eq!(store.sweep_payloads(at(3)).unwrap(), 1);
    let left = |n: u64| payloads.join(run(n).to_string()).exists();
    assert!(!left(1) && left(2) && left(3));
}

#[test]
fn a_store_that_counted_nothing_is_counted_when_it_is_opened() {
    let dir = xtest::tempdir();
    let store = open(dir.path());
    for n in 1..=3 {
        store.commit(&accepted(n)).unwrap();
        store.commit(&batch(vec![finished(n)])).unwrap();
    }
    let all = counted(&store);
    assert_eq!(
        all.len(),
        3,
        "all and a skill on the day, a skill in the hour: {all:?}"
    );
    store.0.forget_counts(false).unwrap();
    assert_eq!(counted(&store), []);
    drop(store);
    let store = open(dir.path());
    assert_eq!(counted(&store), all);
    // Of a run that is forgotten the counts alone tell.
    store
        .commit(&batch(vec![Write::Closed(run(1)), Write::Forget(run(1))]))
        .unwrap();
    store.0.forget_counts(true).unwrap();
    assert_eq!(counted(&store).len(), 1);
    drop(store);
    let again = counted(&open(dir.path()));
    let of_days = |all: &[(String, Counted, DayCounts)]| all[..2].to_vec();
    assert_eq!(of_days(&again), of_days(&all));
    assert_eq!(
        again[2].2.runs(),
        2,
        "hours are those of the runs that are kept"
    );
}

#[test]
fn counts_of_long_past_days_and_hours_go() {
    let dir = xtest::tempdir();
    let store = open(dir.path());
    store.commit(&accepted(1)).unwrap();
    store.commit(&batch(vec![finished(1)])).unwrap();
    let ended = summary(1).finished_at.unwrap();
    let forget = |at: Timestamp, letters: usize| {
        let before = at.rfc3339()[..letters].to_owned();
        store
            .commit(&batch(vec![Write::ForgetCounts(before)]))
            .unwrap();
        counted(&store).len()
    };
    assert_eq!((forget(ended, 10), forget(ended, 13)), (3, 3));
    assert_eq!(forget(ended.plus_millis(3_600_000), 13), 2);
    assert_eq!(forget(ended.plus_millis(86_400_000), 10), 0);
    drop(store);
    assert_eq!(counted(&open(dir.path())), [], "they are not counted anew");
}

/// Many runs, of which the newest stay.
fn shrunk(store: &dyn Store) {
    for n in 0..600 {
        let entries = (2..9).map(|seq| recorded(n, seq, 400)).collect();
        let mut writes = accepted(n).writes;
        writes.push(Write::Entries {
            run: run(n),
            entries,
        });
        writes.extend([finished(n), Write::Closed(run(n))]);
        store.commit_lazily(&batch(writes)).unwrap();
    }
    for n in 0..590 {
        store
            .commit_lazily(&batch(vec![Write::Forget(run(n))]))
            .unwrap();
    }
    store.commit(&batch(Vec::new())).unwrap();
}

#[test]
fn compacting_gives_space_back_and_changes_nothing_else() {
    let dir = xtest::tempdir();
    let store = open(dir.path());
    shrunk(&store);
    let held = |store: &dyn Store| {
        let mut lines = Vec::new();
        let mut take = |line: RunSummary| {
            lines.push((store.journal(line.run).unwrap(), line));
            ControlFlow::Continue(())
        };
        store.summaries(None, &mut take).unwrap();
        (lines, counted(store))
    };
    let sizes = |store: &SledStore| (store.file_bytes().unwrap(), store.held_bytes().unwrap());
    let before = (sizes(&store), held(&store));
    store.compact().unwrap();
    let after = (sizes(&store), held(&store));
    assert_eq!(before.1, after.1);
    assert_eq!(before.0.1, after.0.1);
    assert!(after.0.0 * 2 < before.0.0, "{} {}", before.0.0, after.0.0);
    // It goes on, and finds its witness as it left it.
    store.commit(&accepted(10_000)).unwrap();
    drop(store);
    let store = open(dir.path());
    assert_eq!(store.active().unwrap(), [run(10_000)]);
    assert_eq!(held(&store), before.1);
    assert!(!dir.path().join("db.compact").exists());
}

#[test]
fn a_compaction_that_is_interrupted_anywhere_leaves_one_whole_database() {
    let dir = xtest::tempdir();
    let store = open(dir.path());
    shrunk(&store);
    let all = counted(&store);
    drop(store);
    let (named, other) = (dir.path().join("db"), dir.path().join("db.compact"));
    // While it copies.
    fs::create_dir(&other).unwrap();
    fs::write(other.join("db"), vec![0x55; 70_000]).unwrap();
    let store = open(dir.path());
    assert!(!other.exists());
    // After the names were exchanged.
    let aside = xtest::tempdir();
    for part in fs::read_dir(&named).unwrap() {
        let part = part.unwrap();
        if part.file_type().unwrap().is_file() {
            fs::copy(part.path(), aside.path().join(part.file_name())).unwrap();
        }
    }
    store.compact().unwrap();
    drop(store);
    fs::rename(aside.path(), &other).unwrap();
    let store = open(dir.path());
    assert!(!other.exists());
    assert_eq!(counted(&store), all);
    assert_eq!(known(&store), 10);
}
