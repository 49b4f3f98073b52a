//! Words of other systems, such as GitHub Actions, Kubernetes, cron and systemd, with the form to write instead.

use super::places::plain;
use super::{
    CHECK, CONFIG, CONFIG_RETENTION, EXECUTION, INPUT, NOTIFY, RETRY, RUN, SCHEDULE, SKILL, Table,
    WORKER_FILE, places,
};
use crate::view::View;
use workerctl_core::schedule::Expression;

/// Maps of workers that decide when and how a skill runs.
const WORK: &[&Table] = &[&SKILL, &WORKER_FILE, &EXECUTION];
const SKILLS: &[&Table] = &[&SKILL, &WORKER_FILE];
const TIMED: &[&Table] = &[&SKILL, &WORKER_FILE, &EXECUTION, &CHECK, &CONFIG];
const ENABLED: &str = "in the schedule: `schedule: {cron: \"0 9 * * *\", enabled: false}`";

/// Words of other systems; the maps in which people write them; and what to write instead, after "write".
///
/// `{value}` is the value as it is written, `{more}` the number after it, and `{cron}` its cron expression.
#[rustfmt::skip]
const WORDS: &[(&[&str], &[&Table], &str)] = &[
    // A schedule that is off, or limited in time.
    (&["disabled", "disable", "paused", "pause", "suspend", "suspended"], &[&SCHEDULE], "`enabled: false` to switch the schedule off"),
    (&["disabled", "disable", "paused", "pause", "suspend", "suspended"], WORK, ENABLED),
    (&["active", "enable"], &[&SCHEDULE], "`enabled: {value}`"),
    (&["active", "enable"], WORK, "in the schedule: `schedule: {cron: \"0 9 * * *\", enabled: {value}}`"),
    (&["until", "end_date"], &[&SCHEDULE], "`end: {value}`"),
    (&["until", "end_date"], WORK, "in the schedule: `schedule: {cron: \"0 9 * * *\", end: {value}}`"),
    (&["start_date"], &[&SCHEDULE], "`start: {value}`"),
    (&["start_date"], WORK, "in the schedule: `schedule: {cron: \"0 9 * * *\", start: {value}}`"),
    // When a skill is due.
    (&["on", "cron_schedule", "on_calendar", "crontab", "schedule_interval"], WORK, "`schedule: {cron}`"),
    (&["cron_schedule", "on_calendar", "crontab", "schedule_interval"], &[&SCHEDULE], "`cron: {cron}`"),
    (&["needs", "depends_on"], WORK, "`schedule: {after: SKILL}` with the skill that it follows"),
    (&["needs", "depends_on"], &[&SCHEDULE], "`after: SKILL` with the skill that it follows"),
    (&["concurrency_policy", "concurrency", "max_active_runs"], &[&SCHEDULE], "`overlap: skip`, or another value of `overlap`"),
    (&["concurrency_policy", "concurrency", "max_active_runs"], WORK, "in the schedule: `schedule: {cron: \"0 9 * * *\", overlap: skip}`"),
    (&["concurrency"], &[&CONFIG], "`max_parallel: {value}`"),
    (&["starting_deadline_seconds", "persistent", "misfire_grace_time"], &[&SCHEDULE], "`catch_up: {mode: last, window: 1h}`"),
    (&["starting_deadline_seconds", "persistent", "misfire_grace_time"], WORK, "in the schedule: `schedule: {cron: \"0 9 * * *\", catch_up: {mode: last, window: 1h}}`"),
    (&["randomized_delay_sec"], &[&SCHEDULE], "`jitter: 5m`"),
    (&["randomized_delay_sec"], WORK, "in the schedule: `schedule: {cron: \"0 9 * * *\", jitter: 5m}`"),
    (&["if", "when"], SKILLS, "`wake: COMMAND`, which decides whether there is anything to do, or a check: `verification: {pre_execute: [{command: …}]}`"),
    // What runs, and where.
    (&["script"], &[&SKILL], "the commands as one text below `run: |`, or a file as `run: {script: PATH}`"),
    (&["steps", "jobs", "stages", "before_script", "after_script"], &[&SKILL], "the commands as one text below `run: |`"),
    (&["steps", "jobs", "stages", "script", "before_script", "after_script"], &[&WORKER_FILE, &EXECUTION], "the commands in a skill, as one text below `run: |`"),
    (&["working_directory", "workdir", "working_dir"], WORK, "`cwd: {value}` in the skill or at the top level of worker.yaml"),
    (&["working_directory", "workdir", "working_dir", "cwd"], &[&RUN, &CHECK], "`cwd: {value}` in the skill"),
    (&["image", "container", "runs-on"], WORK, "remove it: commands run on this machine; to use a container, call its program in `run`, such as `docker run IMAGE COMMAND`, and `sandbox: private` isolates a command without one"),
    (&["api_version", "spec", "job_template"], &[&WORKER_FILE], "a worker instead of a Kubernetes object: `worker: {id: NAME}`, and `skills` with `schedule` and `run`"),
    (&["become", "sudo", "user", "become_user"], WORK, "remove it: commands run as the user of workerctl; use `sudo` in `run` if the command needs other rights"),
    // Attempts and limits.
    (&["retries", "max_retries", "retry_count", "backoff_limit"], WORK, "`retry: {max_attempts: {more}}`: the first attempt counts too"),
    (&["retries", "max_retries", "retry_count"], &[&RETRY], "`max_attempts: {more}`: the first attempt counts too"),
    (&["attempts"], &[&RETRY], "`max_attempts: {value}`"),
    (&["retry_delay"], WORK, "`retry: {max_attempts: 3, backoff: 30s}`"),
    (&["retry_delay", "delay"], &[&RETRY], "`backoff: 30s`"),
    (&["continue-on-error"], WORK, "`retry: {max_attempts: 2}` to repeat a failed run, or `must_pass: false` in a check that may fail"),
    (&["continue-on-error", "allow_failure"], &[&CHECK], "`must_pass: false`"),
    (&["timeout-minutes"], TIMED, "`timeout: {value}m`"),
    (&["timeout_seconds", "timeout_sec", "active_deadline_seconds"], TIMED, "`timeout: {value}s`"),
    // Values of inputs.
    (&["options", "choices", "values"], &[&INPUT], "`enum: [a, b]` and `type: string`"),
    // Inputs and outputs without `interface`.
    (&["inputs", "outputs", "params", "parameters"], &[&SKILL], "them below `interface`: `interface: {inputs: […], outputs: […]}`"),
    (&["inputs", "outputs", "params", "parameters"], &[&WORKER_FILE, &EXECUTION], "them below `interface` of a skill: `interface: {inputs: […], outputs: […]}`"),
    (&["tools"], &[&SKILL], "`allowed-tools: {value}`"),
    (&["on_success", "success"], &[&NOTIFY], "`on_recovery: {value}`: it notifies of the first success after a failure; to act on every success, write `schedule: {after: SKILL}` in another skill"),
    // Settings of the engine.
    (&["days"], &[&CONFIG_RETENTION], "`runs: {value}d`"),
    (&["remote"], &[&CONFIG], "`push: {value}`"),
    (&["listen", "port"], &[&CONFIG], "`web: {listen: \"127.0.0.1:8930\"}` for the web page, or `mcp: {http: {listen: …}}`"),
    (&["log_level", "loglevel"], &[&CONFIG], "remove it: the environment variable `WORKERCTL_LOG` sets the level, such as `WORKERCTL_LOG=debug`"),
];

