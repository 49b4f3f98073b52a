//! Keys of other systems: one error, whose hint is the form that works here.

use super::*;

/// Line of a skill with `schedule: "0 9 * * *"`; code; a part of the hint.
#[rustfmt::skip]
const SKILL_LINES: &[(&str, &str, &str)] = &[
    ("timezone: Europe/Berlin", "key-misplaced", "write `schedule: {cron: \"0 9 * * 1\", timezone: Europe/Berlin}` instead of `schedule` and `timezone`"),
    ("overlap: skip", "key-misplaced", "write `schedule: {cron: \"0 9 * * 1\", overlap: skip}`"),
    ("suspend: true", "key-foreign", "write `schedule: {cron: \"0 9 * * 1\", enabled: false}`"),
    ("sla: 2h", "key-foreign", "expected_within: 2h}`"),
    ("ignore_errors: true", "key-foreign", "`must_pass: false`"),
    ("ExecStart: git ls-files", "key-foreign", "write `run: \"git ls-files\"`"),
    ("entrypoint: make", "key-foreign", "write `run: make`"),
    ("resources: {limits: {memory: 512Mi}}", "key-foreign", "`MemoryMax=`"),
    ("memory: 512Mi", "key-foreign", "`limits: {processes: 100, written: 1GiB}`"),
    ("limits: {memory: 512MiB}", "restriction-malformed", "`MemoryMax=`"),
    ("TimeoutStartSec: 5min", "key-foreign", "write `timeout: 5m`"),
    ("TimeoutStartSec: 90", "key-foreign", "write `timeout: 90s`"),
    ("timeout_seconds: '60'", "key-foreign", "write `timeout: 60s`"),
    ("env_file: .env", "key-foreign", "`local: [.env]`"),
    ("volumes: [./data:/data]", "key-foreign", "`sandbox: {write: "),
    ("restart: always", "key-foreign", "`retry: {max_attempts: 3}`"),
    ("uses: actions/checkout@v4", "key-foreign", "below `run: |`"),
    ("with: {weeks: 2}", "key-foreign", "`interface: {inputs: "),
    ("ports: ['8080:80']", "key-foreign", "`sandbox: {network: none}`"),
    ("networks: [backend]", "key-foreign", "`sandbox: {network: none}`"),
    ("register: result", "key-foreign", "`interface: {outputs: "),
    ("changed_when: false", "key-foreign", "remove it"),
    ("args: [--x]", "key-foreign", "`run: [PROGRAM, ARGUMENT]`"),
    ("interval: 15m", "key-foreign", "write `schedule: {every: 15m}`"),
    ("artifacts: {paths: [out/]}", "key-foreign", "`interface: {outputs: "),
    ("cache: {paths: [node_modules/]}", "key-foreign", "`keep: [node_modules/]`"),
    ("only: [main]", "key-foreign", "`schedule: {on_commit: main}`"),
    ("max_turns: 10", "key-foreign", "write `max_iterations: 10`"),
    ("retry: {max_attempts: 3, backoff: {multiplier: 2}}", "key-foreign", "write `factor: 2`"),
    ("retry: {retries: 3}", "key-foreign", "write `max_attempts: 4`"),
    ("commit: {msg: done}", "key-foreign", "write `message: done`"),
    ("hooks: {post_run: [./x]}", "key-foreign", "`notify: {on_failure: COMMAND}`"),
    ("interface: {inputs: [{name: a, type: string, secret: true}]}", "key-foreign", "write `sensitive: true`"),
    ("interface: {inputs: [{id: a, type: string}]}", "key-foreign", "write `name: a`"),
    ("approval: {required: true}", "key-foreign", "write `approval_required: true` in place of `approval`"),
    ("verification: {command: make test}", "key-foreign", "`verification: [{command: \"make test\"}]`"),
    ("verification: [{run: make test}]", "key-foreign", "write `command: \"make test\"`"),
    ("verification: [{command: date, ignore_errors: yes}]", "key-foreign", "write `must_pass: false`"),
];

