//! What a worker sets for its skills, and what a skill sets for itself.

use super::{ERROR, NOTE, WARNING, Workspace, check_worker, codes, expect, show};
use crate::model::SecretSource;
use crate::model::definition::{PlainVariable, RunText, Shell};
use crate::model::spec::OnCrash;

#[test]
fn spans_of_time_need_a_unit_and_bounds() {
    let span = |text: &str| {
        format!(
            "worker: {{id: w}}\nexecution:\n  max_runtime: {text}\nskills: [{{id: a, description: d, run: date}}]\n"
        )
    };
    for (text, millis) in [("15m", 900_000), ("1h30m", 5_400_000), ("500ms", 500)] {
        let catalog = Workspace::of_worker(&span(text)).load();
        assert_eq!(
            catalog.workers[0].skills[0].max_runtime_ms,
            Some(millis),
            "{text}"
        );
    }
    let catalog = check_worker(&span("90"), ("duration-unit", WARNING, 3, 16, "`90s`"));
    assert_eq!(catalog.workers[0].skills[0].max_runtime_ms, Some(90_000));
    for (text, hint) in [
        ("0", "above zero"),
        ("-5m", "above zero"),
        ("0s", "above zero"),
        ("500d", "at most `366d`"),
        ("soon", "`1h30m`"),
        ("1.5h", "`1h30m`"),
    ] {
        check_worker(&span(text), ("duration-invalid", ERROR, 3, 16, hint));
    }
    check_worker(&span("[5m]"), ("wrong-type", ERROR, 3, 16, "a duration"));
    check_worker(&span("true"), ("wrong-type", ERROR, 3, 16, "a duration"));
}

#[test]
fn of_two_retry_sources_the_first_counts() {
    let yaml = "worker: {id: w}\nexecution: {retry_attempts: 2}\nstate_machine:\n  max_retries: 1\n\
                skills:\n  - {id: a, description: d, run: date}\n\
                \x20 - {id: b, description: d, run: date, mutating: true}\n\
                \x20 - {id: c, description: d, run: date, mutating: true, idempotent: true}\n\
                \x20 - {id: d, description: d, run: date, retry: {max_attempts: 5, backoff: {initial: 2s, factor: 1.5, max: 1m}, on: execution}}\n\
                \x20 - {id: e, description: d, run: date, retry: {max_attempts: 5}, mutating: true}\n\
                \x20 - {id: f, description: d, run: date, retry: {max_attempts: 5}, idempotent: false}\n";
    let catalog = check_worker(yaml, ("retry-two-sources", WARNING, 4, 16, "max_retries"));
    expect(
        &catalog,
        "workers/w/worker.yaml",
        &("retry-not-applied", NOTE, 2, 29, "idempotent: true"),
    );
    expect(
        &catalog,
        "workers/w/worker.yaml",
        &("retry-not-applied", WARNING, 10, 40, "idempotent: true"),
    );
    expect(
        &catalog,
        "workers/w/worker.yaml",
        &("retry-not-applied", WARNING, 11, 40, "idempotent: true"),
    );
    let skills = &catalog.workers[0].skills;
    let attempts: Vec<_> = skills
        .iter()
        .map(|skill| skill.retry.max_attempts)
        .collect();
    assert_eq!(attempts, [3, 1, 3, 5, 1, 1]);
    let own = &skills[3].retry;
    assert_eq!(
        (own.initial_ms, own.factor_percent, own.max_ms),
        (2_000, 150, 60_000)
    );
    assert!(own.on_execution && !own.on_verification);
    check_worker(
        "worker: {id: w}\nretry: {max_attempts: 0}\n",
        ("out-of-range", ERROR, 2, 23, "from 1 to 100"),
    );
    check_worker(
        "worker: {id: w}\nretry: {on: [commit], max_attempts: 2}\n",
        ("unknown-value", ERROR, 2, 13, "`verification`"),
    );
    check_worker(
        "worker: {id: w}\nretry: {on: execution}\n",
        ("missing-key", ERROR, 2, 1, "max_attempts"),
    );
}

