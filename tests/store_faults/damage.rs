//! Damage on disk: one bit flipped, a file cut off, a page of zeros.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::child::{batch_of, check, options};
use crate::rig::{Dice, rounds};
use crate::sample_runs::{batch, run};
use crate::store::{SledStore, Store, StoreError, Write};

const RUNS: u64 = 60;

/// Every file of the store with its content.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if !path.ends_with("reserve") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn copy(from: &Path, to: &Path) {
    for file in files(from) {
        let target = to.join(file.strip_prefix(from).unwrap());
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(&file, target).unwrap();
    }
    fs::create_dir_all(to.join("db/blobs")).unwrap();
}

/// Damages one file, the database most of the time; says what was done.
fn damage(directory: &Path, dice: &mut Dice) -> String {
    let all = files(directory);
    let database = directory.join("db/db");
    let path = match dice.below(4) {
        0 => &all[usize::try_from(dice.below(all.len() as u64)).unwrap()],
        _ => &database,
    };
    let mut bytes = fs::read(path).unwrap();
    // Somewhere, or where something stands.
    let used: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] != 0).collect();
    let anywhere = used.is_empty() || dice.below(2) == 0;
    let places = if anywhere { bytes.len() } else { used.len() };
    let place = usize::try_from(dice.below(places as u64)).unwrap();
    let at = if anywhere { place } else { used[place] };
    let kind = match dice.below(3) {
        0 => {
            bytes[at] ^= 1 << dice.below(8);
            "flipped"
        }
        1 => {
            bytes.truncate(at);
            "cut"
        }
        _ => {
            let page = at / 4_096 * 4_096;
            let end = (page + 4_096).min(bytes.len());
            bytes[page..end].fill(0);
            "zeroed"
        }
    };
    fs::write(path, bytes).unwrap();
    format!("{} {kind} at {at}", path.display())
}

/// What a damaged store answers: everything right, or a named error for what it cannot tell.
fn judge(directory: &Path) -> Result<&'static str, String> {
    let store = match SledStore::open(directory, options()) {
        Ok(store) => store,
        Err(StoreError::Corrupt { .. }) => return Ok("refused"),
        Err(StoreError::Newer { .. }) => return Ok("newer"),
        Err(other) => return Err(format!("open: {other:?}")),
    };
    let sound = SledStoreReads(&store).all()?;
    Ok(if sound { "sound" } else { "named" })
}

struct SledStoreReads<'a>(&'a SledStore);

impl SledStoreReads<'_> {
    /// Whether nothing is damaged; an error when something is wrong and not said.
    fn all(&self) -> Result<bool, String> {
        let mut sound = true;
        for n in 1..=RUNS {
            let results = [
                self.0.spec(run(n)).map(|spec| spec.is_some()),
                self.0.journal(run(n)).map(|journal| journal.len() == 3),
                self.0.summary(run(n)).map(|line| line.is_some()),
            ];
            for (what, result) in ["spec", "journal", "line"].iter().zip(results) {
                match result {
                    Ok(true) => {}
                    Ok(false) => return Err(format!("the {what} of run {n} is missing")),
                    Err(StoreError::Corrupt { .. }) => sound = false,
                    Err(other) => return Err(format!("{other:?}")),
                }
            }
        }
        match self.0.active() {
            Ok(active) if active.is_empty() => {}
            Ok(active) => return Err(format!("{} runs are active again", active.len())),
            Err(StoreError::Corrupt { .. }) => sound = false,
            Err(other) => return Err(format!("{other:?}")),
        }
        if sound {
            check(self.0, &(1..=RUNS).collect::<BTreeSet<u64>>(), RUNS + 1);
        }
        Ok(sound)
    }
}

#[test]
fn damage_is_told_and_never_answered_with_something_else() {
    let dir = xtest::tempdir();
    let whole = dir.path().join("whole");
    for part in 0..3 {
        let store = SledStore::open(&whole, options()).unwrap();
        for n in 1..=RUNS / 3 {
            let n = n + part * RUNS / 3;
            store.commit(&batch_of(n)).unwrap();
            store.commit(&batch(vec![Write::Closed(run(n))])).unwrap();
        }
    }
    let mut dice = Dice(5);
    let mut ends: BTreeMap<&str, u64> = BTreeMap::new();
    let mut wrong = Vec::new();
    for round in 0..rounds(100) {
        let copied = dir.path().join("copied");
        copy(&whole, &copied);
        let what = damage(&copied, &mut dice);
        match judge(&copied) {
            Ok(end) => *ends.entry(end).or_default() += 1,
            Err(problem) => wrong.push(format!("round {round}: {what}: {problem}")),
        }
        fs::remove_dir_all(&copied).unwrap();
    }
    println!("{ends:?}");
    assert_eq!(wrong, Vec::<String>::new());
}
