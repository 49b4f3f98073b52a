//! Looking after a store: info, verify, moving aside, building again.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::sample_runs::{
    accepted, admitted, at, batch, entry, plan, recorded, run, spec, submitted, summary,
};
use crate::machine::{Admission, CancelKind, Event};
use crate::maintenance::{info, quarantine, verify};
use crate::model::outcome::{Outcome, Phase};
use crate::rebuild::{REBUILT, RestoredRun, ThreadSource, rebuild};
use crate::{OpenOptions, SledStore, Store, StoreError, Write};

fn small() -> OpenOptions {
    OpenOptions {
        reserve_bytes: 65_536,
        ..OpenOptions::default()
    }
}

fn open(dir: &Path) -> Result<SledStore, StoreError> {
    SledStore::open(dir, small())
}

/// A store with a finished run, an active one and a payload in a file.
fn filled(dir: &Path) {
    let store = open(dir).unwrap();
    store.commit(&accepted(1)).unwrap();
    let end = vec![
        Write::Finished(Box::new(summary(1))),
        Write::Closed(run(1)),
        Write::Spec(Arc::new(spec(2, 9_000))),
        Write::Entries {
            run: run(2),
            entries: vec![submitted(2)],
        },
        Write::Key {
            key: "k".to_owned(),
            run: run(2),
            at: at(2),
        },
    ];
    store.commit(&batch(end)).unwrap();
}

fn payload_file(dir: &Path) -> PathBuf {
    let of_run = dir.join("payload").join(run(2).to_string());
    fs::read_dir(of_run)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path()
}

#[test]
fn a_sound_store_is_counted_and_left_as_it_is() {
    let dir = xtest::tempdir();
    filled(dir.path());
    let before = fs::read(dir.path().join("db/db")).unwrap();
    let report = verify(dir.path()).unwrap();
    assert_eq!(report.fault_count, 0, "{report:?}");
    let counts = (report.commits, report.runs, report.active, report.finished);
    assert_eq!(counts, (2, 2, 1, 1));
    let counts = (
        report.events,
        report.keys,
        report.payload_files,
        report.orphan_count,
    );
    assert_eq!(counts, (3, 1, 1, 0));
    assert_eq!(fs::read(dir.path().join("db/db")).unwrap(), before);
    assert!(!dir.path().join("db.verify").exists());
    let found = info(dir.path()).unwrap();
    assert_eq!(
        (found.version, found.commits, found.in_use),
        (Some(1), Some(2), false)
    );
    assert_eq!((found.payload_files, found.reserve_bytes), (1, 65_536));
}

#[test]
fn an_engine_keeps_others_out_and_info_still_answers() {
    let dir = xtest::tempdir();
    let store = open(dir.path()).unwrap();
    assert!(info(dir.path()).unwrap().in_use);
    assert!(matches!(verify(dir.path()), Err(StoreError::Busy { .. })));
    assert!(matches!(
        quarantine(dir.path(), at(0)),
        Err(StoreError::Busy { .. })
    ));
    assert!(matches!(open(dir.path()), Err(StoreError::Busy { .. })));
    drop(store);
    assert!(!info(dir.path()).unwrap().in_use);
    let nowhere = info(&dir.path().join("none")).unwrap();
    assert_eq!((nowhere.database_bytes, nowhere.in_use), (None, false));
}

#[test]
fn damage_of_one_payload_is_told_and_stops_nothing_else() {
    let dir = xtest::tempdir();
    filled(dir.path());
    fs::write(payload_file(dir.path()), "{}").unwrap();
    fs::write(
        dir.path()
            .join("payload")
            .join(run(2).to_string())
            .join("x.json"),
        "",
    )
    .unwrap();
    let report = verify(dir.path()).unwrap();
    assert_eq!(report.fault_count, 1, "{report:?}");
    assert_eq!(report.faults[0].run, Some(run(2)));
    assert_eq!(report.orphan_count, 1);
    let store = open(dir.path()).unwrap();
    assert!(matches!(
        store.spec(run(2)),
        Err(StoreError::Corrupt { .. })
    ));
    assert_eq!(store.spec(run(1)).unwrap(), Some(spec(1, 40)));
    store.commit(&accepted(3)).unwrap();
}