#[test]
fn only_four_hook_names_are_known() {
    let yaml = "worker: {id: w}\nstate_machine:\n  enabled: true\n  hooks:\n    post_execute: [auto_checkpoint, notify]\n    on_error:\n      - log_error\n      - checkpoint_error_state\n";
    let catalog = check_worker(yaml, ("hook-name-unknown", WARNING, 5, 37, "post_tools"));
    assert_eq!(
        codes(&catalog)
            .iter()
            .filter(|c| **c == "hook-name-unknown")
            .count(),
        1
    );
    check_worker(
        "worker: {id: w}\nstate_machine: {enabled: false}\n",
        ("state-machine-always-on", NOTE, 2, 26, "remove"),
    );
}

#[test]
fn settings_are_inherited_and_merged() {
    let yaml = "worker: {id: w}\nenv: [STRIPE_KEY, {name: GIT_TOKEN, credential: git-token}, {name: KEPT, credential: kept.key}]\ncwd: sub\nshell: bash\ntimeout: 5m\nhooks: {post_tools: [./hook], post_commit: {command: push, timeout: 5s}}\ncommit: {message: \"all: {{title}}\"}\nskills:\n  - {id: a, description: d, run: date}\n  - id: b\n    description: d\n    run: [git, log, \"{n}\"]\n    env: [OTHER, {name: STRIPE_KEY, credential: stripe-key}, GIT_TOKEN]\n    cwd: .\n    shell: sh\n    timeout: 1s\n    on_crash: restore\n    hooks: {post_tools: [{command: x}]}\n    commit: {message: own}\n    idempotent: true\n    mutating: true\n";
    let workspace = Workspace::of_worker(yaml);
    workspace.write("workerctl.yaml", b"hooks: {post_tools: first}\n");
    let catalog = workspace.load();
    assert!(!catalog.has_errors(), "{}", show(&catalog.problems));
    let [a, b] = catalog.workers[0].skills.as_slice() else {
        panic!("two skills");
    };
    assert_eq!(
        (a.cwd.as_str(), a.shell, a.timeout_ms),
        ("sub", Shell::Bash, Some(300_000))
    );
    assert_eq!(
        (b.cwd.as_str(), b.shell, b.timeout_ms),
        (".", Shell::Sh, Some(1_000))
    );
    assert_eq!(a.env, ["STRIPE_KEY", "GIT_TOKEN", "KEPT"]);
    assert_eq!(b.env, ["STRIPE_KEY", "GIT_TOKEN", "KEPT", "OTHER"]);
    let of_worker = [("GIT_TOKEN", "git-token"), ("KEPT", "kept.key")];
    let of_skill = [("KEPT", "kept.key"), ("STRIPE_KEY", "stripe-key")];
    for (skill, credentials) in [(a, of_worker), (b, of_skill)] {
        let sources = skill.secrets.iter();
        let sources = sources.map(|(name, one)| (name.as_str(), one.source.clone().unwrap()));
        let credentials =
            credentials.map(|(name, from)| (name, SecretSource::Credential(from.to_owned())));
        assert_eq!(sources.collect::<Vec<_>>(), credentials);
    }
    assert_eq!(
        (a.on_crash, b.on_crash),
        (OnCrash::Verify, OnCrash::Restore)
    );
    let hooks: Vec<_> = b.hooks.iter().map(|hook| hook.command.as_str()).collect();
    assert_eq!(hooks, ["first", "./hook", "x"]);
    assert_eq!(
        (
            b.post_commit[0].command.as_str(),
            b.post_commit[0].timeout_ms
        ),
        ("push", 5_000)
    );
    assert_eq!(a.commit_message.as_deref(), Some("all: {{title}}"));
    assert_eq!(b.commit_message.as_deref(), Some("own"));
    assert!(matches!(&b.run, RunText::Argv(argv) if argv == &["git", "log", "{n}"]));
    assert!(b.mutating && b.idempotent == Some(true) && !a.mutating);
}

