//! A store with damaged records of schedules: the daemon starts all the same, loses neither a pause nor a
//! cursor, and says what is damaged until somebody has looked.

use crate::workspace;

use serde_json::Value;
use workspace::daemon::Daemon;
use workspace::ledger::{millis, rows, view, wait_for_rows, without_gap};
use workspace::{Workspace, eventually};

const SKILLS: &str = "
  - id: tick
    description: d
    run: 'true'
    schedule: {every: 1s, overlap: allow_all, catch_up: {mode: all, window: 1h}}
";

const ID: &str = "w/tick";

/// A workspace that no daemon serves any more, and the rows that the last one left.
fn with_some_rows() -> (Workspace, Vec<Value>) {
    let workspace = Workspace::with_skills(SKILLS);
    let daemon = Daemon::start(&workspace);
    wait_for_rows(&workspace, ID, 3);
    workspace.wait_until_idle();
    daemon.stop();
    let rows = rows(&workspace, ID);
    (workspace, rows)
}

/// Turns one bit of each record that `which` names, given its key. No engine runs.
fn damage(workspace: &Workspace, which: impl Fn(&[u8]) -> bool) -> usize {
    let path = workspace.state().join("store/db");
    let database = sled::Config::default().path(path).open().unwrap();
    let records: Vec<_> = database.iter().map(Result::unwrap).collect();
    let mut count = 0;
    for (key, value) in records.into_iter().filter(|(key, _)| which(key)) {
        let mut bytes = value.to_vec();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        database.insert(key, bytes).unwrap();
        count += 1;
    }
    database.flush().unwrap();
    count
}

fn state_key() -> Vec<u8> {
    [b"s".as_slice(), ID.as_bytes()].concat()
}

#[test]
fn a_damaged_state_goes_on_behind_its_newest_row() {
    let (workspace, before) = with_some_rows();
    assert_eq!(damage(&workspace, |key| key == state_key()), 1);
    // Who looks without a daemon is told, and changes nothing.
    assert!(view(&workspace, ID)["restored"]["reason"].is_string());
    workspace.run(&["store", "verify"]).expect_code(1);
    let daemon = Daemon::start(&workspace);
    assert!(
        daemon.log().contains("its state is damaged"),
        "{}",
        daemon.log()
    );
    wait_for_rows(&workspace, ID, 3);
    let after = rows(&workspace, ID);
    without_gap(&after, 1_000);
    assert_eq!(after[..before.len()], before);
    let shown = view(&workspace, ID);
    let reason = shown["restored"]["reason"].as_str().unwrap();
    assert!(
        reason.contains("checksum") && reason.contains("not paused"),
        "{reason}"
    );
    assert!(shown["actions"].as_u64().unwrap() > 3, "{shown}");
    assert!(shown["succeeded_at"].is_string());
    let kept = std::fs::read_dir(workspace.state().join("store/damaged")).unwrap();
    assert_eq!(kept.count(), 1);
    let doctor = workspace.run(&["doctor"]).expect_code(1);
    assert!(doctor.stdout.contains("was damaged"), "{doctor:?}");
    // A person has looked.
    workspace.run(&["schedule", "resume", ID]).expect_code(0);
    assert!(view(&workspace, ID)["restored"].is_null());
    workspace.run(&["doctor"]).expect_code(0);
    daemon.stop();
    workspace.run(&["store", "verify"]).expect_code(0);
}

#[test]
fn a_pause_outlives_the_damage_of_its_state() {
    let workspace = Workspace::with_skills(SKILLS);
    let daemon = Daemon::start(&workspace);
    wait_for_rows(&workspace, ID, 1);
    let pause = ["schedule", "pause", ID, "--reason", "a holiday"];
    workspace.run(&pause).expect_code(0);
    eventually("a row that says so", || {
        let rows = rows(&workspace, ID);
        (rows.last().unwrap()["status"] == "paused").then_some(())
    });
    daemon.stop();
    damage(&workspace, |key| key == state_key());
    let daemon = Daemon::start(&workspace);
    let shown = view(&workspace, ID);
    assert_eq!(shown["paused"]["reason"], "a holiday");
    let runs = shown["actions"].as_u64();
    let end = millis(rows(&workspace, ID).last().unwrap(), "to") + 2_000;
    eventually("the pause goes on", || {
        (millis(rows(&workspace, ID).last().unwrap(), "to") > end).then_some(())
    });
    assert_eq!(view(&workspace, ID)["actions"].as_u64(), runs);
    without_gap(&rows(&workspace, ID), 1_000);
    daemon.stop();
}

#[test]
fn a_damaged_row_stops_nothing_and_is_told() {
    let (workspace, before) = with_some_rows();
    let first = millis(&before[0], "from").cast_unsigned() ^ (1 << 63);
    let row_key = [b"t".as_slice(), ID.as_bytes(), &[0], &first.to_be_bytes()].concat();
    assert_eq!(damage(&workspace, |key| key == row_key), 1);
    workspace.run(&["doctor"]).expect_code(1);
    let daemon = Daemon::start(&workspace);
    wait_for_rows(&workspace, ID, 2);
    let after = rows(&workspace, ID);
    assert_eq!(after[0]["unreadable"], true);
    assert_eq!(after[1..before.len()], before[1..]);
    let doctor = workspace.run(&["doctor"]).expect_code(1);
    assert!(
        doctor.stdout.contains("1 row of the ledger cannot be read"),
        "{doctor:?}"
    );
    daemon.stop();
    // All rows and the state at once: it begins behind the last time that their keys tell.
    let all = damage(&workspace, |key| {
        let is_row = key.starts_with(b"tw/tick\0") && key != row_key;
        is_row || key == state_key()
    });
    assert!(all > 4, "{all}");
    let daemon = Daemon::start(&workspace);
    wait_for_rows(&workspace, ID, 2);
    let rows = rows(&workspace, ID);
    let next = rows
        .iter()
        .position(|row| row["unreadable"] == false)
        .unwrap();
    let pause = millis(&rows[next], "from") - millis(&rows[next - 1], "from");
    assert_eq!(pause, 1_000, "{rows:?}");
    daemon.stop();
}
