//! SIGKILL at any moment.

use std::collections::BTreeSet;

use crate::child::{Committer, check, options};
use crate::rig::{Dice, rounds};
use crate::store::{SledStore, Store};

#[test]
fn a_killed_engine_loses_nothing_that_it_acknowledged() {
    let dir = xtest::tempdir();
    let mut acknowledged = BTreeSet::new();
    let mut dice = Dice(11);
    let mut next = 1;
    for _ in 0..rounds(20) {
        let mut child = Committer::start(dir.path(), next, None, "commit", &[]);
        child.read_acknowledged(1 + dice.below(40), &mut acknowledged);
        child.process.kill().unwrap();
        child.read_acknowledged(u64::MAX, &mut acknowledged);
        child.process.wait().unwrap();
        let store = SledStore::open(dir.path(), options()).unwrap();
        next = check(&store, &acknowledged, next);
        store.next_fence().unwrap();
    }
    println!("{} commits acknowledged, none lost", acknowledged.len());
    let report = workerctl::store::maintenance::verify(dir.path()).unwrap();
    let unexpected = report
        .faults
        .iter()
        .find(|fault| !fault.reason.contains("event"));
    assert_eq!(unexpected, None);
}
