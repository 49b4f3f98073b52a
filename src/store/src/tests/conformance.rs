//! One suite for every implementation of the trait.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::sample_runs::{accepted, admitted, at, batch, recorded, run, spec, submitted, summary};
use crate::machine::Entry;
use crate::model::RunId;
use crate::protocol::RunSummary;
use crate::{MemoryStore, OpenOptions, SledStore, Store, StoreError, Write};

/// Runs `test` on sled and on memory. The second argument opens the store again.
fn on_both(test: impl Fn(&mut dyn FnMut() -> Box<dyn Store>)) {
    let memory = MemoryStore::new();
    test(&mut || {
        memory.restart().unwrap();
        Box::new(memory.clone())
    });
    let dir = xtest::tempdir();
    test(&mut || Box::new(open(dir.path())));
}

fn open(dir: &std::path::Path) -> SledStore {
    let options = OpenOptions {
        reserve_bytes: 65_536,
        ..OpenOptions::default()
    };
    SledStore::open(dir, options).unwrap()
}

fn lines(store: &dyn Store, before: Option<RunId>, limit: usize) -> Vec<RunSummary> {
    let mut lines = Vec::new();
    let mut take = |line| {
        lines.push(line);
        if lines.len() == limit {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    store.summaries(before, &mut take).unwrap();
    lines
}

#[test]
fn a_run_is_kept_from_acceptance_to_the_end() {
    on_both(|open| {
        let store = open();
        assert_eq!(store.newest().unwrap(), None);
        store.commit(&accepted(1)).unwrap();
        drop(store);
        let store = open();
        assert_eq!(store.active().unwrap(), [run(1)]);
        assert_eq!(store.spec(run(1)).unwrap(), Some(spec(1, 40)));
        let journal = [submitted(1), admitted(1, 1)];
        assert_eq!(store.journal(run(1)).unwrap(), journal);
        assert_eq!(store.summary(run(1)).unwrap(), None);
        let finished = Write::Finished(Box::new(summary(1)));
        store.commit(&batch(vec![finished])).unwrap();
        assert_eq!(store.active().unwrap(), [run(1)], "until it is closed");
        store.commit(&batch(vec![Write::Closed(run(1))])).unwrap();
        assert_eq!(store.active().unwrap(), []);
        assert_eq!(store.summary(run(1)).unwrap(), Some(summary(1)));
        assert_eq!(store.newest().unwrap(), Some(run(1)));
        assert_eq!(store.spec(run(2)).unwrap(), None);
        assert_eq!(store.journal(run(2)).unwrap(), []);
    });
}

#[test]
fn a_batch_applied_again_changes_nothing() {
    on_both(|open| {
        let store = open();
        store.commit(&accepted(1)).unwrap();
        let more = batch(vec![Write::Entries {
            run: run(1),
            entries: vec![admitted(1, 2)],
        }]);
        store.commit(&more).unwrap();
        let end = batch(vec![
            Write::Finished(Box::new(summary(1))),
            Write::Closed(run(1)),
        ]);
        store.commit(&end).unwrap();
        for again in [&accepted(1), &more, &end, &accepted(1)] {
            store.commit(again).unwrap();
        }
        assert_eq!(store.active().unwrap(), [], "a closed run stays closed");
        let numbers: Vec<u32> = seqs(&store.journal(run(1)).unwrap());
        assert_eq!(numbers, [0, 1, 2]);
    });
}

fn seqs(journal: &[Entry]) -> Vec<u32> {
    journal.iter().map(|entry| entry.seq).collect()
}

#[test]
fn events_in_other_portions_are_not_told_twice_and_gaps_stay() {
    on_both(|open| {
        let store = open();
        let of = |seqs: &[u32]| Write::Entries {
            run: run(1),
            entries: seqs.iter().map(|seq| admitted(1, *seq)).collect(),
        };
        store
            .commit(&batch(vec![of(&[0, 1]), of(&[2]), of(&[3])]))
            .unwrap();
        store.commit(&batch(vec![of(&[2])])).unwrap();
        store.commit(&batch(vec![of(&[0])])).unwrap();
        assert_eq!(seqs(&store.journal(run(1)).unwrap()), [0, 1, 2, 3]);
        store.commit(&batch(vec![of(&[7])])).unwrap();
        assert_eq!(seqs(&store.journal(run(1)).unwrap()), [0, 1, 2, 3, 7]);
    });
}

#[test]
fn what_is_large_lies_in_files_and_is_read_back() {
    on_both(|open| {
        let store = open();
        let large = spec(1, 100_000);
        let entries: Vec<Entry> = (0..40)
            .map(|seq| recorded(1, seq, if seq % 7 == 3 { 9_000 } else { 700 }))
            .collect();
        let first = batch(vec![
            Write::Spec(Arc::new(large.clone())),
            Write::Entries {
                run: run(1),
                entries: entries.clone(),
            },
        ]);
        store.commit(&first).unwrap();
        store.commit(&first).unwrap();
        drop(store);
        let store = open();
        assert_eq!(store.spec(run(1)).unwrap(), Some(large));
        assert_eq!(store.journal(run(1)).unwrap(), entries);
    });
}

#[test]
fn lists_are_newest_first_and_can_be_continued() {
    on_both(|open| {
        let store = open();
        for n in 1..=300 {
            let finished = Write::Finished(Box::new(summary(n)));
            store.commit_lazily(&batch(vec![finished])).unwrap();
        }
        let all = lines(store.as_ref(), None, usize::MAX);
        assert_eq!(all.len(), 300);
        assert!(all.windows(2).all(|pair| pair[0].run > pair[1].run));
        let part = lines(store.as_ref(), Some(run(200)), 3);
        let wanted = [summary(199), summary(198), summary(197)];
        assert_eq!(part, wanted);
    });
}

#[test]
fn fragments_find_runs_at_either_end() {
    on_both(|open| {
        let store = open();
        for n in 1..=50 {
            store.commit_lazily(&accepted(n)).unwrap();
        }
        let end = [Write::Finished(Box::new(summary(7))), Write::Closed(run(7))];
        store.commit(&batch(end.to_vec())).unwrap();
        assert_eq!(store.find(&run(7).short(), 10).unwrap(), [run(7)]);
        let full = run(9).to_string();
        assert_eq!(store.find(&full.to_lowercase(), 10).unwrap(), [run(9)]);
        let many = store.find(&full[..4], 3).unwrap();
        assert_eq!(many, [run(50), run(49), run(48)]);
        store.commit(&accepted(51)).unwrap();
        assert_eq!(store.find(&run(51).short(), 10).unwrap(), [run(51)]);
        assert_eq!(store.find("", 10).unwrap(), []);
        assert_eq!(store.find("UUUU", 10).unwrap(), []);
    });
}

#[test]
fn keys_answer_until_they_are_forgotten() {
    on_both(|open| {
        let store = open();
        let key = |name: &str, n| Write::Key {
            key: name.to_owned(),
            run: run(n),
            at: at(n),
        };
        let long = "k".repeat(10_000);
        store
            .commit(&batch(vec![key("a", 1), key("b", 5), key(&long, 9)]))
            .unwrap();
        assert_eq!(store.key("a").unwrap(), Some((run(1), at(1))));
        assert_eq!(store.key(&long).unwrap(), Some((run(9), at(9))));
        let forget = batch(vec![key("c", 2), Write::ForgetKeys(at(5)), key("d", 3)]);
        store.commit(&forget).unwrap();
        drop(store);
        let store = open();
        let found = ["a", "b", "c", "d", "e"].map(|name| store.key(name).unwrap().is_some());
        assert_eq!(found, [false, true, false, true, false]);
    });
}

#[test]
fn fencing_tokens_only_grow() {
    on_both(|open| {
        let first = open().next_fence().unwrap();
        let second = open().next_fence().unwrap();
        let store = open();
        assert!(second > first);
        assert!(store.next_fence().unwrap() > second);
    });
}

#[test]
fn a_commit_costs_one_sync_and_a_lazy_one_none() {
    on_both(|open| {
        let store = open();
        let syncs = |store: &dyn Store| store.counters().syncs;
        let before = syncs(store.as_ref());
        store.commit(&accepted(1)).unwrap();
        assert_eq!(syncs(store.as_ref()) - before, 1);
        store
            .commit_lazily(&batch(vec![Write::Closed(run(1))]))
            .unwrap();
        assert_eq!(syncs(store.as_ref()) - before, 1);
        assert_eq!(store.active().unwrap(), [], "reads see it at once");
        store.commit(&batch(Vec::new())).unwrap();
        assert_eq!(syncs(store.as_ref()) - before, 2);
        store.commit(&batch(Vec::new())).unwrap();
        assert_eq!(syncs(store.as_ref()) - before, 2, "nothing was waiting");
        assert_eq!(store.counters().commits, 2);
    });
}

#[test]
fn what_cannot_be_stored_is_refused_and_the_store_goes_on() {
    on_both(|open| {
        let store = open();
        let deep = (0..200).fold(serde_json::json!(1), |inner, _| serde_json::json!([inner]));
        let prepared = crate::machine::Event::Prepared { baseline: deep };
        let entries = vec![super::sample_runs::entry(1, 0, prepared)];
        let bad = batch(vec![
            Write::Spec(Arc::new(spec(1, 10))),
            Write::Entries {
                run: run(1),
                entries,
            },
        ]);
        let error = store.commit(&bad).unwrap_err();
        assert!(matches!(error, StoreError::Refused { .. }), "{error}");
        assert_eq!(store.active().unwrap(), [], "nothing of it was written");
        store.commit(&accepted(2)).unwrap();
        assert_eq!(store.active().unwrap(), [run(2)]);
    });
}

#[test]
fn a_damaged_row_of_a_ledger_is_told_and_stops_nothing() {
    use crate::keys;
    use crate::model::Timestamp;
    use crate::model::schedule::{SlotRow, SlotStatus};
    use crate::table::{Rows, Table};

    let dir = xtest::tempdir();
    let store = open(dir.path());
    let row = |from: i64| SlotRow {
        from: Timestamp::from_millis(from),
        to: Timestamp::from_millis(from),
        count: Some(1),
        status: SlotStatus::Ran,
        run: Some(run(1)),
        outcome: None,
        at: Timestamp::from_millis(from),
        reason: None,
    };
    let write = |from| Write::Slot {
        schedule: "w/s".to_owned(),
        row: row(from),
    };
    store
        .commit(&batch(vec![write(1), write(2), write(3)]))
        .unwrap();
    let key = keys::slot("w/s", Timestamp::from_millis(2));
    let damage = Rows::from([(key, Some(b"no record".to_vec()))]);
    store.0.table().apply(&damage).unwrap();
    let mut told = Vec::new();
    let mut take = |row: Result<SlotRow, crate::Unreadable>| {
        told.push(row.map_err(|damaged| damaged.from));
        ControlFlow::Continue(())
    };
    store.slots("w/s", None, &mut take).unwrap();
    assert_eq!(
        told,
        [Ok(row(3)), Err(Some(Timestamp::from_millis(2))), Ok(row(1))]
    );
}