const NICKNAMES: [&str; 5] = ["hourly", "daily", "weekly", "monthly", "yearly"];

/// What to write instead of a word of other systems; `None` if `key` is none in `table`.
pub(super) fn remedy(key: &str, value: View<'_>, table: &Table) -> Option<String> {
    let wanted = plain(key);
    let (.., ours) = WORDS.iter().find(|(words, tables, _)| {
        tables.iter().any(|known| known.name == table.name)
            && words.iter().any(|word| plain(word) == wanted)
    })?;
    let number = value
        .scalar_text()
        .and_then(|text| text.parse::<u32>().ok());
    let more = number.map_or("N".to_owned(), |number| {
        number.saturating_add(1).to_string()
    });
    let ours = ours.replace("{more}", &more);
    let ours = match expression_in(value) {
        Some(own) => ours.replace("{cron}", &format!("\"{own}\"")),
        None if ours.contains("{cron}") => format!(
            "{} with your own times, such as `\"0 9 * * 1-5\"` for 9:00 from Monday to Friday",
            ours.replace("{cron}", "\"MINUTE HOUR DAY MONTH WEEKDAY\"")
        ),
        None => ours,
    };
    let ours = ours.replace("{value}", &places::written(value));
    Some(if ours.starts_with("remove") {
        ours
    } else {
        format!("write {ours}")
    })
}

/// The cron expression that a value holds: five fields, a word such as `daily`, or `schedule: [{cron: …}]` below `on`.
fn expression_in(value: View<'_>) -> Option<String> {
    if let Some(listed) = value.get("schedule") {
        let first = listed.each().into_iter().next()?;
        return expression_in(first.get("cron").unwrap_or(first));
    }
    let text = value.scalar_text()?;
    let text = text.trim();
    let word = text.trim_start_matches('@').to_lowercase();
    if NICKNAMES.contains(&word.as_str()) {
        return Some(format!("@{word}"));
    }
    let is_expression = Expression::parse(text, false).is_ok();
    is_expression.then(|| text.to_owned())
}

/// The words of each row with one of its maps and the form that is proposed.
#[cfg(test)]
pub(crate) fn rows() -> impl Iterator<Item = (&'static str, &'static Table, &'static str)> {
    WORDS.iter().flat_map(|(words, tables, ours)| {
        let pairs = words
            .iter()
            .flat_map(|word| tables.iter().map(move |table| (*word, *table)));
        pairs.map(|(word, table)| (word, table, *ours))
    })
}
