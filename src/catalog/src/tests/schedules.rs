//! Schedules in the shapes that people write.

use super::super::Catalog;
use super::{ERROR, NOTE, Workspace, codes, expect, show};
use crate::model::schedule::{
    AfterWhen, CatchUp, CatchUpMode, Dst, Fold, Gap, Overlap, Schedule, Trigger,
};
use crate::model::{SkillRef, Timestamp};

pub(super) const PATH: &str = "workers/w/worker.yaml";

/// A worker with one skill and, from line 3 on, what is given.
pub(super) fn with(text: &str) -> String {
    format!(
        "worker: {{id: w}}\nskills: [{{id: a, description: d, run: date, interface: {{inputs: [{{name: n, type: number, max: 5}}]}}}}]\n{text}\n"
    )
}

/// The same with the skills `a` and `b`.
pub(super) fn with_two(text: &str) -> String {
    format!(
        "worker: {{id: w}}\nskills: [{{id: a, description: d, run: date}}, {{id: b, description: d, run: date}}]\n{text}\n"
    )
}

pub(super) fn of(text: &str) -> Catalog {
    Workspace::of_worker(&with(text)).load()
}

/// The ids of all schedules.
pub(super) fn ids(catalog: &Catalog) -> Vec<&str> {
    catalog.schedules.iter().map(|one| &*one.id).collect()
}

/// The only schedule that a text gives, without an error.
#[track_caller]
fn only(text: &str) -> Schedule {
    let catalog = of(text);
    assert!(!catalog.has_errors(), "{text}\n{}", show(&catalog.problems));
    match catalog.schedules.as_slice() {
        [one] => Schedule::clone(one),
        several => panic!("{text}: {several:?}\n{}", show(&catalog.problems)),
    }
}

fn cron(expression: &str) -> Trigger {
    Trigger::Cron {
        expression: expression.into(),
        seconds: false,
        dst: None,
    }
}

fn skill(worker: &str, skill: &str) -> SkillRef {
    SkillRef {
        worker: worker.to_owned(),
        skill: skill.to_owned(),
    }
}

#[test]
fn a_schedule_may_stand_at_many_places_and_in_many_shapes() {
    let table = [
        ("schedule: \"0 9 * * 1-5\"", cron("0 9 * * 1-5")),
        ("schedule: '@daily'", cron("@daily")),
        ("schedule: \"@reboot\"", Trigger::Reboot),
        ("cron: \" 0 9 * * 1-5 \"", cron("0 9 * * 1-5")),
        ("schedule: [\"0 9 * * *\"]", cron("0 9 * * *")),
        ("schedule: {cron: 0 9 * * *}", cron("0 9 * * *")),
        ("cron: {schedule: 0 9 * * *}", cron("0 9 * * *")),
        (
            "execution: {mode: scheduled, schedule: \"0 9,14,19 * * *\"}",
            cron("0 9,14,19 * * *"),
        ),
        (
            "execution:\n  mode: scheduled\n  schedule: {cron: 0 9 * * *}",
            cron("0 9 * * *"),
        ),
    ];
    for (text, trigger) in table {
        let schedule = only(text);
        assert_eq!(*schedule.trigger, trigger, "{text}");
        assert_eq!(&*schedule.id, "w/a", "{text}");
        assert_eq!(*schedule.skill, skill("w", "a"), "{text}");
        assert_eq!(*schedule.timezone, *"UTC", "{text}");
        assert_eq!(&*schedule.place.path, PATH, "{text}");
        assert!(!schedule.disabled, "{text}");
    }
    assert_eq!(only("schedule: \"@daily\"").place.line, 3);
    let nested = only("schedule:\n  - every: 5m\n");
    assert_eq!((nested.place.line, nested.place.column), (4, 5));
    for text in ["schedule:", "schedule: []", "cron: ~"] {
        assert!(of(text).schedules.is_empty(), "{text}");
    }
}

