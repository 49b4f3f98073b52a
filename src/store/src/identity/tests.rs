use std::fs;

use super::*;

/// A workspace and places for stores.
struct Bed {
    _dir: xtest::TempDir,
    root: PathBuf,
}

impl Bed {
    fn new() -> Bed {
        let dir = xtest::tempdir();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir(root.join("ws")).unwrap();
        Bed { _dir: dir, root }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// What stands for a store: its database.
    fn store(&self, state: &str) -> PathBuf {
        fs::create_dir_all(self.at(state).join("store/db")).unwrap();
        self.at(state)
    }

    fn code(&self, state: &str) -> Option<String> {
        let checked = check(&self.at("ws"), &self.at(state));
        checked.err().map(|refused| refused.code)
    }

    fn settle(&self, state: &str) {
        settle(&self.at("ws"), &self.at(state)).unwrap();
    }
}

#[test]
fn a_workspace_that_had_a_store_misses_it() {
    let bed = Bed::new();
    assert_eq!(bed.code("a"), None);
    let a = bed.store("a");
    bed.settle("a");
    bed.settle("a");
    assert_eq!(
        (bed.code("a"), bed.code("b").as_deref()),
        (None, Some("store_missing"))
    );
    let told = check(&bed.at("ws"), &bed.at("b")).unwrap_err();
    assert!(
        told.hints[0].contains(&format!("--state-dir {}", a.display())),
        "{told:?}"
    );
    bed.store("b");
    assert_eq!(bed.code("b").as_deref(), Some("store_other"));
    assert!(settle(&bed.at("ws"), &bed.at("b")).is_err());
    assert_eq!(id_of(&bed.at("b/store")), None, "nothing was written");
    fs::rename(&a, bed.at("moved")).unwrap();
    assert_eq!(bed.code("a").as_deref(), Some("store_missing"));
    bed.settle("moved");
    let told = check(&bed.at("ws"), &a).unwrap_err();
    assert!(told.hints[0].contains("/moved"), "{told:?}");
    for note in ["", "{", "[]"] {
        fs::write(bed.at("ws/.workerctl/store"), note).unwrap();
        assert_eq!(bed.code("a").as_deref(), Some("store_missing"), "{note:?}");
    }
    bed.settle("moved");
    assert_eq!(bed.code("b").as_deref(), Some("store_other"));
}

#[test]
fn a_store_of_an_earlier_version_gets_an_id_and_a_backup_of_it_the_same() {
    let bed = Bed::new();
    let a = bed.store("a");
    bed.settle("a");
    let id = id_of(&a.join("store")).unwrap();
    fs::remove_dir_all(&a).unwrap();
    bed.store("a");
    bed.settle("a");
    assert_eq!(id_of(&a.join("store")), Some(id));
}

#[test]
fn whoever_is_killed_between_two_writes_leaves_a_workspace_that_goes_on() {
    // The store has its id, and the workspace does not know it yet.
    let bed = Bed::new();
    write_id(&bed.store("a").join("store"), &fresh().unwrap()).unwrap();
    bed.settle("a");
    assert_eq!(bed.code("b").as_deref(), Some("store_missing"));
    // On request: noted, and not made; noted and made, without its id.
    fs::remove_dir_all(bed.at("a")).unwrap();
    announce(&bed.at("ws"), &bed.at("b")).unwrap();
    assert_eq!(bed.code("b").as_deref(), Some("store_missing"));
    announce(&bed.at("ws"), &bed.at("b")).unwrap();
    bed.store("b");
    assert_eq!(bed.code("b"), None);
    bed.settle("b");
    assert_eq!(
        announce(&bed.at("ws"), &bed.at("b")).unwrap_err().code,
        "store_exists"
    );
    // Rebuilt, and not noted: it is rebuilt once more.
    write_id(&bed.at("b/store"), &fresh().unwrap()).unwrap();
    assert_eq!(bed.code("b").as_deref(), Some("store_other"));
    claim(&bed.at("ws"), &bed.at("b")).unwrap();
    assert_eq!(bed.code("b"), None);
}

#[test]
fn a_copy_begins_anew_while_its_original_is_there_and_a_moved_workspace_does_not() {
    let bed = Bed::new();
    bed.store("a");
    bed.settle("a");
    let copy = bed.at("copy");
    fs::create_dir_all(copy.join(WORKSPACE_FOLDER)).unwrap();
    fs::copy(bed.at("ws/.workerctl/store"), copy.join(".workerctl/store")).unwrap();
    assert_eq!(check(&copy, &bed.at("of-copy")), Ok(()));
    fs::remove_dir_all(bed.at("ws")).unwrap();
    let moved = check(&copy, &bed.at("of-copy")).unwrap_err();
    assert_eq!(moved.code, "store_missing");
}
