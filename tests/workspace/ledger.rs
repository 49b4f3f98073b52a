//! What the program tells of schedules, and of what became of their slots.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use workerctl::model::Timestamp;

use super::{Workspace, eventually};

/// Every schedule, by its id.
pub(crate) fn views(workspace: &Workspace) -> BTreeMap<String, Value> {
    let listed = workspace.json(&["schedule", "list"]);
    let views = listed["schedules"].as_array().unwrap().iter();
    views
        .map(|view| (view["schedule"].as_str().unwrap().to_owned(), view.clone()))
        .collect()
}

/// One schedule.
pub(crate) fn view(workspace: &Workspace, schedule: &str) -> Value {
    views(workspace).remove(schedule).unwrap()
}

/// The rows of a schedule, oldest first.
pub(crate) fn rows(workspace: &Workspace, schedule: &str) -> Vec<Value> {
    let line = ["schedule", "slots", schedule, "-n", "10000"];
    let mut rows = workspace.json(&line)["slots"].as_array().unwrap().clone();
    rows.reverse();
    rows
}

/// The row number `count` of a schedule, once it is there.
pub(crate) fn row(workspace: &Workspace, schedule: &str, count: usize) -> Value {
    eventually("a row", || {
        rows(workspace, schedule).get(count - 1).cloned()
    })
}

/// Waits for so many more rows.
pub(crate) fn wait_for_rows(workspace: &Workspace, schedule: &str, more: usize) {
    let before = rows(workspace, schedule).len();
    eventually("more rows", || {
        (rows(workspace, schedule).len() >= before + more).then_some(())
    });
}

/// Waits until the daemon has looked at what a schedule waits for, so that the next change is one.
pub(crate) fn wait_until_seen(workspace: &Workspace, schedule: &str) {
    eventually("the daemon looks", || {
        (view(workspace, schedule)["observed"] == true).then_some(())
    });
}

/// An instant that stands in a row, in milliseconds since the epoch.
pub(crate) fn millis(row: &Value, key: &str) -> i64 {
    let text = row[key].as_str().unwrap();
    Timestamp::parse(text).unwrap().millis()
}

/// Asserts that every slot from the first row to the last has one row, and each run one slot; answers the
/// runs.
pub(crate) fn without_gap(rows: &[Value], period_ms: i64) -> BTreeSet<String> {
    let mut runs = BTreeSet::new();
    let mut next = millis(&rows[0], "from");
    for row in rows {
        let (from, to) = (millis(row, "from"), millis(row, "to"));
        assert_eq!(from, next, "a slot has no row, or two: {row}");
        assert_eq!(row["count"], (to - from) / period_ms + 1, "{row}");
        next = to + period_ms;
        if let Some(run) = row["run"].as_str() {
            assert!(runs.insert(run.to_owned()), "{run} has two slots");
        }
    }
    runs
}