#[rustfmt::skip]
const SCHEDULE_LINES: &[(&str, &str, &str)] = &[
    ("interval: 15m", "key-foreign", "write `every: 15m`"),
    ("OnBootSec: 5min", "key-foreign", "write `cron: \"@reboot\"`"),
    ("OnUnitActiveSec: 1h", "key-foreign", "write `every: 1h`"),
    ("cron: '@daily', successfulJobsHistoryLimit: 3", "key-foreign", "`retention: {runs_min: 20}`"),
    ("hour: 9", "key-foreign", "write `cron: \"0 9 * * *\"`"),
    ("cron: '@daily', sla: 2h", "key-foreign", "write `expected_within: 2h`"),
    ("cron: '@daily', retries: 2", "key-foreign", "`retry: {max_attempts: 3}` in the skill"),
    ("watch: {paths: [workers/], debounce: 5s}", "key-foreign", "write `settle: 5s`"),
    ("watch: {path: [workers/]}", "key-misspelled", "did you mean `paths`?"),
];

#[rustfmt::skip]
const CONFIG_LINES: &[(&str, &str, &str)] = &[
    ("notify: {slack: 'https://hooks.slack.com/SECRET'}", "key-foreign", "`on_failure: {webhook: env:SLACK_HOOK, form: slack}`"),
    ("notify: {email: a@b.org}", "key-foreign", "write `on_failure: {sendmail: a@b.org}`"),
    ("web: {port: 8080}", "key-foreign", "write `listen: \"127.0.0.1:8080\"`"),
    ("logging: {level: debug}", "key-foreign", "`WORKERCTL_LOG`"),

    ("models: {default: {provider: ollama, modle: small}}", "key-refused", "did you mean `model`?"),
];

#[test]
fn each_key_of_another_system_is_one_error_with_the_form_to_write() {
    let worker = "worker: {id: w}\nskills:\n  - id: a\n    description: d\n    run: date\n";
    for (line, code, hint) in SKILL_LINES {
        let schedule = "    schedule: \"0 9 * * 1\"\n";
        let text = format!("{worker}{schedule}    {line}\n");
        only(&Workspace::of_worker(&text), (line, code, hint));
    }
    for (line, code, hint) in SCHEDULE_LINES {
        let text = format!("{worker}    schedule: {{{line}}}\n");
        only(&Workspace::of_worker(&text), (line, code, hint));
    }
    for (line, code, hint) in CONFIG_LINES {
        only(
            &Workspace::new(&[("workerctl.yaml", line)]),
            (line, code, hint),
        );
    }
}

#[track_caller]
fn only(workspace: &Workspace, (line, code, hint): (&str, &str, &str)) {
    let problems = workspace.load().problems;
    let shown = show(&problems);
    let [problem] = problems.as_slice() else {
        panic!("{line}: {shown}");
    };
    assert_eq!(
        (&*problem.code, problem.severity),
        (code, ERROR),
        "{line}: {shown}"
    );
    let said = problem.hint.as_deref().unwrap_or_default();
    assert!(said.contains(hint), "{line}: {shown}");
    assert!(!shown.contains("SECRET"), "{shown}");
}

#[test]
fn a_schedule_of_a_worker_with_several_skills_names_one() {
    for (line, hint) in [
        (
            "on: {schedule: [{cron: 0 9 * * *}]}",
            "write `schedule: {skill: a, cron: \"0 9 * * *\"}`",
        ),
        (
            "cron_schedule: 0 9 * * *",
            "write `schedule: {skill: a, cron: \"0 9 * * *\"}`",
        ),
        ("interval: 5m", "write `schedule: {skill: a, every: 5m}`"),
    ] {
        let skills = "skills:\n  - {id: a, description: d, run: date}\n  - {id: b, description: d, run: date}\n";
        let text = format!("worker: {{id: w}}\n{line}\n{skills}");
        check_worker(&text, ("key-foreign", ERROR, 2, 1, hint));
    }
}