#[test]
fn variables_that_are_no_secrets_have_values_and_the_innermost_entry_counts() {
    let yaml = "worker: {id: w}\nenv: {CI: \"1\", PORT: 5432, DEBUG: true, TOKEN: x}\nskills:\n  - id: a\n    description: d\n    run: date\n    env:\n      - TOKEN\n      - {name: PORT, value: 80}\n      - {name: EDITOR, plain: true}\n      - {name: KEY, plain: false}\n";
    let catalog = Workspace::of_worker(yaml).load();
    assert!(!catalog.has_errors(), "{}", show(&catalog.problems));
    let skill = &catalog.workers[0].skills[0];
    assert_eq!(skill.env, ["TOKEN", "KEY"]);
    let value = |text: &str| PlainVariable::Value(text.to_owned());
    let wanted = [
        ("CI", value("1")),
        ("DEBUG", value("true")),
        ("EDITOR", PlainVariable::Inherited),
        ("PORT", value("80")),
    ];
    let found = skill.variables.iter();
    let found = found.map(|(name, variable)| (name.as_str(), variable.clone()));
    assert_eq!(found.collect::<Vec<_>>(), wanted);
}

#[test]
fn wrong_variables_are_errors_at_their_place() {
    for (env, code, column) in [
        ("{A: [1]}", "wrong-type", 10),
        ("{WORKERCTL_X: a}", "env-name", 7),
        ("{TMPDIR: a}", "env-name", 7),
        ("[{name: A, value: x, secret: {file: /x}}]", "env-plain", 17),
        ("[{name: A, plain: true, as: file}]", "env-plain", 17),
        ("[{name: A, plain: yes please}]", "wrong-type", 24),
        ("text", "wrong-type", 6),
    ] {
        let yaml = format!(
            "worker: {{id: w}}\nenv: {env}\nskills: [{{id: a, description: d, run: date}}]\n"
        );
        let catalog = Workspace::of_worker(&yaml).load();
        let found = catalog.problems.iter().find(|problem| problem.code == code);
        let place =
            found.map(|problem| (problem.severity, problem.place.line, problem.place.column));
        assert_eq!(
            place,
            Some((ERROR, 2, column)),
            "{env}: {}",
            show(&catalog.problems)
        );
    }
}

#[test]
fn a_variable_says_where_its_value_is() {
    let yaml = "worker: {id: w}\nenv: [{name: A, secret: {command: [pass, show, a b]}}, {name: B, secret: {command: [x], timeout: 2m}, as: file}]\nskills:\n  - {id: a, description: d, run: date, env: [{name: C, secret: {file: ~/c}}, {name: D, secret: {credential: d-d}, as: variable}, {name: E, as: file}, {name: A}]}\n";
    let catalog = Workspace::of_worker(yaml).load();
    assert!(!catalog.has_errors(), "{}", show(&catalog.problems));
    let skill = &catalog.workers[0].skills[0];
    assert_eq!(skill.env, ["A", "B", "C", "D", "E"]);
    let uses = skill.secrets.iter();
    let uses = uses.map(|(name, one)| (name.as_str(), one.source.clone(), one.as_file));
    let command = SecretSource::Command {
        argv: vec!["x".to_owned()],
        timeout_ms: 120_000,
    };
    // The skill's own `A` is the plain name again.
    let wanted = [
        ("B", Some(command), true),
        ("C", Some(SecretSource::File("~/c".to_owned())), false),
        ("D", Some(SecretSource::Credential("d-d".to_owned())), false),
        ("E", None, true),
    ];
    assert_eq!(uses.collect::<Vec<_>>(), wanted);
    assert!(
        skill.secrets["B"].place.ends_with("/worker.yaml:2:56"),
        "{}",
        skill.secrets["B"].place
    );
    let yaml = yaml.replace(", {name: A}]", "]");
    let catalog = Workspace::of_worker(&yaml).load();
    let found = catalog.workers[0].skills[0].secrets["A"].source.clone();
    let argv = ["pass", "show", "a b"].map(str::to_owned).to_vec();
    let timeout_ms = 30_000;
    assert_eq!(found, Some(SecretSource::Command { argv, timeout_ms }));
}

