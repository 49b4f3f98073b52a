//! Remedies of problems: what to write instead of what people try first.

use super::{ERROR, WARNING, Workspace, check_worker, expect};

fn scheduled(schedule: &str) -> String {
    format!(
        "worker: {{id: w}}\nskills: [{{id: a, description: d, run: date}}]\nschedule: {schedule}\n"
    )
}

#[test]
fn abbreviations_of_zones_are_answered_with_a_zone_and_never_with_another_abbreviation() {
    for (zone, hint) in [
        ("PST", "did you mean `America/Los_Angeles`?"),
        ("edt", "did you mean `America/New_York`?"),
        ("CST", "did you mean `America/Chicago`?"),
        ("BST", "did you mean `Europe/London`?"),
        ("IST", "did you mean `Asia/Kolkata`?"),
        ("JST", "did you mean `Asia/Tokyo`?"),
        ("XST", "write an IANA name"),
        ("Europe/Berln", "did you mean `Europe/Berlin`?"),
        ("Europe/Munich", "did you mean `Europe/Berlin`?"),
        ("europe/Zürich", "did you mean `Europe/Zurich`?"),
        ("Europe/Bern", "write an IANA name"),
        ("GMT+2", "write an IANA name"),
        ("Asia/Berlin", "did you mean `Europe/Berlin`?"),
    ] {
        let text = scheduled(&format!("{{cron: '@daily', timezone: {zone}}}"));
        check_worker(&text, ("timezone-unknown", ERROR, 3, 38, hint));
    }
}

#[test]
fn tasks_in_the_place_of_skills_are_answered_with_the_word() {
    let text = "worker: {id: w}\ntasks:\n  - {id: a, description: d, run: date}\n";
    let hint = "rename `tasks:` to `skills:`";
    check_worker(text, ("worker-without-skills", WARNING, 2, 1, hint));
}

#[test]
fn lines_of_a_crontab_are_answered_with_their_fields() {
    for (cron, column, hint) in [
        ("0 9 * * 1-5 root", 31, "write five fields: `0 9 * * 1-5`"),
        (
            "0 9 * * * /usr/bin/x -a",
            29,
            "write five fields: `0 9 * * *`",
        ),
        ("0 0 9 * * MON", 29, "leave it out: `0 9 * * MON`"),
        ("@every 5m", 19, "write `every: 5m`"),
    ] {
        let text = scheduled(&format!("{{cron: '{cron}'}}"));
        check_worker(&text, ("schedule-expression", ERROR, 3, column, hint));
    }
}

#[test]
fn expressions_that_mean_something_else_than_they_seem_to_are_warned_of() {
    for (cron, code, hint) in [
        ("*/90 * * * *", "cron-step-long", "write `every: 90m`"),
        ("0 */36 * * *", "cron-step-long", "write `every: 36h`"),
        ("0 9 1-7 * MON", "cron-days-either", "write `* * MON#1`"),
        ("0 9 8-14 * 2", "cron-days-either", "write `* * 2#2`"),
    ] {
        let text = scheduled(&format!("{{cron: '{cron}'}}"));
        check_worker(&text, (code, WARNING, 3, 18, hint));
    }
    for cron in [
        "*/30 * * * *",
        "0 9 1-7 * *",
        "0 9 1,15 * MON",
        "0 9 * * MON#1",
    ] {
        let text = scheduled(&format!("{{cron: '{cron}'}}"));
        let catalog = Workspace::new(&[("workers/w/worker.yaml", text.as_str())]).load();
        assert!(
            catalog.problems.is_empty(),
            "{cron}: {}",
            super::show(&catalog.problems)
        );
    }
}

#[test]
fn values_that_no_shell_reads_are_answered_with_what_to_write() {
    let skill = |more: &str| {
        format!("worker: {{id: w}}\nskills:\n  - {{id: a, description: d, run: date, {more}}}\n")
    };
    let token = skill("env: {T: ghp_16C7e42F292c6912E7710c838347Ae178B4a}");
    check_worker(
        &token,
        ("secret-in-definition", ERROR, 3, 49, "revoke the token"),
    );
    let path = skill("env: {P: '/opt/bin:$PATH'}");
    check_worker(
        &path,
        (
            "env-not-expanded",
            WARNING,
            3,
            49,
            "set the variable in `run`",
        ),
    );
    let date =
        skill("interface: {outputs: [{name: r, type: file, destination: 'r/$(date +%F).md'}]}");
    check_worker(
        &date,
        ("destination-shell", ERROR, 3, 97, "such as `{date}`"),
    );
}

