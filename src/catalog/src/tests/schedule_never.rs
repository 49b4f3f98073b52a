//! Policies of schedules that leave no slot.

use super::super::{Options, load};
use super::schedules::{PATH, with};
use super::{ERROR, WARNING, Workspace, codes, expect, show};
use crate::model::Timestamp;

#[test]
fn policies_that_leave_no_due_time_are_told() {
    let text = "schedule:\n  - {id: a, cron: 12 9 * * *, blackout: {hours: [9]}}\n  - {id: b, cron: 0 0 1 1 *, start: 2026-07-01, end: 2026-12-01}\n  - {id: c, cron: 0 0 1 1 *, blackout: {dates: [2027-01-01]}}\n  - {id: d, every: 5m, start: 2026-07-01, end: 2026-12-01}";
    let workspace = Workspace::of_worker(&with(text));
    let options = Options {
        now: Timestamp::parse("2026-06-01T00:00:00Z"),
        ..Options::default()
    };
    let catalog = load(workspace.path(), options);
    let never = |line, column| ("schedule-never", ERROR, line, column, "`enabled: false`");
    expect(&catalog, PATH, &never(4, 31));
    expect(&catalog, PATH, &never(5, 5));
    assert!(show(&catalog.problems).contains("in the blocked hours `9`"));
    let count = codes(&catalog)
        .iter()
        .filter(|code| **code == "schedule-never")
        .count();
    assert_eq!((count, catalog.schedules.len()), (2, 2));
}

#[test]
fn a_schedule_that_ran_before_and_will_not_run_again_is_a_warning() {
    let text = "schedule:\n  - {cron: 0 0 1 1 *, start: 2025-07-01, end: 2026-12-01}";
    let workspace = Workspace::of_worker(&with(text));
    let options = Options {
        now: Timestamp::parse("2026-06-01T00:00:00Z"),
        ..Options::default()
    };
    let catalog = load(workspace.path(), options);
    expect(
        &catalog,
        PATH,
        &("schedule-never", WARNING, 4, 5, "change its times"),
    );
    assert_eq!(catalog.schedules.len(), 1);
}