#[test]
fn the_place_of_a_secret_is_checked() {
    for (entry, code, column, hint) in [
        ("secret: {}", "secret-source", 25, "{file: /path}"),
        ("secret: s3cret", "secret-source", 25, "{file: /path}"),
        (
            "secret: {file: /x, credential: x}",
            "secret-source",
            25,
            "write one of",
        ),
        (
            "credential: x, secret: {file: /x}",
            "secret-source",
            40,
            "write one of",
        ),
        ("secret: {file: keys/x}", "secret-source", 32, "~/path"),
        ("secret: {command: pass show x}", "wrong-type", 35, "a list"),
        (
            "secret: {command: [\"\"]}",
            "blank",
            35,
            "the program first",
        ),
        ("as: path", "unknown-value", 21, "`variable` or `file`"),
    ] {
        let yaml = format!(
            "worker: {{id: w}}\nenv: [{{name: A, {entry}}}]\nskills: [{{id: a, description: d, run: date}}]\n"
        );
        let catalog = check_worker(&yaml, (code, ERROR, 2, column, hint));
        assert!(catalog.workers.is_empty(), "{entry}");
    }
}

#[test]
fn names_of_variables_and_credentials_are_checked() {
    let table = [
        ("env: KEY", "wrong-type", 2, 6, "write `env: [API_KEY]`"),
        ("env: [\"A=b\"]", "env-name", 2, 7, "{name: A, value: TEXT}"),
        ("env: [stripe-key]", "env-name", 2, 7, "credential: api-key"),
        (
            "env: [{name: A-B, credential: x}]",
            "env-name",
            2,
            14,
            "letters, digits",
        ),
        (
            "env: [{name: A, credential: ../x}]",
            "credential-name",
            2,
            29,
            "LoadCredential",
        ),
        (
            "env: [{name: A, credential: a:b}]",
            "credential-name",
            2,
            29,
            "LoadCredential",
        ),
        ("env: [{credential: x}]", "wrong-type", 2, 7, "`- NAME`"),
        (
            "env: [WORKERCTL_RUN]",
            "env-name",
            2,
            7,
            "set by the engine",
        ),
    ];
    for (line, code, at, column, hint) in table {
        let yaml =
            format!("worker: {{id: w}}\n{line}\nskills: [{{id: a, description: d, run: date}}]\n");
        let catalog = check_worker(&yaml, (code, ERROR, at, column, hint));
        assert!(catalog.workers.is_empty(), "{line}");
    }
}

#[test]
fn bad_settings_reject_with_place_and_remedy() {
    let table = [
        (
            "cwd: /etc",
            "path-outside",
            2,
            6,
            "relative to the workspace",
        ),
        (
            "cwd: a/../../b",
            "path-outside",
            2,
            6,
            "relative to the workspace",
        ),
        ("cwd: .git/hooks", "path-outside", 2, 6, "outside of `.git`"),
        ("shell: fish", "unknown-value", 2, 8, "`sh` or `bash`"),
        ("hooks: ./x", "wrong-type", 2, 8, "`post_tools`"),
        (
            "hooks: {post_tools: [{timeout: 5s}]}",
            "wrong-type",
            2,
            22,
            "`command`",
        ),
        ("commit: text", "wrong-type", 2, 9, "`message`"),
        ("execution: fast", "wrong-type", 2, 12, "a map"),
        (
            "verification: make",
            "wrong-type",
            2,
            15,
            "a list of checks",
        ),
        ("instructions: {a: b}", "wrong-type", 2, 15, "text"),
        ("skills: word", "wrong-type", 2, 9, "a list"),
    ];
    for (line, code, at, column, hint) in table {
        let catalog = check_worker(
            &format!("worker: {{id: w}}\n{line}\n"),
            (code, ERROR, at, column, hint),
        );
        assert!(
            line.starts_with("skills") || catalog.workers.is_empty(),
            "{line}"
        );
    }
}