#[test]
fn a_skill_may_have_its_own_inline_or_in_its_file() {
    let inline = "worker: {id: w}\nexecution: {mode: scheduled}\nskills:\n  - {id: a, description: d, run: date, schedule: \"@daily\"}\n  - {id: b, description: d, run: date, cron: [{every: 5m}, \"@weekly\"]}\n";
    let catalog = Workspace::of_worker(inline).load();
    assert!(!catalog.has_errors(), "{}", show(&catalog.problems));
    let ids: Vec<&str> = catalog.schedules.iter().map(|one| &*one.id).collect();
    assert_eq!(ids, ["w/a", "w/b", "w/b#2"]);
    assert!(catalog.workers[0].scheduled);

    let event = inline.replace("\"@daily\"", "\"@reboot\"");
    let catalog = Workspace::of_worker(&event).load();
    assert!(!catalog.has_errors(), "{}", show(&catalog.problems));
    assert_eq!(*catalog.schedules[0].trigger, Trigger::Reboot);

    let file = "---\nskill:\n  id: a\n  description: d\n  run: date\n  schedule: {skill: w/a, cron: \"0 7 * * *\", timezone: Europe/Berlin}\n---\n";
    let catalog = Workspace::of_skill("a.md", file).load();
    assert!(!catalog.has_errors(), "{}", show(&catalog.problems));
    assert_eq!(&*catalog.schedules[0].place.path, "workers/w/skills/a.md");
    assert_eq!(catalog.schedules[0].place.line, 6);
    assert_eq!(*catalog.schedules[0].timezone, *"Europe/Berlin");

    let other = file.replace("w/a", "w/b");
    let catalog = Workspace::of_skill("a.md", &other).load();
    let expected = ("schedule-skill", ERROR, 6, 21, "top of worker.yaml");
    expect(&catalog, "workers/w/skills/a.md", &expected);
    assert!(catalog.schedules.is_empty() && catalog.workers[0].skills.len() == 1);
}

#[test]
fn the_cron_of_skill_pages_is_read() {
    let page = "---\nname: a\ndescription: d\nrun: date\ncron:\n  schedule: \"*/15 * * * *\"\n  enabled: false\n  timezone: \"America/New_York\"\n  max_concurrent: MOST\n---\n";
    let one = Workspace::of_skill("a/SKILL.md", &page.replace("MOST", "1")).load();
    assert!(!codes(&one).contains(&"schedule-concurrent"));
    let schedule = &one.schedules[0];
    assert_eq!(*schedule.trigger, cron("*/15 * * * *"));
    assert_eq!(*schedule.timezone, *"America/New_York");
    assert!(schedule.disabled);
    assert_eq!(schedule.policy.overlap, Overlap::Skip);
    let three = Workspace::of_skill("a/SKILL.md", &page.replace("MOST", "3")).load();
    assert_eq!(three.schedules[0].policy.overlap, Overlap::AllowAll);
    expect(
        &three,
        "workers/w/skills/a/SKILL.md",
        &("schedule-concurrent", NOTE, 9, 19, "max_concurrent: 1"),
    );
}