#[test]
fn lost_commits_are_found_out() {
    let dir = xtest::tempdir();
    filled(dir.path());
    let kept = dir.path().join("kept");
    fs::create_dir_all(kept.join("blobs")).unwrap();
    for file in fs::read_dir(dir.path().join("db")).unwrap() {
        let file = file.unwrap();
        if file.file_type().unwrap().is_file() {
            fs::copy(file.path(), kept.join(file.file_name())).unwrap();
        }
    }
    open(dir.path()).unwrap().commit(&accepted(3)).unwrap();
    fs::remove_dir_all(dir.path().join("db")).unwrap();
    fs::rename(kept, dir.path().join("db")).unwrap();
    let error = open(dir.path()).unwrap_err().to_string();
    assert!(
        error.contains("3 commits were synced to disk, but only 2 are present"),
        "{error}"
    );
    let report = verify(dir.path()).unwrap();
    assert_eq!(report.fault_count, 1, "{report:?}");
}

#[test]
fn a_store_that_is_gone_is_not_replaced_by_an_empty_one() {
    let dir = xtest::tempdir();
    filled(dir.path());
    fs::remove_dir_all(dir.path().join("db")).unwrap();
    for _ in 0..2 {
        let error = open(dir.path()).unwrap_err();
        assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
    }
    let aside = quarantine(dir.path(), at(0)).unwrap();
    assert!(aside.join("payload").is_dir() && aside.join("witness").is_file());
    let error = open(dir.path()).unwrap_err().to_string();
    assert!(error.contains("has not been rebuilt"), "{error}");
}

#[test]
fn a_newer_store_is_left_alone() {
    let dir = xtest::tempdir();
    filled(dir.path());
    let witness = dir.path().join("witness");
    fs::write(&witness, "workerctl-store 2 in other words").unwrap();
    let before = fs::read(dir.path().join("db/db")).unwrap();
    for error in [
        open(dir.path()).unwrap_err(),
        verify(dir.path()).unwrap_err(),
    ] {
        assert!(
            matches!(error, StoreError::Newer { found: 2, .. }),
            "{error}"
        );
    }
    assert_eq!(fs::read(dir.path().join("db/db")).unwrap(), before);
    assert_eq!(info(dir.path()).unwrap().version, Some(2));
}

#[test]
fn a_lost_witness_is_written_anew() {
    let dir = xtest::tempdir();
    filled(dir.path());
    fs::remove_file(dir.path().join("witness")).unwrap();
    assert_ne!(verify(dir.path()).unwrap().fault_count, 0);
    drop(open(dir.path()).unwrap());
    assert_eq!(info(dir.path()).unwrap().commits, Some(2));
}

#[test]
fn an_interrupted_creation_is_begun_again() {
    let dir = xtest::tempdir();
    fs::create_dir(dir.path().join("db.new")).unwrap();
    fs::write(dir.path().join("db.new/conf"), "half").unwrap();
    open(dir.path()).unwrap().commit(&accepted(1)).unwrap();
    assert!(!dir.path().join("db.new").exists());
    let missing = OpenOptions {
        create: false,
        ..small()
    };
    let error = SledStore::open(&dir.path().join("none"), missing).unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
    assert!(!dir.path().join("none").exists());
}

#[test]
fn a_snapshot_that_was_interrupted_does_not_close_the_store() {
    let dir = xtest::tempdir();
    filled(dir.path());
    let unfinished = dir.path().join("db/snap.FFFFFFFFFFFFFFFF.generating");
    for left in ["", "half of a snapshot"] {
        fs::write(&unfinished, left).unwrap();
        assert_eq!(verify(dir.path()).unwrap().fault_count, 0);
        let store = open(dir.path()).unwrap();
        assert_eq!(store.active().unwrap(), [run(2)]);
        assert!(!unfinished.exists());
    }
}

struct Threads(Vec<Result<RestoredRun, String>>);

