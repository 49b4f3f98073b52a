//! Words of other systems, such as GitHub Actions, Kubernetes, cron and systemd, with the form to write instead.

use super::places::is_same;
use super::scheduled;
use super::{
    APPROVAL, BACKOFF, CHANNEL, CHECK, COMMIT, CONFIG, CONFIG_COMMIT, CONFIG_MCP_HTTP,
    CONFIG_RETENTION, CONFIG_WEB, EXECUTION, HOOKS, INPUT, LIMITS, NOTIFY, OUTPUT, RETRY, RUN,
    SCHEDULE, SKILL, Table, VERIFICATION, WATCH, WORKER_FILE, places,
};
use crate::examples;
use crate::model::duration::parse_millis;
use crate::view::View;
use workerctl_core::schedule::Expression;

/// Maps of workers that decide when and how a skill runs.
const WORK: &[&Table] = &[&SKILL, &WORKER_FILE, &EXECUTION];
const SKILLS: &[&Table] = &[&SKILL, &WORKER_FILE];
const TIMED: &[&Table] = &[&SKILL, &WORKER_FILE, &EXECUTION, &CHECK, &CONFIG];
const LIMITED: &[&Table] = &[&SKILL, &WORKER_FILE, &EXECUTION, &CONFIG, &LIMITS];
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
    (&["interval"], &[&SCHEDULE], "`every: {value}`"),
    (&["interval"], WORK, "`schedule: {every: {value}}`"),
    (&["on_boot_sec", "on_startup_sec"], &[&SCHEDULE], "`cron: \"@reboot\"`"),
    (&["on_boot_sec", "on_startup_sec"], WORK, "`schedule: \"@reboot\"`"),
    (&["on_unit_active_sec", "on_active_sec"], &[&SCHEDULE], "`every: {value}`"),
    (&["on_unit_active_sec", "on_active_sec"], WORK, "`schedule: {every: {value}}`"),
    (&["successful_jobs_history_limit", "failed_jobs_history_limit", "ttl_seconds_after_finished"], &[&SCHEDULE, &SKILL, &WORKER_FILE], "`retention: {runs_min: 20}` in workerctl.yaml, the number of the newest runs of each skill that are kept"),
    (&["sla", "deadline"], &[&SCHEDULE], "`expected_within: {value}`"),
    (&["sla", "deadline"], WORK, "in the schedule: `schedule: {cron: \"0 9 * * *\", expected_within: {value}}`"),
    (&["time", "hour", "minute"], &[&SCHEDULE], "`cron: \"0 9 * * *\"` for 9:00: minute, hour, day of the month, month, day of the week"),
    (&["debounce", "delay"], &[&WATCH], "`settle: {value}`"),
    (&["only"], WORK, "`schedule: {on_commit: main}` to run at new commits of a branch, or `branch: main` for the branch that results land on"),
    // What runs, and where.
    (&["exec_start", "exec", "entrypoint", "bash_command", "shell_command"], &[&SKILL], "`run: {value}`"),
    (&["exec_start", "exec", "entrypoint", "bash_command", "shell_command"], &[&WORKER_FILE, &EXECUTION], "`run: {value}` in a skill"),
    (&["args", "arguments"], SKILLS, "the arguments in `run`: `run: [PROGRAM, ARGUMENT]`"),
    (&["ports", "expose"], SKILLS, "remove it: commands listen on ports of the machine, unless `sandbox: {network: none}` is set"),
    (&["networks", "network_mode"], SKILLS, "`sandbox: {network: none}` for commands that need no network, else remove it"),
    (&["register"], SKILLS, "`interface: {outputs: [{name: result, type: file, destination: FILE}]}` for a file that the skill writes"),
    (&["changed_when"], SKILLS, "remove it: a run has changed what git finds changed"),
    (&["failed_when"], SKILLS, "a check: `verification: [{command: COMMAND}]`"),
    (&["uses"], SKILLS, "remove it: actions are not supported; write their commands below `run: |`"),
    (&["with"], SKILLS, "remove it: values of a skill are declared as `interface: {inputs: [{name: NAME}]}`, and a schedule gives them as `inputs: {NAME: VALUE}`"),
    (&["run", "cmd", "assert", "script", "exec"], &[&CHECK], "`command: {value}`"),
    (&["command", "run", "cmd", "script"], &[&VERIFICATION], "a list: `verification: [{command: {value}}]`"),
    (&["volumes", "mounts"], WORK, "`sandbox: {write: [/srv/data]}` for directories outside of the workspace, or `local: [PATH]` for files of the checkout"),
    (&["resources", "memory", "cpu", "cpus", "mem_limit", "memory_max", "cpu_quota"], LIMITED, "remove it: memory and processors are not limited for each run. `limits: {processes: 100, written: 1GiB}` limits a command; `MemoryMax=` and `CPUQuota=` in the systemd unit limit the engine with all its commands"),
    (&["env_file", "environment_file", "dotenv"], WORK, "`env: [NAME]` with the name of each variable, whose value the engine's environment or a credential has; `local: [{value}]` copies the file into the worktree"),
    (&["vars", "variables"], WORK, "`env: {NAME: VALUE}`"),
    (&["cache"], WORK, "`keep: [node_modules/]` with the ignored directories that stay from run to run"),
    (&["artifacts"], WORK, "`interface: {outputs: [{name: report, type: file, destination: PATH}]}` in a skill"),
    (&["defaults", "default_args"], &[&WORKER_FILE], "its keys at the top level of worker.yaml: they are the defaults of its skills"),
    (&["include", "extends"], WORK, "remove it: no file includes another; skills share the keys at the top level of worker.yaml and of workerctl.yaml"),
    (&["script"], &[&SKILL], "the commands as one text below `run: |`, or a file as `run: {script: PATH}`"),
    (&["steps", "jobs", "stages", "before_script", "after_script"], &[&SKILL], "the commands as one text below `run: |`"),
    (&["actions"], &[&WORKER_FILE], "`skills:`, a list of what the worker can do: `skills: [{id: NAME, description: TEXT, run: COMMAND}]`"),
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
    (&["retries", "max_retries", "retry_count"], &[&SCHEDULE], "`retry: {max_attempts: {more}}` in the skill: the first attempt counts too"),
    (&["restart", "restart_policy"], WORK, "`retry: {max_attempts: 3}`, which repeats a failed run; to run again and again, write `schedule: {every: 5m}`"),
    (&["multiplier", "exponent"], &[&BACKOFF], "`factor: {value}`"),
    (&["timeout_start_sec", "runtime_max_sec"], TIMED, "`timeout: {span}`"),
    (&["max_turns", "max_steps"], &[&SKILL], "`max_iterations: {value}`"),
    (&["max_turns", "max_steps"], &[&WORKER_FILE, &EXECUTION], "`max_iterations: {value}` in a skill"),
    (&["required", "enabled"], &[&APPROVAL], "`approval_required: {value}` in place of `approval`"),
    (&["continue-on-error", "ignore_errors", "allow_failure"], WORK, "`retry: {max_attempts: 2}` to repeat a failed run, or `must_pass: false` in a check that may fail"),
    (&["continue-on-error", "ignore_errors", "allow_failure"], &[&CHECK], "`must_pass: false`"),
    (&["timeout-minutes"], TIMED, "`timeout: {value}m`"),
    (&["timeout_seconds", "timeout_sec", "active_deadline_seconds"], TIMED, "`timeout: {value}s`"),
    // Values of inputs.
    (&["options", "choices", "values"], &[&INPUT], "`enum: [a, b]` and `type: string`"),
    (&["secret"], &[&INPUT], "`sensitive: {value}`"),
    (&["optional"], &[&INPUT], "`required: false`"),
    (&["id", "key"], &[&INPUT, &OUTPUT], "`name: {value}`"),
    // Inputs and outputs without `interface`.
    (&["inputs", "outputs", "params", "parameters"], &[&SKILL], "them below `interface`: `interface: {inputs: […], outputs: […]}`"),
    (&["inputs", "outputs", "params", "parameters"], &[&WORKER_FILE, &EXECUTION], "them below `interface` of a skill: `interface: {inputs: […], outputs: […]}`"),
    (&["tools"], &[&SKILL], "`allowed-tools: {value}`"),
    (&["on_success", "success"], &[&NOTIFY], "`on_recovery: {value}`: it notifies of the first success after a failure; to act on every success, write `schedule: {after: SKILL}` in another skill"),
    (&["slack"], &[&NOTIFY], "`on_failure: {webhook: env:SLACK_HOOK, form: slack}`"),
    (&["email", "mail", "sendmail"], &[&NOTIFY], "`on_failure: {sendmail: {value}}`"),
    (&["webhook", "url"], &[&NOTIFY], "`on_failure: {webhook: env:NAME}`"),
    (&["command"], &[&NOTIFY], "`on_failure: {value}`"),
    (&["slack"], &[&CHANNEL], "`webhook: env:SLACK_HOOK, form: slack`"),
    (&["post_run", "post_success"], &[&HOOKS], "`post_commit: {value}` to act on commits; to act on every success, write `schedule: {after: SKILL}` in another skill, and for failures `notify: {on_failure: COMMAND}` at the top level of worker.yaml"),
    (&["on_failure", "on_error", "post_failure"], &[&HOOKS], "`notify: {on_failure: {value}}` at the top level of worker.yaml"),
    (&["pre_run", "pre_commit"], &[&HOOKS], "`post_tools: {value}`, which runs before the commit, or a check before the command: `verification: {pre_execute: [{command: {value}}]}`"),
    (&["msg", "title"], &[&COMMIT, &CONFIG_COMMIT], "`message: {value}`"),
    // Settings of the engine.
    (&["port"], &[&CONFIG_WEB, &CONFIG_MCP_HTTP], "`listen: \"127.0.0.1:{value}\"`"),
    (&["days"], &[&CONFIG_RETENTION], "`runs: {value}d`"),
    (&["remote"], &[&CONFIG], "`push: {value}`"),
    (&["listen", "port"], &[&CONFIG], "`web: {listen: \"127.0.0.1:8930\"}` for the web page, or `mcp: {http: {listen: …}}`"),
    (&["log_level", "loglevel", "logging"], &[&CONFIG], "remove it: the environment variable `WORKERCTL_LOG` sets the level, such as `WORKERCTL_LOG=debug`"),
];

