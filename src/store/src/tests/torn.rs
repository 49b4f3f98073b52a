//! A power cut in the midst of a batch, at any place of the file.

use std::fs;
use std::path::{Path, PathBuf};

use super::sample_runs::{accepted, at, run};
use crate::{OpenOptions, SledStore, Store, Write};

/// How many places of what the batch wrote are tried.
const CUTS: usize = 150;

fn open(directory: &Path) -> SledStore {
    let options = OpenOptions {
        reserve_bytes: 0,
        ..OpenOptions::default()
    };
    SledStore::open(directory, options).unwrap()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let place = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &place);
        } else {
            fs::copy(&path, &place).unwrap();
        }
    }
}

fn database(directory: &Path) -> PathBuf {
    directory.join("db/db")
}

#[test]
fn a_batch_that_was_cut_off_anywhere_is_there_whole_or_not_at_all() {
    let base = xtest::tempdir();
    let (kept, used) = (base.path().join("kept"), base.path().join("used"));
    let store = open(&used);
    store.commit(&accepted(1)).unwrap();
    copy(&used, &kept);
    let before = fs::read(database(&used)).unwrap();
    let mut second = accepted(2);
    let (key, run_of_key) = ("key".to_owned(), run(2));
    second.writes.push(Write::Key {
        key,
        run: run_of_key,
        at: at(2),
    });
    store.commit(&second).unwrap();
    let mut after = fs::read(database(&used)).unwrap();
    drop(store);
    after.resize(after.len().max(before.len()), 0);
    let differs = |place: &usize| before.get(*place) != after.get(*place);
    let begins = (0..after.len()).find(differs).unwrap();
    let ends = (0..after.len()).rfind(differs).unwrap() + 1;
    let mut found = [false; 2];
    for cut in 0..=CUTS {
        let cut = begins + (ends - begins) * cut / CUTS;
        fs::remove_dir_all(&used).unwrap();
        copy(&kept, &used);
        let rest = before.get(cut..).unwrap_or_default();
        fs::write(database(&used), [&after[..cut], rest].concat()).unwrap();
        let store = open(&used);
        let parts = [
            store.spec(run(2)).unwrap().is_some(),
            store.journal(run(2)).unwrap().len() == 2,
            store.active().unwrap().contains(&run(2)),
            store.key("key").unwrap().is_some(),
        ];
        assert!(
            parts.iter().all(|part| *part == parts[0]),
            "cut at {cut} of {begins}..{ends}: {parts:?}"
        );
        assert!(store.spec(run(1)).unwrap().is_some());
        found[usize::from(parts[0])] = true;
    }
    assert_eq!(found, [true; 2], "{begins}..{ends}");
}
