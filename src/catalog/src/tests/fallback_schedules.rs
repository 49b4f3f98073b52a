//! Schedules that an error has left out stay as they were; those that were removed go.

use super::super::{Catalog, Options, reload};
use super::{Workspace, codes, show};

fn of(schedules: &str) -> String {
    format!(
        "worker: {{id: w}}\nskills:\n  - {{id: a, description: d, run: date}}\n  - {{id: b, description: d, run: date}}\nschedule:\n{schedules}"
    )
}

const TWO: &str = "  - {skill: a, cron: 0 9 * * *}\n  - {skill: b, id: x, every: 5m}\n";

fn ids(catalog: &Catalog) -> Vec<&str> {
    catalog.schedules.iter().map(|one| &*one.id).collect()
}

fn kept(catalog: &Catalog) -> Vec<&str> {
    catalog
        .fallback_schedules
        .keys()
        .map(String::as_str)
        .collect()
}

/// Reads `TWO`, then another text.
fn after(text: &str) -> (Workspace, Catalog, Catalog) {
    let workspace = Workspace::of_worker(&of(TWO));
    let first = workspace.load();
    assert_eq!(ids(&first), ["w/a", "w/b#x"], "{}", show(&first.problems));
    workspace.write("workers/w/worker.yaml", text.as_bytes());
    let second = reload(&first, Options::default());
    (workspace, first, second)
}

#[test]
fn a_broken_schedule_stays_as_it_was_until_it_is_repaired() {
    let broken =
        of("  - {skill: a, cron: 0 9 * * *, overlap: perhaps}\n  - {skill: b, id: x, every: 6m}\n");
    let (workspace, first, second) = after(&broken);
    assert_eq!(second.schedules[0], first.schedules[0]);
    assert_ne!(second.schedules[1].trigger, first.schedules[1].trigger);
    assert_eq!(kept(&second), ["w/a"]);
    assert!(second.fallback_schedules["w/a"].contains("perhaps"));
    assert!(codes(&second).contains(&"kept-last-good"));
    // The whole file breaks besides, and is repaired.
    workspace.write("workers/w/worker.yaml", b"worker: {id: w\n");
    let third = reload(&second, Options::default());
    assert_eq!(third.schedules, second.schedules);
    assert_eq!(kept(&third), ["w/a", "w/b#x"]);
    workspace.write("workers/w/worker.yaml", of(TWO).as_bytes());
    let repaired = reload(&third, Options::default());
    assert_eq!(ids(&repaired), ["w/a", "w/b#x"]);
    assert!(repaired.fallback_schedules.is_empty());
    assert!(!repaired.has_errors(), "{}", show(&repaired.problems));
}

#[test]
fn what_was_removed_goes_although_its_neighbour_is_broken() {
    let (_, _, second) = after(&of("  - {skill: a, cron: nonsense}\n"));
    assert_eq!(ids(&second), ["w/a"]);
    let (_, _, second) = after(&of(TWO).replace("id: b, description: d", "id: b, description: []"));
    assert_eq!(ids(&second), ["w/a", "w/b#x"]);
    let text = of("  - {skill: a, cron: 0 9 * * *}\n").replace("id: a, ", "id: a, timeout: soon, ");
    let (_, _, second) = after(&text);
    assert_eq!(ids(&second), ["w/a"]);
    let (workspace, _, second) = after(&of(TWO));
    std::fs::remove_file(workspace.path().join("workers/w/worker.yaml")).expect("removed");
    assert!(reload(&second, Options::default()).schedules.is_empty());
}

#[test]
fn one_whose_skill_has_gone_stays_with_an_error() {
    let text = "worker: {id: w}\nskills: [{id: a, description: d, run: date}]\nschedule:\n";
    let (_, first, second) = after(&format!("{text}{TWO}"));
    assert_eq!(ids(&second), ["w/a", "w/b#x"]);
    assert_eq!(second.schedules[1], first.schedules[1]);
    assert_eq!(kept(&second), ["w/b#x"]);
    // The skills as a whole cannot be read.
    let text = of(TWO);
    let skills = text.find("skills:").expect("skills");
    let rest = text.find("schedule:").expect("schedules");
    let text = format!("{}skills: 5\n{}", &text[..skills], &text[rest..]);
    let (_, first, second) = after(&text);
    assert_eq!(
        second.schedules,
        first.schedules,
        "{}",
        show(&second.problems)
    );
}

#[test]
fn two_of_one_id_leave_the_former_one_and_a_copy_is_not_kept_besides() {
    let (_, first, second) = after(&of(
        "  - {skill: a, cron: 0 9 * * *}\n  - {skill: b, id: x, every: 6m}\n  - {skill: b, id: x, every: 7m}\n",
    ));
    assert_eq!(
        second.schedules,
        first.schedules,
        "{}",
        show(&second.problems)
    );
    // It has another name now, and its old place is taken by one that is broken.
    let (_, _, second) = after(&of(
        "  - {skill: a, cron: 0 9 * * *}\n  - {skill: b, id: y, every: 5m}\n  - {skill: b, id: x, every: 0}\n",
    ));
    assert_eq!(ids(&second), ["w/a", "w/b#y"]);
}

#[test]
fn a_former_schedule_does_not_close_a_circle() {
    let workspace = Workspace::of_worker(&of(
        "  - {skill: a, after: b}\n  - {skill: b, id: x, every: 5m}\n",
    ));
    let first = workspace.load();
    let text = of("  - {skill: a, after: [b]}\n  - {skill: b, id: x, after: a}\n");
    workspace.write("workers/w/worker.yaml", text.as_bytes());
    let second = reload(&first, Options::default());
    assert_eq!(ids(&second), ["w/b#x"], "{}", show(&second.problems));
}

#[test]
fn a_first_reading_keeps_nothing() {
    let catalog = Workspace::of_worker(&of("  - {skill: a, cron: nonsense}\n")).load();
    assert!(catalog.schedules.is_empty() && catalog.fallback_schedules.is_empty());
}
