//! Hints that are made from what is written.

use super::mistakes::skill;
use super::*;

/// Keys of a skill, and what is said of them.
const HINTS: &[(&str, &str, u32, u32, &str)] = &[
    (
        "schedule: {every: day}",
        "duration-invalid",
        7,
        23,
        "write `every: 1d`",
    ),
    (
        "schedule: {every: Hourly}",
        "duration-invalid",
        7,
        23,
        "write `every: 1h`",
    ),
    (
        "schedule: {at: 2027-13-01}",
        "schedule-at",
        7,
        20,
        "there is no month 13",
    ),
    (
        "schedule: {cron: \"0 5 * * * Europe/Berlin\"}",
        "schedule-expression",
        7,
        33,
        "write `timezone: Europe/Berlin` next to `cron`",
    ),
    (
        "schedule: {cron: \"UTC 0 5 * * *\"}",
        "schedule-expression",
        7,
        23,
        "write `timezone: UTC` next to `cron`",
    ),
    (
        "schedule: {cron: \"CRON_TZ=Asia/Tokyo 0 5 * * *\"}",
        "schedule-expression",
        7,
        23,
        "write `timezone: Asia/Tokyo` next to `cron`",
    ),
    (
        "schedule: \"0 0 9 * * ?\"",
        "schedule-expression",
        7,
        26,
        "leave it out: `0 9 * * ?`",
    ),
    (
        "schedule: {at: \"9:00\"}",
        "schedule-at",
        7,
        20,
        "write `cron: \"0 9 * * *\"` for every day",
    ),
    (
        "schedule: {cron: \"0 9 * * *\", start: 2026-02-30}",
        "schedule-window",
        7,
        42,
        "February 2026 has 28 days",
    ),
    (
        "timeout: -1",
        "duration-invalid",
        7,
        14,
        "every limit is finite, at most `366d`",
    ),
    (
        "wake: echo \"a: b\" && echo done: yes",
        "yaml-syntax",
        7,
        18,
        "write `wake: |`, and the command in the next line",
    ),
    (
        "env: [CI=s3cret]",
        "env-name",
        7,
        11,
        "write `{name: CI, value: TEXT}`",
    ),
    (
        "environment:\n      - CI=s3cret",
        "key-misspelled",
        7,
        5,
        "write `env: {CI: TEXT}`",
    ),
    (
        "schedule:\n      cron: */5 * * * *",
        "yaml-syntax",
        8,
        13,
        "put the value of `cron` in double quotes",
    ),
];

#[test]
fn a_hint_repeats_what_is_written_in_the_form_that_is_meant() {
    for (keys, code, line, column, hint) in HINTS.iter().copied() {
        let text = skill(&format!("    run: date\n    {keys}\n"));
        let catalog = check_worker(&text, (code, ERROR, line, column, hint));
        assert!(!show(&catalog.problems).contains("s3cret"), "{keys}");
    }
}

#[test]
fn a_key_that_is_indented_less_than_its_list_item_is_named() {
    let hint = "begin it in the column of `id`";
    for (keys, line, column) in [
        ("   description: d\n   run: date\n", 4, 4),
        ("    description: d\n   run: date\n", 5, 4),
        ("  description: d\n  run: date\n", 4, 3),
    ] {
        let text = format!("worker: {{id: w}}\nskills:\n  - id: a\n{keys}");
        check_worker(&text, ("yaml-syntax", ERROR, line, column, hint));
    }
}

#[test]
fn events_and_words_of_other_systems_are_answered_by_their_meaning() {
    for (keys, hint) in [
        (
            "on: {push: {branches: [main]}}",
            "write `schedule: {on_commit: main}`",
        ),
        (
            "on: [push, pull_request]",
            "write `schedule: {on_commit: main}`",
        ),
        ("on: workflow_dispatch", "remove it: `workerctl run SKILL`"),
        ("bash_command: git log", "write `run: \"git log\"`"),
    ] {
        let text = skill(&format!("    run: date\n    {keys}\n"));
        check_worker(&text, ("key-foreign", ERROR, 7, 5, hint));
    }
}