/// Begin of the forms of what belongs in a schedule.
const IN_SCHEDULE: &str = "in the schedule: `schedule: {cron: \"0 9 * * *\", ";

const NICKNAMES: [&str; 5] = ["hourly", "daily", "weekly", "monthly", "yearly"];

/// What to write instead of a word of other systems; `None` if `key` is none in `table`, to which `map` belongs.
pub(super) fn remedy(key: &str, value: View<'_>, map: View<'_>, table: &Table) -> Option<String> {
    let (.., ours) = WORDS.iter().find(|(words, tables, _)| {
        tables.iter().any(|known| known.name == table.name)
            && words.iter().any(|word| is_same(word, key))
    })?;
    if is_same(key, "on")
        && let Some(ours) = event(value)
    {
        return Some(ours);
    }
    let number = value
        .scalar_text()
        .and_then(|text| text.parse::<u32>().ok());
    let more = number.map_or("N".to_owned(), |number| {
        number.saturating_add(1).to_string()
    });
    let own = number
        .map(|number| number.to_string())
        .or_else(|| examples::shown(value.data()));
    let own = own.unwrap_or_else(|| places::written(value));
    let ours = ours
        .replace("{more}", &more)
        .replace("{span}", &span(value))
        .replace("{value}", &own);
    let ours = match expression_in(value) {
        Some(expression) => ours.replace("{cron}", &format!("\"{expression}\"")),
        None if ours.contains("{cron}") => format!(
            "{} with your own times, such as `\"0 9 * * 1-5\"` for 9:00 from Monday to Friday",
            ours.replace("{cron}", "\"MINUTE HOUR DAY MONTH WEEKDAY\"")
        ),
        None => ours,
    };
    if let Some(policy) = ours.strip_prefix(IN_SCHEDULE) {
        let policy = policy.trim_end_matches("}`");
        return Some(scheduled::with(key, policy, map));
    }
    Some(if ours.starts_with("remove") {
        ours
    } else {
        format!("write {}", scheduled::naming(&ours, map, table))
    })
}

/// Returns the remedy of `on` with an event of GitHub Actions other than a schedule.
fn event(value: View<'_>) -> Option<String> {
    let items = value.items().filter_map(|item| item.scalar_text());
    let names = value.entries().map(|(name, _)| name.to_owned());
    let events: Vec<String> = value
        .scalar_text()
        .into_iter()
        .chain(names)
        .chain(items)
        .collect();
    let has = |name: &str| events.iter().any(|event| event == name);
    if has("push") {
        Some(
            "write `schedule: {on_commit: main}` with the branch whose new commits start it"
                .to_owned(),
        )
    } else if has("workflow_dispatch") {
        Some("remove it: `workerctl run SKILL` starts a skill".to_owned())
    } else {
        None
    }
}

/// A span of time of systemd, such as `5min` or `90`, in our form.
fn span(value: View<'_>) -> String {
    let text = value.scalar_text().unwrap_or_default();
    let ours = text
        .trim()
        .replace("min", "m")
        .replace("sec", "s")
        .replace("hr", "h");
    match parse_millis(&ours) {
        Ok((_, true)) => format!("{ours}s"),
        Ok(_) => ours,
        Err(_) => "15m".to_owned(),
    }
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