#[test]
fn notify_names_commands_and_nothing_else() {
    let worker = |notify: &str| {
        format!(
            "worker: {{id: w}}\nnotify: {notify}\nskills: [{{id: a, description: d, run: date}}]\n"
        )
    };
    let catalog = Workspace::of_worker(&worker(
        "{on_failure: tell, on_recovery: {command: b, timeout: 5s}}",
    ))
    .load();
    assert!(codes(&catalog).is_empty(), "{}", show(&catalog.problems));
    let notify = &catalog.workers[0].notify;
    assert_eq!(notify.on_failure.as_ref().unwrap().to_string(), "tell");
    assert_eq!(
        notify
            .on_recovery
            .as_ref()
            .unwrap()
            .command()
            .unwrap()
            .timeout_ms,
        5_000
    );
    assert_eq!(notify.on_missed, None);
    let expected = "`on_failure`";
    check_worker(&worker("./tell"), ("wrong-type", ERROR, 2, 9, expected));
    check_worker(
        &worker("{on_failure: [a]}"),
        ("wrong-type", ERROR, 2, 22, "a command"),
    );
    check_worker(
        &worker("{on_faliure: a}"),
        ("key-misspelled", ERROR, 2, 10, expected),
    );
    let twice = "worker: {id: w}\nskills:\n  - {id: a, description: d, run: date, schedule: {every: 5m, on_missed: a, notify: {on_missed: b}}}\n";
    check_worker(twice, ("schedule-policy", ERROR, 3, 62, "`notify`"));
    let alone = "worker: {id: w}\nskills:\n  - {id: a, description: d, run: date, schedule: {every: 5m, notify: {foreground: true}}}\n";
    check_worker(alone, ("schedule-policy", WARNING, 3, 71, "workerctl.yaml"));
}

#[test]
fn the_innermost_word_on_rate_limits_counts() {
    use crate::model::spec::RateLimitWait;
    let hours = |hours: u64, times| {
        let wait_ms = hours * 3_600_000;
        Some(RateLimitWait { wait_ms, times })
    };
    let waits = |config: &str, worker: &str, skill: &str| {
        let worker = format!(
            "worker: {{id: w}}\n{worker}skills: [{{id: a, description: d, run: date{skill}}}]\n"
        );
        let files = [
            ("workerctl.yaml", config),
            ("workers/w/worker.yaml", &worker),
        ];
        let catalog = Workspace::new(&files).load();
        let found = catalog.workers.first().and_then(|one| one.skills.first());
        found.map(|skill| skill.on_rate_limit)
    };
    let (config, worker) = (
        "on_rate_limit: {wait: 1h}\n",
        "on_rate_limit: {wait: 2h, times: 3}\n",
    );
    for (config, worker, skill, expected) in [
        ("", "", "", Some(None)),
        (config, "", "", Some(hours(1, 1))),
        (config, worker, "", Some(hours(2, 3))),
        (
            config,
            worker,
            ", on_rate_limit: {wait: 3h}",
            Some(hours(3, 1)),
        ),
        (config, worker, ", on_rate_limit: false", Some(None)),
        (config, "on_rate_limit: false\n", "", Some(None)),
        ("", "", ", on_rate_limit: {times: 2}", None),
        ("", "", ", on_rate_limit: {wait: 1h, times: 0}", None),
        ("", "", ", on_rate_limit: true", None),
    ] {
        assert_eq!(
            waits(config, worker, skill),
            expected,
            "{config}{worker}{skill}"
        );
    }
}
