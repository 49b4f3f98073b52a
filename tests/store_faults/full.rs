//! A full disk.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::child::{batch_of, check};
use crate::rig::{run_tool, skip};
use crate::sample_runs::run;
use crate::store::{OpenOptions, SledStore, Store, StoreError};

/// A small file system; unmounted in the end.
struct Small(PathBuf);

impl Small {
    fn mount(directory: &Path, options: &str) -> Option<Small> {
        if !rustix::process::geteuid().is_root() {
            skip("mounting needs root");
            return None;
        }
        let mount = directory.to_str().unwrap();
        if !run_tool("mount", &["-t", "tmpfs", "-o", options, "tmpfs", mount]) {
            skip("no tmpfs can be mounted");
            return None;
        }
        Some(Small(directory.to_owned()))
    }

    /// Takes all space that is left.
    fn fill(&self) {
        let mut filler = File::options()
            .append(true)
            .create(true)
            .open(self.0.join("filler"))
            .unwrap();
        let block = [1; 4_096];
        while filler.write_all(&block).is_ok() {}
    }

    fn free(&self) {
        fs::remove_file(self.0.join("filler")).unwrap();
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        run_tool("umount", &[self.0.to_str().unwrap()]);
    }
}

#[test]
fn an_engine_goes_on_in_the_same_process_once_there_is_space() {
    let dir = xtest::tempdir();
    let Some(small) = Small::mount(dir.path(), "size=40m") else {
        return;
    };
    let options = OpenOptions {
        reserve_bytes: 8 << 20,
        ..OpenOptions::default()
    };
    let state = small.0.join("state");
    let store = SledStore::open(&state, options).unwrap();
    let mut acknowledged = BTreeSet::new();
    let mut n = 1;
    for round in 0..3 {
        small.fill();
        let mut reopened = 0;
        // Until the disk is full with nothing left to give back.
        loop {
            match store.commit(&batch_of(n)) {
                Ok(()) => {
                    acknowledged.insert(n);
                    n += 1;
                    continue;
                }
                Err(StoreError::Full { .. }) => {}
                Err(other) => panic!("round {round}, run {n}: {other:?}"),
            }
            assert_eq!(store.newest().unwrap().is_some(), n > 1, "reads go on");
            match store.reopen() {
                Ok(()) => reopened += 1,
                Err(StoreError::Full { .. }) => break,
                Err(other) => panic!("round {round}: {other:?}"),
            }
            assert!(reopened < 100, "it must fill up again");
            small.fill();
        }
        assert!(store.spec(run(1)).unwrap().is_some(), "reads go on");
        assert!(matches!(
            store.commit(&batch_of(n)),
            Err(StoreError::Full { .. })
        ));
        small.free();
        store.reopen().unwrap();
        store.commit(&batch_of(n)).unwrap();
        acknowledged.insert(n);
        n += 1;
        check(&store, &acknowledged, n);
    }
    drop(store);
    let store = SledStore::open(&state, options).unwrap();
    check(&store, &acknowledged, n);
    println!("{} commits acknowledged, none lost", acknowledged.len());
}

#[test]
fn without_free_inodes_the_store_says_full_and_goes_on_later() {
    let dir = xtest::tempdir();
    let Some(small) = Small::mount(dir.path(), "size=64m,nr_inodes=40") else {
        return;
    };
    let state = small.0.join("state");
    let store = SledStore::open(&state, OpenOptions::default()).unwrap();
    let mut taken = Vec::new();
    while let Ok(file) = File::create(small.0.join(format!("taken-{}", taken.len()))) {
        drop(file);
        taken.push(small.0.join(format!("taken-{}", taken.len())));
    }
    // Run 4 has a payload that needs a file.
    assert!(matches!(
        store.commit(&batch_of(4)),
        Err(StoreError::Full { .. })
    ));
    for path in taken {
        fs::remove_file(path).unwrap();
    }
    store.reopen().unwrap();
    store.commit(&batch_of(4)).unwrap();
    check(&store, &BTreeSet::from([4]), 5);
}
