//! Schedules among all workers: skills that they name, ids, cycles, reloads.

use super::super::{Options, reload};
use super::schedules::{PATH, ids, of, with, with_two};
use super::{ERROR, NOTE, WARNING, Workspace, expect, show};
use crate::model::schedule::Overlap;

#[test]
fn a_worker_with_several_skills_has_to_name_one() {
    let catalog =
        Workspace::of_worker(&with_two("schedule: [\"@daily\", {every: 5m, skill: b}]")).load();
    let expected = (
        "schedule-skill",
        ERROR,
        3,
        12,
        "`skill:` and one of `a`, `b`",
    );
    expect(&catalog, PATH, &expected);
    assert_eq!(catalog.schedules.len(), 1);
    assert_eq!(catalog.workers[0].skills.len(), 2);
    let none = Workspace::of_worker("worker: {id: w}\nschedule: \"@daily\"\n").load();
    expect(&none, PATH, &("schedule-skill", ERROR, 2, 1, "add a skill"));
    // A template is filled in with its copy.
    let template = with_two("schedule: \"@daily\"").replace("id: w", "id: \"w-{x}\"");
    let catalog = Workspace::of_worker(&template).load();
    expect(&catalog, PATH, &("schedule-skill", NOTE, 3, 1, "`a`"));
    assert!(!catalog.has_errors(), "{}", show(&catalog.problems));
}

#[test]
fn ids_stay_the_same_when_a_neighbour_breaks() {
    let all = |text: &str| -> Vec<String> {
        let catalog = of(text);
        catalog
            .schedules
            .iter()
            .map(|one| one.id.to_string())
            .collect()
    };
    let text = "schedule: [{every: 1m}, {every: 2m}, {every: 3m, id: x}, {every: 4m}]";
    assert_eq!(all(text), ["w/a", "w/a#2", "w/a#3", "w/a#x"]);
    assert_eq!(
        all(&text.replace("1m", "soon")),
        ["w/a#2", "w/a#3", "w/a#x"]
    );
    assert_eq!(all(&text.replace("2m", "soon")), ["w/a", "w/a#3", "w/a#x"]);
}

#[test]
fn an_id_that_is_taken_twice_is_nobodys() {
    let catalog = of(
        "schedule:\n  - {every: 1m, id: X}\n  - {every: 2m, id: x}\n  - {every: 3m}\n  - {every: 4m}\n  - {every: 5m, id: \"2\"}",
    );
    for (line, column) in [(4, 21), (5, 21), (7, 5), (8, 21)] {
        let expected = ("schedule-duplicate", ERROR, line, column, "of its own");
        expect(&catalog, PATH, &expected);
    }
    assert_eq!(catalog.schedules.len(), 1);
    assert_eq!(&*catalog.schedules[0].id, "w/a");
}

#[test]
fn the_same_twice_runs_once() {
    let twice = |other: &str| {
        let text = format!(
            "schedule: 0 9 * * *\nexecution: {{mode: scheduled, schedule: {{cron: 0 9 * * *{other}}}}}"
        );
        of(&text)
    };
    let same = twice("");
    expect(
        &same,
        PATH,
        &("schedule-twice", WARNING, 4, 30, "remove one"),
    );
    assert_eq!(same.schedules.len(), 1);
    // Any key makes it another one.
    for other in [
        ", overlap: buffer_one",
        ", jitter: 5m",
        ", enabled: false",
        ", id: own",
        ", timezone: Asia/Tokyo",
        ", inputs: {x: 1}",
    ] {
        let two = twice(other);
        let told = &two.problems;
        let twice = told.iter().any(|one| one.code == "schedule-twice");
        assert!(!twice, "{other}: {}", show(told));
    }
}

#[test]
fn terminate_other_is_read_as_cancel_other() {
    let catalog = of("schedule: {cron: 0 9 * * *, overlap: terminate_other}");
    expect(
        &catalog,
        PATH,
        &("schedule-overlap", NOTE, 3, 38, "`grace: 0s`"),
    );
    assert_eq!(catalog.schedules[0].policy.overlap, Overlap::CancelOther);
}

