//! Processes of an engine that has died. The tests run alone, because what other tests end
//! meanwhile would include these orphans.

use std::process::{Child, Stdio};

use super::*;

/// An engine to be killed: this test binary, running `text` for the run in the environment.
struct Engine {
    process: Child,
    owner: Owner,
    live: PathBuf,
    _dir: xtest::TempDir,
}

impl Engine {
    fn start(text: &str) -> Self {
        let dir = xtest::tempdir();
        let live = dir.path().join("live");
        let owner = Owner {
            run: format!("orphan-{}", unique()),
            attempt: 2,
        };
        let process = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "tests::orphans::engine_alone", "--ignored"])
            .env("TEST_RUN", &owner.run)
            .env("TEST_LIVE", &live)
            .env("TEST_TEXT", text)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            process,
            owner,
            live,
            _dir: dir,
        }
    }

    /// Ends the engine as a crash does, once it has left a record; gives the record.
    fn crash(&mut self) -> LiveRecord {
        let until = Instant::now() + LONG;
        loop {
            let record = LiveRecord::read(&self.live).unwrap();
            assert!(Instant::now() < until, "no record was written");
            if let Some(record) = record {
                self.process.kill().unwrap();
                self.process.wait().unwrap();
                return record;
            }
        }
    }
}

/// A test that fails leaves nothing running either.
impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = find_and_end_orphans(&[], &self.owner, Duration::ZERO);
    }
}

#[test]
#[ignore = "the engine that other tests kill"]
fn engine_alone() {
    struct Records(PathBuf);
    impl OutputSink for Records {
        fn spawned(&mut self, child: &Spawned) {
            child.live_record().unwrap().write(&self.0).unwrap();
        }
        fn line(&mut self, _: Stream, _: &[u8], _: bool) {}
    }
    let Ok(text) = std::env::var("TEST_TEXT") else {
        return;
    };
    let owner = Owner {
        run: std::env::var("TEST_RUN").unwrap(),
        attempt: 2,
    };
    let command = owned_argv(&["/bin/sh", "-c", &text], owner);
    let live = PathBuf::from(std::env::var_os("TEST_LIVE").unwrap());
    run(&command, &never(), &mut Records(live)).unwrap();
}

/// Where tests share one process, that process adopts orphans for its other tests; then ours have
/// to come to this one. Where each has a process of its own, they go to the init process, as they
/// do in earnest.
fn keep_orphans_from_other_tests() {
    if std::env::var_os("NEXTEST").is_none() {
        become_subreaper().unwrap();
    }
}

const SHORT: Duration = Duration::from_millis(100);

/// Texts, and how many long sleeps are to be seen in each.
const TREES: [(&str, usize); 5] = [
    ("S & S & wait", 2),
    ("setsid S & ( setsid S & ) ; S", 3),
    ("trap '' TERM; S & while :; do S ; done", 2),
    ("S & env -i setsid S & env -i setsid -f S ; wait", 3),
    ("setsid sh -c 'kill -STOP $$; S ' & S & S", 2),
];

#[test]
fn a_crashed_engines_processes_are_found_by_the_record() {
    alone(
        "orphans::a_crashed_engines_processes_are_found_by_the_record_alone",
        None,
    );
}

#[test]
#[ignore = "run by `a_crashed_engines_processes_are_found_by_the_record` in a process of its own"]
fn a_crashed_engines_processes_are_found_by_the_record_alone() {
    keep_orphans_from_other_tests();
    for (text, count) in TREES {
        let sleeper = Sleeper::new();
        let mut engine = Engine::start(&sleeper.text(text));
        sleeper.await_count(count);
        let record = engine.crash();
        let ended = find_and_end_orphans(&[&record], &engine.owner, SHORT).unwrap();
        assert!(ended.ended as usize >= count - 1, "{text}: {ended:?}");
        assert_eq!(sleeper.alive(), [0; 0], "{text}, {record:?}, {ended:?}");
    }
}

#[test]
fn without_a_record_the_marker_is_enough() {
    alone("orphans::without_a_record_the_marker_is_enough_alone", None);
}

#[test]
#[ignore = "run by `without_a_record_the_marker_is_enough` in a process of its own"]
fn without_a_record_the_marker_is_enough_alone() {
    keep_orphans_from_other_tests();
    let sleeper = Sleeper::new();
    let mut engine = Engine::start(&sleeper.text("S & setsid S & trap '' TERM; ( S & ) ; wait"));
    sleeper.await_count(3);
    engine.crash();
    let other = Owner {
        run: "another-run".to_owned(),
        attempt: 2,
    };
    assert_eq!(find_and_end_orphans(&[], &other, SHORT).unwrap().ended, 0);
    assert_eq!(sleeper.asleep(), 3);
    find_and_end_orphans(&[], &engine.owner, SHORT).unwrap();
    assert_eq!(sleeper.alive(), [0; 0]);
}

#[test]
fn a_record_of_another_boot_or_process_names_nobody() {
    let sleeper = Sleeper::new();
    let mut bystander = std::process::Command::new("sleep")
        .arg(&sleeper.argument)
        .spawn()
        .unwrap();
    let owner = Owner {
        run: format!("nobody-{}", unique()),
        attempt: 1,
    };
    let record = LiveRecord::of(bystander.id(), &owner, None).unwrap();
    let other_boot = LiveRecord {
        boot_id: "other".to_owned(),
        ..record.clone()
    };
    let other_start = LiveRecord {
        start_time: record.start_time + 1,
        ..record
    };
    for wrong in [other_boot, other_start] {
        let ended = find_and_end_orphans(&[&wrong], &owner, SHORT).unwrap();
        assert_eq!(ended.ended, 0);
    }
    assert_eq!(sleeper.asleep(), 1);
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

#[test]
fn nothing_to_end_is_no_error() {
    let owner = Owner {
        run: format!("nothing-{}", unique()),
        attempt: 1,
    };
    assert_eq!(
        find_and_end_orphans(&[], &owner, LONG).unwrap(),
        OrphansEnded { ended: 0 }
    );
}