impl ThreadSource for Threads {
    fn next_run(&mut self) -> Option<Result<RestoredRun, String>> {
        self.0.pop()
    }
}

fn threads() -> Threads {
    let cancel = Event::CancelRequested {
        kind: CancelKind::Graceful,
        by: "ada".to_owned(),
    };
    let finished = RestoredRun {
        spec: Some(spec(1, 9_000)),
        entries: vec![submitted(1), entry(1, 1, cancel), entry(1, 2, Event::Saved)],
        summary: summary(1),
    };
    let admission = Admission {
        owner: "engine".to_owned(),
        fence: 41,
    };
    let mut waiting = summary(2);
    (waiting.phase, waiting.outcome, waiting.finished_at) = (Phase::Validating, None, None);
    let unfinished = RestoredRun {
        spec: Some(spec(2, 10)),
        entries: vec![submitted(2), entry(2, 1, Event::Admitted { admission })],
        summary: waiting,
    };
    let torn = RestoredRun {
        spec: None,
        entries: vec![admitted(3, 7), recorded(3, 8, 10)],
        summary: summary(3),
    };
    let unreadable = Err("`T-1.json`: not JSON".to_owned());
    Threads(vec![Ok(finished), Ok(unfinished), unreadable, Ok(torn)])
}

#[test]
fn a_damaged_store_is_moved_aside_and_built_again_from_threads() {
    let dir = xtest::tempdir();
    filled(dir.path());
    let refused = rebuild(dir.path(), small(), &mut threads()).unwrap_err();
    assert!(matches!(refused, StoreError::Refused { .. }), "{refused}");
    fs::write(dir.path().join("db/conf"), "not what sled wrote").unwrap();
    let error = open(dir.path()).unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
    quarantine(dir.path(), at(0)).unwrap();
    let report = rebuild(dir.path(), small(), &mut threads()).unwrap();
    assert_eq!((report.runs, report.problem_count), (3, 2), "{report:?}");
    assert_eq!(report.unfinished, [run(2)]);
    assert!(report.fence > 41);
    let until = report.vouches_until.unwrap();
    assert!(
        until < at(11) && at(11).millis() - until.millis() < 6_000,
        "{until}"
    );
    let store = open(dir.path()).unwrap();
    assert_eq!(store.active().unwrap(), [], "nothing is started again");
    let unknown = Outcome::Unknown {
        why: REBUILT.to_owned(),
    };
    assert_eq!(
        store.summary(run(2)).unwrap().unwrap().outcome,
        Some(unknown)
    );
    assert_eq!(store.spec(run(1)).unwrap(), Some(spec(1, 9_000)));
    assert_eq!(store.journal(run(3)).unwrap().len(), 2);
    assert_eq!(store.summary(run(3)).unwrap(), Some(summary(3)));
    assert!(store.next_fence().unwrap() > report.fence);
    store.commit(&accepted(9)).unwrap();
    drop(store);
    assert_eq!(info(dir.path()).unwrap().aside.len(), 1);
    assert_eq!(plan().hooks, 0);
}

#[test]
fn a_rebuild_that_fails_leaves_no_store() {
    struct Failing(PathBuf);
    impl ThreadSource for Failing {
        fn next_run(&mut self) -> Option<Result<RestoredRun, String>> {
            // The directory of payloads turns into a file under the feet of the builder.
            fs::remove_dir_all(&self.0).unwrap();
            fs::write(&self.0, "").unwrap();
            threads().next_run();
            Some(Ok(RestoredRun {
                spec: Some(spec(1, 9_000)),
                entries: vec![submitted(1)],
                summary: summary(1),
            }))
        }
    }
    let dir = xtest::tempdir();
    let payloads = dir.path().join("payload");
    let failed = rebuild(dir.path(), small(), &mut Failing(payloads.clone()));
    assert!(
        matches!(failed, Err(StoreError::Broken { .. })),
        "{failed:?}"
    );
    assert!(!dir.path().join("db").exists());
    fs::remove_file(payloads).unwrap();
    rebuild(dir.path(), small(), &mut threads()).unwrap();
}