#[test]
fn an_unavailable_skill_keeps_its_schedule_with_a_warning() {
    let yaml = "worker: {id: w}\nskills:\n  - {id: a, description: d, run: date, sandbox: theirown, schedule: \"@daily\"}\n  - {id: gone, file: skills/gone.md, schedule: {every: 5m, inputs: {x: 1}}}\n  - {id: b, description: d, run: date, schedule: {after: a}}\n";
    let catalog = Workspace::of_worker(yaml).load();
    for expected in [
        ("schedule-unavailable", WARNING, 3, 59, "sandbox"),
        ("schedule-unavailable", WARNING, 4, 38, "gone.md"),
        ("schedule-unavailable", WARNING, 5, 58, "sandbox"),
    ] {
        expect(&catalog, PATH, &expected);
    }
    assert_eq!(catalog.schedules.len(), 3, "{}", show(&catalog.problems));
    assert!(!catalog.has_errors());
}

#[test]
fn missing_and_secret_inputs_are_told() {
    let yaml = "worker: {id: w}\nskills:\n  - id: a\n    description: d\n    run: date\n    interface: {inputs: [{name: must, required: true}, {name: key, sensitive: true}]}\n    schedule:\n      - \"@daily\"\n      - {every: 5m, inputs: {must: x, key: y}}\n";
    let catalog = Workspace::of_worker(yaml).load();
    expect(&catalog, PATH, &("schedule-inputs", ERROR, 8, 9, ""));
    expect(
        &catalog,
        PATH,
        &("secret-in-definition", WARNING, 9, 39, "`env`"),
    );
    assert_eq!(ids(&catalog), ["w/a#2"]);
    assert_eq!(catalog.workers[0].skills.len(), 1);
}

#[test]
fn a_rejected_skill_is_named_as_such() {
    let text =
        with_two("schedule: {every: 5m, skill: b}").replace("id: b,", "id: b, timeout: soon,");
    let catalog = Workspace::of_worker(&text).load();
    expect(
        &catalog,
        PATH,
        &("schedule-skill-unknown", ERROR, 3, 30, "repair"),
    );
}

#[test]
fn cycles_across_workers_are_left_out_and_named() {
    let worker = |id: &str, after: &str| {
        format!(
            "worker: {{id: {id}}}\nskills: [{{id: s, description: d, run: date}}]\nschedule:\n  - {{after: {after}/s}}\n  - {{every: 5m}}\n"
        )
    };
    let workspace = Workspace::new(&[
        ("workers/a/worker.yaml", &worker("a", "c")),
        ("workers/b/worker.yaml", &worker("b", "a")),
        ("workers/c/worker.yaml", &worker("c", "b")),
        ("workers/d/worker.yaml", &worker("d", "c")),
    ]);
    let catalog = workspace.load();
    for path in [
        "workers/a/worker.yaml",
        "workers/b/worker.yaml",
        "workers/c/worker.yaml",
    ] {
        expect(
            &catalog,
            path,
            &("schedule-cycle", ERROR, 4, 13, "remove one"),
        );
    }
    let cycle = catalog
        .problems
        .iter()
        .find(|problem| problem.code == "schedule-cycle")
        .expect("a cycle");
    for name in ["`a/s`", "`b/s`", "`c/s`"] {
        assert!(cycle.message.contains(name), "{}", cycle.message);
    }
    assert_eq!(ids(&catalog), ["a/s#2", "b/s#2", "c/s#2", "d/s", "d/s#2"]);
    // One that is switched off closes no cycle.
    let text = worker("c", "b").replace("{after", "{enabled: false, after");
    workspace.write("workers/c/worker.yaml", text.as_bytes());
    let catalog = workspace.load();
    assert!(!catalog.has_errors(), "{}", show(&catalog.problems));
}

