//! Hints that are made from what is written.

use super::mistakes::skill;
use super::*;

#[test]
fn a_hint_repeats_what_is_written_in_the_form_that_is_meant() {
    for (keys, code, line, column, hint) in [
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
    ] {
        let text = skill(&format!("    run: date\n    {keys}\n"));
        let catalog = check_worker(&text, (code, ERROR, line, column, hint));
        assert!(!show(&catalog.problems).contains("s3cret"), "{keys}");
    }
}

#[test]
fn a_key_that_is_indented_less_than_its_list_item_is_named() {
    let text = "worker: {id: w}\nskills:\n  - id: a\n   description: d\n   run: date\n";
    let hint = "begin it in the column of `id`";
    check_worker(text, ("yaml-syntax", ERROR, 4, 4, hint));
}
