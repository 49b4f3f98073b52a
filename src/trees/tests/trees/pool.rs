//! Trees are taken by one at a time, found again and removed.

use std::fs;

use workerctl_trees::{Owner, SweepLimits, TreeError};

use crate::rig::Rig;

/// Processes that could not be ended may still write to it.
#[test]
fn a_retired_tree_is_taken_by_no_later_run_and_swept_like_others() {
    let rig = Rig::new();
    let mut tree = rig.take("a");
    tree.retire().unwrap();
    assert!(tree.is_retired());
    drop(tree);
    assert_eq!(rig.take("a").number(), 2);
    assert_eq!(rig.take("b").number(), 3);
    let all = SweepLimits {
        idle_s: 0,
        max: 0,
        min_free: 0,
    };
    let removed = rig.trees().sweep(&all, i64::MAX).unwrap();
    assert_eq!(removed, [1, 2, 3]);
    assert_eq!(rig.take("a").number(), 1);
}

#[test]
fn retiring_an_owner_retires_its_trees_that_no_run_uses() {
    let rig = Rig::new();
    let (first, second, other) = (rig.take("a"), rig.take("a"), rig.take("b"));
    drop((second, other));
    let repository = rig.repo().join(".git");
    let owner = Owner {
        worker: "a",
        repository: &repository,
        name: "repo",
        rights: "",
    };
    rig.trees().retire(&owner).unwrap();
    assert_eq!(rig.take("a").number(), 4);
    assert_eq!(rig.take("b").number(), 3);
    drop(first);
    assert_eq!(rig.take("a").number(), 4);
}

#[test]
fn a_worker_gets_its_own_tree_again_and_never_one_that_is_held() {
    let rig = Rig::new();
    let first = rig.take("a");
    let second = rig.take("a");
    assert_ne!(first.number(), second.number());
    drop(second);
    assert_eq!(rig.take("b").number(), 3);
    assert_eq!(rig.take("a").number(), 2);
    let repository = rig.repo().join(".git");
    let owner = |worker| Owner {
        worker,
        repository: &repository,
        name: "repo",
        rights: "",
    };
    assert!(matches!(
        rig.trees().retake(1, &owner("a")),
        Err(TreeError::InUse(_))
    ));
    assert!(matches!(
        rig.trees().retake(1, &owner("b")),
        Err(TreeError::OtherOwner { .. })
    ));
    assert!(rig.trees().retake(9, &owner("a")).unwrap().is_none());
    let listed = rig.trees().list().unwrap();
    let held: Vec<bool> = listed.iter().map(|info| info.in_use).collect();
    assert_eq!(held, [true, false, false]);
    // What a killed engine was starting may hold it for a moment.
    let (trees, begun) = (rig.trees(), std::sync::Barrier::new(2));
    let retaken = std::thread::scope(|scope| {
        scope.spawn(|| {
            begun.wait();
            drop(first);
        });
        begun.wait();
        trees.retake(1, &owner("a")).unwrap().unwrap().number()
    });
    assert_eq!(retaken, 1);
}

#[test]
fn a_worker_gets_its_tree_again_while_processes_are_started() {
    let rig = Rig::new();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let numbers: std::collections::BTreeSet<u32> = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                std::process::Command::new("true").status().unwrap();
            }
        });
        let taken = (0..2_000).map(|_| rig.take("a").number()).collect();
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        taken
    });
    assert_eq!(numbers.into_iter().collect::<Vec<_>>(), [1]);
}

#[test]
fn idle_and_surplus_trees_go_and_held_ones_stay() {
    let rig = Rig::new();
    let mut held = rig.take("a");
    rig.equal(&mut held);
    for worker in ["b", "c", "d"] {
        rig.equal(&mut rig.take(worker));
    }
    let listed = rig.trees().list().unwrap();
    assert_eq!(listed[0].files, 15);
    let now = listed[0].last_used_s;
    let limits = |idle_s, max| SweepLimits {
        idle_s,
        max,
        min_free: 0,
    };
    assert_eq!(rig.trees().sweep(&limits(1000, 9), now).unwrap().len(), 0);
    assert_eq!(rig.trees().sweep(&limits(1000, 2), now).unwrap().len(), 2);
    assert_eq!(
        rig.trees()
            .sweep(&limits(1000, 9), now + 2000)
            .unwrap()
            .len(),
        1
    );
    assert_eq!(rig.trees().list().unwrap().len(), 1);
    rig.equal(&mut held);
    rig.assert_equal(&held);
}

#[test]
fn a_place_inside_a_work_tree_is_refused() {
    let rig = Rig::new();
    let repository = rig.repo().join(".git");
    let owner = Owner {
        worker: "w",
        repository: &repository,
        name: "repo",
        rights: "",
    };
    let inside = workerctl_trees::Trees::at(&rig.repo().join("state"));
    assert!(matches!(
        inside.take(&owner),
        Err(TreeError::InsideWorkTree { .. })
    ));
    assert!(!fs::exists(rig.repo().join("state")).unwrap());
}