#[test]
fn a_schedule_may_run_a_skill_of_another_worker() {
    let workspace = Workspace::new(&[
        (
            "workers/a/worker.yaml",
            "worker: {id: a}\nskills: []\nschedule: {every: 1m, skill: B/s}\n",
        ),
        (
            "workers/b/worker.yaml",
            "worker: {id: b}\nskills: [{id: s, description: d, run: date}]\nschedule: {every: 2m}\n",
        ),
    ]);
    let catalog = workspace.load();
    assert!(!catalog.has_errors(), "{}", show(&catalog.problems));
    let places: Vec<(&str, &str)> = catalog
        .schedules
        .iter()
        .map(|one| (&*one.id, &*one.place.path))
        .collect();
    // The skill's own worker comes first.
    assert_eq!(
        places,
        [
            ("b/s", "workers/b/worker.yaml"),
            ("b/s#2", "workers/a/worker.yaml")
        ]
    );
}

#[test]
fn a_scheduled_worker_without_any_schedule_is_rejected() {
    let text = with("execution: {mode: scheduled}");
    let catalog = Workspace::of_worker(&text).load();
    expect(
        &catalog,
        PATH,
        &("schedule-missing", ERROR, 3, 19, "on_demand"),
    );
    assert!(catalog.workers.is_empty() && catalog.schedules.is_empty());
}

#[test]
fn schedules_keep_their_last_good_definition_with_their_skill_or_worker() {
    let good = "worker: {id: w}\nschedule: {every: 1m, skill: a}\nskills:\n  - {id: a, description: d, run: date, schedule: \"@daily\"}\n  - {id: b, description: d, run: date, schedule: \"@daily\"}\n";
    let workspace = Workspace::of_worker(good);
    let first = workspace.load();
    assert_eq!(ids(&first), ["w/a", "w/a#2", "w/b"]);
    let write = |text: &str| workspace.write(PATH, text.as_bytes());
    // The whole worker, also over several reloads.
    write("worker: {id: w\n");
    let broken = reload(&first, Options::default());
    assert_eq!(ids(&broken), ids(&first));
    write("worker: {id: w}}\n");
    let broken = reload(&broken, Options::default());
    assert_eq!(ids(&broken), ids(&first));
    // One skill: what stands in its broken definition does not count, not even its schedule.
    write(&good.replace(
        "date, schedule: \"@daily\"}\n  - {id: b",
        "date, timeout: soon, schedule: \"@weekly\"}\n  - {id: b",
    ));
    let half = reload(&broken, Options::default());
    assert_eq!(half.schedules, first.schedules, "{}", show(&half.problems));
    // A schedule alone.
    write(&good.replacen("every: 1m", "every: soon", 1));
    let without = reload(&half, Options::default());
    assert_eq!(without.schedules, first.schedules);
    std::fs::remove_file(workspace.path().join(PATH)).expect("removed");
    assert!(reload(&without, Options::default()).schedules.is_empty());
}

#[test]
fn a_reload_finds_the_skill_of_another_worker_gone() {
    let workspace = Workspace::new(&[
        (
            "workers/a/worker.yaml",
            "worker: {id: a}\nskills: [{id: s, description: d, run: date}]\nschedule: {after: b/s}\n",
        ),
        (
            "workers/b/worker.yaml",
            "worker: {id: b}\nskills: [{id: s, description: d, run: date}]\n",
        ),
    ]);
    let first = workspace.load();
    assert_eq!(ids(&first), ["a/s"]);
    workspace.write(
        "workers/b/worker.yaml",
        b"worker: {id: b}\nskills: [{id: t, description: d, run: date}]\n",
    );
    let second = reload(&first, Options::default());
    expect(
        &second,
        "workers/a/worker.yaml",
        &("schedule-skill-unknown", ERROR, 3, 19, "did you mean"),
    );
    // What it was stays in force until the error is repaired.
    assert_eq!(second.schedules, first.schedules);
    assert_eq!(second.workers.len(), 2);
}