#[test]
fn a_colon_within_a_plain_value_is_not_taken_for_a_placeholder() {
    let text = "worker: {id: w}\nskills:\n  - id: a\n    run: echo \"failed: {skill}\"\n";
    let catalog = Workspace::new(&[("workers/w/worker.yaml", text)]).load();
    let shown = super::show(&catalog.problems);
    assert!(
        shown.contains("yaml-syntax") && !shown.contains("quote-placeholder"),
        "{shown}"
    );
}

#[test]
fn a_nickname_without_its_sign_is_answered_with_it() {
    for name in ["daily", "hourly", "weekly", "monthly", "yearly"] {
        let text = scheduled(name);
        let hint = format!("write `@{name}`");
        let catalog = check_worker(&text, ("schedule-expression", ERROR, 3, 11, &hint));
        let shown = super::show(&catalog.problems);
        let said = format!("a cron expression has five fields, `{name}` has 1");
        assert!(shown.contains(&said), "{shown}");
    }
}

#[test]
fn a_missing_script_is_to_be_created() {
    let text = "worker: {id: w}\nskills:\n  - {id: a, description: d, run: {script: a.sh}}\n";
    let hint = "create it, or correct the path, which is relative to worker.yaml";
    check_worker(text, ("file-missing", WARNING, 3, 43, hint));
}

#[test]
fn a_missing_first_line_of_a_frontmatter_is_an_error_that_says_so() {
    let path = ".claude/skills/a/SKILL.md";
    let keys = "name: a\ndescription: >\n  One\nallowed-tools:\n- Read\n---\n\n# A\n\nDo it.\n";
    let catalog = Workspace::new(&[(path, keys)]).load();
    expect(
        &catalog,
        path,
        &(
            "no-frontmatter",
            ERROR,
            1,
            1,
            "begin the file with a line `---`",
        ),
    );
    let prose = "name: a\nDo this first.\n\n---\n\nThen that.\n";
    let catalog = Workspace::new(&[(path, prose)]).load();
    expect(
        &catalog,
        path,
        &(
            "no-frontmatter",
            WARNING,
            1,
            1,
            "begin it with the lines `---`",
        ),
    );
}

#[test]
fn a_misspelt_tool_is_answered_with_the_tool() {
    for (tool, meant) in [
        ("Raed", "Read"),
        ("WebSerch", "WebSearch"),
        ("Bsh(git:*)", "Bash"),
        ("read_fle", "read_file"),
    ] {
        let text = format!(
            "worker: {{id: w}}\nskills:\n  - {{id: a, description: d, run: date, allowed-tools: [\"{tool}\"]}}\n"
        );
        let hint = format!("did you mean `{meant}`?");
        check_worker(&text, ("restriction-malformed", ERROR, 3, 55, &hint));
    }
}

