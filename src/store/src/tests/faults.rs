//! Failing commits and power cuts, on the store in memory.

use std::sync::Arc;

use super::sample_runs::{accepted, batch, run, spec, summary};
use crate::{FaultPlace, InjectedFault, MemoryStore, Store, StoreError, Write};

fn closed(n: u64) -> crate::Batch {
    batch(vec![
        Write::Finished(Box::new(summary(n))),
        Write::Closed(run(n)),
    ])
}

#[test]
fn after_full_the_same_batch_is_committed_again_and_nothing_is_lost() {
    for place in [
        FaultPlace::BeforeApply,
        FaultPlace::BeforeSync,
        FaultPlace::AfterSync,
    ] {
        let store = MemoryStore::new();
        store.commit(&accepted(1)).unwrap();
        store.commit_lazily(&closed(1)).unwrap();
        store.fail_nth(1, InjectedFault::Full, place);
        let error = store.commit(&accepted(2)).unwrap_err();
        assert!(
            matches!(error, StoreError::Full { .. }),
            "{place:?}: {error}"
        );
        let again = store.commit(&accepted(2)).unwrap_err();
        assert!(
            matches!(again, StoreError::Full { .. }),
            "until it is reopened"
        );
        assert!(store.spec(run(1)).unwrap().is_some(), "reads go on");
        store.reopen().unwrap();
        store.commit(&accepted(2)).unwrap();
        assert_eq!(store.active().unwrap(), [run(2)], "{place:?}");
        store.power_cut(0).unwrap();
        assert_eq!(store.active().unwrap(), [run(2)], "{place:?}");
    }
}

#[test]
fn what_a_full_disk_left_visible_is_durable_once_there_is_space() {
    let store = MemoryStore::new();
    store.fail_nth(1, InjectedFault::Full, FaultPlace::BeforeSync);
    assert!(store.commit(&accepted(1)).is_err());
    // Nobody commits it again: its engine has given it up.
    store.reopen().unwrap();
    assert_eq!(store.active().unwrap(), [run(1)]);
    store.power_cut(0).unwrap();
    assert_eq!(store.active().unwrap(), [run(1)]);
}

#[test]
fn after_any_other_failure_nothing_is_written_until_a_new_start() {
    let store = MemoryStore::new();
    store.commit(&accepted(1)).unwrap();
    store.fail_nth(2, InjectedFault::Broken, FaultPlace::BeforeSync);
    store.commit(&accepted(2)).unwrap();
    assert!(matches!(
        store.commit(&accepted(3)),
        Err(StoreError::Broken { .. })
    ));
    assert!(matches!(
        store.commit(&accepted(4)),
        Err(StoreError::Broken { .. })
    ));
    assert!(matches!(store.reopen(), Err(StoreError::Broken { .. })));
    assert!(matches!(store.next_fence(), Err(StoreError::Broken { .. })));
    store.restart().unwrap();
    let applied = [run(1), run(2), run(3)];
    assert_eq!(
        store.active().unwrap(),
        applied,
        "what was not answered may be there"
    );
    store.commit(&accepted(4)).unwrap();
}

#[test]
fn a_power_cut_takes_what_was_not_synced_and_nothing_else() {
    for kept in 0..=3 {
        let store = MemoryStore::new();
        store.commit(&accepted(1)).unwrap();
        store.commit_lazily(&closed(1)).unwrap();
        store.commit_lazily(&accepted(2)).unwrap();
        store.power_cut(kept).unwrap();
        let active = match kept {
            0 => vec![run(1)],
            1 => vec![],
            _ => vec![run(2)],
        };
        assert_eq!(store.active().unwrap(), active, "{kept}");
        assert_eq!(
            store.journal(run(2)).unwrap().len(),
            if kept >= 2 { 2 } else { 0 }
        );
        let newest = if kept >= 2 { run(2) } else { run(1) };
        assert_eq!(store.newest().unwrap(), Some(newest));
    }
}

#[test]
fn a_failed_search_index_is_not_kept_over_a_power_cut() {
    let store = MemoryStore::new();
    store.commit(&accepted(1)).unwrap();
    assert_eq!(store.find(&run(1).short(), 2).unwrap(), [run(1)]);
    store.commit_lazily(&accepted(2)).unwrap();
    assert_eq!(store.find(&run(2).short(), 2).unwrap(), [run(2)]);
    store.power_cut(0).unwrap();
    assert_eq!(store.find(&run(2).short(), 2).unwrap(), []);
}

#[test]
fn a_payload_is_there_before_a_record_names_it() {
    let store = MemoryStore::new();
    let large = spec(1, 100_000);
    // The engine ends right after the records have become durable.
    store.fail_nth(1, InjectedFault::Broken, FaultPlace::AfterSync);
    let written = store.commit(&batch(vec![Write::Spec(Arc::new(large.clone()))]));
    assert!(matches!(written, Err(StoreError::Broken { .. })));
    store.restart().unwrap();
    assert_eq!(store.spec(run(1)).unwrap(), Some(large));
}