#[test]
fn triggers_of_all_kinds_are_read() {
    let table = [
        ("every: 15m", Trigger::Every { period_ms: 900_000 }),
        (
            "at: [2026-12-24T18:00, \"2026-12-31 23:59:30\", 2027-01-01T00:00:00+02:00]",
            Trigger::At {
                times: vec![
                    "2026-12-24T18:00".to_owned(),
                    "2026-12-31T23:59:30".to_owned(),
                    "2027-01-01T00:00:00+02:00".to_owned(),
                ],
                dst: None,
            },
        ),
        (
            "at: 2026-10-25T02:30, dst: {fold: both}",
            Trigger::At {
                times: vec!["2026-10-25T02:30".to_owned()],
                dst: Some(Dst {
                    gap: Gap::RunAfter,
                    fold: Fold::Both,
                }),
            },
        ),
        (
            "cron: \"0 0 9 * * *\", seconds: true, dst: {gap: skip, fold: second}",
            Trigger::Cron {
                expression: "0 0 9 * * *".into(),
                seconds: true,
                dst: Some(Dst {
                    gap: Gap::Skip,
                    fold: Fold::Second,
                }),
            },
        ),
        (
            "watch: {paths: [docs/, \"**/*.md\"], settle: 500ms}",
            Trigger::Watch {
                paths: vec!["docs/".to_owned(), "**/*.md".to_owned()],
                settle_ms: 500,
            },
        ),
        (
            "watch: docs/",
            Trigger::Watch {
                paths: vec!["docs/".to_owned()],
                settle_ms: 2_000,
            },
        ),
        (
            "on_commit: {branch: main}",
            Trigger::OnCommit {
                branch: "main".to_owned(),
            },
        ),
        (
            "on_commit: refs/heads/release/1.x",
            Trigger::OnCommit {
                branch: "release/1.x".to_owned(),
            },
        ),
    ];
    for (text, trigger) in table {
        assert_eq!(
            *only(&format!("schedule: {{{text}}}")).trigger,
            trigger,
            "{text}"
        );
    }
}

#[test]
fn a_schedule_may_follow_another_skill() {
    for (text, when) in [
        (
            "{after: {skill: A, on: failed}, skill: b}",
            AfterWhen::Failed,
        ),
        ("{after: {skill: w/a}, skill: w/b}", AfterWhen::Succeeded),
        ("{after: a, skill: b}", AfterWhen::Succeeded),
        (
            "{after: {skill: a, on: always}, skill: B}",
            AfterWhen::Always,
        ),
    ] {
        let catalog = Workspace::of_worker(&with_two(&format!("schedule: {text}"))).load();
        assert!(!catalog.has_errors(), "{text}\n{}", show(&catalog.problems));
        let schedule = &catalog.schedules[0];
        let skill = Box::new(skill("w", "a"));
        assert_eq!(*schedule.trigger, Trigger::After { skill, when }, "{text}");
        assert_eq!(&*schedule.id, "w/b", "{text}");
    }
}

#[test]
fn policies_have_defaults_and_are_read() {
    let plain = only("schedule: {every: 5m}").policy;
    assert_eq!(*plain, crate::model::schedule::Policy::default());
    let text = "schedule:\n  cron: 0 9 * * *\n  timezone: Europe/Berlin\n  inputs: {n: 2}\n  overlap: buffer-one\n  catch_up: {mode: all, window: 2h}\n  jitter: 90s\n  blackout: {hours: [2, \"22-1\", \"5, 7-8\"], dates: [2026-12-25, 2026-12-25]}\n  start: 2026-01-01\n  end: 2026-12-31\n  max_actions: 10\n  pause_on_failure: 3\n  expected_within: 30m\n  on_missed: {command: ./tell, timeout: 5s}\n";
    let schedule = only(text);
    let policy = &schedule.policy;
    assert_eq!(schedule.inputs["n"], 2);
    assert_eq!(policy.overlap, Overlap::BufferOne);
    let catch_up = CatchUp {
        mode: CatchUpMode::All,
        window_ms: 7_200_000,
    };
    assert_eq!(policy.catch_up, catch_up);
    assert_eq!(policy.jitter_ms, 90_000);
    assert_eq!(policy.blocked_hours, [0, 1, 2, 5, 7, 8, 22, 23]);
    assert_eq!(policy.blocked_dates, ["2026-12-25"]);
    let shown = |time: Option<Timestamp>| time.expect("a time").rfc3339();
    assert_eq!(shown(policy.start), "2025-12-31T23:00:00.000Z");
    assert_eq!(shown(policy.end), "2026-12-31T22:59:59.999Z");
    assert_eq!(policy.max_actions, Some(10));
    assert_eq!(policy.pause_on_failure, Some(3));
    assert_eq!(policy.expected_within_ms, Some(1_800_000));
    let told = policy.notify.on_missed.as_ref().expect("a command");
    assert_eq!(
        (
            told.command().unwrap().command.as_str(),
            told.command().unwrap().timeout_ms
        ),
        ("./tell", 5_000)
    );

    let of = |rest: &str| only(&format!("schedule: {{every: 5m, {rest}}}")).policy;
    assert_eq!(of("catch_up: none").catch_up.mode, CatchUpMode::None);
    assert_eq!(of("pause_on_failure: true").pause_on_failure, Some(1));
    assert_eq!(of("pause_on_failure: false").pause_on_failure, None);
    assert_eq!(of("blocked_hours: 3-4").blocked_hours, [3, 4]);
    assert_eq!(
        of("on_missed: ./tell")
            .notify
            .on_missed
            .as_ref()
            .map(|told| told.command().unwrap().timeout_ms),
        Some(60_000)
    );
    assert_eq!(
        of("overlap: allow_all, pause_on_failure: 1").overlap,
        Overlap::AllowAll
    );
    let start = of("start: 2026-01-01T00:00:00+02:00").start;
    assert_eq!(shown(start), "2025-12-31T22:00:00.000Z");
}