/// Values of the wrong type, and the hint that repairs each.
#[rustfmt::skip]
const EXAMPLES: &[(&str, &str)] = &[
    ("retry: 3", "retry: {max_attempts: 4}"),
    ("retry: [a]", "retry: {max_attempts: 3}"),
    ("approval: true", "approval_required: true"),
    ("approval: soon", "approval: {before: landing}"),
    ("wake: {cmd: git status}", "wake: \"git status\""),
    ("wake: [a]", "wake: COMMAND"),
    ("hooks: ./x", "hooks: {post_commit: ./x}"),
    ("commit: done", "commit: {message: done}"),
    ("limits: 3", "limits: {processes: 100, written: 1GiB}"),
    ("budget: 1000", "budget: {tokens: 1000}"),
    ("branch: true", "branch: main"),
    ("local: {a: b}", "local: [.env]"),
    ("interface: {inputs: [a]}", "{name: a, type: string}"),
    ("interface: {outputs: [report.md]}", "{name: report, type: file, destination: report.md}"),
    ("interface: {outputs: {name: a, type: json}}", "- {name: a, type: json}"),
    ("interface: {inputs: [{name: a, enum: \"dev, prod\"}]}", "enum: [dev, prod]"),
    ("interface: {inputs: [{name: a, type: number, default: \"1\"}]}", "default: 1"),
    ("interface: {inputs: [{name: a, type: date, default: today}]}", "default: 2026-01-23"),
    ("verification: test -s x", "verification: [{command: \"test -s x\"}]"),
    ("verification: 'true'", "verification: [{command: \"true\"}]"),
    ("human_checkpoints: tone", "human_checkpoints: [tone]"),
    ("mutating: {a: b}", "mutating: true"),
    ("cwd: [a]", "cwd: \"TEXT\""),
    ("timeout: [a]", "timeout: 15m"),
    ("schedule: {cron: [0, 9, '*', '*', '*']}", "cron: \"0 9 * * *\""),
    ("schedule: {cron: '@daily', catch_up: false}", "catch_up: none"),
    ("schedule: {cron: '@daily', catch_up: true}", "catch_up: last"),
    ("schedule: {cron: '@daily', catchup: false}", "catch_up: none"),
    ("schedule: {cron: '@daily', catch_up: 3}", "catch_up: {mode: last, window: 1h}"),
    ("schedule: {cron: '@daily', blackout: [2026-12-25]}", "blackout: {dates: [2026-12-25]}"),
    ("schedule: {cron: '@daily', dst: skip}", "dst: {gap: skip}"),
    ("schedule: {cron: '@daily', max_actions: x}", "max_actions: 1"),
    ("schedule: {after: [note, b]}", "after: note"),
];

/// The same for workerctl.yaml.
#[rustfmt::skip]
const CONFIG_EXAMPLES: &[(&str, &str)] = &[
    ("retention: 30d", "retention: {runs: 30d}"),
    ("queue: 100", "queue: {max: 100}"),
    ("workers: core/workers", "workers: {paths: [core/workers]}"),
    ("skills: [{id: a}]", "skills: {roots: [vendor/skills]}"),
    ("notify: restart nginx", "notify: {on_failure: \"restart nginx\"}"),
    ("notify: https://hooks.example/SECRET", "notify: {on_failure: COMMAND}"),
    ("models: [{name: a}]", "models: {default: {provider: anthropic, model: NAME, key: env:ANTHROPIC_API_KEY}}"),
    ("models: {default: SECRET}", "default: {provider: anthropic, model: NAME, key: env:ANTHROPIC_API_KEY}"),
    ("toolsets: {t: {mcp: {command: nope-mcp --stdio}}}", "command: [nope-mcp, --stdio]"),
    ("agent: claude", "agent: {cli: claude}"),
    ("access: {admin: [alice]}", "admin: {users: [alice]}"),
    ("protected_files: deploy/", "protected_files: [deploy/]"),
    ("commit: {author: {name: a}}", "author: \"Repo Steward <steward@example.org>\""),
    ("skills: {trusted: false}", "untrusted: [.agents, .claude]"),
    ("trees: 4", "trees: {max: 4}"),
    ("web: 8080", "web: {listen: \"127.0.0.1:8930\"}"),
    ("max_parallel: two", "max_parallel: 0"),
];

#[test]
fn a_value_of_the_wrong_type_is_answered_with_a_complete_example() {
    let skill = |line: &str| {
        let text = format!(
            "worker: {{id: w}}\nskills:\n  - id: a\n    description: d\n    run: date\n    {line}\n"
        );
        Workspace::of_worker(&text).load().problems
    };
    let config = |line: &str| Workspace::new(&[("workerctl.yaml", line)]).load().problems;
    let skills = EXAMPLES.iter().map(|row| (row, skill(row.0)));
    let configs = CONFIG_EXAMPLES.iter().map(|row| (row, config(row.0)));
    for ((line, example), problems) in skills.chain(configs) {
        let shown = super::show(&problems);
        assert!(shown.contains(&format!("`{example}")), "{line}: {shown}");
        assert!(!shown.contains("SECRET"), "{shown}");
        if example.starts_with(line.split(':').next().expect("a key"))
            && !example.contains("COMMAND")
        {
            let repaired = if EXAMPLES.iter().any(|row| row.0 == *line) {
                skill(example)
            } else {
                config(example)
            };
            let shown = super::show(&repaired);
            assert!(!shown.contains("wrong-type"), "{example}: {shown}");
        }
    }
}