#[test]
fn zone_and_blocked_hours_come_from_the_context() {
    let workspace = Workspace::of_worker(&with(
        "schedule: [\"@daily\", {every: 5m, blocked_hours: [4], timezone: Asia/Tokyo}]",
    ));
    workspace.write(
        "workerctl.yaml",
        b"timezone: Europe/Berlin\nblocked_hours: [2, 3]\n",
    );
    let catalog = workspace.load();
    let [first, second] = catalog.schedules.as_slice() else {
        panic!("{}", show(&catalog.problems));
    };
    assert_eq!(*first.timezone, *"Europe/Berlin");
    assert_eq!(first.policy.blocked_hours, [2, 3]);
    assert_eq!(*second.timezone, *"Asia/Tokyo");
    assert_eq!(second.policy.blocked_hours, [4]);

    let of_worker = only("schedule: \"@daily\"\nexecution: {timezone: Europe/Paris}");
    assert_eq!(*of_worker.timezone, *"Europe/Paris");
    let catalog =
        of("schedule: [\"@daily\", {every: 5m, timezone: UTC}]\nexecution: {timezone: Paris}");
    let expected = ("timezone-unknown", ERROR, 4, 23, "`Europe/Paris`");
    expect(&catalog, PATH, &expected);
    assert_eq!(catalog.schedules.len(), 1, "{}", show(&catalog.problems));

    workspace.write("workerctl.yaml", b"blocked_hours: [25]\n");
    let expected = ("schedule-hours", ERROR, 1, 17, "22-5");
    expect(&workspace.load(), "workerctl.yaml", &expected);
}

#[test]
fn the_example_of_the_documentation_holds() {
    let page = include_str!("../../../../docs/reference/schedule.md");
    let example = page
        .split("```")
        .nth(1)
        .and_then(|block| block.strip_prefix("yaml\n"))
        .expect("an example");
    let yaml = format!(
        "worker: {{id: repo-steward}}\nskills:\n  - {{id: weekly-report, description: d, run: date, interface: {{inputs: [{{name: weeks, type: number}}]}}}}\n  - {{id: broken-links, description: d, run: date}}\n  - {{id: publish, description: d, run: date}}\n{example}"
    );
    let files = [
        ("workers/repo-steward/worker.yaml", &*yaml),
        ("scripts/tell", ""),
    ];
    let catalog = Workspace::new(&files).load();
    let told = codes(&catalog);
    assert!(told.is_empty(), "{}", show(&catalog.problems));
    let expected = [
        "repo-steward/broken-links",
        "repo-steward/publish",
        "repo-steward/weekly-report#workdays",
    ];
    assert_eq!(ids(&catalog), expected);
}
